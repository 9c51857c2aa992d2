//! Facts as text: for a person who does not know the protocol (`explain`), at length (`show`), and a line
//! each (`list`).
//!
//! | module | what lives there |
//! |---|---|
//! | `claim` | what was claimed |
//! | `fault` | what was found, for each kind of fault |
//! | `challenge`, `question` | how a challenge went; what is asked in it |
//! | `money` | who pays; transactions |
//! | [`show`] | the table of one dispute |
//! | [`list`] | a line for each dispute |
//! | `numbers` | times and numbers as people read them |

mod challenge;
mod claim;
mod fault;
pub mod list;
mod money;
mod numbers;
mod question;
pub mod show;
#[cfg(test)]
mod tests;

use tensorlink_types::Opcode;

use super::facts::{Dispute, Named};

/// A dispute in plain words.
pub fn explain(dispute: &Dispute) -> String {
    let mut parts = vec![headline(dispute), claim::paragraph(dispute)];
    if let Some(conviction) = &dispute.conviction {
        if conviction.claim != dispute.claimed.id {
            let interval = conviction.interval.map_or_else(String::new, |n| format!(", for interval {n}"));
            parts.push(format!(
                "The worker was convicted over an earlier claim of this lane, {}{interval}, and a claim that builds on a wrong one is void \
                 with it. About that earlier claim:",
                conviction.claim
            ));
        }
        parts.extend(fault::words(dispute, conviction).told);
    }
    parts.extend(dispute.challenges.iter().flat_map(|challenge| challenge::paragraphs(dispute, challenge)));
    parts.extend([money::who_pays(dispute), money::table(dispute)]);
    parts.join("\n\n")
}

fn headline(dispute: &Dispute) -> String {
    if let Some(conviction) = &dispute.conviction {
        // Who held another's state is no worker of its claim.
        let worker = conviction.worker;
        let title = fault::words(dispute, conviction).title;
        return format!("Worker {worker} was convicted: {title}.");
    }
    let worker = dispute.claimed.worker;
    match dispute.challenges.iter().rev().find(|challenge| challenge.state.is_open()).or(dispute.challenges.last()) {
        Some(last) => match &last.waiting {
            Some(waiting) => format!("Challenge {} is under way: {}.", last.number, challenge::turn(waiting)),
            None => format!("Challenge {} is over, and worker {worker} was not convicted.", last.number),
        },
        None => format!("Worker {worker} was neither challenged nor convicted."),
    }
}

/// An operator by number, name and kind, as far as they are known.
fn operator(named: &Named, opcode: Option<Opcode>) -> String {
    let name = named.name.as_ref().map_or_else(String::new, |name| format!(" `{name}`"));
    let kind = opcode.map_or_else(String::new, |opcode| format!(" ({})", opcode.name()));
    format!("operator {}{name}{kind}", named.index)
}
