//! What is written down of a serving job, so that others can be hired in place of workers that are lost.

use std::collections::BTreeSet;

use anyhow::Result;
use serde::{Deserialize, Serialize};
use tensorlink_node::Journal;
use tensorlink_node::journal::JournalError;
use tensorlink_node::ports::ChainError;
use tensorlink_node::ports::chain::JobState;
use tensorlink_node::price::multiply_adds;
use tensorlink_types::{Address, B256, JobId, U256};
use tensorlink_user::serving::PreparedServing;

use crate::commands::failover::is_begun;
use crate::commands::hiring::{HireArgs, Hiring};
use crate::live::say;
use crate::node::Node;

/// A serving job, those before it, and the one after it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::commands) struct Record {
    /// How workers are hired.
    pub(super) hire: HireArgs,
    /// Lanes of each stage that must agree on a text.
    #[serde(default = "one")]
    pub(super) security: u16,
    /// Workers that computed wrongly, in it or in those before it.
    #[serde(default)]
    pub(super) liars: BTreeSet<Address>,
    /// What each stage is.
    pub(super) stages: Vec<Stage>,
    /// Its escrow, wei.
    pub(super) deposit: U256,
    /// Jobs that served before it.
    pub(super) before: Vec<JobId>,
    /// The workers that it was closed for.
    pub(super) lost: Option<Vec<Address>>,
    /// When another was about to be posted in its place, by this machine's clock, if it is not known whether it was.
    pub(super) posting: Option<u64>,
    /// The job that serves in its place.
    pub(super) next: Option<JobId>,
}

/// What hiring for a stage takes to know.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Stage {
    /// List root of its programs by length.
    pub(super) programs: B256,
    /// Memory that it needs, bytes.
    pub(super) memory: u64,
    /// Multiply-adds of the longest text.
    pub(super) work: u64,
}

/// What records of earlier versions mean.
const fn one() -> u16 {
    1
}

impl Record {
    /// Of a job that is about to be posted, in each stage of which so many lanes must agree.
    pub(in crate::commands) fn new(hiring: &Hiring<'_>, prepared: &PreparedServing, security: u16) -> Result<Self> {
        let stages = prepared.stages.iter().map(|stage| {
            let (programs, memory) = (stage.programs, stage.memory(prepared.longest)?);
            Ok(Stage { programs, memory, work: multiply_adds(&stage.longest).try_into()? })
        });
        let (hire, deposit) = (hiring.args().clone(), hiring.deposit);
        Ok(Self {
            hire,
            security,
            liars: BTreeSet::new(),
            stages: stages.collect::<Result<_>>()?,
            deposit,
            before: Vec::new(),
            lost: None,
            posting: None,
            next: None,
        })
    }

    fn name(job: JobId) -> String {
        format!("served-{job}")
    }

    pub(super) fn read(journal: &Journal, job: JobId) -> Result<Option<Self>, JournalError> {
        journal.read(&Self::name(job))
    }

    pub(in crate::commands) fn write(&self, journal: &Journal, job: JobId) -> Result<(), JournalError> {
        journal.write(&Self::name(job), self)
    }

    /// The job that was posted to serve in place of one.
    pub(in crate::commands) fn next(journal: &Journal, job: JobId) -> Result<Option<JobId>, JournalError> {
        Ok(Self::read(journal, job)?.and_then(|record| record.next))
    }

    /// The job that serves in place of this one by now, and what was written down of it; nothing of jobs that earlier
    /// versions posted.
    pub(super) async fn newest(node: &Node, mut job: JobId) -> Result<(JobId, Option<Self>)> {
        let journal = &node.ports.journal;
        let mut record = Self::read(journal, job)?;
        while let Some(next) = record.as_ref().and_then(|record| record.next) {
            // One that ended while the one before still runs has never served.
            if !is_begun(node, next).await? || (!runs(node, next).await? && runs(node, job).await?) {
                break;
            }
            say!("job {next} serves in place of job {job}");
            (job, record) = (next, Self::read(journal, next)?);
        }
        Ok((job, record))
    }
}

/// Whether a job runs.
pub(super) async fn runs(node: &Node, job: JobId) -> Result<bool, ChainError> {
    let view = node.ports.chain.job(job).await?;
    Ok(view.is_some_and(|view| view.state == JobState::Running))
}
