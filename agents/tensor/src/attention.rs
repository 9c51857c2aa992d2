//! Attention in one: scores of some rows of a head become probabilities and are mixed before others are computed, so
//! that they do not leave the second-level cache; what causal rows do not see is not computed. The bits are those of
//! the operators one after another.

use rayon::prelude::*;
use tensorlink_num::CheckedOperator;
use tensorlink_num::operators::{HeadMix, HeadScores, Normalize};
use tensorlink_program::{EngineError, FusedAttention};
use tensorlink_types::{Operator, TensorType, Width};

use crate::checked::decode;
use crate::host::block::Element;
use crate::host::block::Precision;
use crate::host::exp::{ExpNeg, Powers};
use crate::host::row_softmax::{Scratch, Softmax};
use crate::host::vnni::Operand;
use crate::host::vnni::finish::Rescaled;
use crate::host::vnni::matrix::{Batch, View};
use crate::kernels::Own;
use crate::matmul::{ProductDispatch, size};
use crate::slice::{Slice, SliceMut, each_width};
use crate::tensor::TorchTensor;

/// Most rows whose scores are computed at a time: of 4,096 keys they fill half of a second-level cache of 2 MiB.
const ROWS: usize = 128;
/// Rows up to which all heads are computed at a time: keys are read once then, heads side by side in memory.
const FEW_ROWS: usize = 11;

/// An accepted attention of words, its attributes decoded.
pub(crate) struct Attention {
    own: Own,
    heads: usize,
    causal: bool,
    scores: Precision,
    powers: ExpNeg,
    sum: Precision,
    bits: u32,
    probability_limit: i64,
    mixed: Precision,
    output: TensorType,
}

/// Keys or values: their heads, one after another.
#[derive(Clone, Copy)]
struct KvHeads<'a> {
    operand: Operand<'a>,
    /// From the start of a row to the start of the next.
    stride: usize,
    /// Elements of a head.
    depth: usize,
    /// Query heads that share a head of keys and values.
    share: usize,
}

/// What is computed from.
struct Operands<'a> {
    query: Operand<'a>,
    key: KvHeads<'a>,
    keys: usize,
    value: KvHeads<'a>,
}

impl Attention {
    /// Checks and decodes; nothing if the attention is not of words.
    ///
    /// # Errors
    /// [`EngineError::Malformed`] with the rule that is broken.
    pub(crate) fn parse(fused: &FusedAttention<&Operator>, own: Own) -> Result<Option<Self>, EngineError> {
        let operators = fused.operators();
        let [scores, max, powers, sum, probabilities, mixed] = operators;
        let words = [scores, probabilities].map(|operator| &operator.output);
        let operands = fused.operands().map(|[query, key, _, values]| [query, key, values].map(|operand| &operand.ty));
        let words = words.into_iter().chain(operands.into_iter().flatten()).all(|ty| ty.width() == Width::I16);
        let [scores_is, max_is, powers_is, sum_is, probabilities_is, mixed_is] = operators.map(decode);
        let decoded = (scores_is?, max_is?, powers_is?, sum_is?, probabilities_is?, mixed_is?);
        let (
            CheckedOperator::HeadScores(HeadScores { heads, shift }),
            CheckedOperator::RowMax(row_max),
            CheckedOperator::ExpNeg(exp),
            CheckedOperator::RowSum(row_sum),
            CheckedOperator::Normalize(Normalize { bits, .. }),
            CheckedOperator::HeadMix(HeadMix { heads: mixed_heads, shift: mix_shift }),
        ) = decoded
        else {
            return Ok(None);
        };
        // The check keeps shifts within ±63.
        let to = |shift: i64, operator: &Operator| Precision { shift: shift as i32, limit: operator.output.limit() };
        let distance = scores.output.limit() + max.output.limit();
        let attention = Self {
            own,
            heads: heads.heads as usize,
            causal: row_max.visible.is_causal(),
            scores: to(shift, scores),
            powers: ExpNeg {
                multiplier: exp.multiplier,
                input_shift: exp.input_shift as i32,
                distance,
                limit: powers.output.limit(),
            },
            sum: to(row_sum.shift, sum),
            bits,
            probability_limit: probabilities.output.limit(),
            mixed: to(mix_shift, mixed),
            output: mixed.output.clone(),
        };
        // Their readers take one element for each row, so that this holds of whatever was checked.
        let rows = [row_max.depth, row_sum.depth].iter().all(|run| *run == scores.output.row());
        Ok((words && rows && heads.heads == mixed_heads.heads && powers.output.width() == Width::I32)
            .then_some(attention))
    }

    /// What the last operator gives, from queries, keys, the table of powers and values of the types that the
    /// operators name.
    ///
    /// # Errors
    /// [`EngineError::Device`] if memory runs out, or a kernel was chosen that this machine lacks.
    pub(crate) fn compute<'t>(
        &self,
        dispatch: ProductDispatch,
        [query, key, table, value]: [&'t TorchTensor; 4],
    ) -> Result<TorchTensor, EngineError> {
        let (rows, width, keys) = (size(query.ty().rows())?, size(self.output.row())?, size(key.ty().rows())?);
        let kv_heads = |tensor: &'t TorchTensor, depths: u64, depth: u64| {
            let ((slice, stride), depth) = (tensor.strided()?, size(depth)? / self.heads);
            let share = self.heads / (size(depths)? / depth);
            Ok::<_, EngineError>(KvHeads { operand: (slice, tensor.ty().limit()), stride, depth, share })
        };
        let operands = Operands {
            query: (query.slice()?, query.ty().limit()),
            key: kv_heads(key, key.ty().row(), query.ty().row())?,
            keys,
            value: kv_heads(value, value.ty().rows(), self.output.row())?,
        };
        let softmax = Softmax {
            simd: dispatch.simd,
            powers: Powers::new(dispatch.simd, table.slice()?, self.powers, self.heads * rows * keys),
            sum: self.sum,
            bits: self.bits,
            limit: self.probability_limit,
        };
        // Each thread has a part; parts are whole rows.
        let part = rows.div_ceil(dispatch.threads).next_multiple_of(16).min(ROWS);
        TorchTensor::build(&self.output, |out| {
            each_width!(SliceMut, out, out => if rows <= part {
                self.part(dispatch, &operands, &softmax, 0, out)
            } else if dispatch.threads == 1 {
                let mut parts = out.chunks_mut(part * width).enumerate();
                parts.try_for_each(|(i, out)| self.part(dispatch, &operands, &softmax, i * part, out))
            } else {
                let alone = ProductDispatch { threads: 1, ..dispatch };
                let parts = out.par_chunks_mut(part * width).enumerate();
                parts.try_for_each(|(i, out)| self.part(alone, &operands, &softmax, i * part, out))
            })
        })
    }

    /// Keys that a row sees (rule N-8).
    fn visible(&self, row: usize, keys: usize) -> usize {
        if self.causal { keys.min(row + 1) } else { keys }
    }

    /// Computes whole rows of the output from one on.
    fn part<T: Element>(
        &self,
        dispatch: ProductDispatch,
        operands: &Operands<'_>,
        softmax: &Softmax,
        start: usize,
        out: &mut [T],
    ) -> Result<(), EngineError>
    where
        for<'a> SliceMut<'a>: From<&'a mut [T]>,
    {
        let Operands { query, key, value, keys } = *operands;
        let (width, mixed_width) = (self.heads * key.depth, self.heads * value.depth);
        let rows = out.len() / mixed_width;
        let seen = self.visible(start + rows - 1, keys);
        let together = if rows <= FEW_ROWS { self.heads } else { 1 };
        let (mut scores, mut scratch) = (vec![0i16; together * rows * seen], Scratch::new(seen));
        for head in (0..self.heads).step_by(together) {
            let a = View { first: start * width + head * key.depth, rows, width: key.depth, stride: width };
            let b = View { first: head / key.share * key.depth, rows: seen, width: key.depth, stride: key.stride };
            let (a, b) = ((a, key.depth), (b, key.depth));
            let batch =
                Batch { count: together, a, b, share: key.share, out: (rows * seen, seen) }.gathered(dispatch.threads);
            let into = SliceMut::I16(&mut scores);
            dispatch.multiply_into(self.own, (query, key.operand), &batch, &Rescaled(self.scores), into)?;
            for (i, scores) in scores.chunks_exact_mut(seen).enumerate() {
                softmax.row(scores, self.visible(start + i % rows, keys), &mut scratch);
            }
            let probabilities = (Slice::I16(&scores), self.probability_limit);
            let (row, first) = (value.depth * value.stride, head / value.share * value.depth * value.stride);
            let b = View { first, rows: value.depth, width: seen, stride: value.stride };
            let (a, b) = ((View::whole(rows, seen), rows * seen), (b, row));
            let batch = Batch { count: together, a, b, share: value.share, out: (value.depth, mixed_width) }
                .gathered(dispatch.threads);
            let into = SliceMut::from(&mut out[head * value.depth..]);
            dispatch.multiply_into(self.own, (probabilities, value.operand), &batch, &Rescaled(self.mixed), into)?;
        }
        Ok(())
    }
}
