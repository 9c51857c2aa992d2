//! What a worker owes as evidence for its claims, and what it makes others show.
//!
//! | module | what lives there |
//! |---|---|
//! | `own_claims`, `repeatable` | our claims by their ids; one of them, with what it takes to repeat it |
//! | `replays` | claims repeated, one after another |
//! | `audit_answers`, `error` | answers to auditors; why there is none |
//! | `challenges` | answers on chain |
//! | `auditors` | what is done about wrong auditors |
//! | `demands` | data that is demanded on chain |
//! | [`awaited`], `withheld` | for whom a lane waits in vain; what is demanded of a neighbour that has claimed and does not send |

mod audit_answers;
mod auditors;
pub mod awaited;
mod challenges;
mod demands;
mod error;
mod own_claims;
mod repeatable;
mod replays;
mod withheld;

pub(crate) use audit_answers::AuditAnswers;
pub(crate) use auditors::Auditors;
pub(crate) use challenges::Challenges;
pub(crate) use demands::Demands;
pub(crate) use own_claims::OwnClaims;
pub(crate) use replays::Replays;
pub(crate) use withheld::Withheld;
