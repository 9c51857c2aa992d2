//! A training that goes on by itself when a worker is lost: in another job, on other workers, from the newest states
//! that somebody keeps. What comes out is the same bits (rule P-38).

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tensorlink_node::ports::Call;
use tensorlink_node::ports::chain::{ChainError, JobState, JobView};
use tensorlink_types::{JobId, U256};
use tensorlink_user::{Claims, JobNote};
use tokio_util::sync::CancellationToken;

use crate::amount::{Wei, parse_amount};
use crate::commands::hiring::Hiring;
use crate::commands::rest::{Rest, show};
use crate::config::Config;
use crate::live::say;
use crate::watch::{Follow, Loss, Past, patiently};
use crate::{output, watch};

/// Jobs in a row that may end before they have claimed anything.
const FRUITLESS: u32 = 3;
/// Attempts to start another job.
const ATTEMPTS: u32 = 2;
/// Time for the newest states to be kept once a job is closed.
const KEEPING: Duration = Duration::from_secs(3);

/// Follows a training to its end, through as many jobs as it takes.
pub(super) async fn follow(
    config: &Config,
    mut hiring: Hiring<'_>,
    (mut job, note): (JobId, &JobNote),
    mut follow: Follow<'_>,
    shutdown: &CancellationToken,
) -> Result<()> {
    let (mut note, mut before) = (note.clone(), Vec::new());
    let (mut fruitless, mut failed) = (0, None);
    loop {
        let node = (&hiring.node, hiring.user.as_ref());
        let Some(loss) = watch::follow(config, node, (job, &note), &follow, &mut before, shutdown).await? else {
            break;
        };
        say!("job {job}: {loss}");
        let mut attempts = 1;
        let went_on = loop {
            let lost = ((job, &note), &loss);
            match go_on(config, &mut hiring, lost, &mut before, shutdown).await {
                Err(error) if attempts < ATTEMPTS && !shutdown.is_cancelled() => say!("{error:#}; trying again"),
                went_on => break went_on,
            }
            attempts += 1;
        };
        match went_on {
            Ok(Some((next, its_note))) => {
                fruitless = if before.last().is_some_and(|past: &Past| past.taken > 0) { 0 } else { fruitless + 1 };
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
/// where it went wrong. What is past is then among those before. Nothing where all of the work is claimed.
async fn go_on(
    config: &Config,
    hiring: &mut Hiring<'_>,
    ((job, note), loss): ((JobId, &JobNote), &Loss),
    before: &mut Vec<Past>,
    shutdown: &CancellationToken,
) -> Result<Option<(JobId, JobNote)>> {
    let chain = hiring.node.ports.chain.clone();
    let view = patiently(async || chain.job(job).await).await?.context("the job was undone by a reorganisation")?;
    // Where it began with what was proved wrong, what it has computed is worth nothing.
    let (former, its_note) = match loss.misled_by().and_then(|of| before.iter().find(|past| past.view.id == of)) {
        Some(past) => (past.view.clone(), past.note.clone()),
        None => (view.clone(), note.clone()),
    };
    let put_up = hiring.deposit;
    let all = parse_amount(hiring.deposit_said())?;
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
    hiring.deposit = all;
    let left = share(former.intervals.saturating_sub(from));
    let rest = Rest::hire(hiring, (&former, &its_note), (from, Claims::Committed), left, shutdown).await?;
    output::print(config.json, &rest.quote, || show(&rest.quote))?;
    let next = hiring.post(rest.work, &rest.note).await?;
    hiring.start(next, &rest.prices, shutdown).await?;
    say!("job {next} goes on after {from} of {} intervals of job {}", former.intervals, former.id);
    before.push(Past { view, note: note.clone(), taken: 0, loss: loss.clone(), settled: false });
    // Of those after it nothing is left.
    for past in before.iter_mut().skip_while(|past| past.view.id != former.id) {
        past.taken = if past.view.id == former.id { from } else { 0 };
    }
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
