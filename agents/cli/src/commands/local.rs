//! Models computed by this process: folders opened, put into integers, each on a thread of its own.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Instant, UNIX_EPOCH};

use anyhow::{Context, Result, anyhow, ensure};
use tensorlink_folder::{ModelFolder, there};
use tensorlink_gateway::backend::{Before, Makes, Model, TokenizeError};
use tensorlink_gateway::exact::Exact;
use tensorlink_gateway::generation::batch::Capacity;
use tensorlink_gateway::generation::cached::Cached;
use tensorlink_gateway::local::{Local, Tokenize};
use tensorlink_model::decode::CachedRunner;
use tensorlink_model::plan::Head;
use tensorlink_model::{Output, StageRunner};
use tensorlink_program::Engine;
use tensorlink_proof::commit::tensor_root;

use crate::device;
use crate::hf_tokenizer::{HfTokenizer, refusal};
use crate::quantized::loss::Acceptance;
use crate::quantized::{Quantising, exact, measured};

/// How a model reads texts that it makes one vector of, scores, or tells classes of.
pub(super) fn reading(folder: &ModelFolder) -> Result<Tokenize> {
    if let Some(pairs) = folder.pairs()? {
        return Ok(Arc::new(move |text: &str, before: &Before| match before {
            Before::Query(query) => pairs.encode(query, text).map_err(refusal),
            Before::Default | Before::Prompt(_) => {
                Err(TokenizeError::Refused("the model scores texts by a query: send one".into()))
            }
        }));
    }
    let sentences = folder.sentences()?;
    Ok(Arc::new(move |text: &str, before: &Before| {
        let prompt = if let Before::Prompt(name) = before { Some(name.as_str()) } else { None };
        sentences.encode(text, prompt).map_err(refusal)
    }))
}

/// Reads and quantises every model, one after the other. They are calibrated on the texts of a file, if there is one.
/// A model that lost too much by it is refused, unless `accepted` says otherwise; without it nobody looks.
pub(super) fn open(
    models: &[(String, PathBuf)],
    capacity: Capacity,
    (how, accepted): (&Quantising, Option<Acceptance>),
    device: Option<&str>,
) -> Result<Local> {
    // All folders first: a wrong one is told of before minutes are spent on the others.
    let mut folders = Vec::new();
    for (id, path) in models {
        let folder = ModelFolder::open(path)?;
        let tokenizer = match folder.architecture().output {
            Output::Logits { .. } => Some(HfTokenizer::of(&folder).with_context(|| id.clone())?),
            Output::Embedding(_) | Output::Classes(_) => None,
        };
        folders.push((id, folder, tokenizer));
    }
    let engine = device::open(device)?;
    let mut local = Local::new();
    for (id, folder, tokenizer) in folders {
        let start = Instant::now();
        let made = if folder.integers().is_some() { "read" } else { "calibrated and quantised" };
        let exact = match accepted {
            Some(accepted) => measured(&folder, how, &engine).and_then(|measured| accepted.admit(measured)),
            None => exact(&folder, how, engine.device()),
        };
        let exact = exact.with_context(|| id.clone())?;
        let (layers, head) = (0..exact.architecture().layers, Head::served(exact.architecture().output));
        let (stage, constants) = exact.stage_with(layers, head, tensor_root)?;
        drop(exact);
        let model = describe(id, &folder)?;
        let unfit = |error| anyhow!("{id}: {error}");
        match tokenizer {
            Some(tokenizer) => {
                let runner = CachedRunner::new(engine.clone(), stage, &constants)?;
                let decoder = Cached::new(vec![runner]).map_err(unfit)?;
                // SAFETY of the cast: at most 256 texts.
                let tokens = u64::from(model.context).saturating_mul(capacity.texts as u64);
                let megabytes = decoder.bytes_per_token().saturating_mul(tokens) / 1_000_000;
                tracing::info!("{id}: {} texts side by side keep at most {megabytes} MB", capacity.texts);
                local.add_decoder(model, Arc::new(tokenizer), decoder, capacity)?;
            }
            None => {
                let runner = StageRunner::new(engine.clone(), stage, &constants)?;
                let tokenize = reading(&folder).with_context(|| id.clone())?;
                let embedder = Exact::new(vec![runner], tokenize).map_err(unfit)?;
                local.add(model, embedder, capacity.queue)?;
            }
        }
        tracing::info!("{id}: {made} within {:.1} s", start.elapsed().as_secs_f64());
    }
    tracing::info!("computing on {}", engine.describe());
    Ok(local)
}

/// The name of each folder, or of each file without its ending, all different.
pub(super) fn named(paths: &[PathBuf]) -> Result<Vec<(String, PathBuf)>> {
    let mut seen = BTreeSet::new();
    let mut named = Vec::new();
    for path in paths {
        let whole = there(path)?;
        let gguf = whole.is_file() && whole.extension().is_some_and(|ending| ending == "gguf");
        let name = if gguf { whole.file_stem() } else { whole.file_name() }.and_then(|name| name.to_str());
        let id = name.with_context(|| format!("{} has no name in UTF-8", path.display()))?.to_owned();
        ensure!(seen.insert(id.clone()), "two models are named {id:?}: rename one, for its name is the model's");
        named.push((id, whole));
    }
    Ok(named)
}

/// What clients are told of a model.
pub(super) fn describe(id: &str, folder: &ModelFolder) -> Result<Model> {
    let architecture = folder.architecture();
    let made = std::fs::metadata(folder.path())?.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok(Model {
        id: id.to_owned(),
        created: made.as_secs(),
        context: architecture.context,
        vocabulary: architecture.token_numbers(),
        makes: match architecture.output {
            Output::Embedding(_) => Makes::Vectors { dimensions: architecture.vector_width() },
            Output::Logits { .. } => Makes::Text,
            Output::Classes(_) => match folder.pairs()? {
                Some(pairs) => Makes::Scores { sigmoid: pairs.sigmoid() },
                None => {
                    let labels = folder.description().classes.clone().into();
                    Makes::Classes { labels, several: folder.several_classes()? }
                }
            },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_named_as_their_folders() {
        let root = tempfile::tempdir().unwrap();
        let paths = ["a/mini", "b/mini", "b/other"].map(|name| root.path().join(name));
        paths.iter().for_each(|path| std::fs::create_dir_all(path).unwrap());
        let ids: Vec<String> = named(&paths[1..]).unwrap().into_iter().map(|(id, _)| id).collect();
        assert_eq!(ids, ["mini", "other"]);
        std::fs::write(root.path().join("b/llama.Q4_0.gguf"), "").unwrap();
        assert_eq!(named(&[root.path().join("b/llama.Q4_0.gguf")]).unwrap()[0].0, "llama.Q4_0");
        assert!(named(&paths).unwrap_err().to_string().contains("\"mini\""));
        assert!(named(&[root.path().join("absent")]).unwrap_err().to_string().contains("absent"));
        let repository = named(&["owner/model-1.5B".into()]).unwrap_err().to_string();
        assert!(repository.contains("hf download owner/model-1.5B --local-dir model-1.5B"), "{repository}");
    }
}
