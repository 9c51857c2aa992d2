//! The user role: form a job from a model and data, hire workers for it, follow it, judge its result.
//!
//! | module | what lives there |
//! |---|---|
//! | [`prepare`] | model file and data set to programs and states; no network |
//! | [`publish`](mod@publish) | files into the store, roots for the chain |
//! | [`hire`] | choosing workers from their adverts |
//! | [`role`] | the user's node: market, offers, settlement |
//! | [`serving`] | serving jobs: publishing them, sending texts through their workers, paying |
//! | `keeping` | states of its jobs that no other worker keeps |
//! | [`result`] | the trained model, checked and tested |
//! | [`resume`] | a training that goes on in another job |

pub mod hire;
mod keeping;
pub mod prepare;
pub mod publish;
pub mod result;
pub mod resume;
pub mod role;
pub mod serving;

pub use prepare::{Base, Draft, PrepareError, Prepared};
pub use publish::{JobNote, PublishError, Published, publish};
pub use result::{Claims, ResultError, TrainedStage, matrices, test, weights};
pub use resume::{ResumeError, Resumption};
pub use role::{HireError, User};
