//! The programs of a stage: one for every number of tokens, all from one plan.
//!
//! A program has fixed shapes, texts have not. A [`Plan`] is what the programs of a stage share: layers, exponents and
//! constants; [`Plan::program`] emits the one for a number of tokens. It computes the whole text from nothing. An
//! engine that keeps keys and values and computes one more token at a time gives the same bits, because integers do not
//! care, so a cache is never part of what is proven.

pub mod error;
mod older;

use std::collections::BTreeMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};
use tensorlink_program::check::CheckedProgram;
use tensorlink_types::program::ConstantSlot;
use tensorlink_types::{Operator, Program, Segment, Source, TensorType};

use super::architecture::{Architecture, Output};
use super::emit::{Cut, Emitter, STREAM_BITS, Value};
use super::setting::Setting;
use super::sites::Sites;

pub use self::error::PlanError;
pub use self::older::OlderPlan;

/// What the last stage of a decoder gives.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Head {
    /// The model's output: logits, a text's vector or its classes.
    #[default]
    Output,
    /// For each token, the number of the one that follows it, chosen as the text's owner says.
    Choice,
}

impl Head {
    /// What serving a model takes of its last stage: chosen tokens where there are logits of
    /// tokens, else what is given of the text.
    pub const fn served(output: Output) -> Self {
        match output {
            Output::Logits { .. } => Self::Choice,
            Output::Embedding(_) | Output::Classes(_) => Self::Output,
        }
    }
}

/// What the programs of a stage share.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Plan {
    architecture: Architecture,
    setting: Setting,
    sites: Sites,
    layers: Range<u32>,
    #[serde(default)]
    head: Head,
    constants: Vec<ConstantSlot>,
}

impl Plan {
    pub(super) fn new(
        (architecture, setting): (Architecture, Setting),
        sites: Sites,
        (layers, head): (Range<u32>, Head),
        constants: Vec<ConstantSlot>,
    ) -> Self {
        Self { architecture, setting, sites, layers, head, constants }
    }

    /// The model, its setting and its sites, without the stage.
    pub(super) fn into_model(self) -> (Architecture, Setting, Sites) {
        (self.architecture, self.setting, self.sites)
    }

    /// The model.
    pub const fn architecture(&self) -> &Architecture {
        &self.architecture
    }

    /// Whether a text can go on token by token: keys and values of a decoder's tokens stay as they are.
    pub const fn goes_on(&self) -> bool {
        self.architecture.causal && matches!(self.architecture.output, Output::Logits { .. })
    }

    /// In how many bits it is computed.
    pub const fn setting(&self) -> Setting {
        self.setting
    }

    /// Its layers in this stage.
    pub const fn layers(&self) -> &Range<u32> {
        &self.layers
    }

    /// What the stage gives, if it has the last layer.
    pub const fn head(&self) -> Head {
        self.head
    }

    /// Whether the stage gives chosen tokens, and takes controls.
    pub fn chooses(&self) -> bool {
        self.head == Head::Choice && self.layers.end == self.architecture.layers
    }

    /// Constants, in the order in which every program of the stage has them.
    pub fn constants(&self) -> &[ConstantSlot] {
        &self.constants
    }

    /// The stage's program for a text of `tokens` tokens: one forward pass, no state. The first stage receives token
    /// numbers (`tokens`, 32 bits, exponent 0), every other the residual stream (`tokens × width`); the last sends the
    /// output. Where that is a choice, it takes a row of controls for each token (`tokens × 11`, 32 bits, exponent 0)
    /// as from the next stage: the user is the neighbour at both ends.
    ///
    /// # Errors
    /// [`PlanError`].
    pub fn program(&self, tokens: u32) -> Result<CheckedProgram, PlanError> {
        let context = self.architecture.context;
        if !(1..=context).contains(&tokens) {
            return Err(PlanError::Tokens { tokens, context });
        }
        let types = self.types();
        let mut emitter = Emitter::new((&self.architecture, self.setting), &self.sites, &types, tokens);
        let (input, last) = emit(&mut emitter, &self.architecture, (&self.layers, self.head))?;
        let controls = if self.chooses() { Some(emitter.controls()?) } else { None };
        let (operators, names) = emitter.finish(&self.constants)?;
        let count = u32::try_from(operators.len()).unwrap_or(u32::MAX);
        let program = Program {
            operators,
            constants: self.constants.clone(),
            state: vec![],
            micro_batches: 1,
            to_next: vec![last],
            to_previous: vec![],
            from_previous: vec![input],
            from_next: controls.into_iter().collect(),
            segments: vec![Segment::Forward { micro_batch: 0, operators: 0..count }],
            names,
        };
        Ok(CheckedProgram::new(program)?)
    }

    /// Types of the constants by name.
    fn types(&self) -> BTreeMap<&str, &TensorType> {
        self.constants.iter().map(|slot| (slot.name.as_str(), &slot.ty)).collect()
    }

    /// What `part` emits for so many rows of texts whose keys and values are cached.
    pub(super) fn for_cache<T>(
        &self,
        rows: u32,
        part: impl FnOnce(&mut Emitter<'_>) -> Result<T, PlanError>,
    ) -> Result<(Vec<Operator>, Vec<String>, Cut, T), PlanError> {
        let types = self.types();
        let names = self.constants.iter().map(|slot| slot.name.clone()).collect();
        let mut emitter = Emitter::new((&self.architecture, self.setting), &self.sites, &types, rows).for_cache(names);
        let result = part(&mut emitter)?;
        let (operators, names, cut) = emitter.into_cut();
        Ok((operators, names, cut, result))
    }

    /// Names of the constants that a stage's programs read, in the order of first use, out of `types`.
    pub(super) fn constants_of(
        (architecture, setting): (&Architecture, Setting),
        sites: &Sites,
        stage: (&Range<u32>, Head),
        types: &BTreeMap<&str, &TensorType>,
    ) -> Result<Vec<String>, PlanError> {
        let mut emitter = Emitter::new((architecture, setting), sites, types, 1);
        emit(&mut emitter, architecture, stage)?;
        Ok(emitter.into_constants())
    }
}

/// Emits the stage; returns the type of its input and the operator of its output.
fn emit(
    emitter: &mut Emitter<'_>,
    a: &Architecture,
    (layers, output): (&Range<u32>, Head),
) -> Result<(TensorType, u32), PlanError> {
    let input = received(emitter, a, layers)?;
    let ty = input.ty.clone();
    let x = body(emitter, layers, input)?;
    match head(emitter, a, layers, output, x)?.source {
        Source::Output(last) => Ok((ty, last)),
        // Every stage has a layer, and a layer ends with an operator.
        _ => Err(PlanError::Layers { first: layers.start, end: layers.end, layers: a.layers }),
    }
}

/// What the stage receives: token numbers, or the residual stream.
pub(super) fn received(emitter: &Emitter<'_>, a: &Architecture, layers: &Range<u32>) -> Result<Value, PlanError> {
    let (first, end) = (layers.start, layers.end);
    if first >= end || end > a.layers {
        return Err(PlanError::Layers { first, end, layers: a.layers });
    }
    let ty = if first == 0 { emitter.ty("tokens", 32, 0, &[emitter.tokens()])? } else { stream(emitter, a, first)? };
    Ok(Value { source: Source::FromPrevious(0), ty })
}

/// Type of the residual stream before a layer that is not the first.
pub(super) fn stream(emitter: &Emitter<'_>, a: &Architecture, layer: u32) -> Result<TensorType, PlanError> {
    let before = layer.saturating_sub(1);
    let part = if a.placement.before() { "mlp.sum" } else { "mlp.norm" };
    emitter.activation(&format!("layers.{before}.{part}"), STREAM_BITS, &[emitter.tokens(), a.width])
}

/// Emits the stage's layers, after the embedding if it has the first.
pub(super) fn body(emitter: &mut Emitter<'_>, layers: &Range<u32>, received: Value) -> Result<Value, PlanError> {
    let mut x = if layers.start == 0 { emitter.embedding(&received)? } else { received };
    for layer in layers.clone() {
        x = emitter.layer(layer, &x)?;
    }
    Ok(x)
}

/// Emits the output, if the stage has the last layer.
pub(super) fn head(
    emitter: &mut Emitter<'_>,
    a: &Architecture,
    layers: &Range<u32>,
    output: Head,
    x: Value,
) -> Result<Value, PlanError> {
    if layers.end != a.layers {
        return Ok(x);
    }
    match (a.output, output) {
        (Output::Logits { tied }, Head::Output) => emitter.logits(&x, tied),
        (Output::Logits { tied }, Head::Choice) => {
            let logits = emitter.logits(&x, tied)?;
            let seen = emitter.seen(a.vocabulary)?;
            let logits = emitter.penalised(&logits, &seen)?;
            emitter.choice(&logits)
        }
        (Output::Embedding(pooling), Head::Output) => emitter.vector(&x, pooling),
        (Output::Classes(_), Head::Output) => emitter.classes(&x),
        (Output::Embedding(_) | Output::Classes(_), Head::Choice) => {
            Err(PlanError::Unsupported("a token chosen by a model that continues no text"))
        }
    }
}
