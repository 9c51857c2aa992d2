//! `tensorlink job post`: from a model and data to a running job.

use std::io::Read;
use std::ops::Range;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::Serialize;
use tensorlink_graph::model::language::Origin;
use tensorlink_graph::{CompiledStage, DataError, LanguageModel, Model, Training, TrainingSet};
use tensorlink_node::Ports;
use tensorlink_node::price::{multiply_adds, price_per_interval};
use tensorlink_tensor::Device;
use tensorlink_tensor::float::FloatTrial;
use tensorlink_types::{Address, U256};
use tensorlink_user::hire::Candidate;
use tensorlink_user::{Draft, JobNote, PrepareError, Prepared, publish};
use tokio_util::sync::CancellationToken;

use crate::amount::Wei;
use crate::args::PostArgs;
use crate::commands::hiring::{HireArgs, Hiring, Work};
use crate::config::Config;
use crate::folder::ModelFolder;
use crate::watch::{Follow, exportable};
use crate::{output, watch};

/// Largest data file, bytes; the parser has a bound of its own for what comes out of a compressed one.
const MAX_DATA: u64 = 1 << 30;

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

/// A decoder with its text, or the model of a folder with a text in its tokens.
fn read_language(model: &LanguageModel, folder: &Path, data_path: &Path) -> Result<Draft> {
    let text = read_data(data_path)?;
    let imported = match model.origin() {
        Origin::Decoder(decoder) => return Ok(Draft::language(model, decoder, &text)?),
        Origin::From(imported) => imported,
    };
    let path = folder.join(&imported.folder);
    let path = path.canonicalize().unwrap_or(path);
    let folder = ModelFolder::open(&path)?;
    let text = String::from_utf8(text).map_err(|error| DataError::NotUtf8(error.utf8_error().valid_up_to()))?;
    let ids = folder.tokenizer().encode_all(&text)?;
    Ok(Draft::imported(model, imported, (&path, folder.architecture(), &folder.weights()?), ids)?)
}

/// Calibrates and compiles: a language model by libtorch on this machine's processor, as the plain float interpretation would take long and keep
/// all of a step. The same draft comes to the same programs again on the same machine.
///
/// # Errors
/// [`PrepareError`].
pub fn compile(draft: &Draft, ranges: &[Range<usize>]) -> Result<Prepared, PrepareError> {
    let by_libtorch = |training: &Training, data: &TrainingSet, steps, seed| {
        let start = |graph, floats, state| FloatTrial::new(graph, &floats, state, Device::Cpu);
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
        draft: if args.data_parallel { draft.data_parallel(args.hire.stages)? } else { draft },
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
    let ranges = draft.cut(&hiring.memories())?;
    eprintln!("calibrating and compiling {} stages ...", ranges.len());
    let (draft, prepared) = {
        let ranges = ranges.clone();
        tokio::task::spawn_blocking(move || compile(&draft, &ranges).map(|prepared| (draft, prepared))).await??
    };
    let prices = hiring.prices(|stage, per_gmac| {
        prepared.stages.get(stage).and_then(|s| price_per_interval(&s.program, steps_per_interval, per_gmac))
    })?;
    let audits = hiring.afford(&prices, intervals, 1)?;
    let quote = Quote {
        audits: Wei(audits),
        model: draft.name.clone(),
        parameters: draft.training.parameters(),
        stages: hire.stages,
        replicas: hire.replicas,
        steps,
        steps_per_interval,
        intervals,
        token: hiring.token_name(),
        deposit: Wei(hiring.deposit),
        estimate: estimate(&prepared.stages, &hiring.candidates, steps),
        worker_stake: hiring.worker_stake.into(),
        challenge_window: hiring.window,
        workers: hiring.candidates.iter().map(|candidate| candidate.address).collect(),
    };
    output::print(config.json, &quote, || show_quote(&quote))?;
    if hire.dry_run {
        return Ok(());
    }

    let published = publish(hiring.node.ports.store.as_ref(), &draft, &prepared).await?;
    let work = Work::training(&published, (intervals, steps_per_interval), None);
    launch(config, hiring, (work, &published.note), &prices, follow, &shutdown).await
}

/// Posts a training job, hires at these prices, starts it, and follows it if that was asked for.
pub(super) async fn launch(
    config: &Config,
    hiring: Hiring<'_>,
    (work, note): (Work, &JobNote),
    prices: &[u128],
    follow: Option<Follow<'_>>,
    shutdown: &CancellationToken,
) -> Result<()> {
    let job = hiring.post(work, note).await?;
    hiring.start(job, prices, shutdown).await?;
    if let Some(follow) = follow {
        watch::follow(config, &hiring.node, &hiring.user, (job, note), &follow, shutdown).await?;
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
    use std::fs;

    use tempfile::TempDir;
    use tensorlink_graph::transformer::Family;
    use tensorlink_graph::transformer::fixture::{Folder, VOCABULARY};

    use super::*;
    use crate::folder::tests::written;

    /// A folder of a family, and in it a model file that trains it on, with a text.
    fn tune(family: Family, context: u32) -> TempDir {
        tune_by(family, context, r#""untie": true"#)
    }

    /// The same, in some way.
    fn tune_by(family: Family, context: u32, way: &str) -> TempDir {
        let dir = written(&Folder::new(family));
        let json = format!(
            r#"{{ "name": "tune", "from": {{ "folder": ".", "context": {context}, {way} }},
                "optimizer": {{ "learning_rate": 0.003, "warmup": 1, "weight_decay": 0.1, "clip": 1.0 }},
                "sequences": 2, "steps": 4, "operand_bits": 8, "seed": 1 }}"#
        );
        fs::write(dir.path().join("tune.json"), json).unwrap();
        fs::write(dir.path().join("text.txt"), "the cat sat on a mat the dog ran on a mat ".repeat(9)).unwrap();
        dir
    }

    fn drafted(dir: &TempDir) -> Result<Draft> {
        read_draft(&dir.path().join("tune.json"), &dir.path().join("text.txt"))
    }

    #[test]
    fn decoders_of_folders_are_trained_on_in_their_own_tokens() {
        for family in [Family::Gpt2, Family::Llama, Family::Mistral, Family::Qwen2, Family::Qwen3] {
            let draft = drafted(&tune(family, 4)).unwrap();
            let folder = written(&Folder::new(family));
            let weights = ModelFolder::open(folder.path()).unwrap().weights().unwrap();
            let table = weights.get("embedding.tokens").unwrap().values();
            let state = &draft.training.state["embedding.tokens"];
            assert!(state.iter().zip(table).all(|(trained, given)| *trained == f64::from(*given)), "{family:?}");
            assert_eq!(state.len() % VOCABULARY, 0);
            // Words from the fifth on: no token stands around or between them.
            assert_eq!(draft.data.training.features.mantissas().to_vec()[..4], [4, 5, 7, 9]);
            let prepared = compile(&draft, &draft.cut(&[u64::MAX, u64::MAX]).unwrap()).unwrap();
            assert_eq!(prepared.stages.len(), 2, "{family:?}");
        }
    }

    #[test]
    fn adapters_are_trained_in_place_of_weights() {
        for (family, targets) in [
            (Family::Gpt2, r#""targets": ["output", "up", "down"]"#),
            (Family::Llama, r#""targets": ["query", "key", "value", "output", "up", "gate", "down"]"#),
            (Family::Qwen3, r#""targets": ["query", "value"]"#),
        ] {
            let dir = tune_by(family, 4, &format!(r#""lora": {{ "rank": 2, "alpha": 4, {targets} }}"#));
            let draft = drafted(&dir).unwrap();
            assert!(draft.training.state.keys().all(|name| name.contains(".lora_")), "{family:?}");
            assert!(draft.base.as_ref().is_some_and(|base| base.lora.is_some() && base.folder.is_absolute()));
            let prepared = compile(&draft, &draft.cut(&[u64::MAX, u64::MAX]).unwrap()).unwrap();
            assert_eq!(prepared.stages.len(), 2, "{family:?}");
        }
    }

    #[test]
    fn adapters_that_cannot_be_say_why() {
        for (family, lora, what) in [
            (Family::Gpt2, r#""rank": 2, "alpha": 4"#, "GPT-2 keeps queries, keys and values in one matrix"),
            (Family::Gpt2, r#""rank": 2, "alpha": 4, "targets": ["gate"]"#, "`mlp.gate` is no projection"),
            (Family::Llama, r#""rank": 0, "alpha": 4"#, "lora.rank is 0; choose 1 to 256"),
            (Family::Llama, r#""rank": 2, "alpha": 0"#, "lora.alpha is 0; choose 1 to 4096"),
            (Family::Llama, r#""rank": 2, "alpha": 4, "targets": []"#, "at least one projection"),
            (Family::Llama, r#""rank": 2, "alpha": 4, "targets": ["all"]"#, "unknown variant `all`"),
        ] {
            let refused = drafted(&tune_by(family, 4, &format!(r#""lora": {{ {lora} }}"#))).unwrap_err();
            assert!(format!("{refused:#}").contains(what), "{refused:#}");
        }
    }

    #[test]
    fn folders_that_cannot_be_trained_on_say_why() {
        let refused = |dir: &TempDir| format!("{:#}", drafted(dir).unwrap_err());
        for (family, context, what) in
            [(Family::Bert, 4, "an encoder is not trained yet"), (Family::Llama, 11, "the model takes at most 10")]
        {
            let message = refused(&tune(family, context));
            assert!(message.contains(what), "{message}");
        }
        let dir = tune(Family::Llama, 4);
        fs::remove_file(dir.path().join("tokenizer.json")).unwrap();
        assert!(refused(&dir).contains("has no tokenizer.json"), "{}", refused(&dir));
    }

    #[test]
    fn steps_must_divide_into_intervals() {
        assert_eq!(intervals(400, 50).unwrap(), 8);
        let error = intervals(400, 60).unwrap_err().to_string();
        assert!(error.contains("200") && error.contains("400"), "{error}");
        assert!(intervals(400, 0).is_err());
    }
}
