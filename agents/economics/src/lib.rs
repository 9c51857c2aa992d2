//! What everybody gains and loses by the rules of the network: in closed form, and simulated to check the forms.
//!
//! | module | what lives there |
//! |---|---|
//! | [`rules`] | what a deployment fixes, and the values recommended |
//! | [`deployed`] | the same as a parameter file has it |
//! | [`market`] | what the rules do not fix: prices, costs, gas |
//! | [`lottery`] | who is drawn to audit, and who of them looks |
//! | [`cheating`] | a worker that cheats now and then: its gain over honest work |
//! | [`validating`] | an audit done, an audit feigned: their incomes |
//! | [`copying`] | answers that are sold, and what the seller gains by a wrong one |
//! | [`receipts`] | the same of receipts, where the worker's word pays |
//! | [`budget`] | what a user sets aside for audits, and the chance that it runs out |
//! | [`beacon`] | a cheater that proposes blocks, and draws again |
//! | [`framing`] | a worker that accuses an honest validator |
//! | [`slash`] | where a stake goes; convicting oneself |
//! | [`finding`] | what a finder has, and its cheater, that convicts itself first |
//! | [`dispute`] | bonds, spam, friendly challengers |
//! | [`simulate`] | the same stories, told by draws |
//! | [`table`], [`report`] | all of it as text |
//!
//! With the recommended rules, cheating on every interval loses:
//!
//! ```
//! use tensorlink_economics::{Crowd, Rules, Run};
//!
//! let rules = Rules::RECOMMENDED;
//! // Ten validators, of whom two answer without looking and one is the cheater's.
//! let crowd = Crowd::of(10, 0.2, 0.1);
//! let run = Run {
//!     length: 100,
//!     wrong: 1.0,
//!     saving: 1.0, // what it leaves out is all that an interval costs
//!     lag: 0,
//!     stake: rules.min_stake(),
//!     recaptured: rules.bounty(), // at the worst: it convicts itself once it is found
//!     caught: crowd.caught(rules.audits_per_claim()),
//! };
//! assert!(run.gain() < 0.0);
//! assert!(Run { caught: 0.0, ..run }.gain() > 0.0, "it pays where nobody looks");
//! ```
//!
//! Amounts are SNO or prices of an interval, as each item says; shares and chances are of one. Amounts are floats,
//! being expectations; only [`slash`] counts whole wei, as the contract does. Nothing here performs I/O, reads a clock
//! or draws randomness of its own, and no input makes this crate panic.

#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::unreachable,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects
    )
)]

pub mod beacon;
pub mod budget;
pub mod cheating;
pub mod copying;
pub mod deployed;
pub mod dispute;
pub mod finding;
pub mod framing;
pub mod lottery;
pub mod market;
pub mod receipts;
pub mod report;
pub mod rules;
pub mod simulate;
pub mod slash;
pub mod table;
pub mod validating;

pub use cheating::Run;
pub use deployed::Deployed;
pub use dispute::Slot;
pub use lottery::Crowd;
pub use market::Market;
pub use rules::Rules;
