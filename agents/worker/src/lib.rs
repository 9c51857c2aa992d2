//! The worker role: advertise, offer, fetch, execute, commit, answer auditors, get paid.
//!
//! | module | what lives there |
//! |---|---|
//! | [`role`], `told` | what a worker is, and its loop; what it does about what the chain tells |
//! | [`quote`], [`promises`] | whether to take a lane, and for how much; lanes held for what was offered |
//! | `training` | what runs for a lane of a training job |
//! | [`lane`] | the work on it: meet the neighbours, execute, write down; where it leaves its bounds, go no further |
//! | [`schedule`], [`link`], [`boundary`], [`stream_router`] | order of micro-batches; stream to a neighbour; signed logs; incoming streams |
//! | [`serving`] | lanes of serving jobs: texts, receipts, vouchers |
//! | [`record`], `archive`, `prune`, `past` | what is on disk; the states there; what is forgotten, and when |
//! | `lost` | what a data folder that is gone no longer tells |
//! | `keeping` | for which lanes files are kept, and until when |
//! | [`claims`], [`claimant`], [`sealing`] | how claims get on chain; each of them; those of replicas |
//! | `custody`, `demands` | states kept for each other; data that is demanded on chain |
//! | [`awaited`], `withheld` | for whom a lane waits in vain; what is demanded of a neighbour that has claimed and does not send |
//! | `payout` | stake and pay, out of jobs that end or never begin |
//! | `answers`, `places`, [`audit_answers`] | answers to users and to auditors |
//! | `challenges`, `auditors` | answers on chain; what is done about wrong auditors |
//! | [`metrics`] | progress for people |
//! | `error` | why a worker cannot run |
//!
//! The first of three stages runs ahead by two micro-batches, the last alternates:
//!
//! ```
//! use tensorlink_node::interval::Work::{Backward, Forward};
//! use tensorlink_worker::schedule::one_forward_one_backward;
//!
//! let stage = |stage| one_forward_one_backward(stage, 3, 0..3, 1);
//! assert_eq!(stage(0), [Forward(0), Forward(1), Forward(2), Backward(0), Backward(1), Backward(2)]);
//! assert_eq!(stage(2), [Forward(0), Backward(0), Forward(1), Backward(1), Forward(2), Backward(2)]);
//! ```

pub(crate) mod answers;
pub(crate) mod archive;
pub mod audit_answers;
mod auditors;
pub mod awaited;
pub mod boundary;
pub(crate) mod challenges;
pub mod claimant;
pub mod claims;
pub mod context;
mod custody;
mod demands;
mod error;
mod keeping;
pub mod lane;
pub mod link;
mod lost;
pub mod metrics;
mod past;
pub(crate) mod payout;
mod places;
pub mod promises;
mod prune;
pub mod quote;
pub mod record;
pub mod role;
pub mod schedule;
pub mod sealing;
pub mod serving;
pub mod stream_router;
mod told;
mod training;
mod withheld;

pub use context::{Context, EngineFactory, Limits, WorkerConfig};
pub use error::WorkerError;
pub use role::Worker;
