//! How a challenge went, or where it stands, in words.

use tensorlink_proof::challenge::Turn;

use super::numbers::{count, duration, time};
use super::question::question;
use crate::dispute::facts::{Challenge, Deed, Dispute, MOST_QUESTIONS, Side, Waiting};

/// One paragraph, or two for a challenge under way.
pub(super) fn paragraphs(dispute: &Dispute, challenge: &Challenge) -> Vec<String> {
    let Challenge { number, challenger, questions, state, waiting, .. } = challenge;
    let answers = challenge.moves.iter().filter(|step| matches!(step.deed, Deed::Answered { .. })).count() as u64;
    let so_far = format!(
        "{} of at most {MOST_QUESTIONS}, {}",
        count(*questions, "question"),
        if answers == 0 { "no answer".to_owned() } else { count(answers, "answer") }
    );
    let begun = format!("Challenge {number}: {challenger} made the worker answer on chain, {so_far}.");
    match (state, waiting) {
        (Turn::Lost, _) => vec![format!(
            "{begun} Then it neither asked on nor proved anything in time, or did not pay for an answer, so it lost. That proves nothing about the claim, and bars \
             nobody from challenging it within its window."
        )],
        (Turn::Spent, _) => vec![format!(
            "{begun} The last answer cost its worker more than what was put up for its gas, so the challenge is lost, unless the claim is \
             void. Anybody can end it now."
        )],
        (Turn::Won, _) => {
            let silence = challenge.moves.iter().any(|step| step.deed == Deed::Won { silence: true });
            let own = dispute.conviction.as_ref().is_some_and(|conviction| conviction.claim == dispute.claimed.id);
            let end = match (silence, own) {
                (true, _) => "The last question was not answered.",
                (false, true) => "The conviction ended it.",
                (false, false) => "It ended because the claim is void.",
            };
            vec![format!("{begun} {end}")]
        }
        (Turn::Asking | Turn::Answering, Some(waiting)) => vec![begun, under_way(dispute, challenge, waiting)],
        (Turn::Asking | Turn::Answering, None) => vec![begun],
    }
}

fn under_way(dispute: &Dispute, challenge: &Challenge, waiting: &Waiting) -> String {
    let Challenge { challenger, worker, bond, .. } = challenge;
    let stake = dispute
        .claimed
        .terms
        .as_ref()
        .map_or_else(|| "the stake of its lane".to_owned(), |terms| format!("{} SNO of its stake", terms.stake));
    if waiting.void {
        return format!(
            "The claim is void already, so there is nothing left to ask. Anybody can end the challenge; {challenger} then has its bond of \
             {bond} SNO back."
        );
    }
    let asked = question(&waiting.question);
    let until = left(waiting);
    match (waiting.side, waiting.is_over()) {
        (Side::Worker, false) => format!(
            "It is the worker's turn. It is asked for {asked}. {worker} has {until} If it gives nothing, anybody can end the challenge: it \
             is convicted of silence, loses {stake}, and {challenger} has its bond of {bond} SNO back and gets the bounty."
        ),
        (Side::Worker, true) => format!(
            "The worker is too late. It was asked for {asked}, and {until} Anybody can end the challenge now: {worker} is then convicted \
             of silence, loses {stake}, and {challenger} has its bond of {bond} SNO back and gets the bounty."
        ),
        (Side::Challenger, false) => format!(
            "It is the challenger's turn. The worker has given {asked}. {challenger} has {until} It can ask on, or prove the claim wrong by \
             what was answered. If it does neither, its bond of {bond} SNO goes to the worker, and the claim stands."
        ),
        (Side::Challenger, true) => format!(
            "The challenger is too late. The worker had given {asked}, and {until} Anybody can end the challenge now: the bond of {bond} \
             SNO then goes to {worker}, and the claim stands."
        ),
    }
}

/// Until when, as a sentence's end.
fn left(waiting: &Waiting) -> String {
    let Waiting { deadline, seconds_left, block, blocks_left, .. } = waiting;
    if waiting.is_over() {
        return format!("had time until {}, and until block {block}.", time(*deadline));
    }
    format!(
        "{} left, until {}, and in any case until block {block}, {} from now.",
        duration(*seconds_left),
        time(*deadline),
        count(*blocks_left, "block")
    )
}

/// Whose turn it is, in a few words.
pub(super) fn turn(waiting: &Waiting) -> String {
    let side = match waiting.side {
        Side::Challenger => "challenger",
        Side::Worker => "worker",
    };
    if waiting.void {
        "the claim is void, and anybody can end it".to_owned()
    } else if waiting.is_over() {
        format!("the {side} is too late, and anybody can end it")
    } else {
        let (time, blocks) = (duration(waiting.seconds_left), count(waiting.blocks_left, "block"));
        format!("the {side}'s turn, {time} and {blocks} left")
    }
}
