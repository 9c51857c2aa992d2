//! Texts of a decoder token by token, their keys and values kept, rows of all that wait in one pass.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use tensorlink_model::decode::{self, CacheEngine, CachedRunner, DecodeError, MAX_ROWS, Session};
use tensorlink_node::footprint::QUEUE;
use tensorlink_node::memory::give_back;
use tensorlink_node::serving::ServingShard;
use tensorlink_num::Tensor;
use tensorlink_types::TensorType;

use super::{Runner, RunnerError, Turn};

/// Rows that a pass takes at least: one of every request that waits.
const TURNS: u32 = 32;
/// Rows of a pass whose attention leaves tens of megabytes behind: they are given back before keys and values grow. Far
/// shorter than the pass.
const LONG: u32 = 256;
const _: () = assert!(TURNS as usize == QUEUE, "a pass takes a row of every request");

/// Goes on with texts where they stand; gives the bits of the programs that their receipts stand for.
pub struct Cached<E: CacheEngine> {
    runner: CachedRunner<E>,
    shard: Arc<ServingShard>,
    sessions: HashMap<u32, Session<E>>,
    /// Tokens whose keys and values fit into memory.
    most: u64,
    /// Most rows of a pass.
    rows: u32,
}

/// A turn under way.
struct Progress<'a, E: CacheEngine> {
    turn: &'a Turn<'a>,
    session: Session<E>,
    output: Vec<u8>,
    failed: Option<RunnerError>,
}

/// Rows of a pass and their controls.
struct Rows {
    range: Range<u32>,
    rows: Tensor,
    controls: Option<Tensor>,
}

impl<E: CacheEngine> Cached<E> {
    /// Moves the stage's constants to the engine's device. There is memory for the keys and values of one text, and
    /// `more` bytes for those of others.
    ///
    /// # Errors
    /// [`DecodeError::NotADecoder`], or when the device fails.
    pub fn new(engine: E, shard: Arc<ServingShard>, more: u64) -> Result<Self, DecodeError> {
        let runner = CachedRunner::new(engine, shard.plan.as_ref().clone(), &shard.constants)?;
        let others = more.checked_div(runner.bytes_per_token()).unwrap_or(u64::MAX);
        // A text may take twice its own.
        let most = others.saturating_add(u64::from(shard.longest).saturating_mul(2));
        // As many as the longest text has, whose tensors fit into memory (`Footprint::serving`), or one of each text
        // that waits.
        let rows = shard.longest.clamp(TURNS, MAX_ROWS);
        Ok(Self { runner, shard, sessions: HashMap::new(), most, rows })
    }

    /// The text's session, no further than its turn begins; one that was lost begins anew.
    fn resume(&mut self, turn: &Turn<'_>) -> Result<Session<E>, RunnerError> {
        let mut session = match self.sessions.remove(&turn.text) {
            Some(session) => session,
            None => self.runner.session()?,
        };
        session.cut_back(turn.position.min(session.position()))?;
        Ok(session)
    }

    /// The next rows of a turn, `most` of them or fewer.
    fn next(&self, progress: &Progress<'_, E>, most: u32) -> Result<Rows, RunnerError> {
        let (start, turn) = (progress.session.position(), progress.turn);
        let count = turn.tokens.saturating_sub(start).min(most);
        let range = start..start.saturating_add(count);
        let rows = part(self.shard.received(count)?, turn.received, &range)?;
        let controls = self.shard.controls(count)?.map(|ty| part(ty, turn.controls, &range)).transpose()?;
        Ok(Rows { range, rows, controls })
    }

    /// Computes rows of some turns; none moves on if one fails.
    fn pass(&mut self, group: &mut [(&mut Progress<'_, E>, Rows)]) -> Result<(), RunnerError> {
        let mut turns = Vec::with_capacity(group.len());
        for (progress, rows) in group.iter_mut() {
            let Progress { session, .. } = &mut **progress;
            turns.push(decode::Turn { session, rows: &rows.rows, controls: rows.controls.as_ref() });
        }
        let outputs = self.runner.advance(&mut turns)?;
        for ((progress, rows), output) in group.iter_mut().zip(outputs) {
            // Rows that were given before are computed again only for a session that was lost.
            let known = progress.turn.position.clamp(rows.range.start, rows.range.end);
            let skip = if known > rows.range.start {
                self.shard.given(known.saturating_sub(rows.range.start))?.byte_len()
            } else {
                0
            };
            let bytes = output.to_bytes();
            let new = usize::try_from(skip).ok().and_then(|skip| bytes.get(skip..)).ok_or(RunnerError::Missing)?;
            progress.output.extend_from_slice(new);
        }
        Ok(())
    }

    /// Computes as many rows of all turns as one pass takes; whether there were any.
    fn step(&mut self, all: &mut [Progress<'_, E>]) -> bool {
        let mut left = self.rows;
        let mut group = Vec::with_capacity(all.len());
        for progress in all {
            if progress.failed.is_some() || progress.session.position() >= progress.turn.tokens || left == 0 {
                continue;
            }
            match self.next(progress, left) {
                Ok(rows) => {
                    left = left.saturating_sub(rows.range.end.saturating_sub(rows.range.start));
                    group.push((progress, rows));
                }
                Err(error) => progress.failed = Some(error),
            }
        }
        if group.is_empty() {
            return false;
        }
        let long = self.rows.saturating_sub(left) >= LONG;
        match (self.pass(&mut group), group.as_mut_slice()) {
            (Ok(()), _) => {}
            (Err(error), [(only, _)]) => only.failed = Some(error),
            (Err(error), several) => {
                tracing::warn!(%error, texts = several.len(), "texts could not be computed together; now one by one");
                for one in several {
                    one.0.failed = self.pass(std::slice::from_mut(one)).err();
                }
            }
        }
        if long {
            give_back();
        }
        true
    }
}

/// Rows of a text as a tensor of type `ty`.
fn part(ty: TensorType, all: &[u8], range: &Range<u32>) -> Result<Tensor, RunnerError> {
    let count = u64::from(range.end.saturating_sub(range.start));
    let row = ty.byte_len().checked_div(count).unwrap_or_default();
    let at = |token: u32| usize::try_from(row.saturating_mul(token.into())).unwrap_or(usize::MAX);
    let bytes = all.get(at(range.start)..at(range.end)).ok_or(RunnerError::Missing)?;
    Ok(Tensor::from_bytes(ty, bytes)?)
}

impl<E: CacheEngine> Runner for Cached<E> {
    fn run(&mut self, turns: &[Turn<'_>]) -> Vec<Result<Vec<u8>, RunnerError>> {
        let mut results = Vec::with_capacity(turns.len());
        let (mut places, mut all) = (Vec::with_capacity(turns.len()), Vec::with_capacity(turns.len()));
        for (place, turn) in turns.iter().enumerate() {
            // Nothing is left to compute for a text that only ends.
            if turn.position == turn.tokens {
                results.push(Ok(Vec::new()));
                continue;
            }
            match self.resume(turn) {
                Ok(session) => {
                    places.push(place);
                    all.push(Progress { turn, session, output: Vec::new(), failed: None });
                    results.push(Err(RunnerError::Missing));
                }
                Err(error) => results.push(Err(error)),
            }
        }
        // Each pass ends a turn, or takes the most rows; a turn that fails is not in the next.
        while self.step(&mut all) {}
        for (place, Progress { turn, session, output, failed }) in places.into_iter().zip(all) {
            let Some(result) = results.get_mut(place) else { continue };
            // What a failure left of a session may be anything: its rows are here, and it can begin anew.
            *result = match failed {
                Some(error) => Err(error),
                None => {
                    self.sessions.insert(turn.text, session);
                    Ok(output)
                }
            };
        }
        results
    }

    fn forget(&mut self, text: u32) {
        self.sessions.remove(&text);
    }

    fn most_tokens(&self) -> Option<u64> {
        Some(self.most)
    }
}
