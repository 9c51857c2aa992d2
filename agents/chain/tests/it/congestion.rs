//! Blocks that are dear all of a sudden: fees follow, up to a cap, and what is beyond it is waited out.

use std::path::Path;
use std::time::Duration;

use alloy::consensus::Transaction;
use alloy::providers::Provider;
use alloy::providers::ext::AnvilApi;
use futures::FutureExt;
use tensorlink_chain::{AlloyChain, Pace};
use tensorlink_node::ports::chain::{Event, Role};
use tensorlink_node::ports::{Call, Chain, ChainError};
use tensorlink_types::U256;

use crate::world::{QUICK, USER, WORKER, World, commit_first, sno};

const GWEI: u128 = 1_000_000_000;
/// Most that is ever offered for a unit of gas.
const CAP: u128 = 1_000 * GWEI;
/// A raise comes within.
const RAISED: Duration = Duration::from_secs(10);

async fn post(world: &World, user: &AlloyChain) -> Call {
    let now = user.head().await.unwrap().timestamp;
    Call::Post { terms: world.terms(now), deposit: U256::from(5) }
}

/// The most that any waiting transaction of the user offers.
async fn offered(world: &World) -> Option<u128> {
    let pool: serde_json::Value = world.provider.client().request("txpool_content", ()).await.unwrap();
    let waiting = pool["pending"].as_object().unwrap().values().chain(pool["queued"].as_object().unwrap().values());
    let fees = waiting.flat_map(|of| of.as_object().unwrap().values()).map(|transaction| {
        let fee = transaction["maxFeePerGas"].as_str().unwrap();
        u128::from_str_radix(fee.trim_start_matches("0x"), 16).unwrap()
    });
    fees.max()
}

/// Waits for an offer of so much at least; no block is made meanwhile.
async fn await_offer(world: &World, least: u128) -> u128 {
    let raised = async {
        loop {
            match offered(world).await {
                Some(offer) if offer >= least => return offer,
                _ => tokio::time::sleep(QUICK.poll).await,
            }
        }
    };
    tokio::time::timeout(RAISED, raised).await.expect("so much is offered in time")
}

/// What a call is mined at that was sent before blocks came to cost so much.
async fn fee_in_a_spike(gwei: u64) -> u128 {
    let least = u128::from(gwei) * GWEI;
    let world = World::new().await;
    let user = world.chain(USER).await;
    world.automine(false).await;
    let spike = async {
        let before = await_offer(&world, 1).await;
        assert!(before < least, "cheap at first: {before}");
        world.dear_block(gwei).await;
        let offer = await_offer(&world, least).await;
        world.dear_block(gwei).await;
        offer
    };
    let call = post(&world, &user).await;
    let (sent, offer) = tokio::join!(user.send(call), spike);
    let sent = sent.unwrap();
    assert!(matches!(sent.events[..], [Event::JobPosted { .. }]));
    assert_eq!(user.job_count().await.unwrap(), 1);
    let mined = world.provider.get_transaction_by_hash(sent.transaction).await.unwrap().unwrap();
    assert!(mined.max_fee_per_gas() <= CAP && offer <= CAP);
    mined.max_fee_per_gas()
}

/// By eighths it would take longer than anybody has patience.
#[tokio::test]
async fn a_spike_is_followed_at_the_next_raise() {
    let fee = fee_in_a_spike(100).await;
    assert!(fee >= 100 * GWEI, "{fee}");
}

/// The market's estimate is twice the price of a block, so that it holds for some blocks: what is beyond the cap of it
/// is left out, and what the block costs is still offered.
#[tokio::test]
async fn an_estimate_beyond_the_cap_is_offered_up_to_the_cap() {
    assert_eq!(fee_in_a_spike(600).await, CAP);
}

#[tokio::test]
async fn a_price_beyond_the_cap_is_waited_out() {
    let world = World::new().await;
    let user = world.chain(USER).await;
    world.automine(false).await;
    let spike = async {
        await_offer(&world, 1).await;
        for _ in 0..20 {
            world.dear_block(1_500).await;
            assert!(offered(&world).await.is_none_or(|offer| offer <= CAP));
            tokio::time::sleep(QUICK.bump_after / 10).await;
        }
        world.dear_block(1).await;
        world.automine(true).await;
        world.provider.anvil_mine(Some(1), None).await.unwrap();
    };
    let call = post(&world, &user).await;
    let (sent, ()) = tokio::join!(user.send(call), spike);
    sent.unwrap();
    assert_eq!(user.job_count().await.unwrap(), 1);
    assert_eq!(world.provider.get_transaction_count(user.account()).await.unwrap(), 1, "mined once");
}

#[tokio::test]
async fn a_call_made_while_the_price_is_beyond_the_cap_can_be_made_again() {
    let world = World::new().await;
    let user = world.chain(USER).await;
    world.automine(false).await;
    world.dear_block(3_000).await;
    let call = post(&world, &user).await;
    let refused = user.send(call).await.unwrap_err();
    assert!(matches!(&refused, ChainError::Unavailable(why) if why.contains("--max-fee")), "{refused:?}");
    world.dear_block(1).await;
    world.automine(true).await;
    let call = post(&world, &user).await;
    user.send(call).await.unwrap();
    assert_eq!(user.job_count().await.unwrap(), 1, "the first was not sent");
}

/// Of one that has money for a unit of gas up to so many gwei.
async fn capped(world: &World, gwei: u128, pace: Pace) -> AlloyChain {
    let mut config = world.config(USER, world.anvil.endpoint(), 0);
    config.limits.max_fee = gwei * GWEI;
    AlloyChain::connect_at(config, pace).await.unwrap()
}

#[tokio::test]
async fn the_cap_is_that_of_the_configuration() {
    let world = World::new().await;
    let user = capped(&world, 50, QUICK).await;
    world.automine(false).await;
    let spike = async {
        await_offer(&world, 1).await;
        world.dear_block(30).await;
        // Twice the price of a block is more than the cap.
        assert_eq!(await_offer(&world, 40 * GWEI).await, 50 * GWEI);
        for _ in 0..10 {
            world.dear_block(80).await;
            assert!(offered(&world).await.is_none_or(|offer| offer <= 50 * GWEI));
            tokio::time::sleep(QUICK.bump_after / 5).await;
        }
        world.dear_block(1).await;
        world.automine(true).await;
        world.mine(1).await;
    };
    let call = post(&world, &user).await;
    let (sent, ()) = tokio::join!(user.send(call), spike);
    let mined = world.provider.get_transaction_by_hash(sent.unwrap().transaction).await.unwrap().unwrap();
    assert!(mined.max_fee_per_gas() <= 50 * GWEI);
}

/// Does something while each block is dear.
async fn while_dear<T>(world: &World, gwei: u64, done: impl Future<Output = T>) -> T {
    let blocks = async {
        loop {
            world.dear_block(gwei).await;
            tokio::time::sleep(QUICK.bump_after / 4).await;
        }
    };
    tokio::select! {
        done = done => done,
        () = blocks => unreachable!(),
    }
}

/// Gives its transactions up soon.
const HASTY: Pace = Pace { bump_after: Duration::from_millis(200), bumps: 1, ..QUICK };

async fn count(world: &World, user: &AlloyChain) -> (u64, u64) {
    let mined = world.provider.get_transaction_count(user.account()).await.unwrap();
    (user.job_count().await.unwrap(), mined)
}

#[tokio::test]
async fn what_was_given_up_is_raised_where_later_ones_wait_behind_it() {
    let world = World::new().await;
    let pace = Pace { bumps: 3, ..HASTY };
    let user = capped(&world, 1_000, pace).await;
    world.automine(false).await;
    let now = user.head().await.unwrap().timestamp;
    let call = |deposit: u64| Call::Post { terms: world.terms(now), deposit: U256::from(deposit) };
    let given_up = user.send(call(1)).await.unwrap_err();
    assert!(matches!(given_up, ChainError::Pending(_)), "{given_up:?}");
    world.dear_block(100).await;
    assert_eq!(count(&world, &user).await, (0, 0), "it is too cheap");
    while_dear(&world, 100, user.send(call(2))).await.unwrap();
    assert_eq!(count(&world, &user).await, (2, 2));
}

#[tokio::test]
async fn a_call_that_is_made_again_takes_up_the_transaction_that_was_given_up() {
    let world = World::new().await;
    let user = capped(&world, 1_000, HASTY).await;
    world.automine(false).await;
    let call = post(&world, &user).await;
    for _ in 0..3 {
        let given_up = user.send(call.clone()).await.unwrap_err();
        assert!(matches!(given_up, ChainError::Pending(_)), "{given_up:?}");
        assert_eq!(world.pending().await, 1, "the same one");
    }
    while_dear(&world, 1, user.send(call)).await.unwrap();
    assert_eq!(count(&world, &user).await, (1, 1));
}

/// What the user's transaction of a nonce sends, wei, of those that wait.
async fn value_of(world: &World, nonce: &str) -> Option<String> {
    let pool: serde_json::Value = world.provider.client().request("txpool_content", ()).await.unwrap();
    let of = pool["pending"].as_object().unwrap().values().next()?;
    of[nonce]["value"].as_str().map(str::to_owned)
}

/// Sent before this process started, or by hand.
#[tokio::test]
async fn a_cheap_transaction_of_unknown_origin_does_not_stand_in_the_way_for_ever() {
    let world = World::new().await;
    let user = capped(&world, 1_000, QUICK).await;
    world.automine(false).await;
    let cheap = serde_json::json!({
        "from": user.account(), "to": user.account(), "value": "0x1", "gas": "0x5208",
        "maxFeePerGas": "0x77359400", "maxPriorityFeePerGas": "0x1",
    });
    let _: serde_json::Value = world.provider.client().request("eth_sendTransaction", (cheap,)).await.unwrap();
    assert_eq!(value_of(&world, "0").await.as_deref(), Some("0x1"));
    let replaced = async {
        while value_of(&world, "0").await.as_deref() != Some("0x0") {
            tokio::time::sleep(QUICK.poll).await;
        }
        world.automine(true).await;
        world.mine(1).await;
    };
    let call = post(&world, &user).await;
    let (sent, ()) = tokio::join!(user.send(call), tokio::time::timeout(RAISED, replaced).map(Result::unwrap));
    sent.unwrap();
    assert_eq!(count(&world, &user).await, (1, 2), "an empty one took its place");
}

#[tokio::test]
async fn a_budget_that_is_used_up_holds_back_what_can_wait_and_nothing_else() {
    let world = World::new().await;
    let (user, rich) = (world.chain(USER).await, world.chain(WORKER).await);
    let job = world.running_job(&user, &rich).await;
    let stake = || Call::Stake { role: Role::Worker, amount: sno("1") };
    let first = rich.send(stake()).await.unwrap();
    let fee = rich.mined(first.transaction).await.unwrap().unwrap().fee;
    let folder = tempfile::tempdir().unwrap();
    let worker = async || {
        let mut config = world.config(WORKER, world.anvil.endpoint(), 0);
        config.limits.daily = Some(fee * U256::from(8));
        config.limits.ledger = Some(folder.path().join("gas.json"));
        AlloyChain::connect_at(config, QUICK).await.unwrap()
    };
    let poor = worker().await;
    let mut sent = 0;
    let held = loop {
        match poor.send(stake()).await {
            Ok(_) => sent += 1,
            Err(error) => break error,
        }
        assert!(sent < 100, "it ends");
    };
    assert!(sent > 0 && matches!(held, ChainError::OverBudget { .. }), "{sent}: {held:?}");
    // Claims would be lost.
    commit_first(&poor, job).await;
    drop(poor);
    let again = worker().await;
    let held = again.send(stake()).await.unwrap_err();
    assert!(matches!(held, ChainError::OverBudget { spent, .. } if spent > fee), "a restart remembers: {held:?}");
    world.wait(25 * 3_600).await;
    again.send(stake()).await.unwrap();
}

/// Who has to answer in time sees its transaction raised to the end, and can send another, within the time of one move.
#[test]
fn patience_is_shorter_than_the_shortest_deadline() {
    let parameters = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/parameters.toml");
    let table: toml::Table = std::fs::read_to_string(parameters).unwrap().parse().unwrap();
    let grace = u64::try_from(table["move_grace_seconds"].as_integer().unwrap()).unwrap();
    let Pace { bump_after, bumps, .. } = Pace::default();
    assert!(bump_after * (bumps + 1) * 3 <= Duration::from_secs(grace), "three calls in {grace} s");
}
