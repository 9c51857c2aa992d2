//! A served model that loses a worker goes on by itself, in another job, without that worker: texts end in the words
//! that they would have ended in, and each is paid once.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use tensorlink_node::ports::chain::Event;
use tensorlink_types::{Address, JobId, Lane, U256};

use crate::harness::{LIMIT, Network, Serving, Shape, USER, address, eventually, sno, whole_sno, worker_address};

const TOKENS: u32 = 200;
const SHAPE: Shape =
    Shape { stages: 2, replicas: 1, longest: 256, integers: true, window: 15, failover: 5, security: 1 };

#[tokio::test(flavor = "multi_thread")]
async fn a_text_goes_on_with_another_worker_when_its_own_is_gone() {
    let mut network = Network::start(3).await;
    network.start_workers(0..3).await;
    let mut serving = Serving::start_decoder(&mut network, SHAPE).await;
    let (undisturbed, end) = serving.stream("the cat", TOKENS).await.unwrap().rest().await;
    let usage = end["usage"].clone();

    let mut text = serving.stream("the cat", TOKENS).await.unwrap();
    let begun = text.next().await.unwrap()["choices"][0]["text"].as_str().unwrap().to_owned();
    let gone = hired(&network, JobId(1)).await[1];
    network.cut_worker((0..3).find(|number| worker_address(*number) == gone).unwrap());
    let cut = Instant::now();
    let id = text.id.clone();
    let (rest, end) = text.rest().await;
    eprintln!("a text ends {:.1} s after its worker was killed", cut.elapsed().as_secs_f64());
    assert_eq!((begun + &rest, &end["usage"]), (undisturbed.clone(), &usage), "the same tokens: {end}");
    assert!(!hired(&network, JobId(2)).await.contains(&gone));
    let receipts = serving.receipts(&id).await;
    assert_eq!((receipts["texts"][0]["job"].as_u64(), id.split('-').next()), (Some(2), Some("1")), "{receipts}");

    let status = network.ok(USER, &["--json", "job", "status", "1"]).await.json().remove(0);
    assert_eq!(status["next"], 2, "{status}");

    // Whoever opens a gateway to the first job is led to the second, and finds the receipts.
    serving.cut_gateway(&mut network);
    serving.open_gateway(&mut network).await;
    assert_eq!(serving.receipts(&id).await, receipts);
    let (again, _) = serving.stream("the cat", TOKENS).await.unwrap().rest().await;
    assert_eq!(again, undisturbed);

    network.ok(USER, &["job", "cancel", "2"]).await;
    let (first, second) = (settled(&network, JobId(1)).await, settled(&network, JobId(2)).await);
    let text = u32::try_from(usage["total_tokens"].as_u64().unwrap() - 1).unwrap();
    // Who is gone does not redeem its voucher either.
    assert!(!first.tokens.is_empty() && first.tokens.values().all(|tokens| *tokens == text), "{first:?}");
    let paid: Vec<u32> = second.tokens.into_values().collect();
    assert_eq!(paid, [2 * text; 2], "one in the place of the text that was lost, and another");
    assert_eq!(first.deposit, sno(Serving::DEPOSIT));
    assert!(second.deposit < first.deposit, "no more is put up than was left");
    assert_eq!(first.came_back + second.came_back, first.deposit + second.deposit, "nothing is lost");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_is_served_on_when_a_worker_is_convicted() {
    let mut network = Network::start(3).await;
    network.start_workers([0, 2]).await;
    network.start_villain_as(1, &[("OPERATOR", "head_mix")]).await;
    let serving = Serving::start_decoder(&mut network, Shape { longest: 32, ..SHAPE }).await;
    let (wrong, _, id) = serving.complete("the cat", 1).await.unwrap();
    assert!(id.starts_with("1-") && !wrong.is_empty());
    let path = network.path("receipt.json");
    std::fs::write(&path, serving.receipts(&id).await.to_string()).unwrap();
    let audited = network.run(USER, &["challenge", "--receipt", path.to_str().unwrap()]).await;
    assert!(audited.ok && audited.stdout.contains("convicted"), "{audited:?}");
    let id = served_by_the_next(&serving).await;
    assert!(!hired(&network, JobId(2)).await.contains(&worker_address(1)));
    std::fs::write(&path, serving.receipts(&id).await.to_string()).unwrap();
    let audited = network.run(USER, &["challenge", "--receipt", path.to_str().unwrap()]).await;
    assert!(audited.ok && audited.stdout.matches("right").count() == 2, "{audited:?}");
}

/// Two workers of each stage compute the same text. No wrong word reaches the reader, though the liar is convicted only
/// meanwhile, and everybody in the next job is paid for the text.
#[tokio::test(flavor = "multi_thread")]
async fn where_two_must_agree_a_liar_is_convicted_and_its_words_are_not_delivered() {
    let mut network = Network::start(5).await;
    network.start_workers([0, 2, 3]).await;
    network.start_villain_as(1, &[("OPERATOR", "head_mix")]).await;
    let shape = Shape { longest: 32, replicas: 2, security: 2, ..SHAPE };
    let serving = Serving::start_decoder(&mut network, shape).await;
    network.start_workers([4]).await;
    let liar = worker_address(1);
    let asked = Instant::now();
    let (said, _, id) = serving.complete("the cat", 4).await.unwrap();
    eprintln!("a text ends {:.1} s after its workers began to differ", asked.elapsed().as_secs_f64());
    let receipts = serving.receipts(&id).await;
    let of_text = &receipts["texts"][0];
    assert_eq!((id.split('-').next(), of_text["job"].as_u64()), (Some("1"), Some(2)), "{receipts}");
    assert_eq!(of_text["stages"].as_array().unwrap().len(), 4, "two workers of each stage: {receipts}");
    network
        .await_event("the liar is convicted", LIMIT, |event| match event {
            Event::Convicted { worker, lane, .. } if *worker == liar && lane.job == JobId(1) => Some(()),
            _ => None,
        })
        .await;
    assert!(!hired(&network, JobId(2)).await.contains(&liar));
    let kept = eventually("nothing is left to prove", LIMIT, async || {
        let differences = std::fs::read_dir(network.path(&format!("data-{USER}/differences"))).ok()?;
        (differences.count() == 0).then_some(())
    });
    kept.await;

    let path = network.path("receipt.json");
    std::fs::write(&path, receipts.to_string()).unwrap();
    let audited = network.run(USER, &["challenge", "--receipt", path.to_str().unwrap()]).await;
    assert!(audited.ok && audited.stdout.matches("right").count() == 4, "{audited:?}");
    assert_eq!(serving.complete("the cat", 4).await.unwrap().0, said);

    network.ok(USER, &["job", "cancel", "2"]).await;
    let (first, second) = (settled(&network, JobId(1)).await, settled(&network, JobId(2)).await);
    assert!(first.tokens.is_empty(), "nobody is paid for a text that was not delivered: {first:?}");
    let paid: Vec<u32> = second.tokens.into_values().collect();
    assert_eq!(paid, [paid[0]; 4], "all four, for both texts");
    let slashed = network.events().await.into_iter().filter(|at| matches!(at.event, Event::Convicted { .. }));
    assert_eq!(slashed.count(), 1);
}

/// A worker that other work keeps busy makes room for another. Texts go on meanwhile, in the same words, and it is paid
/// for what it did.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_has_become_slow_is_replaced() {
    let mut network = Network::start(3).await;
    network.start_workers(0..3).await;
    let serving = Serving::start_decoder(&mut network, SHAPE).await;
    let (undisturbed, _) = serving.stream("the cat", TOKENS).await.unwrap().rest().await;
    let slow = hired(&network, JobId(1)).await[1];
    let number = (0..3).find(|number| worker_address(*number) == slow).unwrap();
    let slowed = Instant::now();
    let texts = async {
        loop {
            let text = serving.stream("the cat", TOKENS).await.unwrap();
            let id = text.id.clone();
            assert_eq!(text.rest().await.0, undisturbed);
            let receipts = serving.receipts(&id).await;
            if receipts["texts"][0]["job"] == 2 {
                break;
            }
        }
    };
    let busy = async {
        loop {
            network.hang_worker(number, Duration::from_millis(500)).await;
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        () = texts => {}
        () = busy => unreachable!("it has no end"),
        () = tokio::time::sleep(LIMIT) => panic!("the slow worker is not replaced"),
    }
    eprintln!("a text of other workers ends {:.1} s after one became slow", slowed.elapsed().as_secs_f64());
    // It may have been left hanging.
    network.hang_worker(number, Duration::ZERO).await;
    network.said("gateway", "a worker has become slow", LIMIT).await;
    assert!(!hired(&network, JobId(2)).await.contains(&slow));
    network.ok(USER, &["job", "cancel", "2"]).await;
    let first = settled(&network, JobId(1)).await;
    assert_eq!(first.tokens.len(), 2, "both are paid: {first:?}");
    assert!(!network.events().await.iter().any(|at| matches!(at.event, Event::Convicted { .. })));
}

/// Who has no more than the deposit goes on once that is back, also after an interruption.
#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_waits_for_its_escrow_goes_on_after_an_interruption() {
    let mut network = Network::start(3).await;
    network.start_workers(0..3).await;
    let mut serving = Serving::start_decoder(&mut network, Shape { longest: 32, ..SHAPE }).await;
    let (said, ..) = serving.complete("the cat", 1).await.unwrap();
    let left = whole_sno(network.owned(address(USER)).await - sno(Serving::DEPOSIT) / U256::from(2));
    network.ok(USER, &["stake", &left.to_string()]).await;
    let gone = hired(&network, JobId(1)).await[0];
    network.cut_worker((0..3).find(|number| worker_address(*number) == gone).unwrap());
    network.said("gateway", "waiting until the escrow of job 1 is back", LIMIT).await;
    serving.cut_gateway(&mut network);
    serving.open_gateway(&mut network).await;
    served_by_the_next(&serving).await;
    assert_eq!(serving.complete("the cat", 1).await.unwrap().0, said);
    settled(&network, JobId(1)).await;
}

/// Asks until the second job answers; meanwhile nobody is refused for long. The id of that answer's receipts.
async fn served_by_the_next(serving: &Serving) -> String {
    let answer = eventually("an answer of the next job", LIMIT, async || {
        let (_, _, id) = serving.complete("the cat", 1).await.ok()?;
        let receipts = serving.receipts(&id).await;
        (receipts["texts"][0]["job"] == 2).then_some(id)
    });
    answer.await
}

/// Who has the lanes of a job, in their order.
async fn hired(network: &Network, of: JobId) -> Vec<Address> {
    let offers = network.events().await.into_iter().find_map(|at| match at.event {
        Event::JobAccepted { job, offers } if job == of => Some(offers),
        _ => None,
    });
    offers.expect("workers").into_iter().map(|offer| offer.worker).collect()
}

/// What a job came to, in wei but for the tokens.
#[derive(Debug)]
struct Outcome {
    deposit: U256,
    /// By lane, where any were paid.
    tokens: BTreeMap<Lane, u32>,
    /// To workers, auditors and its user.
    came_back: U256,
}

/// Waits for the settlement of a job that was closed.
async fn settled(network: &Network, of: JobId) -> Outcome {
    let refund = network.await_event("the job is settled", LIMIT, |event| match event {
        Event::JobSettled { job, refund } if *job == of => Some(*refund),
        _ => None,
    });
    let mut outcome = Outcome { deposit: U256::ZERO, tokens: BTreeMap::new(), came_back: refund.await };
    for at in network.events().await {
        match at.event {
            Event::JobPosted { job, deposit, .. } if job == of => outcome.deposit = deposit,
            Event::Paid { lane, units, amount, .. } if lane.job == of => {
                *outcome.tokens.entry(lane).or_default() += units;
                outcome.came_back += amount;
            }
            Event::AuditRevealed { job, fee, .. } if job == of => outcome.came_back += fee,
            _ => {}
        }
    }
    outcome
}
