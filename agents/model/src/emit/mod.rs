//! Operators of a transformer, one after another.
//!
//! | module | what lives there |
//! |---|---|
//! | `mod` | the emitter; embedding, logits |
//! | [`layer`] | a layer |
//! | [`text`] | what is given of a whole text: its vector, its classes |
//! | [`attention`] | scores, softmax, mixing |
//! | [`projection`] | products with weights |
//! | [`choice`] | the choice of the next token |
//! | [`penalty`] | logits of tokens that the text has already |
//! | [`cut`] | what an emitted program leaves to a cache of keys and values |
//! | [`window`] | layers whose tokens see only those shortly before them |

mod attention;
mod choice;
mod cut;
mod layer;
mod penalty;
mod projection;
mod text;
mod window;

use std::collections::BTreeMap;

use tensorlink_num::bounds::{NORM_INPUT_BITS, norm_exponent};
use tensorlink_program::scale;
use tensorlink_types::operator::Operand;
use tensorlink_types::program::ConstantSlot;
use tensorlink_types::{Opcode, Operator, Source, TensorType};

pub(super) use self::cut::{Core, Cut, TABLES, with_rows};
pub(super) use self::penalty::FLAG_BITS;
pub(super) use self::projection::{part_name, parts};
use super::architecture::{Activation, Architecture, Norm, Placement, Positions};
use super::inputs::Input;
use super::plan::error::PlanError;
use super::setting::Setting;
use super::sites::Sites;

/// Bits of what lies between products: residual stream, gates, inner vectors. The largest that Norm takes.
pub(super) const STREAM_BITS: u8 = NORM_INPUT_BITS;
/// Bits of what attention multiplies, of scores and of logits.
const WORD_BITS: u8 = 16;
/// Bits of a logit, which are searched one by one.
const LOGIT_BITS: u8 = WORD_BITS;
/// Exponent of the share of a gate that passes, and of whatever else is below 1.
const SHARE_EXPONENT: i16 = 22;
/// The table of the share of a gate that passes: from −16 to 16 in `2^12` cells of `2^−7`. Beyond, none or all of it
/// does.
pub(super) const SHARE_LOG: u32 = 12;
pub(super) const SHARE_FIRST: i64 = -(1 << (SHARE_LOG - 1));
pub(super) const SHARE_CELL: i16 = 7;
/// Most bits of a Lookup's argument between two entries of its table (rule N-18).
const MAX_TABLE_FRACTION: i64 = 16;
/// Fraction bits of what tokens' vectors are multiplied by.
const FACTOR_BITS: i16 = 24;

/// A tensor of the program being emitted.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Value {
    pub(super) source: Source,
    pub(super) ty: TensorType,
}

/// Collects operators.
pub(super) struct Emitter<'a> {
    architecture: &'a Architecture,
    setting: Setting,
    sites: &'a Sites,
    types: &'a BTreeMap<&'a str, &'a TensorType>,
    tokens: u32,
    operators: Vec<Operator>,
    names: Vec<String>,
    /// Constants read so far, in the order of first use; operators refer to them by their place here.
    constants: Vec<String>,
    /// How far each token lies beyond the window of each other, where layers have one and a program asked.
    beyond: Option<Value>,
    /// Where the program is one for a cache: what it leaves to the cache.
    cut: Option<Cut>,
}

impl<'a> Emitter<'a> {
    pub(super) const fn new(
        (architecture, setting): (&'a Architecture, Setting),
        sites: &'a Sites,
        types: &'a BTreeMap<&'a str, &'a TensorType>,
        tokens: u32,
    ) -> Self {
        Self {
            architecture,
            setting,
            sites,
            types,
            tokens,
            operators: Vec::new(),
            names: Vec::new(),
            constants: Vec::new(),
            beyond: None,
            cut: None,
        }
    }

    pub(super) const fn tokens(&self) -> u32 {
        self.tokens
    }

    /// Constants in the order of first use.
    pub(super) fn into_constants(self) -> Vec<String> {
        self.constants
    }

    /// Operators and their names, provided that they read exactly these constants.
    pub(super) fn finish(self, slots: &[ConstantSlot]) -> Result<(Vec<Operator>, Vec<String>), PlanError> {
        let named = slots.iter().map(|slot| &slot.name);
        match self.constants.iter().zip(named).find(|(used, given)| used != given) {
            Some((used, _)) => Err(PlanError::Constant(used.clone())),
            None => Ok((self.operators, self.names)),
        }
    }

    pub(super) fn ty(&self, name: &str, bits: u8, exponent: i16, dims: &[u32]) -> Result<TensorType, PlanError> {
        TensorType::new(bits, exponent, dims).map_err(|source| PlanError::Type { name: name.to_owned(), source })
    }

    fn constant(&mut self, name: &str) -> Result<Value, PlanError> {
        let ty = (*self.types.get(name).ok_or_else(|| PlanError::Constant(name.to_owned()))?).clone();
        let place = self.constants.iter().position(|used| used == name).unwrap_or_else(|| {
            self.constants.push(name.to_owned());
            self.constants.len().saturating_sub(1)
        });
        // SAFETY of the cast: a plan has fewer than 2^32 constants.
        Ok(Value { source: Source::Constant(place as u32), ty })
    }

    fn push(
        &mut self,
        name: &str,
        opcode: Opcode,
        operands: &[&Value],
        attributes: Vec<i64>,
        output: TensorType,
    ) -> Value {
        // SAFETY of the cast: the program checker bounds the number of operators.
        let index = self.operators.len() as u32;
        let operands = operands.iter().map(|v| Operand { source: v.source, ty: v.ty.clone() }).collect();
        self.operators.push(Operator { opcode, operands, attributes, output: output.clone() });
        self.names.push(name.to_owned());
        Value { source: Source::Output(index), ty: output }
    }

    /// Type of an activation at a calibrated site.
    pub(super) fn activation(&self, site: &str, bits: u8, dims: &[u32]) -> Result<TensorType, PlanError> {
        self.ty(site, bits, self.sites.exponent(site, bits)?, dims)
    }

    /// Token numbers to the residual stream.
    pub(super) fn embedding(&mut self, ids: &Value) -> Result<Value, PlanError> {
        let a = self.architecture;
        let dims = [self.tokens, a.width];
        let (table, scale) = (self.constant("embedding.tokens")?, self.constant("embedding.tokens.scale")?);
        let to = self.activation("embedding", STREAM_BITS, &dims)?;
        let numbered = a.pairs.then(|| self.numbered(ids, &to)).transpose()?;
        let (ids, text) = numbered.map_or_else(|| (ids.clone(), None), |(words, text)| (words, Some(text)));
        let mut x = match a.embedding_scale {
            Some(factor) => self.scaled_rows((&table, &scale), &ids, factor, to.clone())?,
            None => self.gather("embedding.tokens", &table, &scale, &ids, to.clone()),
        };
        if let Some(text) = text {
            x = self.add("embedding.typed", &x, &text, to.clone());
        }
        if matches!(a.positions, Positions::Learned { .. }) {
            let (table, scale) = (self.constant("embedding.positions")?, self.constant("embedding.positions.scale")?);
            let places = self.positions("embedding.places")?;
            let at = self.gather("embedding.positions", &table, &scale, &places, to.clone());
            x = self.add("embedding", &x, &at, to);
        }
        if a.placement == Placement::After { self.norm("embedding.norm", &x) } else { Ok(x) }
    }

    /// Of tokens numbered as pairs are: their numbers in the vocabulary, and the vectors of the texts that they are of.
    fn numbered(&mut self, ids: &Value, to: &TensorType) -> Result<(Value, Value), PlanError> {
        let ones = self.constant("embedding.pair.ones")?;
        let mut looked_up = |name: &str| {
            let table = self.constant(name)?;
            let ty = self.ty(name, table.ty.bits(), 0, &[self.tokens, 1])?;
            Ok::<_, PlanError>(self.gather(name, &table, &ones, ids, ty))
        };
        let (words, texts) = (looked_up("embedding.pair.words")?, looked_up("embedding.pair.texts")?);
        let table = self.constant("embedding.type")?;
        let text = self.gather("embedding.type", &table, &ones, &texts, to.clone());
        Ok((words, text))
    }

    /// Rows of the embedding times a factor: so much finer before it that they have as many bits.
    fn scaled_rows(
        &mut self,
        (table, scale): (&Value, &Value),
        ids: &Value,
        factor: f64,
        to: TensorType,
    ) -> Result<Value, PlanError> {
        // SAFETY of the casts: they saturate, and the checker bounds attributes.
        let finer = libm::floor(libm::log2(factor)) as i16;
        let multiplier = libm::rint(factor * libm::exp2(FACTOR_BITS.into())) as i64;
        let name = "embedding.tokens";
        let plain = self.ty(name, to.bits(), to.exponent().saturating_add(finer), to.dims())?;
        let x = self.gather(name, table, scale, ids, plain);
        let shift = i64::from(FACTOR_BITS.saturating_add(finer));
        Ok(self.push("embedding.scaled", Opcode::Scale, &[&x], vec![multiplier, shift], to))
    }

    fn gather(&mut self, name: &str, table: &Value, scale: &Value, ids: &Value, to: TensorType) -> Value {
        let shift = exponents(&[table, scale]) - i64::from(to.exponent());
        self.push(name, Opcode::Gather, &[table, scale, ids], vec![shift], to)
    }

    /// `a·b` to a site.
    fn multiplied(&mut self, site: &str, a: &Value, b: &Value) -> Result<Value, PlanError> {
        let to = self.activation(site, STREAM_BITS, b.ty.dims())?;
        let shift = exponents(&[a, b]) - i64::from(to.exponent());
        Ok(self.push(site, Opcode::Mul, &[a, b], vec![shift], to))
    }

    /// A nonlinearity, by the name of what it makes: `x` times the share of it that passes, which a table gives. A
    /// table of the products would be coarse wherever a few arguments are large.
    fn activated(
        &mut self,
        name: &str,
        (activation, table): (Activation, &str),
        x: &Value,
    ) -> Result<Value, PlanError> {
        let activated = format!("{name}.activated");
        if activation == Activation::Relu {
            return Ok(self.push(&activated, Opcode::Relu, &[x], vec![], x.ty.clone()));
        }
        let share = self.curve(&format!("{name}.share"), table, x)?;
        self.multiplied(&activated, &share, x)
    }

    /// A function of magnitudes of at most 1, by its table.
    fn curve(&mut self, name: &str, table: &str, x: &Value) -> Result<Value, PlanError> {
        let table = self.constant(table)?;
        let to = self.ty(name, STREAM_BITS, SHARE_EXPONENT, x.ty.dims())?;
        // Binary places of an argument within a cell: as many as the argument has, if the table's type allows.
        let finer = i64::from(x.ty.exponent()).saturating_sub(SHARE_CELL.into());
        let fraction = finer.clamp(1, MAX_TABLE_FRACTION);
        let low = SHARE_FIRST.wrapping_shl(u32::try_from(fraction).unwrap_or(0));
        let shift = i64::from(table.ty.exponent()).saturating_add(fraction).saturating_sub(SHARE_EXPONENT.into());
        let attributes = vec![finer.saturating_sub(fraction), low, fraction, shift];
        Ok(self.push(name, Opcode::Lookup, &[x, &table], attributes, to))
    }

    /// Logits of every token.
    pub(super) fn logits(&mut self, x: &Value, tied: bool) -> Result<Value, PlanError> {
        let x = self.last_norm(x)?;
        let x = self.quantise("final.input", Input::Logits, &x)?;
        let weight = if tied { "embedding.tokens" } else { "head.weight" };
        self.product("logits", weight, &x, LOGIT_BITS)
    }

    fn last_norm(&mut self, x: &Value) -> Result<Value, PlanError> {
        if self.architecture.placement.before() { self.norm("final.norm", x) } else { Ok(x.clone()) }
    }

    fn norm(&mut self, name: &str, x: &Value) -> Result<Value, PlanError> {
        let to = self.activation(name, STREAM_BITS, x.ty.dims())?;
        self.normalised(name, x, (self.architecture.norm, self.architecture.width), to)
    }

    /// Runs of `length` elements normalised with the gain and bias of a name.
    fn normalised(
        &mut self,
        name: &str,
        x: &Value,
        (norm, length): (Norm, u32),
        to: TensorType,
    ) -> Result<Value, PlanError> {
        let (gain, bias) = (self.constant(&format!("{name}.gain"))?, self.constant(&format!("{name}.bias"))?);
        let center = i64::from(norm == Norm::Layer);
        let epsilon = scale::epsilon(self.architecture.epsilon, length.into(), &x.ty);
        let accumulator = norm_exponent(x.ty.bits()) + exponents(&[&gain]);
        let bias_shift = accumulator - exponents(&[&bias]);
        let shift = accumulator - i64::from(to.exponent());
        let attributes = vec![center, epsilon, bias_shift, shift];
        Ok(self.push(name, Opcode::Norm, &[x, &gain, &bias], attributes, to))
    }

    /// `a + b`, b repeated along a.
    fn add(&mut self, name: &str, a: &Value, b: &Value, to: TensorType) -> Value {
        let (ea, eb) = (i64::from(a.ty.exponent()), i64::from(b.ty.exponent()));
        let finest = ea.max(eb);
        let coefficient = |e: i64| 1i64.wrapping_shl(u32::try_from(finest.saturating_sub(e)).unwrap_or(0));
        let attributes = vec![coefficient(ea), coefficient(eb), finest.saturating_sub(to.exponent().into())];
        self.push(name, Opcode::Combine, &[a, b], attributes, to)
    }
}

/// Sum of the exponents of some tensors.
fn exponents(values: &[&Value]) -> i64 {
    values.iter().map(|value| i64::from(value.ty.exponent())).sum()
}
