//! What everybody knows of the job.

use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use tensorlink_node::Identity;
use tensorlink_node::identity::InvalidKey;
use tensorlink_node::ports::Event;
use tensorlink_node::ports::chain::{JobState, JobView};
use tensorlink_types::abi::{JobKind, JobTerms, Offer};
use tensorlink_types::{Address, B256, JobId, JobKey, Lineage, U256};

/// The only job.
pub(super) const JOB: JobId = JobId(1);
/// Most tokens that it pays for.
const TOKENS: u32 = 1_000_000;
/// Seconds: no job of a bench takes so long.
const FOREVER: u64 = u64::MAX >> 16;
/// Name of the file.
const FILE: &str = "job.json";

/// A serving job that runs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Job {
    /// CID of the manifest.
    pub(super) manifest: String,
    /// List roots of the stages' programs by length.
    pub(super) programs: Vec<B256>,
    /// Most tokens of a text.
    pub(super) longest: u32,
    /// Where the user's node listens.
    pub(super) user_at: Vec<String>,
}

/// The key of the user.
pub(super) fn user() -> Result<Identity, InvalidKey> {
    Identity::new(&[0x55; 32])
}

/// The key of a stage's worker.
pub(super) fn worker(stage: u16) -> Result<Identity, InvalidKey> {
    let mut secret = [0; 32];
    let [high, low] = stage.saturating_add(1).to_be_bytes();
    secret[30..].copy_from_slice(&[high, low]);
    Identity::new(&secret)
}

impl Job {
    /// Writes the job down for the workers' processes.
    pub(super) fn write(&self, folder: &Path) -> Result<()> {
        Ok(std::fs::write(folder.join(FILE), serde_json::to_vec(self)?)?)
    }

    /// What [`Self::write`] wrote.
    pub(super) fn read(folder: &Path) -> Result<Self> {
        let path = folder.join(FILE);
        let text = std::fs::read(&path).with_context(|| path.display().to_string())?;
        Ok(serde_json::from_slice(&text)?)
    }

    pub(super) fn stages(&self) -> u16 {
        u16::try_from(self.programs.len()).unwrap_or(u16::MAX)
    }

    /// Workers by stage.
    pub(super) fn workers(&self) -> Result<Vec<Address>, InvalidKey> {
        (0..self.stages()).map(|stage| Ok(worker(stage)?.address())).collect()
    }

    /// The job as the contract would show it.
    pub(super) fn view(&self) -> Result<JobView, InvalidKey> {
        Ok(JobView {
            id: JOB,
            kind: JobKind::Serving,
            user: user()?.address(),
            state: JobState::Running,
            escrow: u128::from(TOKENS),
            audit_budget: 0,
            token: Address::ZERO,
            stages: self.stages(),
            replicas: 1,
            intervals: TOKENS,
            steps_per_interval: self.longest,
            accept_by: FOREVER,
            duration: FOREVER,
            started_at: 1,
            deadline: FOREVER,
            challenge_window: 1,
            worker_stake: 1,
            lineage: Lineage::default(),
            terms: B256::ZERO,
        })
    }

    /// How the job came about.
    pub(super) fn events(&self) -> Result<Vec<Event>> {
        let manifest: cid::Cid = self.manifest.parse()?;
        let terms = JobTerms {
            kind: JobKind::Serving as u8,
            token: Address::ZERO,
            stages: self.stages(),
            replicas: 1,
            intervals: TOKENS,
            stepsPerInterval: self.longest,
            acceptBy: Default::default(),
            duration: Default::default(),
            challengeWindow: 1,
            workerStake: 1,
            continues: 0,
            firstStep: 0,
            programs: self.programs.clone(),
            initialStates: Vec::new(),
            manifest: manifest.to_bytes().into(),
        };
        let offer = |(stage, worker)| Offer {
            job: JOB.0,
            terms: B256::ZERO,
            stage,
            replica: 0,
            worker,
            pricePerInterval: 1,
            expires: Default::default(),
        };
        let offers = (0..).zip(self.workers()?).map(offer).collect();
        Ok(vec![
            Event::JobPosted { job: JOB, user: user()?.address(), deposit: U256::from(TOKENS), terms },
            Event::JobAccepted { job: JOB, offers },
            Event::JobStarted { job: JOB, job_key: JobKey::default(), deadline: FOREVER },
        ])
    }
}
