//! A pretrained model served by staked workers: texts, receipts, vouchers, and a worker that lies about one element.

use tensorlink_node::ports::chain::{Event, Fault};
use tensorlink_types::{Address, U256};

use crate::harness::{
    LIMIT, Network, Output, PURSE, Serving, Shape, USER, VALIDATOR, address, eventually, sno, worker_address,
};

const TEXTS: [&str; 3] = ["A cat sleeps on the sofa.", "A kitten naps on a couch.", "Share prices fell today."];

fn cosine(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Writes the receipts of a response where a person would, and has them audited.
async fn challenge(network: &Network, serving: &Serving, id: &str) -> Output {
    let path = network.path("receipt.json");
    std::fs::write(&path, serving.receipts(id).await.to_string()).unwrap();
    network.run(USER, &["--json", "challenge", "--receipt", path.to_str().unwrap()]).await
}

/// Answers that were revealed: by whom, about how many tokens, for which fee.
async fn audits(network: &Network) -> Vec<(Address, u32, U256)> {
    let revealed = network.events().await.into_iter().filter_map(|at| match at.event {
        Event::AuditRevealed { auditor, answer, fee, .. } => Some((auditor, answer.step, fee)),
        _ => None,
    });
    revealed.collect()
}

/// Closes a job and waits for its settlement, which loses nothing of the escrow; returns tokens and wei paid to
/// each worker.
async fn settled(network: &Network, serving: &Serving) -> Vec<(usize, u32, U256)> {
    let job = serving.job.to_string();
    network.ok(USER, &["job", "cancel", &job]).await;
    let refund = network.await_event("the job is settled", LIMIT, |event| match event {
        Event::JobSettled { job, refund } if job.0 == serving.job => Some(*refund),
        _ => None,
    });
    let refund = refund.await;
    let mut paid: Vec<(usize, u32, U256)> = Vec::new();
    for at in network.events().await {
        let Event::Paid { worker, units, amount, .. } = at.event else { continue };
        let index = (0..4).find(|index| worker_address(*index) == worker).unwrap();
        match paid.iter_mut().find(|(known, ..)| *known == index) {
            Some((_, tokens, sum)) => (*tokens, *sum) = (*tokens + units, *sum + amount),
            None => paid.push((index, units, amount)),
        }
    }
    let sum: U256 = paid.iter().map(|(.., amount)| *amount).fold(U256::ZERO, |a, b| a + b);
    let fees: U256 = audits(network).await.iter().map(|(.., fee)| *fee).fold(U256::ZERO, |a, b| a + b);
    assert_eq!(sum + fees + refund, sno(Serving::DEPOSIT), "{paid:?}, {fees} for audits");
    paid
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_is_served_and_paid_for_token_by_token() {
    let mut network = Network::start(2).await;
    network.start_workers([0, 1]).await;
    let mut serving = Serving::start(&mut network).await;

    let (vectors, id) = serving.embed(&TEXTS).await.unwrap();
    assert!(cosine(&vectors[0], &vectors[1]) > 0.6 && cosine(&vectors[0], &vectors[2]) < 0.2);
    let receipts = serving.receipts(&id).await;
    let first = receipts["texts"][0].clone();
    assert_eq!(receipts["texts"].as_array().map(Vec::len), Some(TEXTS.len()), "{receipts}");
    assert_eq!(first["stages"].as_array().map(Vec::len), Some(2), "{first}");
    let tokens: u64 = receipts["texts"].as_array().unwrap().iter().map(|text| text["tokens"].as_u64().unwrap()).sum();
    let audited = challenge(&network, &serving, &id).await;
    assert!(audited.ok && audited.stdout.contains("right"), "{audited:?}");

    // Whoever dies comes back, and what was earned before is not lost.
    network.cut_worker(0);
    network.start_workers([0]).await;
    let (again, _) = serving.embed_eventually(&TEXTS[..1]).await;
    assert_eq!(again[0], vectors[0], "the same bits after a restart");
    serving.cut_gateway(&mut network);
    serving.open_gateway(&mut network).await;
    let (again, other) = serving.embed_eventually(&TEXTS[..1]).await;
    assert_eq!(again[0], vectors[0]);
    assert_ne!(other, id, "no number of a text is used twice");
    assert_eq!(serving.receipts(&id).await, receipts, "receipts outlive the gateway");

    let job = serving.job.to_string();
    for (who, told) in [(USER, true), (VALIDATOR, false)] {
        let status = network.ok(who, &["job", "status", &job]).await.stdout;
        assert_eq!(status.contains("computed in the setting standard"), told, "who posted it knows:\n{status}");
    }

    let paid = settled(&network, &serving).await;
    let least = u32::try_from(tokens).unwrap() + 2 * first["tokens"].as_u64().unwrap() as u32;
    assert_eq!(paid.iter().map(|(worker, ..)| *worker).collect::<Vec<_>>().len(), 2, "{paid:?}");
    assert!(paid.iter().all(|(_, tokens, _)| *tokens == least), "each is paid for {least} tokens: {paid:?}");
    for worker in [0, 1] {
        assert_eq!(network.stake(worker).await.locked, 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pairs_of_texts_are_scored_and_a_token_read_wrong_is_proven_by_its_receipt() {
    let mut network = Network::start(2).await;
    // Which word a token of a pair stands for is the first thing that is looked up.
    network.start_villain_as(0, &[("OPERATOR", "gather")]).await;
    network.start_workers([1]).await;
    let serving = Serving::start_reranker(&mut network).await;
    let (scored, id) = serving.rerank("the cat", &["sat on the mat", "a dog ran", "the cat"]).await.unwrap();
    let scores: Vec<f64> = scored.iter().map(|(_, score)| *score).collect();
    assert!(
        scores.is_sorted_by(|a, b| a >= b) && scores.iter().all(|score| *score > 0.0 && *score < 1.0),
        "{scored:?}"
    );
    let mut places: Vec<usize> = scored.iter().map(|(place, _)| *place).collect();
    places.sort_unstable();
    assert_eq!(places, [0, 1, 2]);
    let audited = challenge(&network, &serving, &id).await;
    assert!(audited.ok && audited.stdout.contains("convicted"), "{audited:?}");
    assert!(audited.stdout.contains("embedding.pair.words"), "the operator is named: {audited:?}");
    let convicted = network.await_event("the conviction", LIMIT, |event| match event {
        Event::Convicted { worker, fault, .. } => Some((*worker, *fault)),
        _ => None,
    });
    assert_eq!(convicted.await, (worker_address(0), Fault::Element));
    assert_eq!(U256::from(network.stake(1).await.bonded), sno("2000"), "the honest worker lost nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_flipped_element_of_attention_is_proven_by_its_receipt() {
    let mut network = Network::start(2).await;
    network.start_workers([0]).await;
    network.start_villain_as(1, &[("OPERATOR", "head_mix")]).await;
    let serving = Serving::start(&mut network).await;
    let (_, id) = serving.embed(&TEXTS[..1]).await.unwrap();
    let before = network.stake(1).await.bonded;
    let audited = challenge(&network, &serving, &id).await;
    assert!(audited.ok && audited.stdout.contains("convicted"), "{audited:?}");
    assert!(audited.stdout.contains("attention.mixed"), "the operator is named: {audited:?}");
    let convicted = eventually("the conviction", LIMIT, async || {
        network.events().await.into_iter().find_map(|at| match at.event {
            Event::Convicted { claim, worker, fault, claimed, recomputed, .. } => {
                Some((claim, worker, fault, claimed, recomputed))
            }
            _ => None,
        })
    });
    let (claim, worker, fault, claimed, recomputed) = convicted.await;
    assert_eq!((worker, fault), (worker_address(1), Fault::Element));
    assert_ne!(claimed, recomputed);
    assert!(network.stake(1).await.bonded < before);
    assert_eq!(U256::from(network.stake(0).await.bonded), sno("2000"), "the honest worker lost nothing");
    eventually("a closed job takes no texts", LIMIT, async || serving.embed(&TEXTS[..1]).await.err()).await;
    // The gateway has the user's files open, so that the names come from its peers.
    let explained = network.ok(USER, &["dispute", "explain", "--claim", &claim.to_string()]).await.stdout;
    for words in ["Its receipt", "attention.mixed", "(HeadMix)", &format!("  claimed   {claimed}")] {
        assert!(explained.contains(words), "`{words}` is not in:\n{explained}");
    }
}

/// Its worker computes the prompt at once and then token by token, and all of the text once more for its receipt.
#[tokio::test(flavor = "multi_thread")]
async fn one_flipped_element_of_a_continued_text_is_proven_by_its_receipt() {
    let mut network = Network::start(2).await;
    network.start_workers([0]).await;
    network.start_villain_as(1, &[("OPERATOR", "head_mix")]).await;
    let serving = Serving::start_decoder(&mut network, Shape::default()).await;
    let (_, _, id) = serving.complete("the cat", 1).await.unwrap();
    let audited = challenge(&network, &serving, &id).await;
    assert!(audited.ok && audited.stdout.contains("convicted"), "{audited:?}");
    assert!(audited.stdout.contains("attention.mixed"), "the operator is named: {audited:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_are_continued_on_workers_by_seed_and_every_token_has_its_receipt() {
    let mut network = Network::start(2).await;
    network.start_workers([0, 1]).await;
    let serving = Serving::start_decoder(&mut network, Shape::default()).await;
    let mut owed = 0;
    let mut texts = Vec::new();
    for seed in [1, 1, 2, 3] {
        let (text, tokens, id) = serving.complete("the cat", seed).await.unwrap();
        let receipts = serving.receipts(&id).await;
        // What was chosen last went through no stage.
        assert_eq!(receipts["texts"][0]["tokens"], tokens - 1, "{receipts}");
        owed += tokens - 1;
        let audited = challenge(&network, &serving, &id).await;
        assert!(audited.ok && audited.stdout.matches("right").count() == 2, "{audited:?}");
        texts.push(text);
    }
    assert_eq!(texts[0], texts[1], "one seed, one text");
    assert!(texts[1..].iter().any(|text| *text != texts[0]), "{texts:?}");
    let paid = settled(&network, &serving).await;
    assert!(paid.len() == 2 && paid.iter().all(|(_, tokens, _)| u64::from(*tokens) == owed), "{owed}: {paid:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_dies_in_the_middle_of_a_text_is_replaced_or_the_text_fails_unpaid() {
    const TOKENS: u32 = 200;
    let mut network = Network::start(2).await;
    network.start_workers([0, 1]).await;
    let serving = Serving::start_decoder(
        &mut network,
        Shape { stages: 1, replicas: 2, longest: 256, integers: true, ..Shape::default() },
    )
    .await;
    let stream = async || serving.stream("the cat", TOKENS).await.expect("a text");
    let (undisturbed, end) = stream().await.rest().await;
    let usage = end["usage"].clone();
    assert_eq!(usage["completion_tokens"], TOKENS, "{end}");

    // Texts begin at alternate replicas, so that one of these two is at the worker that dies.
    let mut texts = [stream().await, stream().await];
    let mut begun = [String::new(), String::new()];
    for (text, begun) in texts.iter_mut().zip(&mut begun) {
        begun.push_str(text.next().await.unwrap()["choices"][0]["text"].as_str().unwrap());
    }
    network.cut_worker(0);
    for (text, begun) in texts.into_iter().zip(begun) {
        let id = text.id.clone();
        let (rest, end) = text.rest().await;
        assert_eq!((begun + &rest, &end["usage"]), (undisturbed.clone(), &usage), "the same tokens: {end}");
        // Signed before the other worker dies as well.
        let audited = challenge(&network, &serving, &id).await;
        assert!(audited.ok && audited.stdout.contains("right"), "{audited:?}");
    }

    // With nobody left the text ends in words, and costs nothing.
    let mut text = stream().await;
    text.next().await.unwrap();
    network.cut_worker(1);
    let (_, end) = text.rest().await;
    assert!(end["error"]["message"].is_string(), "{end}");

    network.start_workers([0, 1]).await;
    let text = eventually("an answer", LIMIT, async || {
        let (text, end) = serving.stream("the cat", TOKENS).await?.rest().await;
        end["usage"].is_object().then_some(text)
    });
    assert_eq!(text.await, undisturbed);
    let paid = settled(&network, &serving).await;
    let tokens: u64 = paid.iter().map(|(_, tokens, _)| u64::from(*tokens)).sum();
    let owed = 4 * (usage["total_tokens"].as_u64().unwrap() - 1);
    assert_eq!(tokens, owed, "each delivered text is paid once: {paid:?}");
}

/// Epochs that a lane has redeemed, in the order of the chain, and the tokens of each voucher.
async fn redeemed(network: &Network) -> Vec<(u32, u32)> {
    let redeemed = network.events().await.into_iter().filter_map(|at| match at.event {
        Event::VoucherRedeemed { epoch, tokens, .. } => Some((epoch, tokens)),
        _ => None,
    });
    redeemed.collect()
}

/// An epoch pays for 16 texts of the greatest length, and is redeemed when the next has begun: here, across deaths on
/// either side.
#[tokio::test(flavor = "multi_thread")]
async fn epochs_are_redeemed_one_after_another_and_nobody_gets_stuck() {
    const LONGEST: u32 = 16;
    let mut network = Network::start(2).await;
    network.start_workers([0]).await;
    let shape = Shape { stages: 1, longest: LONGEST, ..Shape::default() };
    let mut serving = Serving::start_decoder(&mut network, shape).await;
    let (mut owed, mut texts) = (0, 0);
    for epoch in 1..=3 {
        while !redeemed(&network).await.iter().any(|(redeemed, _)| *redeemed == epoch) {
            let text = eventually("an answer", LIMIT, async || serving.complete("the cat", 1).await.ok());
            let (_, tokens, id) = text.await;
            // Its last word is out before its receipts are in, and what dies in between is paid to nobody.
            serving.receipts(&id).await;
            (owed, texts) = (owed + u32::try_from(tokens).unwrap() - 1, texts + 1);
            assert!(owed < 10 * 16 * LONGEST, "{texts} texts, and epoch {epoch} is not redeemed");
        }
        if epoch == 1 {
            network.cut_worker(0);
            network.start_workers([0]).await;
        } else if epoch == 2 {
            serving.cut_gateway(&mut network);
            serving.open_gateway(&mut network).await;
        }
    }
    let paid = settled(&network, &serving).await;
    assert_eq!(paid.iter().map(|(_, tokens, _)| *tokens).collect::<Vec<_>>(), [owed]);
    let all = redeemed(&network).await;
    assert!((1..).zip(&all).all(|(epoch, (redeemed, _))| epoch == *redeemed), "one after another: {all:?}");
    assert!(
        all.is_sorted_by_key(|(_, tokens)| *tokens) && all.last().is_some_and(|(_, last)| *last == owed),
        "{all:?}"
    );
    assert!(all.iter().take(3).all(|(epoch, tokens)| *tokens >= epoch * 16 * LONGEST), "each is full: {all:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn receipts_are_drawn_for_and_their_audits_paid_by_the_token() {
    // A validator that looks only at what it is drawn for: every receipt, being the only one.
    let mut network = Network::start_at_rate(2, "0").await;
    network.start_workers([0, 1]).await;
    // Four audits in a quarter of the window, on a busy machine.
    let serving = Serving::start_decoder(&mut network, Shape { window: 64, ..Shape::default() }).await;
    let (_, first, _) = serving.complete("the cat", 1).await.unwrap();
    let (_, second, _) = serving.complete("a dog", 2).await.unwrap();
    let paid = settled(&network, &serving).await;
    // Both texts in both stages; what was chosen last went through none.
    let mut audited: Vec<u32> = audits(&network).await.iter().map(|(_, tokens, _)| *tokens).collect();
    audited.sort_unstable();
    let mut expected = [first - 1, first - 1, second - 1, second - 1].map(|tokens| u32::try_from(tokens).unwrap());
    expected.sort_unstable();
    assert_eq!(audited, expected);
    let fees: U256 = audits(&network).await.iter().map(|(.., fee)| *fee).fold(U256::ZERO, |a, b| a + b);
    let work: U256 = paid.iter().map(|(.., amount)| *amount).fold(U256::ZERO, |a, b| a + b);
    let (most, rounded) = (work * U256::from(5) / U256::from(4), U256::from(4));
    assert!(fees <= most && fees + rounded >= most, "a quarter more than the work: {fees} of {work}");
    assert_eq!(network.owned(address(VALIDATOR)).await, sno(PURSE) + fees);
}
