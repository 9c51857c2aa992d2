//! The file through full disks, kills and reorganisations.

use tensorlink_types::{B256, JobId};

use super::heading::times_undone;
use super::*;
use crate::ports::Event;

fn event(block: u64) -> EventAt {
    EventAt {
        block,
        block_hash: B256::ZERO,
        timestamp: block,
        log_index: 0,
        transaction: B256::ZERO,
        event: Event::JobClosing { job: JobId(block), convicted: false },
    }
}

fn mark(block: u64) -> Mark {
    Mark { block, hash: B256::ZERO }
}

/// A file with events of these blocks, complete up to one.
fn write(path: &Path, blocks: impl IntoIterator<Item = u64>, until: u64) {
    let (mut writer, _written) = LogWriter::open(path, scan(path).unwrap()).unwrap();
    blocks.into_iter().for_each(|block| writer.append(&event(block)).unwrap());
    writer.complete(mark(until)).unwrap();
}

/// Blocks of the events that count, and the last block.
fn held(path: &Path) -> (Vec<u64>, Option<u64>) {
    let scanned = scan(path).unwrap();
    let (mut blocks, mut lines) = (Vec::new(), Lines::open(path, scanned.bytes).unwrap().unwrap());
    while let Some(line) = lines.next().unwrap() {
        if let Line::Event(text) = line {
            blocks.push(serde_json::from_slice::<EventAt>(text).unwrap().block);
        }
    }
    assert_eq!(scanned.events, blocks.len() as u64);
    (blocks, scanned.until().map(|until| until.block))
}

/// A full disk takes a part of a line.
#[tokio::test]
async fn a_line_that_did_not_fit_is_whole_once_there_is_room() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("events");
    write(&path, [1], 1);
    let (mut writer, written) = LogWriter::open(&path, scan(&path).unwrap()).unwrap();
    let mut reader = LogReader::open(Arc::new(written)).unwrap();
    assert_eq!(reader.next().await.unwrap(), Some(event(1)));
    let room = std::mem::replace(&mut writer.file, File::open(&path).unwrap());
    assert!(writer.append(&event(2)).is_err(), "nothing can be written there");
    let line = serde_json::to_vec(&event(2)).unwrap();
    (&room).write_all(&line[..7]).unwrap();
    writer.file = room;
    for block in [2, 3] {
        writer.append(&event(block)).unwrap();
        assert_eq!(reader.next().await.unwrap(), Some(event(block)));
    }
    assert_eq!(held(&path), (vec![1], Some(1)), "of later blocks it may have a part");
    writer.complete(mark(5)).unwrap();
    assert_eq!(held(&path), (vec![1, 2, 3], Some(5)));
}

#[test]
fn the_chain_is_known_by_the_blocks_of_the_last_events_and_by_the_last_one() {
    let folder = tempfile::tempdir().unwrap();
    let marks = |blocks: Vec<u64>, until| {
        let path = folder.path().join(format!("{}-{until}", blocks.len()));
        write(&path, blocks, until);
        scan(&path).unwrap().marks
    };
    assert_eq!(scan(&folder.path().join("none")).unwrap().marks, []);
    assert_eq!(marks(vec![1, 3], 3), [1, 3].map(mark));
    assert_eq!(marks(vec![1, 3], 7), [1, 3, 7].map(mark));
    for (until, first) in [(2_000, 1_000 - 256), (999, 999 - 256)] {
        let many = marks((0..1_000).collect(), until);
        assert_eq!((many.len(), many[0].block), (257, first));
    }
}

#[test]
fn what_is_taken_back_is_forgotten_at_any_depth() {
    let folder = tempfile::tempdir().unwrap();
    for depth in [1, 4, 64, 1_000] {
        let path = folder.path().join(depth.to_string());
        write(&path, 1..=100, 100);
        let from = 101u64.saturating_sub(depth);
        take_back(&path, from).unwrap();
        let stays: Vec<u64> = (1..from.max(1)).collect();
        let until = stays.last().copied();
        assert_eq!((held(&path), times_undone(&path).unwrap()), ((stays, until), 1), "{depth}");
    }
    let quiet = folder.path().join("quiet");
    write(&quiet, [3], 50);
    take_back(&quiet, 51).unwrap();
    assert_eq!(held(&quiet), (vec![3], Some(50)), "nothing of it is undone");
    take_back(&quiet, 40).unwrap();
    assert_eq!((held(&quiet), times_undone(&quiet).unwrap()), ((vec![3], Some(3)), 2));
}

#[test]
fn what_is_taken_back_from_before_what_was_forgotten_is_all_of_it() {
    let folder = tempfile::tempdir().unwrap();
    for (from, stays) in [(61, vec![90]), (60, vec![])] {
        let path = folder.path().join(from.to_string());
        write(&path, [10, 90], 100);
        let scanned = scan(&path).unwrap();
        let mut anew = Rewriting::forgetting(&path, &scanned, 60).unwrap();
        let line = serde_json::to_string(&event(90)).unwrap();
        anew.event(format!("{line}\n").as_bytes()).unwrap();
        anew.finish(scanned.until(), true).unwrap();
        assert_eq!((held(&path), scan(&path).unwrap().left), ((vec![90], Some(100)), 1));
        take_back(&path, if stays.is_empty() { from } else { 95 }).unwrap();
        assert_eq!(held(&path).0, stays, "{from}");
    }
}
