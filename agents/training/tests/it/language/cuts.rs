//! However a training is cut into stages, or its sequences are shared, the state is the same.

use std::ops::Range;

use tensorlink_model::partition::PartitionError;
use tensorlink_num::Tensor;
use tensorlink_program::Reference;
use tensorlink_program::check::{only_exchanges, rounds};
use tensorlink_training::calibrate::{Calibration, job_key};
use tensorlink_training::{Dataset, LocalPipeline, Schedule, Stage, Training, evaluate};

use super::{GPT2, LLAMA, compile, few, king_james, stages};
use crate::recut::check_recut;

#[test]
fn state_does_not_depend_on_the_cut() {
    for shape in [LLAMA.to_owned(), format!(r#"{GPT2}, "tied": false"#)] {
        check_cuts(&shape);
    }
}

fn check_cuts(shape: &str) {
    let (_, training, data) = king_james(shape, 8);
    let calibration = training.calibrate(&data.training, 3, 2).unwrap();
    let mut states = Vec::new();
    for (cut, schedule) in [
        (vec![0..4], Schedule::AllForward),
        (vec![0..1, 1..3, 3..4], Schedule::OneByOne),
        (vec![0..2, 2..4], Schedule::AllForward),
    ] {
        states.push(after_three_steps((&training, &calibration), &data, &cut, schedule).concat());
    }
    assert!(states.windows(2).all(|pair| pair[0] == pair[1]), "{shape}: the cut changed the state");
}

/// States of the stages of a cut.
fn after_three_steps(
    (training, calibration): (&Training, &Calibration),
    data: &Dataset,
    cut: &[Range<usize>],
    schedule: Schedule,
) -> Vec<Vec<Tensor>> {
    let prepared = compile(training, calibration, data, cut);
    let mut pipeline = LocalPipeline::new(&stages(&prepared), job_key(4), || Reference).unwrap();
    for step in 0..3 {
        pipeline.step(step, schedule).unwrap();
    }
    pipeline.state().unwrap()
}

/// However a training is cut into two stages at a layer, or its sequences shared among two, the states are those of
/// one alone.
pub(crate) fn check_two_stages(training: Training, data: &Dataset, layer: usize) {
    let calibration = training.calibrate(&data.training, 3, 2).unwrap();
    check_recut(&training, &calibration, data);
    let run = |training: &Training, cut: &[Range<usize>]| {
        after_three_steps((training, &calibration), data, cut, Schedule::OneByOne)
    };
    let layers = training.layers.len();
    let alone = run(&training, &[0..layers]).concat();
    assert!(run(&training, &[0..layer, layer..layers]).concat() == alone, "the cut changed the state");
    let shared = training.shared(2).unwrap();
    for own in run(&shared, &[0..layers]) {
        assert!(own == alone, "the share changed the state");
    }
    for own in run(&shared, &[0..layer, layer..layers]).chunks(2) {
        assert!(own.concat() == alone, "the cut share changed the state");
    }
}

/// Stages that share the sequences end each step in the very state of one that has them all, and see the same losses;
/// each is the whole model.
#[test]
fn state_does_not_depend_on_who_has_which_sequences() {
    for shape in [LLAMA, GPT2] {
        let (_, training, data) = king_james(shape, 8);
        let calibration = training.calibrate(&data.training, 3, 2).unwrap();
        let alone = compile(&training, &calibration, &data, &[0..training.layers.len()]);
        let mut alone = LocalPipeline::new(&stages(&alone), job_key(4), || Reference).unwrap();
        let losses = [0, 1, 2].map(|step| alone.step(step, Schedule::OneByOne).unwrap());
        let state = alone.state().unwrap().remove(0);
        for count in [2, 3, 4] {
            let shared = training.clone().shared(count).unwrap();
            let cut = shared.cut(&vec![u64::MAX; count.into()]).unwrap();
            assert_eq!(cut, [0..training.layers.len()]);
            let mut prepared = compile(&shared, &calibration, &data, &cut);
            assert_eq!(prepared.len(), usize::from(count));
            assert!(prepared.iter().all(|(program, ..)| only_exchanges(program, &(0..program.micro_batches))));
            let mut pipeline = LocalPipeline::new(&stages(&prepared), job_key(4), || Reference).unwrap();
            for (step, loss) in (0..).zip(&losses) {
                let schedule = if step == 1 { Schedule::OneByOne } else { Schedule::AllForward };
                let seen = pipeline.step(step, schedule).unwrap();
                assert!((seen.loss() - loss.loss()).abs() < 1e-12 && seen.rows == loss.rows, "{seen:?} {loss:?}");
            }
            for (stage, own) in pipeline.state().unwrap().into_iter().enumerate() {
                assert!(own == state, "{shape}: stage {stage} of {count}");
                prepared[stage].3 = own;
            }
            let held_out = |stages: &[Stage<'_>]| evaluate(&Reference, stages, &few(&data.held_out)).unwrap();
            let (whole, last) = (held_out(&stages(&prepared)), held_out(&stages(&prepared[1..2])));
            assert_eq!((whole.loss(), whole.rows), (last.loss(), 5 * 32));
        }
        let refused = training.shared(5).unwrap_err().to_string();
        assert!(refused.contains("5 shares of 4 sequences"), "{refused}");
    }
}

/// Shares that are pipelines themselves, of as many sequences or not, end each step in the state of one worker alone.
/// Their sums are in a round of their own, after all sequences, and the norm of what they come to in another.
#[test]
fn state_does_not_depend_on_shares_that_are_cut() {
    let (_, training, data) = king_james(LLAMA, 8);
    let calibration = training.calibrate(&data.training, 3, 2).unwrap();
    let layers = training.layers.len();
    let alone = after_three_steps((&training, &calibration), &data, &[0..layers], Schedule::OneByOne).remove(0);
    for (shares, parts, schedule) in [
        (2, 2, Schedule::AllForward),
        (3, 2, Schedule::OneByOne),
        (2, 3, Schedule::AllForward),
        (4, 2, Schedule::OneByOne),
    ] {
        let shared = training.clone().shared(shares).unwrap();
        let cut = shared.cut(&vec![u64::MAX / 64; usize::from(shares) * parts]).unwrap();
        assert_eq!(cut.len(), parts);
        let mut prepared = compile(&shared, &calibration, &data, &cut);
        let sequences = 4_u32.div_ceil(shares.into());
        for (program, ..) in &prepared {
            let [compute, exchange, norm] = &rounds(program)[..] else { panic!("{:?}", rounds(program)) };
            assert_eq!((compute.clone(), exchange.start, norm.len()), (0..sequences, sequences, 1));
            assert!(only_exchanges(program, exchange) && !only_exchanges(program, compute));
        }
        let states = after_three_steps((&shared, &calibration), &data, &cut, schedule);
        for share in states.chunks(parts) {
            assert!(share.concat() == alone, "{shares} shares of {parts} stages");
        }
        for (stage, state) in prepared.iter_mut().zip(states) {
            stage.3 = state;
        }
        let held_out = |stages: &[Stage<'_>]| evaluate(&Reference, stages, &few(&data.held_out)).unwrap();
        let (all, first) = (held_out(&stages(&prepared)), held_out(&stages(&prepared[..parts])));
        assert_eq!((all.loss(), all.rows), (first.loss(), 5 * 32));
    }
    let uneven = training.shared(2).unwrap().cut(&[u64::MAX; 3]).unwrap_err();
    assert_eq!(uneven, PartitionError::Shares { stages: 3, shares: 2 });
}
