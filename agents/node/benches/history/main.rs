//! What a start costs of a node that remembers a million events: `cargo bench -p tensorlink-node`. Fails beyond 200 MB,
//! and beyond 5 s, or 10 s where all jobs go on and the file is of an older version, whose heading is written first.

#![allow(clippy::unwrap_used, reason = "a bench ends where something fails")]

#[allow(clippy::wildcard_imports, reason = "tests may")]
#[path = "../../tests/support/mod.rs"]
mod support;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use tensorlink_node::history::Remembered;
use tensorlink_node::ports::{Chain, Event, EventAt};
use tensorlink_types::abi::{Claim, JobTerms, Offer};
use tensorlink_types::{Address, B256, ClaimId, JobId, Lane, U256};

use crate::support::{MemoryChain, job_view};

const EVENTS: u64 = 1_000_000;
/// Events of a job: its post, its acceptance, its claims, and its settlement.
const JOB: u64 = 100;
const MOST: u64 = 200;

fn event(number: u64, settles: bool) -> Event {
    let (job, worker) = (number / JOB, Address::repeat_byte(2));
    let lane = Lane { job: JobId(job), stage: 0, replica: 0 };
    let hash = |salt: u64| B256::left_padding_from(&(number + salt).to_be_bytes());
    match number % JOB {
        0 => Event::JobPosted {
            job: JobId(job),
            user: Address::repeat_byte(1),
            deposit: U256::MAX,
            terms: JobTerms { programs: vec![hash(0); 4], initialStates: vec![hash(1); 4], ..JobTerms::default() },
        },
        1 => {
            let offer = Offer { job, worker, pricePerInterval: 1, ..Offer::default() };
            Event::JobAccepted { job: JobId(job), offers: vec![offer; 4] }
        }
        99 if settles => Event::JobSettled { job: JobId(job), refund: U256::MAX },
        98 => Event::ClaimsFinalized { lane, from: 0, to: 96 },
        interval => {
            let claim = Claim {
                job,
                interval: interval as u32,
                parentState: hash(2),
                newState: hash(3),
                io: hash(4),
                ..Claim::default()
            };
            Event::ClaimCommitted { id: ClaimId(hash(5)), claim, committed_at: number }
        }
    }
}

/// Writes the history as a node does that has run for long.
fn write(path: &Path, settles: bool) {
    let mut file = BufWriter::new(File::create(path).unwrap());
    for number in 0..EVENTS {
        let hash = B256::left_padding_from(&number.to_be_bytes());
        let at = EventAt {
            block: number,
            block_hash: hash,
            timestamp: number,
            log_index: 0,
            transaction: hash,
            event: event(number, settles),
        };
        serde_json::to_writer(&mut file, &at).unwrap();
        writeln!(file, "\n{{\"until\":{{\"block\":{number},\"hash\":\"{hash}\"}}}}").unwrap();
    }
}

/// Most memory that this process had, MB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or_default() / 1024
}

/// Starts a node, and hears everything; seconds, and how many events those were.
async fn start(folder: &Path) -> (Duration, u64) {
    let begun = Instant::now();
    let chain = Remembered::new(MemoryChain::new(job_view(1, 1), &[], &[]), folder);
    let mut events = chain.events(0).await.unwrap();
    let mut heard = 0;
    // The chain itself tells nothing.
    while let Ok(Some(_)) = tokio::time::timeout(Duration::from_millis(500), events.recv()).await {
        heard += 1;
    }
    (begun.elapsed().saturating_sub(Duration::from_millis(500)), heard)
}

#[tokio::main]
async fn main() {
    let folder = tempfile::tempdir().unwrap();
    let deployment = MemoryChain::new(job_view(1, 1), &[], &[]).deployment().clone();
    let path = folder.path().join(format!("events-{}-{}.jsonl", deployment.chain_id, deployment.jobs));
    for (settles, first) in [(true, 5), (false, 10)] {
        write(&path, settles);
        let size = std::fs::metadata(&path).unwrap().len() >> 20;
        for (what, seconds) in [("the first start", first), ("the next", 5)] {
            let (took, heard) = start(folder.path()).await;
            let jobs = if settles { "settled" } else { "open" };
            println!("{EVENTS} events of {jobs} jobs, {size} MB, {what}: {took:.2?}, {heard} told, {} MB", peak());
            assert!(took <= Duration::from_secs(seconds) && peak() <= MOST, "more than {seconds} s or {MOST} MB");
        }
    }
}
