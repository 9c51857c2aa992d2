//! Reading a text and the token after it, against llama.cpp with weights in Q8_0: in a process of its own, under the
//! Python that `LLAMACPP_PYTHON` names. Both give what follows the last token only, ours with the choice of it.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tensorlink_graph::transformer::plan::Head;
use tensorlink_graph::transformer::random::Dimensions;
use tensorlink_graph::transformer::{CachedRunner, Session, Turn, tokens};
use tensorlink_tensor::TorchEngine;
use tensorlink_types::TensorRoot;

use super::figure::Figure;
use super::subject::{likeliest, text};
use super::time::{median, once};
use super::{Measure, Row};
use crate::device;

/// Names a Python that has llama-cpp-python, gguf and numpy.
const PYTHON: &str = "LLAMACPP_PYTHON";
const SCRIPT: &str = include_str!("llamacpp.py");
/// Times faster: reading, and the next token.
const GOALS: [f64; 2] = [1.0, 0.9];
/// Tokens of a turn: a token of either finds the processor's caches as its own last one left them.
const TURN: usize = 4;
/// Any token.
const NEXT: u32 = 7;

pub(super) fn measure(measure: &Measure<'_>) -> Result<Vec<Figure>> {
    let Some(python) = std::env::var_os(PYTHON) else {
        let why = format!("{PYTHON} names no Python with llama-cpp-python, gguf and numpy");
        return Ok(vec![Figure::absent(Row::Llamacpp, "reading and the next token, against llama.cpp Q8_0", why)]);
    };
    let size = measure.extent.size();
    let mut peer = LlamaCpp::start(&python, size)?;
    let engine = device::open(Some(measure.device))?;
    let model = measure.quantized()?;
    let (plan, constants) = model.stage_with(0..size.layers, Head::Choice, |_| TensorRoot::default())?;
    drop(model);
    let mut runner = CachedRunner::new(engine, plan, &constants)?;
    drop(constants);
    let rounds = measure.extent.rounds(11);
    let mut figures = Vec::new();
    for count in measure.extent.lengths() {
        let ids = text(count, size.vocabulary);
        let mut session = runner.session()?;
        let mut ours = Vec::new();
        let mut theirs = Vec::new();
        // The first round of both is not counted.
        for round in 0..=rounds {
            session.cut_back(0)?;
            let own = timed(&mut runner, &mut session, &ids)?;
            let other = peer.time("prefill", count)?;
            if round > 0 {
                ours.push(own);
                theirs.push(other);
            }
        }
        figures.push(figure(format!("a text of {count} tokens"), (&mut ours, &mut theirs), GOALS[0]));
        ours.clear();
        theirs.clear();
        for round in 0..=rounds {
            for _ in 0..TURN {
                session.cut_back(count)?;
                let own = timed(&mut runner, &mut session, &[NEXT])?;
                if round > 0 {
                    ours.push(own);
                }
            }
            for _ in 0..TURN {
                let other = peer.time("decode", count)?;
                if round > 0 {
                    theirs.push(other);
                }
            }
        }
        figures.push(figure(format!("the token after {count}"), (&mut ours, &mut theirs), GOALS[1]));
    }
    Ok(figures)
}

fn figure(what: String, (ours, theirs): (&mut [Duration], &mut [Duration]), goal: f64) -> Figure {
    let what = format!("{what}, times faster than llama.cpp Q8_0");
    Figure::faster(Row::Llamacpp, what, (median(ours), median(theirs)), goal)
}

/// Time of the likeliest token after some more.
fn timed(runner: &mut CachedRunner<TorchEngine>, session: &mut Session<TorchEngine>, ids: &[u32]) -> Result<Duration> {
    let mut chosen = Ok(Vec::new());
    let took = once(|| chosen = choose(runner, session, ids));
    chosen.map(|_| took)
}

fn choose(
    runner: &mut CachedRunner<TorchEngine>,
    session: &mut Session<TorchEngine>,
    ids: &[u32],
) -> Result<Vec<tensorlink_num::Tensor>> {
    let (rows, controls) = (tokens(ids)?, likeliest(session.position(), ids.len())?);
    Ok(runner.advance(&mut [Turn { session, rows: &rows, controls: Some(&controls) }])?)
}

/// A running peer with a model of its own, of the same sizes.
struct LlamaCpp {
    process: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl LlamaCpp {
    fn start(python: &std::ffi::OsStr, size: Dimensions) -> Result<Self> {
        let Dimensions { vocabulary, width, layers, heads, kv_heads, hidden, context } = size;
        let sizes = [vocabulary, width, layers, heads, kv_heads, hidden, context].map(|n| n.to_string());
        let mut command = Command::new(python);
        command.args(["-c", SCRIPT]).args(sizes).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().with_context(|| format!("{PYTHON} is {}", python.display()))?;
        let questions = process.stdin.take().context("no pipe")?;
        let answers = BufReader::new(process.stdout.take().context("no pipe")?);
        let mut peer = Self { process, questions, answers };
        ensure!(peer.line()? == "ready", "llama.cpp does not start: is llama-cpp-python installed under {PYTHON}?");
        Ok(peer)
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        Ok(line.trim().to_owned())
    }

    /// Processor time of reading a text of so many tokens (logits of the last one), or of one token more than so many.
    fn time(&mut self, what: &str, tokens: u32) -> Result<Duration> {
        writeln!(self.questions, "{what} {tokens}")?;
        let answer = self.line()?;
        Ok(Duration::from_micros(answer.parse().with_context(|| format!("llama.cpp says {answer:?}"))?))
    }
}

impl Drop for LlamaCpp {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _killed = self.process.kill();
        let _status = self.process.wait();
    }
}
