//! A node of the step graph: what it computes, of what, when and how precisely.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A node of a [`StepGraph`](super::StepGraph); made only by the graph it belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct NodeId(pub(super) u32);

impl NodeId {
    /// Position in the graph's list of nodes.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// When in a step a node is computed. The order of the variants is the order of a program's segments within a round.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Phase {
    /// Once, from state alone.
    Prepare,
    /// Forward pass of a micro-batch.
    Forward(u32),
    /// Backward pass of a micro-batch.
    Backward(u32),
    /// Once, after every micro-batch.
    Update,
}

/// Which tensor of a layer's state.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Slot {
    /// `[out, in]`.
    Weight,
    /// `[out]`.
    Bias,
    /// Momentum of the weight.
    WeightVelocity,
    /// Momentum of the bias.
    BiasVelocity,
}

impl Slot {
    /// Every slot, in the order in which a stage registers its layers' state.
    pub const ALL: [Self; 4] = [Self::Weight, Self::Bias, Self::WeightVelocity, Self::BiasVelocity];

    /// Name within the layer.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Weight => "weight",
            Self::Bias => "bias",
            Self::WeightVelocity => "weight.velocity",
            Self::BiasVelocity => "bias.velocity",
        }
    }
}

/// A smooth function that integers evaluate by a table (rule N-18).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Function {
    /// `x·Φ(x)`.
    Gelu,
    /// Its derivative `Φ(x) + x·φ(x)`.
    GeluDerivative,
    /// GELU approximated by a hyperbolic tangent, `x·σ(2·√(2/π)·(x + 0.044715·x³))`.
    GeluTanh,
    /// Its derivative.
    GeluTanhDerivative,
    /// `x·σ(x)`.
    Silu,
    /// Its derivative `σ(x)·(1 + x·(1 − σ(x)))`.
    SiluDerivative,
    /// The hyperbolic tangent, whose derivative is one less its square.
    Tanh,
}

/// What a node computes. Leaves first; the others are the network's opcodes, with factors still real numbers.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub enum Op {
    /// Training features `[rows, features]`.
    Features,
    /// Training labels `[rows]`.
    Labels,
    /// A state tensor before the step.
    State,
    /// A constant of the graph, by its position in [`StepGraph::constants`](super::StepGraph::constants).
    Constant(usize),
    /// Rows of a data set, drawn for this step.
    Sample {
        /// First row of the batch.
        first_row: u32,
    },
    /// `Σ_k a[m,k]·b[n,k]`.
    MatMul,
    /// `r[m]·c[n]·Σ_k a[m, offset + k]·b[n,k]`, operands `a, b, r, c`.
    ScaledMatMul {
        /// First element of a row of `a` that takes part.
        offset: u32,
    },
    /// As many elements of each row as the result has, from one on.
    Slice {
        /// That one.
        offset: u32,
    },
    /// The last two dimensions exchanged.
    Transpose,
    /// `fa·a[i] + fb·b[⌊i/r⌋]`, r elements of a for each of b.
    RowCombine {
        /// Factor of the first operand.
        fa: f64,
        /// Factor of the second operand.
        fb: f64,
    },
    /// `a[i]·b[⌊i/r⌋]`, r elements of a for each of b.
    RowMul,
    /// Largest magnitude of each row, or of each of its equal parts.
    RowAbsMax,
    /// A little more than a, in fewer bits: what a row is divided by to fill its bits. Operands `a, one`.
    Ceiling,
    /// Attention scores, operands `q, k`.
    HeadScores {
        /// Heads of q.
        heads: u32,
    },
    /// Attention's weighted sum, operands `p` and transposed `v`.
    HeadMix {
        /// Heads of p.
        heads: u32,
    },
    /// Sum over the heads that share a group.
    GroupSum {
        /// Heads.
        heads: u32,
    },
    /// Normalised rows, operands `x`, gain, bias.
    Norm(Spread),
    /// `1/√(Σ(x − mean)² + ε·K)` of each row of K.
    InverseNorm(Spread),
    /// Rotation by a table, operands `x, table`.
    Rope {
        /// Heads of x.
        heads: u32,
    },
    /// Rows of a table, operands `table, scale, ids`.
    Gather,
    /// Sum of the columns of `a` whose id is that of a row, operands `a, ids`.
    GatherGrad,
    /// `m/(√v + epsilon)`, operands `m, v`.
    Ratio {
        /// Keeps what has no gradient but rounding errors from moving.
        epsilon: f64,
    },
    /// `min(1, limit/√s)`.
    Shrink {
        /// What a norm is brought down to.
        limit: f64,
    },
    /// The row of a table for the step.
    AtStep,
    /// `fa·a[i] + fb·b[i mod |b|]`.
    Combine {
        /// Factor of the first operand.
        fa: f64,
        /// Factor of the second operand.
        fb: f64,
    },
    /// `a[i]` over the share that is kept, where it is: drawn for each element and step (Srivastava et al. 2014).
    Dropout {
        /// Of 2^32 elements so many are kept.
        keep: u64,
        /// Keeps draws apart; the gradient takes that of its output.
        stream: u32,
    },
    /// The same values in fewer bits.
    Cast,
    /// `a[i]·b[i]`.
    Mul,
    /// `max(a, 0)`.
    Relu,
    /// `dy` where `x > 0`.
    ReluGrad,
    /// A tabulated function.
    Lookup(Function),
    /// Maximum of what each row sees, or of each of its equal parts.
    RowMax {
        /// Whether a row sees only what comes before its token (rule N-8).
        causal: bool,
    },
    /// `exp((a − max)/divisor)`, operands `a, max`.
    ExpNeg {
        /// Divisor.
        divisor: f64,
        /// As in [`Op::RowMax`].
        causal: bool,
    },
    /// Sum of each row, or of each of its equal parts.
    RowSum,
    /// `p / z`, operands `p, z`.
    Normalize,
    /// `p / z`, rounded up or down by a draw, so that on the mean nothing is lost of what is small beside its row
    /// (Gupta et al. 2015).
    Dither {
        /// Keeps draws apart.
        stream: u32,
    },
    /// `p − onehot(label)`, operands `p, label`.
    OneHotSub,
}

/// How rows are normalised (rules N-28 and N-40).
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Spread {
    /// Whether the mean is taken off.
    pub center: bool,
    /// ε beside the mean square.
    pub epsilon: f64,
}

/// What margin a calibrated tensor needs: how far it may outgrow what calibration saw.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Class {
    /// Master weights and biases.
    Weight,
    /// Weights cast to operand width.
    Operand,
    /// Activations and the sums before them.
    Activation,
    /// Gradients of activations.
    Gradient,
    /// Velocities.
    Velocity,
}

/// How a node's bits and exponent are found.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Precision {
    /// From the data set's tensors.
    Data,
    /// Those of another node.
    Like(NodeId),
    /// Known beforehand.
    Fixed {
        /// Bits.
        bits: u8,
        /// Exponent.
        exponent: i16,
    },
    /// Exponent from the largest value seen in calibration.
    Calibrated {
        /// Bits.
        bits: u8,
        /// Margin.
        class: Class,
    },
    /// Wide enough that nothing is rounded or clamped: a sum of at most `terms` products (MatMul, ScaledMatMul) or
    /// elements (RowSum). Sums of such tensors are the same bits in any order and however a batch is cut.
    Exact {
        /// Most terms of an element, over all micro-batches.
        terms: u32,
    },
    /// As calibrated, but of an even exponent, whose root is one.
    Even {
        /// Bits.
        bits: u8,
        /// Margin.
        class: Class,
    },
    /// The exponent that calibration gives another site at so many bits.
    At {
        /// The site.
        site: String,
        /// Bits.
        bits: u8,
        /// Margin.
        class: Class,
    },
    /// Bits and exponent of the squares of what [`Precision::At`] would be.
    SquareAt {
        /// The site.
        site: String,
        /// Bits of what is squared.
        bits: u8,
        /// Margin.
        class: Class,
    },
    /// So many bits and binary places fewer than another node.
    Coarser {
        /// The node.
        than: NodeId,
        /// How many.
        by: u8,
    },
}

/// A value of the step.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Node {
    /// What is computed.
    pub op: Op,
    /// From what.
    pub inputs: Vec<NodeId>,
    /// Shape of the result.
    pub dims: Vec<u32>,
    /// When.
    pub phase: Phase,
    /// Layer it belongs to; decides the stage.
    pub layer: usize,
    /// Name without micro-batch, e.g. `fc1.matmul`. Nodes that differ in the micro-batch only share it, and with it
    /// their exponent.
    pub site: String,
    /// How bits and exponent are found.
    pub precision: Precision,
}

impl Node {
    /// Number of elements.
    pub fn elements(&self) -> usize {
        self.dims.iter().map(|d| *d as usize).product()
    }

    /// Whether it is given from outside instead of computed.
    pub const fn is_leaf(&self) -> bool {
        matches!(self.op, Op::Features | Op::Labels | Op::State | Op::Constant(_))
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.site)?;
        match self.phase {
            Phase::Forward(mb) | Phase::Backward(mb) => write!(f, "[mb {mb}]"),
            Phase::Prepare | Phase::Update => Ok(()),
        }
    }
}
