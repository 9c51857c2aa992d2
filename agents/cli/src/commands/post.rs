//! `tensorlink job post`: from a model and data to a running job.

use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::Serialize;
use tensorlink_graph::{CompiledStage, LanguageModel, Model};
use tensorlink_node::Ports;
use tensorlink_node::price::{multiply_adds, price_per_interval};
use tensorlink_types::abi::JobKind;
use tensorlink_types::{Address, U256};
use tensorlink_user::hire::Candidate;
use tensorlink_user::{Draft, publish};
use tokio_util::sync::CancellationToken;

use crate::amount::Wei;
use crate::args::PostArgs;
use crate::commands::hiring::{Hiring, Work};
use crate::config::Config;
use crate::{output, watch};

/// Largest data file, bytes; the parser has a bound of its own for what comes out of a compressed one.
const MAX_DATA: u64 = 1 << 30;

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
    /// Most of it that audits can take.
    pub audits: Wei,
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
    let (name, json) = (model_path.display().to_string(), read(model_path)?);
    let mismatch = || format!("{} with {}", model_path.display(), data_path.display());
    if LanguageModel::is_meant(&json) {
        let model = LanguageModel::parse(&name, &json)?;
        return Draft::language(&model, &read_data(data_path)?).with_context(mismatch);
    }
    let model = Model::parse(&name, &json)?;
    let weights = match model.weights() {
        Some(name) => {
            let path = model_path.parent().unwrap_or(Path::new("")).join(name);
            Some((path.display().to_string(), read(&path)?))
        }
        None => None,
    };
    let csv = read_data(data_path)?;
    let weights = weights.as_ref().map(|(name, bytes)| (name.as_str(), bytes.as_slice()));
    Draft::new(&model, &csv, weights).with_context(mismatch)
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
    run_on(config, args, shutdown, |ports| ports).await
}

/// Posts from a node whose world is `dress` of the real one.
pub async fn run_on(
    config: &Config,
    args: &PostArgs,
    shutdown: CancellationToken,
    dress: impl FnOnce(Ports) -> Ports,
) -> Result<()> {
    let draft = read_draft(&args.model, &args.data)?;
    let steps = draft.steps;
    let intervals = intervals(steps, args.steps_per_interval)?;
    let mut hiring = Hiring::look(config, &args.hire, &shutdown).await?;
    hiring.node.ports = dress(hiring.node.ports);
    let ranges = draft.cut(&hiring.memories())?;
    eprintln!("calibrating and compiling {} stages ...", ranges.len());
    let (draft, prepared) = {
        let ranges = ranges.clone();
        tokio::task::spawn_blocking(move || draft.compile(&ranges).map(|prepared| (draft, prepared))).await??
    };
    let prices = hiring.prices(|stage, per_gmac| {
        prepared.stages.get(stage).and_then(|s| price_per_interval(&s.program, args.steps_per_interval, per_gmac))
    })?;
    let audits = hiring.afford(&prices, intervals, 1)?;
    let quote = Quote {
        audits: Wei(audits),
        model: draft.name.clone(),
        parameters: draft.training.parameters(),
        stages: args.hire.stages,
        replicas: args.hire.replicas,
        steps,
        steps_per_interval: args.steps_per_interval,
        intervals,
        token: hiring.token_name(),
        deposit: Wei(hiring.deposit),
        estimate: estimate(&prepared.stages, &hiring.candidates, steps),
        worker_stake: hiring.worker_stake.into(),
        challenge_window: hiring.window,
        workers: hiring.candidates.iter().map(|candidate| candidate.address).collect(),
    };
    output::print(config.json, &quote, || show_quote(&quote))?;
    if args.hire.dry_run {
        return Ok(());
    }

    let published = publish(hiring.node.ports.store.as_ref(), &draft, &prepared).await?;
    let work = Work {
        kind: JobKind::Training,
        intervals,
        steps_per_interval: args.steps_per_interval,
        programs: published.programs.clone(),
        initial_states: published.initial_states.clone(),
        manifest: published.manifest,
    };
    let note = &published.note;
    let job = hiring.post(work, note).await?;
    hiring.start(job, &prices, &shutdown).await?;
    if args.watch {
        let report = args.report.as_deref();
        watch::follow(config, &hiring.node, &hiring.user, (job, note, report), &shutdown).await?;
    } else {
        eprintln!("job {job} runs; follow it with `tensorlink job watch {job}`");
    }
    hiring.node.net.shutdown().await;
    Ok(())
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
        ("audits", format!("up to {} {} of it", quote.audits, quote.token)),
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
