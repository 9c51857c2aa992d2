//! What a worker keeps of its lanes, until when, and how it gets its stake and pay out of their jobs.
//!
//! | module | what lives there |
//! |---|---|
//! | `files` | for which lanes files are kept, and until when |
//! | `shards` | the shards of lanes that train |
//! | `records`, `past` | what is forgotten of records, and when; lanes of jobs that were settled long ago |
//! | `lost` | what a data folder that is gone no longer tells |
//! | `payout` | stake and pay, out of jobs that end or never begin |

mod files;
mod lost;
mod past;
mod payout;
mod records;
mod shards;

pub(crate) use files::Files;
pub(crate) use lost::Lost;
pub(crate) use past::Past;
pub(crate) use payout::{Payout, close};
pub(crate) use records::Records;
pub(crate) use shards::Shards;
