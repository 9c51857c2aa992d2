//! What all components of a worker see: its lanes, and the jobs that were posted.
//!
//! | module | what lives there |
//! |---|---|
//! | `lanes` | lanes that are ours: their records, and what stops the work on them |
//! | `jobs` | what confirmed postings say of jobs |

mod jobs;
mod lanes;

pub(crate) use jobs::{Jobs, unsettled_job};
pub(crate) use lanes::{Lanes, Stops, lane_of};
