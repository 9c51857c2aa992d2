//! Jobs, as events tell them: where their files are described.

use std::collections::HashMap;

use cid::Cid;
use tensorlink_node::ports::Event;
use tensorlink_types::abi::Claim;
use tensorlink_types::{ClaimId, JobId};

use crate::target::{Standing, Target};

/// The manifests of all jobs that were posted.
#[derive(Debug, Default)]
pub(crate) struct Jobs {
    manifests: HashMap<JobId, Cid>,
}

impl Jobs {
    /// Takes in an event.
    pub(crate) fn apply(&mut self, event: &Event) {
        if let Event::JobPosted { job, terms, .. } = event
            && let Ok(cid) = Cid::try_from(terms.manifest.as_ref())
        {
            self.manifests.insert(*job, cid);
        }
    }

    /// CID of a job's manifest.
    pub(crate) fn manifest(&self, job: JobId) -> Option<Cid> {
        self.manifests.get(&job).copied()
    }

    /// A claim on chain since `at`, to be looked into; none of a job without a manifest.
    pub(crate) fn target(&self, id: ClaimId, claim: Claim, at: u64) -> Option<Target> {
        let manifest = self.manifest(JobId(claim.job))?;
        Some(Target { id, claim, standing: Standing::Committed { at }, manifest, listed: None })
    }
}
