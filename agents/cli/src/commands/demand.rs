//! `tensorlink demand`: has a worker show on chain what it withholds.
#![allow(missing_docs, reason = "doc comments on arguments are the help texts; clap shows the rest by name")]

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use clap::{Args, ValueEnum};
use serde::Serialize;
use tensorlink_node::custody::holders;
use tensorlink_node::ports::{Call, Chain, ChainError, CustodyMove, Event, EventAt, Protocol};
use tensorlink_node::retry::{Failure, Policy, retry};
use tensorlink_node::shard::ShardSource;
use tensorlink_node::wire::rpc::{Request, Response};
use tensorlink_node::wire::{decode, encode};
use tensorlink_proof::commit::{Boundary, ProgramCommitment};
use tensorlink_types::abi::{Claim, Demand, Holder, Part, ProgramHeader};
use tensorlink_types::{JobId, Lane, U256};
use tokio_util::sync::CancellationToken;

use super::challenge::manifest;
use crate::config::Config;
use crate::live::say;
use crate::node::Node;
use crate::{output, when};

/// A stage beside another.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum NeighbourArg {
    /// The stage before.
    Previous,
    /// The stage after.
    Next,
}

#[derive(Args, Debug)]
pub struct DemandArgs {
    /// The job's number.
    #[arg(long)]
    pub job: u64,
    /// Stage of the lane.
    #[arg(long)]
    pub stage: u16,
    /// Replica of the lane.
    #[arg(long, default_value_t = 0)]
    pub replica: u16,
    /// Demand of the state that the claim of this interval ends in; without it, of the files that the stage began with.
    #[arg(long)]
    pub interval: Option<u32>,
    /// Of those files: the state that the stage began with, not its constants.
    #[arg(long, conflicts_with = "interval")]
    pub initial_state: bool,
    /// From the worker that keeps the state for the lane, by its attestation, which the lane's worker tells; not from
    /// that worker itself.
    #[arg(long, requires = "interval")]
    pub keeper: bool,
    /// Of what that claim says was sent to this neighbour, with the attestation of it, in place of the state.
    #[arg(long, requires = "interval", conflicts_with = "keeper", value_name = "NEIGHBOUR")]
    pub sent_to: Option<NeighbourArg>,
    /// Which tensor of the state or the constants, in the program's order; of what was sent, its entry in the log: step
    /// of the interval × micro-batches + micro-batch [default: any].
    #[arg(long)]
    pub tensor: Option<u32>,
    /// First of the leaves of 256 bytes, modulo the tensor's [default: any].
    #[arg(long)]
    pub leaf: Option<u32>,
    /// How many leaves, at most 64.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub leaves: u32,
}

/// Disk for the program, bytes.
const DISK: u64 = 10 << 30;
/// Wait between two looks at what became of the demand.
const LOOK: Duration = Duration::from_secs(2);
/// Looks at which the chain may know nothing of it: longer than a block takes to be confirmed.
const GONE: u32 = 900;

#[derive(Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
enum Shown {
    /// The worker has the data: it is on chain now.
    Delivered { first_leaf: u32, bytes: usize },
    /// It did not show it, and lost its stake in this job.
    Convicted,
    /// What it was about is void or settled.
    Over,
}

/// Demands a part of a lane's data, and follows it to its end.
pub async fn run(config: &Config, args: &DemandArgs, shutdown: CancellationToken) -> Result<()> {
    let (node, _folder) = Node::beside(config, DISK, &shutdown).await?;
    let ended = tokio::select! {
        () = shutdown.cancelled() => bail!("interrupted; the demand goes on, and anybody can end it after its deadline"),
        ended = demand(config, &node, args) => ended,
    };
    node.net.shutdown().await;
    let shown = ended?;
    output::print(config.json, &shown, || shown.text())
}

async fn demand(config: &Config, node: &Node, args: &DemandArgs) -> Result<Shown> {
    let chain = node.ports.chain.as_ref();
    let lane = Lane { job: JobId(args.job), stage: args.stage, replica: args.replica };
    let events = loop {
        let events = chain.past_events(chain.deployment().block, chain.head().await?.number).await?;
        match args.interval {
            // On chain, but not confirmed yet.
            Some(interval)
                if claim(&events, lane, interval).is_err() && !chain.record(lane, interval).await?.is_zero() =>
            {
                tokio::time::sleep(LOOK).await;
            }
            _ => break events,
        }
    };
    let program = program(config, node, lane, &events).await?;
    let call = match args.interval {
        Some(interval) => {
            let (claim, committed_at) = claim(&events, lane, interval)?;
            sent_or_state(node, args, (claim, committed_at), program).await?
        }
        None => {
            let constants = !args.initial_state;
            let part = part(args, if constants { program.constantCount } else { program.stateCount })?;
            CustodyMove::DemandFiles { lane, program, constants, part }
        }
    };
    let call = Call::Custody(Box::new(call));
    let receipt = chain.attempt(call).await?;
    let opened = receipt.events.into_iter().find_map(|event| match event {
        Event::Demanded { id, demand } => Some((id, *demand)),
        _ => None,
    });
    let (id, demand) = opened.context("the transaction of the demand opened none")?;
    let until = when::due(demand.deadline.to(), chain.head().await?.timestamp);
    say!("demand {id}: {} has until {until}, to show it", demand.holder);
    follow(chain, id, demand, receipt.block).await
}

/// What is demanded about a claim: of what it says was sent, or of the state that it ends in.
async fn sent_or_state(
    node: &Node,
    args: &DemandArgs,
    (claim, committed_at): (Claim, u64),
    program: ProgramHeader,
) -> Result<CustodyMove> {
    if let Some(neighbour) = args.sent_to {
        let to_next = neighbour == NeighbourArg::Next;
        let boundary = if to_next { Boundary::ToNext } else { Boundary::ToPrevious };
        ensure!(program.edges & boundary.bit() != 0, "the stage has no such neighbour");
        let job = node.ports.chain.job(JobId(claim.job)).await?.context("the job is gone")?;
        let part = part(args, job.steps_per_interval.saturating_mul(program.microBatches))?;
        return Ok(CustodyMove::DemandSent { claim, committed_at, program, to_next, part });
    }
    let own = Holder { stage: claim.stage, replica: claim.replica, ..Holder::default() };
    let holder = if args.keeper { keeper(node, &claim).await? } else { own };
    let part = part(args, program.stateCount)?;
    Ok(CustodyMove::DemandState { claim, committed_at, program, holder, part })
}

/// Waits until the worker has shown it, or ends the demand when its time is over. Through outages of the endpoint: the
/// bond is with the contract.
async fn follow(chain: &dyn Chain, id: U256, demand: Demand, from: u64) -> Result<Shown> {
    let mut unknown = 0;
    loop {
        match look(chain, id, &demand, from).await {
            Ok(Seen::Ended(shown)) => return Ok(shown),
            Ok(Seen::Open) => unknown = 0,
            // It ended and that is not confirmed yet, or a reorganisation undid it.
            Ok(Seen::Unknown) if unknown < GONE => unknown += 1,
            Ok(Seen::Unknown) => {
                bail!("the chain does not know demand {id} any more: a reorganisation undid it; run this again")
            }
            Err(error @ (ChainError::Unavailable(_) | ChainError::Pending(_))) => {
                tracing::warn!(%id, %error, "the demand waits for the chain");
            }
            Err(error) => return Err(error.into()),
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// What became of a demand.
enum Seen {
    Ended(Shown),
    Open,
    Unknown,
}

async fn look(chain: &dyn Chain, id: U256, demand: &Demand, from: u64) -> Result<Seen, ChainError> {
    let head = chain.head().await?;
    for at in chain.past_events(from, head.number).await? {
        match at.event {
            Event::DemandEnded { id: ended, shown: Some((first_leaf, leaves)), .. } if ended == id => {
                return Ok(Seen::Ended(Shown::Delivered { first_leaf, bytes: leaves.len() }));
            }
            Event::DemandEnded { id: ended, convicted, .. } if ended == id => {
                return Ok(Seen::Ended(if convicted { Shown::Convicted } else { Shown::Over }));
            }
            _ => {}
        }
    }
    let call = Call::Custody(Box::new(CustodyMove::Expire { id, demand: demand.clone() }));
    match chain.attempt(call).await {
        Ok(_) => Ok(Seen::Open),
        Err(ChainError::Reverted { name, .. }) if name == "StillOpen" => Ok(Seen::Open),
        Err(ChainError::Reverted { name, .. }) if name == "UnknownDemand" => Ok(Seen::Unknown),
        Err(error) => Err(error),
    }
}

fn claim(events: &[EventAt], lane: Lane, interval: u32) -> Result<(Claim, u64)> {
    let found = events.iter().rev().find_map(|at| match &at.event {
        Event::ClaimCommitted { claim, committed_at, .. } if claim.lane() == lane && claim.interval == interval => {
            Some((claim.clone(), *committed_at))
        }
        _ => None,
    });
    found.with_context(|| format!("{lane} has no confirmed claim for interval {interval}"))
}

/// The registered program of a lane's stage, from whoever has it.
async fn program(config: &Config, node: &Node, lane: Lane, events: &[EventAt]) -> Result<ProgramHeader> {
    let chain = node.ports.chain.as_ref();
    let job = chain.job(lane.job).await?.with_context(|| format!("there is no job {}", lane.job))?;
    let manifest = manifest(events, lane.job)?;
    let holders = holders(chain, &job, lane).await?;
    let source = ShardSource { job: lane.job, stage: lane.stage, manifest, holders };
    let root = chain.program_root(lane.job, lane.stage).await?;
    let program = node.program(config, &source, (0, root)).await?;
    Ok(ProgramCommitment::new(&program)?.header)
}

/// Who keeps the state for the claim's worker, by its attestation.
async fn keeper(node: &Node, claim: &Claim) -> Result<Holder> {
    let (worker, _) = node.ports.chain.assignment(claim.lane()).await?;
    let question = encode("request", &Request::Interval(node.ports.contracts.claim_id(claim)))?;
    // A node that has just come up may not have met the worker yet.
    let answer = retry(node.ports.clock.as_ref(), Policy::PEER, || async {
        node.ports.net.request(worker, Protocol::Rpc, question.clone()).await.map_err(Failure::Transient)
    });
    let answer = answer.await?;
    let holder = match decode("response", &answer)? {
        Response::Interval(record) => record.holder,
        Response::Declined(reason) => bail!("{worker} does not tell who keeps its state: {reason}"),
        other => bail!("{worker} answers {other:?}"),
    };
    ensure!(!holder.signature.is_empty(), "nobody has attested that it has this state");
    ensure!(
        (holder.stage, holder.replica) != (claim.stage, claim.replica),
        "the job's user keeps this state, which has no stake to lose"
    );
    Ok(holder)
}

/// What is demanded: what was named, and the rest at random, so that nobody can prepare for it.
fn part(args: &DemandArgs, tensors: u32) -> Result<Part> {
    ensure!(tensors > 0, "there is nothing to demand: the stage has no such tensors");
    let tensor = args.tensor.unwrap_or_else(|| rand::random_range(0..tensors));
    ensure!(tensor < tensors, "there are {tensors} tensors, counted from 0");
    Ok(Part { tensor, firstLeaf: args.leaf.unwrap_or_else(rand::random), leaves: args.leaves })
}

impl Shown {
    fn text(&self) -> String {
        match self {
            Self::Delivered { first_leaf, bytes } => {
                format!("shown: {bytes} bytes from leaf {first_leaf} on; the bond is the worker's")
            }
            Self::Convicted => "not shown in time: the worker is convicted, the bond is back".to_owned(),
            Self::Over => "over: what it was about is void or settled; the bond is back".to_owned(),
        }
    }
}
