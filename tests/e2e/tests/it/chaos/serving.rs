//! Texts served in the same weather: an answer is right or there is none, what was delivered is paid, and nothing else.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::Value;
use tensorlink_node::ports::chain::Event;
use tensorlink_types::{Address, U256};
use tokio_util::sync::CancellationToken;

use super::agents::{Agents, Errand, JOB};
use super::storm::{STORM, storm};
use super::wire::{Weather, Wire};
use super::{calm, clocks, deepest, seconds, started_within, verdict, weather};
use crate::harness::{Completed, LOOK, Network, Report, Served, Serving, Shape, USER, sno};

/// Two stages, each twice; what was redeemed last can be redeemed again when it is undone.
fn shape() -> Shape {
    Shape { replicas: 2, window: seconds(30, 1).try_into().unwrap(), ..Shape::default() }
}

const PROMPT: &str = "the cat";
/// Each is a text of its own.
const SEEDS: [u64; 4] = [1, 2, 3, 4];

/// Texts by their seeds, what came of those that fell silent, how often one came, and the tokens of all whole ones.
#[derive(Default)]
struct Delivered {
    texts: BTreeMap<u64, String>,
    cut: Vec<(u64, String)>,
    answers: usize,
    tokens: u64,
}

impl Delivered {
    /// An answer, which must be the text of its seed, or its beginning if it fell silent.
    fn take(&mut self, seed: u64, Completed { text, tokens, cut }: Completed) {
        self.answers += 1;
        if cut {
            // Whoever was computing it may be gone: of such a text nobody has signed what a stage is paid for.
            self.cut.push((seed, text));
            return;
        }
        let known = self.texts.entry(seed).or_insert_with(|| text.clone());
        assert_eq!(*known, text, "seed {seed} is one text");
        // What was chosen last went through no stage.
        self.tokens += tokens - 1;
    }

    /// Once there is a whole text of every seed.
    fn assert_cut_are_beginnings(&self) {
        for (seed, cut) in &self.cut {
            assert!(self.texts[seed].starts_with(cut), "seed {seed}: {cut:?} of {:?}", self.texts[seed]);
        }
    }

    /// All texts, one after another, while the agents are tended.
    async fn ask_all(&mut self, serving: &Serving, (network, agents): (&Network, &mut Agents)) {
        let began = Instant::now();
        for seed in SEEDS {
            let answer = loop {
                if let Some(answer) = serving.complete_if_possible(PROMPT, seed).await {
                    break answer;
                }
                assert!(began.elapsed() < calm(), "nobody answers");
                agents.tend(network);
                tokio::time::sleep(LOOK).await;
            };
            self.take(seed, answer);
        }
    }
}

/// Asks for a text again and again; what came of it.
async fn insist(serving: &Serving, seed: u64, over: &CancellationToken) -> Vec<Completed> {
    let mut answers = Vec::new();
    while let Some(answer) = over.run_until_cancelled(serving.complete_if_possible(PROMPT, seed)).await {
        answers.extend(answer);
        tokio::time::sleep(LOOK).await;
    }
    answers
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_is_right_or_unpaid_whatever_fails() {
    let ((length, seed), began) = (weather(), Instant::now());
    let lanes = usize::from(shape().stages * shape().replicas);
    let network = &Network::staked(lanes, clocks).await;
    let served = Served::decoder(network, shape());
    let front = Wire::new(Weather::FAIR, seed).await;
    let mut serving = Serving::at(served.clone(), JOB, &format!("127.0.0.1:{}", front.port));
    let mut agents = Agents::new(network, Errand::Serving(served, front), seed).await;
    agents.start(network).await;
    assert!(agents.see_done(network, started_within()).await, "the job is not posted");
    agents.go_on();
    let key = network.path(&format!("data-{USER}")).join("gateway.key");
    let opened = agents.see(network, started_within(), async |_| key.exists());
    assert!(opened.await, "the gateway does not open");
    serving.take_key(&key);
    let mut delivered = Delivered::default();
    delivered.ask_all(&serving, (network, &mut agents)).await;
    println!("chaos: texts are served after {:.0} s", began.elapsed().as_secs_f32());

    agents.set_weather(STORM);
    let over = CancellationToken::new();
    let asking = futures::future::join_all(SEEDS.map(|seed| insist(&serving, seed, &over)));
    let storming = async {
        storm(network, &mut agents, length, seed).await;
        over.cancel();
    };
    let (answers, ()) = futures::join!(asking, storming);
    for (seed, answers) in SEEDS.into_iter().zip(answers) {
        answers.into_iter().for_each(|answer| delivered.take(seed, answer));
    }
    println!("chaos: {} answers so far, {} of them cut", delivered.answers, delivered.cut.len());
    delivered.ask_all(&serving, (network, &mut agents)).await;
    delivered.assert_cut_are_beginnings();

    network.ok(USER, &["job", "cancel", &JOB.to_string()]).await;
    let limit = calm() + Duration::from_secs(2 * u64::from(shape().window) + deepest());
    let settled = agents.see(network, limit, async |_| refund(network).await.is_some());
    assert!(settled.await, "the job does not end");
    println!("chaos: the job is settled after {:.0} s", began.elapsed().as_secs_f32());
    agents.assert_nobody_fell();
    let report = Report { json: Value::Null, events: network.events().await };
    verdict::nobody_was_convicted(&report);
    what_was_delivered_is_paid(&report, delivered.tokens);
    let released = agents.see(network, calm(), async |_| {
        for worker in 0..lanes {
            if network.stake(worker).await.locked > 0 {
                return false;
            }
        }
        true
    });
    assert!(released.await, "a stake stays locked");
    agents.stop();
    verdict::nothing_is_stuck(network).await;
}

async fn refund(network: &Network) -> Option<U256> {
    network.events().await.into_iter().find_map(|at| match at.event {
        Event::JobSettled { job, refund } if job.0 == JOB => Some(refund),
        _ => None,
    })
}

/// The escrow went to workers, auditors and back; and each stage has the price of every token that the user got,
/// whichever replica it came from.
fn what_was_delivered_is_paid(report: &Report, tokens: u64) {
    let stages = report.pick(|event| match event {
        Event::JobAccepted { offers, .. } => Some(offers.clone()),
        _ => None,
    });
    let stages: BTreeMap<Address, u16> = stages.iter().flatten().map(|offer| (offer.worker, offer.stage)).collect();
    let paid = report.pick(|event| match event {
        Event::Paid { worker, units, amount, .. } => Some((stages[worker], u64::from(*units), *amount)),
        _ => None,
    });
    let fees = report.audits().into_iter().map(|(.., fee)| fee);
    let refunds = report.pick(|event| match event {
        Event::JobSettled { refund, .. } => Some(*refund),
        _ => None,
    });
    let sum: U256 = paid.iter().map(|(.., amount)| *amount).chain(fees).chain(refunds).sum();
    assert_eq!(sum, sno(Serving::DEPOSIT), "{paid:?}");
    for stage in 0..shape().stages {
        let units: u64 = paid.iter().filter(|(at, ..)| *at == stage).map(|(_, units, _)| units).sum();
        println!("chaos: stage {stage} is paid for {units} tokens; {tokens} were delivered");
        assert!(units >= tokens, "stage {stage} is paid for {units} of {tokens} tokens that were delivered");
    }
}
