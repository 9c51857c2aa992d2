//! Which workers compute a model, in which order, and which layers each of them holds.
//!
//! | module | what lives there |
//! |---|---|
//! | [`node`], [`proximity`], [`fleet`] | what is known of workers and of the links between them |
//! | [`model`] | what a model's layers ask of whoever computes them |
//! | [`objective`], [`constraints`] | what is to be small, and what must hold |
//! | [`plan`] | chains of stages, and what they cost: the definition that all else is judged by |
//! | [`strategy`], [`mod@place`] | strategies by name; a request, and the plan that a strategy makes of it |
//! | [`refusal`] | why no plan fits, and what would mend it |
//! | `problem`, `table` | a request made dense, in tables that answer whatever they are asked |
//! | `columns`, `cuts` | the exact cut for an order of nodes |
//! | `beam`, `moves`, `best` | the joint search |
//! | `oracle` | the best chain of up to eight nodes, exactly |
//! | `rules` | what other systems do, one file each |
//! | [`score`] | how a large fleet is thinned out before the search |
//! | [`measured`] | what to believe of a worker that says more than it does |
//! | [`mod@explain`] | a plan as a picture in text, with the runner-up |
//! | [`number`] | which numbers are refused |
//! | [`generate`] | fleets and models for figures and tests, each a function of a seed |
//!
//! A plan for a fleet made up by a seed, and what it costs beside exo's ring:
//!
//! ```
//! use tensorlink_placement::{Request, Strategy, generate, model::Kind, objective::Objective, place};
//!
//! let (world, model) = generate::small(7);
//! let fleet = world.fleet();
//! let request = Request::new(&fleet, &model, Kind::Decode, Objective::Latency);
//! let latency = |strategy| {
//!     let plan = place(strategy, &request).expect("the model fits");
//!     request.figures(&plan.chains[0]).expect("a plan keeps every constraint").latency
//! };
//! assert!(latency(Strategy::Best) <= latency(Strategy::Rmw));
//! ```
//!
//! How good the search is, and how fast, is measured by `examples/simulate` and told in the book, under *Benchmarks*.
//! Amounts are floats: nothing here is agreed upon by consensus. Numbers that are not finite are refused at the door,
//! so that no cost is NaN.
//!
//! Nothing here performs I/O, reads a clock or draws randomness of its own.

#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable, clippy::indexing_slicing)
)]

mod beam;
mod best;
mod columns;
pub mod constraints;
mod cuts;
pub mod explain;
pub mod fleet;
pub mod generate;
pub mod measured;
pub mod model;
mod moves;
pub mod node;
pub mod number;
pub mod objective;
mod oracle;
pub mod place;
pub mod plan;
mod problem;
pub mod proximity;
pub mod refusal;
mod rules;
pub mod score;
pub mod strategy;
mod table;

pub use explain::explain;
pub use place::Request;
pub use refusal::{Refusal, place};
pub use strategy::Strategy;
