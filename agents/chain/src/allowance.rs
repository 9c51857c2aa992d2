//! What has to come before a contract can take our SNO: a permit for stake, an approval of exactly the
//! amount elsewhere.

use std::borrow::Cow;

use alloy::primitives::U256;
use alloy::signers::SignerSync;
use alloy::signers::local::PrivateKeySigner;
use alloy::sol_types::Eip712Domain;
use tensorlink_bindings::{SNO, Staking};
use tensorlink_node::ports::chain::Role;
use tensorlink_node::ports::{Call, ChainError};
use tensorlink_proof::challenge::{Move, cost};
use tensorlink_types::JobId;

use crate::calls::{Action, PutUp, action, is_demand, plain, role_number};
use crate::views::Views;

alloy::sol! {
    /// EIP-2612.
    struct Permit {
        address owner;
        address spender;
        uint256 value;
        uint256 nonce;
        uint256 deadline;
    }
}

/// How long a permit can be used, seconds: the transaction is mined sooner or given up.
const PERMIT_LIFE: u64 = 3_600;

/// The transactions of a call, in order: approvals first, the call itself last.
pub(crate) async fn steps(
    views: Views<'_>,
    signer: &PrivateKeySigner,
    call: &Call,
    now: u64,
    most_fee: u128,
) -> Result<(Option<Action>, Action), ChainError> {
    let put_up = put_up(views, call, most_fee).await?;
    let main = action(views.deployment, call, put_up).map_err(unencodable)?;
    let Some(amount) = main.spends else { return Ok((None, main)) };
    let (account, sno) = (signer.address(), views.deployment.sno);
    let balance = views.balance(account, sno).await?;
    if balance < amount {
        return Err(ChainError::InsufficientFunds { account, asset: "SNO", balance, needed: amount });
    }
    if views.allowance(account, main.to).await? >= amount {
        return Ok((None, main));
    }
    if let Call::Stake { role, amount } = call {
        let data = permitted_stake(views, signer, *role, *amount, now).await?;
        return Ok((None, Action { data: data.data, ..main }));
    }
    let approve = plain(sno, &SNO::approveCall { spender: main.to, value: amount });
    Ok((Some(approve), main))
}

/// The bond as the chain asks for it now. What a challenge's worker is to be paid back for gas goes by the base fee, as
/// long as it is one that this node would pay itself.
async fn put_up(views: Views<'_>, call: &Call, most_fee: u128) -> Result<PutUp, ChainError> {
    match call {
        Call::Custody(step) if is_demand(step) => {
            let bond = U256::from(views.parameters().await?.dispute_bond);
            Ok(PutUp { bond, deposit: U256::ZERO })
        }
        Call::Challenge { step, .. } => match &**step {
            Move::Open { claim, .. } => {
                let id = views.deployment.contracts().claim_id(claim);
                let bond = views.bond_for(JobId(claim.job), id).await?;
                let fee = views.base_fee().await?.min(U256::from(most_fee));
                Ok(PutUp { bond, deposit: cost::deposit(fee) })
            }
            _ => Ok(PutUp::default()),
        },
        _ => Ok(PutUp::default()),
    }
}

async fn permitted_stake(
    views: Views<'_>,
    signer: &PrivateKeySigner,
    role: Role,
    amount: U256,
    now: u64,
) -> Result<Action, ChainError> {
    let staking = views.deployment.staking;
    let (named, nonce) = views.permit(signer.address()).await?;
    let domain = Eip712Domain {
        name: Some(Cow::Owned(named.name)),
        version: Some(Cow::Owned(named.version)),
        chain_id: Some(U256::from(views.deployment.chain_id)),
        verifying_contract: Some(views.deployment.sno),
        salt: None,
    };
    let deadline = U256::from(now.saturating_add(PERMIT_LIFE));
    let permit = Permit { owner: signer.address(), spender: staking, value: amount, nonce, deadline };
    let signature = signer
        .sign_typed_data_sync(&permit, &domain)
        .map_err(|error| ChainError::Unavailable(format!("the permit cannot be signed: {error}")))?;
    let call = Staking::stakeWithPermitCall {
        role: role_number(role),
        amount,
        deadline,
        v: 27 + u8::from(signature.v()),
        r: signature.r().into(),
        s: signature.s().into(),
    };
    Ok(plain(staking, &call))
}

fn unencodable(error: alloy::sol_types::Error) -> ChainError {
    ChainError::Reverted { name: "Unencodable".into(), arguments: format!("({error})") }
}
