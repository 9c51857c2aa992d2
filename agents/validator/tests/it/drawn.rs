//! Who is drawn answers for itself, keeps what its answer rests on, and convicts once the worker may tell.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use cid::Cid;
use tensorlink_node::ports::chain::Parameters;
use tensorlink_node::ports::{Chain, Owner};
use tensorlink_program::Reference;
use tensorlink_proof::commit::{state_root, trace_root};
use tensorlink_types::abi::AuditAnswer;
use tensorlink_types::{B256, ClaimId};
use tensorlink_validator::{Answers, Finding, Standing};

use crate::support::STEPS;
use crate::world::{INTERVAL, Manner, auditor, drawing, honest_roots, liar, world};

#[tokio::test]
async fn who_is_drawn_answers_with_its_own_last_step_and_remembers_it() {
    // What is lied about in the first step goes through all the others: the answer is not the worker's.
    for engine in [liar(INTERVAL * STEPS), liar(u32::MAX)] {
        let mut world = world(engine, Manner::Answers).await;
        world.restart(drawing());
        world.chain.with(|l| (l.job.audit_budget, l.job.challenge_window) = (1, 400));
        world.auditor.audit(&world.target).await.unwrap();
        assert_eq!(world.auditor.answers().of(world.target.id), None, "nobody has drawn it");

        world.auditor.answers().drawn(world.target.id);
        world.auditor.audit(&world.target).await.unwrap();
        let given = world.auditor.answers().of(world.target.id).unwrap();
        let roots = honest_roots().await;
        let last = roots.traces.len() - 1;
        let expected = AuditAnswer {
            step: INTERVAL * STEPS + last as u32,
            preState: state_root(&roots.states[last]),
            trace: trace_root(&roots.traces[last]),
        };
        assert_eq!((&given.answer, given.audited.fixedAt, given.window), (&expected, 201, 400));
        let again = Answers::open(world.ports.journal.clone(), drawing()).unwrap();
        assert_eq!(again.of(world.target.id), Some(given), "a restart forgets no answer");
    }
}

#[tokio::test]
async fn nobody_answers_for_a_lane_that_could_frame_it_for_nothing_or_for_nothing() {
    let mut world = world(Reference, Manner::Answers).await;
    world.restart(Parameters { dispute_bond: u128::MAX, ..drawing() });
    world.chain.with(|l| l.job.audit_budget = 1);
    world.auditor.answers().drawn(world.target.id);
    assert_eq!(world.auditor.audit(&world.target).await.unwrap(), Finding::Right);
    assert_eq!(world.auditor.answers().of(world.target.id), None, "less at risk than a challenge costs");

    world.restart(drawing());
    world.chain.with(|l| l.job.audit_budget = 0);
    world.auditor.answers().drawn(world.target.id);
    assert_eq!(world.auditor.audit(&world.target).await.unwrap(), Finding::Right);
    assert_eq!(world.auditor.answers().of(world.target.id), None, "nothing is left to pay it");
}

/// A replica's claim is of the same files: what we answered about one is to be shown after we looked at the other.
#[tokio::test]
async fn what_an_answer_rests_on_is_not_let_go_of() {
    let mut world = world(Reference, Manner::Answers).await;
    world.restart(drawing());
    world.chain.with(|l| l.job.audit_budget = 1);
    world.auditor.answers().drawn(world.target.id);
    assert_eq!(world.auditor.audit(&world.target).await.unwrap(), Finding::Right);
    let given = world.auditor.answers().of(world.target.id).unwrap();
    world.target.id = ClaimId(B256::repeat_byte(9));
    assert_eq!(world.auditor.audit(&world.target).await.unwrap(), Finding::Right);
    for file in [given.record.state, given.record.inputs] {
        assert!(world.ports.store.has(&Cid::try_from(file).unwrap()).await.unwrap());
    }
}

/// Nobody's files make room for others.
#[tokio::test]
async fn what_an_answer_will_rest_on_stays_while_it_is_worked_out() {
    let mut world = world(Reference, Manner::Answers).await;
    world.chain.with(|l| l.job.audit_budget = 1);
    let (store, seen) = (world.ports.store.clone(), Arc::new(Mutex::new(Vec::new())));
    let (looked_at, noted) = (store.clone(), seen.clone());
    world.auditor = auditor(&world.ports, drawing(), move || {
        noted.lock().unwrap().push(futures::executor::block_on(looked_at.owners()).unwrap());
        Ok(Reference)
    });
    let owners = || std::mem::take(&mut *seen.lock().unwrap());
    world.auditor.audit(&world.target).await.unwrap();
    assert_eq!(owners(), [[]], "not drawn");
    // Drawn, but not answered: nothing is left to pay it.
    world.chain.with(|l| l.job.audit_budget = 0);
    world.auditor.answers().drawn(world.target.id);
    world.auditor.audit(&world.target).await.unwrap();
    assert_eq!(owners(), [[Owner::Audit(world.target.id)]]);
    assert!(store.owners().await.unwrap().is_empty(), "without an answer it need not be shown");
    world.chain.with(|l| l.job.audit_budget = 1);
    world.auditor.audit(&world.target).await.unwrap();
    assert_eq!(owners(), [[Owner::Audit(world.target.id)]]);
    assert_eq!(store.owners().await.unwrap(), [Owner::Audit(world.target.id)]);
}

#[tokio::test]
async fn a_wrong_claim_is_proven_wrong_once_its_worker_may_tell() {
    let mut world = world(liar(INTERVAL * STEPS), Manner::Answers).await;
    let now = world.chain.head().await.unwrap().timestamp;
    let window = 4 * u32::try_from(now + 1).unwrap();
    world.chain.with(|l| l.job.challenge_window = window.into());
    world.target.standing = Standing::Committed { at: 0 };
    world.chain.with(|l| l.claims.insert((0, INTERVAL), (world.target.claim.clone(), 0)));
    let engines = Arc::new(AtomicU32::new(0));
    let counting = engines.clone();
    world.auditor = auditor(&world.ports, drawing(), move || {
        counting.fetch_add(1, Ordering::Relaxed);
        Ok(Reference)
    });
    let executions = || engines.swap(0, Ordering::Relaxed);
    let finding = world.auditor.audit(&world.target).await.unwrap();
    assert_eq!(finding, Finding::Withheld { until: now + 1 });
    assert_eq!(executions(), 1);
    world.chain.with(|l| l.job.challenge_window = u64::from(window) - 4);
    let anew = world.auditor.audit(&world.target).await.unwrap();
    let all = executions();
    let finding = world.auditor.prove(&world.target).await.unwrap();
    assert!(matches!(finding, Finding::Wrong { .. }), "{finding:?}");
    assert_eq!((finding, executions()), (anew, all - 1), "what was executed before is not executed again");
}
