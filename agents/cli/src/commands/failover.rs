//! A training that goes on by itself when a worker is lost: in another job, on other workers, from the newest states
//! that somebody keeps. What comes out is the same bits (rule P-38).

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use tensorlink_node::Journal;
use tensorlink_node::journal::JournalError;
use tensorlink_node::ports::Call;
use tensorlink_node::ports::chain::{ChainError, JobState, JobView};
use tensorlink_types::{JobId, U256};
use tensorlink_user::{Claims, JobNote, User};
use tokio_util::sync::CancellationToken;

use crate::amount::{Wei, parse_amount};
use crate::commands::hiring::{HireArgs, Hiring, read_note};
use crate::commands::rest::{Rest, show};
use crate::config::Config;
use crate::live::say;
use crate::node::Node;
use crate::watch::{Follow, Loss, Past, patiently};
use crate::{output, watch};

/// Jobs in a row that may end before they have claimed anything.
const FRUITLESS: u32 = 3;
/// Attempts to start another job.
const ATTEMPTS: u32 = 2;
/// Time for the newest states to be kept once a job is closed.
const KEEPING: Duration = Duration::from_secs(3);

/// What is written down of a job, so that whoever follows it after an interruption can go on as well.
#[derive(Serialize, Deserialize)]
struct Line {
    /// How workers are hired.
    hire: HireArgs,
    /// Silence of a worker that is borne.
    failover: Option<Duration>,
    /// Jobs that were given up before it.
    before: Vec<Past>,
    /// Why it is given up itself.
    lost: Option<Loss>,
    /// The job that goes on from it.
    next: Option<JobId>,
}

impl Line {
    /// Name of the record.
    fn name(job: JobId) -> String {
        format!("failover-{job}")
    }

    fn read(journal: &Journal, job: JobId) -> Result<Option<Self>, JournalError> {
        journal.read(&Self::name(job))
    }

    fn write(&self, journal: &Journal, job: JobId) -> Result<(), JournalError> {
        journal.write(&Self::name(job), self)
    }
}

/// Follows a training to its end, through as many jobs as it takes.
pub(super) async fn follow(
    config: &Config,
    hiring: Hiring<'_>,
    of: (JobId, &JobNote),
    follow: Follow<'_>,
    shutdown: &CancellationToken,
) -> Result<()> {
    let (hire, failover) = (hiring.args().clone(), follow.failover);
    let line = Line { hire, failover, before: Vec::new(), lost: None, next: None };
    line.write(&hiring.node.ports.journal, of.0)?;
    follow_on(config, hiring, of, follow, line, shutdown).await
}

/// Follows a training after an interruption, by what was written down of it if it was posted to be followed.
pub(super) async fn take_up(
    config: &Config,
    node: Node,
    mut job: JobId,
    follow: Follow<'_>,
    shutdown: &CancellationToken,
) -> Result<()> {
    let mut line = Line::read(&node.ports.journal, job)?;
    while let Some(next) = line.as_ref().and_then(|line| line.next) {
        if is_begun(&node, next).await? {
            say!("job {job} was given up; job {next} goes on with it");
            (job, line) = (next, Line::read(&node.ports.journal, next)?);
        } else if let Some(line) = &mut line {
            line.next = None;
        }
    }
    let note: JobNote = read_note(&node, job)?;
    let Some(line) = line else {
        let user = User::start(node.ports.clone(), shutdown.clone()).await?;
        watch::follow(config, (&node, &user), (job, &note), &follow, &mut [], shutdown).await?;
        node.net.shutdown().await;
        return Ok(());
    };
    let hire = line.hire.clone();
    let hiring = Hiring::on(node, &hire, shutdown).await?;
    hiring.user.avoid(line.before.iter().flat_map(|past| past.loss.workers.iter().copied()));
    let follow = Follow { failover: line.failover, ..follow };
    follow_on(config, hiring, (job, &note), follow, line, shutdown).await
}

/// Whether a job that was posted to go on with another has begun; if not, it is cancelled.
async fn is_begun(node: &Node, job: JobId) -> Result<bool, ChainError> {
    let view = patiently(async || node.ports.chain.job(job).await).await?;
    if view.as_ref().is_some_and(|view| matches!(view.state, JobState::Posted | JobState::Accepted)) {
        node.ports.chain.send(Call::Cancel { job }).await?;
    }
    Ok(view.is_some_and(|view| view.started_at > 0))
}

async fn follow_on(
    config: &Config,
    mut hiring: Hiring<'_>,
    (mut job, note): (JobId, &JobNote),
    mut follow: Follow<'_>,
    mut line: Line,
    shutdown: &CancellationToken,
) -> Result<()> {
    let mut note = note.clone();
    let (mut fruitless, mut failed) = (0, None);
    loop {
        let node = (&hiring.node, hiring.user.as_ref());
        // One that was interrupted while another job was looked for goes on with that.
        if line.lost.is_none() || follow.failover.is_none() {
            line.lost = watch::follow(config, node, (job, &note), &follow, &mut line.before, shutdown).await?;
        }
        let Some(loss) = line.lost.clone() else { break };
        line.write(&hiring.node.ports.journal, job)?;
        say!("job {job}: {loss}");
        let mut attempts = 1;
        let went_on = loop {
            match go_on(config, &mut hiring, (job, &note, &loss), &mut line, shutdown).await {
                Err(error) if attempts < ATTEMPTS && !shutdown.is_cancelled() => say!("{error:#}; trying again"),
                went_on => break went_on,
            }
            attempts += 1;
        };
        match went_on {
            Ok(Some((next, its_note))) => {
                let came_to_nothing = line.before.last().is_none_or(|past| past.taken == 0);
                fruitless = if came_to_nothing { fruitless + 1 } else { 0 };
                (job, note) = (next, its_note);
                if fruitless >= FRUITLESS {
                    say!("{fruitless} jobs in a row have come to nothing: there will be no other after job {job}");
                    follow.failover = None;
                }
            }
            Ok(None) => follow.failover = None,
            Err(error) => {
                let error =
                    error.context(format!("job {job} is not gone on with; `tensorlink job resume {job}` tries again"));
                say!("{error:#}");
                follow.failover = None;
                failed = Some(error);
            }
        }
    }
    hiring.node.net.shutdown().await;
    failed.map_or(Ok(()), Err)
}

/// Ends the job that lost a worker, and starts another with the rest of its work, or of an earlier one's if that is
/// where it went wrong: the line is that job's then. Nothing where all of the work is claimed.
async fn go_on(
    config: &Config,
    hiring: &mut Hiring<'_>,
    (job, note, loss): (JobId, &JobNote, &Loss),
    line: &mut Line,
    shutdown: &CancellationToken,
) -> Result<Option<(JobId, JobNote)>> {
    let (chain, journal) = (hiring.node.ports.chain.clone(), hiring.node.ports.journal.clone());
    let view = patiently(async || chain.job(job).await).await?.context("the job was undone by a reorganisation")?;
    // Where it began with what was proved wrong, what it has computed is worth nothing.
    let wrong = loss.misled_by().and_then(|of| line.before.iter().find(|past| past.view.id == of));
    let (former, its_note) = wrong.map_or((&view, note), |past| (&past.view, &past.note));
    let (former, its_note) = (former.clone(), its_note.clone());
    let put_up = hiring.deposit;
    let share = |left: u32| put_up.saturating_mul(U256::from(left)).div_ceil(U256::from(former.intervals.max(1)));

    let claimed = patiently(async || hiring.user.claimed_everywhere(&former).await).await?;
    if claimed >= former.intervals {
        return Ok(None);
    }
    let least = share(former.intervals.saturating_sub(claimed));
    let own = hiring.node.ports.identity.address();
    let has = patiently(async || chain.balance(own, hiring.asked.token).await).await?;
    ensure!(
        has >= least,
        "to go on takes about {} {} before the escrow of job {job} comes back, and the account has {}",
        Wei(least),
        hiring.token_name(),
        Wei(has)
    );
    patiently(async || close(hiring, &view).await).await?;
    let from = newest(hiring, &former).await?;

    hiring.user.avoid(loss.workers.iter().copied());
    hiring.look_for(former.stages, config, shutdown).await?;
    hiring.deposit = parse_amount(&hiring.args().deposit)?;
    let left = share(former.intervals.saturating_sub(from));
    let rest = Rest::hire(hiring, (&former, &its_note), (from, Claims::Committed), left, shutdown).await?;
    output::print(config.json, &rest.quote, || show(&rest.quote))?;
    let next = hiring.post(rest.work, &rest.note).await?;
    line.next = Some(next);
    line.write(&journal, job)?;
    hiring.start(next, &rest.prices, shutdown).await?;

    line.before.push(Past { view, note: note.clone(), taken: 0, loss: loss.clone(), settled: false });
    // Of those after it nothing is left.
    for past in line.before.iter_mut().skip_while(|past| past.view.id != former.id) {
        past.taken = if past.view.id == former.id { from } else { 0 };
    }
    (line.lost, line.next) = (None, None);
    line.write(&journal, next)?;
    say!("job {next} goes on after {from} of {} intervals of job {}", former.intervals, former.id);
    Ok(Some((next, rest.note)))
}

/// Closes a job that still runs.
async fn close(hiring: &Hiring<'_>, view: &JobView) -> Result<(), ChainError> {
    if view.state != JobState::Running {
        return Ok(());
    }
    match hiring.node.ports.chain.send(Call::Cancel { job: view.id }).await {
        // Refused where it was closed just now.
        Ok(_) | Err(ChainError::Reverted { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// The most intervals after which somebody has each stage's state, once those that have just been claimed are kept.
async fn newest(hiring: &Hiring<'_>, former: &JobView) -> Result<u32> {
    let (user, clock) = (&hiring.user, &hiring.node.ports.clock);
    let until = clock.now().saturating_add(KEEPING.as_secs());
    loop {
        let claimed = user.claimed_everywhere(former).await?;
        let kept = user.newest_kept(former, claimed).await?;
        if kept == claimed || clock.now() >= until {
            return Ok(kept);
        }
        clock.sleep(Duration::from_millis(500)).await;
    }
}
