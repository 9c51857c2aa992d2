//! Auditors get what it takes to repeat a text, and statements that the repetition bears out.

use std::sync::Arc;

use cid::Cid;
use tensorlink_node::interval::{Span, inputs_len};
use tensorlink_node::ports::Store;
use tensorlink_node::replay::Replay;
use tensorlink_node::wire::rpc::{IntervalRecord, Request, Response};
use tensorlink_program::Reference;
use tensorlink_proof::commit::{io_root, receipt_statement, tensor_root, verify_signer};

use crate::serving::world::{World, address, ids, next, text, until, voucher};
use crate::support::{CONTRACTS, KEY, identity, lane};

#[tokio::test]
async fn what_a_worker_says_about_its_receipts_is_what_a_repetition_gives() {
    let world = World::new().await;
    let processes = [world.start(0).await, world.start(1).await];
    let auditor = identity(0x66);
    for stage in 0..2u16 {
        let mut receipts = Vec::new();
        for number in 0..2 {
            let input = if stage == 0 { text(number) } else { world.computed(0, &text(number)) };
            receipts.push(world.stage(stage, number, &input).await.0);
        }
        // One of an epoch that is over, one of the open epoch.
        assert_eq!(world.pay(stage, voucher(stage, 1, 3, &receipts[..1])).await, Response::Done);
        assert_eq!(world.pay(stage, next(stage, 2, (3, 6), &receipts[1..])).await, Response::Done);
        until(|| async { world.chain.with(|ledger| ledger.redeemed.contains_key(&lane(stage))) }).await;
        for (receipt, claim) in receipts.iter().zip(ids(&receipts)) {
            let ask = |request| world.ask_as(auditor.clone(), stage, request);
            let Response::Interval(IntervalRecord { state, inputs, logs, .. }) = ask(Request::Interval(claim)).await
            else {
                panic!("no record")
            };
            assert!(state.is_empty());
            assert_eq!(io_root(&logs), receipt.claim.io);
            let shard = Arc::new(world.shards[usize::from(stage)].shard(3).unwrap());
            let limit = inputs_len(&shard.program, 1);
            let inputs = world.store.get(&Cid::try_from(inputs).unwrap(), &[], limit).await.unwrap();
            let span = Span { first_step: 3, steps: 1 };
            let own = Replay { shard, lineage: KEY.into(), span, state: vec![], inputs };
            let roots = own.roots(Reference).unwrap();
            assert_eq!(roots.logs.roots(), receipt.logs);

            let Response::Statements(statements) = ask(Request::Statements(claim)).await else { panic!() };
            let [(statement, signature)] = statements.as_slice() else { panic!("one statement") };
            assert_eq!(*statement, receipt_statement(claim, auditor.address(), 3, &roots.traces[0]));
            verify_signer(signature, CONTRACTS.statement(statement), address(stage)).unwrap();
            assert_eq!(ask(Request::Trace { claim, step: 3 }).await, Response::Roots(roots.traces[0].clone()));
            assert_eq!(ask(Request::State { claim, step: 3 }).await, Response::Roots(vec![]));
            for operator in [0, roots.traces[0].len() as u32 - 1] {
                let output = own.operator(Reference, 3, operator).unwrap().output;
                let bytes = output.to_bytes();
                for from in [0, 1, bytes.len() - 1, bytes.len(), usize::MAX] {
                    let answer = ask(Request::Output { claim, step: 3, operator, from: from as u64 }).await;
                    assert_eq!(answer, Response::Output(bytes.get(from..).unwrap_or_default().to_vec()));
                }
                assert_eq!(tensor_root(&output), roots.traces[0][operator as usize]);
            }
            let Response::SentLogs { to_previous, to_next } = ask(Request::SentLogs(claim)).await else { panic!() };
            assert_eq!((to_previous.len(), to_next.len()), (0, 1));
            assert!(matches!(ask(Request::Trace { claim, step: 0 }).await, Response::Declined(_)), "another length");
        }
    }
    for process in processes {
        process.stop().await;
    }
}
