//! Order, boundaries and memory of a stage's execution.

use std::cell::Cell;
use std::rc::Rc;

use tensorlink_num::Tensor;
use tensorlink_program::executor::peak;
use tensorlink_program::{Engine, EngineError, ExecuteError, Reference, StageExecutor, StepContext};
use tensorlink_training::calibrate::job_key;
use tensorlink_training::{LocalPipeline, Schedule, Table};
use tensorlink_types::{Operator, Segment, TensorType};

use crate::support::{Job, Prepared, digits, model};

fn job() -> Job {
    let csv: String = (0..40).map(|i| format!("{},{},{}\n", i % 7, i % 5, i % 3)).collect();
    let table = Table::parse(csv.as_bytes()).unwrap();
    Prepared::new(&model("linear 6, relu, linear 5, gelu", 16, 8, 2), &table, 5).compile(&[0..1, 1..2, 2..3])
}

fn stage(job: &Job, index: usize) -> StageExecutor<Reference> {
    let (program, _, constants, state) = &job.stages[index];
    StageExecutor::new(Reference, program.clone(), constants, state, job_key(1), []).unwrap()
}

#[test]
fn refuses_passes_out_of_order() {
    let job = job();
    let mut first = stage(&job, 0);
    let gradient = Tensor::zeros(first.program().from_next[0].clone());
    let out_of_order = |result: Result<_, ExecuteError>| assert!(matches!(result, Err(ExecuteError::Order(_))));
    out_of_order(first.forward(0, None).map(drop));
    out_of_order(first.update());
    first.begin_step(0).unwrap();
    out_of_order(first.backward(0, Some(&gradient)).map(drop));
    out_of_order(first.forward(2, None).map(drop));
    first.forward(0, None).unwrap().unwrap();
    out_of_order(first.forward(0, None).map(drop));
    out_of_order(first.backward(1, Some(&gradient)).map(drop));
    first.forward(1, None).unwrap();
    // Each may add to the sums of those before it.
    out_of_order(first.backward(1, Some(&gradient)).map(drop));
    assert!(first.backward(0, Some(&gradient)).unwrap().is_none());
    out_of_order(first.update());
    first.backward(1, Some(&gradient)).unwrap();
    first.update().unwrap();
    out_of_order(first.update());
}

#[test]
fn refuses_wrong_boundary_tensors() {
    let job = job();
    let mut middle = stage(&job, 1);
    middle.begin_step(0).unwrap();
    let input = Tensor::zeros(middle.program().from_previous[0].clone());
    let problem = |result| match result {
        Err(ExecuteError::Boundary { problem, .. }) => problem,
        _ => "none",
    };
    assert_eq!(problem(middle.forward(0, None)), "missing");
    // A program with backward passes takes gradients there.
    let gradient = Tensor::zeros(middle.program().from_next[0].clone());
    assert_eq!(problem(middle.forward_between(0, Some(&input), Some(&gradient))), "not used by this stage");
    let narrow = Tensor::zeros(TensorType::new(8, 3, input.ty().dims()).unwrap());
    assert!(matches!(middle.forward(0, Some(&narrow)), Err(ExecuteError::Type { .. })));
    let mut first = stage(&job, 0);
    first.begin_step(0).unwrap();
    assert_eq!(problem(first.forward(0, Some(&input))), "not used by this stage");
    // A refused tensor leaves the pass to be run with the right one.
    middle.forward(0, Some(&input)).unwrap().unwrap();
}

#[test]
fn refuses_state_and_constants_of_other_programs() {
    let job = job();
    let (program, _, constants, state) = &job.stages[0];
    let new = |constants: &[Tensor], state: &[Tensor]| {
        StageExecutor::new(Reference, program.clone(), constants, state, job_key(1), []).map(drop)
    };
    new(constants, state).unwrap();
    assert!(matches!(new(&[], state), Err(ExecuteError::Count { what: "constants", .. })));
    assert!(matches!(new(constants, &state[1..]), Err(ExecuteError::Count { what: "state tensors", .. })));
    let mut swapped = state.clone();
    swapped.swap(0, 1);
    assert!(matches!(new(constants, &swapped), Err(ExecuteError::Type { what, .. }) if what == "fc1.weight"));
}

#[test]
fn trace_is_whole_and_changes_nothing() {
    let mut plain = job();
    let traced = job();
    let mut pipeline = traced.pipeline();
    let traces = pipeline.trace();
    for step in 0..3 {
        pipeline.step(step, Schedule::AllForward).unwrap();
        for (stage, trace) in pipeline.executors().zip(&traces) {
            let trace = trace.take();
            assert_eq!(trace.len(), stage.program().operators.len());
            let types = trace.iter().map(Tensor::ty);
            assert!(types.eq(stage.program().operators.iter().map(|operator| &operator.output)));
            let produced = stage.program().state.iter().map(|slot| trace[slot.producer as usize].clone());
            assert_eq!(produced.collect::<Vec<_>>(), stage.state().unwrap());
        }
    }
    plain.train(3, Schedule::OneByOne);
    assert_eq!(plain.state(), pipeline.state().unwrap().concat());
}

/// Counts live tensors, their bytes, and operators that ran; fails once, if it is to.
#[derive(Clone, Default)]
struct Counting(Rc<Live>);

#[derive(Default)]
struct Live {
    now: Cell<usize>,
    most: Cell<usize>,
    bytes: Cell<u64>,
    most_bytes: Cell<u64>,
    executed: Cell<usize>,
    /// After so many operators.
    fails: Cell<Option<usize>>,
}

struct Counted(Tensor, Rc<Live>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.1.now.set(self.1.now.get() - 1);
        self.1.bytes.set(self.1.bytes.get() - self.0.ty().byte_len());
    }
}

impl Counting {
    fn count(&self, tensor: Tensor) -> Rc<Counted> {
        self.0.now.set(self.0.now.get() + 1);
        self.0.most.set(self.0.most.get().max(self.0.now.get()));
        self.0.bytes.set(self.0.bytes.get() + tensor.ty().byte_len());
        self.0.most_bytes.set(self.0.most_bytes.get().max(self.0.bytes.get()));
        Rc::new(Counted(tensor, self.0.clone()))
    }
}

impl Engine for Counting {
    type Tensor = Rc<Counted>;

    fn describe(&self) -> String {
        "counting".into()
    }

    fn import(&self, tensor: &Tensor) -> Result<Self::Tensor, EngineError> {
        Ok(self.count(tensor.clone()))
    }

    fn export(&self, tensor: &Self::Tensor) -> Result<Tensor, EngineError> {
        Ok(tensor.0.clone())
    }

    fn execute(
        &self,
        operator: &Operator,
        operands: &[&Self::Tensor],
        context: &StepContext,
    ) -> Result<Self::Tensor, EngineError> {
        if self.0.fails.get() == Some(self.0.executed.get()) {
            self.0.fails.set(None);
            return Err(EngineError::Device("out of memory".into()));
        }
        let operands: Vec<&Tensor> = operands.iter().map(|tensor| &tensor.0).collect();
        self.0.executed.set(self.0.executed.get() + 1);
        let output = tensorlink_num::execute(operator, &operands, context);
        output.map(|tensor| self.count(tensor)).map_err(|error| EngineError::Malformed(error.to_string()))
    }
}

#[test]
fn outputs_are_dropped_after_their_last_reader() {
    let job = job();
    let engine = Counting::default();
    let stages = job.borrowed();
    let mut pipeline = LocalPipeline::new(&stages, job_key(1), || engine.clone()).unwrap();
    let resident = engine.0.now.get();
    for step in 0..4 {
        pipeline.step(step, Schedule::OneByOne).unwrap();
        // Only what is observed for the metrics outlives the step: labels and probabilities of two micro-batches.
        assert_eq!(engine.0.now.get(), resident + 4);
    }
    let outputs: usize = stages.iter().map(|stage| stage.program.operators.len()).sum();
    assert!(engine.0.most.get() < resident + outputs / 2, "{} live of {outputs}", engine.0.most.get());
}

/// Of a state there are never two at once, which would be most of what a large model takes.
#[test]
fn a_tensor_of_the_state_is_dropped_when_its_next_is_there() {
    let job = job();
    let engine = Counting::default();
    let (program, _, constants, state) = &job.stages[2];
    let mut last = StageExecutor::new(engine.clone(), program.clone(), constants, state, job_key(1), []).unwrap();
    last.begin_step(0).unwrap();
    let input = Tensor::zeros(program.from_previous[0].clone());
    for micro_batch in 0..2 {
        last.forward(micro_batch, Some(&input)).unwrap();
        last.backward(micro_batch, None).unwrap();
    }
    last.finish_pass().unwrap();
    let before = engine.0.now.get();
    engine.0.most.set(before);
    last.update().unwrap();
    // Gradients go as the update comes; a weight's two next tensors and a sum are there before what they replace
    // is gone.
    assert!(state.len() > 3 && engine.0.most.get() <= before + 3, "{} to {}", before, engine.0.most.get());
}

/// What a stage is said to take is what it takes at the most, and little more.
#[test]
fn the_peak_is_never_exceeded() {
    let of_csv = job();
    let digits = Prepared::new(&model("linear 32, relu, linear 24, gelu", 8, 64, 4), &digits(), 4);
    for job in [of_csv, digits.compile(&[0..1, 1..2, 2..3]), digits.compile(&[0..3])] {
        for (program, _, constants, state) in &job.stages {
            let engine = Counting::default();
            let mut stage =
                StageExecutor::new(engine.clone(), program.clone(), constants, state, job_key(1), []).unwrap();
            let zeros = |types: &[TensorType], at: u32| types.get(at as usize).cloned().map(Tensor::zeros);
            for all_forward in [true, false] {
                for step in 0..2 {
                    stage.begin_step(step).unwrap();
                    let mut forward = 0;
                    for backward in 0..program.micro_batches {
                        while forward <= backward || (all_forward && forward < program.micro_batches) {
                            stage.forward(forward, zeros(&program.from_previous, forward).as_ref()).unwrap();
                            forward += 1;
                        }
                        stage.backward(backward, zeros(&program.from_next, backward).as_ref()).unwrap();
                    }
                    stage.update().unwrap();
                }
            }
            let (most, peak) = (engine.0.most_bytes.get(), peak(program));
            assert!(most <= peak && peak < 2 * most, "{most} bytes at once, {peak} predicted");
        }
    }
}

#[test]
fn a_step_that_failed_begins_again_unless_its_update_had_begun() {
    let job = job();
    let (program, _, constants, state) = &job.stages[2];
    let input = Tensor::zeros(program.from_previous[0].clone());
    let step = |executor: &mut StageExecutor<Counting>| {
        executor.begin_step(0)?;
        for micro_batch in 0..2 {
            executor.forward(micro_batch, Some(&input))?;
            executor.backward(micro_batch, None)?;
        }
        executor.update()
    };
    let new = |fails: Option<usize>| {
        let engine = Counting::default();
        engine.0.fails.set(fails);
        StageExecutor::new(engine, program.clone(), constants, state, job_key(1), []).unwrap()
    };
    let mut whole = new(None);
    step(&mut whole).unwrap();
    let update = program.segments.iter().find(|segment| matches!(segment, Segment::Update { .. })).unwrap();
    let first = update.operators().start as usize;
    for fails in [0, first / 2, first - 1] {
        let mut executor = new(Some(fails));
        assert!(matches!(step(&mut executor), Err(ExecuteError::Engine { .. })), "{fails}");
        step(&mut executor).unwrap();
        assert_eq!(executor.state().unwrap(), whole.state().unwrap(), "{fails}");
    }
    let mut executor = new(Some(first + 1));
    assert!(matches!(step(&mut executor), Err(ExecuteError::Engine { .. })));
    assert!(matches!(step(&mut executor), Err(ExecuteError::Torn)));
}
