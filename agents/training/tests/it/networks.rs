//! Properties of random networks and random cuts.

use proptest::prelude::*;
use tensorlink_model::partition::{PartitionError, partition};
use tensorlink_num::Tensor;
use tensorlink_program::CheckedProgram;
use tensorlink_training::step::StepGraph;
use tensorlink_training::whole::CutError;
use tensorlink_training::{CompileError, Exponents, Margins, Schedule, Table, TrainingSet, compile};
use tensorlink_types::{Segment, TensorRoot, TensorType};

use crate::support::{Job, Prepared, model, scheduled};

fn table() -> Table {
    let row = |i: i32| format!("{},{},{},{}\n", i % 7, i * i % 11, i % 2, ["a", "b", "c"][i as usize % 3]);
    Table::parse((0..60).map(row).collect::<String>().as_bytes()).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Every compiled program passes the checker, and neither cut nor micro-batches nor schedule change a bit.
    #[test]
    fn cuts_do_not_change_results(
        layers in proptest::collection::vec((1u32..9, 0usize..3), 0..4),
        wide in any::<bool>(),
        micro_batches in prop::sample::select(vec![1u32, 2, 3, 6]),
        cuts in any::<u8>(),
        warmup in prop::option::of(0u32..4),
    ) {
        let text: Vec<_> = layers.iter().map(|(out, activation)| {
            format!("linear {out}{}", ["", ", relu", ", gelu"][*activation])
        }).collect();
        let bits = if wide { 16 } else { 8 };
        let count = layers.len() + 1;
        let run = |micro_batches, cut: &[std::ops::Range<usize>], schedule| {
            let model = scheduled(&text.join(","), bits, (12, micro_batches), warmup);
            let prepared = Prepared::new(&model, &table(), 4);
            let mut job = prepared.compile(cut);
            job.train(3, schedule);
            job.state()
        };
        // Bit i of `cuts` cuts after layer i.
        let ends: Vec<_> = (1..=count).filter(|end| *end == count || cuts >> end & 1 == 1).collect();
        let starts = [0].into_iter().chain(ends.iter().copied());
        let cut: Vec<_> = starts.zip(&ends).map(|(start, end)| start..*end).collect();
        let whole = run(1, &[0..count], Schedule::AllForward);
        prop_assert_eq!(whole, run(micro_batches, &cut, Schedule::OneByOne));
    }

    /// No cut fills the fullest worker less than the one chosen.
    #[test]
    fn partition_is_optimal(
        layers in proptest::collection::vec(1u64..40, 1..7),
        workers in proptest::collection::vec(1u64..90, 1..4),
    ) {
        // Bit i of a mask cuts after layer i.
        let cut = |mask: u32| {
            let ends: Vec<_> = (1..=layers.len()).filter(|e| *e == layers.len() || mask >> e & 1 == 1).collect();
            let starts = [0].into_iter().chain(ends.iter().copied());
            starts.zip(ends.clone()).map(|(start, end)| start..end).collect::<Vec<_>>()
        };
        let fill = |ranges: &[std::ops::Range<usize>]| {
            let loads = ranges.iter().zip(&workers).map(|(range, w)| (layers[range.clone()].iter().sum::<u64>(), *w));
            loads.map(|(bytes, memory)| bytes as f64 / memory as f64).fold(0.0, f64::max)
        };
        let cuts = (0..1u32 << layers.len()).filter(|mask| mask & 1 == 0).map(cut).filter(|c| c.len() == workers.len());
        let best = cuts.map(|ranges| fill(&ranges)).filter(|fill| *fill <= 1.0).reduce(f64::min);
        match partition(&layers, &workers) {
            Ok(ranges) => prop_assert_eq!(Some(fill(&ranges)), best),
            Err(PartitionError::TooManyStages { .. }) => prop_assert!(workers.len() > layers.len()),
            Err(_) => prop_assert_eq!(best, None),
        }
    }
}

/// Of a schedule each step takes its own rate: by what a step changes, against the same step at the largest rate.
#[test]
fn a_step_takes_the_rate_of_the_schedule() {
    let floats = |job: &Job| -> Vec<f64> {
        let state = job.state();
        // Weights and biases, before the velocities of their layer.
        state.chunks(4).flat_map(|layer| layer.iter().take(2)).flat_map(Tensor::to_f64).collect()
    };
    let change = |warmup: Option<u32>| {
        let prepared = Prepared::new(&scheduled("linear 8, relu", 16, (12, 1), warmup), &table(), 4);
        let mut job = prepared.compile(&[0..2]);
        let before = floats(&job);
        job.train(1, Schedule::OneByOne);
        floats(&job).iter().zip(before).map(|(after, before)| after - before).collect::<Vec<f64>>()
    };
    let whole = change(None);
    assert!(whole.iter().any(|change| change.abs() > 1e-4));
    for (warmup, share) in [(0, 1.0), (1, 1.0), (2, 0.5), (4, 0.25)] {
        for (part, whole) in change(Some(warmup)).iter().zip(&whole) {
            assert!((part - share * whole).abs() < 1e-6, "a warm-up of {warmup}: {part}, {whole}");
        }
    }
}

#[test]
fn estimate_covers_what_a_stage_holds() {
    let prepared = Prepared::new(&model("linear 40, relu, linear 30, gelu", 16, 12, 2), &table(), 4);
    let estimate: u64 = prepared.network.layer_bytes().iter().sum();
    let job = prepared.compile(&[0..3]);
    let (program, _, constants, _) = &job.stages[0];
    let constants: u64 = constants.iter().map(|tensor| tensor.ty().byte_len()).sum();
    let touched = tensorlink_program::check::memory(program) - constants;
    assert!(estimate * 2 > touched && estimate < touched * 3, "{estimate} bytes estimated, {touched} touched");
}

/// Every reduction at its limit: the checker proves that no accumulator can overflow.
#[test]
fn largest_layers_compile() {
    for bits in [8, 16] {
        let network = model("linear 4096, relu, linear 4096, gelu", bits, 4096, 1).network(4096, 4096).unwrap();
        let graph = StepGraph::training(&network, 3);
        let largest = graph.nodes().map(|(_, node)| (node.site.clone(), 1.0)).collect();
        let exponents = Exponents { margins: Margins::for_operands(bits), largest };
        let zeros = |bits, exponent, dims: &[u32]| Tensor::zeros(TensorType::new(bits, exponent, dims).unwrap());
        let training = TrainingSet { features: zeros(bits, 5, &[3, 4096]), labels: zeros(16, 0, &[3]) };
        let stages = compile(&network, &exponents, &training, &[0..1, 1..2, 2..3], |_| TensorRoot::default()).unwrap();
        for stage in stages {
            CheckedProgram::new(stage.program).unwrap();
        }
    }
}

#[test]
fn programs_are_segmented_for_the_scheduler() {
    let prepared = Prepared::new(&model("linear 4, relu", 8, 12, 2), &table(), 4);
    let job = prepared.compile(&[0..1, 1..2]);
    for (program, ..) in &job.stages {
        let kinds: Vec<_> = program
            .segments
            .iter()
            .map(|segment| match segment {
                Segment::Prepare { .. } => "prepare".to_owned(),
                Segment::Forward { micro_batch, .. } => format!("forward {micro_batch}"),
                Segment::Backward { micro_batch, .. } => format!("backward {micro_batch}"),
                Segment::Update { .. } => "update".to_owned(),
            })
            .collect();
        assert_eq!(kinds, ["prepare", "forward 0", "forward 1", "backward 0", "backward 1", "update"]);
    }
    let first = &job.stages[0].0;
    assert!(first.names.contains(&"fc1.matmul[mb 1]".to_owned()), "{:?}", first.names);
    let state: Vec<_> = first.state.iter().map(|slot| slot.name.as_str()).collect();
    assert_eq!(state, ["fc1.weight", "fc1.bias", "fc1.weight.velocity", "fc1.bias.velocity"]);
}

#[test]
fn refuses_what_cannot_be_compiled() {
    let prepared = Prepared::new(&model("linear 4, relu", 8, 12, 2), &table(), 4);
    let commit = |_: &Tensor| TensorRoot::default();
    let good = &prepared.dataset.training;
    let with = |stages: &[std::ops::Range<usize>], training: &TrainingSet| {
        compile(&prepared.network, &prepared.exponents, training, stages, commit).map(drop)
    };
    with(&[0..2], good).unwrap();
    for stages in [vec![], vec![0..1], vec![0..1, 1..3], vec![1..2, 0..1], vec![0..1, 1..1, 1..2], vec![0..2, 0..2]] {
        assert!(matches!(with(&stages, good), Err(CompileError::Cut(CutError::Stages { .. }))), "{stages:?}");
    }
    let rows = good.labels.ty().dims()[0];
    let zeros = |bits, exponent, dims: &[u32]| Tensor::zeros(TensorType::new(bits, exponent, dims).unwrap());
    let bad_features = TrainingSet { features: zeros(8, 4, &[rows, 2]), ..good.clone() };
    assert!(matches!(with(&[0..2], &bad_features), Err(CompileError::Data { what: "features", .. })));
    let wide = TrainingSet { features: zeros(16, 4, &[rows, 3]), ..good.clone() };
    assert!(matches!(with(&[0..2], &wide), Err(CompileError::Data { what: "features", .. })));
    let labels = TrainingSet { labels: zeros(16, 0, &[rows + 1]), ..good.clone() };
    assert!(matches!(with(&[0..2], &labels), Err(CompileError::Data { what: "labels", .. })));
    let high = Tensor::from_wide(good.labels.ty().clone(), &vec![3; rows as usize]).unwrap();
    let high = TrainingSet { labels: high, ..good.clone() };
    assert!(matches!(with(&[0..2], &high), Err(CompileError::Data { what: "labels", .. })));
    let mut exponents = prepared.exponents.clone();
    exponents.largest.remove("fc2.matmul");
    let lacking = compile(&prepared.network, &exponents, good, &[0..2], commit);
    assert!(matches!(lacking, Err(CompileError::Uncalibrated { site }) if site == "fc2.matmul"));
    let mut network = prepared.network.clone();
    network.optimizer.learning_rate = 1e-12;
    let lost = compile(&network, &prepared.exponents, good, &[0..2], commit);
    assert!(matches!(lost, Err(CompileError::Factor { node }) if node.contains("weight.next")));
}
