//! A job that lost a worker is ended, and another started with the rest of its work.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use tensorlink_node::ports::chain::{ChainError, JobState, JobView};
use tensorlink_node::ports::{Call, Event};
use tensorlink_types::{JobId, U256};
use tensorlink_user::{Claims, HireError, ResultError, ResumeError};
use tokio_util::sync::CancellationToken;

use super::Current;
use super::line::{Line, onward};
use crate::amount::{Wei, parse_amount};
use crate::commands::hiring::Hiring;
use crate::commands::rest::{Rest, fetch, show, uncut};
use crate::config::Config;
use crate::live::say;
use crate::node::Node;
use crate::output;
use crate::watch::{Loss, Past, close, patiently, wind_up};

/// Time for the newest states to be kept once a job is closed.
const KEEPING: Duration = Duration::from_secs(3);
/// Wait between two looks for states, and for an escrow.
const LOOK: Duration = Duration::from_millis(500);

/// Ends the current job, which lost a worker, and starts another with the rest of its work, or of an earlier one's if
/// that is where it went wrong: the current one is that then. False where all of the work is claimed.
pub(super) async fn go_on(
    config: &Config,
    hiring: &mut Hiring<'_>,
    current: &mut Current,
    loss: &Loss,
    shutdown: &CancellationToken,
) -> Result<bool> {
    let (chain, journal) = (hiring.node.ports.chain.clone(), hiring.node.ports.journal.clone());
    let Current { job, note, line } = current;
    let view = patiently(async || chain.job(*job).await).await?.context("the job was undone by a reorganisation")?;
    // Where it began with what was proved wrong, what it has computed is worth nothing.
    let wrong = loss.misled_by().and_then(|of| line.before.iter().find(|past| past.view.id == of));
    let (former, former_note, put_up) = match wrong {
        Some(past) => (past.view.clone(), past.note.clone(), past.deposit),
        None => (view.clone(), note.clone(), line.deposit),
    };
    let (replica, claimed) = patiently(async || hiring.user.furthest(&former).await).await?;
    if claimed >= former.intervals {
        return Ok(false);
    }
    patiently(async || close(&hiring.node, *job).await).await?;
    cancel_unbegun(hiring, former.id).await?;
    // Before the job is settled: then nobody need have its states any more.
    let mut most = claimed;
    let (resumption, from) = loop {
        let from = newest(hiring, &former, (replica, most)).await?;
        match fetch(&hiring.user, (&former, &former_note), (from, Claims::Of(replica))).await {
            // Whoever says that it has a state may not give it.
            Err(error) if from > 0 && is_withheld(&error) => most = from - 1,
            fetched => break (fetched?, from),
        }
    };
    let left = U256::from(former.intervals.saturating_sub(from));
    let share = put_up.saturating_mul(left).div_ceil(U256::from(former.intervals.max(1)));
    await_escrow(hiring, (&view, line), share, shutdown).await?;

    hiring.user.avoid(loss.workers.iter().copied());
    let uncut = uncut(&hiring.user, &resumption).await;
    if let Err(error) = hiring.look_for(former.stages, config, shutdown).await {
        let Some(HireError::TooFew(few)) = error.downcast_ref().filter(|_| uncut.is_some()) else { return Err(error) };
        let stages = few.found / usize::from(former.replicas.max(1));
        if stages == 0 {
            return Err(error);
        }
        say!("{} of {} workers answer: it goes on in fewer stages, {stages}", few.found, few.needed);
        let stages = u16::try_from(stages)?;
        hiring.look_for(stages, config, shutdown).await?;
    }
    hiring.deposit = parse_amount(&hiring.args().deposit)?;
    let rest = Rest::hire(hiring, (&former, from), (resumption, uncut), share, shutdown).await?;
    output::print(config.json, &rest.quote, || show(&rest.quote))?;

    let next = hiring.post(rest.work, &rest.note).await?;
    let (view, note, deposit) = (view, note.clone(), line.deposit);
    let past = Past { view, note, replica: 0, taken: 0, deposit, loss: loss.clone(), settled: false };
    let before = onward(line.before.clone(), past, former.id, (replica, from));
    let next_line = Line {
        rules: line.rules.within(rest.bounds),
        deposit: hiring.deposit,
        before,
        lost: None,
        next: None,
        ..line.clone()
    };
    // Before it runs: a kill must not leave a job that nobody knows to go on with.
    next_line.write(&journal, next)?;
    line.next = Some(next);
    line.write(&journal, *job)?;
    if let Err(error) = hiring.start(next, &rest.prices, shutdown).await {
        line.next = None;
        line.write(&journal, *job)?;
        return Err(error);
    }
    say!("job {next} goes on after {from} of {} intervals of job {}", former.intervals, former.id);
    *current = Current { job: next, note: rest.note, line: next_line };
    Ok(true)
}

/// Whether nobody gave a state.
fn is_withheld(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(ResumeError::Result(ResultError::Withheld { .. })))
}

/// Whether a job of ours that was posted to go on with another has begun; if not, it is cancelled: whoever posted it
/// was interrupted.
pub(in crate::commands) async fn is_begun(node: &Node, job: JobId) -> Result<bool, ChainError> {
    let view = patiently(async || node.ports.chain.job(job).await).await?;
    // After a reorganisation the number may be another's.
    let Some(view) = view.filter(|view| view.user == node.ports.identity.address()) else { return Ok(false) };
    if matches!(view.state, JobState::Posted | JobState::Accepted) {
        node.ports.chain.send(Call::Cancel { job }).await?;
    }
    Ok(view.started_at > 0)
}

/// Cancels what was posted to go on with a job and has not begun.
async fn cancel_unbegun(hiring: &Hiring<'_>, former: JobId) -> Result<(), ChainError> {
    let posted = |event: &Event| match event {
        Event::JobPosted { job, terms, .. } if terms.continues == former.0 => Some(*job),
        _ => None,
    };
    let jobs: Vec<JobId> = hiring.user.events().borrow().iter().filter_map(|at| posted(&at.event)).collect();
    for job in jobs {
        is_begun(&hiring.node, job).await?;
    }
    Ok(())
}

/// Waits until the account has so much, as escrows of jobs that were given up come back.
async fn await_escrow(
    hiring: &Hiring<'_>,
    (view, line): (&JobView, &mut Line),
    least: U256,
    shutdown: &CancellationToken,
) -> Result<()> {
    let (ports, user) = (&hiring.node.ports, hiring.user.as_ref());
    let own = ports.identity.address();
    let (mut told, mut all_settled) = (false, false);
    loop {
        let has = patiently(async || ports.chain.balance(own, hiring.asked.token).await).await?;
        if has >= least {
            return Ok(());
        }
        let (needed, token) = (Wei(least), hiring.token_name());
        ensure!(!all_settled, "to go on takes about {needed} {token}, and the account has {}", Wei(has));
        if !told {
            say!("to go on takes about {needed} {token}; waiting until the escrow of job {} is back ...", view.id);
            told = true;
        }
        all_settled = wind_up(&hiring.node, user, view).await?;
        for past in &mut line.before {
            past.settled = past.settled || wind_up(&hiring.node, user, &past.view).await?;
            all_settled &= past.settled;
        }
        tokio::select! {
            () = shutdown.cancelled() => bail!("interrupted"),
            () = ports.clock.sleep(LOOK) => {}
        }
    }
}

/// The most intervals of a replica, of so many, after which somebody has each stage's state, once those that have just
/// been claimed are kept.
async fn newest(hiring: &Hiring<'_>, former: &JobView, (replica, most): (u16, u32)) -> Result<u32> {
    let (user, clock) = (&hiring.user, &hiring.node.ports.clock);
    let until = clock.now().saturating_add(KEEPING.as_secs());
    loop {
        let kept = user.newest_kept(former, (replica, most)).await?;
        if kept == Some(most) || clock.now() >= until {
            let job = former.id;
            return kept.with_context(|| {
                format!(
                    "nobody gives the states after any of {most} intervals of job {job}: with --from 0, \
                     `tensorlink job resume {job}` begins anew"
                )
            });
        }
        clock.sleep(LOOK).await;
    }
}
