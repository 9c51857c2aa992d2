//! A running llama.cpp with one model.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tempfile::NamedTempFile;

/// Where `script/setup --llamacpp` puts it, seen from the project's root.
const PACKAGES: &str = ".toolchain/llamacpp";
const SCRIPT: &str = include_str!("peer.mjs");

/// Why it cannot be measured, if it is not there.
pub(super) fn absent() -> Option<String> {
    let there = Path::new(PACKAGES).join("node_modules/node-llama-cpp").is_dir();
    (!there).then(|| "llama.cpp is not there: fetch it with `script/setup --llamacpp`".to_owned())
}

/// Its process, in which it has one thread.
pub(super) struct Peer {
    process: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
    _script: NamedTempFile,
}

impl Peer {
    /// Loads a file, for texts of up to `context` tokens.
    pub(super) fn start(file: &Path, context: u32) -> Result<Self> {
        let file = file.canonicalize().with_context(|| format!("cannot open {}", file.display()))?;
        // Beside the packages, where Node looks for what a script imports.
        let mut script = tempfile::Builder::new().suffix(".mjs").tempfile_in(PACKAGES)?;
        script.write_all(SCRIPT.as_bytes())?;
        let mut command = Command::new("node");
        command.arg(script.path()).arg(file).arg(context.to_string());
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().context("node cannot be started: install Node 20 or newer")?;
        let questions = process.stdin.take().context("no pipe")?;
        let answers = BufReader::new(process.stdout.take().context("no pipe")?);
        let mut peer = Self { process, questions, answers, _script: script };
        ensure!(peer.line()? == "ready", "llama.cpp did not start: its words are above");
        Ok(peer)
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        Ok(line.trim().to_owned())
    }

    /// Processor time of reading a text of so many tokens (`prefill`), or of one token more than so many (`decode`),
    /// and of the choice of the one that follows.
    pub(super) fn time(&mut self, what: &str, tokens: u32) -> Result<Duration> {
        writeln!(self.questions, "{what} {tokens}")?;
        let answer = self.line()?;
        Ok(Duration::from_micros(answer.parse().with_context(|| format!("llama.cpp says {answer:?}"))?))
    }

    /// What it expects to follow each token of a text: logarithms of probabilities of all tokens, row after row.
    pub(super) fn logits(&mut self, text: &[u32]) -> Result<Vec<f64>> {
        let file = NamedTempFile::new()?;
        let ids: Vec<String> = text.iter().map(ToString::to_string).collect();
        writeln!(self.questions, "logits {} {}", file.path().display(), ids.join(","))?;
        let answer = self.line()?;
        ensure!(answer == "done", "llama.cpp says {answer:?}");
        let bytes = std::fs::read(file.path())?;
        let (values, _) = bytes.as_chunks::<4>();
        // A probability that rounds to nothing would be infinitely surprising.
        Ok(values.iter().map(|value| f64::from(f32::from_ne_bytes(*value)).max(LEAST)).collect())
    }
}

/// Logarithm of the least probability that a 32-bit float tells from none.
const LEAST: f64 = -103.0;

impl Drop for Peer {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _killed = self.process.kill();
        let _status = self.process.wait();
    }
}
