//! A lane from its job's start to its end, through deaths of its worker.

use tensorlink_node::ports::Call;
use tensorlink_node::ports::Chain;
use tensorlink_node::wire::rpc::{Request, Response};

use crate::serving::world::{World, ids, next, text, until, voucher};
use crate::support::{JOB, WINDOW, lane};

impl World {
    /// What the chain holds of a lane: epoch, tokens, receipts.
    fn redeemed(&self, stage: u16) -> Option<tensorlink_types::abi::Voucher> {
        self.chain.with(|ledger| ledger.redeemed.get(&lane(stage)).map(|(voucher, _)| voucher.clone()))
    }

    fn sent(&self, call: &str) -> usize {
        self.chain.with(|ledger| ledger.sent.iter().filter(|sent| **sent == call).count())
    }

    async fn close(&self) {
        self.chain.send(Call::Cancel { job: JOB }).await.unwrap();
    }

    fn files(&self, stage: usize) -> Vec<String> {
        let names = std::fs::read_dir(self.folders[stage].path()).unwrap();
        let mut names: Vec<_> = names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

#[tokio::test]
async fn epochs_are_redeemed_one_after_another_and_the_last_when_the_job_closes() {
    let world = World::new().await;
    let process = world.start(0).await;
    let mut receipts = Vec::new();
    for number in 0..4 {
        receipts.push(world.stage(0, number, &text(number)).await.0);
    }
    assert_eq!(world.pay(0, voucher(0, 1, 6, &receipts[..2])).await, Response::Done);
    assert_eq!(world.redeemed(0), None);
    assert_eq!(world.pay(0, next(0, 2, (6, 12), &receipts[2..])).await, Response::Done);
    until(|| async { world.redeemed(0) == Some(voucher(0, 1, 6, &receipts[..2])) }).await;
    for (epoch, expected) in [(1, &receipts[..2]), (2, &receipts[2..])] {
        let claims = expected.iter().map(|receipt| receipt.claim.clone()).collect();
        assert_eq!(world.ask(0, Request::Receipts { lane: lane(0), epoch }).await, Response::Receipts(claims));
    }
    let late = Request::Receipts { lane: lane(0), epoch: 4 };
    assert!(matches!(world.ask(0, late).await, Response::Declined(_)));

    world.close().await;
    until(|| async { world.redeemed(0) == Some(next(0, 2, (6, 12), &receipts[2..])) }).await;
    let response = world.advance(0, (9, 0), text(9).to_bytes(), true).await;
    assert!(matches!(&response, Response::Declined(reason) if reason.contains("closing")), "{response:?}");
    // Somebody settles it, when it is time.
    assert_eq!(world.sent("settle"), 0);
    world.chain.with(|ledger| ledger.now += WINDOW);
    until(|| async { world.sent("settle") == 1 }).await;
    until(|| async { world.files(0) == ["lane-1-0-0.json"] }).await;
    assert_eq!(world.sent("redeem"), 2);
    process.stop().await;
}

#[tokio::test]
async fn a_worker_that_was_killed_remembers_what_it_signed_and_was_paid_and_no_open_text() {
    let world = World::new().await;
    let process = world.start(0).await;
    let first = world.stage(0, 0, &text(0)).await.0;
    assert_eq!(world.pay(0, voucher(0, 1, 3, std::slice::from_ref(&first))).await, Response::Done);
    let second = world.stage(0, 1, &text(1)).await.0;
    let rows = text(2).to_bytes();
    let part = world.advance(0, (2, 0), rows[..8].to_vec(), false).await;
    assert_eq!(part, Response::Advanced { output: vec![], receipt: None }, "an encoder needs the whole text");
    process.stop().await;

    let process = world.start(0).await;
    let rewind = world.advance(0, (2, 2), rows[8..].to_vec(), true).await;
    assert_eq!(rewind, Response::Rewind { position: 0 });
    let third = world.stage(0, 2, &text(2)).await.0;
    let receipts = [first, second, third];
    let claims = receipts.iter().map(|receipt| receipt.claim.clone()).collect();
    assert_eq!(world.ask(0, Request::Receipts { lane: lane(0), epoch: 1 }).await, Response::Receipts(claims));
    let fewer = world.pay(0, voucher(0, 1, 2, &receipts)).await;
    assert!(matches!(fewer, Response::Declined(_)), "three tokens were paid before");
    assert_eq!(world.pay(0, voucher(0, 1, 9, &receipts)).await, Response::Done);
    process.stop().await;

    // The job closes while nobody is there.
    world.close().await;
    let process = world.start(0).await;
    until(|| async { world.redeemed(0) == Some(voucher(0, 1, 9, &receipts)) }).await;
    process.stop().await;
    assert_eq!(world.sent("redeem"), 1);
    let process = world.start(0).await;
    assert_eq!(ids(&receipts).len(), 3);
    world.chain.with(|ledger| ledger.now += WINDOW);
    until(|| async { world.sent("settle") == 1 }).await;
    assert_eq!(world.sent("redeem"), 1, "once is enough");
    process.stop().await;
}

#[tokio::test]
async fn a_job_past_its_deadline_is_closed_and_a_voucher_that_is_refused_is_tried_to_the_end() {
    let world = World::new().await;
    let process = world.start(0).await;
    let receipt = world.stage(0, 0, &text(0)).await.0;
    assert_eq!(world.pay(0, voucher(0, 1, 3, &[receipt])).await, Response::Done);
    // The contract pays for less than the terms said.
    world.chain.with(|ledger| {
        ledger.job.intervals = 2;
        ledger.now = ledger.job.deadline + 1;
    });
    until(|| async { world.sent("cancel") == 1 }).await;
    until(|| async { world.sent("redeem") >= 10 }).await;
    assert_eq!(world.sent("settle"), 0);
    world.chain.with(|ledger| ledger.now += WINDOW);
    until(|| async { world.sent("settle") == 1 }).await;
    assert_eq!(world.redeemed(0), None);
    process.stop().await;
}

/// The chain refuses for a while, as an endpoint does that lags: nothing is lost, for nothing later could be redeemed.
#[tokio::test]
async fn a_voucher_that_is_refused_for_a_while_is_redeemed_before_those_after_it() {
    let world = World::new().await;
    let process = world.start(0).await;
    let most = world.chain.with(|ledger| std::mem::replace(&mut ledger.job.intervals, 2));
    let mut receipts = Vec::new();
    for number in 0..2 {
        receipts.push(world.stage(0, number, &text(number)).await.0);
    }
    assert_eq!(world.pay(0, voucher(0, 1, 3, &receipts[..1])).await, Response::Done);
    assert_eq!(world.pay(0, next(0, 2, (3, 6), &receipts[1..])).await, Response::Done);
    until(|| async { world.sent("redeem") >= 10 }).await;
    world.close().await;
    world.chain.with(|ledger| ledger.job.intervals = most);
    until(|| async { world.redeemed(0) == Some(next(0, 2, (3, 6), &receipts[1..])) }).await;
    process.stop().await;
}

/// What is redeemed last is audited for a window, and so long nobody settles the job (rule P-20).
#[tokio::test]
async fn a_job_is_settled_a_window_after_its_last_redemption() {
    let world = World::new().await;
    let process = world.start(0).await;
    let receipt = world.stage(0, 0, &text(0)).await.0;
    assert_eq!(world.pay(0, voucher(0, 1, 3, std::slice::from_ref(&receipt))).await, Response::Done);
    process.stop().await;
    // It comes back in the last moment.
    world.close().await;
    let deadline = world.chain.with(|ledger| {
        ledger.now = ledger.job.deadline - 1;
        ledger.job.deadline
    });
    let process = world.start(0).await;
    until(|| async { world.redeemed(0).is_some() }).await;
    world.chain.with(|ledger| ledger.now = deadline + WINDOW - 2);
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    assert_eq!(world.sent("settle"), 0);
    world.chain.with(|ledger| ledger.now = deadline + WINDOW - 1);
    until(|| async { world.sent("settle") == 1 }).await;
    process.stop().await;
}

/// Who was away until nothing can be redeemed any more settles all the same, unpaid.
#[tokio::test]
async fn what_is_redeemed_too_late_is_not_paid_and_holds_nothing_up() {
    let world = World::new().await;
    let process = world.start(0).await;
    let receipt = world.stage(0, 0, &text(0)).await.0;
    assert_eq!(world.pay(0, voucher(0, 1, 3, &[receipt])).await, Response::Done);
    process.stop().await;
    world.close().await;
    world.chain.with(|ledger| ledger.now = ledger.job.deadline);
    let process = world.start(0).await;
    until(|| async { world.sent("settle") == 1 }).await;
    assert_eq!((world.sent("redeem"), world.redeemed(0)), (0, None));
    process.stop().await;
}
