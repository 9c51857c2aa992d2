//! Texts that workers continue: the user's controls go to the last stage, and a text ends when its user says so.

use tensorlink_model::choice::{SamplingParams, controls, controls_of_last};
use tensorlink_model::{StageRunner, tokens};
use tensorlink_num::Tensor;
use tensorlink_program::Reference;
use tensorlink_proof::commit::tensor_root;
use tensorlink_proof::merkle::list_root;
use tensorlink_types::B256;
use tensorlink_user::serving::{LaneFault, Pipeline, Text, TextError};

use crate::serving::worker::{Manner, Wrong};
use crate::serving::world::{World, compute, fault};
use crate::support::serving::choosing_plans;

const PROMPT: [u32; 2] = [3, 1];
const WARM: SamplingParams =
    SamplingParams { temperature: 1.5, top_k: 0, top_p: 1.0, min_p: 0.0, repetition_penalty: 1.3, seed: 11 };
/// Steps of a continuation: its prompt, then two tokens more.
const STEPS: usize = 3;
/// Tokens that it computes.
const COMPUTED: u32 = 4;

async fn world(replicas: u16) -> World {
    World::new(choosing_plans(), replicas).await
}

/// Controls of the tokens from a position on, the last of which has a successor chosen.
fn steer(position: u32, tokens: &[u32]) -> Tensor {
    controls_of_last(position, tokens, WARM).unwrap()
}

fn last(chosen: &Tensor) -> u32 {
    u32::try_from(*chosen.mantissas().to_vec().last().unwrap()).unwrap()
}

/// Prompt and tokens as the model continues it, computed from nothing for each token.
fn due(world: &World) -> Vec<u32> {
    let [first, second] = [0, 1].map(|stage| {
        let (plan, constants) = &world.stages[stage];
        StageRunner::new(Reference, plan.clone(), constants).unwrap()
    });
    let mut ids = PROMPT.to_vec();
    for _ in 0..STEPS {
        let hidden = first.run(&tokens(&ids).unwrap()).unwrap();
        ids.push(last(&second.choose(&hidden, &steer(0, &ids)).unwrap()));
    }
    ids
}

/// Continues a text by one token.
async fn step(text: &mut Text, ids: &mut Vec<u32>) -> Result<(), TextError> {
    let position = text.tokens();
    let fresh = &ids[position as usize..];
    let given = text.advance(fresh, Some(&steer(position, fresh)), false).await?;
    assert!(given.receipts.is_none());
    ids.push(last(&given.output));
    Ok(())
}

/// A text of which a token was chosen.
async fn begun(pipeline: &Pipeline) -> (Text, Vec<u32>) {
    let mut text = pipeline.begin(pipeline.reserve(1).unwrap().start).await.unwrap();
    let mut ids = PROMPT.to_vec();
    step(&mut text, &mut ids).await.unwrap();
    (text, ids)
}

/// A text as long as [`due`].
async fn continued(pipeline: &Pipeline) -> (Text, Vec<u32>) {
    let (mut text, mut ids) = begun(pipeline).await;
    for _ in 1..STEPS {
        step(&mut text, &mut ids).await.unwrap();
    }
    (text, ids)
}

#[tokio::test]
async fn a_text_ends_without_more_tokens_and_its_receipts_name_the_controls() {
    let world = world(1).await;
    let pipeline = world.open().await;
    let (mut text, ids) = continued(&pipeline).await;
    assert_eq!(ids, due(&world));
    let receipts = text.finish().await.unwrap();
    assert_eq!((receipts.tokens, receipts.stages.len(), text.tokens()), (COMPUTED, 2, 0));
    assert_eq!(pipeline.receipts(0).unwrap().as_ref(), Some(&receipts));
    let rows: Vec<_> = (0..).zip(&ids[..4]).map(|(i, id)| (*id, (i > 0).then_some(WARM))).collect();
    let whole = controls(0, &rows).unwrap();
    assert_eq!(receipts.stages[0].logs.fromNext, B256::ZERO);
    assert_eq!(receipts.stages[1].logs.fromNext, list_root([tensor_root(&whole)]));
    let chosen = [vec![0], ids[2..].to_vec()].concat();
    assert_eq!(receipts.stages[1].logs.toNext, list_root([tensor_root(&tokens(&chosen).unwrap())]));
    assert_eq!(receipts.stages[0].logs.toNext, receipts.stages[1].logs.fromPrevious);
    for worker in &world.workers {
        assert_eq!(
            worker.with(|inner| inner.advances.clone()),
            [(0, 0, false), (0, 2, false), (0, 3, false), (0, 4, true)]
        );
    }
    assert!(matches!(text.finish().await, Err(TextError::Over)));
    pipeline.close().await;
    assert_eq!(world.paid(), [COMPUTED; 2]);
}

#[tokio::test]
async fn a_text_may_also_end_with_its_last_tokens() {
    let world = world(1).await;
    let pipeline = world.open().await;
    let (mut text, ids) = begun(&pipeline).await;
    let given = text.advance(&ids[2..], Some(&steer(2, &ids[2..])), true).await.unwrap();
    assert_eq!((last(&given.output), given.receipts.unwrap().tokens), (due(&world)[3], 3));
    pipeline.close().await;
    assert_eq!(world.paid(), [3, 3]);
}

#[tokio::test]
async fn workers_that_forget_get_rows_and_controls_again_and_choose_the_same() {
    let world = world(1).await;
    let pipeline = world.open().await;
    let (mut text, mut ids) = begun(&pipeline).await;
    for (forgetful, other) in [(1, 0), (0, 1)] {
        world.workers[forgetful].set(Manner::Forgets);
        world.workers[other].set(Manner::Honest);
        step(&mut text, &mut ids).await.unwrap();
    }
    assert_eq!(ids, due(&world));
    world.workers.iter().for_each(|worker| worker.set(Manner::Forgets));
    assert_eq!(text.finish().await.unwrap().tokens, COMPUTED);
    for worker in &world.workers {
        let ends = worker.with(|inner| inner.advances.split_off(inner.advances.len() - 2));
        assert_eq!(ends, [(0, 4, true), (0, 0, true)]);
    }
    pipeline.close().await;
    assert_eq!(world.paid(), [COMPUTED; 2]);
}

#[tokio::test]
async fn lost_answers_to_the_end_are_asked_for_again_and_paid_once() {
    let world = world(1).await;
    let pipeline = world.open().await;
    let (mut text, _) = continued(&pipeline).await;
    world.workers[0].set(Manner::Loses(2));
    text.finish().await.unwrap();
    pipeline.close().await;
    assert_eq!(world.paid(), [COMPUTED; 2]);
}

#[tokio::test]
async fn a_replica_goes_on_with_the_same_tokens() {
    for dead in 0..2 {
        let world = world(2).await;
        let pipeline = world.open().await;
        let (mut text, mut ids) = begun(&pipeline).await;
        world.workers[dead].set(Manner::Dead);
        while ids.len() < PROMPT.len() + STEPS {
            step(&mut text, &mut ids).await.unwrap();
        }
        assert_eq!(ids, due(&world));
        text.finish().await.unwrap();
        assert_eq!(world.workers[dead + 2].with(|inner| inner.advances[0]), (0, 0, false), "from the beginning");
        pipeline.close().await;
        let mut paid = [COMPUTED, COMPUTED, 0, 0];
        paid.swap(dead, dead + 2);
        assert_eq!(world.paid(), paid);
    }
}

#[tokio::test]
async fn a_replica_may_end_what_another_computed() {
    let world = world(2).await;
    let pipeline = world.open().await;
    let (mut text, _) = continued(&pipeline).await;
    world.workers[1].set(Manner::Dead);
    assert_eq!(text.finish().await.unwrap().tokens, COMPUTED);
    pipeline.close().await;
    assert_eq!(world.paid(), [COMPUTED, 0, 0, COMPUTED]);
}

#[tokio::test]
async fn without_a_replica_a_dead_worker_ends_the_text_and_nobody_is_paid() {
    for (dead, at_end) in [(0, false), (1, false), (0, true), (1, true)] {
        let world = world(1).await;
        let pipeline = world.open().await;
        let (mut text, mut ids) = begun(&pipeline).await;
        world.workers[dead].set(Manner::Dead);
        let error =
            if at_end { text.finish().await.unwrap_err() } else { step(&mut text, &mut ids).await.unwrap_err() };
        let (stage, fault) = fault(error);
        assert!(usize::from(stage) == dead && matches!(fault, LaneFault::Net(_)), "{fault}");
        assert!(matches!(text.finish().await, Err(TextError::Over)));
        pipeline.close().await;
        assert_eq!((pipeline.receipts(0).unwrap(), world.paid()), (None, vec![0, 0]));
        assert_eq!(world.workers[1 - dead].with(|inner| inner.abandoned.clone()), [0]);
    }
}

#[tokio::test]
async fn a_replica_that_chooses_otherwise_is_not_believed() {
    let world = world(2).await;
    world.workers[3].set(Manner::Lies);
    let pipeline = world.open().await;
    let (mut text, mut ids) = begun(&pipeline).await;
    world.workers[1].set(Manner::Dead);
    let (stage, fault) = fault(step(&mut text, &mut ids).await.unwrap_err());
    assert!(stage == 1 && matches!(fault, LaneFault::Changed), "{fault}");
    pipeline.close().await;
    assert_eq!(world.paid(), [0; 4]);
}

#[tokio::test]
async fn what_is_no_token_is_refused() {
    let world = world(1).await;
    world.workers[1].set(Manner::Babbles);
    let pipeline = world.open().await;
    let mut text = pipeline.begin(0).await.unwrap();
    let (stage, fault) = fault(step(&mut text, &mut PROMPT.to_vec()).await.unwrap_err());
    assert!(stage == 1 && matches!(fault, LaneFault::Token(20)), "{fault}");
    pipeline.close().await;
    assert_eq!(world.paid(), [0; 2]);
}

#[tokio::test]
async fn a_wrong_receipt_at_the_end_is_not_paid() {
    for wrong in [Wrong::Controls, Wrong::Logs, Wrong::Absent, Wrong::Tokens, Wrong::Signer] {
        let world = world(1).await;
        let pipeline = world.open().await;
        let (mut text, _) = continued(&pipeline).await;
        world.workers[1].set(Manner::Signs(wrong));
        let (stage, fault) = fault(text.finish().await.unwrap_err());
        assert!(stage == 1 && matches!(fault, LaneFault::Receipt(_)), "{wrong:?}: {fault}");
        pipeline.close().await;
        assert_eq!(world.paid(), [0; 2], "{wrong:?}");
    }
}

#[tokio::test]
async fn controls_come_with_every_token_of_a_decoder_and_with_no_other() {
    let world = world(1).await;
    let pipeline = world.open().await;
    let mut text = pipeline.begin(0).await.unwrap();
    assert!(matches!(text.finish().await, Err(TextError::Unended)), "of nothing");
    for wrong in [None, Some(steer(0, &[3])), Some(steer(0, &[3, 1, 1])), Some(tokens(&PROMPT).unwrap())] {
        assert!(matches!(text.advance(&PROMPT, wrong.as_ref(), false).await, Err(TextError::Controls)));
    }
    assert!(matches!(compute(&pipeline, &PROMPT).await, Err(TextError::Controls)));
    let mut ids = PROMPT.to_vec();
    step(&mut text, &mut ids).await.unwrap();
    assert_eq!(ids, due(&world)[..3], "what was refused changed nothing");

    let encoder = World::encoder(1).await;
    let pipeline = encoder.open().await;
    let mut text = pipeline.begin(0).await.unwrap();
    assert!(matches!(text.advance(&PROMPT, Some(&steer(0, &PROMPT)), true).await, Err(TextError::Controls)));
    assert!(matches!(text.finish().await, Err(TextError::Unended)));
}

#[tokio::test]
async fn when_the_job_pays_for_no_more_tokens_those_before_are_paid() {
    let mut world = world(1).await;
    world.view.intervals = COMPUTED - 1;
    let pipeline = world.open().await;
    let (mut text, mut ids) = begun(&pipeline).await;
    step(&mut text, &mut ids).await.unwrap();
    assert!(matches!(step(&mut text, &mut ids).await, Err(TextError::Spent(_))));
    assert_eq!(text.finish().await.unwrap().tokens, COMPUTED - 1);
    pipeline.close().await;
    assert_eq!(world.paid(), [COMPUTED - 1; 2]);
}

#[tokio::test]
async fn an_end_goes_on_without_who_asked_for_it() {
    let world = world(1).await;
    let pipeline = world.open().await;
    let (mut text, _) = continued(&pipeline).await;
    let mut ending = Box::pin(text.finish());
    assert!(futures::poll!(&mut ending).is_pending());
    drop(ending);
    drop(text);
    while pipeline.receipts(0).unwrap().is_none() {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    pipeline.close().await;
    assert_eq!(world.paid(), [COMPUTED; 2]);
}
