//! A training that goes on by itself when a worker is lost: in another job, on other workers, from the newest states
//! that somebody keeps. What comes out is the same bits (rule P-38).
//!
//! | module | what lives there |
//! |---|---|
//! | here | jobs followed one after another |
//! | `onward` | one is ended, and another started with the rest of its work |
//! | `line` | what is written down of them |

mod line;
mod onward;

use anyhow::{Result, ensure};
use tensorlink_node::Journal;
use tensorlink_node::journal::JournalError;
use tensorlink_types::JobId;
use tensorlink_user::{JobNote, User};
use tokio_util::sync::CancellationToken;

use crate::commands::follow::failover;
use crate::commands::hiring::{Hiring, Work, read_note};
use crate::config::Config;
use crate::live::say;
use crate::node::Node;
use crate::watch;
use crate::watch::{Follow, Loss, Past, close, patiently};

use self::line::Line;
pub(super) use self::line::inherited;
use self::onward::go_on;
pub(super) use self::onward::is_begun;

/// Jobs in a row from which none of the intervals is taken.
const FRUITLESS: u32 = 3;
/// Attempts to start another job.
const ATTEMPTS: u32 = 2;

/// The job that was posted to go on with a training.
pub(super) fn next(journal: &Journal, job: JobId) -> Result<Option<JobId>, JournalError> {
    Ok(Line::read(journal, job)?.and_then(|line| line.next))
}

/// The job that is followed.
struct Current {
    job: JobId,
    note: JobNote,
    line: Line,
}

/// Posts a training job, hires at these prices, starts it, and follows it if that was asked for. `before`: jobs from
/// whose states it goes on, though they are not final yet.
pub(super) async fn launch(
    config: &Config,
    hiring: Hiring<'_>,
    (work, note): (Work, &JobNote),
    prices: &[u128],
    (follow, before): (Option<Follow<'_>>, Vec<Past>),
    shutdown: &CancellationToken,
) -> Result<()> {
    let former = work.continues.map(|(former, _)| former);
    let job = hiring.post(work, note).await?;
    let journal = hiring.node.ports.journal.clone();
    // Before it runs: a kill must not leave a job that nobody knows to go on with.
    let line = follow.map(|follow| Line::new(&hiring, &follow, before));
    if let Some(line) = &line {
        line.write(&journal, job)?;
    }
    if let Some(former) = former {
        Line::lead_on(&journal, former, job)?;
    }
    hiring.start(job, prices, shutdown).await?;
    let (Some(follow), Some(line)) = (follow, line) else {
        say!("job {job} runs; follow it with `tensorlink job watch {job}`");
        hiring.node.net.shutdown().await;
        return Ok(());
    };
    let current = Current { job, note: note.clone(), line };
    Box::pin(follow_on(config, hiring, current, follow, shutdown)).await
}

/// Follows a training after an interruption, by what was written down of it if it was posted to be followed.
/// `said`: the seconds of silence that are borne, in place of what was said then.
pub(super) async fn take_up(
    config: &Config,
    node: Node,
    mut job: JobId,
    (follow, said): (Follow<'_>, Option<u64>),
    shutdown: &CancellationToken,
) -> Result<()> {
    let journal = node.ports.journal.clone();
    let mut line = Line::read(&journal, job)?;
    while let Some(next) = line.as_ref().and_then(|line| line.next) {
        if is_begun(&node, next).await? {
            say!("job {next} goes on with job {job}");
            (job, line) = (next, Line::read(&journal, next)?);
        } else if let Some(line) = &mut line {
            line.next = None;
        }
    }
    let note: JobNote = read_note(&node, job)?;
    let Some(mut line) = line else {
        ensure!(
            said.is_none_or(|seconds| seconds == 0),
            "job {job} was not posted to be followed, so nothing says how workers are hired: leave out --failover, and \
             `tensorlink job resume {job} --watch` goes on once it has ended"
        );
        let user = User::start(node.ports.clone(), shutdown.clone()).await?;
        watch::follow(config, (&node, &user), (job, &note), &follow, &mut [], shutdown).await?;
        node.net.shutdown().await;
        return Ok(());
    };
    if said.is_some() {
        line.failover = failover(said);
    }
    let hire = line.hire.clone();
    let mut hiring = Hiring::on(node, &hire, shutdown).await?;
    hiring.deposit = line.deposit;
    hiring.user.avoid(line.before.iter().flat_map(|past| past.loss.workers.iter().copied()));
    follow_on(config, hiring, Current { job, note, line }, follow, shutdown).await
}

/// Follows a training to its end, through as many jobs as it takes.
async fn follow_on(
    config: &Config,
    mut hiring: Hiring<'_>,
    mut current: Current,
    follow: Follow<'_>,
    shutdown: &CancellationToken,
) -> Result<()> {
    let journal = hiring.node.ports.journal.clone();
    let (mut fruitless, mut failed) = (0, None);
    loop {
        let Current { job, note, line } = &mut current;
        let follow = Follow { rules: line.rules, failover: line.failover, ..follow };
        let node = (&hiring.node, hiring.user.as_ref());
        // One that was interrupted while another job was looked for goes on with that.
        let loss = match line.lost.clone().filter(|_| line.failover.is_some()) {
            Some(loss) => Some(loss),
            None => watch::follow(config, node, (*job, note), &follow, &mut line.before, shutdown).await?,
        };
        let Some(loss) = loss else { break };
        line.lost = Some(loss.clone());
        line.write(&journal, *job)?;
        say!("job {job}: {loss}");
        match replaced(config, &mut hiring, &mut current, &loss, shutdown).await {
            Ok(true) => {
                let taken = current.line.before.last().map_or(0, |past| past.taken);
                fruitless = if taken == 0 { fruitless + 1 } else { 0 };
                if fruitless >= FRUITLESS {
                    say!("{fruitless} jobs in a row have come to nothing: there is no other after job {}", current.job);
                    give_up(&mut current, &journal)?;
                }
            }
            Ok(false) => give_up(&mut current, &journal)?,
            // Whoever follows it again goes on.
            Err(error) if shutdown.is_cancelled() => return Err(error),
            Err(error) => {
                let resumed = loss.misled_by().unwrap_or(current.job);
                let error = error.context(format!(
                    "job {} is not gone on with; `tensorlink job resume {resumed}` tries again",
                    current.job
                ));
                say!("{error:#}");
                give_up(&mut current, &journal)?;
                failed = Some(error);
                // Nobody waits for a worker that is gone, and the escrow comes back.
                if let Err(error) = patiently(async || close(&hiring.node, current.job).await).await {
                    say!("it is not closed ({error}); `tensorlink job cancel {}` does it later", current.job);
                }
            }
        }
    }
    hiring.node.net.shutdown().await;
    failed.map_or(Ok(()), Err)
}

/// No other job is posted for this one.
fn give_up(Current { job, line, .. }: &mut Current, journal: &Journal) -> Result<()> {
    (line.lost, line.failover) = (None, None);
    Ok(line.write(journal, *job)?)
}

/// Tries to go on with a job in another, which is the current one then. Whether there is something to go on with.
async fn replaced(
    config: &Config,
    hiring: &mut Hiring<'_>,
    current: &mut Current,
    loss: &Loss,
    shutdown: &CancellationToken,
) -> Result<bool> {
    let mut attempts = 1;
    loop {
        match go_on(config, hiring, current, loss, shutdown).await {
            Err(error) if attempts < ATTEMPTS && !shutdown.is_cancelled() => say!("{error:#}; trying again"),
            went_on => return went_on,
        }
        attempts += 1;
    }
}
