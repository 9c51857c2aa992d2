//! Blocks that are dear all of a sudden: fees follow, up to a cap, and what is beyond it is waited out.

use std::path::Path;
use std::time::Duration;

use alloy::consensus::Transaction;
use alloy::providers::Provider;
use alloy::providers::ext::AnvilApi;
use tensorlink_chain::{AlloyChain, Pace};
use tensorlink_node::ports::chain::Event;
use tensorlink_node::ports::{Call, Chain, ChainError};
use tensorlink_types::U256;

use crate::world::{QUICK, USER, World};

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
    assert!(matches!(refused, ChainError::Unavailable(_)), "{refused:?}");
    world.dear_block(1).await;
    world.automine(true).await;
    let call = post(&world, &user).await;
    user.send(call).await.unwrap();
    assert_eq!(user.job_count().await.unwrap(), 1, "the first was not sent");
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
