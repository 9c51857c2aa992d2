//! Disputes as the chain tells them: who claimed what, who challenged it, how it ended, and what it cost whom.
//!
//! | module | what lives there |
//! |---|---|
//! | [`facts`] | what is known of a dispute: plain data, which `--json` prints |
//! | [`docket`] | all disputes of a deployment, folded from its events |
//! | [`aside`] | demands for data and penalties of auditors, which are no challenges |
//! | [`clocks`] | the chess clocks of a challenge, and whose turn it is |
//! | [`found`] | what the proof shows that convicted a worker |
//! | [`names`], [`files`] | what operators and tensors are called in the model; the files that say so |
//! | [`look`] | one dispute with everything that has to be asked for |
//! | [`words`] | facts as sentences; knows no chain |

pub mod aside;
pub mod clocks;
pub mod docket;
pub mod facts;
pub mod files;
pub mod found;
pub mod look;
pub mod names;
pub mod words;

pub use docket::Docket;
pub use facts::Dispute;
