//! The validator role: draw claims, audit them, convict wrong ones.
//!
//! | module | what lives there |
//! |---|---|
//! | `target`, `finding` | the claim that is looked into; what comes of it, or keeps anything from coming of it |
//! | `ask` | how workers are asked and calls are sent |
//! | [`Auditor`] | what looks into claims: the parts of it that have a state, and what is done with them, one file each: |
//! | · `executor`, `shards`, `receipt` | engines and turns; shards and their memory; stages and texts of serving jobs |
//! | · `claims`, `case` | claims on record; what the chain knows of one |
//! | · [`answers`], `giving`, `seeds` | what we answer where the chain draws us; giving it; recording what draws |
//! | · `records`, `evidence` | what workers recorded; which files of it are kept, and how long |
//! | · `audit`, `boundary`, `rebuild` | one audit; what crossed the claim's boundaries; what a silent worker computed |
//! | · `dispute`, `conviction` | from a difference to a proof; the proof goes to the chain |
//! | · [`challenge`], `defence` | against a worker that does not answer; against one that accuses an auditor |
//! | `task`, `examine`, `accused`, `listing` | one thing to look into: a claim, an accusation, the receipts of an [`epoch`] |
//! | `hunts`, `open`, `patience` | who else looks into a claim; how long it can be proven wrong; how long we try |
//! | `queue` | what is looked into at once, and what waits |
//! | [`draw`], `draws`, `drawing` | our own lottery; claims that wait for the chain's; who is drawn |
//! | `jobs`, `replicas`, `done` | manifests; claims of replicas that differ; audits that are not repeated |
//! | `dispatch`, [`role`] | to whom an event goes; the validator's loop |
//! | [`witness`] | the loop of a worker that looks at its replicas only |
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

mod accused;
pub mod answers;
mod ask;
mod audit;
mod auditor;
mod boundary;
mod case;
pub mod challenge;
mod claims;
mod conviction;
mod defence;
mod dispatch;
mod dispute;
mod done;
pub mod draw;
mod drawing;
mod draws;
pub mod epoch;
mod evidence;
mod examine;
mod executor;
mod finding;
mod giving;
mod hunts;
mod jobs;
mod listing;
mod open;
mod patience;
mod queue;
mod rebuild;
mod receipt;
mod records;
mod replicas;
pub mod role;
mod seeds;
mod shards;
mod target;
mod task;
pub mod witness;

pub use answers::Answers;
pub use auditor::{Auditor, TURNS, convict};
pub use challenge::ChallengeEnd;
pub use draw::Rate;
pub use finding::{AuditError, Finding};
pub use role::{Validator, ValidatorError};
pub use target::{Listed, Standing, Target};
pub use witness::Witness;
