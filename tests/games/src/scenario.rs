//! Random programs, their execution, and lies about it.

use alloy::primitives::aliases::U40;
use tensorlink_num::arbitrary::{Case, Dice};
use tensorlink_num::{StepContext, Tensor, execute};
use tensorlink_proof::commit::{
    Boundary, BoundaryLists, LogBuilder, ProgramCommitment, io_root, state_root, tensor_root,
};
use tensorlink_types::abi::{Claim, JobKind, JobTerms};
use tensorlink_types::program::{ConstantSlot, StateSlot};
use tensorlink_types::{
    B256, Bytes, JobId, Lineage, Opcode, Operand, Operator, Program, Source, TensorRoot, TensorType,
};

use crate::world::{STAGE, STAKE, WINDOW};

/// A program of one stage with everything it runs on.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The step function.
    pub program: Program,
    /// Its constants.
    pub constants: Vec<Tensor>,
    /// The state it starts from.
    pub state: Vec<Tensor>,
    /// Steps of the only interval.
    pub steps: u32,
    /// Steps before them, in a job that it continues; none if there is no such job.
    pub first_step: u32,
    /// For each state tensor the operator that gives it, if it is not its own.
    producers: Vec<Option<u32>>,
    seed: u64,
}

/// An interval as somebody executed it, or says so.
#[derive(Clone, Debug)]
pub struct Run {
    /// State before the first step and after each.
    pub states: Vec<Vec<Tensor>>,
    /// All outputs of each step.
    pub outputs: Vec<Vec<Tensor>>,
    /// Their roots.
    pub traces: Vec<Vec<TensorRoot>>,
    /// Roots of the states.
    pub state_roots: Vec<Vec<TensorRoot>>,
    /// What crossed the stage's boundaries.
    pub logs: BoundaryLists,
}

/// What a worker gets wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lie {
    /// Nothing.
    None,
    /// An element of an operator's output; what follows builds on it.
    Element {
        /// Step.
        step: u32,
        /// Operator.
        operator: u32,
        /// Element.
        element: u64,
    },
    /// A state tensor after a step is not what its operator gave; later steps start from it.
    State {
        /// Step.
        step: u32,
        /// State tensor.
        index: u32,
    },
    /// What was sent is not what its operator gave.
    Sent {
        /// Step.
        step: u32,
        /// Micro-batch.
        micro_batch: u32,
        /// To the next stage, or else to the previous.
        forward: bool,
    },
    /// What was received, and computed from, is not what the neighbour sent.
    Received {
        /// Step.
        step: u32,
        /// Micro-batch.
        micro_batch: u32,
        /// From the previous stage, or else from the next.
        forward: bool,
    },
}

impl Scenario {
    /// The scenario of a seed.
    pub fn new(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let mut made = Self {
            program: Program {
                operators: vec![],
                constants: vec![],
                state: vec![],
                micro_batches: dice.range(1, 2) as u32,
                to_next: vec![],
                to_previous: vec![],
                from_previous: vec![],
                from_next: vec![],
                segments: vec![],
                names: vec![],
            },
            constants: vec![],
            state: vec![],
            steps: dice.range(1, 6) as u32,
            first_step: if dice.once_in(2) { dice.range(1, 9) as u32 } else { 0 },
            producers: vec![],
            seed,
        };
        for _ in 0..dice.range(1, 4) {
            made.draw_operator(&mut dice);
        }
        made.draw_boundaries(&mut dice);
        made.update_state();
        made
    }

    /// An operator of any kind over state and constants, and now and then one over its output.
    fn draw_operator(&mut self, dice: &mut Dice) {
        let opcode = Opcode::ALL[dice.range(0, Opcode::ALL.len() as i64 - 1) as usize];
        let size = if dice.once_in(8) { 12 } else { dice.range(1, 6) as u32 };
        let case = Case::new(opcode, size, dice.bits(64)).unwrap();
        let mut operator = case.operator;
        let narrow = |tensor: &Tensor| tensor.ty().bits() <= 32;
        let moves: Vec<bool> = case.operands.iter().map(|tensor| narrow(tensor) && dice.once_in(2)).collect();
        let later = moves
            .iter()
            .zip(&case.operands)
            .map(|(moves, tensor)| if *moves { negated(tensor) } else { tensor.clone() });
        let later: Vec<Tensor> = later.collect();
        // Not everything can have its sign changed: an index cannot, nor what is divided by.
        let movable = execute(&operator, &later.iter().collect::<Vec<_>>(), &case.context).is_ok();
        for ((operand, tensor), moves) in operator.operands.iter_mut().zip(case.operands).zip(moves) {
            operand.source = if movable && moves { self.add_state(tensor) } else { self.add_constant(tensor) };
        }
        let output = operator.output.clone();
        let mut index = self.add(operator);
        if dice.once_in(2) {
            index = self.add(unary(Opcode::Relu, Source::Output(index), &output, &[]));
        }
        // What it gives is kept, or it would not matter whether it is right.
        self.state.push(dice.tensor(&output).unwrap());
        self.producers.push(Some(index));
    }

    /// Neighbours, whose tensors go through a Relu to the other side.
    fn draw_boundaries(&mut self, dice: &mut Dice) {
        for previous in [true, false] {
            if dice.once_in(2) {
                continue;
            }
            let ty = TensorType::new(8, 0, &[dice.range(1, 300) as u32]).unwrap();
            for micro_batch in 0..self.program.micro_batches {
                let source = if previous { Source::FromPrevious(micro_batch) } else { Source::FromNext(micro_batch) };
                let output = self.add(unary(Opcode::Relu, source, &ty, &[]));
                let sink = if previous { &mut self.program.to_next } else { &mut self.program.to_previous };
                sink.push(output);
            }
            let types = vec![ty; self.program.micro_batches as usize];
            if previous {
                self.program.from_previous = types;
            } else {
                self.program.from_next = types;
            }
        }
    }

    /// Every state tensor that is not some output changes its sign in every step.
    fn update_state(&mut self) {
        for index in 0..self.state.len() {
            let ty = self.state[index].ty().clone();
            let source = Source::State(index as u32);
            let producer = match self.producers[index] {
                Some(producer) => producer,
                None => self.add(unary(Opcode::Scale, source, &ty, &[-1, 0])),
            };
            let slot = StateSlot { name: String::new(), ty, producer };
            self.program.state.push(slot);
        }
    }

    fn add(&mut self, operator: Operator) -> u32 {
        self.program.operators.push(operator);
        self.program.names.push(String::new());
        self.program.operators.len() as u32 - 1
    }

    fn add_state(&mut self, tensor: Tensor) -> Source {
        self.state.push(tensor);
        self.producers.push(None);
        Source::State(self.state.len() as u32 - 1)
    }

    fn add_constant(&mut self, tensor: Tensor) -> Source {
        let slot = ConstantSlot { name: String::new(), ty: tensor.ty().clone(), root: tensor_root(&tensor) };
        self.program.constants.push(slot);
        self.constants.push(tensor);
        Source::Constant(self.constants.len() as u32 - 1)
    }

    /// Terms of a job that is this program in the middle of three stages, for one interval.
    pub fn terms(&self, now: u64) -> JobTerms {
        let roots: Vec<TensorRoot> = self.state.iter().map(tensor_root).collect();
        JobTerms {
            kind: JobKind::Training as u8,
            token: Default::default(),
            stages: 3,
            replicas: 1,
            intervals: 1,
            stepsPerInterval: self.steps,
            acceptBy: U40::from(now + 3_600),
            duration: U40::from(7_200),
            challengeWindow: WINDOW,
            workerStake: STAKE.into(),
            continues: 0,
            firstStep: 0,
            programs: vec![ProgramCommitment::new(&self.program).unwrap().root(); 3],
            initialStates: vec![state_root(&roots); 3],
            manifest: Bytes::from_static(b"manifest"),
        }
    }

    /// What a neighbour sends, or is said to have sent.
    fn received(&self, source: Source, step: u32, lie: Lie) -> Tensor {
        let (types, place, at) = match source {
            Source::FromPrevious(m) => (&self.program.from_previous, 2 * m, (m, true)),
            Source::FromNext(m) => (&self.program.from_next, 2 * m + 1, (m, false)),
            _ => unreachable!("not an input"),
        };
        let dice = Dice::new(self.seed ^ (u64::from(step) << 8) ^ u64::from(place)).tensor(&types[at.0 as usize]);
        let sent = dice.unwrap();
        let is_lie = lie == (Lie::Received { step, micro_batch: at.0, forward: at.1 });
        if is_lie { changed(&sent, 0) } else { sent }
    }

    /// Executes the interval.
    pub fn honest(&self, lineage: Lineage) -> Run {
        self.run(lineage, Lie::None, None)
    }

    /// Executes the interval with a lie. An operator that cannot be computed from what a lie leads to gives what it
    /// would without.
    pub fn lied(&self, lineage: Lineage, lie: Lie, honest: &Run) -> Run {
        self.run(lineage, lie, Some(honest))
    }

    /// An honest run, of whose last step something else is said: an element of an output that nothing else is made to
    /// agree with.
    pub fn framing(&self, honest: &Run, dice: &mut Dice) -> Run {
        let operator = dice.range(0, self.program.operators.len() as i64 - 1) as usize;
        let elements = self.program.operators[operator].output.elements();
        let mut run = honest.clone();
        let (outputs, trace) = (run.outputs.last_mut().unwrap(), run.traces.last_mut().unwrap());
        outputs[operator] = changed(&outputs[operator], dice.range(0, elements as i64 - 1) as u64);
        trace[operator] = tensor_root(&outputs[operator]);
        run
    }

    fn run(&self, lineage: Lineage, lie: Lie, honest: Option<&Run>) -> Run {
        let mut states = vec![self.state.clone()];
        let mut outputs: Vec<Vec<Tensor>> = vec![];
        let mut logs = LogBuilder::new(&self.program, self.steps).unwrap();
        for step in 0..self.steps {
            let context = StepContext::new(lineage, step);
            let state = states.last().unwrap().clone();
            let mut of_step: Vec<Tensor> = vec![];
            for (index, operator) in (0..).zip(&self.program.operators) {
                let operands = self.operands(operator, (&state, &of_step), step, lie);
                let output = execute(operator, &operands.iter().collect::<Vec<_>>(), &context);
                if honest.is_none()
                    && let Err(error) = &output
                {
                    panic!("{error}: {operator:?}");
                }
                let output = output.ok();
                let right = || honest.map(|honest| honest.outputs[step as usize][index as usize].clone());
                let mut output = output.or_else(right).expect("an honest program runs");
                if let Lie::Element { step: s, operator: o, element } = lie
                    && (s, o) == (step, index)
                {
                    output = changed(&output, element);
                }
                of_step.push(output);
            }
            let mut next: Vec<Tensor> =
                self.program.state.iter().map(|slot| of_step[slot.producer as usize].clone()).collect();
            if let Lie::State { step: s, index } = lie
                && s == step
            {
                next[index as usize] = changed(&next[index as usize], 0);
            }
            self.log(&mut logs, &of_step, step, lie);
            states.push(next);
            outputs.push(of_step);
        }
        let roots = |tensors: &[Tensor]| tensors.iter().map(tensor_root).collect::<Vec<_>>();
        Run {
            traces: outputs.iter().map(|outputs| roots(outputs)).collect(),
            state_roots: states.iter().map(|state| roots(state)).collect(),
            logs: logs.finish().unwrap(),
            states,
            outputs,
        }
    }

    fn log(&self, logs: &mut LogBuilder, outputs: &[Tensor], step: u32, lie: Lie) {
        for micro_batch in 0..self.program.micro_batches {
            let received = [
                (Boundary::FromPrevious, !self.program.from_previous.is_empty(), Source::FromPrevious(micro_batch)),
                (Boundary::FromNext, !self.program.from_next.is_empty(), Source::FromNext(micro_batch)),
            ];
            for (boundary, _, source) in received.into_iter().filter(|(_, there, _)| *there) {
                logs.record(boundary, step, micro_batch, tensor_root(&self.received(source, step, lie))).unwrap();
            }
            for (boundary, sources) in
                [(Boundary::ToNext, &self.program.to_next), (Boundary::ToPrevious, &self.program.to_previous)]
            {
                let Some(source) = sources.get(micro_batch as usize) else { continue };
                let mut sent = tensor_root(&outputs[*source as usize]);
                if lie == (Lie::Sent { step, micro_batch, forward: boundary == Boundary::ToNext }) {
                    sent = TensorRoot(B256::repeat_byte(0x5e));
                }
                logs.record(boundary, step, micro_batch, sent).unwrap();
            }
        }
    }

    /// An operator's operands, given the state and the outputs before it.
    pub fn operands(
        &self,
        operator: &Operator,
        (state, outputs): (&[Tensor], &[Tensor]),
        step: u32,
        lie: Lie,
    ) -> Vec<Tensor> {
        let tensor = |source| match source {
            Source::Output(index) => outputs[index as usize].clone(),
            Source::State(index) => state[index as usize].clone(),
            Source::Constant(index) => self.constants[index as usize].clone(),
            received => self.received(received, step, lie),
        };
        operator.operands.iter().map(|operand| tensor(operand.source)).collect()
    }

    /// A lie that this scenario has a place for.
    pub fn lie(&self, dice: &mut Dice) -> Lie {
        let step = dice.range(0, i64::from(self.steps) - 1) as u32;
        let operator = dice.range(0, self.program.operators.len() as i64 - 1) as u32;
        let elements = self.program.operators[operator as usize].output.elements();
        let element = Lie::Element { step, operator, element: dice.range(0, elements as i64 - 1) as u64 };
        let micro_batch = dice.range(0, i64::from(self.program.micro_batches) - 1) as u32;
        match dice.range(0, 4) {
            0 => Lie::State { step, index: dice.range(0, self.state.len() as i64 - 1) as u32 },
            1 if !self.program.from_previous.is_empty() => Lie::Sent { step, micro_batch, forward: true },
            2 if !self.program.from_next.is_empty() => Lie::Sent { step, micro_batch, forward: false },
            3 => self.misled(dice).unwrap_or(element),
            _ => element,
        }
    }

    /// A lie about what was received, if anything is.
    pub fn misled(&self, dice: &mut Dice) -> Option<Lie> {
        let step = dice.range(0, i64::from(self.steps) - 1) as u32;
        let micro_batch = dice.range(0, i64::from(self.program.micro_batches) - 1) as u32;
        let (previous, next) = (!self.program.from_previous.is_empty(), !self.program.from_next.is_empty());
        let forward = if previous && next { dice.once_in(2) } else { previous };
        (previous || next).then_some(Lie::Received { step, micro_batch, forward })
    }
}

impl Run {
    /// The claim of the interval.
    pub fn claim(&self, job: JobId) -> Claim {
        Claim {
            job: job.0,
            stage: STAGE,
            replica: 0,
            interval: 0,
            parentState: state_root(&self.state_roots[0]),
            newState: state_root(self.state_roots.last().unwrap()),
            io: io_root(&self.logs.roots()),
        }
    }
}

fn negated(tensor: &Tensor) -> Tensor {
    let values: Vec<i64> = tensor.mantissas().to_vec().iter().map(|value| -value).collect();
    Tensor::from_wide(tensor.ty().clone(), &values).unwrap()
}

fn unary(opcode: Opcode, source: Source, ty: &TensorType, attributes: &[i64]) -> Operator {
    let operands = vec![Operand { source, ty: ty.clone() }];
    Operator { opcode, operands, attributes: attributes.to_vec(), output: ty.clone() }
}

/// The tensor with one mantissa changed, to another that its type has.
fn changed(tensor: &Tensor, element: u64) -> Tensor {
    let mut values = tensor.mantissas().to_vec();
    let value = &mut values[element as usize];
    *value = if *value == 0 { 1 } else { -*value };
    Tensor::from_wide(tensor.ty().clone(), &values).unwrap()
}
