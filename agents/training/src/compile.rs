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
mod segments;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use serde::{Deserialize, Serialize};
use tensorlink_num::{Tensor, philox};
use tensorlink_types::program::ConstantSlot;
use tensorlink_types::{JobKey, Operator, Program, Source, StateSlot, TensorRoot, TensorType};

pub use self::error::CompileError;
use self::segments::segments;
use crate::exponents::Exponents;
use crate::lower;
use crate::model::Network;
use crate::step::{DataTypes, Function, Node, NodeId, Op, Phase, StepGraph};
use crate::tables;

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
}

/// What people want to know about a stage; not committed. Operator indexes have one entry for each micro-batch but
/// where it says so, and none where the stage does not compute such a tensor.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StageInfo {
    /// Linear layers, half open.
    pub layers: Range<usize>,
    /// Operators that draw features (first stage; every stage of an encoder, whose blocks have to know what is
    /// padding). Each block may have its own.
    pub features: Vec<u32>,
    /// Operators that draw labels (last stage).
    pub labels: Vec<u32>,
    /// Operators whose output goes into the softmax (last stage).
    pub logits: Vec<u32>,
    /// Operators whose output is the probability of each class (last stage).
    pub probabilities: Vec<u32>,
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
    let (needed, rounds) = (graph.needed(), graph.rounds());
    let compiler =
        Compiler { graph, needed: &needed, rounds: &rounds, types: &types, stages, training, commit: &commit };
    (0..stages.len()).map(|stage| compiler.stage(stage)).collect()
}

pub(crate) fn check_stages(layers: usize, stages: &[Range<usize>]) -> Result<(), CompileError> {
    let mut next = 0;
    for range in stages {
        if range.start != next || range.is_empty() {
            next = usize::MAX;
            break;
        }
        next = range.end;
    }
    if next == layers { Ok(()) } else { Err(CompileError::Stages { stages: stages.to_vec(), layers }) }
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

struct Compiler<'a, C> {
    graph: &'a StepGraph,
    needed: &'a BTreeSet<NodeId>,
    /// First micro-batch of each round.
    rounds: &'a [u32],
    types: &'a [TensorType],
    stages: &'a [Range<usize>],
    training: &'a TrainingSet,
    commit: &'a C,
}

/// A stage under construction.
struct Stage {
    layers: Range<usize>,
    /// Where each node's tensor is found, for nodes of this stage.
    places: BTreeMap<NodeId, Source>,
    operators: Vec<Operator>,
    names: Vec<String>,
    constants: Vec<ConstantSlot>,
    contents: Vec<Tensor>,
    /// Types of what the neighbours send, by micro-batch.
    from_previous: BTreeMap<u32, TensorType>,
    from_next: BTreeMap<u32, TensorType>,
}

impl<C: Fn(&Tensor) -> TensorRoot> Compiler<'_, C> {
    fn stage(&self, index: usize) -> Result<CompiledStage, CompileError> {
        let layers = self.stages.get(index).cloned().unwrap_or_default();
        let mut stage = Stage {
            layers: layers.clone(),
            places: BTreeMap::new(),
            operators: Vec::new(),
            names: Vec::new(),
            constants: Vec::new(),
            contents: Vec::new(),
            from_previous: BTreeMap::new(),
            from_next: BTreeMap::new(),
        };
        let mine: Vec<_> = self.graph.state.iter().filter(|s| layers.contains(&s.layer)).collect();
        for (i, state) in (0..).zip(&mine) {
            stage.places.insert(state.current, Source::State(i));
        }
        let mine_of = |(_, node): &(NodeId, &Node)| layers.contains(&node.layer) && !node.is_leaf();
        let mut nodes: Vec<_> = self.nodes().filter(mine_of).collect();
        let awaited = self.awaited(&layers);
        nodes.sort_by_key(|(id, node)| (self.round(node.phase), node.phase, !awaited.contains(id), *id));
        for (id, node) in &nodes {
            self.place(&mut stage, *id, node)?;
        }
        let mut state = Vec::new();
        for s in &mine {
            let node = self.graph.node(s.current);
            let producer = output(&stage, s.next).ok_or_else(|| leaf(self.graph.node(s.next)))?;
            state.push(StateSlot { name: node.site.clone(), ty: self.ty(s.current)?, producer });
        }
        let observe = |pick: fn(&crate::step::Observed) -> NodeId| {
            self.graph.observed.iter().filter_map(|o| output(&stage, pick(o))).collect::<Vec<_>>()
        };
        let info = StageInfo {
            layers,
            features: self.draws(&nodes, &stage),
            labels: observe(|o| o.labels),
            logits: observe(|o| o.logits),
            probabilities: observe(|o| o.probabilities),
        };
        let (to_next, to_previous) = self.boundaries(&stage);
        let segments = segments(nodes.iter().map(|(_, node)| node.phase));
        let Stage { operators, names, constants, contents, from_previous, from_next, .. } = stage;
        let micro_batches = self.graph.micro_batches;
        let program = Program {
            operators,
            constants,
            state,
            micro_batches,
            to_next,
            to_previous,
            from_previous: from_previous.into_values().collect(),
            from_next: from_next.into_values().collect(),
            segments,
            names,
        };
        Ok(CompiledStage { program, constants: contents, info })
    }

    /// Operators of a stage that draw features.
    fn draws(&self, nodes: &[(NodeId, &Node)], stage: &Stage) -> Vec<u32> {
        let of_features = |node: &Node| node.inputs.iter().any(|id| self.graph.node(*id).op == Op::Features);
        let draws = |node: &Node| matches!(node.op, Op::Sample { .. }) && of_features(node);
        nodes.iter().filter(|(_, node)| draws(node)).filter_map(|(id, _)| output(stage, *id)).collect()
    }

    /// What the state after the step comes of, or people want to see.
    fn nodes(&self) -> impl Iterator<Item = (NodeId, &Node)> {
        self.graph.nodes().filter(|(id, _)| self.needed.contains(id))
    }

    /// What a neighbour waits for in each pass, and what of the pass that comes of: it goes first, as gradients by
    /// weights can wait (Qi et al., *Zero Bubble Pipeline Parallelism*, 2023).
    fn awaited(&self, layers: &Range<usize>) -> BTreeSet<NodeId> {
        let mut open = Vec::new();
        for (_, reader) in self.nodes().filter(|(_, reader)| !layers.contains(&reader.layer)) {
            open.extend(reader.inputs.iter().filter(|id| layers.contains(&self.graph.node(**id).layer)));
        }
        let mut awaited = BTreeSet::new();
        while let Some(id) = open.pop() {
            if awaited.insert(id) {
                let node = self.graph.node(id);
                open.extend(node.inputs.iter().filter(|input| self.graph.node(**input).phase == node.phase));
            }
        }
        awaited
    }

    fn round(&self, phase: Phase) -> usize {
        match phase {
            Phase::Prepare => 0,
            Phase::Forward(mb) | Phase::Backward(mb) => self.rounds.partition_point(|first| *first <= mb),
            Phase::Update => usize::MAX,
        }
    }

    fn ty(&self, id: NodeId) -> Result<TensorType, CompileError> {
        self.types.get(id.index()).cloned().ok_or_else(|| leaf(self.graph.node(id)))
    }

    fn place(&self, stage: &mut Stage, id: NodeId, node: &Node) -> Result<(), CompileError> {
        let mut operands = Vec::new();
        for input in &node.inputs {
            operands.push(lower::operand(self.source(stage, *input, node)?, self.ty(*input)?));
        }
        let mut table = None;
        if let (Op::Lookup(function), Some(input)) = (node.op, node.inputs.first()) {
            let input = self.ty(*input)?;
            let made = tables::lookup(function, &input)
                .map_err(|source| CompileError::Table { node: node.to_string(), source })?;
            operands.push(self.constant(stage, || lookup_name(function, &input), &made.table));
            table = Some(made);
        }
        if matches!(node.op, Op::ExpNeg { .. }) {
            let made = tensorlink_num::tables::exp2_table()
                .map_err(|source| CompileError::Table { node: node.to_string(), source: source.into() })?;
            operands.push(self.constant(stage, || "exp2".to_owned(), &made));
        }
        let operator = lower::operator(node, operands, self.ty(id)?, table.as_ref())?;
        stage.places.insert(id, Source::Output(stage.operators.len() as u32));
        stage.operators.push(operator);
        stage.names.push(node.to_string());
        Ok(())
    }

    /// Where a stage finds an input of one of its nodes.
    fn source(&self, stage: &mut Stage, input: NodeId, user: &Node) -> Result<Source, CompileError> {
        if let Some(place) = stage.places.get(&input) {
            return Ok(*place);
        }
        let node = self.graph.node(input);
        match node.op {
            Op::Features => return Ok(self.constant(stage, || "features".into(), &self.training.features).source),
            Op::Labels => return Ok(self.constant(stage, || "labels".into(), &self.training.labels).source),
            Op::Constant(index) => {
                let source = self.listed(stage, input, index)?;
                stage.places.insert(input, source);
                return Ok(source);
            }
            _ => {}
        }
        let (Phase::Forward(mb) | Phase::Backward(mb)) = node.phase else { return Err(leaf(user)) };
        let slot = if node.layer < stage.layers.start { &mut stage.from_previous } else { &mut stage.from_next };
        slot.insert(mb, self.ty(input)?);
        let source = if node.layer < stage.layers.start { Source::FromPrevious(mb) } else { Source::FromNext(mb) };
        stage.places.insert(input, source);
        Ok(source)
    }

    /// One of the graph's constants, in the type of its node.
    fn listed(&self, stage: &mut Stage, id: NodeId, index: usize) -> Result<Source, CompileError> {
        let node = self.graph.node(id);
        let constant = self.graph.constants.get(index).ok_or_else(|| leaf(node))?;
        let ty = self.ty(id)?;
        let unit = libm::exp2(f64::from(ty.exponent()));
        let mantissas: Vec<i64> = constant.values.iter().map(|x| (x * unit).round_ties_even() as i64).collect();
        let tensor = Tensor::from_wide(ty, &mantissas)
            .map_err(|source| CompileError::Constant { name: constant.name.clone(), source })?;
        Ok(self.constant(stage, || constant.name.clone(), &tensor).source)
    }

    /// A constant of the stage, registered at its first use.
    fn constant(&self, stage: &mut Stage, name: impl FnOnce() -> String, tensor: &Tensor) -> tensorlink_types::Operand {
        let known = stage.contents.iter().position(|known| known == tensor);
        let index = known.unwrap_or_else(|| {
            let ty = tensor.ty().clone();
            stage.constants.push(ConstantSlot { name: name(), ty, root: (self.commit)(tensor) });
            stage.contents.push(tensor.clone());
            stage.contents.len().saturating_sub(1)
        });
        lower::operand(Source::Constant(index as u32), tensor.ty().clone())
    }

    /// Operators of this stage whose output a neighbour reads, one for each micro-batch.
    fn boundaries(&self, stage: &Stage) -> (Vec<u32>, Vec<u32>) {
        let (mut to_next, mut to_previous) = (BTreeMap::new(), BTreeMap::new());
        for (_, user) in self.nodes().filter(|(_, user)| !stage.layers.contains(&user.layer)) {
            for input in &user.inputs {
                let (Phase::Forward(mb) | Phase::Backward(mb)) = self.graph.node(*input).phase else { continue };
                let Some(index) = output(stage, *input) else { continue };
                let forward = user.layer >= stage.layers.end;
                let boundary = if forward { &mut to_next } else { &mut to_previous };
                if forward == matches!(self.graph.node(*input).phase, Phase::Forward(_)) {
                    boundary.insert(mb, index);
                }
            }
        }
        (to_next.into_values().collect(), to_previous.into_values().collect())
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

fn output(stage: &Stage, id: NodeId) -> Option<u32> {
    match stage.places.get(&id) {
        Some(Source::Output(index)) => Some(*index),
        _ => None,
    }
}
