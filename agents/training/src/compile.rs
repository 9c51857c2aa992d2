//! From a network to the programs of its pipeline stages.
//!
//! Program order of a stage: [`Segment::Prepare`], the forward passes, the backward passes, [`Segment::Update`]. An
//! operator of `Forward { mb }` reads state, constants, what Prepare made, and its own micro-batch; one of
//! `Backward { mb }` also reads the forward pass of the same micro-batch. So a worker may run the segments in any order
//! that keeps forward before backward of each micro-batch: all forwards first (GPipe), or interleaved (1F1B). Where
//! forward passes read what backward passes of earlier micro-batches made, passes come in rounds, one after another.
//! The checker ([`mod@tensorlink_program::check`]) enforces this for programs from anywhere.
//!
//! [`Segment::Prepare`]: tensorlink_types::Segment::Prepare
//! [`Segment::Update`]: tensorlink_types::Segment::Update

pub mod error;

use std::collections::BTreeMap;
use std::ops::Range;

use tensorlink_num::{Tensor, philox};
use tensorlink_types::program::ConstantSlot;
use tensorlink_types::{JobKey, Program, Source, StateSlot, TensorRoot, TensorType};

pub use self::error::CompileError;
use crate::exponents::Exponents;
use crate::lower;
use crate::model::Network;
use crate::step::{DataTypes, Function, Node, NodeId, Observed, Op, StepGraph};
use crate::tables;
use crate::whole::{Cut, Kept, Layout, Part, StageInfo, Whole, check_stages};

/// Training set in integers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TrainingSet {
    /// `[rows, features]`, in matmul operand width.
    pub features: Tensor,
    /// `[rows]`, classes from 0, exponent 0.
    pub labels: Tensor,
}

impl TrainingSet {
    /// Mantissas of the features and of the labels of the rows that a step draws (rule N-24), so many of them.
    pub fn drawn(&self, job_key: &JobKey, step: u32, count: u32) -> [Vec<i64>; 2] {
        let population = self.features.ty().dims().first().map_or(0, |rows| u64::from(*rows));
        let rows = |tensor: &Tensor| {
            let width = tensor.ty().elements().checked_div(population).unwrap_or_default();
            let first = |row| philox::draw_below(job_key, row, step, population).saturating_mul(width);
            let row = |row| (first(row)..first(row).saturating_add(width)).filter_map(|at| tensor.get(at));
            (0..count).flat_map(row).collect()
        };
        [rows(&self.features), rows(&self.labels)]
    }
}

/// A stage's program with what a worker needs to run it.
#[derive(Clone, PartialEq, Debug)]
pub struct CompiledStage {
    /// The step function.
    pub program: Program,
    /// Contents of the program's constants, in their order.
    pub constants: Vec<Tensor>,
    /// For people and metrics.
    pub info: StageInfo,
    /// Where it was cut out of the step.
    pub layout: Layout,
}

/// Compiles a network into one program for each range of linear layers. `commit` computes a constant's commitment.
///
/// # Errors
/// A [`CompileError`] that names the tensor and what to change.
pub fn compile(
    network: &Network,
    exponents: &Exponents,
    training: &TrainingSet,
    stages: &[Range<usize>],
    commit: impl Fn(&Tensor) -> TensorRoot,
) -> Result<Vec<CompiledStage>, CompileError> {
    let rows = check_data(network, training)?;
    compile_graph(&StepGraph::training(network, rows), exponents, training, stages, commit)
}

/// Compiles a step graph into one program for each range of its layers. `commit` computes a constant's commitment.
///
/// # Errors
/// As [`compile`].
pub fn compile_graph(
    graph: &StepGraph,
    exponents: &Exponents,
    training: &TrainingSet,
    stages: &[Range<usize>],
    commit: impl Fn(&Tensor) -> TensorRoot,
) -> Result<Vec<CompiledStage>, CompileError> {
    check_stages(graph.layers, stages)?;
    let data = DataTypes { features: training.features.ty().clone(), labels: training.labels.ty().clone() };
    let types = lower::types(graph, exponents, &data)?;
    let (places, operators, constants, contents) = Default::default();
    let (types, commit) = (types.as_slice(), &commit);
    let lowering = Lowering { graph, types, training, commit, places, operators, constants, contents };
    let (whole, contents) = lowering.whole()?;
    let stage = |Cut { program, constants, info, layout }| {
        let constants = constants.iter().filter_map(|n: &u32| contents.get(*n as usize)).cloned().collect();
        CompiledStage { program, constants, info, layout }
    };
    Ok(whole.cut(stages)?.into_iter().map(stage).collect())
}

fn check_data(network: &Network, training: &TrainingSet) -> Result<u32, CompileError> {
    let (features, labels) = (training.features.ty(), training.labels.ty());
    let refuse =
        |what, actual: &TensorType, expected| Err(CompileError::Data { what, actual: actual.clone(), expected });
    let bits = network.operand_bits;
    let rows = match *features.dims() {
        [rows, width] if width == network.features() && features.bits() == bits => rows,
        _ => return refuse("features", features, format!("{bits} bits, [rows, {}]", network.features())),
    };
    if labels.dims() != [rows] || labels.exponent() != 0 {
        return refuse("labels", labels, format!("exponent 0, [{rows}]"));
    }
    let classes = i64::from(network.classes());
    if training.labels.mantissas().to_vec().iter().any(|label| !(0..classes).contains(label)) {
        return refuse("labels", labels, format!("labels below {classes}"));
    }
    Ok(rows)
}

/// A step whose nodes become operators, one after another.
struct Lowering<'a, C> {
    graph: &'a StepGraph,
    types: &'a [TensorType],
    training: &'a TrainingSet,
    commit: &'a C,
    /// Where each node's tensor is found.
    places: BTreeMap<NodeId, Source>,
    operators: Vec<Part>,
    constants: Vec<ConstantSlot>,
    contents: Vec<Tensor>,
}

impl<C: Fn(&Tensor) -> TensorRoot> Lowering<'_, C> {
    /// The step, and the contents of its constants.
    fn whole(mut self) -> Result<(Whole, Vec<Tensor>), CompileError> {
        let graph = self.graph;
        for (number, state) in (0..).zip(&graph.state) {
            self.places.insert(state.current, Source::State(number));
        }
        let needed = graph.needed();
        // What the state after the step comes of, or people want to see.
        let nodes: Vec<_> = graph.nodes().filter(|(id, node)| needed.contains(id) && !node.is_leaf()).collect();
        for (id, node) in &nodes {
            self.place(*id, node)?;
        }
        let mut state = Vec::new();
        for kept in &graph.state {
            let node = graph.node(kept.current);
            let producer = self.output(kept.next).ok_or_else(|| leaf(graph.node(kept.next)))?;
            let slot = StateSlot { name: node.site.clone(), ty: self.ty(kept.current)?, producer };
            state.push(Kept { slot, layer: kept.layer });
        }
        let of_features = |node: &Node| node.inputs.iter().any(|id| graph.node(*id).op == Op::Features);
        let draws = |(_, node): &&(NodeId, &Node)| matches!(node.op, Op::Sample { .. }) && of_features(node);
        let observe = |pick: fn(&Observed) -> NodeId| {
            graph.observed.iter().filter_map(|observed| self.output(pick(observed))).collect()
        };
        let info = StageInfo {
            layers: 0..graph.layers,
            features: nodes.iter().filter(draws).filter_map(|(id, _)| self.output(*id)).collect(),
            labels: observe(|o| o.labels),
            logits: observe(|o| o.logits),
            probabilities: observe(|o| o.probabilities),
        };
        let whole = Whole {
            operators: self.operators,
            constants: self.constants,
            state,
            info,
            rounds: graph.rounds(),
            micro_batches: graph.micro_batches,
        };
        Ok((whole, self.contents))
    }

    fn output(&self, id: NodeId) -> Option<u32> {
        match self.places.get(&id) {
            Some(Source::Output(index)) => Some(*index),
            _ => None,
        }
    }

    fn ty(&self, id: NodeId) -> Result<TensorType, CompileError> {
        self.types.get(id.index()).cloned().ok_or_else(|| leaf(self.graph.node(id)))
    }

    fn place(&mut self, id: NodeId, node: &Node) -> Result<(), CompileError> {
        let mut operands = Vec::new();
        for input in &node.inputs {
            operands.push(lower::operand(self.source(*input, node)?, self.ty(*input)?));
        }
        let mut table = None;
        if let (Op::Lookup(function), Some(input)) = (node.op, node.inputs.first()) {
            let input = self.ty(*input)?;
            let made = tables::lookup(function, &input)
                .map_err(|source| CompileError::Table { node: node.to_string(), source })?;
            operands.push(self.constant(|| lookup_name(function, &input), &made.table));
            table = Some(made);
        }
        if matches!(node.op, Op::ExpNeg { .. }) {
            let made = tensorlink_num::tables::exp2_table()
                .map_err(|source| CompileError::Table { node: node.to_string(), source: source.into() })?;
            operands.push(self.constant(|| "exp2".to_owned(), &made));
        }
        let operator = lower::operator(node, operands, self.ty(id)?, table.as_ref())?;
        self.places.insert(id, Source::Output(self.operators.len() as u32));
        self.operators.push(Part { operator, name: node.to_string(), layer: node.layer, phase: node.phase });
        Ok(())
    }

    /// Where an input of a node is found.
    fn source(&mut self, input: NodeId, user: &Node) -> Result<Source, CompileError> {
        if let Some(place) = self.places.get(&input) {
            return Ok(*place);
        }
        let training = self.training;
        let source = match self.graph.node(input).op {
            Op::Features => self.constant(|| "features".into(), &training.features).source,
            Op::Labels => self.constant(|| "labels".into(), &training.labels).source,
            Op::Constant(index) => self.listed(input, index)?,
            _ => return Err(leaf(user)),
        };
        self.places.insert(input, source);
        Ok(source)
    }

    /// One of the graph's constants, in the type of its node.
    fn listed(&mut self, id: NodeId, index: usize) -> Result<Source, CompileError> {
        let node = self.graph.node(id);
        let constant = self.graph.constants.get(index).ok_or_else(|| leaf(node))?;
        let ty = self.ty(id)?;
        let unit = libm::exp2(f64::from(ty.exponent()));
        let mantissas: Vec<i64> = constant.values.iter().map(|x| (x * unit).round_ties_even() as i64).collect();
        let tensor = Tensor::from_wide(ty, &mantissas)
            .map_err(|source| CompileError::Constant { name: constant.name.clone(), source })?;
        Ok(self.constant(|| constant.name.clone(), &tensor).source)
    }

    /// A constant, registered at its first use.
    fn constant(&mut self, name: impl FnOnce() -> String, tensor: &Tensor) -> tensorlink_types::Operand {
        let known = self.contents.iter().position(|known| known == tensor);
        let index = known.unwrap_or_else(|| {
            let ty = tensor.ty().clone();
            self.constants.push(ConstantSlot { name: name(), ty, root: (self.commit)(tensor) });
            self.contents.push(tensor.clone());
            self.contents.len().saturating_sub(1)
        });
        lower::operand(Source::Constant(index as u32), tensor.ty().clone())
    }
}

fn lookup_name(function: Function, input: &TensorType) -> String {
    let range = i16::from(input.bits()).saturating_sub(1).saturating_sub(input.exponent());
    match function {
        Function::Gelu => format!("gelu ±2^{range}"),
        Function::GeluDerivative => format!("gelu slope ±2^{range}"),
        Function::GeluTanh => format!("gelu by tanh ±2^{range}"),
        Function::GeluTanhDerivative => format!("gelu by tanh slope ±2^{range}"),
        Function::Silu => format!("silu ±2^{range}"),
        Function::SiluDerivative => format!("silu slope ±2^{range}"),
        Function::Tanh => format!("tanh ±2^{range}"),
    }
}

fn leaf(node: &Node) -> CompileError {
    CompileError::Leaf { node: node.to_string() }
}
