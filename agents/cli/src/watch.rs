//! Follows a job to its end: a live view, then settlement, the trained model, and what everything came to.

mod balance;
mod ending;
mod evaluation;
mod hearing;
mod lanes;
mod losses;
mod model;
mod serving;
mod settling;
mod silence;
mod stops;
mod summary;
mod told;

use std::io::IsTerminal;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use tensorlink_node::ports::ChainError;
use tensorlink_node::ports::chain::JobView;
use tensorlink_training::Metrics;
use tensorlink_types::{Address, JobId};
use tensorlink_user::{JobNote, User};
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;

use crate::config::Config;
use crate::live::{self, say};
use crate::node::Node;
use crate::output;
use crate::tiers::Tiers;

use self::balance::Balance;
use self::ending::{Ending, heard};
use self::evaluation::{Evaluation, Tested};
use self::lanes::{Lanes, News};
use self::losses::{Losses, misled};
use self::settling::{collect, gas, given};
use self::silence::Silence;
use self::stops::Judge;
use self::summary::{Summary, show, write};

pub use hearing::Hearing;
pub use losses::{Loss, Past, Why, convicted, convicts};
pub use model::{Learned, exportable};
pub use serving::serving;
pub use settling::{close, wind_up};
pub use stops::{Early, Rules, Stop};

/// Time between two looks at the chain, and between two plain lines.
const PERIOD: Duration = Duration::from_secs(1);
/// Longest outage of the endpoint that is waited for.
const OUTAGE: Duration = Duration::from_secs(600);

/// How a training job is followed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Follow<'a> {
    /// File for what the job came to, as JSON.
    pub report: Option<&'a Path>,
    /// New folder for the model.
    pub out: Option<&'a Path>,
    /// What ends the job before its last interval, unless it was followed before: then what ended it then.
    pub rules: Rules,
    /// Silence of a worker after which the job is given up, to go on in another; none: never.
    pub failover: Option<Duration>,
}

/// Follows a job until it is settled, with those before it that were given up, then reports; or until it is to be given
/// up itself: then why.
pub async fn follow(
    config: &Config,
    (node, user): (&Node, &User),
    (job, note): (JobId, &JobNote),
    follow: &Follow<'_>,
    before: &mut [Past],
    shutdown: &CancellationToken,
) -> Result<Option<Loss>> {
    let started = Instant::now();
    let view =
        patiently(async || node.ports.chain.job(job).await).await?.with_context(|| format!("there is no job {job}"))?;
    if let Some(out) = follow.out {
        exportable(&note.name, (note.architecture.as_ref(), note.base.as_ref()), out)?;
    }
    let mut balance = Balance::new(job, user);
    let tiers = known_tiers(node, job);
    let watched = tokio::select! {
        () = shutdown.cancelled() => {
            let out = follow.out.map_or(String::new(), |out| format!(" --out {}", out.display()));
            bail!("interrupted; the job goes on without this command: `tensorlink job watch {job}{out}` takes it up again")
        }
        watched = watch(config, (node, user), (&view, note, follow), &tiers, &mut balance, before) => watched?,
    };
    let (lanes, evaluations, stopped) = match watched {
        Watched::Settled(lanes, evaluations, stopped) => (lanes, evaluations, stopped),
        Watched::Lost(loss) => return Ok(Some(loss)),
    };
    let seconds = started.elapsed().as_secs_f64();
    collect(node, &view).await;
    let mut report = balance.settled().await?;
    let before_it = given((node, user), before).await?;
    // Only now is all of what it began with beyond dispute.
    let misled = misled(&user.events().borrow(), before);
    if misled.is_some() && follow.failover.is_some() {
        return Ok(misled);
    }

    let intervals = patiently(async || user.final_everywhere(&view).await).await?;
    let wanted = misled.is_none() && (intervals >= view.intervals || stopped.is_some() || follow.out.is_some());
    let taken = if wanted { Some(model::take(user, (&view, note), intervals, follow.out).await) } else { None };
    // What was paid is told in any case.
    let (taken, failed) = match taken.transpose() {
        Ok(taken) => (taken, None),
        Err(error) => (None, Some(error)),
    };
    let (metrics, final_states) = taken.unzip();
    let gas = gas(node, &mut report).await?;
    let summary = Summary {
        job,
        stopped,
        intervals,
        out: follow.out.filter(|_| metrics.is_some()),
        held_out_percent: metrics.as_ref().map(|metrics| metrics.accuracy() * 100.0),
        held_out_loss: metrics.as_ref().map(Metrics::loss),
        held_out_rows: metrics.as_ref().map_or(0, |metrics| metrics.rows),
        evaluations,
        saturation: lanes.saturation(),
        final_states: final_states.unwrap_or_default(),
        workers_paid: report.paid.len(),
        slashed: report.slashed(),
        seconds,
        steps: lanes.step(),
        bytes_moved: lanes.bytes(),
        commitment_share: lanes.commitment_share(),
        gas,
        tiers,
        before: before_it,
        report: &report,
    };
    write(follow.report, &summary)?;
    output::print(config.json, &summary, || show(&summary, &view, note.label()))?;
    if let Some(wrong) = misled.and_then(|loss| loss.misled_by()) {
        bail!(
            "job {job} began with a state of job {wrong} that was proved wrong: `tensorlink job resume {wrong}` goes on from \
             before that"
        );
    }
    failed.map_or(Ok(None), Err)
}

/// The tiers of a job's workers, as far as this data folder knows them; says how many are of each.
fn known_tiers(node: &Node, job: JobId) -> Tiers {
    let tiers = Tiers::read(&node.ports.journal, job).unwrap_or_else(|error| {
        tracing::warn!("the tiers of the workers of job {job} cannot be read: {error}");
        Tiers::default()
    });
    let counted = tiers.counted();
    if !counted.is_empty() {
        say!("workers of job {job}: {counted}");
    }
    tiers
}

fn token(view: &JobView) -> &'static str {
    if view.token == Address::ZERO { "ETH" } else { "SNO" }
}

/// How the live view ends.
enum Watched {
    /// The job's settlement is confirmed: its lanes, tests on the way, and why it was stopped early, if it was.
    Settled(Lanes, Vec<Tested>, Option<Stop>),
    /// It is to be given up.
    Lost(Loss),
}

/// The live view, until the job's settlement is confirmed, or it is to be given up.
async fn watch(
    config: &Config,
    (node, user): (&Node, &User),
    (view, note, follow): (&JobView, &JobNote, &Follow<'_>),
    tiers: &Tiers,
    balance: &mut Balance,
    before: &mut [Past],
) -> Result<Watched> {
    let job = view.id;
    let steps = view.intervals * view.steps_per_interval;
    let bar = (!config.json && std::io::stderr().is_terminal()).then(|| {
        let bar = ProgressBar::new(u64::from(steps));
        if let Ok(style) = ProgressStyle::with_template("{bar:24} {pos}/{len} {msg}") {
            bar.set_style(style);
        }
        (live::View::show(bar.clone()), bar)
    });
    let (mut progress, mut lanes) = (user.progress(), Lanes::default());
    let parameters = patiently(async || node.ports.chain.parameters().await).await?;
    let mut silence = Silence::new(job, user, tiers.clone(), parameters.seal_window);
    let mut shown = None;
    let journal = &node.ports.journal;
    let mut judge = Judge::of(journal, view, follow.rules)?;
    let mut losses = Losses::new(follow.failover);
    let mut ending = Ending::of(&judge, job);
    let (every, tested) = judge.tests();
    let mut evaluation = Evaluation::new(user, (view, note), every, tested);
    let mut ticks = tokio::time::interval(PERIOD);
    while balance.report.refund.is_none() {
        tokio::select! {
            update = progress.recv() => match update {
                Ok(update) if update.job() == job => {
                    if heard(&mut judge, view, &update) {
                        judge.keep(journal, job);
                        ending = Ending::of(&judge, job);
                    }
                    lanes.hear(update);
                }
                Ok(_) | Err(RecvError::Lagged(_)) => continue,
                Err(RecvError::Closed) => bail!("the node is shutting down"),
            },
            told = balance.go_on() => told?,
            (intervals, tested) = evaluation.next() => match tested {
                Ok(tested) => {
                    judge.tested(intervals, tested.loss);
                    judge.keep(journal, job);
                    ending = ending.or_else(|| Ending::of(&judge, job));
                }
                Err(error) => tracing::warn!(%job, intervals, %error, "not tested on held-out rows"),
            },
            _ = ticks.tick() => {
                if let Some(ending) = &ending {
                    ending.go_on(node, view, &balance.report).await?;
                }
                wind_up(node, user, view).await?;
                for past in before.iter_mut().filter(|past| !past.settled) {
                    past.settled = wind_up(node, user, &past.view).await?;
                }
                silence.look(view, user, config.json)?;
                if ending.is_none() {
                    if let Some(loss) = losses.look(&mut silence, (view, user, &lanes), before) {
                        return Ok(Watched::Lost(loss));
                    }
                    evaluation.begin(balance.report.claimed_everywhere(view.stages));
                }
            }
        }
        let silent = silence.line();
        let told = (&balance.report, evaluation.done.last(), silent.as_deref());
        let line = lanes.line(view, (note.labels_per_step, note.label()), told);
        match &bar {
            Some((_, bar)) => {
                bar.set_position(u64::from(lanes.step()));
                bar.set_message(line);
            }
            None if !config.json => {
                let now = lanes.news(told);
                if shown.as_ref().is_none_or(|(at, last): &(Instant, News)| at.elapsed() >= PERIOD && *last != now) {
                    say!("step {}/{steps} {line}", lanes.step());
                    shown = Some((Instant::now(), now));
                }
            }
            None => {}
        }
    }
    if let Some((view, bar)) = bar {
        bar.finish();
        drop(view);
    }
    Ok(Watched::Settled(lanes, evaluation.done, ending.map(|ending| ending.why)))
}

/// Asks the chain until it answers, through an outage of its endpoint.
pub async fn patiently<T, F>(mut ask: impl FnMut() -> F) -> Result<T, ChainError>
where
    F: Future<Output = Result<T, ChainError>>,
{
    let asked = Instant::now();
    loop {
        match ask().await {
            Err(error @ ChainError::Unavailable(_)) if asked.elapsed() < OUTAGE => {
                tracing::warn!(%error, "waiting for the chain");
                tokio::time::sleep(PERIOD).await;
            }
            answer => return answer,
        }
    }
}
