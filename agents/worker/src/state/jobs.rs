//! Jobs as they were posted.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use cid::Cid;
use tensorlink_node::ports::chain::{JobState, JobView};
use tensorlink_node::ports::{Chain, Event};
use tensorlink_types::abi::JobKind;
use tensorlink_types::{B256, JobId, Lane};

/// What a confirmed posting says of a job.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Posted {
    /// Hash of the job's user and terms (P-40).
    pub(crate) terms: B256,
    pub(crate) manifest: Cid,
    pub(crate) kind: JobKind,
    /// Intervals, or tokens, that are paid for at most.
    pub(crate) intervals: u32,
    /// Steps before the job's own.
    pub(crate) first_step: u32,
    /// Seconds in which a claim can be challenged.
    pub(crate) window: u64,
}

/// All jobs that were posted, as confirmed events tell.
#[derive(Debug, Default)]
pub(crate) struct Jobs(Mutex<HashMap<JobId, Posted>>);

impl Jobs {
    fn posted(&self) -> MutexGuard<'_, HashMap<JobId, Posted>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in a confirmed event: jobs that are posted.
    pub(crate) fn apply(&self, event: &Event) {
        let Event::JobPosted { job, user, terms, .. } = event else { return };
        match (Cid::try_from(terms.manifest.as_ref()), JobKind::from_number(terms.kind)) {
            (Ok(manifest), Some(kind)) => {
                let (intervals, first_step, window) = (terms.intervals, terms.firstStep, terms.challengeWindow.into());
                let terms = terms.hash_of(*user);
                self.posted().insert(*job, Posted { terms, manifest, kind, intervals, first_step, window });
            }
            (Err(error), _) => tracing::debug!(%job, %error, "a job whose manifest is not a CID"),
            (_, None) => tracing::debug!(%job, kind = terms.kind, "a job of a kind unknown here"),
        }
    }

    /// What was posted as this job.
    pub(crate) fn get(&self, job: JobId) -> Option<Posted> {
        self.posted().get(&job).copied()
    }

    /// The job's manifest.
    pub(crate) fn manifest(&self, job: JobId) -> Option<Cid> {
        self.get(job).map(|posted| posted.manifest)
    }
}

/// The job of a lane as the chain has it now; none once it is settled.
///
/// # Errors
/// For people, where the endpoint does not tell.
pub(crate) async fn unsettled_job(chain: &dyn Chain, lane: Lane) -> Result<Option<JobView>, String> {
    let job = chain.job(lane.job).await.map_err(|error| error.to_string())?;
    let job = job.ok_or_else(|| "the endpoint does not know the job".to_owned())?;
    Ok(Some(job).filter(|job| job.state != JobState::Settled))
}

#[cfg(test)]
mod tests {
    use tensorlink_types::Address;
    use tensorlink_types::abi::JobTerms;

    use super::*;

    #[test]
    fn only_jobs_that_can_be_understood_are_known() {
        let jobs = Jobs::default();
        let cid: Cid = "bafkreifzjut3te7nhyekklss27nh3k72ysco7y32koao5eei66wof36n5e".parse().unwrap();
        let post = |job: u64, manifest: Vec<u8>, kind: u8| {
            let terms = JobTerms { manifest: manifest.into(), kind, intervals: 7, ..JobTerms::default() };
            jobs.apply(&Event::JobPosted { job: JobId(job), user: Address::ZERO, deposit: Default::default(), terms });
        };
        post(1, cid.to_bytes(), JobKind::Training as u8);
        post(2, vec![1, 2], JobKind::Training as u8);
        post(3, cid.to_bytes(), 99);
        let posted = jobs.get(JobId(1)).unwrap();
        assert_eq!((posted.manifest, posted.kind, posted.intervals), (cid, JobKind::Training, 7));
        assert_eq!(jobs.manifest(JobId(1)), Some(cid));
        assert!(jobs.get(JobId(2)).is_none() && jobs.get(JobId(3)).is_none());
    }
}
