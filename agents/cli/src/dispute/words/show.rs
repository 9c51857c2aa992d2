//! One dispute at length: every move, every transaction, every amount.

use tensorlink_proof::challenge::Turn;

use super::money::show as sent;
use super::numbers::{duration, time};
use super::question::question;
use super::{challenge, claim, money};
use crate::dispute::facts::{Challenge, Conviction, Deed, Dispute, MOST_QUESTIONS, Move};
use crate::output::table;
use crate::report::to_auditors;

/// All of a dispute.
pub fn show(dispute: &Dispute) -> String {
    let mut parts = vec![claimed(dispute)];
    parts.extend(dispute.challenges.iter().map(played));
    parts.extend(dispute.conviction.as_ref().map(|conviction| convicted(dispute, conviction)));
    parts.push(money::who_pays(dispute));
    parts.join("\n\n")
}

fn claimed(dispute: &Dispute) -> String {
    let about = &dispute.claimed;
    let mut rows = vec![("claim", about.id.to_string()), ("worker", about.worker.to_string())];
    if let Some(claim) = &about.claim {
        let steps = claim::steps(dispute).map_or_else(String::new, |steps| format!(", steps {steps}"));
        rows.push(("lane", format!("{}, interval {}{steps}", claim.lane(), claim.interval)));
        rows.push(("from state", claim.parentState.to_string()));
        rows.push(("to state", claim.newState.to_string()));
        rows.push(("io", claim.io.to_string()));
    }
    rows.extend(about.committed.as_ref().map(|committed| ("committed", sent(committed))));
    rows.extend(claim::until(dispute).map(|until| ("challenged", format!("until {} at the latest", time(until)))));
    rows.push(("stands", format!("{:?}", about.standing).to_lowercase()));
    table(&rows)
}

/// How a challenge stands, in one word.
pub(super) const fn state(turn: Turn) -> &'static str {
    match turn {
        Turn::Asking | Turn::Answering | Turn::Spent => "open",
        Turn::Won => "won",
        Turn::Lost => "lost",
    }
}

fn played(challenge: &Challenge) -> String {
    let mut rows = vec![
        ("challenge", format!("{}, {}", challenge.number, state(challenge.state))),
        ("challenger", format!("{}, bond {} SNO", challenge.challenger, challenge.bond)),
        ("deposit", format!("{} ETH, of which answers have cost {}", challenge.deposit, challenge.owed)),
        ("questions", format!("{} of {MOST_QUESTIONS}", challenge.questions)),
    ];
    if let Some(waiting) = &challenge.waiting {
        rows.push(("turn", challenge::turn(waiting)));
        rows.push(("until", format!("{} and block {}", time(waiting.deadline), waiting.block)));
    }
    let mut lines = vec![table(&rows)];
    lines.extend((1..).zip(&challenge.moves).map(|(number, step)| made(number, step)));
    lines.join("\n")
}

fn made(number: usize, Move { deed, sent: by, clocks }: &Move) -> String {
    let (what, next) = match deed {
        Deed::Asked { question: asked, deadline } => {
            (format!("the challenger asks for {}", question(asked)), Some(("worker", deadline)))
        }
        Deed::Answered { question: asked, bytes, charged, deadline } => {
            let charged = charged.map_or_else(String::new, |gas| format!("; {gas} gas are charged"));
            (format!("the worker gives {}; {bytes} bytes{charged}", question(asked)), Some(("challenger", deadline)))
        }
        Deed::Won { silence: true } => ("the worker was silent: the challenge is won".to_owned(), None),
        Deed::Won { silence: false } => ("the claim is void: the challenge is won".to_owned(), None),
        Deed::Lost => ("the challenger was silent: the challenge is lost".to_owned(), None),
    };
    let next = next.map_or_else(String::new, |(side, deadline)| format!("; the {side} has until {}", time(*deadline)));
    let (challenger, worker) = (duration(clocks.challenger), duration(clocks.worker));
    format!("{number:>3}  {what}\n     {}\n     clocks: challenger {challenger}, worker {worker}{next}", sent(by))
}

fn convicted(dispute: &Dispute, conviction: &Conviction) -> String {
    let Conviction { fault, step, operator, element, claimed, recomputed, .. } = conviction;
    let mut rows = vec![
        ("convicted", conviction.worker.to_string()),
        ("over claim", conviction.claim.to_string()),
        ("by auditor", conviction.auditor.to_string()),
        ("fault", format!("{fault:?}").to_lowercase()),
        ("where", format!("step {step}, operator {operator}, element {element}")),
        ("claimed", claimed.clone()),
        ("recomputed", recomputed.clone()),
        ("in", sent(&conviction.sent)),
    ];
    let user = dispute.claimed.terms.as_ref().map_or_else(String::new, |terms| format!(" {}", terms.user));
    rows.push(match &conviction.slash {
        Some(slash) => (
            "slashed",
            format!(
                "{} SNO: {} to the auditor, {}{} to the user{user}, {} burned",
                slash.amount,
                slash.bounty,
                to_auditors(slash.shared),
                slash.harm,
                slash.burned
            ),
        ),
        None => ("slashed", "nothing: the stake of this lane was taken before".to_owned()),
    });
    table(&rows)
}
