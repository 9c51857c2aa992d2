//! What to do when a contract refuses, by the name of its error.

use tensorlink_node::ports::ChainError;

/// The next step after an error, if it is one of a contract's that a person can cause.
pub fn advice(error: &anyhow::Error) -> Option<&'static str> {
    let refusal = error.chain().find_map(|cause| match cause.downcast_ref::<ChainError>() {
        Some(ChainError::Reverted { name, .. }) => Some(name.as_str()),
        _ => None,
    });
    Some(match refusal? {
        "InsufficientStake" => {
            "`tensorlink balance` shows what is bonded and what jobs lock; stake more, or ask for less"
        }
        "ZeroAmount" => "name an amount above 0",
        "StillUnbonding" => "wait until the time in the message (seconds since 1970), then withdraw",
        "NothingToWithdraw" | "NothingToCollect" => "`tensorlink balance` shows what there is",
        "NotUser" => "use the key that posted the job",
        "WrongState" => "`tensorlink job status` shows where the job stands",
        "EscrowTooSmall" => {
            "post the job again with a larger --deposit; this one's escrow comes back when it is cancelled"
        }
        "OfferExpired" | "AcceptPeriodOver" => "post the job again",
        "InvalidTerms" => "change the option that the message names",
        "ClaimsPending" => "wait for the challenge window, then try again; `tensorlink job watch` does it for you",
        "ClaimIsFinal" | "ClaimIsVoid" | "UnknownClaim" => "the claim can no longer be challenged",
        "NoFault" => "the claim is right; nothing was sent",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use anyhow::Context;

    use super::*;

    #[test]
    fn a_refusal_deep_in_an_error_is_found() {
        let refusal = ChainError::Reverted { name: "NotUser".into(), arguments: "(0x00)".into() };
        let error = anyhow::Result::<()>::Err(refusal.into()).context("job 1").unwrap_err();
        assert!(advice(&error).is_some_and(|text| text.contains("key")));
        assert!(advice(&anyhow::anyhow!("other")).is_none());
    }
}
