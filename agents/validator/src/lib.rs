//! The validator role: draw claims, audit them, convict wrong ones.
//!
//! | module | what lives there |
//! |---|---|
//! | [`draw`] | which claims to audit |
//! | [`audit`] | one audit: fetching what was recorded, and executing it again |
//! | `dispute` | from a difference to a proof |
//! | [`role`] | the loop that listens to the chain |

pub mod audit;
pub(crate) mod dispute;
pub mod draw;
pub mod role;

pub use audit::{AuditError, Auditor, Finding, TURNS, Target};
pub use draw::Rate;
pub use role::{Validator, ValidatorError, convict};
