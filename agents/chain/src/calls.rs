//! Calls of the port as transactions: to whom, with what data, and what of ETH and SNO they move. Proofs back
//! from transactions.

use alloy::primitives::{Bytes, U256};
use alloy::sol_types::{Error, SolCall, SolInterface};
use tensorlink_bindings::disputes::Disputes::DisputesCalls;
use tensorlink_bindings::{Audits, Beacon, Challenges, Channels, Checkpoints, Custody, Disputes, Jobs, Staking};
use tensorlink_node::ports::chain::{Deployment, Role};
use tensorlink_node::ports::{AuditMove, Call, CustodyMove};
use tensorlink_proof::challenge::Move;
use tensorlink_proof::fraud::{ElementProof, bytes};
use tensorlink_types::Address;

use crate::challenge;
use crate::convert::recode;

/// What a transaction does.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Action {
    /// The contract.
    pub to: Address,
    /// Wei of ETH that go with it.
    pub value: U256,
    /// ABI-encoded call.
    pub data: Bytes,
    /// Wei of SNO that the contract will take from us.
    pub spends: Option<U256>,
}

/// What is put up with a call that opens a challenge or a demand.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PutUp {
    /// For the delay, wei of SNO.
    pub bond: U256,
    /// For the gas of the worker that a challenge asks, wei of ETH.
    pub deposit: U256,
}

/// [`Role`] as the contract numbers it.
pub(crate) const fn role_number(role: Role) -> u8 {
    match role {
        Role::Worker => 1,
        Role::Validator => 2,
    }
}

/// The transaction of a call, with what is put up with it if it opens a challenge or a demand.
///
/// # Errors
/// For what the ABI cannot hold.
pub fn action(deployment: &Deployment, call: &Call, put_up: PutUp) -> Result<Action, Error> {
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
        Call::CollectGas => plain(d.challenges, &Challenges::collectCall {}),
        Call::Commit { claim, previous } => {
            plain(d.checkpoints, &Checkpoints::commitCall { claim: recode(claim)?, previous: recode(previous)? })
        }
        Call::Seal { lane, interval, seal } => {
            let (job, stage, replica) = (lane.job.0, lane.stage, lane.replica);
            let call = Checkpoints::sealCall { job, stage, replica, interval: *interval, sealedClaim: *seal };
            plain(d.checkpoints, &call)
        }
        Call::Reveal { claim, previous, salt } => {
            let (claim, previous) = (recode(claim)?, recode(previous)?);
            plain(d.checkpoints, &Checkpoints::revealCall { claim, previous, salt: *salt })
        }
        Call::Finalize { claims, holder } => {
            let (claims, times): (Vec<_>, Vec<u64>) = claims.iter().cloned().unzip();
            let (claims, holder) = (recode(&claims)?, recode(holder)?);
            plain(d.checkpoints, &Checkpoints::finalizeCall { claims, committedAt: times, holder })
        }
        Call::Redeem { voucher, signature } => {
            plain(d.channels, &Channels::redeemCall { voucher: recode(voucher)?, signature: signature.clone() })
        }
        Call::Prove(proof) => plain(d.disputes, &Disputes::proveSignedCall { proof: encoded(proof)? }),
        Call::ProveWiring(proof) => plain(d.disputes, &Disputes::proveSignedWiringCall { proof: recode(&**proof)? }),
        Call::ProveContradiction(proof) => {
            plain(d.disputes, &Disputes::proveSignedContradictionCall { proof: recode(&**proof)? })
        }
        Call::ProveEquivocation(proof) => {
            plain(d.disputes, &Disputes::proveEquivocationCall { proof: recode(&**proof)? })
        }
        Call::Audit(step) => audit(d, step)?,
        Call::Custody(step) => custody(d, step, put_up.bond)?,
        Call::Challenge { challenge, step } => {
            let moved = Action { data: challenge::encode(*challenge, step)?.into(), ..nothing(d.challenges) };
            match **step {
                Move::Open { .. } => Action { value: put_up.deposit, ..moved }.spending(put_up.bond),
                Move::Fund { amount } => Action { value: amount, ..moved },
                _ => moved,
            }
        }
    })
}

fn custody(d: &Deployment, step: &CustodyMove, bond: U256) -> Result<Action, Error> {
    Ok(match step {
        CustodyMove::DemandState { claim, committed_at, program, holder, part } => {
            let (claim, program, holder, part) = (recode(claim)?, recode(program)?, recode(holder)?, recode(part)?);
            let call = Custody::demandStateCall { claim, committedAt: *committed_at, program, holder, part };
            plain(d.custody, &call).spending(bond)
        }
        CustodyMove::DemandSent { claim, committed_at, program, to_next, part } => {
            let (claim, program, part) = (recode(claim)?, recode(program)?, recode(part)?);
            let call = Custody::demandSentCall { claim, committedAt: *committed_at, program, toNext: *to_next, part };
            plain(d.custody, &call).spending(bond)
        }
        CustodyMove::DemandFiles { lane, program, constants, part } => {
            let (job, stage, replica) = (lane.job.0, lane.stage, lane.replica);
            let (program, part) = (recode(program)?, recode(part)?);
            let call = Custody::demandFilesCall { job, stage, replica, program, constants: *constants, part };
            plain(d.custody, &call).spending(bond)
        }
        CustodyMove::Deliver { id, demand, delivery } => {
            let (demand, delivery) = (recode(demand)?, recode(delivery)?);
            plain(d.custody, &Custody::deliverCall { id: *id, demand, delivery })
        }
        CustodyMove::DeliverSent { id, demand, delivery, logs, signature } => {
            let (demand, delivery, logs) = (recode(demand)?, recode(delivery)?, recode(logs)?);
            let signature = signature.clone();
            plain(d.custody, &Custody::deliverSentCall { id: *id, demand, delivery, logs, signature })
        }
        CustodyMove::Expire { id, demand } => {
            plain(d.custody, &Custody::expireCall { id: *id, demand: recode(demand)? })
        }
    })
}

fn audit(d: &Deployment, step: &AuditMove) -> Result<Action, Error> {
    Ok(match step {
        AuditMove::Record { period, before, header } => {
            plain(d.beacon, &Beacon::recordCall { period: *period, before: before.clone(), header: header.clone() })
        }
        AuditMove::Commit { audited, sealed } => {
            plain(d.audits, &Audits::commitCall { audited: recode(audited)?, sealedAnswer: *sealed })
        }
        AuditMove::Reveal { audited, answer, salt } => {
            let (audited, answer) = (recode(audited)?, recode(answer)?);
            plain(d.audits, &Audits::revealCall { audited, answer, salt: *salt })
        }
        AuditMove::RevealConfirmed { audited, statement, signature, salt } => {
            let (audited, statement) = (recode(audited)?, recode(statement)?);
            let (signature, salt) = (signature.clone(), *salt);
            plain(d.audits, &Audits::revealConfirmedCall { audited, statement, signature, salt })
        }
        AuditMove::RevealUnpaid { claim, answer, salt } => {
            let (claim, answer) = (recode(claim)?, recode(answer)?);
            plain(d.audits, &Audits::revealUnpaidCall { claim, answer, salt: *salt })
        }
        AuditMove::Forfeit { claim } => plain(d.audits, &Audits::forfeitCall { claim: recode(claim)? }),
        AuditMove::PayShare { claim, auditor } => {
            plain(d.audits, &Audits::payShareCall { claim: recode(claim)?, auditor: *auditor })
        }
        AuditMove::Accuse { audited, auditor, statement, signature } => {
            let (audited, statement) = (recode(audited)?, recode(statement)?);
            let signature = signature.clone();
            plain(d.audits, &Audits::accuseCall { audited, auditor: *auditor, statement, signature })
        }
        AuditMove::Penalise { claim, auditor } => {
            plain(d.audits, &Audits::penaliseCall { claim: recode(claim)?, auditor: *auditor })
        }
        AuditMove::PenaliseCopy { proof, auditor } => {
            plain(d.audits, &Audits::penaliseCopyCall { proof: encoded(proof)?, auditor: *auditor })
        }
    })
}

fn encoded(proof: &ElementProof) -> Result<Bytes, Error> {
    bytes::encode(proof).map(Into::into).map_err(|error| Error::custom(error.to_string()))
}

/// The proof that a transaction to `to` with this data brings, as the call that sends it: the reverse of [`action`].
/// None of any other transaction, since a chain holds those of strangers, too.
pub fn proof(deployment: &Deployment, to: Address, data: &[u8]) -> Option<Call> {
    if to != deployment.disputes {
        return None;
    }
    Some(match DisputesCalls::abi_decode(data).ok()? {
        DisputesCalls::proveSigned(call) => {
            Call::Prove(Box::new(bytes::decode(&call.proof, &deployment.contracts()).ok()?))
        }
        DisputesCalls::proveSignedWiring(call) => Call::ProveWiring(Box::new(recode(&call.proof).ok()?)),
        DisputesCalls::proveEquivocation(call) => Call::ProveEquivocation(Box::new(recode(&call.proof).ok()?)),
        DisputesCalls::proveSignedContradiction(call) => Call::ProveContradiction(Box::new(recode(&call.proof).ok()?)),
        _ => return None,
    })
}

/// Whether what a call comes to goes by the base fee: that of questions and answers of challenges, which are charged
/// for (P-42). For others nobody need ask for it, least of all for timeouts, which are tried again and again.
pub(crate) fn goes_by_base_fee(call: &Call) -> bool {
    matches!(call, Call::Challenge { step, .. } if !matches!(**step, Move::Timeout))
}

/// Whether a call takes the bond of a demand.
pub(crate) const fn is_demand(step: &CustodyMove) -> bool {
    matches!(step, CustodyMove::DemandState { .. } | CustodyMove::DemandSent { .. } | CustodyMove::DemandFiles { .. })
}

/// A transaction that calls a contract and moves nothing.
pub(crate) fn plain(to: Address, call: &impl SolCall) -> Action {
    Action { data: call.abi_encode().into(), ..nothing(to) }
}

fn nothing(to: Address) -> Action {
    Action { to, value: U256::ZERO, data: Bytes::new(), spends: None }
}

impl Action {
    fn spending(self, amount: U256) -> Self {
        Self { spends: Some(amount), ..self }
    }
}

#[cfg(test)]
mod tests {
    use tensorlink_proof::fraud::OpenedTensor;
    use tensorlink_types::B256;
    use tensorlink_types::abi::{BoundaryLogs, Claim, LeafRange, Operand, Operator, ProgramHeader, StepStatement};

    use super::*;

    fn word(n: u8) -> B256 {
        B256::repeat_byte(n)
    }

    /// With what follows from the rest.
    fn proof_on(deployment: &Deployment) -> ElementProof {
        let opened = |n: u8, siblings: Vec<B256>| OpenedTensor {
            membership: vec![word(n)],
            ranges: vec![LeafRange { firstLeaf: 0, leaves: vec![n; 256].into(), siblings }],
        };
        let ty = U256::from(8) << 248 | U256::from(1) << 224 | U256::from(256) << 96;
        let draft = ElementProof {
            claim: Claim {
                job: 1,
                stage: 2,
                replica: 3,
                interval: 4,
                parentState: word(5),
                newState: word(6),
                io: word(7),
            },
            committed_at: 8,
            statement: StepStatement {
                claimId: B256::ZERO,
                auditor: Address::repeat_byte(14),
                step: 15,
                preState: word(16),
                postState: word(17),
                trace: B256::ZERO,
            },
            signature: vec![19; 65].into(),
            program: ProgramHeader {
                operatorCount: 2,
                constantCount: 21,
                stateCount: 22,
                microBatches: 23,
                edges: 35,
                operators: B256::ZERO,
                constants: word(25),
                wiring: word(26),
            },
            program_membership: vec![word(33), word(34)],
            operator: Operator {
                opcode: 1,
                output: ty,
                operands: vec![Operand { source: 5, index: 7, tensorType: ty }],
                attributes: vec![-28, 29],
            },
            operator_index: 1,
            operator_membership: vec![word(31)],
            logs: Some(BoundaryLogs {
                fromPrevious: word(9),
                toPrevious: word(10),
                fromNext: word(11),
                toNext: word(12),
            }),
            element: 32,
            output: opened(40, vec![]),
            operands: vec![opened(50, vec![word(51)]), OpenedTensor::default()],
        };
        let whole = bytes::decode(&bytes::encode(&draft).unwrap(), &deployment.contracts()).unwrap();
        let mut same = whole.clone();
        (same.statement.claimId, same.statement.trace, same.program.operators) = Default::default();
        assert_eq!(same, draft);
        whole
    }

    #[test]
    fn a_proof_arrives_field_for_field() {
        let address = Address::repeat_byte(1);
        let deployment = Deployment {
            chain_id: 1,
            block: 0,
            sno: address,
            staking: address,
            jobs: address,
            checkpoints: address,
            channels: address,
            disputes: Address::repeat_byte(2),
            challenges: address,
            custody: address,
            audits: address,
            beacon: address,
            step_verifier: address,
        };
        let proof = proof_on(&deployment);
        let action = action(&deployment, &Call::Prove(Box::new(proof.clone())), PutUp::default()).unwrap();
        assert_eq!((action.to, action.spends), (deployment.disputes, None));
        let call = Disputes::proveSignedCall::abi_decode(&action.data).unwrap();
        assert_eq!(call.proof, bytes::encode(&proof).unwrap());
        // And it is read back from there, and from nowhere else.
        let found = super::proof(&deployment, action.to, &action.data);
        assert_eq!(found, Some(Call::Prove(Box::new(proof))));
        assert_eq!(super::proof(&deployment, address, &action.data), None);
        assert_eq!(super::proof(&deployment, action.to, &action.data[..action.data.len() - 32]), None);
    }
}
