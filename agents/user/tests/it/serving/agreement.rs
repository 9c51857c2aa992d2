//! Texts that several lanes of each stage compute: nothing is used on which they differ, whoever computes wrongly is
//! told apart by computing it again, and gets no more texts.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use tensorlink_model::{StageRunner, tokens};
use tensorlink_program::Reference;
use tensorlink_proof::commit::{Crossed, receipt, tensor_root};
use tensorlink_types::Address;
use tensorlink_user::serving::{
    Agreement, Judge, LaneFault, OpenError, Pipeline, Pipelines, TextError, TextReceipts, Verdict,
};

use crate::serving::worker::{Inner, Manner, Wrong};
use crate::serving::world::{STAGES, TEXT, World, compute};
use crate::support::clock::Set;
use crate::support::serving::decoder_plans;
use crate::support::{Hasty, JOB, identity};

/// Computes every beginning of [`TEXT`] itself.
struct Knowing {
    /// What the tensors before, between and behind the stages are, by tokens.
    crossed: Vec<[tensorlink_types::TensorRoot; 1 + STAGES as usize]>,
    asked: Mutex<Vec<(Address, Verdict)>>,
}

impl Knowing {
    fn of(world: &World) -> Arc<Self> {
        let crossed = (1..=TEXT.len()).map(|count| {
            let mut given = vec![tokens(&TEXT[..count]).unwrap()];
            for (plan, constants) in &world.stages {
                let runner = StageRunner::new(Reference, plan.clone(), constants).unwrap();
                given.push(runner.run(given.last().unwrap()).unwrap());
            }
            [0, 1, 2].map(|boundary: usize| tensor_root(&given[boundary]))
        });
        Arc::new(Self { crossed: crossed.collect(), asked: Mutex::default() })
    }

    fn asked(&self) -> Vec<(Address, Verdict)> {
        self.asked.lock().unwrap().clone()
    }
}

#[async_trait]
impl Judge for Knowing {
    async fn judge(&self, signed: &TextReceipts) -> Verdict {
        let [signed] = signed.stages.as_slice() else { panic!("of one lane: {signed:?}") };
        let (lane, stage) = (signed.claim.lane(), usize::from(signed.stage));
        let is_right = self.crossed.iter().any(|crossed| {
            let crossed = Crossed { from_previous: crossed[stage], from_next: None, to_next: crossed[stage + 1] };
            receipt(lane, signed.claim.interval, &crossed).0 == signed.claim
        });
        let verdict = if is_right { Verdict::Right } else { Verdict::Wrong };
        self.asked.lock().unwrap().push((signed.worker, verdict));
        verdict
    }
}

/// Who knows nothing of any text.
struct Clueless;

#[async_trait]
impl Judge for Clueless {
    async fn judge(&self, _: &TextReceipts) -> Verdict {
        Verdict::Unknown
    }
}

async fn open(world: &World, lanes: u16, judge: Arc<dyn Judge>) -> Pipeline {
    let user = (0x55, world.folder.path(), &world.view);
    world.open_for(Agreement::of(lanes, judge), Arc::new(Hasty), user).await.unwrap()
}

fn worker(key: u8) -> Address {
    identity(key).address()
}

/// Who failed the text in which stage, and of them who computes wrongly.
fn failed(error: TextError) -> (u16, Vec<Address>, Vec<Address>) {
    let TextError::Stage { stage, faults } = error else { panic!("{error}") };
    let wrong = faults.iter().filter(|(_, fault)| matches!(fault, LaneFault::Wrong)).map(|(worker, _)| *worker);
    (stage, faults.iter().map(|(worker, _)| *worker).collect(), wrong.collect())
}

#[tokio::test]
async fn a_text_on_which_all_agree_is_signed_for_by_all_and_paid_to_all() {
    let world = World::encoder(3).await;
    let judge = Knowing::of(&world);
    let pipeline = open(&world, 2, judge.clone()).await;
    for text in 0..3 {
        let (output, receipts) = pipeline.compute(pipeline.reserve(1).unwrap().start, &TEXT).await.unwrap();
        assert_eq!(output, world.due(&TEXT));
        let lanes: Vec<_> = receipts.stages.iter().map(|signed| (signed.stage, signed.claim.replica)).collect();
        let [one, other] = [text % 3, (text + 1) % 3];
        assert_eq!(lanes, [(0, one), (0, other), (1, one), (1, other)], "texts take turns");
    }
    pipeline.close().await;
    assert_eq!(world.paid(), [8; 6]);
    assert_eq!(judge.asked(), []);
}

#[tokio::test]
async fn whoever_computes_wrongly_is_told_apart_and_gets_no_more_texts() {
    for manner in [Manner::Lies, Manner::Denies] {
        for liar in 0..4_u8 {
            let world = World::new(decoder_plans(), 2).await;
            let pipeline = open(&world, 2, Knowing::of(&world)).await;
            let mut text = pipeline.begin(0).await.unwrap();
            text.advance(&TEXT[..1], None, false).await.unwrap();
            // Once a text is begun; it lies about the whole of it from now on.
            world.workers[usize::from(liar)].set(manner);
            let mut text = pipeline.begin(1).await.unwrap();
            let error = text.advance(&TEXT[..3], None, false).await.unwrap_err();
            let by = worker(liar + 1);
            assert_eq!(failed(error), (u16::from(liar) % STAGES, vec![by], vec![by]), "{manner:?} {liar}");
            assert_eq!((pipeline.liars(), pipeline.alive()), (vec![by], false));
            assert_eq!(pipeline.lost(|_| false, (0, 30)), [by], "the other worker of its stage is not lost");
            let seen = world.workers[usize::from(liar)].with(|inner| inner.advances.len());
            let mut text = pipeline.begin(2).await.unwrap();
            let error = text.advance(&TEXT, None, true).await.unwrap_err();
            assert_eq!(failed(error), (u16::from(liar) % STAGES, vec![by], vec![by]), "one is not believed alone");
            assert_eq!(world.workers[usize::from(liar)].with(|inner| inner.advances.len()), seen);
            pipeline.close().await;
            assert_eq!(world.paid(), [0; 4]);
        }
    }
}

#[tokio::test]
async fn texts_go_on_without_the_liar_where_there_is_another() {
    for liar in 0..6_usize {
        let world = World::encoder(3).await;
        world.workers[liar].set(Manner::Lies);
        let judge = Knowing::of(&world);
        let pipeline = open(&world, 2, judge.clone()).await;
        let (mut right, mut failures) = (0, 0);
        for _ in 0..6 {
            match compute(&pipeline, &TEXT).await {
                Ok(output) => {
                    assert_eq!(output, world.due(&TEXT));
                    right += 1;
                }
                Err(error) => {
                    let by = worker(liar as u8 + 1);
                    assert_eq!(failed(error), ((liar % 2) as u16, vec![by], vec![by]));
                    failures += 1;
                }
            }
        }
        assert_eq!((right, failures, pipeline.alive()), (5, 1, true));
        assert!(
            judge.asked().iter().all(|(by, verdict)| (*verdict == Verdict::Wrong) == (*by == worker(liar as u8 + 1)))
        );
        pipeline.close().await;
        let paid = world.paid();
        assert_eq!((paid[liar], paid.iter().sum::<u32>()), (0, 5 * 4 * 4));
    }
}

/// Two of three give the same wrong thing.
#[tokio::test]
async fn no_majority_decides() {
    let world = World::encoder(3).await;
    for liar in [0, 2] {
        world.workers[liar].set(Manner::Lies);
    }
    let pipeline = open(&world, 3, Knowing::of(&world)).await;
    let (stage, by, wrong) = failed(compute(&pipeline, &TEXT).await.unwrap_err());
    assert_eq!((stage, by, wrong), (0, vec![worker(1), worker(3)], vec![worker(1), worker(3)]));
    pipeline.close().await;
    assert_eq!(world.paid(), [0; 6]);
}

#[tokio::test]
async fn where_nobody_can_tell_no_text_is_delivered_and_nobody_is_called_a_liar() {
    let world = World::encoder(2).await;
    world.workers[3].set(Manner::Lies);
    let pipeline = open(&world, 2, Arc::new(Clueless)).await;
    let (stage, by, wrong) = failed(compute(&pipeline, &TEXT).await.unwrap_err());
    assert_eq!((stage, by, wrong), (1, vec![worker(2), worker(4)], vec![]));
    assert!(pipeline.liars().is_empty());
    pipeline.close().await;
    assert_eq!(world.paid(), [0; 4]);
}

#[tokio::test]
async fn lanes_that_differ_again_and_again_are_lost_though_they_answer() {
    let world = World::encoder(2).await;
    world.workers[3].set(Manner::Lies);
    let clock = Arc::new(Set::default());
    let user = (0x55, world.folder.path(), &world.view);
    let pipeline = world.open_for(Agreement::of(2, Arc::new(Clueless)), clock.clone(), user).await.unwrap();
    let lost = || pipeline.lost(|_| false, (0, 30));
    for waited in [20, 20] {
        assert!(compute(&pipeline, &TEXT).await.is_err());
        assert!(lost().is_empty());
        clock.0.fetch_add(waited, Ordering::Relaxed);
    }
    assert!(compute(&pipeline, &TEXT).await.is_err());
    assert_eq!(lost(), [worker(2), worker(4)]);
    pipeline.close().await;
}

/// Without anybody who hires others: there is a third worker already.
#[tokio::test]
async fn a_text_is_begun_anew_among_the_others_of_its_job() {
    for mended in [false, true] {
        let world = World::encoder(3).await;
        world.workers[0].set(Manner::Lies);
        let pipelines = Pipelines::new(open(&world, 2, Knowing::of(&world)).await, []);
        pipelines.mend(mended);
        let number = (JOB, pipelines.newest().reserve(1).unwrap().start);
        let (output, receipts) = pipelines.compute(number, &TEXT).await.unwrap();
        assert_eq!(output, world.due(&TEXT));
        assert_eq!(pipelines.receipts(JOB, number.1).unwrap(), Some(receipts), "known by its first number");
        pipelines.newest().close().await;
        assert_eq!((world.paid()[0], world.paid().iter().sum::<u32>()), (0, 16));
    }
}

#[tokio::test]
async fn texts_at_once_that_meet_the_same_liar_all_find_the_others() {
    let world = World::encoder(3).await;
    world.workers[1].set(Manner::Lies);
    let pipelines = Arc::new(Pipelines::new(open(&world, 2, Knowing::of(&world)).await, []));
    let numbers = pipelines.newest().reserve(8).unwrap();
    let texts = numbers.map(|number| {
        let pipelines = pipelines.clone();
        tokio::spawn(async move { pipelines.compute((JOB, number), &TEXT).await.unwrap().0 })
    });
    for text in futures::future::join_all(texts).await {
        assert_eq!(text.unwrap(), world.due(&TEXT));
    }
    pipelines.newest().close().await;
    assert_eq!((world.paid()[1], world.paid().iter().sum::<u32>()), (0, 8 * 16));
}

/// The others have signed: they are not asked again, so a job that pays for just this text pays for it.
#[tokio::test]
async fn a_job_that_pays_for_one_text_pays_it_though_a_lane_does_not_sign() {
    let mut world = World::new(decoder_plans(), 3).await;
    world.view.intervals = 4;
    world.workers[0].set(Manner::Signs(Wrong::Absent));
    let pipeline = open(&world, 2, Knowing::of(&world)).await;
    let mut text = pipeline.begin(0).await.unwrap();
    let step = text.advance(&TEXT, None, true).await.unwrap();
    assert_eq!(step.output, world.due(&TEXT));
    assert_eq!(world.workers[2].with(|inner| inner.advances.clone()), [(0, 0, false), (0, 4, true)]);
    pipeline.close().await;
    assert_eq!(world.paid(), [0, 4, 4, 4, 4, 0]);
}

#[tokio::test]
async fn a_lane_that_fails_makes_room_for_one_that_is_not_seated_yet() {
    for manner in [Manner::Dead, Manner::Declines] {
        let world = World::new(decoder_plans(), 3).await;
        let pipeline = open(&world, 2, Knowing::of(&world)).await;
        let mut text = pipeline.begin(0).await.unwrap();
        text.advance(&TEXT[..2], None, false).await.unwrap();
        world.workers[0].set(manner);
        let step = text.advance(&TEXT[2..], None, true).await.unwrap();
        let replicas: Vec<_> = step.receipts.unwrap().stages.iter().map(|signed| signed.claim.replica).collect();
        assert_eq!(replicas, [2, 1, 0, 1], "{manner:?}");
        pipeline.close().await;
        assert_eq!(world.paid(), [0, 4, 4, 4, 4, 0]);
    }
}

#[tokio::test]
async fn one_that_is_left_of_two_is_not_believed_alone() {
    let world = World::new(decoder_plans(), 2).await;
    let pipeline = open(&world, 2, Knowing::of(&world)).await;
    let mut text = pipeline.begin(0).await.unwrap();
    text.advance(&TEXT[..2], None, false).await.unwrap();
    world.workers[2].set(Manner::Dead);
    let (stage, by, wrong) = failed(text.advance(&TEXT[2..3], None, false).await.unwrap_err());
    assert_eq!((stage, by, wrong), (0, vec![worker(3)], vec![]));
    assert!(!pipeline.alive());
    pipeline.close().await;
    assert_eq!(world.paid(), [0; 4]);
}

/// At the end of a text a lane may not sign: another computes all of it, and those that have signed do so again.
#[tokio::test]
async fn a_text_is_ended_by_another_lane_where_one_does_not_sign() {
    let world = World::new(decoder_plans(), 3).await;
    let pipeline = open(&world, 2, Knowing::of(&world)).await;
    let mut text = pipeline.begin(0).await.unwrap();
    text.advance(&TEXT, None, false).await.unwrap();
    world.workers[3].set(Manner::Dead);
    let receipts = text.finish().await.unwrap();
    let replicas: Vec<_> = receipts.stages.iter().map(|signed| signed.claim.replica).collect();
    assert_eq!(replicas, [0, 1, 0, 2]);
    pipeline.close().await;
    assert_eq!(world.paid(), [4, 4, 4, 0, 0, 4]);
}

#[tokio::test]
async fn no_more_lanes_are_to_agree_than_there_are() {
    let world = World::encoder(2).await;
    let agreement = Agreement::of(3, Arc::new(Clueless));
    let opened = world.open_for(agreement, Arc::new(Hasty), (0x55, world.folder.path(), &world.view)).await;
    assert!(matches!(opened, Err(OpenError::Replicas { replicas: 2, asked: 3, .. })));
}

/// How many texts [`of_many_texts_none_is_wrong`] asks for; 120 where nothing is said.
const MANY: &str = "TENSORLINK_AGREED_TEXTS";
/// Texts of a job.
const TEXTS: usize = 20;

/// Jobs of three lanes a stage, of which any one lies in any text from its first or later.
#[tokio::test]
async fn of_many_texts_none_is_wrong() {
    let texts = std::env::var(MANY).map_or(120, |texts| texts.parse().unwrap());
    let (mut right, mut refused) = (0, 0);
    for job in 0..texts / TEXTS {
        let (liar, first) = (job % 6, job * 7 % TEXTS);
        let world = World::encoder(3).await;
        let pipeline = open(&world, 3, Knowing::of(&world)).await;
        for text in 0..TEXTS {
            if text == first {
                world.workers[liar].set(Manner::Lies);
            }
            match compute(&pipeline, &TEXT).await {
                Ok(output) => {
                    assert_eq!(output, world.due(&TEXT));
                    right += 1;
                }
                Err(error) => {
                    assert_eq!(failed(error).2, [worker(liar as u8 + 1)], "no honest worker is called a liar");
                    refused += 1;
                }
            }
        }
        pipeline.close().await;
    }
    assert!(right > 0 && refused > 0);
}

/// No lane waits for the answer of another: a text takes as long as the slowest of each stage.
#[tokio::test]
async fn lanes_are_asked_side_by_side() {
    let world = World::encoder(3).await;
    world.workers.iter().for_each(|worker| worker.set(Manner::Lags));
    let pipeline = Arc::new(open(&world, 3, Knowing::of(&world)).await);
    let asking = Arc::clone(&pipeline);
    let text = tokio::spawn(async move { compute(&asking, &TEXT).await });
    for stage in 0..usize::from(STAGES) {
        let of_stage = || world.workers.iter().skip(stage).step_by(STAGES.into());
        while !of_stage().all(|worker| worker.with(|inner| inner.kept.is_some())) {
            tokio::task::yield_now().await;
        }
        of_stage().for_each(|worker| worker.with(Inner::release));
    }
    assert_eq!(text.await.unwrap().unwrap(), world.due(&TEXT));
    pipeline.close().await;
    assert_eq!(world.paid(), [4; 6]);
}
