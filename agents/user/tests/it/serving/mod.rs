//! Texts through a serving job's workers: what is right is paid, and nothing else is.

mod accounts;
mod agreement;
mod decoder;
mod job;
mod lost;
mod rates;
mod restart;
mod worker;
mod world;

use std::sync::Arc;

use tensorlink_node::ports::chain::{JobState, JobView};
use tensorlink_proof::commit::receipt_list;
use tensorlink_types::ClaimId;
use tensorlink_types::abi::JobKind;
use tensorlink_user::serving::{LaneFault, OpenError, TextError};
use worker::{Manner, Wrong};
use world::{TEXT, World, compute, fault};

use crate::support::serving::{LONGEST, decoder_plans, user};
use crate::support::{CONTRACTS, JOB};

#[tokio::test]
async fn a_text_is_computed_signed_for_and_paid() {
    let world = World::encoder(1).await;
    let pipeline = world.open().await;
    let number = pipeline.reserve(1).unwrap().start;
    let (output, receipts) = pipeline.compute(number, &TEXT).await.unwrap();
    assert_eq!(output, world.due(&TEXT));
    assert_eq!((receipts.job, receipts.text, receipts.tokens), (JOB, number, 4));
    assert_eq!(receipts.stages[0].logs.toNext, receipts.stages[1].logs.fromPrevious);
    assert_eq!(pipeline.receipts(number).unwrap(), Some(receipts.clone()));
    pipeline.close().await;
    for (stage, worker) in world.workers.iter().enumerate() {
        let voucher = worker.with(|inner| inner.vouchers.last().cloned()).unwrap();
        assert_eq!((voucher.epoch, voucher.tokens), (1, 4));
        assert_eq!(voucher.receipts, receipt_list(&[receipts.stages[stage].claim_id]).root());
    }
}

#[tokio::test]
async fn texts_at_once_are_all_paid_by_vouchers_in_the_workers_order() {
    let world = World::encoder(1).await;
    let pipeline = Arc::new(world.open().await);
    let numbers = pipeline.reserve(20).unwrap();
    let texts = numbers.map(|number| {
        let pipeline = pipeline.clone();
        tokio::spawn(async move { pipeline.compute(number, &TEXT[..1 + number as usize % 4]).await.unwrap().1.tokens })
    });
    let tokens: u32 = futures::future::join_all(texts).await.into_iter().map(Result::unwrap).sum();
    pipeline.close().await;
    assert_eq!(world.paid(), [tokens, tokens]);
}

#[tokio::test]
async fn a_wrong_receipt_is_refused_and_nobody_is_paid() {
    let all = [
        Wrong::Absent,
        Wrong::Tokens,
        Wrong::Logs,
        Wrong::Io,
        Wrong::State,
        Wrong::Text,
        Wrong::Stage,
        Wrong::Replica,
        Wrong::Job,
        Wrong::Signer,
        Wrong::Garbage,
    ];
    for wrong in all {
        for liar in 0..2 {
            let world = World::encoder(1).await;
            world.workers[liar].set(Manner::Signs(wrong));
            let pipeline = world.open().await;
            let (stage, fault) = fault(compute(&pipeline, &TEXT).await.unwrap_err());
            assert!(matches!(fault, LaneFault::Receipt(_)), "{wrong:?}: {fault}");
            assert_eq!(usize::from(stage), liar);
            assert_eq!(pipeline.receipts(0).unwrap(), None);
            pipeline.close().await;
            assert_eq!(world.paid(), [0, 0], "{wrong:?}");
        }
    }
}

#[tokio::test]
async fn rows_that_are_no_output_are_refused() {
    let world = World::encoder(1).await;
    world.workers[0].set(Manner::Short);
    let pipeline = world.open().await;
    let (_, fault) = fault(compute(&pipeline, &TEXT).await.unwrap_err());
    assert!(matches!(fault, LaneFault::Length { .. }), "{fault}");
    pipeline.close().await;
    assert_eq!(world.paid(), [0, 0]);
}

#[tokio::test]
async fn lost_answers_are_asked_for_again_and_paid_once() {
    let world = World::encoder(1).await;
    world.workers[1].set(Manner::Loses(2));
    let pipeline = world.open().await;
    assert_eq!(compute(&pipeline, &TEXT).await.unwrap(), world.due(&TEXT));
    pipeline.close().await;
    assert_eq!(world.workers[1].with(|inner| inner.advances.len()), 3);
    assert_eq!(world.paid(), [4, 4]);
}

#[tokio::test]
async fn a_receipt_that_never_arrived_is_listed_and_not_paid() {
    let world = World::encoder(1).await;
    world.workers[1].set(Manner::Loses(6));
    let pipeline = world.open().await;
    assert!(compute(&pipeline, &TEXT).await.is_err());
    assert_eq!(compute(&pipeline, &TEXT[..3]).await.unwrap(), world.due(&TEXT[..3]));
    pipeline.close().await;
    for worker in &world.workers {
        let (voucher, ids) = worker.with(|inner| {
            let ids: Vec<ClaimId> = inner.receipts.iter().map(|(claim, _)| CONTRACTS.claim_id(claim)).collect();
            (inner.vouchers.last().cloned().unwrap(), ids)
        });
        assert_eq!((ids.len(), voucher.tokens), (2, 3), "the first text was delivered to nobody");
        assert_eq!(voucher.receipts, receipt_list(&ids).root());
    }
}

#[tokio::test]
async fn a_dead_worker_ends_the_text_and_the_others_are_told() {
    let world = World::encoder(1).await;
    world.workers[1].set(Manner::Dead);
    let pipeline = world.open().await;
    let (stage, fault) = fault(compute(&pipeline, &TEXT).await.unwrap_err());
    assert!(stage == 1 && matches!(fault, LaneFault::Net(_)), "{fault}");
    assert!(!pipeline.alive());
    pipeline.close().await;
    assert_eq!(world.workers[0].with(|inner| inner.abandoned.clone()), [0]);
    assert_eq!(world.paid(), [0, 0]);
    // It comes back.
    world.workers[1].set(Manner::Honest);
    let pipeline = world.open().await;
    assert!(compute(&pipeline, &TEXT).await.is_ok() && pipeline.alive());
}

#[tokio::test]
async fn another_replica_takes_over() {
    for manner in [Manner::Dead, Manner::Declines, Manner::Signs(Wrong::Signer)] {
        let world = World::encoder(2).await;
        world.workers[1].set(manner);
        let pipeline = world.open().await;
        for text in 0..4u32 {
            assert_eq!(compute(&pipeline, &TEXT).await.unwrap(), world.due(&TEXT), "{text} {manner:?}");
        }
        pipeline.close().await;
        let paid = world.paid();
        assert_eq!((paid[0] + paid[2], paid[1], paid[3]), (16, 0, 16), "{manner:?}");
    }
}

#[tokio::test]
async fn busy_and_unpaid_workers_are_waited_for_and_paid() {
    let world = World::encoder(1).await;
    world.workers[0].set(Manner::Busy(3));
    world.workers[1].set(Manner::WantsMoney);
    let pipeline = world.open().await;
    for _ in 0..3 {
        assert_eq!(compute(&pipeline, &TEXT).await.unwrap(), world.due(&TEXT));
    }
    world.workers[0].set(Manner::Busy(1000));
    let error = compute(&pipeline, &TEXT).await.unwrap_err();
    assert!(error.is_busy(), "{error}");
    pipeline.close().await;
    assert_eq!(world.paid(), [12, 12]);
}

#[tokio::test]
async fn a_decoders_text_goes_token_by_token_and_survives_what_workers_forget() {
    let world = World::new(decoder_plans(), 1).await;
    let pipeline = world.open().await;
    let whole = world.due(&TEXT);
    let mut text = pipeline.begin(pipeline.reserve(1).unwrap().start).await.unwrap();
    let mut rows = Vec::new();
    for (at, token) in TEXT.iter().enumerate() {
        world.workers[at % 2].set(Manner::Forgets);
        let last = at + 1 == TEXT.len();
        let step = text.advance(&[*token], None, last).await.unwrap();
        assert_eq!(step.receipts.is_some(), last);
        rows.extend(step.output.to_bytes());
    }
    assert_eq!(rows, whole.to_bytes());
    assert!(matches!(text.advance(&[1], None, true).await, Err(TextError::Over)));
    pipeline.close().await;
    assert_eq!(world.paid(), [4, 4]);
}

#[tokio::test]
async fn a_replica_takes_over_in_the_middle_of_a_text_with_all_its_rows() {
    let world = World::new(decoder_plans(), 2).await;
    let pipeline = world.open().await;
    let mut text = pipeline.begin(0).await.unwrap();
    let first = text.advance(&TEXT[..2], None, false).await.unwrap().output.to_bytes();
    world.workers[0].set(Manner::Dead);
    let rest = text.advance(&TEXT[2..], None, true).await.unwrap();
    assert_eq!([first, rest.output.to_bytes()].concat(), world.due(&TEXT).to_bytes());
    assert_eq!(world.workers[2].with(|inner| inner.advances.clone()), [(0, 0, false), (0, 4, true)]);
    pipeline.close().await;
    assert_eq!(world.paid(), [0, 4, 4, 0]);
}

/// Rows are given before anybody signs: a stage that then does not sign right is computed again, by one that does, if
/// there is one.
#[tokio::test]
async fn rows_without_a_receipt_are_computed_again_or_paid_to_nobody() {
    for replicas in 1..=2 {
        for wrong in [Wrong::Absent, Wrong::Signer, Wrong::Io] {
            let world = World::new(decoder_plans(), replicas).await;
            world.workers[0].set(Manner::Signs(wrong));
            let pipeline = world.open().await;
            let mut text = pipeline.begin(0).await.unwrap();
            let step = text.advance(&TEXT, None, true).await;
            if replicas == 2 {
                assert_eq!(step.unwrap().output, world.due(&TEXT), "{wrong:?}");
            } else {
                let (stage, fault) = fault(step.unwrap_err());
                assert!(stage == 0 && matches!(fault, LaneFault::Receipt(_)), "{wrong:?}: {fault}");
            }
            drop(text);
            pipeline.close().await;
            let due = if replicas == 2 { vec![0, 4, 4, 0] } else { vec![0, 0] };
            assert_eq!(world.paid(), due, "{wrong:?}");
        }
    }
}

#[tokio::test]
async fn a_replica_that_gives_other_rows_than_the_text_had_is_not_believed() {
    let world = World::new(decoder_plans(), 2).await;
    world.workers[2].set(Manner::Lies);
    let pipeline = world.open().await;
    let mut text = pipeline.begin(0).await.unwrap();
    text.advance(&TEXT[..2], None, false).await.unwrap();
    world.workers[0].set(Manner::Dead);
    let (stage, fault) = fault(text.advance(&TEXT[2..], None, true).await.unwrap_err());
    assert!(stage == 0 && matches!(fault, LaneFault::Changed), "{fault}");
    drop(text);
    pipeline.close().await;
    assert_eq!(world.paid(), [0; 4]);
}

#[tokio::test]
async fn a_text_that_is_dropped_is_abandoned_and_unpaid() {
    let world = World::new(decoder_plans(), 1).await;
    let pipeline = world.open().await;
    let mut text = pipeline.begin(0).await.unwrap();
    text.advance(&TEXT, None, false).await.unwrap();
    drop(text);
    pipeline.close().await;
    for worker in &world.workers {
        assert_eq!(worker.with(|inner| (inner.abandoned.clone(), inner.receipts.len())), (vec![0], 0));
    }
    assert_eq!(world.paid(), [0, 0]);
}

#[tokio::test]
async fn texts_that_the_job_does_not_compute_are_refused_before_any_worker_sees_them() {
    let world = World::encoder(1).await;
    let pipeline = world.open().await;
    for length in [0, LONGEST as usize + 1] {
        let error = compute(&pipeline, &vec![1; length]).await.unwrap_err();
        assert!(matches!(error, TextError::Length { longest: LONGEST, .. }), "{error}");
    }
    assert!(matches!(compute(&pipeline, &[1, 20]).await, Err(TextError::Token { token: 20, vocabulary: 20 })));
    let mut text = pipeline.begin(0).await.unwrap();
    assert!(matches!(text.advance(&[1], None, false).await, Err(TextError::Whole)));
    assert!(world.workers.iter().all(|worker| worker.with(|inner| inner.advances.is_empty())));
    pipeline.close().await;
    assert!(matches!(pipeline.begin(1).await, Err(TextError::Closed)));
}

#[tokio::test]
async fn only_a_running_serving_job_of_ours_is_opened() {
    let world = World::encoder(1).await;
    let open = async |key, change: fn(&mut JobView)| {
        let mut view = world.view.clone();
        change(&mut view);
        world.open_as(key, world.folder.path(), &view).await.err()
    };
    assert!(open(0x55, |_| ()).await.is_none());
    assert!(matches!(open(9, |_| ()).await, Some(OpenError::NotOurs { user: payer, .. }) if payer == user().address()));
    assert!(matches!(open(0x55, |view| view.kind = JobKind::Training).await, Some(OpenError::Training(JOB))));
    let closing = open(0x55, |view| view.state = JobState::Closing).await;
    assert!(matches!(closing, Some(OpenError::State { state: JobState::Closing, .. })));
    assert!(matches!(open(0x55, |view| view.stages = 3).await, Some(OpenError::Stages { files: 2, stages: 3, .. })));
}
