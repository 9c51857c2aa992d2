//! A layer of a transformer: in what order it normalises, projects, attends and adds. Written once, for whoever builds
//! a layer of something:
//!
//! | builder | of |
//! |---|---|
//! | `emit` | operators of exact programs |
//! | `tensorlink_training::step::language` | nodes of a training step, with what the way back needs of them |
//! | `tensorlink_tensor::float` | libtorch's floats |
//!
//! libtorch's training (`tensorlink_tensor::float::training`) stands apart: it is what all of these are held against.

use crate::architecture::{Architecture, Placement};

/// A half of a layer, with a norm and a residual addition of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Half {
    /// What tokens take of each other.
    Attention,
    /// What each token's vector is made into.
    Mlp,
}

impl Half {
    /// What the names of its parameters and sites begin with, after the layer's.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Attention => "attention",
            Self::Mlp => "mlp",
        }
    }
}

/// What projections of a layer take.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Input {
    /// Those to queries, keys and values.
    Attention,
    /// That of what attention mixed.
    Mixed,
    /// Those to the MLP's inner vector.
    Mlp,
    /// That of the inner vector.
    Inner,
}

impl Input {
    /// Its site, after the layer's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Attention => "attention.input",
            Self::Mixed => "attention.mixed",
            Self::Mlp => "mlp.input",
            Self::Inner => "mlp.inner",
        }
    }
}

/// A projection that is computed by itself; queries, keys and values are not, and neither are gates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Projection {
    /// Of what attention mixed, back to the stream's width.
    Output,
    /// To the inner vector of an MLP without a gate.
    Up,
    /// Of the inner vector, back to the stream's width.
    Down,
}

impl Projection {
    /// Its parameters' and its site's name, after the layer's.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Output => "attention.output",
            Self::Up => "mlp.up",
            Self::Down => "mlp.down",
        }
    }
}

/// What a layer is built of. A builder is one of a given layer, whose widths and constants it knows.
pub trait LayerBuilder {
    /// Rows of tokens: the residual stream, and what lies between products.
    type Value;
    /// Rows as projections take them.
    type Operand;
    /// Queries and keys, which are normalised and rotated alike.
    type QueryKey;
    /// Why something cannot be built.
    type Error;

    /// A half's norm: before it, or after its addition.
    ///
    /// # Errors
    /// The builder's own, here and below.
    fn norm(&mut self, half: Half, x: &Self::Value) -> Result<Self::Value, Self::Error>;

    /// The norm of what a half adds.
    fn output_norm(&mut self, half: Half, x: Self::Value) -> Result<Self::Value, Self::Error>;

    /// Rows as projections take them.
    fn operand(&mut self, input: Input, x: &Self::Value) -> Result<Self::Operand, Self::Error>;

    /// Queries and keys, normalised head by head where the architecture does; and values.
    fn looked_up(&mut self, x: &Self::Operand) -> Result<(Self::QueryKey, Self::Value), Self::Error>;

    /// Queries and keys, rotated by their places.
    fn rotated(&mut self, x: Self::QueryKey) -> Result<Self::QueryKey, Self::Error>;

    /// What each token takes of the values: softmax of the scores of what it sees.
    fn mixed(&mut self, query_key: Self::QueryKey, value: Self::Value) -> Result<Self::Value, Self::Error>;

    /// Gate and inner vector of a gated MLP, in this order.
    fn gated(&mut self, x: &Self::Operand) -> Result<[Self::Value; 2], Self::Error>;

    /// The MLP's nonlinearity.
    fn activated(&mut self, x: Self::Value) -> Result<Self::Value, Self::Error>;

    /// An activated gate times the inner vector.
    fn multiplied(&mut self, gate: Self::Value, inner: Self::Value) -> Result<Self::Value, Self::Error>;

    /// A projection.
    fn projected(&mut self, projection: Projection, x: &Self::Operand) -> Result<Self::Value, Self::Error>;

    /// The residual stream, and what a half adds to it.
    fn added(&mut self, half: Half, x: Self::Value, change: Self::Value) -> Result<Self::Value, Self::Error>;
}

/// The residual stream after a layer.
///
/// # Errors
/// The builder's.
pub fn layer<B: LayerBuilder>(b: &mut B, a: &Architecture, number: u32, x: B::Value) -> Result<B::Value, B::Error> {
    let is_rotary = a.rotary(number).is_some();
    let x = around(b, (a.placement, Half::Attention), x, |b, x| attention(b, is_rotary, x))?;
    around(b, (a.placement, Half::Mlp), x, |b, x| mlp(b, a.gated, x))
}

/// Adds what a half makes of the stream to it, with norms where the architecture has them.
fn around<B: LayerBuilder>(
    b: &mut B,
    (placement, half): (Placement, Half),
    x: B::Value,
    change: impl FnOnce(&mut B, &B::Value) -> Result<B::Value, B::Error>,
) -> Result<B::Value, B::Error> {
    let mut y = if placement.before() {
        let normalised = b.norm(half, &x)?;
        change(b, &normalised)?
    } else {
        change(b, &x)?
    };
    if placement == Placement::Around {
        y = b.output_norm(half, y)?;
    }
    let sum = b.added(half, x, y)?;
    if placement == Placement::After { b.norm(half, &sum) } else { Ok(sum) }
}

fn attention<B: LayerBuilder>(b: &mut B, is_rotary: bool, x: &B::Value) -> Result<B::Value, B::Error> {
    let x = b.operand(Input::Attention, x)?;
    let (mut query_key, value) = b.looked_up(&x)?;
    if is_rotary {
        query_key = b.rotated(query_key)?;
    }
    let mixed = b.mixed(query_key, value)?;
    let mixed = b.operand(Input::Mixed, &mixed)?;
    b.projected(Projection::Output, &mixed)
}

/// `down(f(up(x)))`, or gated, `down(f(gate(x))·up(x))`.
fn mlp<B: LayerBuilder>(b: &mut B, is_gated: bool, x: &B::Value) -> Result<B::Value, B::Error> {
    let x = b.operand(Input::Mlp, x)?;
    let inner = if is_gated {
        let [gate, inner] = b.gated(&x)?;
        let gate = b.activated(gate)?;
        b.multiplied(gate, inner)?
    } else {
        let inner = b.projected(Projection::Up, &x)?;
        b.activated(inner)?
    };
    let inner = b.operand(Input::Inner, &inner)?;
    b.projected(Projection::Down, &inner)
}
