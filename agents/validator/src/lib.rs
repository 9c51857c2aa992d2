//! The validator role: draw claims, audit them, convict wrong ones.
//!
//! | module | what lives there |
//! |---|---|
//! | [`draw`] | which claims to audit |
//! | `draws`, [`answers`] | which claims the chain drew us for, and what we answer |
//! | `auditor` | what audits: what it has at hand, and how it asks, executes and sends |
//! | `target`, `finding` | the claim that is looked into; what comes of it, or keeps anything from coming of it |
//! | `audit`, [`receipt`] | one audit: fetching what was recorded, and executing it again; texts of serving jobs |
//! | `evidence` | what our answers rest on, and how long it is kept |
//! | `boundary`, [`claims`] | what crossed a claim's boundaries, and the neighbours' claims about it |
//! | [`epoch`] | the receipts that a redeemed voucher names |
//! | `dispute`, `conviction` | from a difference to a proof; the proof goes to the chain |
//! | `following` | what an auditor knows from the chain's events |
//! | `defence` | against a worker that accuses us of a wrong answer |
//! | [`challenge`], `rebuild` | what is done about a worker that does not answer; what it must have computed |
//! | [`role`], `queue`, `task` | the loop that listens to the chain; what it looks into, in turn; one such thing |
//! | `hunts` | whoever else looks into the same claim waits |
//! | [`witness`] | the same loop for a worker, which looks at its replicas only |
//! | `replicas` | claims that are examined because replicas differ |
//!
//! Which claims a validator audits of its own accord follows from its key, so that no worker foresees it:
//!
//! ```
//! use tensorlink_node::Identity;
//! use tensorlink_types::{B256, ClaimId};
//! use tensorlink_validator::Rate;
//! use tensorlink_validator::draw::drawn;
//!
//! let identity = Identity::new(&[7; 32])?;
//! let tenth = Rate::new(0.1).unwrap();
//! let claims = (0..=255).map(|n| ClaimId(B256::repeat_byte(n)));
//! let audited: Vec<_> = claims.filter(|claim| drawn(&identity, *claim, B256::ZERO, tenth).unwrap()).collect();
//! assert!((10..50).contains(&audited.len()), "{} of 256", audited.len());
//!
//! // A restart draws the same.
//! assert!(drawn(&identity, audited[0], B256::ZERO, tenth)?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod answers;
mod audit;
mod auditor;
mod boundary;
pub mod challenge;
pub mod claims;
mod conviction;
mod defence;
pub(crate) mod dispute;
pub mod draw;
mod draws;
pub mod epoch;
mod evidence;
mod finding;
mod following;
mod hunts;
mod queue;
mod rebuild;
pub mod receipt;
mod replicas;
pub mod role;
mod room;
mod target;
mod task;
pub mod witness;

pub use answers::Answers;
pub use auditor::{Auditor, PLAYS, TURNS};
pub use challenge::ChallengeEnd;
pub use claims::Claims;
pub use conviction::convict;
pub use draw::Rate;
pub use finding::{AuditError, Finding};
pub use hunts::Hunts;
pub use receipt::LastStage;
pub use role::{Validator, ValidatorError};
pub use target::{Listed, Standing, Target};
pub use witness::Witness;
