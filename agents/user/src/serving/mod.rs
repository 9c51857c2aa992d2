//! Serving jobs from the user's side. The user stands at both ends of the pipeline and carries the tensors from stage
//! to stage; it pays for the texts that were delivered whole, with a right receipt from every stage.
//!
//! | module | what lives there |
//! |---|---|
//! | [`prepare`] | a model in integers to the stages of a job |
//! | [`publish`] | their files into the store, and back |
//! | [`pipeline`] | a running job: texts in, outputs and receipts out |
//! | [`pipelines`] | a model's pipelines, one after another; texts that go on in the next |
//! | [`boundaries`], `work` | what crosses between the stages; what each multiplies |
//! | `sending` | a text under way, as whoever sends its tokens sees it |
//! | [`agreement`] | how many lanes must agree, and who says which is right |
//! | `shared` | what texts share |
//! | `state`, `text` | one text; its way through all stages |
//! | `stage`, `difference` | the lanes that compute it in a stage; where they differ, who lies |
//! | `exchange`, `pace`, `rate` | one lane's part in it; how long it takes for that; how fast it is |
//! | [`receipt`] | whether a receipt is right |
//! | [`account`] | what a lane is owed: receipts, epochs, vouchers |
//! | `lane`, `courier` | a lane's worker and account; what it is told while no text waits for it |
//! | [`numbers`], [`archive`] | numbers of texts; receipts on disk |
//! | [`fault`] | what can go wrong |

pub mod account;
pub mod agreement;
pub mod archive;
pub mod boundaries;
mod courier;
mod difference;
mod exchange;
pub mod fault;
mod lane;
pub mod numbers;
mod pace;
pub mod pipeline;
pub mod pipelines;
pub mod prepare;
pub mod publish;
mod rate;
pub mod receipt;
mod sending;
mod shared;
mod stage;
mod state;
mod text;
mod work;

pub use agreement::{Agreement, Judge, Verdict};
pub use archive::{Receipts, StageReceipt, Terms, TextReceipts};
pub use boundaries::Boundaries;
pub use fault::{LaneFault, OpenError, TextError};
pub use pipeline::Pipeline;
pub use pipelines::Pipelines;
pub use prepare::{Prepared as PreparedServing, ServeError, ServingStage};
pub use publish::{NoteError, PublishedServing, ServingNote, publish_serving};
pub use sending::{Step, Text};
