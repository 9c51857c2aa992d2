//! The worker role: advertise, offer, fetch, execute, commit, answer auditors, get paid.
//!
//! | module | what lives there |
//! |---|---|
//! | `worker`, `components` | what a worker consists of, and its loop |
//! | `dispatch`, `requests` | which event of the chain, and which request of a peer, goes to whom |
//! | [`context`], `state` | what all components share: ports and settings; lanes and jobs |
//! | [`record`] | what is on disk of a lane |
//! | [`hiring`] | adverts and offers; what was promised |
//! | [`training`] | lanes of training jobs: computed, claimed |
//! | [`serving`] | lanes of serving jobs: texts, receipts, vouchers |
//! | [`evidence`] | what is shown for claims, to auditors and on chain; what others are made to show |
//! | `custody` | states kept for each other |
//! | `keeping` | files and records, and until when they are kept; stake and pay |
//! | [`stream_router`] | incoming streams |
//! | `error` | why a worker cannot run |
//!
//! The first of three stages runs ahead by two micro-batches, the last alternates:
//!
//! ```
//! use tensorlink_node::interval::Work::{Backward, Forward};
//! use tensorlink_worker::training::schedule::one_forward_one_backward;
//!
//! let stage = |stage| one_forward_one_backward(stage, 3, 0..3, 1);
//! assert_eq!(stage(0), [Forward(0), Forward(1), Forward(2), Backward(0), Backward(1), Backward(2)]);
//! assert_eq!(stage(2), [Forward(0), Backward(0), Forward(1), Backward(1), Forward(2), Backward(2)]);
//! ```

mod components;
pub mod context;
mod custody;
mod dispatch;
mod error;
pub mod evidence;
pub mod hiring;
mod keeping;
pub mod record;
mod requests;
pub mod serving;
mod state;
pub mod stream_router;
pub mod training;
mod worker;

pub use context::{Context, EngineFactory, Limits, WorkerConfig};
pub use error::WorkerError;
pub use worker::Worker;
