//! Lanes of serving jobs: texts computed for a user who pays by vouchers, a receipt for each.
//!
//! | module | what lives there |
//! |---|---|
//! | [`texts`] | the texts that are open, and the bounds on them |
//! | [`runner`] | what computes rows: the program of the present length, or token by token with keys and values kept |
//! | [`thread`](mod@thread) | a lane's thread behind its bounded queue |
//! | [`book`], [`voucher`] | receipts and vouchers on disk, epoch by epoch; what a voucher must be |
//! | [`lane`] | answers to the user |
//! | [`redeem`] | vouchers to the chain; the end of a job |
//! | `served` | the lanes that serve: their books, and what answers |
//! | `role` | these lanes from their jobs' start to their settlement, and the requests about them |

pub mod book;
pub mod lane;
pub mod redeem;
mod role;
pub mod runner;
mod served;
pub mod texts;
pub mod thread;
pub mod voucher;

pub use book::{Book, Entry};
pub use lane::ServingLane;
pub(crate) use role::{Receipted, Serving};
