//! Opcodes, operands and operators: the instruction set of a program.
//!
//! What each opcode computes is rule N-*n* of `agents/num/SPEC.md`, *n* being the opcode's number plus 10.

use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::tensor_type::TensorType;

/// Most operands of an operator.
pub const MAX_OPERANDS: usize = 5;
/// Most attributes of an operator.
pub const MAX_ATTRIBUTES: usize = 8;
/// Longest reduction (dot product, row sum, row maximum) of one operator; longer ones are split by the compiler.
pub const MAX_REDUCTION: u64 = 4096;

macro_rules! opcodes {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $operands:literal, [$($attribute:literal),*];)*) => {
        /// What an operator computes. Discriminants are the on-chain numbers; 0 is invalid.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        #[repr(u8)]
        pub enum Opcode { $($(#[$doc])* $name = $code,)* }

        impl Opcode {
            /// Every opcode, in numerical order.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// Number of operands.
            pub const fn operands(self) -> usize {
                match self { $(Self::$name => $operands,)* }
            }

            /// Names of the attributes, in order.
            pub const fn attributes(self) -> &'static [&'static str] {
                match self { $(Self::$name => &[$($attribute,)*],)* }
            }

            /// Name as programs and error messages write it.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)* }
            }
        }

        impl TryFrom<u8> for Opcode {
            type Error = UnknownOpcode;

            fn try_from(code: u8) -> Result<Self, UnknownOpcode> {
                match code { $($code => Ok(Self::$name),)* _ => Err(UnknownOpcode(code)) }
            }
        }
    };
}

opcodes! {
    /// `y[m,n] = rescale(Σ_k a[m,k]·b[n,k], shift)`; both operands are read along rows.
    MatMul = 1, 2, ["shift"];
    /// `y[n,m] = a[m,n]`.
    Transpose = 2, 1, [];
    /// `y[i] = rescale(ca·a[i] + cb·b[i mod |b|], shift)`.
    Combine = 3, 2, ["ca", "cb", "shift"];
    /// `y[i] = rescale(c·a[i], shift)`.
    Scale = 4, 1, ["c", "shift"];
    /// `y[i] = rescale(a[i]·b[i mod |b|], shift)`.
    Mul = 5, 2, ["shift"];
    /// `y[i] = max(a[i], 0)`.
    Relu = 6, 1, [];
    /// `y[i] = x[i] > 0 ? dy[i] : 0`, operands `dy, x`.
    ReluGrad = 7, 2, [];
    /// Piecewise-linear function given by a table; operands `x, table`.
    Lookup = 8, 2, ["input_shift", "low", "fraction_bits", "shift"];
    /// `y[m] = max_k a[m,k]` over what a causal row may see.
    RowMax = 9, 1, ["causal"];
    /// `y[m,k] = exp(−(max[m] − a[m,k]))` by a table of powers of two; operands `a, max, table`.
    ExpNeg = 10, 3, ["multiplier", "input_shift", "causal"];
    /// `y[m] = rescale(Σ_k a[m,k], shift)`.
    RowSum = 11, 1, ["shift"];
    /// `y[m,k] = round(p[m,k]·2^bits / z[m])`, operands `p, z`.
    Normalize = 12, 2, ["bits"];
    /// `y[m,k] = rescale(p[m,k] − (label[m] = k ? one : 0), shift)`, operands `p, label`.
    OneHotSub = 13, 2, ["one", "shift"];
    /// Rows of a data set drawn by Philox: `y[i,·] = data[draw(step, first_row + i), ·]`.
    Sample = 14, 1, ["first_row"];
    /// `y[m,n] = rescale(r[m]·c[n]·Σ_k a[m, offset + k]·b[n,k], shift)`, operands `a, b, r, c`.
    ScaledMatMul = 15, 4, ["offset", "shift"];
    /// Attention scores, `y[h,t,s] = rescale(Σ_d q[t,h,d]·k[s,g,d], shift)`, g being the key/value head of head h;
    /// operands `q, k`.
    HeadScores = 16, 2, ["heads", "shift"];
    /// Attention's weighted sum, `y[t,h,d] = rescale(Σ_s p[h,t,s]·v[g,d,s], shift)`; operands `p, v`.
    HeadMix = 17, 2, ["heads", "shift"];
    /// LayerNorm (center 1) or RMSNorm (center 0) of rows; operands `x, gain, bias`.
    Norm = 18, 3, ["center", "epsilon", "bias_shift", "shift"];
    /// Rotary position embedding by a table of cosines and sines; operands `x, table`.
    Rope = 19, 2, ["heads", "shift"];
    /// `y[t,k] = rescale(table[ids[t],k]·scale[ids[t]], shift)`, operands `table, scale, ids`.
    Gather = 20, 3, ["shift"];
    /// `y[m] = max_k |a[m,k]|`.
    RowAbsMax = 21, 1, [];
    /// The place of the first largest element of each equal part of a row.
    RowArgMax = 22, 1, [];
    /// The element at a given place of each equal part of a row; operands `a, place`.
    RowPick = 23, 2, [];
    /// `y = rescale(Σ_v (a[m,v] ≥ t[m] + bound ? w[m,v] or 1 : 0), shift)` of each equal part of a row;
    /// operands `a, w, t`.
    TailSum = 24, 3, ["bound", "weighted", "shift"];
    /// `y[m] = t[m] + step` where enough elements reach it, else `t[m]`; operands
    /// `t, counts, masses, totals, controls`.
    Threshold = 25, 5, ["step"];
    /// `y[m,v] = rescale(a[m,v]·2^c + τ·g, shift)`, g a Gumbel draw, or the lowest number below `t[m] + bound`;
    /// operands `a, t, controls, table`.
    Perturb = 26, 4, ["bound", "shift"];
    /// The place of the first largest element of a row, from those of its parts; operands `place, best, controls`.
    Choose = 27, 3, ["length"];
    /// `y[i] = rescale(ca·a[i] + cb·b[⌊i/r⌋], shift)`, r elements of a for each of b.
    RowCombine = 28, 2, ["ca", "cb", "shift"];
    /// `y[i] = rescale(a[i]·b[⌊i/r⌋], shift)`, r elements of a for each of b.
    RowMul = 29, 2, ["shift"];
    /// What Norm multiplies a row by, `1/√(Σ(x − mean)² + ε)`.
    InverseNorm = 30, 1, ["center", "epsilon", "shift"];
    /// Sums of the gradients of a gathered row, `y[v,k] = rescale(Σ_t (ids[t] = v ? g[k,t] : 0), shift)`;
    /// operands `g, ids`.
    GatherGrad = 31, 2, ["shift"];
    /// `y[i] = round(m[i]·2^bits / (⌊√v[i]⌋ + floor))`, operands `m, v`.
    Ratio = 32, 2, ["bits", "floor"];
    /// `y[i] = min(2^bits, ⌊limit·2^bits / √s[i]⌋)`.
    Shrink = 33, 1, ["limit", "bits"];
    /// The row of a table for the step, its last one beyond.
    AtStep = 34, 1, [];
    /// `y[t,g,d] = rescale(Σ_h a[t,h,d], shift)` over the heads of group g.
    GroupSum = 35, 1, ["heads", "shift"];
    /// `y[i] = rescale(c·a[i], shift)` where Philox draws below `keep`, else 0.
    Dropout = 36, 1, ["keep", "stream", "c", "shift"];
    /// `y[m,k] = a[m, offset + k]`.
    Slice = 37, 1, ["offset"];
    /// `y[m,k] = ⌊(p[m,k]·2^bits + r) / z[m]⌋`, r drawn below `z[m]`; operands `p, z`.
    Dither = 38, 2, ["bits", "stream"];
    /// By how many places a row is shifted so that its elements have so many bits:
    /// `y[m] = max(0, length(max_k |a[m,k]|) − (bits − 1))`.
    RowShift = 39, 1, ["bits"];
    /// `y[m,k] = rescale(a[m,k], s[m])`, operands `a, s`.
    ShiftRows = 40, 2, [];
    /// `y[m,n] = rescale(c[n]·Σ_k a[m, offset + k]·b[n,k], shift − s[m])`, operands `a, b, s, c`.
    ShiftedMatMul = 41, 4, ["offset", "shift"];
}

/// A number that names no opcode.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("opcode {0} is unknown: this program was made for another version")]
pub struct UnknownOpcode(pub u8);

/// Where an operand's tensor comes from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// Output of an earlier operator of the same step.
    Output(u32),
    /// State tensor before the step.
    State(u32),
    /// Constant of the program: table or data set.
    Constant(u32),
    /// Tensor received from the previous stage for this micro-batch.
    FromPrevious(u32),
    /// Tensor received from the next stage for this micro-batch.
    FromNext(u32),
}

impl Source {
    /// On-chain pair (kind, index); kind 0 is invalid.
    pub const fn to_pair(self) -> (u8, u32) {
        match self {
            Self::Output(i) => (1, i),
            Self::State(i) => (2, i),
            Self::Constant(i) => (3, i),
            Self::FromPrevious(i) => (4, i),
            Self::FromNext(i) => (5, i),
        }
    }

    /// Reverse of [`Self::to_pair`]; none of a kind that does not exist.
    pub const fn from_pair(kind: u8, index: u32) -> Option<Self> {
        Some(match kind {
            1 => Self::Output(index),
            2 => Self::State(index),
            3 => Self::Constant(index),
            4 => Self::FromPrevious(index),
            5 => Self::FromNext(index),
            _ => return None,
        })
    }

    /// Whether a neighbour sends it, and so a boundary log has it.
    pub const fn is_received(self) -> bool {
        matches!(self, Self::FromPrevious(_) | Self::FromNext(_))
    }
}

/// One operand of an operator.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Operand {
    /// Where the tensor comes from.
    pub source: Source,
    /// Its type, repeated here so that the contract needs no other operator to check this one.
    pub ty: TensorType,
}

/// One instruction of a program.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Operator {
    /// What is computed.
    pub opcode: Opcode,
    /// Operands, in the order of the opcode's definition.
    pub operands: Vec<Operand>,
    /// Attributes, in the order of [`Opcode::attributes`].
    pub attributes: Vec<i64>,
    /// Type of the output.
    pub output: TensorType,
}

impl Operator {
    /// Whether an operand is received.
    pub fn receives(&self) -> bool {
        self.operands.iter().any(|operand| operand.source.is_received())
    }
}

impl fmt::Display for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}(", self.opcode.name())?;
        for (i, operand) in self.operands.iter().enumerate() {
            let comma = if i > 0 { ", " } else { "" };
            write!(f, "{comma}{:?}: {}", operand.source, operand.ty)?;
        }
        write!(f, ")")?;
        for (name, value) in self.opcode.attributes().iter().zip(&self.attributes) {
            write!(f, " {name}={value}")?;
        }
        write!(f, " -> {}", self.output)
    }
}
