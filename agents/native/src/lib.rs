//! Native mode: the same step graph as exact mode, in floats, on workers that the user names.
//!
//! **Not provable.** No contract can recompute a float, and two honest machines differ in the last bits. So there is no
//! job on chain, no stake, no escrow, and nobody is slashed. The user has drawn intervals repeated, compares the
//! results within a tolerance, and goes on without who is beyond it. That is for private networks, and for who accepts
//! it. What remains: intervals that were not drawn are taken as they come; workers that agree with each other in a lie
//! are believed; and a lie smaller than the tolerance is never seen.
//!
//! | module | what lives there |
//! |---|---|
//! | [`task`] | what is trained, as bytes by content: graph, data, key of the draws; states |
//! | [`class`], [`tolerance`] | what computes floats alike; how far results are apart, and may be |
//! | [`floats`] | the trait of who computes them |
//! | [`wire`] | questions and answers between user and worker |
//! | [`worker`], [`remote`] | a worker as the user sees it; one at the other end of the net |
//! | [`host`] | a worker's side |
//! | [`driver`] | the user's side: intervals in turn, checks, journal |
//!
//! Two workers repeat an interval; their results may differ by rounding, not by work that was left out:
//!
//! ```
//! use tensorlink_native::{Capability, DeviceClass, Precision, State, Threads, allowed, distance};
//!
//! let state = |weights: [f32; 2]| State::from([("layer.weight".to_owned(), weights.to_vec())]);
//! let (before, a, b) = (state([1.0, 2.0]), state([1.5, 1.5]), state([1.500_01, 1.5]));
//! let class = |capability| DeviceClass::Cpu { capability, threads: Threads::One };
//!
//! let most = allowed(class(Capability::Avx2), class(Capability::Avx512), Precision::F32).unwrap();
//! assert!(distance(&before, &a, &b) < most);
//! assert!(distance(&before, &a, &before) > most, "who returns the old weights did nothing");
//! ```

#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable, clippy::indexing_slicing)
)]

pub mod class;
pub mod driver;
pub mod floats;
pub mod host;
pub mod remote;
pub mod task;
pub mod tolerance;
pub mod wire;
pub mod worker;

pub use class::{Capability, DeviceClass, Precision, Threads};
pub use driver::{DriveError, Driver, Entry, Order, Report};
pub use floats::{Floats, FloatsError};
pub use host::{Host, Listed};
pub use remote::Remote;
pub use task::{State, Task, TaskError};
pub use tolerance::{Tolerances, allowed, distance};
pub use wire::{Done, Interval};
pub use worker::{Worker, WorkerError};

/// What everything that shows native mode says of it first.
pub const NOTICE: &str =
    "not provable: floats are compared within a tolerance, nobody has a stake, and no contract can judge";
