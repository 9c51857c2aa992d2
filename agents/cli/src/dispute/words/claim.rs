//! What a worker claimed, in words.

use tensorlink_types::abi::JobKind;

use super::numbers::{ordinal, span, time};
use crate::dispute::facts::{Claimed, Dispute, Standing};

/// Who claimed what, when, and where the claim stands.
pub(super) fn paragraph(dispute: &Dispute) -> String {
    let Claimed { id, worker, claim, committed, standing, .. } = &dispute.claimed;
    let Some(claim) = claim else {
        return format!(
            "Worker {worker} signed a receipt, {id}, over which it was convicted. What the receipt says cannot be read here: another \
             contract brought the proof, or the endpoint does not remember the transaction."
        );
    };
    let lane = format!("stage {}, replica {} of job {}", claim.stage, claim.replica, claim.job);
    if *standing == Standing::Receipt {
        return format!(
            "Worker {worker} serves {lane}. Its receipt {id} is about text {}: it binds the worker to what it received for that text and to \
             what it gave (io {}). A receipt can be proven wrong until the job is settled.",
            claim.interval, claim.io
        );
    }
    let steps = steps(dispute).map_or_else(String::new, |steps| format!(", steps {steps}"));
    let mut text = format!(
        "Worker {worker} trains {lane}. Its claim {id} is about interval {}{steps}: they lead from state {} to state {}.",
        claim.interval, claim.parentState, claim.newState
    );
    if let Some(sent) = committed {
        text += &format!(" It was committed in block {}, {}", sent.block, time(sent.time));
        let until = until(dispute).unwrap_or(sent.time);
        let can = if until > dispute.now && *standing == Standing::Live { "can" } else { "could" };
        text += &format!(", and {can} be challenged until {}.", time(until));
    }
    text + match standing {
        Standing::Live => " It is neither final nor void.",
        Standing::Final => " It is final, and paid.",
        Standing::Void => " It is void now, as is every later claim of the lane, and is not paid.",
        Standing::Receipt => "",
    }
}

/// Until when the claim can be challenged, seconds.
pub(super) fn until(dispute: &Dispute) -> Option<u64> {
    let Claimed { committed, terms, .. } = &dispute.claimed;
    Some(committed.as_ref()?.time.saturating_add(terms.as_ref()?.challenge_window))
}

/// The steps of a training job's claim.
pub(super) fn steps(dispute: &Dispute) -> Option<String> {
    let Claimed { claim, terms, .. } = &dispute.claimed;
    let (claim, terms) = (claim.as_ref()?, terms.as_ref().filter(|terms| terms.kind == JobKind::Training)?);
    let (interval, steps) = (u64::from(claim.interval), u64::from(terms.steps_per_interval));
    let first = interval.saturating_mul(steps);
    Some(span(first, first.saturating_add(steps).saturating_sub(1)))
}

/// A step as the convictions name it: of a training job a step, of a serving job a number of tokens.
pub(super) fn step(dispute: &Dispute, step: u32) -> String {
    match dispute.claimed.terms.as_ref().map(|terms| (terms.kind, terms.steps_per_interval)) {
        Some((JobKind::Serving, _)) => format!("in the text of {step} tokens"),
        Some((JobKind::Training, steps)) if steps > 0 => {
            let (interval, local) = (step / steps, step % steps);
            format!("at step {step}, the {} of interval {interval}", ordinal(u64::from(local) + 1))
        }
        _ => format!("at step {step}"),
    }
}
