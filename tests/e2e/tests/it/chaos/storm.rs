//! Has a schedule happen.

use std::time::Duration;

use alloy::eips::BlockNumberOrTag;
use alloy::primitives::{B256, Bytes};
use alloy::providers::Provider;
use tokio::time::Instant;

use super::agents::Agents;
use super::dice::Dice;
use super::schedule::{Fault, Whom, schedule};
use super::wire::{Mood, Weather};
use crate::harness::{LOOK, Network};

/// Between peers, all the time.
pub(super) const STORM: Weather = Weather { delay: Duration::from_millis(200), loss: 30 };
/// Of a hundred transactions of undone blocks, those that the new ones have, too; the others are lost, as to who sent them.
const REPEATED: u64 = 50;

/// What passes again at some time.
enum Mend {
    Endpoint(Whom),
    Peers(usize),
}

/// Faults for so long; afterwards nothing is out of order any more, though some may still be away.
pub(super) async fn storm(network: &Network, agents: &mut Agents, length: Duration, seed: u64) {
    let mut planned = schedule(seed, length, agents.all.len()).into_iter().peekable();
    let mut mends: Vec<(Instant, Mend)> = Vec::new();
    let mut dice = Dice::new(seed);
    let began = Instant::now();
    while began.elapsed() < length {
        let now = Instant::now();
        for (_, mend) in mends.extract_if(.., |(at, _)| *at <= now) {
            match mend {
                Mend::Endpoint(whom) => agents.set_endpoint(whom, Mood::Open),
                Mend::Peers(agent) => agents.all[agent].peers.set_mood(Mood::Open),
            }
        }
        agents.tend(network);
        if let Some(next) = planned.next_if(|planned| planned.at <= began.elapsed()) {
            println!("chaos: {:6.1} s: {}", began.elapsed().as_secs_f32(), next.fault);
            match next.fault {
                Fault::Kill { agent, away } => {
                    let killed = agents.kill(agent, away);
                    println!("chaos: {} {}", agents.all[agent].name, if killed { "is gone" } else { "was away" });
                }
                Fault::Refuse { whom, lasts } => {
                    agents.set_endpoint(whom, Mood::Cut);
                    mends.push((now + lasts, Mend::Endpoint(whom)));
                }
                Fault::Hang { whom, lasts } => {
                    agents.set_endpoint(whom, Mood::Silent);
                    mends.push((now + lasts, Mend::Endpoint(whom)));
                }
                Fault::Isolate { agent, lasts } => {
                    agents.all[agent].peers.set_mood(Mood::Silent);
                    mends.push((now + lasts, Mend::Peers(agent)));
                }
                Fault::Reorganise { depth } => reorganise(network, depth, &mut dice).await,
            }
        }
        tokio::time::sleep(LOOK).await;
    }
    println!("chaos: {:6.1} s: the weather is fair again", began.elapsed().as_secs_f32());
    agents.set_endpoint(Whom::All, Mood::Open);
    agents.all.iter().for_each(|agent| agent.peers.set_mood(Mood::Open));
    agents.set_weather(Weather::FAIR);
    assert!(agents.all.iter().all(|agent| agent.peers.bytes() > 0), "an agent was never reached by its wire");
}

/// Replaces the newest blocks by as many others, at the same times: some of what was in them comes again, the rest is lost.
async fn reorganise(network: &Network, depth: u64, dice: &mut Dice) {
    let provider = network.provider();
    let client = provider.client();
    let latest = async || provider.get_block_by_number(BlockNumberOrTag::Latest).await.unwrap().unwrap();
    let head = latest().await;
    let mut undone: Vec<Bytes> = Vec::new();
    for number in head.header.number.saturating_sub(depth - 1)..=head.header.number {
        let Some(block) = provider.get_block_by_number(number.into()).await.unwrap() else { continue };
        for hash in block.transactions.hashes() {
            let raw: Option<Bytes> = client.request("eth_getRawTransactionByHash", (hash,)).await.unwrap();
            undone.extend(raw);
        }
    }
    network.reorganise(depth).await;
    // Anvil gives all new blocks the time of the last that stays, and goes on from there.
    let behind = head.header.timestamp.saturating_sub(latest().await.header.timestamp);
    let _: serde_json::Value = client.request("evm_increaseTime", (behind,)).await.unwrap();
    let all = undone.len();
    let mut again = 0;
    for raw in undone {
        if dice.percent(REPEATED) {
            // Refused where what it builds on is lost.
            let sent: Result<B256, _> = client.request("eth_sendRawTransaction", (raw,)).await;
            again += u32::from(sent.is_ok());
        }
    }
    println!("chaos: {all} transactions undone, {again} of them sent again");
}
