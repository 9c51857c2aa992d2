//! A lane's thread gives the bits of the whole text, however it comes, and outlives whatever it is sent.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tensorlink_model::{StageRunner, tokens};
use tensorlink_node::footprint::MAX_TEXTS;
use tensorlink_node::ports::SystemClock;
use tensorlink_node::serving::{Gives, ServingShard};
use tensorlink_num::Tensor;
use tensorlink_program::Reference;
use tensorlink_worker::serving::runner::{Runner, RunnerError, Turn, Whole};
use tensorlink_worker::serving::texts::{Step, Text};
use tensorlink_worker::serving::thread::{Done, LaneThread, StartError};

use crate::support::lane;
use crate::support::serving::{LONGEST, decoder_plans, serving_shards};

const TEXT: [u32; 5] = [3, 7, 19, 0, 4];

fn decoder() -> Vec<Arc<ServingShard>> {
    let shard = |(plan, constants): (_, Vec<Tensor>)| ServingShard::new(plan, constants.into(), LONGEST).unwrap();
    decoder_plans().into_iter().map(|stage| Arc::new(shard(stage))).collect()
}

async fn start(shard: &Arc<ServingShard>) -> LaneThread {
    let make = |shard| Whole::new(Reference, shard).map_err(|e| e.to_string());
    LaneThread::start(lane(0), shard.clone(), Arc::new(SystemClock), make).await.unwrap()
}

fn whole(shard: &ServingShard, input: &Tensor) -> Tensor {
    StageRunner::new(Reference, (*shard.plan).clone(), &shard.constants).unwrap().run(input).unwrap()
}

fn step(shard: &ServingShard, input: &Tensor, range: std::ops::Range<u32>, last: bool) -> Step {
    let row = shard.received(1).unwrap().byte_len() as usize;
    let rows = input.to_bytes()[range.start as usize * row..range.end as usize * row].to_vec();
    let (position, tokens) = (range.start, range.end - range.start);
    Step { text: 1, position, rows, controls: vec![], tokens, last }
}

/// Every way to cut five tokens into steps.
fn cuts() -> impl Iterator<Item = Vec<std::ops::Range<u32>>> {
    (0..16u32).map(|cut| {
        let ends: Vec<u32> = (1..5).filter(|end| cut >> (end - 1) & 1 == 1).chain([5]).collect();
        let starts = [0].into_iter().chain(ends.clone());
        starts.zip(ends).map(|(start, end)| start..end).collect()
    })
}

#[tokio::test]
async fn every_chunking_gives_the_same_bits() {
    for stages in [decoder(), serving_shards()] {
        let mut input = tokens(&TEXT).unwrap();
        for shard in &stages {
            let expected = whole(shard, &input).to_bytes();
            let thread = start(shard).await;
            for cut in cuts() {
                let mut output = Vec::new();
                let count = cut.len();
                for (number, range) in cut.into_iter().enumerate() {
                    let last = number + 1 == count;
                    let rows = match thread.advance(step(shard, &input, range, last)).await {
                        Done::Rows(rows) if !last => rows,
                        Done::Ended(rows, Text { received, given, tokens, .. }) if last => {
                            assert_eq!((received, given, tokens), (input.to_bytes(), expected.clone(), 5));
                            rows
                        }
                        other => panic!("{other:?}"),
                    };
                    assert!(last || (shard.gives() == Gives::Rows) != rows.is_empty());
                    output.extend(rows);
                }
                assert_eq!(output, expected);
            }
            input = whole(shard, &input);
        }
    }
}

#[tokio::test]
async fn a_text_is_cut_back_rewound_and_ended_without_tokens() {
    let shards = decoder();
    let (shard, input) = (&shards[0], tokens(&TEXT).unwrap());
    let thread = start(shard).await;
    assert_eq!(thread.advance(step(shard, &input, 2..3, false)).await, Done::Rewind(0));
    let Done::Rows(first) = thread.advance(step(shard, &input, 0..4, false)).await else { panic!() };
    // The answer was lost: the last two again.
    let Done::Rows(again) = thread.advance(step(shard, &input, 2..4, false)).await else { panic!() };
    assert_eq!(again, first[first.len() / 2..]);
    assert_eq!(thread.advance(step(shard, &input, 5..5, true)).await, Done::Rewind(4));
    let Done::Ended(none, text) = thread.advance(step(shard, &input, 4..4, true)).await else { panic!() };
    assert_eq!((none.len(), text.given, text.tokens), (0, first, 4));
    assert_eq!(thread.advance(step(shard, &input, 4..5, true)).await, Done::Rewind(0), "it has ended");
    thread.advance(step(shard, &input, 0..1, false)).await;
    thread.forget(1);
    assert_eq!(thread.advance(step(shard, &input, 1..2, false)).await, Done::Rewind(0), "it was abandoned");
}

#[tokio::test]
async fn bad_rows_and_too_many_texts_are_refused_and_the_lane_goes_on() {
    let shards = decoder();
    let (shard, input) = (&shards[1], tokens(&TEXT).unwrap());
    let thread = start(shard).await;
    let rows = whole(&shards[0], &input);
    let good = |text| Step { text, ..step(shard, &rows, 0..1, false) };
    for bad in [
        Step { rows: vec![0x80; 7], ..good(1) },
        Step { rows: vec![], tokens: 0, last: true, ..good(1) },
        Step { rows: vec![], tokens: 0, ..good(1) },
    ] {
        assert!(matches!(thread.advance(bad).await, Done::Refused(_)));
    }
    for text in 0..MAX_TEXTS as u32 {
        assert!(matches!(thread.advance(good(text)).await, Done::Rows(_)));
    }
    assert_eq!(thread.advance(good(1000)).await, Done::Busy);
    assert!(matches!(thread.advance(Step { last: true, ..good(0) }).await, Done::Ended(..)));
    assert!(matches!(thread.advance(good(1000)).await, Done::Rows(_)));
}

/// Fails at every second pass.
struct Flaky(Arc<AtomicU32>);

impl Runner for Flaky {
    fn run(&mut self, turns: &[Turn<'_>]) -> Vec<Result<Vec<u8>, RunnerError>> {
        let fails = self.0.fetch_add(1, Ordering::Relaxed) % 2 == 1;
        let error = || RunnerError::Run(tensorlink_model::runner::RunError::NoOutput);
        turns.iter().map(|turn| if fails { Err(error()) } else { Ok(vec![turn.tokens as u8]) }).collect()
    }

    fn forget(&mut self, _: u32) {}
}

#[tokio::test]
async fn what_could_not_be_computed_can_be_sent_again() {
    let shards = decoder();
    let (shard, input) = (&shards[0], tokens(&TEXT).unwrap());
    let clock = Arc::new(SystemClock);
    let passes = Arc::new(AtomicU32::new(0));
    let make = move |_| Ok(Flaky(passes));
    let thread = LaneThread::start(lane(0), shard.clone(), clock.clone(), make).await.unwrap();
    assert_eq!(thread.advance(step(shard, &input, 0..1, false)).await, Done::Rows(vec![1]));
    assert!(matches!(thread.advance(step(shard, &input, 1..2, false)).await, Done::Refused(_)));
    assert_eq!(thread.advance(step(shard, &input, 1..2, false)).await, Done::Rows(vec![2]));

    struct Broken;
    impl Runner for Broken {
        fn run(&mut self, _: &[Turn<'_>]) -> Vec<Result<Vec<u8>, RunnerError>> {
            panic!("a defect")
        }

        fn forget(&mut self, _: u32) {}
    }
    let thread = LaneThread::start(lane(0), shard.clone(), clock.clone(), |_| Ok(Broken)).await.unwrap();
    assert!(matches!(thread.advance(step(shard, &input, 0..1, false)).await, Done::Refused(_)));
    thread.ended().await;

    let none: fn(Arc<ServingShard>) -> Result<Flaky, String> = |_| Err("no device".into());
    let error = LaneThread::start(lane(0), shard.clone(), clock, none).await.unwrap_err();
    assert!(matches!(&error, StartError::Engine { reason, .. } if reason == "no device"), "{error}");
}
