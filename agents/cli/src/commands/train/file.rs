//! Job files.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use tensorlink_node::bounds::Bounds;
use tensorlink_user::Draft;

use crate::amount::parse_amount;
use crate::commands::hiring::HireArgs;
use crate::commands::post::{draft, read_draft};
use crate::watch::{Early, Rules};

/// Most stages and replicas of a job (rule P-18).
const MOST: [u16; 2] = [64, 16];

/// The file as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    model: toml::Value,
    data: PathBuf,
    #[serde(default = "steps_per_interval")]
    steps_per_interval: u32,
    out: Option<PathBuf>,
    evaluate_every: Option<u32>,
    max_loss: Option<f32>,
    max_saturation: Option<f32>,
    failover: Option<u64>,
    hire: Option<HireArgs>,
    #[serde(default = "shares")]
    shares: u16,
    #[serde(default)]
    early_stop: Early,
}

const fn shares() -> u16 {
    1
}

const fn steps_per_interval() -> u32 {
    50
}

/// Who the job is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::commands) enum Terms {
    /// Staked workers: the file says how they are hired.
    Chain,
    /// Workers that the user names: nothing that the file says of hiring and claims is looked at.
    Native,
}

/// A checked job file.
#[derive(Debug)]
pub(in crate::commands) struct JobFile {
    /// The file itself.
    path: PathBuf,
    model: Model,
    data: PathBuf,
    /// Steps between two claims.
    pub(in crate::commands) steps_per_interval: u32,
    /// Folder for the model.
    pub(in crate::commands) out: Option<PathBuf>,
    /// Workers and terms.
    pub(in crate::commands) hire: HireArgs,
    /// Seconds of silence after which a worker is given up.
    pub(in crate::commands) failover: Option<u64>,
    /// Shares of a step's sequences, each with all of the model.
    shares: u16,
    rules: Rules,
}

/// Where the model is described.
#[derive(Debug)]
enum Model {
    File(PathBuf),
    /// In the job file, as JSON.
    Table(Vec<u8>),
}

impl JobFile {
    /// Reads a file; the paths in it are relative to its folder.
    pub(in crate::commands) fn read(path: &Path, terms: Terms) -> Result<Self> {
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        Self::parse(path, &text, terms).with_context(|| format!("{} is not a valid job file", path.display()))
    }

    fn parse(path: &Path, text: &str, terms: Terms) -> Result<Self> {
        let mut raw: Raw = toml::from_str(text)?;
        let hire = raw.hire.take();
        let hire = match terms {
            Terms::Chain => hire.context("a table [hire] is missing: it says how workers are hired")?,
            Terms::Native => HireArgs::default(),
        };
        if terms == Terms::Chain {
            check(&raw, &hire)?;
        }
        let folder = path.parent().unwrap_or(Path::new(""));
        let model = match raw.model {
            toml::Value::String(file) => Model::File(folder.join(file)),
            toml::Value::Table(table) => Model::Table(serde_json::to_vec(&table)?),
            other => bail!("model is {other}: name a model file, or describe the model in a table [model]"),
        };
        Ok(Self {
            path: path.to_owned(),
            model,
            data: folder.join(raw.data),
            steps_per_interval: raw.steps_per_interval,
            out: raw.out.map(|out| folder.join(out)),
            hire,
            failover: raw.failover,
            shares: if terms == Terms::Chain { raw.shares } else { 1 },
            rules: Rules {
                early: raw.early_stop,
                evaluate_every: raw.evaluate_every,
                max_loss: raw.max_loss,
                max_saturation: raw.max_saturation,
            },
        })
    }

    /// What ends the job early.
    pub(in crate::commands) const fn rules(&self) -> Rules {
        self.rules
    }

    /// The model with its data.
    pub(in crate::commands) fn draft(&self) -> Result<Draft> {
        let draft = match &self.model {
            Model::File(path) => read_draft(path, &self.data)?,
            Model::Table(json) => {
                let name = format!("{} [model]", self.path.display());
                draft((&name, json), self.path.parent().unwrap_or(Path::new("")), &self.data)?
            }
        };
        Ok(draft.shared(self.shares)?)
    }
}

/// Ranges of what the types allow more of.
fn check(raw: &Raw, hire: &HireArgs) -> Result<()> {
    let Raw { early_stop: early, .. } = raw;
    let [stages, replicas] = MOST;
    let positive = |number: Option<f32>| number.is_none_or(|x| x.is_finite() && x > 0.0);
    ensure!(raw.steps_per_interval > 0, "steps_per_interval is 0: 1 or more");
    let said = hire.stages().said();
    ensure!(said.is_none_or(|said| (1..=stages).contains(&said)), "[hire] stages is {}: 1 to {stages}", hire.stages());
    let shares = raw.shares;
    ensure!(
        shares > 0 && said.is_none_or(|said| said.is_multiple_of(shares)),
        "shares is {shares}: it must divide [hire] stages, {}",
        hire.stages()
    );
    ensure!((1..=replicas).contains(&hire.replicas), "[hire] replicas is {}: 1 to {replicas}", hire.replicas);
    ensure!(!hire.deposit.is_empty(), "[hire] deposit is missing: the escrow as text, such as \"50\"");
    parse_amount(&hire.deposit).context("[hire] deposit")?;
    parse_amount(&hire.worker_stake).context("[hire] worker_stake")?;
    ensure!(hire.challenge_window != Some(0), "[hire] challenge_window is 0: 1 second or more");
    ensure!(hire.duration > 0, "[hire] duration is 0: 1 second or more");
    ensure!(raw.evaluate_every != Some(0), "evaluate_every is 0: 1 interval or more, or leave it out");
    ensure!(positive(early.loss), "[early_stop] loss must be a number above 0");
    ensure!(early.patience != Some(0), "[early_stop] patience is 0: 1 interval or more");
    let delta = early.min_delta.is_none_or(|delta| delta.is_finite() && delta >= 0.0);
    ensure!(delta, "[early_stop] min_delta must be a number, 0 or more");
    ensure!(
        early.min_delta.is_none() || early.patience.is_some(),
        "[early_stop] min_delta without patience changes nothing: name both"
    );
    Ok(Bounds { max_saturation: raw.max_saturation, max_loss: raw.max_loss }.check()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::hiring::{Stages, Token};

    const JOB: &str = r#"
        model = "m.json"
        data = "d.txt"
        out = "made"
        steps_per_interval = 20
        evaluate_every = 2
        max_loss = 2.0
        max_saturation = 0.02
        [hire]
        stages = 3
        deposit = "12.5"
        token = "eth"
        [early_stop]
        loss = 1.3
        patience = 4
        min_delta = 0.01
    "#;

    fn refused(from: &str, to: &str) -> String {
        let text = JOB.replace(from, to);
        assert_ne!(text, JOB, "{from}");
        format!("{:#}", JobFile::parse(Path::new("jobs/job.toml"), &text, Terms::Chain).unwrap_err())
    }

    #[test]
    fn paths_are_relative_to_the_file() {
        let job = JobFile::parse(Path::new("jobs/job.toml"), JOB, Terms::Chain).unwrap();
        assert!(matches!(&job.model, Model::File(path) if path == Path::new("jobs/m.json")));
        assert_eq!((job.data.as_path(), job.out.as_deref()), (Path::new("jobs/d.txt"), Some(Path::new("jobs/made"))));
        let hire = HireArgs {
            stages: Some(Stages::Exactly(3)),
            deposit: "12.5".into(),
            token: Token::Eth,
            ..HireArgs::default()
        };
        assert_eq!((&job.hire, job.steps_per_interval), (&hire, 20));
        let early = Early { loss: Some(1.3), patience: Some(4), min_delta: Some(0.01) };
        let expected = Rules { early, evaluate_every: Some(2), max_loss: Some(2.0), max_saturation: Some(0.02) };
        assert_eq!(job.rules(), expected);
    }

    #[test]
    fn whatever_is_wrong_is_named() {
        for (from, to, named) in [
            ("steps_per_interval = 20", "steps_per_intervall = 20", "steps_per_intervall"),
            ("steps_per_interval = 20", "steps_per_interval = 0", "steps_per_interval"),
            ("evaluate_every = 2", "evaluate_every = 0", "evaluate_every"),
            ("stages = 3", "stages = 0", "[hire] stages"),
            ("stages = 3", "stages = 65", "[hire] stages"),
            ("max_loss = 2.0", "shares = 2", "shares is 2"),
            ("max_loss = 2.0", "shares = 0", "shares is 0"),
            ("stages = 3", "replicas = 17", "[hire] replicas"),
            ("stages = 3", "patients = 3", "patients"),
            ("stages = 3", "challenge_window = 0", "[hire] challenge_window"),
            ("deposit = \"12.5\"", "", "[hire] deposit"),
            ("\"12.5\"", "\"much\"", "[hire] deposit"),
            ("\"12.5\"", "12.5", "deposit"),
            ("\"eth\"", "\"btc\"", "btc"),
            ("loss = 1.3", "loss = -1.0", "[early_stop] loss"),
            ("loss = 1.3", "loss = nan", "[early_stop] loss"),
            ("patience = 4", "patience = 0", "[early_stop] patience"),
            ("patience = 4", "", "min_delta without patience"),
            ("min_delta = 0.01", "min_delta = inf", "[early_stop] min_delta"),
            ("max_loss = 2.0", "max_loss = 1.0", "max_loss"),
            ("max_saturation = 0.02", "max_saturation = 2.0", "max_saturation"),
            ("model = \"m.json\"", "model = 3", "[model]"),
            ("data = \"d.txt\"", "", "data"),
        ] {
            let error = refused(from, to);
            assert!(error.contains(named), "{to}: {error}");
        }
    }

    #[test]
    fn a_model_may_stand_in_the_file() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("d.txt"), "In the beginning God created. ".repeat(20)).unwrap();
        let job = folder.path().join("job.toml");
        let table = r#"
            data = "d.txt"
            hire.deposit = "1"
            [model]
            name = "small"
            decoder = { width = 16, layers = 1, heads = 2, kv_heads = 1, hidden = 16, context = 16 }
            optimizer = { learning_rate = 0.01, warmup = 2, weight_decay = 0.1, clip = 1.0 }
            sequences = 2
            steps = 4
            operand_bits = 8
            seed = 7
        "#;
        std::fs::write(&job, table).unwrap();
        let draft = JobFile::read(&job, Terms::Chain).unwrap().draft().unwrap();
        assert_eq!((draft.name.as_str(), draft.steps), ("small", 4));
        assert!(draft.architecture.is_some());
        // Without a chain, nobody is hired.
        std::fs::write(&job, table.replace("hire.deposit = \"1\"", "")).unwrap();
        assert_eq!(JobFile::read(&job, Terms::Native).unwrap().draft().unwrap().steps, 4);
        let unhired = format!("{:#}", JobFile::read(&job, Terms::Chain).unwrap_err());
        assert!(unhired.contains("[hire]"), "{unhired}");
        std::fs::write(&job, table.replace("heads = 2", "heads = 3")).unwrap();
        let error = format!("{:#}", JobFile::read(&job, Terms::Chain).unwrap().draft().unwrap_err());
        assert!(error.contains("job.toml [model]") && error.contains("heads"), "{error}");
        let absent = format!("{:#}", JobFile::read(Path::new("no.toml"), Terms::Chain).unwrap_err());
        assert!(absent.contains("no.toml"), "{absent}");
    }

    #[test]
    fn the_examples_are_some() {
        for name in ["king-james.toml", "verses.toml"] {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name);
            let job = JobFile::read(&path, Terms::Chain).unwrap();
            let draft = job.draft().unwrap();
            assert!(draft.architecture.is_some() && draft.steps.is_multiple_of(job.steps_per_interval), "{name}");
        }
    }
}
