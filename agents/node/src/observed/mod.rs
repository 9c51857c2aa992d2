//! How fast workers were in jobs, as their users saw it and signed it: published, so that who has not hired a worker
//! yet need not take it at its word.
//!
//! | part | what lives there |
//! |---|---|
//! | `statement` | what a user signs about a worker |
//! | [`Payments`] | what workers were paid in jobs, and by whom: what a statement counts by |
//! | [`Observed`] | the statements that a node knows, each of a user that paid the worker |
//! | `exchange` | how they are asked for and answered |
//! | [`Keeper`] | a node that keeps them for others |
//!
//! Anybody can pay a worker of its own, and praise it then. It costs money to say that a stranger's is slow: the
//! stranger gets that. So what is published counts less than what a user saw itself (`tensorlink_user`).

mod exchange;
mod keeper;
mod payments;
mod statement;
mod table;

pub use exchange::ask;
pub use keeper::Keeper;
pub use payments::{Payment, Payments};
pub use statement::{SignedSpeed, Unfounded};
pub use table::{Observed, Told};
