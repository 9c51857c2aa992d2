//! Who pays what to whom, and what the transactions cost.

use std::collections::BTreeMap;

use tensorlink_proof::challenge::Turn;
use tensorlink_types::Address;

use super::numbers::{count, time};
use crate::amount::Wei;
use crate::dispute::facts::{Challenge, Deed, Dispute, Move, Sent};

/// One line for each who gains or loses.
pub(super) fn who_pays(dispute: &Dispute) -> String {
    let mut lines = Vec::new();
    let mut line = |role: &str, text: String| lines.push(format!("  {role:<12}{text}"));
    let user = dispute.claimed.terms.as_ref().map_or_else(String::new, |terms| terms.user.to_string());
    match &dispute.conviction {
        Some(conviction) => match &conviction.slash {
            Some(slash) => {
                line("worker", format!("{} loses {} SNO of its stake", conviction.worker, slash.amount));
                line("auditor", format!("{} gets {} SNO of it", conviction.auditor, slash.bounty));
                if slash.shared != Wei::default() {
                    line("auditors", format!("that had sealed answers share {} SNO of it", slash.shared));
                }
                line("user", format!("{user} gets {} SNO of it", slash.harm));
                line("nobody", format!("gets {} SNO of it: they are burned", slash.burned));
            }
            None => {
                let worker = conviction.worker;
                line("worker", format!("{worker} loses nothing more: the stake of this lane was taken before"));
            }
        },
        None => {
            let stake = dispute.claimed.terms.as_ref().map(|terms| terms.stake);
            let risk = stake.filter(|_| dispute.challenges.iter().any(|challenge| challenge.state.is_open()));
            if let Some(stake) = risk {
                line("worker", format!("{} has {stake} SNO at risk", dispute.claimed.worker));
            }
        }
    }
    for Challenge { number, challenger, worker, bond, deposit, owed, state, .. } in &dispute.challenges {
        match state {
            Turn::Asking | Turn::Answering | Turn::Spent => {
                line(
                    "challenger",
                    format!("{challenger} put up {bond} SNO for challenge {number}; they are held until it ends"),
                );
                line("challenger", format!("{deposit} ETH are held for the worker's gas, of which {owed} are used up"));
            }
            Turn::Won => {
                line("challenger", format!("{challenger} has its {bond} SNO for challenge {number} back"));
                line("challenger", format!("can collect the {deposit} ETH put up for the worker's gas"));
            }
            Turn::Lost => {
                line("challenger", format!("{challenger} loses its {bond} SNO for challenge {number}"));
                line("worker", format!("{worker} gets them, and {owed} ETH for its gas"));
            }
        }
    }
    for (sender, (fees, transactions)) in fees(dispute) {
        line("gas", format!("{sender} paid {fees} ETH for {}", count(transactions, "transaction")));
    }
    format!("Who pays\n{}", lines.join("\n"))
}

fn fees(dispute: &Dispute) -> BTreeMap<Address, (Wei, u64)> {
    let mut fees: BTreeMap<Address, (Wei, u64)> = BTreeMap::new();
    for cost in transactions(dispute).into_iter().filter_map(|(_, sent)| sent.cost) {
        let (sum, number) = fees.entry(cost.sender).or_default();
        *sum += cost.fee;
        *number += 1;
    }
    fees
}

/// Every transaction once, in order, with what it did.
fn transactions(dispute: &Dispute) -> Vec<(String, &Sent)> {
    let claim = dispute.claimed.committed.iter().map(|sent| ("claim".to_owned(), sent));
    let moves = dispute.challenges.iter().flat_map(|challenge| {
        let label = |(at, step): (usize, &Move)| format!("{} of challenge {}", deed(at, &step.deed), challenge.number);
        challenge.moves.iter().enumerate().map(move |(at, step)| (label((at, step)), &step.sent))
    });
    let conviction = dispute.conviction.iter().map(|conviction| ("conviction".to_owned(), &conviction.sent));
    let mut all: Vec<(String, &Sent)> = claim.chain(moves).chain(conviction).collect();
    all.sort_by_key(|(_, sent)| sent.block);
    let mut once: Vec<(String, &Sent)> = Vec::new();
    for (what, sent) in all {
        match once.iter_mut().find(|(_, seen)| seen.transaction == sent.transaction) {
            Some((first, _)) => *first = format!("{first}, {what}"),
            None => once.push((what, sent)),
        }
    }
    once
}

/// A table of all transactions.
pub(super) fn table(dispute: &Dispute) -> String {
    let all = transactions(dispute);
    let width = all.iter().map(|(what, _)| what.len()).max().unwrap_or(0);
    let lines: Vec<String> = all.iter().map(|(what, sent)| format!("  {what:<width$}  {}", show(sent))).collect();
    format!("Transactions\n{}", lines.join("\n"))
}

/// A transaction: its hash, when it was mined, and what it cost whom.
pub(super) fn show(sent: &Sent) -> String {
    let cost = sent.cost.map_or_else(
        || "what it cost is not known to the endpoint".to_owned(),
        |cost| format!("{} gas, {} ETH by {}", cost.gas, cost.fee, cost.sender),
    );
    format!("{}, block {}, {}, {cost}", sent.transaction, sent.block, time(sent.time))
}

fn deed(at: usize, deed: &Deed) -> &'static str {
    match deed {
        Deed::Asked { .. } if at == 0 => "opening",
        Deed::Asked { .. } => "question",
        Deed::Answered { .. } => "answer",
        Deed::Won { .. } | Deed::Lost => "end",
    }
}
