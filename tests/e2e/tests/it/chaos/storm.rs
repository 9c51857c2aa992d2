//! Has a schedule happen.

use std::time::Duration;

use alloy::eips::BlockNumberOrTag;
use alloy::primitives::{B256, Bytes};
use alloy::providers::Provider;
use tensorlink_node::ports::Call;
use tensorlink_node::ports::chain::{Chain, Event};
use tensorlink_proof::challenge::Move;
use tensorlink_types::U256;
use tensorlink_types::abi::Question;
use tokio::time::{Instant, timeout};

use super::agents::Agents;
use super::deepest;
use super::dice::Dice;
use super::schedule::{Fault, Whom, schedule};
use super::wire::{Mood, Weather};
use crate::harness::{LOOK, Network, eventually};

/// Between peers, all the time.
pub(super) const STORM: Weather = Weather { delay: Duration::from_millis(200), loss: 30 };
/// Of a hundred transactions of undone blocks, those that the new ones have, too; the others are lost, as to who
/// sent them.
const REPEATED: u64 = 50;
/// Claims of which one is challenged: the newest ones.
const CHALLENGED: usize = 4;
/// Of the tree of the states of an interval of two steps.
const LEVELS: u8 = 1;
/// For a challenge to be in a block.
const OPENED: Duration = Duration::from_secs(8);
/// For one after the storm, which the job's last claims outlast.
const CHALLENGED_WITHIN: Duration = Duration::from_secs(60);

/// What passes again at some time.
enum Mend {
    Endpoint(Whom),
    Peers(usize),
}

/// Faults for so long; afterwards nothing is out of order any more, though some may still be away.
pub(super) async fn storm(network: &Network, agents: &mut Agents, length: Duration, seed: u64) {
    let mut planned = schedule(seed, length, agents.all.len(), deepest()).into_iter().peekable();
    let mut mends: Vec<(Instant, Mend)> = Vec::new();
    let mut dice = Dice::new(seed);
    // Those for which there was no claim yet.
    let mut challenges = 0;
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
                Fault::Challenge => challenges += 1,
            }
            if challenges > 0 && challenge(network, &mut dice).await {
                challenges -= 1;
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

/// Has a challenge opened after the storm if it left none.
pub(super) async fn see_challenged(network: &Network, seed: u64) {
    let mut dice = Dice::new(seed);
    eventually("a challenge", CHALLENGED_WITHIN, async || {
        let events = network.events().await;
        if events.iter().any(|at| matches!(at.event, Event::ChallengeOpened { .. })) {
            return Some(());
        }
        challenge(network, &mut dice).await;
        None
    })
    .await;
}

/// Opens a challenge whose first question is the only one: the worker has to answer it, and then waits for the bond.
/// False if there is no claim yet.
async fn challenge(network: &Network, dice: &mut Dice) -> bool {
    let events = network.events().await.into_iter();
    let claims: Vec<_> = events
        .filter_map(|at| match at.event {
            Event::ClaimCommitted { claim, committed_at, .. } => Some((claim, committed_at)),
            _ => None,
        })
        .collect();
    let newest = &claims[claims.len().saturating_sub(CHALLENGED)..];
    if newest.is_empty() {
        return false;
    }
    let (claim, committed_at) = newest[dice.below(newest.len() as u64) as usize].clone();
    let lane = (claim.stage, claim.replica, claim.interval);
    let open = Move::Open { claim, committed_at, question: Question { levels: LEVELS, ..Question::default() } };
    let call = Call::Challenge { challenge: U256::ZERO, step: Box::new(open) };
    match timeout(OPENED, network.chain().send(call)).await {
        Ok(Ok(_)) => println!("chaos: the claim {lane:?} is challenged"),
        // Undone, or final in the meantime.
        Ok(Err(error)) => println!("chaos: the claim {lane:?} is not challenged: {error}"),
        Err(_) => println!("chaos: the challenge of {lane:?} is in no block yet"),
    }
    true
}

/// Replaces the newest blocks by as many others, at the same times: some of what was in them comes again, the rest
/// is lost.
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
