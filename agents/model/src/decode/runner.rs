//! Rows of several sessions through a stage.

use std::sync::Arc;

use tensorlink_num::Tensor;
use tensorlink_program::executor::ExecuteError;
use tensorlink_types::{Source, TensorType};

use super::attention::{Attention, Span};
use super::core::Cores;
use super::engine::CacheEngine;
use super::piece::{Frame, Kept, Need, Piece};
use super::session::{Kind, Session};
use super::{DecodeError, MAX_ROWS, moving};
use crate::emit::{TABLES, with_rows};
use crate::plan::{Plan, PlanError};
use crate::runner::StageRunner;

/// Bytes of a token's keys and values in a stage, as [`CachedRunner::bytes_per_token`]; none where texts do not go on.
///
/// # Errors
/// [`PlanError`] if the plan gives no program.
pub fn bytes_per_token(plan: &Plan) -> Result<u64, PlanError> {
    if plan.goes_on() { Ok(Kind::of(plan, &Piece::body(plan, 1)?).bytes_per_token()) } else { Ok(0) }
}

/// The next tokens of one session.
pub struct Turn<'a, E: CacheEngine> {
    /// The session; it moves on by as many tokens as there are rows.
    pub session: &'a mut Session<E>,
    /// What the stage takes of these tokens: their numbers, or what the previous stage gave.
    pub rows: &'a Tensor,
    /// How their successors are chosen, on a stage that chooses: [`controls`](crate::choice::controls).
    pub controls: Option<&'a Tensor>,
}

/// A stage that goes on with texts.
pub struct CachedRunner<E: CacheEngine> {
    pub(super) engine: E,
    pub(super) plan: Plan,
    pub(super) constants: Vec<E::Tensor>,
    kind: Arc<Kind>,
    bodies: Kept<u32, Piece>,
    pub(super) heads: Kept<u32, Piece>,
    pub(super) choosers: Kept<(u32, Need), Piece>,
    cores: Kept<u32, Cores>,
}

impl<E: CacheEngine> CachedRunner<E> {
    /// Moves the constants to the device.
    ///
    /// # Errors
    /// [`DecodeError::NotADecoder`]; [`DecodeError::Execute`] for constants that are not the plan's, or if the
    /// device fails.
    pub fn new(engine: E, plan: Plan, constants: &[Tensor]) -> Result<Self, DecodeError> {
        Self::sharing(StageRunner::new(engine, plan, constants)?)
    }

    /// A runner on the constants of another; clone that to keep it.
    ///
    /// # Errors
    /// [`DecodeError::NotADecoder`].
    pub fn sharing(runner: StageRunner<E>) -> Result<Self, DecodeError> {
        let (engine, plan, constants) = runner.into_parts();
        if !plan.goes_on() {
            return Err(DecodeError::NotADecoder);
        }
        let mut bodies = Kept::default();
        let body = bodies.get(1, || Piece::body(&plan, 1))?;
        let kind = Arc::new(Kind::of(&plan, &body));
        Ok(Self {
            engine,
            plan,
            constants,
            kind,
            bodies,
            heads: Kept::default(),
            choosers: Kept::default(),
            cores: Kept::default(),
        })
    }

    /// The plan.
    pub const fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Bytes of a token's keys and values in this stage.
    pub fn bytes_per_token(&self) -> u64 {
        self.kind.bytes_per_token()
    }

    /// An empty text.
    ///
    /// # Errors
    /// [`DecodeError::Execute`] when the device's memory runs out.
    pub fn session(&self) -> Result<Session<E>, DecodeError> {
        Session::new(&self.engine, &self.kind)
    }

    /// Computes the next tokens of each session, however many: all of a prompt, part of it, one. Gives what the stage
    /// gives for these tokens, session by session: rows of its program's output for the whole text.
    ///
    /// # Errors
    /// [`DecodeError`]; no session moves on then.
    pub fn advance(&mut self, turns: &mut [Turn<'_, E>]) -> Result<Vec<Tensor>, DecodeError> {
        if turns.is_empty() {
            return Ok(Vec::new());
        }
        let spans = self.spans(turns)?;
        let rows = spans.last().map_or(0, |span| span.first.saturating_add(span.rows));
        let plan = &self.plan;
        let body = self.bodies.get(rows, || Piece::body(plan, rows))?;
        let mut cores = Vec::with_capacity(spans.len());
        for span in &spans {
            let rows = span.together();
            cores.push(self.cores.get(rows, || Cores::new(plan, &body.cut.cores, rows))?);
        }
        let input = self.stacked(&body.input, "rows of a turn", turns.iter().map(|turn| turn.rows))?;
        let choices = self.choices(turns)?;
        let x = self.layers(&body, &cores, input, turns, &spans)?;
        let outputs = match &choices {
            Some(choices) => self.choose(&x, turns, &spans, choices)?,
            None => self.head(x, &spans)?,
        };
        for (turn, span) in turns.iter_mut().zip(&spans) {
            turn.session.go_on(span, choices.iter().flat_map(|choices| choices.tokens(span)));
        }
        Ok(outputs)
    }

    /// Which rows are whose.
    fn spans(&self, turns: &[Turn<'_, E>]) -> Result<Vec<Span>, DecodeError> {
        let mut spans = Vec::with_capacity(turns.len());
        let mut first = 0u32;
        for (number, Turn { session, rows, .. }) in turns.iter().enumerate() {
            if !Arc::ptr_eq(&session.kind, &self.kind) {
                return Err(DecodeError::ForeignSession(number));
            }
            let (past, context) = (session.position, self.kind.context);
            let count = rows.ty().dims().first().copied().unwrap_or_default();
            if past.saturating_add(count) > context {
                return Err(DecodeError::Context { position: past, rows: count, context });
            }
            spans.push(Span { first, rows: count, past });
            first = first.saturating_add(count);
            if first > MAX_ROWS {
                return Err(DecodeError::Rows(turns.iter().map(|turn| turn.rows.ty().rows()).sum()));
            }
        }
        Ok(spans)
    }

    /// What the last layer gives for the rows of all.
    fn layers(
        &self,
        body: &Piece,
        cores: &[Arc<Cores>],
        input: E::Tensor,
        turns: &mut [Turn<'_, E>],
        spans: &[Span],
    ) -> Result<E::Tensor, DecodeError> {
        let mut frame = Frame::new(&self.constants, Some(input));
        let positions: Vec<u32> = spans.iter().flat_map(Span::positions).collect();
        let tables = body.cut.positions.iter().map(|place| self.constants.get(*place as usize));
        for (number, table) in (0..TABLES).zip(tables.flatten()) {
            frame.states.insert(number, self.engine.pick(table, &positions).map_err(moving)?);
        }
        let mut start = 0;
        for (layer, core) in body.cut.cores.iter().enumerate() {
            body.run(&self.engine, &mut frame, start..core.before)?;
            start = core.before;
            let missing = || ExecuteError::Order(format!("attention of layer {}", core.layer));
            let mut take = |source: Source| frame.take(source).ok_or_else(missing);
            let all = [take(core.query.source)?, take(core.key.source)?, take(core.value.source)?];
            let mut mixed = Vec::with_capacity(spans.len());
            for ((turn, span), cores) in turns.iter_mut().zip(spans).zip(cores) {
                let rooms = turn.session.layers.get_mut(layer).ok_or_else(missing)?;
                let window = self.plan.architecture().local(core.layer).map(|local| local.window);
                let attention = Attention { engine: &self.engine, constants: &self.constants, cores, layer, window };
                attention.run(rooms, &all, span, &mut mixed)?;
            }
            frame.states.retain(|state, _| *state < TABLES);
            // SAFETY of the cast: a model has fewer than 2^32 layers.
            frame.states.insert(TABLES.saturating_add(layer as u32), stack(&self.engine, mixed)?);
        }
        body.run(&self.engine, &mut frame, start..body.len())?;
        Ok(body.output(&frame)?)
    }

    /// Rows of all sessions, one after another, on the device.
    fn stacked<'a>(
        &self,
        ty: &TensorType,
        what: &str,
        rows: impl Iterator<Item = &'a Tensor>,
    ) -> Result<E::Tensor, DecodeError> {
        let mut all = Vec::new();
        for rows in rows {
            let count = rows.ty().dims().first().copied().unwrap_or_default();
            let due = with_rows(ty, count).map_err(|source| PlanError::Type { name: what.to_owned(), source })?;
            if *rows.ty() != due {
                let actual = rows.ty().clone();
                return Err(ExecuteError::Type { what: what.to_owned(), expected: due, actual }.into());
            }
            all.push(self.engine.import(rows).map_err(moving)?);
        }
        stack(&self.engine, all)
    }
}

/// One tensor of the rows of some.
fn stack<E: CacheEngine>(engine: &E, mut tensors: Vec<E::Tensor>) -> Result<E::Tensor, DecodeError> {
    match tensors.len() {
        1 => tensors.pop().ok_or_else(|| ExecuteError::Order("rows".to_owned()).into()),
        _ => Ok(engine.stack(&tensors).map_err(moving)?),
    }
}
