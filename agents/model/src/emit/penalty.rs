//! The penalty of tokens that a text has already: their logits are divided by it where they are positive and multiplied
//! where they are negative (Keskar et al., "CTRL", 2019), as `transformers` has it.
//!
//! A program knows the text by its controls, whose rows name their own tokens. Without a penalty logits stay as they
//! are, bit for bit, so a cache that leaves these operators out gives the same.

use tensorlink_num::bounds::EXP_EXPONENT;
use tensorlink_types::{Opcode, TensorType};

use super::{Emitter, LOGIT_BITS, Value};
use crate::choice::{NEGATIVE, PENALTY_BITS, POSITIVE, TOKEN};
use crate::plan::error::PlanError;

/// Bits of what logits are multiplied by: as many as logits have, so that products are those of words.
const FACTOR_BITS: u8 = LOGIT_BITS;
/// Bits of 0 and 1.
pub(crate) const FLAG_BITS: u8 = 2;

impl Emitter<'_> {
    /// Whether the text up to each token has each of the vocabulary: 1 or 0, `tokens × vocabulary`.
    ///
    /// A token is found at all places at once, as an embedding's gradient is: the sum over the text of what each token
    /// is there for. 2 bits hold no more than 1, however often a token comes.
    pub(crate) fn seen(&mut self, vocabulary: u32) -> Result<Value, PlanError> {
        let tokens = self.tokens();
        let ids = self.column("penalty.tokens", TOKEN)?;
        let to = self.ty("penalty.nothing", FLAG_BITS, 0, ids.ty.dims())?;
        let nothing = self.push("penalty.nothing", Opcode::Scale, &[&ids], vec![0, 0], to);
        let square = self.ty("penalty.visible", FLAG_BITS, 0, &[tokens, tokens])?;
        let zeros = self.push("penalty.zeros", Opcode::MatMul, &[&nothing, &nothing], vec![0], square.clone());
        // Powers of e^0 are 1, but of what a token does not see.
        let visible = self.powers("penalty.powers", &zeros, &nothing, (1.0, 1))?;
        let visible = self.push("penalty.visible", Opcode::Scale, &[&visible], vec![1, EXP_EXPONENT.into()], square);
        let to = self.ty("penalty.columns", FLAG_BITS, 0, &[vocabulary, tokens])?;
        let columns = self.push("penalty.columns", Opcode::GatherGrad, &[&visible, &ids], vec![0], to);
        let to = self.seen_type(vocabulary)?;
        Ok(self.push("penalty.seen", Opcode::Transpose, &[&columns], vec![], to))
    }

    /// Type of what [`Self::seen`] gives.
    pub(crate) fn seen_type(&self, vocabulary: u32) -> Result<TensorType, PlanError> {
        self.ty("penalty.seen", FLAG_BITS, 0, &[self.tokens(), vocabulary])
    }

    /// Logits of which those of tokens that the text has already are changed as its owner says.
    pub(crate) fn penalised(&mut self, logits: &Value, seen: &Value) -> Result<Value, PlanError> {
        let ty = logits.ty.clone();
        let own = self.push("penalty.logits", Opcode::ReluGrad, &[logits, seen], vec![], ty.clone());
        // Twice the difference over two, and so below: words that are rescaled have kernels of their own.
        let (sum, difference) = (vec![2, 2, 1], vec![2, -2, 1]);
        let positive = self.push("penalty.positive", Opcode::Relu, &[&own], vec![], ty.clone());
        let negative = self.push("penalty.negative", Opcode::Combine, &[&own, &positive], difference, ty.clone());
        let mut x = logits.clone();
        for (name, part, column) in [("positive", positive, POSITIVE), ("negative", negative, NEGATIVE)] {
            let name = |of: &str| format!("penalty.{name}.{of}");
            let factor = self.column(&name("column"), column)?;
            let to = self.ty(&name("factor"), FACTOR_BITS, PENALTY_BITS.into(), factor.ty.dims())?;
            let factor = self.push(&name("factor"), Opcode::Scale, &[&factor], vec![1, 0], to);
            let change =
                self.push(&name("change"), Opcode::RowMul, &[&part, &factor], vec![PENALTY_BITS.into()], ty.clone());
            x = self.push(&name("sum"), Opcode::Combine, &[&x, &change], sum.clone(), ty.clone());
        }
        Ok(x)
    }
}
