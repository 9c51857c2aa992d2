//! A restart hears all events once and in order, from the disk and the chain together.

#[path = "support/mod.rs"]
mod support;

use std::path::Path;

use support::{MemoryChain, job_view};
use tensorlink_node::history::Remembered;
use tensorlink_node::ports::{Chain, Event, EventAt};
use tensorlink_types::{B256, JobId};

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
    let chain = MemoryChain::new(job_view(1, 1), &[], &[]);
    chain.with(|ledger| ledger.told = Some(events.to_vec()));
    let chain = Remembered::new(chain, folder);
    let mut receiver = chain.events(0).await.unwrap();
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
    assert_eq!(told(folder.path(), &all[..2]).await, all[..2]);
    assert_eq!(told(folder.path(), &all).await, all);
    assert_eq!(told(folder.path(), &all).await, all);
}

#[tokio::test]
async fn events_of_vanished_blocks_are_forgotten() {
    let folder = tempfile::tempdir().unwrap();
    told(folder.path(), &[event(1, 0, 1), event(3, 0, 3), event(4, 0, 4)]).await;
    let now = [event(1, 0, 1), event(3, 0, 9), event(5, 0, 5)];
    assert_eq!(told(folder.path(), &now).await, now);
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
