//! Stages that are cut out of those of another cut are those that the compiler makes.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;

use tensorlink_num::Tensor;
use tensorlink_program::{CheckedProgram, Reference};
use tensorlink_training::calibrate::{Calibration, job_key};
use tensorlink_training::whole::{Cut, CutError, Origins, Whole};
use tensorlink_training::{CompiledStage, Dataset, LocalPipeline, Schedule, Stage, Training, compile, init};
use tensorlink_types::{B256, TensorRoot};

use crate::language::{GPT2, LLAMA, trained_by};
use crate::support::{Prepared, digits, model};

/// What tells tensors apart.
fn commit(tensor: &Tensor) -> TensorRoot {
    let mut hasher = DefaultHasher::new();
    (tensor.to_bytes(), tensor.ty().to_string()).hash(&mut hasher);
    let mut root = B256::ZERO;
    root[..8].copy_from_slice(&hasher.finish().to_le_bytes());
    TensorRoot(root)
}

/// All cuts of so many layers.
fn cuts(layers: usize) -> Vec<Vec<Range<usize>>> {
    // Bit i of a mask cuts after layer i + 1.
    let cut = |mask: u32| {
        let ends: Vec<_> = (1..=layers).filter(|end| *end == layers || mask >> (end - 1) & 1 == 1).collect();
        [0].into_iter().chain(ends.clone()).zip(ends).map(|(start, end)| start..end).collect()
    };
    (0..1 << (layers - 1)).map(cut).collect()
}

fn merged(stages: &[CompiledStage]) -> Result<(Whole, Origins), CutError> {
    Whole::merged(&stages.iter().map(|stage| (&stage.program, &stage.info, &stage.layout)).collect::<Vec<_>>())
}

/// The same stage, with constants and state that are found where the former stages have them.
fn assert_same(cut: &Cut, expected: &CompiledStage, (former, origins): (&[CompiledStage], &Origins)) {
    assert!(cut.program == expected.program, "{:?}", cut.info.layers);
    assert_eq!((&cut.info, &cut.layout), (&expected.info, &expected.layout));
    let constants = cut.constants.iter().map(|number| {
        let origin = origins.constants[*number as usize];
        &former[origin.stage].constants[origin.index]
    });
    assert!(constants.eq(&expected.constants));
    for (slot, at) in cut.program.state.iter().zip(&cut.layout.state) {
        let origin = origins.state[at.number as usize];
        assert_eq!(slot.name, former[origin.stage].program.state[origin.index].name);
    }
}

/// Whatever a training was cut into, it is cut into anything else as the compiler does it.
fn check_all(layers: usize, compile: impl Fn(&[Range<usize>]) -> Vec<CompiledStage>) {
    let cuts = cuts(layers);
    let compiled: Vec<Vec<CompiledStage>> = cuts.iter().map(|cut| compile(cut)).collect();
    for former in &compiled {
        let (whole, origins) = merged(former).unwrap();
        assert_eq!((whole.layers(), whole.shares()), (layers, 1));
        for (cut, expected) in cuts.iter().zip(&compiled) {
            let again = whole.cut(cut).unwrap();
            assert_eq!(again.len(), expected.len());
            for (again, expected) in again.iter().zip(expected) {
                assert_same(again, expected, (former, &origins));
            }
        }
    }
}

/// As [`check_all`], of a language model.
pub(crate) fn check_recut(training: &Training, calibration: &Calibration, data: &Dataset) {
    check_all(training.layers.len(), |cut| training.compile(calibration, &data.training, cut, commit).unwrap());
}

#[test]
fn networks_are_cut_anew_as_they_are_compiled() {
    for (layers, bits, micro_batches) in [("linear 9, relu, linear 7, gelu", 8, 2), ("linear 6, gelu, linear 5", 16, 1)]
    {
        let prepared = Prepared::new(&model(layers, bits, 12, micro_batches), &digits(), 3);
        let (network, exponents, data) = (&prepared.network, &prepared.exponents, &prepared.dataset.training);
        check_all(network.layers.len(), |cut| compile(network, exponents, data, cut, commit).unwrap());
    }
}

#[test]
fn language_models_are_cut_anew_as_they_are_compiled() {
    for (shape, fields) in [
        (LLAMA.to_owned(), r#""operand_bits": 8, "dropout": 0.1"#),
        (format!(r#"{GPT2}, "tied": false"#), r#""operand_bits": 16"#),
    ] {
        let (_, training, data) = trained_by(0.003, &shape, fields, (64, 0));
        check_recut(&training, &training.calibrate(&data.training, 2, 2).unwrap(), &data);
    }
}

/// Of shares the stages are the least that there is: they can be put together, and come to the same states.
#[test]
fn shares_are_put_together() {
    let (_, training, data) = trained_by(0.003, LLAMA, r#""operand_bits": 8"#, (64, 0));
    let calibration = training.calibrate(&data.training, 2, 2).unwrap();
    let shared = training.shared(2).unwrap();
    let former = shared.compile(&calibration, &data.training, &[0..1, 1..4], commit).unwrap();
    let begun: Vec<Vec<Tensor>> =
        former.iter().map(|stage| init::state(&stage.program, &shared.state).unwrap()).collect();
    let (whole, origins) = merged(&former).unwrap();
    assert_eq!((whole.layers(), whole.shares()), (4, 2));
    for (again, expected) in whole.cut(&[0..1, 1..2, 2..3, 3..4]).unwrap().iter().zip(&former) {
        assert_same(again, expected, (&former, &origins));
    }
    let mut after = Vec::new();
    for cut in [vec![0..1, 1..2, 2..3, 3..4], vec![0..2, 2..4], vec![0..1, 1..4], vec![0..4]] {
        let cuts = whole.cut(&cut).unwrap();
        let prepared: Vec<_> = cuts.iter().map(|cut| taken(cut, (&former, &begun), &origins)).collect();
        let stages: Vec<Stage<'_>> = prepared
            .iter()
            .zip(&cuts)
            .map(|((program, constants, state), cut)| Stage { program, info: &cut.info, constants, state })
            .collect();
        let mut pipeline = LocalPipeline::new(&stages, job_key(4), || Reference).unwrap();
        for step in 0..2 {
            pipeline.step(step, Schedule::OneByOne).unwrap();
        }
        let numbers = cuts.iter().flat_map(|cut| &cut.layout.state).map(|at| at.number);
        let mut state: Vec<(u32, Tensor)> = numbers.zip(pipeline.state().unwrap().concat()).collect();
        state.sort_by_key(|(number, _)| *number);
        after.push(state);
    }
    assert!(after.windows(2).all(|pair| pair[0] == pair[1]), "the cut changed the state");
}

/// A stage's program, constants and state, out of those of the former stages.
fn taken(
    cut: &Cut,
    (former, states): (&[CompiledStage], &[Vec<Tensor>]),
    origins: &Origins,
) -> (CheckedProgram, Vec<Tensor>, Vec<Tensor>) {
    let constant = |number: &u32| {
        let origin = origins.constants[*number as usize];
        former[origin.stage].constants[origin.index].clone()
    };
    let state = cut.layout.state.iter().map(|at| {
        let origin = origins.state[at.number as usize];
        states[origin.stage][origin.index].clone()
    });
    let constants = cut.constants.iter().map(constant).collect();
    (CheckedProgram::new(cut.program.clone()).unwrap(), constants, state.collect())
}

#[test]
fn what_is_not_one_step_is_not_put_together() {
    let prepared = Prepared::new(&model("linear 9, relu, linear 7", 8, 12, 2), &digits(), 3);
    let (network, exponents, data) = (&prepared.network, &prepared.exponents, &prepared.dataset.training);
    let stages = compile(network, exponents, data, &[0..1, 1..2, 2..3], commit).unwrap();
    let apart = |change: &dyn Fn(&mut Vec<CompiledStage>), why: &str| {
        let mut stages = stages.clone();
        change(&mut stages);
        let error = merged(&stages).unwrap_err().to_string();
        assert!(error.contains(why), "{why}: {error}");
    };
    apart(&|stages| stages.clear(), "there is none");
    apart(&|stages| drop(stages.remove(2)), "reads what no stage has");
    apart(&|stages| drop(stages.remove(0)), "reads what no stage has");
    apart(&|stages| stages[0].layout.operators.truncate(3), "fewer operators");
    apart(&|stages| stages[1].layout.state.clear(), "reads what no stage has");
    apart(&|stages| stages[1].layout.operators[0].number = 0, "missing, or there twice");
    apart(&|stages| stages[1].layout.state[0].number = u32::MAX, "missing, or there twice");
    apart(&|stages| stages[1].layout.operators[0].layer = 3, "in no layer");
    apart(&|stages| stages[1].layout.state[0].layer = u32::MAX, "in no layer");
    let (whole, _) = merged(&stages).unwrap();
    for wrong in [vec![], vec![0..2], vec![0..4], vec![0..1, 1..1, 1..3], vec![1..3]] {
        assert!(matches!(whole.cut(&wrong), Err(CutError::Stages { layers: 3, .. })), "{wrong:?}");
    }
}
