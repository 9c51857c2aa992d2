//! Calls of the port as transactions: to whom, with what data, and what of ETH and SNO they move.

use alloy::primitives::{Bytes, U256};
use alloy::sol_types::{Error, SolCall};
use tensorlink_bindings::{Checkpoints, Disputes, Jobs, Staking};
use tensorlink_node::ports::Call;
use tensorlink_node::ports::chain::{Deployment, Role};
use tensorlink_types::Address;

use crate::convert::recode;

/// What a transaction does.
#[derive(Clone, Debug)]
pub(crate) struct Action {
    /// The contract.
    pub(crate) to: Address,
    /// Wei of ETH that go with it.
    pub(crate) value: U256,
    /// ABI-encoded call.
    pub(crate) data: Bytes,
    /// Wei of SNO that the contract will take from us.
    pub(crate) spends: Option<U256>,
}

/// [`Role`] as the contract numbers it.
pub(crate) const fn role_number(role: Role) -> u8 {
    match role {
        Role::Worker => 1,
        Role::Validator => 2,
    }
}

/// The transaction of a call. `bond` is the bond of a dispute, wei of SNO.
pub(crate) fn action(deployment: &Deployment, call: &Call, bond: U256) -> Result<Action, Error> {
    let d = deployment;
    Ok(match call {
        Call::Stake { role, amount } => {
            let call = Staking::stakeCall { role: role_number(*role), amount: *amount };
            plain(d.staking, &call).spending(*amount)
        }
        Call::RequestUnstake { role, amount } => {
            plain(d.staking, &Staking::requestUnstakeCall { role: role_number(*role), amount: *amount })
        }
        Call::WithdrawStake { role } => plain(d.staking, &Staking::withdrawCall { role: role_number(*role) }),
        Call::Post { terms, deposit } => {
            let post = plain(d.jobs, &Jobs::postCall { terms: recode(terms)?, deposit: *deposit });
            if terms.token.is_zero() {
                Action { value: *deposit, ..post }
            } else if terms.token == d.sno {
                post.spending(*deposit)
            } else {
                post
            }
        }
        Call::Accept { job, offers, signatures } => {
            plain(d.jobs, &Jobs::acceptCall { job: job.0, offers: recode(offers)?, signatures: signatures.clone() })
        }
        Call::Start { job } => plain(d.jobs, &Jobs::startCall { job: job.0 }),
        Call::Cancel { job } => plain(d.jobs, &Jobs::cancelCall { job: job.0 }),
        Call::Settle { job } => plain(d.jobs, &Jobs::settleCall { job: job.0 }),
        Call::Collect { token } => plain(d.jobs, &Jobs::collectCall { token: *token }),
        Call::Commit { claim, previous } => {
            plain(d.checkpoints, &Checkpoints::commitCall { claim: recode(claim)?, previous: recode(previous)? })
        }
        Call::Finalize { claims } => {
            let (claims, times): (Vec<_>, Vec<u64>) = claims.iter().cloned().unzip();
            plain(d.checkpoints, &Checkpoints::finalizeCall { claims: recode(&claims)?, committedAt: times })
        }
        Call::OpenDispute { claim, committed_at } => {
            let call = Disputes::openCall { claim: recode(claim)?, committedAt: *committed_at };
            plain(d.disputes, &call).spending(bond)
        }
        Call::Prove(proof) => plain(d.disputes, &Disputes::proveSignedCall { proof: recode(&**proof)? }),
        Call::ProveWiring(proof) => plain(d.disputes, &Disputes::proveSignedWiringCall { proof: recode(&**proof)? }),
        Call::ProveContradiction(proof) => {
            plain(d.disputes, &Disputes::proveSignedContradictionCall { proof: recode(&**proof)? })
        }
        Call::TimeoutDispute { dispute } => plain(d.disputes, &Disputes::timeoutCall { dispute: *dispute }),
    })
}

/// A transaction that calls a contract and moves nothing.
pub(crate) fn plain(to: Address, call: &impl SolCall) -> Action {
    Action { to, value: U256::ZERO, data: call.abi_encode().into(), spends: None }
}

impl Action {
    fn spending(self, amount: U256) -> Self {
        Self { spends: Some(amount), ..self }
    }
}
