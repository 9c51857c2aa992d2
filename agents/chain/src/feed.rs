//! Confirmed events, in order, each once.
//!
//! Blocks are read by number in ranges up to `head - confirmations`, whenever the head is another. Around each range
//! the hashes of the block before it and of its last block are looked at: they commit to all blocks between, so a range
//! that a reorganisation cuts through is read again. A single block is read by its hash, and names the one before it.
//! The hashes of the last blocks read are kept: where one is not canonical any more, although it was confirmed, reading
//! resumes behind the last block that still is, and the reader hears from which block on it was told in vain.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use alloy::eips::BlockNumberOrTag;
use alloy::providers::Provider;
use alloy::rpc::types::{Filter, Log};
use futures::{StreamExt, TryStreamExt, stream};
use tensorlink_node::ports::chain::{Deployment, EventAt, Head, Mark, News};
use tensorlink_types::B256;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tracing::{debug, error, info, warn};

use crate::block::{Block, block_of, head_of};
use crate::event;
use crate::failure::Failure;
use crate::heads::{Heads, newest};
use crate::rpc::{LOGS, Rpc};

/// Shortest and longest wait between attempts while the endpoint is down.
const WAIT: (Duration, Duration) = (Duration::from_millis(300), Duration::from_secs(10));
/// Times that a range is halved at most: down to one block.
const HALVED: u32 = 11;
/// Headers asked for at once.
const HEADERS_AT_ONCE: usize = 8;
/// How many blocks back a reorganisation is traced.
const REMEMBERED: usize = 256;

/// Reads events of one deployment.
#[derive(Clone, Debug)]
pub(crate) struct Reader {
    pub(crate) rpc: Arc<Rpc>,
    pub(crate) deployment: Deployment,
    pub(crate) confirmations: u64,
    /// Hash of block 0, by which a chain is told from another of the same id.
    pub(crate) genesis: B256,
}

impl Reader {
    /// The newest block.
    pub(crate) async fn head(&self) -> Result<Head, Failure> {
        newest(&self.rpc).await
    }

    async fn block(&self, number: u64) -> Result<Block, Failure> {
        let block = block_of(&self.rpc, number.into()).await?;
        block.ok_or_else(|| Failure::Unavailable(format!("it does not have block {number}")))
    }

    /// The newest block that is confirmed.
    pub(crate) async fn confirmed(&self) -> Result<u64, Failure> {
        Ok(self.head().await?.number.saturating_sub(self.confirmations))
    }

    /// Events of a range as it now is, and its last block. Fails where the range changes meanwhile.
    async fn range(&self, from: u64, to: u64) -> Result<(Vec<EventAt>, Block), Failure> {
        let block = self.block(to).await?;
        let last = block.head;
        let named = crate::deployment::addresses(&self.deployment).map(|(_, address)| address);
        let filter = Filter::new().address(named.to_vec());
        // By its hash, so that these are the logs of this very block.
        let single = from == to;
        let filter = if single { filter.at_block_hash(last.hash) } else { filter.from_block(from).to_block(to) };
        let mut logs = self
            .rpc
            .ask(LOGS, |provider| {
                let filter = filter.clone();
                async move { provider.get_logs(&filter).await }
            })
            .await?;
        logs.sort_by_key(|log| (log.block_number, log.log_index));
        let heads = self.heads(&logs, last).await?;
        let mut events = Vec::with_capacity(logs.len());
        for log in logs {
            let place = (log.block_number, log.block_hash, log.log_index, log.transaction_hash);
            let (Some(block), Some(block_hash), Some(log_index), Some(transaction)) = place else {
                return Err(Failure::Unavailable("it gives a log that is in no block".into()));
            };
            let head = heads.get(&block).filter(|head| head.hash == block_hash && (from..=to).contains(&block));
            let Some(head) = head else { return Err(changed()) };
            let decoded = event::decode(&self.deployment, &log.inner, head.timestamp);
            let decoded =
                decoded.map_err(|error| Failure::Unavailable(format!("it gives a log of no contract: {error}")))?;
            events.extend(decoded.map(|event| EventAt {
                block,
                block_hash,
                timestamp: head.timestamp,
                log_index,
                transaction,
                event,
            }));
        }
        if !single && self.block(to).await?.head.hash != last.hash {
            return Err(changed());
        }
        Ok((events, block))
    }

    /// Heads of the blocks that the logs are in.
    async fn heads(&self, logs: &[Log], last: Head) -> Result<HashMap<u64, Head>, Failure> {
        let mut numbers: Vec<u64> =
            logs.iter().filter_map(|log| log.block_number).filter(|n| *n != last.number).collect();
        numbers.dedup();
        let blocks = stream::iter(numbers).map(|number| self.block(number)).buffered(HEADERS_AT_ONCE);
        let mut heads: HashMap<u64, Head> =
            blocks.map_ok(|block| (block.head.number, block.head)).try_collect().await?;
        heads.insert(last.number, last);
        Ok(heads)
    }

    /// Events of a range that is confirmed, in pieces that the endpoint can give.
    pub(crate) async fn past(&self, from: u64, to: u64) -> Result<Vec<EventAt>, Failure> {
        let to = to.min(self.confirmed().await?);
        let (mut events, mut next) = (Vec::new(), from.max(self.deployment.block));
        while next <= to {
            if let Some((found, last)) = self.piece(next, to, 0).await? {
                events.extend(found);
                next = last.head.number + 1;
            }
        }
        Ok(events)
    }

    /// As much from block `from` on as the endpoint gives at once, so many times halved; nothing if that was more than
    /// it gives, which is known now.
    async fn piece(&self, from: u64, to: u64, halved: u32) -> Result<Option<(Vec<EventAt>, Block)>, Failure> {
        let endpoint = self.rpc.endpoint()?;
        let size = (endpoint.pieces().size(Instant::now()) >> halved).max(1);
        let end = to.min(from.saturating_add(size - 1));
        let blocks = end - from + 1;
        let read = self.range(from, end).await;
        // What another endpoint says that took its place meanwhile teaches nothing about this one.
        let same = self.rpc.endpoint().is_ok_and(|now| Arc::ptr_eq(&now, &endpoint));
        match read {
            Ok(found) => {
                if same {
                    endpoint.pieces().gave(blocks);
                }
                Ok(Some(found))
            }
            Err(Failure::Refused(payload)) if same && endpoint.pieces().refused(blocks, Instant::now()) => {
                if endpoint.pieces().is_news() {
                    info!(
                        endpoint = endpoint.name(), blocks, %payload,
                        "this RPC endpoint does not tell the logs of so many blocks at once: fewer are asked for from now on"
                    );
                }
                debug!(blocks, %payload, "so many blocks are not told at once");
                Ok(None)
            }
            // Of another endpoint, which has its own bound.
            Err(Failure::Refused(_)) if !same => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// Sends every confirmed event from block `from` on, or behind the blocks `known`, until the receiver is gone, the
    /// node shuts down or the chain is replaced by another.
    pub(crate) async fn follow(self, from: u64, known: Vec<Mark>, events: mpsc::Sender<News>) {
        let mut cursor = Cursor::new(from.max(self.deployment.block), known);
        let (mut heads, mut wait) = (Heads::new(self.rpc.clone()), WAIT.0);
        loop {
            let read = async { self.advance(&mut cursor, heads.next().await?, &events).await };
            let trouble = tokio::select! {
                () = events.closed() => return,
                read = read => match read {
                    Ok(Progress::Gone) | Err(Trouble::Failure(Failure::Closed)) => return,
                    Ok(Progress::More) => {
                        heads.again();
                        None
                    }
                    Ok(Progress::Rest) => None,
                    Err(Trouble::Failure(failure)) => Some(failure),
                    Err(Trouble::Replaced) => {
                        error!(
                            "the endpoint serves another chain now, with the same id: stop the node, check --rpc, and \
                             start with a fresh data folder and deployment file if the chain was started anew"
                        );
                        return;
                    }
                }
            };
            let Some(failure) = trouble else {
                wait = WAIT.0;
                continue;
            };
            cursor.halved = (cursor.halved + 2).min(HALVED);
            heads.again();
            warn!(?failure, next = cursor.next, "cannot read the chain; trying again in {wait:?}");
            tokio::select! {
                () = events.closed() => return,
                paused = self.rpc.pause(wait) => if paused.is_err() { return },
            }
            wait = (wait * 2).min(WAIT.1);
        }
    }

    /// Reads one range, if there is one to read below this head.
    async fn advance(&self, cursor: &mut Cursor, head: Head, events: &mpsc::Sender<News>) -> Result<Progress, Trouble> {
        let confirmed = head.number.saturating_sub(self.confirmations);
        if confirmed != cursor.next {
            self.find_anchor(cursor).await?;
        }
        if let Some(from) = cursor.undone
            && !self.tell(News::Undone { from }, events).await
        {
            return Ok(Progress::Gone);
        }
        cursor.undone = None;
        if confirmed < cursor.next {
            return Ok(Progress::Rest);
        }
        let Some((found, last)) = self.piece(cursor.next, confirmed, cursor.halved).await? else {
            return Ok(Progress::More);
        };
        let end = last.head.number;
        // The range continues what we read before: its last block, unchanged meanwhile, descends from our anchor.
        if let Some((number, hash)) = cursor.anchors.back().copied() {
            let parent = if number + 1 == end { last.parent } else { self.block(number).await?.head.hash };
            if parent != hash {
                self.find_anchor(cursor).await?;
                return Ok(Progress::More);
            }
        }
        for event in found {
            if !self.tell(News::Event(Box::new(event)), events).await {
                return Ok(Progress::Gone);
            }
        }
        cursor.moved_to(last.head);
        let until = News::Until(Mark { block: end, hash: last.head.hash });
        Ok(match self.tell(until, events).await {
            false => Progress::Gone,
            true if end < confirmed => Progress::More,
            true => Progress::Rest,
        })
    }

    /// Tells the reader; whether it is there.
    async fn tell(&self, news: News, events: &mpsc::Sender<News>) -> bool {
        tokio::select! {
            () = self.rpc.shutdown().cancelled() => false,
            sent = events.send(news) => sent.is_ok(),
        }
    }

    /// Goes back to the last block read that is canonical.
    async fn find_anchor(&self, cursor: &mut Cursor) -> Result<(), Trouble> {
        let mut dropped = 0u64;
        while let Some((number, hash)) = cursor.anchors.back().copied() {
            match head_of(&self.rpc, number.into()).await? {
                Some(head) if head.hash == hash => break,
                Some(_) => {}
                None => {
                    // Behind us: an endpoint that lags, or one whose chain was cut or replaced.
                    self.same_chain().await?;
                    return Err(self.distrust(format!("it lacks block {number}, which was read before")).into());
                }
            }
            if dropped == 0 {
                self.same_chain().await?;
            }
            cursor.step_back();
            dropped += 1;
        }
        if dropped > 0 {
            let (resumed, confirmations) = (cursor.next, self.confirmations);
            if cursor.anchors.is_empty() {
                warn!(
                    resumed,
                    confirmations, "a reorganisation is deeper than what is remembered of the chain: it is read anew"
                );
            } else {
                warn!(resumed, confirmations, "a reorganisation reached confirmed blocks: raise --confirmations");
            }
        }
        Ok(())
    }

    async fn same_chain(&self) -> Result<(), Trouble> {
        match head_of(&self.rpc, BlockNumberOrTag::Number(0)).await? {
            Some(genesis) if genesis.hash != self.genesis => {
                if !self.rpc.has_others() {
                    return Err(Trouble::Replaced);
                }
                Err(self.distrust("it serves another chain with the same id".into()).into())
            }
            _ => Ok(()),
        }
    }

    /// Leaves the endpoint that is used for another, if there is one.
    fn distrust(&self, reason: String) -> Failure {
        if let Ok(endpoint) = self.rpc.endpoint() {
            self.rpc.leave(&endpoint, &reason);
        }
        Failure::Unavailable(reason)
    }
}

fn changed() -> Failure {
    debug!("the chain changed while it was read");
    Failure::Unavailable("the chain changed while it was read".into())
}

enum Progress {
    /// There is more to read at once.
    More,
    /// Everything confirmed is read.
    Rest,
    /// Nobody reads the events any more.
    Gone,
}

#[derive(Debug)]
enum Trouble {
    Failure(Failure),
    /// It is another chain behind the same endpoint.
    Replaced,
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

/// How far the events were read.
#[derive(Debug)]
struct Cursor {
    start: u64,
    next: u64,
    /// How many times the next range is halved: the last ones may have taken too long.
    halved: u32,
    /// Last blocks of the ranges read, oldest first.
    anchors: VecDeque<(u64, B256)>,
    /// The first block that was read in vain, which the reader was not told yet.
    undone: Option<u64>,
}

impl Cursor {
    fn new(start: u64, known: Vec<Mark>) -> Self {
        let older = known.len().saturating_sub(REMEMBERED);
        let anchors: VecDeque<_> = known.into_iter().skip(older).map(|mark| (mark.block, mark.hash)).collect();
        let next = anchors.back().map_or(start, |(number, _)| number.saturating_add(1));
        Self { start, next, halved: 0, anchors, undone: None }
    }

    /// Forgets the newest range.
    fn step_back(&mut self) {
        self.anchors.pop_back();
        self.next = self.anchors.back().map_or(self.start, |(number, _)| number + 1);
        self.undone = Some(self.next);
    }

    /// Notes that everything up to this block is told.
    fn moved_to(&mut self, last: Head) {
        self.next = last.number + 1;
        self.halved = self.halved.saturating_sub(1);
        self.anchors.push_back((last.number, last.hash));
        if self.anchors.len() > REMEMBERED {
            self.anchors.pop_front();
        }
    }
}
