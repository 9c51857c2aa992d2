//! What a user owes its workers, from text to text and from start to start.

use std::time::Duration;

use tensorlink_user::serving::LaneFault;

use crate::serving::worker::{Inner, Manner};
use crate::serving::world::{TEXT, World, compute, fault};
use crate::support;
use crate::support::serving::LONGEST;

#[tokio::test]
async fn a_restart_keeps_accounts_numbers_and_receipts() {
    let world = World::encoder(1).await;
    let pipeline = world.open().await;
    let first = pipeline.reserve(1).unwrap().start;
    let (_, receipts) = pipeline.compute(first, &TEXT).await.unwrap();
    // Killed: the last vouchers may not have been sent.
    drop(pipeline);
    let pipeline = world.open().await;
    let second = pipeline.reserve(1).unwrap().start;
    assert!(second > first);
    pipeline.compute(second, &TEXT[..2]).await.unwrap();
    assert_eq!(pipeline.receipts(first).unwrap(), Some(receipts));
    pipeline.close().await;
    assert_eq!(world.paid(), [6, 6]);
    let sent = world.workers[0].with(|inner| inner.vouchers.len());
    let pipeline = world.open().await;
    while world.workers[0].with(|inner| inner.vouchers.len()) == sent {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    pipeline.close().await;
    assert_eq!(world.paid(), [6, 6], "the last voucher is sent again, and says the same");
    // Without its records the job cannot be served: what was signed is not known.
    for (stage, worker) in world.workers.iter().enumerate() {
        let voucher = worker.with(|inner| inner.vouchers.last().cloned()).unwrap();
        world.chain.with(|ledger| ledger.redeemed.insert(support::lane(stage as u16), (voucher, 1)));
        worker.end_epoch();
    }
    let elsewhere = tempfile::tempdir().unwrap();
    let stale = world.open_as(0x55, elsewhere.path(), &world.view).await.unwrap_err();
    assert!(stale.to_string().contains("data directory"), "{stale}");
    // With them, what was redeemed is no more than what was signed.
    let pipeline = world.open().await;
    compute(&pipeline, &TEXT).await.unwrap();
}

/// An epoch pays for 16 longest texts; two are signed for that the chain does not have.
#[tokio::test]
async fn epochs_follow_each_other_and_wait_for_what_is_redeemed() {
    let world = World::encoder(1).await;
    let pipeline = world.open().await;
    let full = 16 * LONGEST;
    for _ in 0..(2 * full + 8) / 4 {
        compute(&pipeline, &TEXT).await.unwrap();
    }
    let paid = async |tokens: u32| {
        while world.paid() != [tokens, tokens] {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let redeem = |epoch: u32| {
        for (stage, worker) in world.workers.iter().enumerate() {
            let voucher = worker.with(|inner| inner.vouchers.iter().rfind(|voucher| voucher.epoch == epoch).cloned());
            let at = support::lane(stage as u16);
            world.chain.with(|ledger| ledger.redeemed.insert(at, (voucher.unwrap(), 1)));
        }
    };
    paid(2 * full).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(world.paid(), [2 * full; 2], "the rest waits");
    redeem(1);
    paid(2 * full + 8).await;
    for worker in &world.workers {
        let vouchers = worker.with(|inner| inner.vouchers.clone());
        let last = |epoch| vouchers.iter().rfind(|voucher| voucher.epoch == epoch).map(|v| (v.before, v.tokens));
        assert_eq!([last(1), last(2)], [Some((0, full)), Some((full, 2 * full))]);
        assert_eq!((last(3), last(4)), (Some((2 * full, 2 * full + 8)), None));
    }
    // A reorganisation undoes it, and the user starts again meanwhile.
    world.chain.with(|ledger| ledger.redeemed.clear());
    drop(pipeline);
    let pipeline = world.open().await;
    compute(&pipeline, &TEXT).await.unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(world.paid(), [2 * full + 8; 2]);
    redeem(2);
    paid(2 * full + 12).await;
    pipeline.close().await;
}

/// A worker redeems what it has when the job closes, while vouchers are on their way to it.
#[tokio::test]
async fn an_epoch_that_was_redeemed_early_is_over_and_the_rest_is_of_the_next() {
    let world = World::encoder(1).await;
    let pipeline = world.open().await;
    compute(&pipeline, &TEXT).await.unwrap();
    while world.paid() != [4, 4] {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let ended: Vec<_> = world.workers.iter().map(|worker| worker.end_epoch()).collect();
    // Declined, for the epoch is over, and the chain does not say so yet.
    compute(&pipeline, &TEXT[..3]).await.unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(world.paid(), [4, 4]);
    for (stage, voucher) in ended.into_iter().enumerate() {
        world.chain.with(|ledger| ledger.redeemed.insert(support::lane(stage as u16), (voucher, 1)));
    }
    while world.paid() != [7, 7] {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    for worker in &world.workers {
        let last = worker.with(|inner| inner.vouchers.last().cloned()).unwrap();
        assert_eq!((last.epoch, last.before, last.tokens), (2, 4, 7));
    }
    pipeline.close().await;
}

/// A worker signs for two texts, and the answer that it sent first comes last.
#[tokio::test]
async fn a_text_whose_answer_is_overtaken_is_paid_too() {
    let world = World::encoder(1).await;
    let pipeline = world.open().await;
    let worker = &world.workers[1];
    let until = async |reached: &dyn Fn() -> bool| {
        while !reached() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let asked = worker.with(|inner| {
        inner.manner = Manner::Lags;
        inner.asked
    });
    let overtaking = async {
        until(&|| worker.with(|inner| inner.kept.is_some())).await;
        compute(&pipeline, &TEXT[..3]).await.unwrap();
        // Its voucher does not list the first, so it is declined, and the worker's list tells why.
        until(&|| worker.with(|inner| inner.asked > asked)).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
        worker.with(Inner::release);
    };
    let (overtaken, ()) = tokio::join!(compute(&pipeline, &TEXT), overtaking);
    assert_eq!(overtaken.unwrap(), world.due(&TEXT));
    until(&|| world.paid() == [7, 7]).await;
    pipeline.close().await;
}

/// Texts that fail in another stage are no reason to give no more credit.
#[tokio::test]
async fn a_worker_that_wants_a_word_on_failed_texts_gets_it() {
    let world = World::encoder(1).await;
    let pipeline = world.open().await;
    world.workers[1].set(Manner::Declines);
    for _ in 0..3 {
        compute(&pipeline, &TEXT).await.unwrap_err();
    }
    assert_eq!(world.workers[0].with(|inner| inner.receipts.len()), 3);
    world.workers[1].set(Manner::Honest);
    world.workers[0].set(Manner::WantsMoney);
    assert_eq!(compute(&pipeline, &TEXT).await.unwrap(), world.due(&TEXT));
    pipeline.close().await;
    assert_eq!(world.paid(), [4, 4]);
}

#[tokio::test]
async fn the_job_pays_for_so_many_tokens_and_no_more() {
    let mut world = World::encoder(1).await;
    world.view.intervals = 6;
    let pipeline = world.open().await;
    compute(&pipeline, &TEXT).await.unwrap();
    let (_, fault) = fault(compute(&pipeline, &TEXT).await.unwrap_err());
    assert!(matches!(fault, LaneFault::Account(_)), "{fault}");
    compute(&pipeline, &TEXT[..2]).await.unwrap();
    pipeline.close().await;
    assert_eq!(world.paid(), [6, 6]);
}
