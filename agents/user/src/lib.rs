//! The user role: form a job from a model and data, hire workers for it, follow it, judge its result.
//!
//! | module | what lives there |
//! |---|---|
//! | [`prepare`] | model file and data set to programs and states; no network |
//! | [`publish`](mod@publish) | files into the store, roots for the chain |
//! | [`hire`], [`fit`] | the market, as adverts tell it; which of its workers the work fits |
//! | [`placing`] | workers, their order and the cut, chosen jointly by what they say of their speed |
//! | [`role`], `dispatch` | the user's node, put together of components; to whom of them an event goes |
//! | `workers`, `offers`, `reports` | workers that are there; their offers; their progress |
//! | `told`, `own` | what the chain tells of jobs of this account; which events are about them |
//! | `settlement` | a job is moved towards its end |
//! | `speeds` | how fast workers were that it hired |
//! | `heard` | how fast they were in others' jobs, as those say |
//! | [`serving`] | serving jobs: publishing them, sending texts through their workers, paying |
//! | `keeping` | states of its jobs that no other worker keeps |
//! | `fetching`, [`result`] | the trained model, fetched and checked; its weights, and its test |
//! | [`resume`], [`recut`] | a training that goes on in another job; its stages cut anew |
//!
//! Workers that have a free lane are ranked by price:
//!
//! ```
//! use tensorlink_node::Speed;
//! use tensorlink_node::price::Prices;
//! use tensorlink_node::wire::gossip::WorkerAdvert;
//! use tensorlink_types::Address;
//! use tensorlink_user::hire::{Asked, Market};
//!
//! let advert = |price_per_gmac, free_lanes| {
//!     let prices = Prices { sno: price_per_gmac, eth: None };
//!     let (memory, disk, speed) = (8 << 30, 10 << 30, Speed::LEAST);
//!     WorkerAdvert { memory, disk, speed, free_lanes, prices, engine: "cpu".into() }
//! };
//! let [ada, ben, cleo, sno] = [1, 2, 3, 4].map(Address::with_last_byte);
//! let mut market = Market::default();
//! market.hear(ada, advert(3, 1));
//! market.hear(ben, advert(1, 0));
//! market.hear(cleo, advert(2, 1));
//!
//! let (everybody, asked) = (|_| true, Asked::of_any_tier(0, sno));
//! let ranked = market.rank(2, asked, everybody)?;
//! assert_eq!([ranked[0].address, ranked[1].address], [cleo, ada]);
//! assert_eq!(market.rank(3, asked, everybody).unwrap_err().found, 2);
//! # Ok::<(), tensorlink_user::hire::TooFew>(())
//! ```

mod dispatch;
mod fetching;
pub mod fit;
mod heard;
pub mod hire;
mod keeping;
mod offers;
mod own;
pub mod placing;
pub mod prepare;
pub mod publish;
pub mod recut;
mod reports;
pub mod result;
pub mod resume;
pub mod role;
pub mod serving;
mod settlement;
mod speeds;
mod told;
mod workers;

pub use hire::HireError;
pub use prepare::{Base, Draft, PrepareError, Prepared};
pub use publish::{JobNote, PublishError, Published, publish};
pub use recut::Uncut;
pub use result::{Claims, ResultError, TrainedStage, matrices, test, weights};
pub use resume::{ResumeError, Resumption};
pub use role::User;
