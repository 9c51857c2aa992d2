//! `tensorlink job post`: from a model and data to a running job.

use std::io::Read;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde::Serialize;
use tensorlink_graph::{CompiledStage, Model};
use tensorlink_node::ports::{Call, Event};
use tensorlink_node::price::{multiply_adds, price_per_interval};
use tensorlink_types::abi::{JobKind, JobTerms};
use tensorlink_types::{Address, JobId, Lane, U256};
use tensorlink_user::hire::{Candidate, Wanted};
use tensorlink_user::{Draft, JobNote, User, publish};
use tokio_util::sync::CancellationToken;

use crate::amount::{Wei, parse_amount};
use crate::args::{PostArgs, Token};
use crate::config::Config;
use crate::node::Node;
use crate::{output, watch};

/// Disk for a user's files, bytes.
pub const DISK: u64 = 10 << 30;
/// Largest data file, bytes; the parser has a bound of its own for what comes out of a compressed one.
const MAX_DATA: u64 = 1 << 30;
/// Seconds from posting to accepting, at most.
const ACCEPT_WITHIN: u64 = 900;

/// What a job will cost and risk, before anything is signed.
#[derive(Serialize)]
pub struct Quote {
    /// Name of the model.
    pub model: String,
    /// Numbers that are trained.
    pub parameters: u64,
    /// Workers in each replica's pipeline.
    pub stages: u16,
    /// Replicas of the pipeline, which check each other.
    pub replicas: u16,
    /// Optimiser steps.
    pub steps: u32,
    /// Steps that one claim covers.
    pub steps_per_interval: u32,
    /// Claims of each lane.
    pub intervals: u32,
    /// `SNO` or `ETH`, which the job pays in.
    pub token: &'static str,
    /// Escrow, in wei of the token.
    pub deposit: Wei,
    /// By the workers' adverts; binding prices come with their offers.
    pub estimate: Wei,
    /// Wei of SNO that each worker must have at risk in this job.
    pub worker_stake: Wei,
    /// Seconds in which a claim can be disproved.
    pub challenge_window: u64,
    /// Candidates that advertise enough memory, best first.
    pub workers: Vec<Address>,
}

/// Reads a model with the weights it names, and its data.
pub fn read_draft(model_path: &Path, data_path: &Path) -> Result<Draft> {
    let read = |path: &Path| std::fs::read(path).with_context(|| format!("cannot read {}", path.display()));
    let model = Model::parse(&model_path.display().to_string(), &read(model_path)?)?;
    let weights = match model.weights() {
        Some(name) => {
            let path = model_path.parent().unwrap_or(Path::new("")).join(name);
            Some((path.display().to_string(), read(&path)?))
        }
        None => None,
    };
    let csv = read_data(data_path)?;
    let weights = weights.as_ref().map(|(name, bytes)| (name.as_str(), bytes.as_slice()));
    Draft::new(model, &csv, weights).with_context(|| format!("{} with {}", model_path.display(), data_path.display()))
}

fn read_data(path: &Path) -> Result<Vec<u8>> {
    let file = std::fs::File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut text = Vec::new();
    let result = if path.extension().is_some_and(|extension| extension == "gz") {
        flate2::read::GzDecoder::new(file).take(MAX_DATA + 1).read_to_end(&mut text)
    } else {
        file.take(MAX_DATA + 1).read_to_end(&mut text)
    };
    result.with_context(|| format!("cannot read {}", path.display()))?;
    if text.len() as u64 > MAX_DATA {
        bail!("{} holds more than {MAX_DATA} bytes", path.display());
    }
    Ok(text)
}

/// Steps in whole intervals.
fn intervals(steps: u32, per_interval: u32) -> Result<u32> {
    if per_interval == 0 || !steps.is_multiple_of(per_interval) {
        let fitting: Vec<String> =
            (1..=steps).filter(|n| steps.is_multiple_of(*n)).rev().take(8).map(|n| n.to_string()).collect();
        bail!(
            "{steps} steps do not divide into intervals of {per_interval}: set --steps-per-interval to a divisor, \
             e.g. {}",
            fitting.join(", ")
        );
    }
    Ok(steps / per_interval)
}

/// Posts a job, hires, starts it.
pub async fn run(config: &Config, args: &PostArgs, shutdown: CancellationToken) -> Result<()> {
    let draft = read_draft(&args.model, &args.data)?;
    let intervals = intervals(draft.model.steps(), args.steps_per_interval)?;
    let deposit = parse_amount(&args.deposit)?;
    let worker_stake: u128 =
        parse_amount(&args.worker_stake)?.try_into().ok().context("--worker-stake is too large")?;

    let node = Node::start(config, DISK, &shutdown).await?;
    let token = match args.token {
        Token::Sno => node.ports.chain.deployment().sno,
        Token::Eth => Address::ZERO,
    };
    let parameters = node.ports.chain.parameters().await?;
    let window = args.challenge_window.map_or(parameters.min_challenge_window, u64::from);
    let user = User::start(node.ports.clone(), shutdown.clone()).await?;

    let lanes_needed = usize::from(args.stages) * usize::from(args.replicas);
    eprintln!("looking for {lanes_needed} staked workers ...");
    let patience = Duration::from_secs(args.patience);
    let candidates = tokio::select! {
        () = shutdown.cancelled() => bail!("interrupted; nothing was posted"),
        found = user.find_workers(lanes_needed, worker_stake, patience) => found?,
    };
    let ranges = draft.cut(&memories(&candidates, args.stages))?;
    eprintln!("calibrating and compiling {} stages ...", ranges.len());
    let (draft, prepared) = {
        let ranges = ranges.clone();
        tokio::task::spawn_blocking(move || draft.compile(&ranges).map(|prepared| (draft, prepared))).await??
    };
    let quote = Quote {
        model: draft.model.name().to_owned(),
        parameters: draft.parameters(),
        stages: args.stages,
        replicas: args.replicas,
        steps: draft.model.steps(),
        steps_per_interval: args.steps_per_interval,
        intervals,
        token: if args.token == Token::Sno { "SNO" } else { "ETH" },
        deposit: Wei(deposit),
        estimate: estimate(&prepared.stages, &candidates, draft.model.steps()),
        worker_stake: worker_stake.into(),
        challenge_window: window,
        workers: candidates.iter().map(|candidate| candidate.address).collect(),
    };
    output::print(config.json, &quote, || show_quote(&quote))?;
    if args.dry_run {
        return Ok(());
    }

    let published = publish(node.ports.store.as_ref(), &draft, &prepared).await?;
    let now = node.ports.chain.head().await?.timestamp;
    let terms = JobTerms {
        kind: JobKind::Training as u8,
        token,
        stages: args.stages,
        replicas: args.replicas,
        intervals,
        stepsPerInterval: args.steps_per_interval,
        acceptBy: (now + ACCEPT_WITHIN).try_into().ok().context("the chain's clock is out of range")?,
        duration: args.duration.try_into().ok().context("--duration is too long")?,
        challengeWindow: window.try_into().ok().context("--challenge-window is too long")?,
        workerStake: worker_stake,
        programs: published.programs.clone(),
        initialStates: published.initial_states.clone(),
        manifest: published.manifest.to_bytes().into(),
    };
    let receipt = node.ports.chain.send(Call::Post { terms, deposit }).await?;
    let job = receipt.events.iter().find_map(|event| match event {
        Event::JobPosted { job, .. } => Some(*job),
        _ => None,
    });
    let job = job.context("the post was mined without its event; is this the right deployment?")?;
    node.ports.journal.write(&note_name(job), &published.note)?;
    eprintln!("job {job} is posted (gas {}); asking for offers ...", receipt.gas);

    let hired = match wanted(job, &prepared.stages, args.steps_per_interval, &candidates) {
        Ok(lanes) => hire(&user, job, &lanes, &shutdown).await,
        Err(error) => Err(error),
    };
    if let Err(error) = hired {
        eprintln!("job {job} does not start; cancelling it to get the escrow back");
        let cancelled = async {
            node.ports.chain.send(Call::Cancel { job }).await?;
            node.ports.chain.send(Call::Collect { token }).await
        };
        return match cancelled.await {
            Ok(_) => Err(error.context(format!("job {job} was cancelled and its escrow returned"))),
            Err(also) => Err(error.context(format!(
                "job {job} could not be cancelled either ({also}): `tensorlink job cancel {job}` later"
            ))),
        };
    }
    if args.watch {
        let report = args.report.as_deref();
        watch::follow(config, &node, &user, (job, &published.note, report), &shutdown).await?;
    } else {
        eprintln!("job {job} runs; follow it with `tensorlink job watch {job}`");
    }
    node.net.shutdown().await;
    Ok(())
}

/// Name of the record a user keeps of a job.
pub fn note_name(job: JobId) -> String {
    format!("job-{job}")
}

/// The record a user keeps of a job.
pub fn read_note(node: &Node, job: JobId) -> Result<JobNote> {
    let note = node.ports.journal.read(&note_name(job))?;
    note.with_context(|| format!("this node did not post job {job}: use the data directory of the one that did"))
}

/// The lanes of a job, each with the candidate for it and the price that it advertised.
fn wanted(job: JobId, stages: &[CompiledStage], steps: u32, candidates: &[Candidate]) -> Result<Vec<Wanted>> {
    let want = |(index, candidate): (usize, &Candidate)| {
        let Candidate { address: worker, advert } = candidate;
        let number = index % stages.len().max(1);
        let stage = stages.get(number).context("there are no stages")?;
        let lane = Lane { job, stage: number.try_into()?, replica: (index / stages.len()).try_into()? };
        let limit = price_per_interval(&stage.program, steps, advert.price_per_gmac);
        let limit = limit.with_context(|| format!("{worker} advertises a price beyond what an offer can hold"))?;
        Ok(Wanted { lane, worker: *worker, limit })
    };
    candidates.iter().enumerate().map(want).collect()
}

async fn hire(user: &User, job: JobId, lanes: &[Wanted], shutdown: &CancellationToken) -> Result<()> {
    let work = async {
        let (offers, signatures): (Vec<_>, Vec<_>) = user.collect_offers(lanes).await?.into_iter().unzip();
        let price: U256 = offers.iter().map(|offer| U256::from(offer.pricePerInterval)).sum();
        eprintln!("{} offers; an interval costs {}", offers.len(), Wei(price));
        let receipt = user.ports.chain.send(Call::Accept { job, offers, signatures }).await?;
        eprintln!("accepted (gas {}); waiting for the workers ...", receipt.gas);
        user.wait_until_ready(job, lanes).await?;
        let receipt = user.ports.chain.send(Call::Start { job }).await?;
        eprintln!("started (gas {})", receipt.gas);
        Ok(())
    };
    tokio::select! {
        () = shutdown.cancelled() => bail!("interrupted"),
        result = work => result,
    }
}

/// For each stage, the least memory among its replicas' workers.
fn memories(candidates: &[Candidate], stages: u16) -> Vec<u64> {
    let of_stage = |stage: usize| {
        let workers = candidates.iter().skip(stage).step_by(usize::from(stages.max(1)));
        workers.map(|candidate| candidate.advert.memory).min().unwrap_or(0)
    };
    (0..usize::from(stages)).map(of_stage).collect()
}

fn estimate(stages: &[CompiledStage], candidates: &[Candidate], steps: u32) -> Wei {
    let price = |(index, candidate): (usize, &Candidate)| {
        let stage = stages.get(index % stages.len().max(1));
        let work = stage.map_or(0, |stage| multiply_adds(&stage.program));
        U256::from(work) * U256::from(steps) * U256::from(candidate.advert.price_per_gmac) / U256::from(1_000_000_000)
    };
    Wei(candidates.iter().enumerate().map(price).sum())
}

fn show_quote(quote: &Quote) -> String {
    output::table(&[
        ("model", format!("{}, {} parameters", quote.model, quote.parameters)),
        ("pipeline", format!("{} stages x {} replicas", quote.stages, quote.replicas)),
        ("steps", format!("{} in {} intervals of {}", quote.steps, quote.intervals, quote.steps_per_interval)),
        (
            "price",
            format!(
                "about {} {} of {} {} in escrow; the rest comes back",
                quote.estimate, quote.token, quote.deposit, quote.token
            ),
        ),
        ("at risk", format!("{} SNO per worker", quote.worker_stake)),
        ("final after", format!("{} s unchallenged", quote.challenge_window)),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_must_divide_into_intervals() {
        assert_eq!(intervals(400, 50).unwrap(), 8);
        let error = intervals(400, 60).unwrap_err().to_string();
        assert!(error.contains("200") && error.contains("400"), "{error}");
        assert!(intervals(400, 0).is_err());
    }
}
