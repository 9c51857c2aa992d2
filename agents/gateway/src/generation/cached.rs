//! An exact decoder that keeps keys and values: every token is computed once, and chosen within the exact program.

use tensorlink_model::choice::controls_of_last;
use tensorlink_model::decode::{self, CacheEngine, CachedRunner, DecodeError, Session};
use tensorlink_model::tokens;
use tensorlink_num::Tensor;

use super::decoder::{Decoder, Turn};
use crate::backend::error::EmbedError;

/// A model whose stages, in order, cover all of its layers; the last chooses tokens.
pub struct Cached<E: CacheEngine> {
    stages: Vec<CachedRunner<E>>,
}

/// What one call of [`decode::CachedRunner::advance`] takes of a text, but its session.
struct Rows {
    rows: Tensor,
    /// For the last stage.
    controls: Tensor,
}

impl<E: CacheEngine> Cached<E> {
    /// Takes the stages of a model, first to last.
    ///
    /// # Errors
    /// If they are not all of a model's, or the last chooses no tokens.
    pub fn new(stages: Vec<CachedRunner<E>>) -> Result<Self, EmbedError> {
        crate::exact::cover(stages.iter().map(CachedRunner::plan))?;
        if !stages.last().is_some_and(|last| last.plan().chooses()) {
            return Err("its last stage chooses no tokens".into());
        }
        Ok(Self { stages })
    }

    /// Bytes of a token's keys and values.
    pub fn bytes_per_token(&self) -> u64 {
        self.stages.iter().map(CachedRunner::bytes_per_token).fold(0, u64::saturating_add)
    }

    /// The tokens chosen for some texts, all of them or none. Sessions that moved on are cut back then.
    fn choose(&mut self, batch: &mut [Turn<'_, Vec<Session<E>>>]) -> Result<Vec<u32>, EmbedError> {
        let before: Vec<u32> = batch.iter().map(|turn| position(turn.text)).collect();
        let chosen = self.pass(batch);
        if chosen.is_err() {
            for (turn, before) in batch.iter_mut().zip(before) {
                turn.text.iter_mut().try_for_each(|session| session.cut_back(before.min(session.position())))?;
            }
        }
        chosen
    }

    fn pass(&mut self, batch: &mut [Turn<'_, Vec<Session<E>>>]) -> Result<Vec<u32>, EmbedError> {
        let mut rows = batch.iter().map(|turn| begin(turn)).collect::<Result<Vec<_>, _>>()?;
        for (number, stage) in self.stages.iter_mut().enumerate() {
            let chooses = stage.plan().chooses();
            let mut turns = Vec::with_capacity(batch.len());
            for (turn, Rows { rows, controls }) in batch.iter_mut().zip(&rows) {
                let session = turn.text.get_mut(number).ok_or("a text of another decoder")?;
                turns.push(decode::Turn { session, rows, controls: chooses.then_some(controls) });
            }
            let outputs = stage.advance(&mut turns)?;
            for (rows, output) in rows.iter_mut().zip(outputs) {
                rows.rows = output;
            }
        }
        rows.iter().map(|rows| last(&rows.rows)).collect()
    }
}

impl<E: CacheEngine> Decoder for Cached<E> {
    type Text = Vec<Session<E>>;

    fn begin(&mut self) -> Result<Vec<Session<E>>, EmbedError> {
        Ok(self.stages.iter().map(CachedRunner::session).collect::<Result<_, DecodeError>>()?)
    }

    fn advance(&mut self, batch: &mut [Turn<'_, Vec<Session<E>>>]) -> Vec<Result<u32, EmbedError>> {
        match self.choose(batch) {
            Ok(chosen) => chosen.into_iter().map(Ok).collect(),
            Err(error) if batch.len() == 1 => vec![Err(error)],
            // One by one, so that a text that fails takes no other with it.
            Err(_) => batch.iter_mut().map(|turn| self.alone(turn)).collect(),
        }
    }
}

impl<E: CacheEngine> Cached<E> {
    fn alone(&mut self, turn: &mut Turn<'_, Vec<Session<E>>>) -> Result<u32, EmbedError> {
        let chosen = self.choose(std::slice::from_mut(turn))?;
        chosen.first().copied().ok_or_else(|| "no token was chosen".into())
    }
}

/// Tokens computed of a text.
fn position<E: CacheEngine>(text: &[Session<E>]) -> u32 {
    text.iter().map(Session::position).min().unwrap_or_default()
}

/// What the first stage takes: only the last token has a successor chosen.
fn begin<T>(turn: &Turn<'_, T>) -> Result<Rows, EmbedError> {
    let step = &turn.step;
    let controls = controls_of_last(step.position, &step.tokens, step.choice)?;
    Ok(Rows { rows: tokens(&step.tokens)?, controls })
}

/// The token that the last row chose.
fn last(chosen: &Tensor) -> Result<u32, EmbedError> {
    let ids = chosen.mantissas().to_vec();
    let id = ids.last().ok_or("no token was chosen")?;
    Ok(u32::try_from(*id)?)
}
