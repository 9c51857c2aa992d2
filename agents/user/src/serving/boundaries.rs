//! What crosses a pipeline's boundaries: types and rows. Boundary 0 leads into the first stage, boundary `n` out of
//! stage `n − 1`. The last stage of a decoder also takes controls from behind, where the user stands.

use std::ops::Range;

use tensorlink_model::{Output, Plan, PlanError, Setting};
use tensorlink_types::{B256, TensorType, TypeError};
use thiserror::Error;

use super::work::{StageWork, shape};

/// Most bytes of rows in one message: half of what a frame holds.
const PART: u64 = 32 << 20;

/// Why the stages make no pipeline.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum BoundaryError {
    /// A stage has no program.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A stage does not take what the one before gives, or layers are missing.
    #[error("stage {0} does not go on where the one before ends: the job's files are not of one model")]
    Gap(usize),
    /// A stage takes a choice of tokens and is not the last.
    #[error("stage {0} chooses tokens and is not the last: the job's files are not of one model")]
    Choice(usize),
    /// No stages, or stages that receive or give nothing.
    #[error("the job has no stages that receive and give")]
    Empty,
}

/// The boundaries of a pipeline whose stages compute a whole transformer.
#[derive(Clone, PartialEq, Debug)]
pub struct Boundaries {
    /// Types for a text of one token.
    types: Vec<TensorType>,
    /// Whether the last boundary has one row a text, not one a token.
    one: bool,
    /// Whether a row depends on no later token, so that a text can be sent in parts.
    causal: bool,
    /// Type of what the last stage takes from the user to choose the token after the only one; none if it chooses none.
    controls: Option<TensorType>,
    vocabulary: u32,
    setting: Setting,
    work: Vec<StageWork>,
    shape: B256,
}

impl Boundaries {
    /// The boundaries of the stages of these plans, first to last.
    ///
    /// # Errors
    /// [`BoundaryError`].
    pub fn new(plans: &[Plan]) -> Result<Self, BoundaryError> {
        let mut types: Vec<TensorType> = Vec::new();
        let (mut layers, mut controls, mut work) = (0, None, Vec::new());
        for (stage, plan) in plans.iter().enumerate() {
            let program = plan.program(1)?;
            let received = program.from_previous.first().cloned().ok_or(BoundaryError::Empty)?;
            let last = program.to_next.first().and_then(|last| program.operators.get(*last as usize));
            let given = last.map(|last| last.output.clone()).ok_or(BoundaryError::Empty)?;
            let goes_on = plan.layers().start == layers && types.last().is_none_or(|before| *before == received);
            let of = |plan: &Plan| (plan.architecture().clone(), plan.setting());
            if !goes_on || plans.first().is_some_and(|first| of(first) != of(plan)) {
                return Err(BoundaryError::Gap(stage));
            }
            if controls.is_some() {
                return Err(BoundaryError::Choice(stage.saturating_sub(1)));
            }
            controls = program.from_next.first().cloned();
            if types.is_empty() {
                types.push(received);
            }
            types.push(given);
            work.push(StageWork::of(plan, &program));
            layers = plan.layers().end;
        }
        let last = plans.last().ok_or(BoundaryError::Empty)?;
        let architecture = last.architecture();
        if layers != architecture.layers {
            return Err(BoundaryError::Gap(plans.len()));
        }
        let one = matches!(architecture.output, Output::Embedding(_) | Output::Classes(_));
        let (causal, vocabulary) = (architecture.causal, architecture.token_numbers());
        Ok(Self { types, one, causal, controls, vocabulary, setting: last.setting(), work, shape: shape(last) })
    }

    /// Stages.
    pub const fn stages(&self) -> usize {
        self.types.len().saturating_sub(1)
    }

    /// In how many bits the model is computed.
    pub const fn setting(&self) -> Setting {
        self.setting
    }

    /// What tells models of one shape in one setting from others: their weights may differ.
    pub const fn shape(&self) -> B256 {
        self.shape
    }

    /// What a stage multiplies for these tokens of a text, about.
    pub(super) fn multiply_adds(&self, stage: usize, tokens: Range<u32>) -> f64 {
        self.work.get(stage).map_or(0.0, |work| work.multiply_adds(tokens))
    }

    /// Bytes that a stage receives for so many tokens.
    pub(super) fn sent(&self, stage: usize, tokens: u32) -> u64 {
        (self.row(stage).saturating_add(self.controls_row(stage)) as u64).saturating_mul(tokens.into())
    }

    /// Numbers that the model's tokens have: ids are below this.
    pub const fn vocabulary(&self) -> u32 {
        self.vocabulary
    }

    /// Elements of a row that comes out of the last stage.
    pub fn dimensions(&self) -> u64 {
        self.types.last().map_or(0, TensorType::elements)
    }

    /// Whether a text can be sent in parts.
    pub const fn causal(&self) -> bool {
        self.causal
    }

    /// Whether the last stage chooses tokens, by controls that come with each.
    pub const fn chooses(&self) -> bool {
        self.controls.is_some()
    }

    /// Type of the controls of a text of `tokens` tokens; none if none are chosen.
    ///
    /// # Errors
    /// [`TypeError`] for no tokens, or too many for any tensor.
    pub fn controls(&self, tokens: u32) -> Result<Option<TensorType>, TypeError> {
        self.controls.as_ref().map(|one| rows(one, tokens)).transpose()
    }

    /// Bytes of a row of the controls that a stage takes: 0 but for the last of a pipeline that chooses tokens.
    pub fn controls_row(&self, stage: usize) -> usize {
        let last = stage.saturating_add(1) == self.stages();
        self.controls.as_ref().filter(|_| last).map_or(0, bytes)
    }

    /// Whether a boundary has a row for each token; the last may have one for the whole text.
    pub const fn by_token(&self, boundary: usize) -> bool {
        !self.one || boundary < self.stages()
    }

    /// Whether a stage signs for a text after it gave its last rows, when all stages are asked to sign at once. Others
    /// give nothing before they sign.
    pub const fn receipt_apart(&self, stage: usize) -> bool {
        self.causal && self.by_token(stage.saturating_add(1))
    }

    /// Type of the tensor that crosses a boundary for a text of `tokens` tokens; none for a boundary that is not there.
    ///
    /// # Errors
    /// [`TypeError`] for no tokens, or too many for any tensor.
    pub fn ty(&self, boundary: usize, tokens: u32) -> Result<Option<TensorType>, TypeError> {
        let Some(one) = self.types.get(boundary) else { return Ok(None) };
        if self.by_token(boundary) { rows(one, tokens).map(Some) } else { Ok(Some(one.clone())) }
    }

    /// Bytes of a row on a boundary.
    pub fn row(&self, boundary: usize) -> usize {
        self.types.get(boundary).map_or(0, bytes)
    }

    /// Tokens that go to a stage in one message, such that question and answer fit a frame; all at once if the stage
    /// needs them so.
    pub fn part(&self, stage: usize) -> u32 {
        if !self.causal {
            return u32::MAX;
        }
        let question = self.row(stage).saturating_add(self.controls_row(stage));
        let row = question.max(self.row(stage.saturating_add(1))) as u64;
        u32::try_from((PART / row.max(1)).max(1)).unwrap_or(u32::MAX)
    }
}

fn bytes(ty: &TensorType) -> usize {
    usize::try_from(ty.byte_len()).unwrap_or(usize::MAX)
}

/// The type of `tokens` rows of what one token has.
fn rows(one: &TensorType, tokens: u32) -> Result<TensorType, TypeError> {
    let mut dims = one.dims().to_vec();
    if let Some(rows) = dims.first_mut() {
        *rows = tokens;
    }
    TensorType::new(one.bits(), one.exponent(), &dims)
}
