//! What is written down of a job that is followed, so that whoever follows it after an interruption can go on as well.

use std::time::Duration;

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};
use tensorlink_node::Journal;
use tensorlink_node::journal::JournalError;
use tensorlink_types::{JobId, Lane, U256};

use crate::commands::hiring::{HireArgs, Hiring};
use crate::watch::{Follow, Loss, Past, Rules, patiently};

/// A job, those before it, and the one after it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Line {
    /// How workers are hired.
    pub(super) hire: HireArgs,
    /// What ends the job early.
    pub(super) rules: Rules,
    /// Silence of a worker that is borne; none: no other job is posted.
    pub(super) failover: Option<Duration>,
    /// Its escrow, wei.
    pub(super) deposit: U256,
    /// Jobs that were given up before it.
    pub(super) before: Vec<Past>,
    /// Why it is given up itself, while another is looked for.
    pub(super) lost: Option<Loss>,
    /// The job that goes on from it.
    pub(super) next: Option<JobId>,
}

impl Line {
    /// Of a job that was just posted.
    pub(super) fn new(hiring: &Hiring<'_>, follow: &Follow<'_>, before: Vec<Past>) -> Self {
        let (hire, deposit) = (hiring.args().clone(), hiring.deposit);
        Self { hire, rules: follow.rules, failover: follow.failover, deposit, before, lost: None, next: None }
    }

    fn name(job: JobId) -> String {
        format!("failover-{job}")
    }

    pub(super) fn read(journal: &Journal, job: JobId) -> Result<Option<Self>, JournalError> {
        journal.read(&Self::name(job))
    }

    pub(super) fn write(&self, journal: &Journal, job: JobId) -> Result<(), JournalError> {
        journal.write(&Self::name(job), self)
    }

    /// Another job goes on from this one: whoever follows it is led there.
    pub(super) fn lead_on(journal: &Journal, job: JobId, next: JobId) -> Result<(), JournalError> {
        match Self::read(journal, job)? {
            Some(line) => Self { next: Some(next), ..line }.write(journal, job),
            None => Ok(()),
        }
    }
}

/// Jobs from whose states, which may still turn out to be wrong, a job has gone on: those of whoever goes on from it.
///
/// # Errors
/// Where one of those states was proved wrong.
pub(in crate::commands) async fn inherited(hiring: &Hiring<'_>, job: JobId) -> Result<Vec<Past>> {
    let line = Line::read(&hiring.node.ports.journal, job)?;
    let before = line.map_or_else(Vec::new, |line| line.before);
    for past in &before {
        for stage in 0..past.view.stages {
            let lane = Lane { job: past.view.id, stage, replica: past.replica };
            let view = patiently(async || hiring.node.ports.chain.lane(lane).await).await?;
            if view.void_from.is_some_and(|from| from < past.taken) {
                let wrong = past.view.id;
                bail!(
                    "job {job} began with a state of job {wrong} that was proved wrong: `tensorlink job resume {wrong}` \
                     goes on from before that"
                );
            }
        }
    }
    Ok(before)
}

/// Jobs before the next one, when `past` is given up and the next goes on from the states of `former`, itself or one
/// before it: of those after that nothing is left.
pub(super) fn onward(mut before: Vec<Past>, past: Past, former: JobId, (replica, taken): (u16, u32)) -> Vec<Past> {
    before.push(past);
    for past in before.iter_mut().skip_while(|past| past.view.id != former) {
        (past.replica, past.taken) = if past.view.id == former { (replica, taken) } else { (0, 0) };
    }
    before
}
