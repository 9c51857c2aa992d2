//! Serving jobs: vouchers redeemed, receipts that convict, and what is left in the end.

use tensorlink_chain::AlloyChain;
use tensorlink_node::ports::chain::{Event, Fault, JobState, RedeemedView, Role};
use tensorlink_node::ports::{Call, Chain, ChainError};
use tensorlink_proof::commit::{Crossed, epoch_record, receipt, receipt_list, receipt_statement};
use tensorlink_proof::fraud::{Case, Work, verify_contradiction_proof};
use tensorlink_types::abi::{ContradictionProof, JobKind, StepStatement, Voucher};
use tensorlink_types::{Address, B256, Bytes, ClaimId, JobId, Lane, TensorRoot, U256};

use crate::world::{OTHER, PRICE, USER, WINDOW, WORKER, World, sno, take};

/// What the serving job's 40 tokens cost.
const DEPOSIT: u128 = 40 * PRICE;

const fn lane(job: JobId) -> Lane {
    Lane { job, stage: 0, replica: 0 }
}

async fn serving_job(world: &World, user: &AlloyChain, worker: &AlloyChain) -> JobId {
    let now = user.head().await.unwrap().timestamp;
    world.running_job_of(user, worker, world.serving_terms(now), U256::from(DEPOSIT)).await
}

fn redeem(world: &World, signer: usize, voucher: Voucher) -> Call {
    let signature = world.identity(signer).sign(world.contracts().voucher(&voucher)).unwrap();
    Call::Redeem { voucher, signature: Bytes::copy_from_slice(&signature) }
}

/// Of an epoch that begins at `before` tokens.
fn voucher(job: JobId, epoch: u32, (before, tokens): (u32, u32), receipts: &[ClaimId]) -> Voucher {
    Voucher { job: job.0, stage: 0, replica: 0, epoch, before, tokens, receipts: receipt_list(receipts).root() }
}

async fn refused(chain: &AlloyChain, call: Call) -> String {
    refusal(chain.send(call).await.unwrap_err())
}

fn refusal(error: ChainError) -> String {
    match error {
        ChainError::Reverted { name, arguments } => name + &arguments,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn tokens_are_paid_by_vouchers_once_and_the_rest_returns() {
    let world = World::new().await;
    let (user, worker, other) = (world.chain(USER).await, world.chain(WORKER).await, world.chain(OTHER).await);
    let mut events = other.events(0).await.unwrap();
    let job = serving_job(&world, &user, &worker).await;
    let view = user.job(job).await.unwrap().unwrap();
    assert_eq!((view.kind, view.state, view.intervals), (JobKind::Serving, JobState::Running, 40));
    assert_eq!(worker.redeemed(lane(job)).await.unwrap(), RedeemedView::default());

    let ids = [ClaimId(B256::repeat_byte(1)), ClaimId(B256::repeat_byte(2))];
    let first = voucher(job, 1, (0, 7), &ids);
    let redeemed = worker.send(redeem(&world, USER, first.clone())).await.unwrap();
    let said = |epoch, tokens, receipts| Event::VoucherRedeemed { lane: lane(job), epoch, tokens, receipts };
    let paid = |units: u32| Event::Paid {
        lane: lane(job),
        worker: worker.account(),
        units,
        amount: U256::from(u128::from(units) * PRICE),
    };
    assert_eq!(redeemed.events, [said(1, 7, first.receipts), paid(7)]);
    let last = worker.redeemed(lane(job)).await.unwrap();
    assert_eq!((last.epoch, last.tokens, last.at), (1, 7, worker.head().await.unwrap().timestamp));
    assert_eq!(last.record, epoch_record(receipt_list(&ids).root(), last.at));

    // Each once and one after another, by whom it is for, signed by who owes it, and never more than was deposited.
    let next = voucher(job, 2, (7, 10), &ids[..1]);
    let refusals = [
        (first, "NotTheNextEpoch(1)"),
        (voucher(job, 3, (7, 10), &ids[..1]), "NotTheNextEpoch(3)"),
        (voucher(job, 2, (6, 10), &ids[..1]), "NotPaidBefore(6)"),
        (voucher(job, 2, (7, 6), &[]), "TokensOutOfRange(6)"),
        (voucher(job, 2, (7, 41), &[]), "TokensOutOfRange(41)"),
    ];
    for (voucher, reason) in refusals {
        assert_eq!(refused(&worker, redeem(&world, USER, voucher)).await, reason);
    }
    assert_eq!(refused(&worker, redeem(&world, WORKER, next.clone())).await, "BadSignature()");
    assert_eq!(refused(&other, redeem(&world, USER, next.clone())).await, format!("NotWorker({})", other.account()));
    worker.send(redeem(&world, USER, next.clone())).await.unwrap();
    assert_eq!(worker.redeemed(lane(job)).await.unwrap().epoch, 2);

    // Closed, it can be redeemed for a window, and settled a window after what was redeemed last, by anybody.
    assert_eq!(refused(&user, Call::Settle { job }).await, format!("WrongState({job}, 3)"));
    user.send(Call::Cancel { job }).await.unwrap();
    world.wait(3).await;
    let late = voucher(job, 3, (10, 11), &ids);
    worker.send(redeem(&world, USER, late.clone())).await.unwrap();
    let deadline = user.job(job).await.unwrap().unwrap().deadline;
    let from = worker.redeemed(lane(job)).await.unwrap().at + u64::from(WINDOW);
    assert!(from > deadline);
    assert_eq!(refused(&other, Call::Settle { job }).await, format!("WindowOpen({from})"));
    world.wait(WINDOW.into()).await;
    let too_late = || redeem(&world, USER, voucher(job, 4, (11, 12), &[]));
    assert_eq!(refused(&worker, too_late()).await, format!("RedemptionOver({deadline})"));
    other.send(Call::Settle { job }).await.unwrap();
    assert_eq!(refused(&worker, too_late()).await, format!("JobNotOpen({job})"));
    assert_eq!(worker.credit(worker.account(), Address::ZERO).await.unwrap(), U256::from(11 * PRICE));
    assert_eq!(user.credit(user.account(), Address::ZERO).await.unwrap(), U256::from(DEPOSIT - 11 * PRICE));
    assert_eq!(worker.stake(worker.account(), Role::Worker).await.unwrap().locked, 0);

    let told: Vec<Event> = take(&mut events, 12).await.into_iter().map(|at| at.event).collect();
    let refund = U256::from(DEPOSIT - 11 * PRICE);
    assert_eq!(told[4..8], [said(1, 7, receipt_list(&ids).root()), paid(7), said(2, 10, next.receipts), paid(3)]);
    assert_eq!(told[8], Event::JobClosing { job, convicted: false });
    assert_eq!(told[9..], [said(3, 11, late.receipts), paid(1), Event::JobSettled { job, refund }]);
}

#[tokio::test]
async fn a_worker_that_signs_two_lengths_of_one_text_is_convicted_and_redeems_no_more() {
    let world = World::new().await;
    let (user, worker, other) = (world.chain(USER).await, world.chain(WORKER).await, world.chain(OTHER).await);
    let job = serving_job(&world, &user, &worker).await;
    let root = |byte| TensorRoot(B256::repeat_byte(byte));
    let crossed = Crossed { from_previous: root(1), from_next: None, to_next: root(2) };
    let (claim, _) = receipt(lane(job), 77, &crossed);
    let id = world.contracts().claim_id(&claim);
    let said = |tokens| receipt_statement(id, other.account(), tokens, &[root(2)]);
    let sign = |statement: &StepStatement| {
        let signature = world.identity(WORKER).sign(world.contracts().statement(statement)).unwrap();
        Bytes::copy_from_slice(&signature)
    };
    let proof = |first: StepStatement, second: StepStatement| ContradictionProof {
        claim: claim.clone(),
        committedAt: 0,
        firstSignature: sign(&first),
        secondSignature: sign(&second),
        first,
        second,
    };
    let case = Case {
        contracts: world.contracts(),
        worker: worker.account(),
        lineage: user.job(job).await.unwrap().unwrap().lineage,
        work: Work::Serving { longest: 5, programs: user.program_root(job, 0).await.unwrap() },
    };
    // What the chain refuses is what the reference refuses, by the same name.
    let refusals = [
        (proof(said(3), said(3)), "NoFault"),
        (proof(said(3), said(6)), "StatementMismatch"),
        (proof(said(0), said(3)), "StatementMismatch"),
        (ContradictionProof { committedAt: 1, ..proof(said(3), said(4)) }, "UnknownClaim"),
    ];
    for (bad, name) in refusals {
        let reference = format!("{:?}", verify_contradiction_proof(&case, &bad).unwrap_err());
        assert_eq!(reference, name);
        let error = other.simulate(&Call::ProveContradiction(Box::new(bad))).await.unwrap_err();
        assert_eq!(refusal(error).split('(').next(), Some(name));
    }

    let good = proof(said(3), said(4));
    let expected = verify_contradiction_proof(&case, &good).unwrap();
    let before = other.balance(other.account(), Address::ZERO).await.unwrap();
    let convicted = other.send(Call::ProveContradiction(Box::new(good.clone()))).await.unwrap();
    // Who sent the proof, what it cost, and all of it can be read back.
    let mined = user.mined(convicted.transaction).await.unwrap().unwrap();
    assert_eq!((mined.sender, mined.gas), (other.account(), convicted.gas));
    assert_eq!(other.balance(other.account(), Address::ZERO).await.unwrap(), before - mined.fee);
    assert_eq!(mined.proof, Some(Call::ProveContradiction(Box::new(good))));
    let conviction = convicted.events.iter().find_map(|event| match event {
        Event::Convicted { claim, worker, auditor, fault, step, .. } => {
            Some((*claim, *worker, *auditor, *fault, *step))
        }
        _ => None,
    });
    let by_reference = (id, worker.account(), expected.auditor, Fault::Contradiction, expected.step);
    assert_eq!(conviction, Some(by_reference));
    assert!(convicted.events.contains(&Event::JobClosing { job, convicted: true }));
    let slashed = |event: &Event| matches!(event, Event::Slashed { amount, .. } if *amount == sno("10"));
    assert!(convicted.events.iter().any(slashed), "{:?}", convicted.events);
    let error = worker.send(redeem(&world, USER, voucher(job, 1, (0, 3), &[id]))).await.unwrap_err();
    assert_eq!(refusal(error), "LaneConvicted(0, 0)");
}
