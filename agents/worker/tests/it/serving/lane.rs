//! What a lane answers to its user, and to who only says so.

use tensorlink_node::wire::rpc::{Advance, Request, Response};
use tensorlink_num::Tensor;
use tensorlink_proof::commit::tensor_root;
use tensorlink_proof::merkle::list_root;

use crate::serving::world::{World, text, voucher};
use crate::support::serving::{LONGEST, TOKENS};
use crate::support::{identity, lane};

fn declined(response: Response) -> String {
    match response {
        Response::Declined(reason) => reason,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn two_stages_answer_a_text_and_their_receipts_fit() {
    let world = World::new().await;
    let processes = [world.start(0).await, world.start(1).await];
    let (input, hidden) = (text(3), world.computed(0, &text(3)));
    let output = world.computed(1, &hidden);
    let (first, rows) = world.stage(0, 8, &input).await;
    assert_eq!(rows, hidden.to_bytes());
    let (second, vector) = world.stage(1, 8, &hidden).await;
    assert_eq!(vector, output.to_bytes());
    assert_eq!((first.claim.interval, first.tokens, second.tokens), (8, 3, 3));
    assert_eq!(first.logs.toNext, second.logs.fromPrevious);
    assert_eq!(first.logs.fromPrevious, list_root([tensor_root(&input)]));
    assert_eq!(second.logs.toNext, list_root([tensor_root(&output)]));

    // The answer was lost: the same receipt again, and only once in the list.
    assert_eq!(world.stage(0, 8, &input).await, (first.clone(), rows));
    let other = declined(world.advance(0, (8, 0), text(4).to_bytes(), true).await);
    assert!(other.contains("other tokens"), "{other}");
    let receipts = Request::Receipts { lane: lane(0), epoch: 1 };
    assert_eq!(world.ask_as(identity(0x66), 0, receipts).await, Response::Receipts(vec![first.claim]));
    for process in processes {
        process.stop().await;
    }
}

#[tokio::test]
async fn malformed_requests_are_declined_in_words_that_help_and_the_lane_goes_on() {
    let world = World::new().await;
    let process = world.start(0).await;
    let rows = text(3).to_bytes();
    let stranger = identity(0x66);
    let request = |inputs| Advance { lane: lane(0), text: 1, position: 0, inputs, last: true };
    let words = declined(world.ask_as(stranger.clone(), 0, Request::Advance(request(vec![rows.clone()]))).await);
    assert!(words.contains("user"), "{words}");
    let abandon = Request::Abandon { lane: lane(0), text: 1 };
    assert!(declined(world.ask_as(stranger.clone(), 0, abandon).await).contains("user"));
    let pay = Request::Pay { voucher: voucher(0, 1, 0, &[]), signature: vec![0; 65] };
    assert!(declined(world.ask_as(stranger, 0, pay).await).contains("user"));

    for (inputs, words) in [
        (vec![], "0 tensors"),
        (vec![rows.clone(), rows.clone()], "2 tensors"),
        (vec![rows[..7].to_vec()], "has 4"),
        (vec![vec![0; 4 * (LONGEST as usize + 1)]], "at most 5"),
        // The least 32-bit number is no mantissa.
        (vec![vec![0, 0, 0, 0x80]], "rows of text 1"),
        (vec![vec![]], "end a text"),
    ] {
        let reason = declined(world.ask(0, Request::Advance(request(inputs))).await);
        assert!(reason.contains(words), "{reason}");
    }
    let far = Advance { position: u32::MAX, ..request(vec![rows.clone()]) };
    assert!(declined(world.ask(0, Request::Advance(far)).await).contains("at most 5"));
    let elsewhere = Advance { lane: lane(1), ..request(vec![rows]) };
    assert!(declined(world.ask(0, Request::Advance(elsewhere)).await).contains("does not serve"));
    world.stage(0, 1, &text(3)).await;
    process.stop().await;
}

#[tokio::test]
async fn who_does_not_pay_is_served_up_to_a_limit() {
    let mut world = World::new().await;
    world.credit = Some(5);
    let process = world.start(0).await;
    let mut receipts = vec![world.stage(0, 0, &text(0)).await.0, world.stage(0, 1, &text(1)).await.0];
    let rows = || text(2).to_bytes();
    assert_eq!(world.advance(0, (2, 0), rows(), true).await, Response::Unpaid { tokens: 6 });

    let refused = [
        (voucher(0, 1, 6, &receipts[1..]), "ask for the epoch's receipts"),
        (voucher(0, 7, 6, &receipts), "epoch 1 is open"),
        (voucher(0, 1, TOKENS + 1, &receipts), "at most 1000"),
        (voucher(1, 1, 6, &receipts), "does not serve"),
    ];
    for (voucher, words) in refused {
        let reason = declined(world.pay(0, voucher).await);
        assert!(reason.contains(words), "{reason}");
    }
    let pay = Request::Pay { voucher: voucher(0, 1, 6, &receipts), signature: vec![27; 65] };
    assert!(declined(world.ask(0, pay).await).contains("not signed by the job's user"));
    assert_eq!(world.advance(0, (2, 0), rows(), true).await, Response::Unpaid { tokens: 6 }, "nothing was paid");

    assert_eq!(world.pay(0, voucher(0, 1, 6, &receipts)).await, Response::Done);
    receipts.push(world.stage(0, 2, &text(2)).await.0);
    assert!(declined(world.pay(0, voucher(0, 1, 5, &receipts)).await).contains("since the job began"));
    assert_eq!(world.pay(0, voucher(0, 1, 9, &receipts)).await, Response::Done);
    process.stop().await;
}

#[tokio::test]
async fn nothing_is_delivered_that_the_job_cannot_pay() {
    let world = World::new().await;
    world.chain.with(|ledger| {
        let Some(told) = &mut ledger.told else { return };
        if let tensorlink_node::ports::Event::JobPosted { terms, .. } = &mut told[0].event {
            terms.intervals = 5;
        }
    });
    let process = world.start(0).await;
    let input: Tensor = text(0);
    let (receipt, _) = world.stage(0, 0, &input).await;
    let reason = declined(world.advance(0, (1, 0), text(1).to_bytes(), true).await);
    assert!(reason.contains("pays for 5 tokens"), "{reason}");
    assert_eq!(world.stage(0, 0, &input).await.0, receipt, "what was paid for can be had again");
    process.stop().await;
}
