//! A restart hears all events once and in order, from the disk and the chain together.

use std::path::Path;
use std::sync::Arc;

use tensorlink_node::history::Remembered;
use tensorlink_node::ports::{Chain, ChainError, Event, EventAt};
use tensorlink_types::abi::{JobTerms, Offer};
use tensorlink_types::{Address, B256, JobId, U256};
use tokio::sync::mpsc::Receiver;

use crate::support::{MemoryChain, job_view};

fn event(block: u64, log_index: u64, salt: u8) -> EventAt {
    EventAt {
        block,
        block_hash: B256::repeat_byte(salt),
        timestamp: block,
        log_index,
        transaction: B256::repeat_byte(salt),
        event: Event::JobClosing { job: JobId(block), convicted: false },
    }
}

async fn told(folder: &Path, events: &[EventAt]) -> Vec<EventAt> {
    let chain = Remembered::new(telling(events), folder);
    loop {
        let told = all_of(chain.events(0).await.unwrap()).await;
        // What a reorganisation has undone is taken back, and all is told anew.
        if !matches!(chain.ended(), ChainError::Undone { .. }) {
            return told;
        }
    }
}

/// A chain that tells these events, and ends.
fn telling(events: &[EventAt]) -> Arc<MemoryChain> {
    let chain = MemoryChain::new(job_view(1, 1), &[], &[]);
    chain.with(|ledger| ledger.told = Some(events.to_vec()));
    chain
}

fn times_undone(folder: &Path) -> u64 {
    Remembered::new(telling(&[]), folder).times_undone().unwrap()
}

async fn all_of(mut receiver: Receiver<EventAt>) -> Vec<EventAt> {
    let mut told = Vec::new();
    while let Some(event) = receiver.recv().await {
        told.push(event);
    }
    told
}

#[tokio::test]
async fn a_restart_tells_all_events_once_and_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let all = [event(1, 0, 1), event(3, 0, 3), event(3, 1, 3), event(7, 2, 7)];
    // A block is told with all its events.
    for blocks in [&all[..1], &all[..3]] {
        assert_eq!(told(folder.path(), blocks).await, blocks);
    }
    assert_eq!(told(folder.path(), &all).await, all);
    assert_eq!(told(folder.path(), &all).await, all);
}

#[tokio::test]
async fn amounts_of_any_size_are_remembered() {
    let terms = JobTerms { workerStake: u128::MAX, manifest: vec![1].into(), ..JobTerms::default() };
    let worker = Address::repeat_byte(1);
    let expires = U256::from(1).to();
    let offer = Offer { job: 1, worker, pricePerInterval: u128::MAX, expires, ..Offer::default() };
    let posted = Event::JobPosted { job: JobId(1), user: worker, deposit: U256::MAX, terms };
    let accepted = Event::JobAccepted { job: JobId(1), offers: vec![offer] };
    let all = [(1, posted), (2, accepted)].map(|(block, what)| EventAt { event: what, ..event(block, 0, 1) });
    let folder = tempfile::tempdir().unwrap();
    told(folder.path(), &all).await;
    let path = std::fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
    let text = std::fs::read_to_string(path).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with("{\"until\"") && !line.starts_with("{\"events\""));
    let read: Vec<EventAt> = lines.map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(read, all);
}

#[tokio::test]
async fn events_of_vanished_blocks_are_forgotten() {
    let folder = tempfile::tempdir().unwrap();
    told(folder.path(), &[event(1, 0, 1), event(3, 0, 3), event(4, 0, 4)]).await;
    let now = [event(1, 0, 1), event(3, 0, 9), event(5, 0, 5)];
    assert_eq!(told(folder.path(), &now).await, now);
}

/// A hundred blocks with an event each, of which the last `depth` are those of another chain.
fn forked(depth: u64) -> Vec<EventAt> {
    (1..=100).map(|block| event(block, 0, if block > 100 - depth { 200 } else { block as u8 })).collect()
}

#[tokio::test]
async fn a_restart_takes_back_what_was_undone_meanwhile_at_any_depth() {
    for depth in [1, 4, 64, 100] {
        let folder = tempfile::tempdir().unwrap();
        told(folder.path(), &forked(0)).await;
        assert_eq!(times_undone(folder.path()), 0);
        assert_eq!(told(folder.path(), &forked(depth)).await, forked(depth), "{depth}");
        // And the file has nothing of it left.
        assert_eq!(told(folder.path(), &forked(depth)).await, forked(depth), "{depth}");
        assert_eq!(times_undone(folder.path()), 1, "a role that was killed meanwhile finds out");
    }
}

/// Blocks without an event are as much undone as others: the chain is known by the last block that was read.
#[tokio::test]
async fn who_listens_hears_that_it_has_to_begin_anew_at_any_depth() {
    for depth in [1, 4, 64, 100] {
        let folder = tempfile::tempdir().unwrap();
        let memory = telling(&forked(0));
        memory.with(|ledger| ledger.follows = true);
        let chain = Remembered::new(memory.clone(), folder.path());
        let (mut one, mut other) = (chain.events(0).await.unwrap(), chain.events(0).await.unwrap());
        for at in forked(0) {
            assert_eq!(one.recv().await.unwrap(), at);
            assert_eq!(other.recv().await.unwrap(), at);
        }
        assert!(!matches!(chain.ended(), ChainError::Undone { .. }));
        memory.with(|ledger| ledger.told = Some(forked(depth)));
        assert_eq!((one.recv().await, other.recv().await), (None, None), "{depth}");
        assert!(matches!(chain.ended(), ChainError::Undone { from } if from == 101 - depth), "{:?}", chain.ended());
        let mut again = chain.events(0).await.unwrap();
        for at in forked(depth) {
            assert_eq!(again.recv().await.unwrap(), at, "{depth}");
        }
    }
}

#[tokio::test]
async fn a_torn_line_is_cut_off() {
    let folder = tempfile::tempdir().unwrap();
    let all = [event(1, 0, 1), event(3, 0, 3)];
    told(folder.path(), &all).await;
    let path = std::fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
    let text = std::fs::read(&path).unwrap();
    std::fs::write(&path, &text[..text.len() - 10]).unwrap();
    assert_eq!(told(folder.path(), &all).await, all);
}

#[tokio::test]
async fn roles_follow_one_feed_each_at_its_own_pace() {
    let folder = tempfile::tempdir().unwrap();
    let memory = telling(&[]);
    memory.with(|ledger| ledger.follows = true);
    let chain = Remembered::new(memory.clone(), folder.path());
    let (mut quick, mut slow) = (chain.events(0).await.unwrap(), chain.events(0).await.unwrap());
    // More than may wait for who does not listen.
    let many = 1000;
    for job in 0..many {
        memory.with(|ledger| ledger.tell(Event::JobClosing { job: JobId(job), convicted: false }));
    }
    let mut late = None;
    for block in 0..many {
        assert_eq!(quick.recv().await.unwrap().block, block);
        if block == many / 2 {
            late = Some(chain.events(block).await.unwrap());
        }
    }
    for block in 0..many {
        assert_eq!(slow.recv().await.unwrap().block, block);
    }
    let mut late = late.unwrap();
    for block in many / 2..many {
        assert_eq!(late.recv().await.unwrap().block, block, "what was told before, and what came since");
    }
    assert_eq!(memory.with(|ledger| ledger.feeds), 1, "the chain is read once");
    drop((quick, slow, late));
    let mut again = chain.events(0).await.unwrap();
    for block in 0..many {
        assert_eq!(again.recv().await.unwrap().block, block, "also where all had stopped to listen");
    }
}

#[tokio::test]
async fn a_file_of_before_is_read_and_one_of_a_newer_version_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let all = [event(1, 0, 1), event(3, 0, 3)];
    told(folder.path(), &all).await;
    let path = std::fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
    let text = std::fs::read_to_string(&path).unwrap();
    let (heading, lines) = text.split_once('\n').unwrap();
    assert_eq!(heading, r#"{"events":1,"undone":0}"#);
    std::fs::write(&path, lines).unwrap();
    // Only by what it remembers can it tell them: this chain has nothing.
    let silent = MemoryChain::new(job_view(1, 1), &[], &[]);
    let mut read = Remembered::new(silent, folder.path()).events(0).await.unwrap();
    for at in &all {
        assert_eq!(read.recv().await.as_ref(), Some(at), "without a heading");
    }
    drop(read);

    let newer = format!("{}\n{{\"another\":\"form\"}}\n", r#"{"events":2,"else":[]}"#);
    std::fs::write(&path, &newer).unwrap();
    let chain = Remembered::new(telling(&all), folder.path());
    for error in [chain.events(0).await.unwrap_err(), chain.times_undone().unwrap_err()] {
        let error = error.to_string();
        assert!(error.contains("newer version") && error.contains("--data-dir"), "{error}");
        assert!(!error.contains("writable"), "{error}");
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap(), newer, "nothing is lost");
}
