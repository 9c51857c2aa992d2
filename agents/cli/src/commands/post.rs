//! `tensorlink job post`: from a model and data to a running job.
#![allow(missing_docs, reason = "doc comments on arguments are the help texts; clap shows the rest by name")]

use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use serde::Serialize;
use tensorlink_folder::ModelFolder;
use tensorlink_model::Output;
use tensorlink_model::partition::PartitionError;
use tensorlink_node::Ports;
use tensorlink_node::footprint::Footprint;
use tensorlink_node::price::{multiply_adds, price_per_interval};
use tensorlink_tensor::Device;
use tensorlink_tensor::float::{FloatRun, Precision};
use tensorlink_training::data::Census;
use tensorlink_training::data::labelled::LabelledTexts;
use tensorlink_training::model::Imported;
use tensorlink_training::model::language::Origin;
use tensorlink_training::{CompiledStage, DataError, LanguageModel, Model, Training, TrainingSet};
use tensorlink_types::{Address, U256};
use tensorlink_user::fit::least_even;
use tensorlink_user::hire::Candidate;
use tensorlink_user::{Draft, PrepareError, Prepared, publish};
use tokio_util::sync::CancellationToken;

use crate::amount::Wei;
use crate::commands::failover;
use crate::commands::follow::FollowArgs;
use crate::commands::hiring::{Aim, HireArgs, Hiring, RingLane, Work};
use crate::config::Config;
use crate::live::say;
use crate::output;
use crate::watch::{Follow, exportable};

#[derive(Args, Debug)]
pub struct PostArgs {
    /// Model file (JSON).
    #[arg(long, value_name = "FILE")]
    pub model: PathBuf,
    /// Training data (optionally .gz): CSV with the label in the last column; for a language model, a text.
    #[arg(long, value_name = "FILE")]
    pub data: PathBuf,
    /// Steps between two claims.
    #[arg(long, default_value_t = 50)]
    pub steps_per_interval: u32,
    /// Deal each step's sequences out in so many shares: the stages are as many pipelines, each with the whole model,
    /// and all end every step in the same state. For language models.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub shares: u16,
    #[command(flatten)]
    pub hire: HireArgs,
    #[command(flatten)]
    pub follow: FollowArgs,
}

/// Largest data file, bytes; the parser has a bound of its own for what comes out of a compressed one.
const MAX_DATA: u64 = 1 << 30;

/// Classes that a quote shows for people.
const CLASSES: usize = 12;

/// What is to be posted, and how.
pub struct Order<'a> {
    /// The model with its data.
    pub draft: Draft,
    /// Steps between two claims.
    pub steps_per_interval: u32,
    /// Workers and terms.
    pub hire: &'a HireArgs,
    /// How the job is followed to its end, if it is.
    pub follow: Option<Follow<'a>>,
}

/// What a job will cost and risk, before anything is signed.
#[derive(Serialize)]
pub struct Quote {
    /// Name of the model.
    pub model: String,
    /// What the data hold, if they are rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Census>,
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
    /// What it takes in all, by what the workers say of their speed.
    pub seconds: f64,
    /// Escrow, in wei of the token.
    pub deposit: Wei,
    /// Most of it that audits can take.
    pub audit_budget: Wei,
    /// By the workers' adverts; binding prices come with their offers.
    pub estimate: Wei,
    /// Wei of SNO that each worker must have at risk in this job.
    pub worker_stake: Wei,
    /// Seconds in which a claim can be disproved.
    pub challenge_window: u64,
    /// Who is asked, lane by lane.
    pub workers: Vec<Address>,
    /// Layers of each stage of a share, `first..end`.
    pub layers: Vec<Range<usize>>,
    /// How each lane is expected to go, lane by lane.
    pub ring: Vec<RingLane>,
}

/// Reads a model with the weights it names, and its data.
pub fn read_draft(model_path: &Path, data_path: &Path) -> Result<Draft> {
    let folder = model_path.parent().unwrap_or(Path::new(""));
    draft((&model_path.display().to_string(), &read(model_path)?), folder, data_path)
}

/// As [`read_draft`], of a model file's name and content; what it names lies in `folder`.
pub fn draft((name, json): (&str, &[u8]), folder: &Path, data_path: &Path) -> Result<Draft> {
    let mismatch = || format!("{name} with {}", data_path.display());
    if LanguageModel::is_meant(json) {
        let model = LanguageModel::parse(name, json)?;
        return read_language(&model, folder, data_path).with_context(mismatch);
    }
    let model = Model::parse(name, json)?;
    let weights = match model.weights() {
        Some(name) => {
            let path = folder.join(name);
            Some((path.display().to_string(), read(&path)?))
        }
        None => None,
    };
    let csv = read_data(data_path)?;
    let weights = weights.as_ref().map(|(name, bytes)| (name.as_str(), bytes.as_slice()));
    Draft::new(&model, &csv, weights).with_context(mismatch)
}

/// A decoder with its text, an encoder with its labelled texts, or the model of a folder with either in its tokens.
fn read_language(model: &LanguageModel, folder: &Path, data_path: &Path) -> Result<Draft> {
    let text = read_data(data_path)?;
    let imported = match model.origin() {
        Origin::Decoder(decoder) => return Ok(Draft::language(model, decoder, &text)?),
        Origin::Encoder(encoder) => return Ok(Draft::encoder(model, encoder, &text)?),
        Origin::From(imported) => imported,
    };
    let path = folder.join(&imported.folder);
    let path = path.canonicalize().unwrap_or(path);
    let folder = ModelFolder::open(&path)?;
    if !folder.architecture().causal {
        return read_encoder(model, imported, (&path, &folder), &text);
    }
    let text = String::from_utf8(text).map_err(|error| DataError::NotUtf8(error.utf8_error().valid_up_to()))?;
    let ids = folder.tokenizer().encode_all(&text)?;
    Ok(Draft::imported(model, imported, (&path, folder.architecture(), &folder.weights()?), ids)?)
}

/// The encoder of a folder with labelled texts in its tokens.
fn read_encoder(
    model: &LanguageModel,
    imported: &Imported,
    (path, folder): (&Path, &ModelFolder),
    csv: &[u8],
) -> Result<Draft> {
    ensure!(
        folder.architecture().output != Output::Classes(1),
        "{} scores pairs of texts, and classes are learnt of single ones: name an encoder without a head, or with classes",
        path.display()
    );
    let (description, texts) = (folder.description(), LabelledTexts::parse(csv)?);
    let texts = if description.classes.is_empty() { texts } else { texts.numbered(&description.classes)? };
    let ids = texts.texts.iter().map(|text| folder.tokenizer().encode_cut(text, imported.context as usize));
    let ids = ids.collect::<Result<Vec<_>, _>>()?;
    Ok(Draft::imported_encoder(model, imported, (path, description, folder.weights()?), (&texts, ids))?)
}

/// Calibrates and compiles: a language model by libtorch on this machine's processor, as the plain float interpretation
/// would take long and keep all of a step. The same draft comes to the same programs again on the same machine.
///
/// # Errors
/// [`PrepareError`].
pub fn compile(draft: &Draft, ranges: &[Range<usize>]) -> Result<Prepared, PrepareError> {
    let by_libtorch = |training: &Training, data: &TrainingSet, steps, seed| {
        let start = |graph, floats, state| {
            FloatRun::new(graph, &floats, state, (Device::Cpu, Precision::F32)).map_err(Into::into)
        };
        training.calibrate_by(start, data, steps, seed)
    };
    match draft.architecture {
        Some(_) => draft.compile(ranges, by_libtorch),
        None => draft.compile(ranges, Training::calibrate),
    }
}

fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))
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
            "{steps} steps do not divide into intervals of {per_interval}: set the steps per interval to a divisor, \
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
    let order = Order {
        draft: draft.shared(args.shares)?,
        steps_per_interval: args.steps_per_interval,
        hire: &args.hire,
        follow: args.follow.follow(),
    };
    place(config, order, shutdown, dress).await
}

/// Posts what was ordered, hires, starts it, and follows it if that was asked for.
pub async fn place(
    config: &Config,
    Order { draft, steps_per_interval, hire, follow }: Order<'_>,
    shutdown: CancellationToken,
    dress: impl FnOnce(Ports) -> Ports,
) -> Result<()> {
    let steps = draft.steps;
    let intervals = intervals(steps, steps_per_interval)?;
    if let Some(out) = follow.and_then(|follow| follow.out) {
        exportable(&draft.name, (draft.architecture.as_ref(), draft.base.as_ref()), out)?;
    }
    let mut hiring = Hiring::look(config, hire, &shutdown).await?;
    hiring.node.ports = dress(hiring.node.ports);
    let shares = draft.training.shares();
    let cut = |memories: &[u64]| match draft.cut(memories) {
        Err(PrepareError::Partition(PartitionError::DoesNotFit { .. })) => Ok(None),
        cut => Ok(Some(cut?)),
    };
    let parts = hire.stages().said().map_or(usize::MAX, |stages| usize::from(stages) / usize::from(shares.max(1)));
    let asked = tensorlink_user::placing::Work::training(&draft, parts);
    let ranges = if hire.objective == Aim::Price {
        let stages = usize::from(hiring.stages);
        let least = || vec![least_even(stages, |memories| draft.cut(memories).is_ok()); stages];
        hiring.fit(&shutdown, least, cut).await?
    } else {
        hiring.place(&shutdown, &asked, shares).await?
    };
    say!("calibrating and compiling {} stages ...", hiring.stages);
    let (draft, prepared) = {
        let ranges = ranges.clone();
        tokio::task::spawn_blocking(move || compile(&draft, &ranges).map(|prepared| (draft, prepared))).await??
    };
    let needs = prepared.stages.iter().map(|stage| Footprint::training(&stage.program, steps_per_interval).alone());
    hiring.fit_programs(&shutdown, needs.collect()).await?;
    let prices = hiring.prices(|stage, per_gmac| {
        prepared.stages.get(stage).and_then(|s| price_per_interval(&s.program, steps_per_interval, per_gmac))
    })?;
    let audits = hiring.afford(&prices, intervals, 1)?;
    let shown = hiring.show(&asked, shares, &ranges).await?;
    let quote = Quote {
        audit_budget: Wei(audits),
        model: draft.name.clone(),
        data: draft.census.clone(),
        parameters: draft.training.parameters(),
        stages: hiring.stages,
        replicas: hire.replicas,
        steps,
        steps_per_interval,
        intervals,
        token: hiring.token_name(),
        seconds: shown.seconds * f64::from(steps),
        deposit: Wei(hiring.deposit),
        estimate: estimate(&prepared.stages, &hiring.candidates, steps),
        worker_stake: hiring.asked.stake.into(),
        challenge_window: hiring.window,
        workers: hiring.candidates.iter().map(|candidate| candidate.address).collect(),
        layers: ranges,
        ring: shown.ring.clone(),
    };
    output::print(config.json, &quote, || shown.below(show_quote(&quote)))?;
    if hire.dry_run {
        return Ok(());
    }

    let bounds = follow.map(|follow| follow.rules).unwrap_or_default().bounds();
    let published = publish(hiring.node.ports.store.as_ref(), &draft, &prepared, bounds).await?;
    let work = Work::training(&published, (intervals, steps_per_interval), None);
    failover::launch(config, hiring, (work, &published.note), &prices, (follow, Vec::new()), &shutdown).await
}

fn estimate(stages: &[CompiledStage], candidates: &[Candidate], steps: u32) -> Wei {
    let price = |(index, candidate): (usize, &Candidate)| {
        let stage = stages.get(index % stages.len().max(1));
        let work = stage.map_or(0, |stage| multiply_adds(&stage.program));
        U256::from(work) * U256::from(steps) * U256::from(candidate.price_per_gmac) / U256::from(1_000_000_000)
    };
    Wei(candidates.iter().enumerate().map(price).sum())
}

/// Rows, columns and classes.
fn show_census(census: &Census) -> String {
    let Census { rows, columns, classes } = census;
    let named = classes.iter().take(CLASSES).map(|(class, rows)| format!("{class} {rows}")).collect::<Vec<_>>();
    let more = match classes.len().saturating_sub(CLASSES) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{rows} rows, {columns} columns beside the class; rows of each class: {}{more}", named.join(", "))
}

fn show_quote(quote: &Quote) -> String {
    let data = quote.data.as_ref().map(|census| ("data", show_census(census)));
    let mut lines = vec![("model", format!("{}, {} parameters", quote.model, quote.parameters))];
    lines.extend(data);
    lines.extend([
        ("pipeline", format!("{} stages x {} replicas", quote.stages, quote.replicas)),
        ("steps", format!("{} in {} intervals of {}", quote.steps, quote.intervals, quote.steps_per_interval)),
        (
            "time",
            format!("about {} of computing, by what the workers say of their speed", output::duration(quote.seconds)),
        ),
        (
            "price",
            format!(
                "about {} {} of {} {} in escrow; the rest comes back",
                quote.estimate, quote.token, quote.deposit, quote.token
            ),
        ),
        ("audits", format!("up to {} {} of it", quote.audit_budget, quote.token)),
        ("at risk", format!("{} SNO per worker", quote.worker_stake)),
        ("final after", format!("{} s unchallenged", quote.challenge_window)),
    ]);
    output::table(&lines)
}

#[cfg(test)]
mod tests;
