//! Agents in the worst weather: killed at random, their endpoints gone or silent, the chain reorganised, a third of all
//! packets lost and each 200 ms on its way; and somebody challenges honest claims, who is to be answered all the same.
//! In the end nobody is slashed, nothing is stuck, and what was computed is what a quiet run computes.
//!
//! | module | what lives there |
//! |---|---|
//! | `dice` | numbers that a seed fixes |
//! | `schedule` | what goes wrong and when |
//! | `wire` | what a bad network does to connections |
//! | `agents` | the agents and who starts them again |
//! | `storm` | has it happen |
//! | `verdict` | what must hold afterwards |
//! | `serving` | the same of texts that are served |

mod agents;
mod dice;
mod schedule;
mod serving;
mod storm;
mod verdict;
mod wire;

use std::time::{Duration, Instant};

use tensorlink_bindings::creation::Parameters;
use tensorlink_node::ports::Chain;
use tensorlink_node::ports::chain::Event;

use crate::harness::{Job, Network, OBSERVER, Subject, USER, address, eventually};
use agents::{Agents, Errand, JOB};
use storm::{STORM, see_challenged, storm};

/// As long, and with reorganisations as deep, as CI can wait. `script/chaos` sets all three.
const SECONDS: u64 = 75;
const SEED: u64 = 7;
const DEPTH: u64 = 8;

/// Steps that are trained in a minute of such weather, and half as many more: a job that is over too soon
/// proves little.
const STEPS_A_MINUTE: u64 = 12;
const STEPS_PER_INTERVAL: u32 = 2;

/// SNO of who challenges.
const BONDS: &str = "2000";

/// A number of the environment.
fn number(name: &str, default: u64) -> u64 {
    let Ok(text) = std::env::var(name) else { return default };
    text.parse().unwrap_or_else(|_| panic!("{name}={text} is not a number"))
}

/// Blocks of the deepest reorganisation, and so the confirmations that everybody waits for: what is confirmed is let go
/// of, and could not be claimed again.
fn deepest() -> u64 {
    number("CHAOS_DEPTH", DEPTH)
}

/// So many seconds, and so many more for each confirmation beyond those in CI: a block takes a second.
fn seconds(in_ci: u64, each: u64) -> u64 {
    in_ci + each * deepest().saturating_sub(DEPTH)
}

/// Until all is found, hired and confirmed.
fn started_within() -> Duration {
    Duration::from_secs(seconds(300, 8))
}

/// Everything that waits for a clock has waited for it.
fn calm() -> Duration {
    Duration::from_secs(seconds(600, 12))
}

/// An interval of the only replica that is left, which reveals each when the one before is confirmed.
fn alone() -> Duration {
    Duration::from_secs(deepest() + 4)
}

/// How long the storm is, and the seed that it comes from.
fn weather() -> (Duration, u64) {
    let (seconds, seed) = (number("CHAOS_SECONDS", SECONDS), number("CHAOS_SEED", SEED));
    println!("chaos: {seconds} s from seed {seed}, up to {} blocks undone", deepest());
    (Duration::from_secs(seconds), seed)
}

/// What takes hours on a public chain takes minutes here, and what takes minutes, like an outage, seconds: longer
/// clocks than in the other tests keep the proportion.
fn clocks(parameters: &mut Parameters) {
    parameters.disputeClock = seconds(150, 4).try_into().unwrap();
    parameters.sealWindow = seconds(240, 4).try_into().unwrap();
    parameters.unbondingDelay = alloy::primitives::aliases::U40::from(seconds(1_000, 10));
}

/// Two stages, each twice, for so long a storm.
fn job(storm: Duration) -> Job {
    let intervals = storm.as_secs() * STEPS_A_MINUTE / 60 / u64::from(STEPS_PER_INTERVAL);
    let steps = u32::try_from(intervals).unwrap() * STEPS_PER_INTERVAL;
    Job {
        stages: 2,
        replicas: 2,
        steps,
        steps_per_interval: STEPS_PER_INTERVAL,
        token: "sno",
        subject: Subject::Digits,
        challenge_window: seconds(20, 1).try_into().unwrap(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_honest_party_loses_anything_whatever_fails() {
    let ((length, seed), began) = (weather(), Instant::now());
    let job = job(length);
    let intervals = job.intervals();
    let network = Network::staked(job.lanes(), clocks);
    let network = &network.await;
    network.fund(address(OBSERVER), BONDS).await;
    let mut agents = Agents::new(network, Errand::Training(job), seed).await;
    agents.start(network).await;
    confirmed_start(network, &mut agents).await;
    println!("chaos: the job started after {:.0} s", began.elapsed().as_secs_f32());

    storm(network, &mut agents, length, seed).await;
    see_challenged(network, seed).await;
    println!("chaos: {} claims so far", claims(network).await);

    let (mut closed, limit) = (false, calm() + alone() * intervals);
    if !agents.see_done(network, limit).await {
        // Replicas do not wait for each other for ever (rule P-25). Where each has lost a stage, only the user can end
        // the job.
        assert!(verdict::nobody_can_go_on(network).await, "the job does not end");
        network.ok(USER, &["job", "cancel", &JOB.to_string()]).await;
        closed = true;
        assert!(agents.see_done(network, calm()).await, "the closed job does not end");
    }
    println!("chaos: the job is settled after {:.0} s", began.elapsed().as_secs_f32());
    agents.assert_nobody_fell();
    verdict::everything_is_right(network, &mut agents, closed).await;
}

/// Until everybody has seen the job start: what follows is about training, not about hiring. The weather turns before
/// anybody trains.
async fn confirmed_start(network: &Network, agents: &mut Agents) {
    eventually("the job starts", started_within(), async || {
        agents.tend(network);
        let head = network.chain().head().await.unwrap().number;
        let events = network.events().await;
        let started = events.into_iter().find(|at| matches!(at.event, Event::JobStarted { .. }))?;
        agents.set_weather(STORM);
        (started.block + deepest() < head).then_some(())
    })
    .await;
    agents.posted = true;
}

async fn claims(network: &Network) -> usize {
    let events = network.events().await;
    events.iter().filter(|at| matches!(at.event, Event::ClaimCommitted { .. })).count()
}
