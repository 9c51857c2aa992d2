//! Reading a text and the token after it, against llama.cpp: in a process of its own, on one thread, by processor time.
//! Both give what follows the last token only, with the choice of it. And how far llama.cpp's Q8_0 is from the floats
//! that it was made of.
//!
//! | module | what lives there |
//! |---|---|
//! | here | what is measured |
//! | `peer` | llama.cpp, prebuilt by npm's `node-llama-cpp` |
//! | `gguf` | a decoder as a file in Q8_0 |

mod gguf;
mod peer;

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use tempfile::NamedTempFile;
use tensorlink_folder::ModelFolder;
use tensorlink_folder::texts::{PIECES, passages};
use tensorlink_model::compare::Comparison;
use tensorlink_model::{CachedRunner, Session, Setting};
use tensorlink_tensor::{Device, TorchEngine};

use self::peer::Peer;
use super::alone::{choose, choosing};
use super::figure::{Figure, Unit};
use super::subject::{Subject, Which, text};
use super::time::{median, once};
use super::{Bench, Row};

/// Times faster: reading, and the next token.
const GOALS: [f64; 2] = [1.0, 0.9];
/// Tokens of a turn: a token of either finds the processor's caches as its own last one left them.
const TURN: usize = 4;
/// Any token.
const NEXT: u32 = 7;
/// Most tokens of a text here.
const CONTEXT: u32 = 1024;
/// What the weights made of ours are called.
const Q8_0: &str = "Q8_0";

pub(super) fn measure(bench: &Bench<'_>) -> Result<Vec<Figure>> {
    let elsewhere = || "llama.cpp is built for the processor here: measure with --device cpu".to_owned();
    let absent = peer::absent().or_else(|| (bench.device != "cpu").then(elsewhere));
    if let Some(why) = absent {
        return Ok(vec![Figure::absent(Row::Llamacpp, "reading and the next token, against llama.cpp", why)]);
    }
    let of = bench.decoders().into_iter().map(|which| of(bench, which)).collect::<Result<Vec<_>>>()?;
    Ok(of.concat())
}

/// A decoder against the same in Q8_0, and if it comes in a file of llama.cpp's own, against that file as well.
fn of(bench: &Bench<'_>, which: Which<'_>) -> Result<Vec<Figure>> {
    let engine = bench.engine()?;
    let subject = which.open(bench.extent, engine.device())?;
    let mut file = NamedTempFile::with_suffix(".gguf")?;
    let mut out = BufWriter::new(file.as_file_mut());
    gguf::file(&subject.architecture, &subject.weights)?.write(&mut out)?;
    out.flush()?;
    drop(out);
    let mut peers: Vec<(&str, PathBuf)> = vec![(Q8_0, file.path().to_owned())];
    let mut figures = Vec::new();
    if let Which::Trained(path) = which {
        if path.is_file() {
            peers.push(("of the same file", path.to_owned()));
        }
        figures.extend(accuracy(&subject, file.path(), path)?);
    }
    let model = subject.quantized(Setting::default())?;
    let (name, vocabulary) = (subject.name.clone(), subject.architecture.vocabulary);
    let context = subject.architecture.context.min(CONTEXT);
    drop(subject);
    let mut runner = choosing(engine, &model)?;
    drop(model);
    for (weights, path) in peers {
        let mut race =
            Race { name: &name, weights, peer: Peer::start(&path, context)?, runner: &mut runner, vocabulary };
        for count in bench.extent.lengths() {
            figures.extend(race.run(count, bench.extent.rounds(11))?);
        }
    }
    Ok(figures)
}

/// How far llama.cpp's Q8_0 is from the floats that it was made of.
fn accuracy(subject: &Subject, file: &Path, folder: &Path) -> Result<Vec<Figure>> {
    let texts = passages(ModelFolder::open(folder)?.tokenizer(), PIECES)?;
    let mut peer = Peer::start(file, CONTEXT)?;
    let row = subject.architecture.vocabulary as usize;
    let mut rows = Comparison::default();
    for text in &texts {
        let (got, due) = (peer.logits(text)?, subject.float.forward(text, None)?.values()?);
        for (place, (got, due)) in got.chunks(row).zip(due.chunks(row)).enumerate() {
            rows.logits(got, due, text.get(place + 1).copied());
        }
    }
    let [float, exact] = rows.perplexity().unwrap_or([f64::NAN; 2]);
    let note = format!("{exact:.3} against {float:.3} of perplexity, {} positions of the King James text", rows.rows());
    let figure = |what: &str, value| {
        let what = format!("{}, llama.cpp {Q8_0} against f32: {what}", subject.name);
        Figure::new(Row::Llamacpp, what, value, None).from(note.clone())
    };
    Ok(vec![
        figure("same largest logit", (rows.same_choices() as f64 / rows.rows().max(1) as f64, Unit::Share)),
        figure("perplexity", (exact / float, Unit::Times)),
        figure("divergence, nats", (rows.divergence().unwrap_or(f64::NAN), Unit::Number)),
    ])
}

/// A decoder of ours and one of theirs, in turns.
struct Race<'a> {
    name: &'a str,
    weights: &'a str,
    peer: Peer,
    runner: &'a mut CachedRunner<TorchEngine>,
    vocabulary: u32,
}

impl Race<'_> {
    /// A text of so many tokens, and the token after it. The first round of both is not counted.
    fn run(&mut self, count: u32, rounds: usize) -> Result<[Figure; 2]> {
        let ids = text(count, self.vocabulary);
        let mut session = self.runner.session()?;
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for round in 0..=rounds {
            session.cut_back(0)?;
            let own = timed(self.runner, &mut session, &ids)?;
            let other = self.peer.time("prefill", count)?;
            if round > 0 {
                ours.push(own);
                theirs.push(other);
            }
        }
        let read = self.figure(&format!("a text of {count} tokens"), (&mut ours, &mut theirs), GOALS[0]);
        ours.clear();
        theirs.clear();
        for round in 0..=rounds {
            for _ in 0..TURN {
                session.cut_back(count)?;
                let own = timed(self.runner, &mut session, &[NEXT])?;
                if round > 0 {
                    ours.push(own);
                }
            }
            for _ in 0..TURN {
                let other = self.peer.time("decode", count)?;
                if round > 0 {
                    theirs.push(other);
                }
            }
        }
        Ok([read, self.figure(&format!("the token after {count}"), (&mut ours, &mut theirs), GOALS[1])])
    }

    fn figure(&self, what: &str, (ours, theirs): (&mut [Duration], &mut [Duration]), goal: f64) -> Figure {
        let what = format!("{}: {what}, times faster than llama.cpp {}", self.name, self.weights);
        Figure::faster(Row::Llamacpp, what, (median(ours), median(theirs)), goal)
    }
}

/// Time of the likeliest token after some more.
fn timed(runner: &mut CachedRunner<TorchEngine>, session: &mut Session<TorchEngine>, ids: &[u32]) -> Result<Duration> {
    let mut chosen = Ok(0);
    let took = once(Device::Cpu, || chosen = choose(runner, session, ids));
    chosen.map(|_| took)
}
