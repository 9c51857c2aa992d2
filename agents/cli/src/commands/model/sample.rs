//! `tensorlink model sample`.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde::Serialize;
use tensorlink_folder::{ModelFolder, TokenizerError};
use tensorlink_gateway::backend::Backend;
use tensorlink_gateway::generation::batch::Capacity;
use tensorlink_gateway::generation::{Ask, Finish, Prompt, SamplingParams};
use tensorlink_model::Output;
use tokio_util::sync::CancellationToken;

use crate::commands::local::{named, open};
use crate::config::Config;
use crate::output;
use crate::quantized::Quantising;

/// One text at a time.
const CAPACITY: Capacity = Capacity { queue: 1, texts: 1 };

/// What to continue, and how.
#[derive(Args, Debug)]
pub struct SampleArgs {
    /// Folder of a transformer that continues texts, with floats or quantised, or a .gguf file.
    pub model: PathBuf,
    /// How the text begins.
    #[arg(long, value_name = "TEXT")]
    pub prompt: String,
    /// Most tokens to add. Beyond its context the model goes on from the latter half of it.
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..))]
    pub tokens: u32,
    /// By what logits are divided; 0 takes the likeliest token each time.
    #[arg(long, default_value_t = 0.8)]
    pub temperature: f64,
    /// Choose among so many of the likeliest tokens [default: among all].
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..))]
    pub top_k: Option<u32>,
    /// Choose among the likeliest of these that together have this share of their probability.
    #[arg(long, value_name = "P", default_value_t = 1.0)]
    pub top_p: f64,
    /// Choose among those of these that are at least this share as likely as the likeliest.
    #[arg(long, value_name = "P", default_value_t = 0.0)]
    pub min_p: f64,
    /// Divide the logits of tokens that the text has already by so much, or multiply them if they are negative, before
    /// all else; 1 leaves them as they are.
    #[arg(long, value_name = "PENALTY", default_value_t = 1.0)]
    pub repetition_penalty: f64,
    /// Of the draws: the same seed gives the same text, on every machine.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// How floats become integers.
    #[command(flatten)]
    pub how: Quantising,
    /// Device: cpu, cuda or cuda:N [default: cuda if there is one].
    #[arg(long, env = "TENSORLINK_DEVICE")]
    pub device: Option<String>,
}

/// What a text came to.
#[derive(Serialize)]
struct Sampled {
    text: String,
    prompt_tokens: u32,
    tokens: u32,
    finish: Finish,
}

impl SampleArgs {
    fn choice(&self) -> Result<SamplingParams> {
        let choice = SamplingParams {
            temperature: self.temperature,
            top_k: self.top_k.unwrap_or(0),
            top_p: self.top_p,
            min_p: self.min_p,
            repetition_penalty: self.repetition_penalty,
            seed: self.seed,
        };
        choice.check()?;
        Ok(choice)
    }
}

/// Continues a text by the engine of `tensorlink serve`, and prints it as it comes.
pub(super) async fn sample(config: &Config, args: SampleArgs, shutdown: CancellationToken) -> Result<()> {
    let choice = args.choice()?;
    let models = named(std::slice::from_ref(&args.model))?;
    let folder = ModelFolder::open(&args.model)?;
    let name = args.model.display();
    ensure!(
        matches!(folder.architecture().output, Output::Logits { .. }),
        "{name} is an encoder, which makes vectors of texts and continues none: name a decoder"
    );
    // A prompt that is refused is told of before minutes are spent on the model.
    let prompt = folder.tokenizer().encode_beginning(&args.prompt, &folder.ends()?);
    let prompt = prompt.map_err(|error| match error {
        TokenizerError::Empty => anyhow::anyhow!("--prompt is empty: a model needs at least one token to go on from"),
        other => anyhow::Error::from(other).context("--prompt"),
    })?;
    let context = folder.architecture().context;
    let (id, device, how) = (models[0].0.clone(), args.device, args.how);
    let opening = tokio::task::spawn_blocking(move || open(&models, CAPACITY, (&how, None), device.as_deref()));
    let local = opening.await.context("the model could not be read")??;
    let mut text = Text { said: !config.json, text: args.prompt, tokens: Vec::new() };
    text.show(&text.text)?;
    let finish = tokio::select! {
        () = shutdown.cancelled() => Finish::Stop,
        finish = text.go_on(&local, &id, (prompt.clone(), context), (args.tokens, choice)) => finish?,
    };
    tokio::task::spawn_blocking(move || drop(local)).await.context("the model could not be closed")?;
    let count = |tokens: &[u32]| u32::try_from(tokens.len()).unwrap_or(u32::MAX);
    let sampled = Sampled { prompt_tokens: count(&prompt), tokens: count(&text.tokens), finish, text: text.text };
    // For people all was said, but the end of the line.
    output::print(config.json, &sampled, String::new)
}

/// A text as it grows.
struct Text {
    /// Whether it is printed as it comes.
    said: bool,
    text: String,
    /// Those added to the prompt.
    tokens: Vec<u32>,
}

impl Text {
    fn show(&self, piece: &str) -> Result<()> {
        if self.said {
            output::write(piece.as_bytes())?;
        }
        Ok(())
    }

    /// Adds tokens, one context after the other.
    async fn go_on(
        &mut self,
        local: &impl Backend,
        id: &str,
        (mut prompt, context): (Vec<u32>, u32),
        (most, choice): (u32, SamplingParams),
    ) -> Result<Finish> {
        let half = (context / 2).max(1) as usize;
        for part in 0.. {
            let before = self.tokens.len();
            let left = most.saturating_sub(u32::try_from(before)?);
            // Draws are told apart by their place in the context.
            let choice = SamplingParams { seed: choice.seed.wrapping_add(part), ..choice };
            let ask = Ask {
                prompts: vec![Prompt::Tokens(prompt.clone())],
                most: left,
                sampling: choice.into(),
                stops: vec![],
            };
            let mut generations = local.generate(id, ask).await?.generations;
            let mut generation = generations.pop().context("the model has stopped")?;
            let finish = loop {
                let piece = generation.pieces.recv().await.context("the model has stopped")??;
                self.tokens.push(piece.token);
                self.text.push_str(&piece.text);
                self.show(&piece.text)?;
                if let Some(finish) = piece.finish {
                    break finish;
                }
            };
            if finish == Finish::Stop || self.tokens.len() >= most as usize {
                return Ok(finish);
            }
            prompt.extend(self.tokens.iter().skip(before));
            prompt.drain(..prompt.len().saturating_sub(half));
        }
        Ok(Finish::Length)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use tensorlink_folder::Trained;
    use tensorlink_model::random::{Dimensions, gpt2, weights};

    use super::*;

    const SIZE: Dimensions =
        Dimensions { vocabulary: 4, width: 16, layers: 1, heads: 2, kv_heads: 2, hidden: 24, context: 8 };

    fn written(out: &Path) {
        let architecture = gpt2(SIZE);
        let weights = weights(&architecture, 3).unwrap();
        let characters = ["\n", " ", "a", "b"].map(String::from);
        Trained { architecture: &architecture, weights: &weights, characters: &characters, texts: &["a b\n".into()] }
            .write(out)
            .unwrap();
    }

    async fn refused(model: &Path, prompt: &str, change: impl FnOnce(&mut SampleArgs)) -> String {
        let mut args = SampleArgs {
            model: model.to_owned(),
            prompt: prompt.into(),
            tokens: 3,
            temperature: 0.0,
            top_k: None,
            top_p: 1.0,
            min_p: 0.0,
            repetition_penalty: 1.0,
            seed: 0,
            how: Quantising::default(),
            device: Some("cpu".into()),
        };
        change(&mut args);
        let config = Config::defaults().unwrap();
        format!("{:#}", sample(&config, args, CancellationToken::new()).await.unwrap_err())
    }

    #[tokio::test]
    async fn what_cannot_be_continued_is_refused_with_the_reason() {
        let folders = tempfile::tempdir().unwrap();
        let model = folders.path().join("model");
        written(&model);
        for (prompt, named) in [("", "--prompt is empty"), ("a cab", "'c'"), ("aaaabbbba", "9 tokens")] {
            let error = refused(&model, prompt, |_| ()).await;
            assert!(error.contains(named), "{prompt:?}: {error}");
        }
        // As long as the context: nothing can follow.
        let full = refused(&model, "aaaabbbb", |_| ()).await;
        assert!(full.contains("8 tokens") && full.contains("at most 8"), "{full}");
        let warm = refused(&model, "a", |args| args.temperature = 65.0).await;
        assert!(warm.contains("temperature 65"), "{warm}");
        let share = refused(&model, "a", |args| args.top_p = 0.0).await;
        assert!(share.contains("top_p 0"), "{share}");
        let least = refused(&model, "a", |args| args.min_p = 1.5).await;
        assert!(least.contains("min_p 1.5"), "{least}");
        let penalty = refused(&model, "a", |args| args.repetition_penalty = 0.0).await;
        assert!(penalty.contains("repetition penalty 0"), "{penalty}");
        let absent = refused(&folders.path().join("absent"), "a", |_| ()).await;
        assert!(absent.contains("absent"), "{absent}");
    }

    #[tokio::test]
    async fn an_encoder_continues_nothing() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.toolchain/models/all-MiniLM-L6-v2");
        let error = refused(&folder, "a", |_| ()).await;
        assert!(error.contains("encoder"), "{error}");
    }
}
