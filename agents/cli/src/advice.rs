//! What to do when a contract refuses, by the name of its error.

use tensorlink_node::ports::ChainError;

use crate::when;

/// Errors of contracts that begin with a time, in seconds; where there is a second argument, it is a block.
const TIMED: [&str; 7] = [
    "AcceptPeriodOver",
    "DeadlineNotReached",
    "DeadlinePassed",
    "RedemptionOver",
    "StillOpen",
    "StillUnbonding",
    "WindowOpen",
];

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
        "AnswersSealed" => {
            "start the validator with its data folder: it shows what it has sealed; an answer that is lost is given up \
             by `tensorlink forfeit`"
        }
        "StillUnbonding" => "wait until the time in the message, then withdraw",
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

/// An error for people: with its causes, and with times where a contract tells seconds.
pub fn words(error: &anyhow::Error) -> String {
    let text = causes(error);
    let refusal = error.chain().find_map(|cause| match cause.downcast_ref::<ChainError>() {
        Some(ChainError::Reverted { name, arguments }) => Some((name, arguments)),
        _ => None,
    });
    match refusal {
        Some((name, arguments)) => {
            text.replace(arguments, &timed(name, arguments).unwrap_or_else(|| arguments.clone()))
        }
        None => text,
    }
}

/// An error with its causes, each of them once: some name theirs themselves.
fn causes(error: &anyhow::Error) -> String {
    error.chain().map(ToString::to_string).fold(String::new(), |text, cause| match text.as_str() {
        "" => cause,
        said if said.contains(&cause) => text,
        said => format!("{said}: {cause}"),
    })
}

/// The arguments of an error whose first one is a time.
fn timed(name: &str, arguments: &str) -> Option<String> {
    if !TIMED.contains(&name) {
        return None;
    }
    let inner = arguments.strip_prefix('(')?.strip_suffix(')')?;
    let (first, rest) = inner.split_once(", ").map_or((inner, None), |(first, rest)| (first, Some(rest)));
    let first = when::due(first.parse().ok()?, when::now());
    Some(rest.map_or_else(|| format!(" ({first})"), |rest| format!(" ({first}; block {rest})")))
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

    #[test]
    fn a_cause_is_told_once() {
        #[derive(Debug, thiserror::Error)]
        #[error("the file: {source}; look for it")]
        struct Unreadable {
            source: std::io::Error,
        }
        let unreadable = || Unreadable { source: std::io::Error::other("gone") };
        assert_eq!(words(&unreadable().into()), "the file: gone; look for it");
        let within = anyhow::Error::from(unreadable()).context("chain 1");
        assert_eq!(words(&within), "chain 1: the file: gone; look for it");
        assert_eq!(words(&anyhow::Error::from(std::io::Error::other("gone")).context("chain 1")), "chain 1: gone");
    }

    #[test]
    fn seconds_of_a_contract_are_times_for_people() {
        let refused = |name: &str, arguments: &str| {
            let refusal = ChainError::Reverted { name: name.into(), arguments: arguments.into() };
            words(&anyhow::Result::<()>::Err(refusal.into()).context("job 1").unwrap_err())
        };
        let text = refused("StillUnbonding", "(1700000000)");
        assert!(text.starts_with("job 1: the contract refuses: StillUnbonding (2023-11-14 22:13:20 UTC, "), "{text}");
        assert!(text.ends_with(" ago)") && !text.contains("1700000000"), "{text}");
        let text = refused("StillOpen", "(1700000000, 77)");
        assert!(text.ends_with(" ago; block 77)"), "{text}");
        assert_eq!(refused("JobNotOpen", "(6)"), "job 1: the contract refuses: JobNotOpen(6)");
        assert_eq!(words(&anyhow::anyhow!("other")), "other");
    }
}
