//! Operators of a transformer's layer, of its training and of the choice of a token, in sizes of a small model: large
//! enough for the blocks, tiles and remainders of an engine's kernels, which drawn cases are not.

use tensorlink_num::Tensor;
use tensorlink_num::arbitrary::Dice;
use tensorlink_num::tables::{exp2_table, gumbel_table};
use tensorlink_types::operator::Operand;
use tensorlink_types::{Opcode, Operator, Source, TensorType};

use super::{Failure, Setup, compare};
use crate::engine::{Engine, StepContext};

/// Bits, exponent, dimensions.
type Shape = (u8, i16, &'static [u32]);

/// An operator without its mantissas.
struct Layout {
    opcode: Opcode,
    operands: Vec<Shape>,
    attributes: Vec<i64>,
    output: Shape,
}

/// What mantissas operands have.
#[derive(Clone, Copy)]
enum Fill {
    /// Drawn ones, some of them at the limits.
    Drawn,
    /// The limits: with the sign of the first operand, but the other every seventh time, and with that of the others.
    Limits(i64, i64),
}

/// Compares every operator of a layer, products of 8-bit and of 16-bit factors, those that choose a token, and those
/// that train.
///
/// # Errors
/// The first [`Failure`].
pub(super) fn operators<E: Engine>(engine: &E) -> Result<(), Failure> {
    let products = products(8).into_iter().chain(products(16)).chain(shifted());
    let layouts = products.chain(rows()).chain(sampling()).chain(training());
    for (seed, layout) in (0..).zip(layouts) {
        for fill in [Fill::Drawn, Fill::Limits(1, 1), Fill::Limits(1, -1), Fill::Limits(-1, -1)] {
            let (operator, operands) = layout.fill(fill, seed).map_err(Failure::Setup)?;
            compare(engine, &operator, &operands, &StepContext::default())?;
        }
    }
    Ok(())
}

/// 37 tokens by 100 channels from the middle of rows, the longest rows, and attention of six heads over two of keys and
/// values.
fn products(bits: u8) -> Vec<Layout> {
    let product = |opcode, operands: [Shape; 2], attributes: [i64; 2], output| {
        let operands = operands.map(|(_, exponent, dims)| (bits, exponent, dims)).to_vec();
        Layout { opcode, operands, attributes: attributes.to_vec(), output }
    };
    let scaled = |operands, scales: [Shape; 2], attributes, output| {
        let mut layout = product(Opcode::ScaledMatMul, operands, attributes, output);
        layout.operands.extend(scales);
        layout
    };
    vec![
        scaled(
            [(0, 4, &[37, 384]), (0, 7, &[100, 256])],
            [(12, 10, &[37]), (12, 12, &[100])],
            [64, 24],
            (16, 9, &[37, 100]),
        ),
        scaled(
            [(0, 4, &[3, 9000]), (0, 7, &[17, 4096])],
            [(10, 10, &[3]), (10, 12, &[17])],
            [4904, 33],
            (48, 0, &[3, 17]),
        ),
        product(Opcode::HeadScores, [(0, 4, &[37, 384]), (0, 4, &[41, 128])], [6, 8], (32, 0, &[6, 37, 41])),
        product(Opcode::HeadScores, [(0, 4, &[1, 120]), (0, 4, &[5, 40])], [3, 0], (32, 8, &[3, 1, 5])),
        product(Opcode::HeadMix, [(0, 7, &[6, 37, 41]), (0, 4, &[128, 41])], [6, 11], (32, 0, &[37, 384])),
        product(Opcode::HeadMix, [(0, 7, &[3, 1, 1100]), (0, 4, &[40, 1100])], [3, 0], (48, 11, &[1, 120])),
    ]
}

/// Wide rows that are shifted, and their products with bytes and with words.
fn shifted() -> Vec<Layout> {
    let layout = |opcode, operands: &[Shape], attributes: &[i64], output| Layout {
        opcode,
        operands: operands.to_vec(),
        attributes: attributes.to_vec(),
        output,
    };
    let (wide, shifts): (Shape, Shape) = ((24, 9, &[37, 384]), (8, 0, &[37]));
    let mut layouts = vec![
        layout(Opcode::RowShift, &[wide], &[16], shifts),
        layout(Opcode::RowShift, &[(24, 9, &[3, 8192])], &[8], (8, 0, &[3, 2])),
        layout(Opcode::ShiftRows, &[wide, shifts], &[], (16, 9, &[37, 384])),
        layout(Opcode::ShiftRows, &[wide, shifts], &[], (8, 9, &[37, 384])),
    ];
    for bits in [8, 16] {
        let operands: [Shape; 4] = [(16, 4, &[37, 384]), (bits, 7, &[100, 256]), shifts, (18, 12, &[100])];
        layouts.push(layout(Opcode::ShiftedMatMul, &operands, &[64, 14], (24, 9, &[37, 100])));
        // One row, the longest; the columns' scales as large as may be.
        let operands: [Shape; 4] = [(16, 4, &[1, 9000]), (bits, 7, &[17, 4096]), (5, 0, &[1]), (21, 12, &[17])];
        layouts.push(layout(Opcode::ShiftedMatMul, &operands, &[4904, 23], (48, 0, &[1, 17])));
    }
    let operands: [Shape; 4] = [(8, 4, &[37, 384]), (8, 7, &[100, 384]), shifts, (18, 12, &[100])];
    layouts.push(layout(Opcode::ShiftedMatMul, &operands, &[0, 23], (24, 0, &[37, 100])));
    layouts
}

/// What is done to rows: causal softmax of six heads, norms, rotation, embeddings, scales.
fn rows() -> Vec<Layout> {
    let layout = |opcode, operands: &[Shape], attributes: &[i64], output| Layout {
        opcode,
        operands: operands.to_vec(),
        attributes: attributes.to_vec(),
        output,
    };
    let (scores, tokens): (Shape, Shape) = ((16, 9, &[6, 37, 41]), (16, 9, &[37, 384]));
    let (gain, bias): (Shape, Shape) = ((16, 12, &[384]), (16, 10, &[384]));
    let mut layouts = Vec::new();
    for switch in [0, 1] {
        layouts.push(layout(Opcode::RowMax, &[scores], &[switch], (16, 9, &[6, 37])));
        let exp: Shape = (26, 24, &[6, 37, 41]);
        layouts.push(layout(Opcode::ExpNeg, &[scores, (16, 9, &[6, 37]), (26, 24, &[257])], &[23637, 7, switch], exp));
        layouts.push(layout(Opcode::Norm, &[tokens, gain, bias], &[switch, 1_000_000, 22, 26], (16, 6, &[37, 384])));
        let heads: [Shape; 2] = [(16, 12, &[64]), (16, 10, &[64])];
        let [gain, bias] = heads;
        layouts.push(layout(Opcode::Norm, &[tokens, gain, bias], &[switch, 1, 22, 26], (16, 6, &[37, 384])));
        let wide: Shape = (24, 9, &[37, 384]);
        layouts.push(layout(Opcode::Norm, &[wide, gain, bias], &[switch, 1, 26, 30], (24, 6, &[37, 384])));
        layouts.push(layout(Opcode::InverseNorm, &[wide], &[switch, 9, 25], (32, 20, &[37, 3])));
    }
    layouts.extend([
        layout(Opcode::Rope, &[tokens, (16, 14, &[40, 64])], &[6, 14], (16, 9, &[37, 384])),
        layout(Opcode::Rope, &[tokens, (16, 15, &[37, 24])], &[6, 16], (16, 8, &[37, 384])),
        layout(Opcode::Gather, &[(8, 7, &[500, 384]), (16, 12, &[500]), (11, 0, &[40])], &[9], (16, 10, &[37, 384])),
        layout(Opcode::RowAbsMax, &[tokens], &[], (16, 9, &[37])),
    ]);
    layouts
}

/// Three tokens chosen from 8,970 logits in three parts of 2,990: no whole blocks.
fn sampling() -> Vec<Layout> {
    let (logits, thresholds, controls): (Shape, Shape, Shape) = ((16, 8, &[3, 8970]), (17, 8, &[3]), (32, 0, &[3, 7]));
    let (masses, perturbed): (Shape, Shape) = ((26, 24, &[3, 8970]), (32, 16, &[3, 8970]));
    let (parts, places): (&'static [u32], Shape) = (&[3, 3], (32, 0, &[3, 3]));
    let layout = |opcode, operands: &[Shape], attributes: &[i64], output| Layout {
        opcode,
        operands: operands.to_vec(),
        attributes: attributes.to_vec(),
        output,
    };
    let (weighed, counted): (Shape, Shape) = ((32, 18, parts), (14, 0, parts));
    vec![
        layout(Opcode::TailSum, &[logits, masses, thresholds], &[-300, 1, 6], weighed),
        layout(Opcode::TailSum, &[logits, masses, thresholds], &[-300, 0, 0], counted),
        layout(Opcode::Threshold, &[thresholds, counted, weighed, weighed, controls], &[512], thresholds),
        layout(Opcode::Perturb, &[logits, thresholds, controls, (22, 16, &[8224])], &[-300, 12], perturbed),
        layout(Opcode::RowArgMax, &[logits], &[], places),
        layout(Opcode::RowArgMax, &[perturbed], &[], places),
        layout(Opcode::RowPick, &[perturbed, (13, 0, parts)], &[], (32, 16, parts)),
        layout(Opcode::Choose, &[(13, 0, parts), (32, 16, parts), controls], &[2990], (32, 0, &[3])),
    ]
}

/// Gradients, moments and weights of 37 tokens or rows: several blocks and an odd end.
fn training() -> Vec<Layout> {
    let (tokens, moments, squares): (Shape, Shape, Shape) =
        ((16, 9, &[37, 384]), (32, 20, &[37, 384]), (62, 40, &[37, 384]));
    let layout = |opcode, operands: &[Shape], attributes: &[i64], output| Layout {
        opcode,
        operands: operands.to_vec(),
        attributes: attributes.to_vec(),
        output,
    };
    let mut layouts = vec![
        layout(Opcode::RowCombine, &[tokens, (16, 9, &[37])], &[300, -5000, 8], tokens),
        layout(Opcode::RowCombine, &[squares, (32, 20, &[1])], &[-1, 1 << 20, 3], (64, 38, &[37, 384])),
        layout(Opcode::RowMul, &[tokens, (16, 12, &[37, 64])], &[8], (16, 13, &[37, 384])),
        layout(Opcode::RowMul, &[moments, (24, 10, &[37])], &[12], (32, 18, &[37, 384])),
        layout(Opcode::InverseNorm, &[tokens], &[1, 1_000_000, 21], (32, 20, &[37, 3])),
        layout(Opcode::GatherGrad, &[(16, 9, &[384, 37]), (8, 0, &[40])], &[0], (32, 9, &[50, 384])),
        layout(Opcode::GatherGrad, &[(32, 20, &[70, 500]), (11, 0, &[500])], &[4], (32, 16, &[300, 70])),
        layout(Opcode::Ratio, &[moments, squares], &[15, 1 << 10], (16, 15, &[37, 384])),
        layout(Opcode::Ratio, &[moments, moments], &[28, 1], (62, 38, &[37, 384])),
        layout(Opcode::Shrink, &[squares], &[1 << 20, 24], (26, 24, &[37, 384])),
        layout(Opcode::AtStep, &[moments], &[], (32, 20, &[384])),
        layout(Opcode::GroupSum, &[tokens], &[6, 1], (16, 8, &[37, 128])),
        layout(Opcode::Dropout, &[tokens], &[3 << 30, 7, 1365, 10], tokens),
        layout(Opcode::Slice, &[tokens], &[101], (16, 9, &[37, 130])),
        layout(Opcode::Dither, &[moments, (24, 10, &[37])], &[7, 1], (8, 17, &[37, 384])),
        layout(Opcode::RowMax, &[tokens], &[0], (16, 9, &[37, 3])),
        layout(Opcode::RowSum, &[tokens], &[2], (24, 7, &[37, 3])),
        layout(Opcode::Combine, &[squares, moments], &[1, -(1 << 20), 3], (64, 37, &[37, 384])),
        layout(Opcode::Mul, &[moments, (30, 15, &[37, 384])], &[9], (62, 26, &[37, 384])),
    ];
    for bits in [8, 16, 32, 64] {
        layouts.push(layout(Opcode::Transpose, &[(bits, 0, &[2, 131, 197])], &[], (bits, 0, &[2, 197, 131])));
    }
    layouts
}

impl Layout {
    fn fill(&self, fill: Fill, seed: u64) -> Result<(Operator, Vec<Tensor>), Setup> {
        let ty = |(bits, exponent, dims): Shape| TensorType::new(bits, exponent, dims);
        let mut dice = Dice::new(seed);
        let mut operands = Vec::new();
        for (position, shape) in self.operands.iter().enumerate() {
            let ty = ty(*shape)?;
            operands.push(match fill {
                _ if self.opcode == Opcode::ExpNeg && position == 2 => exp2_table()?,
                _ if self.opcode == Opcode::Perturb && position == 3 => gumbel_table()?,
                Fill::Drawn => dice.tensor(&ty)?,
                Fill::Limits(first, others) => {
                    let sign = |i: u64| if position > 0 { others } else { first * if i % 7 == 6 { -1 } else { 1 } };
                    let values: Vec<i64> = (0..ty.elements()).map(|i| sign(i) * ty.limit()).collect();
                    Tensor::from_wide(ty, &values)?
                }
            });
        }
        let named = |(i, tensor): (u32, &Tensor)| Operand { source: Source::State(i), ty: tensor.ty().clone() };
        let named = (0..).zip(&operands).map(named).collect();
        let (attributes, output) = (self.attributes.clone(), ty(self.output)?);
        Ok((Operator { opcode: self.opcode, operands: named, attributes, output }, operands))
    }
}
