//! The file of remembered events, one JSON line each: one writer, and as many readers as there are roles that
//! follow it. Lines between them, such as `{"until":{"block":…,"hash":…}}`, say up to which block it is complete. The
//! first line is its [`heading`].

pub(super) mod heading;

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use self::heading::Heading;
use crate::ports::chain::{EventAt, Mark};

/// Blocks of events by which the chain is known.
const MARKS: usize = 256;

/// The line that says up to which block the file is complete.
#[derive(Serialize, Deserialize)]
struct Until {
    until: Mark,
}

/// What such a line begins with.
const UNTIL: &str = "{\"until\":";

/// Every event of a chain up to a block.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Kept {
    /// In order.
    pub(super) events: Vec<EventAt>,
    /// The block; none before the first is read.
    pub(super) until: Option<Mark>,
    /// How often something was taken back.
    pub(super) undone: u64,
}

impl Kept {
    /// Blocks up to which everything is there, oldest first, by which a reorganisation is found.
    pub(super) fn marks(&self) -> Vec<Mark> {
        let Some(until) = self.until else { return Vec::new() };
        let mut marks: Vec<Mark> = Vec::new();
        for at in &self.events {
            let mark = Mark { block: at.block, hash: at.block_hash };
            if mark.block < until.block && marks.last() != Some(&mark) {
                marks.push(mark);
            }
        }
        marks.drain(..marks.len().saturating_sub(MARKS));
        marks.push(until);
        marks
    }

    /// Forgets a block and all later ones, up to which everything was there.
    pub(super) fn take_back(&mut self, from: u64) {
        self.undone = self.undone.saturating_add(1);
        self.events.retain(|at| at.block < from);
        if self.until.is_some_and(|until| until.block >= from) {
            self.until = self.events.last().map(|at| Mark { block: at.block, hash: at.block_hash });
        }
    }
}

/// What the file holds up to the last block of which it says that it is complete, in whole lines and in order.
///
/// # Errors
/// When the disk fails, or a newer version has written the file.
pub(super) fn read(path: &Path) -> io::Result<Kept> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Kept::default()),
        Err(error) => return Err(error),
    };
    let mut kept = Kept::default();
    for line in BufReader::new(file).lines() {
        let line = line?;
        if Heading::begins(&line) {
            kept.undone = Heading::read(&line)?.undone;
            continue;
        }
        if line.starts_with(UNTIL) {
            let Ok(Until { until }) = serde_json::from_str(&line) else { break };
            kept.until = Some(until);
            continue;
        }
        let Ok(event) = serde_json::from_str::<EventAt>(&line) else { break };
        if kept.events.last().is_some_and(|last| last.place() >= event.place()) {
            break;
        }
        kept.events.push(event);
    }
    let complete = kept.until.map_or(0, |until| until.block.saturating_add(1));
    kept.events.retain(|at| at.block < complete);
    Ok(kept)
}

/// Makes the file hold just this; returns how many bytes it has.
///
/// # Errors
/// When the disk fails; the file is as it was, then.
pub(super) fn write(path: &Path, kept: &Kept) -> io::Result<u64> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let mut text = Heading::new(kept.undone).line()?;
    for event in &kept.events {
        serde_json::to_writer(&mut text, event)?;
        text.push(b'\n');
    }
    if let Some(until) = kept.until {
        serde_json::to_writer(&mut text, &Until { until })?;
        text.push(b'\n');
    }
    let aside = path.with_extension("tmp");
    std::fs::write(&aside, &text)?;
    std::fs::rename(&aside, path)?;
    Ok(text.len() as u64)
}

/// The first event of the file; none if its first line after the heading is no event.
pub(super) fn first(path: &Path) -> io::Result<Option<EventAt>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    for line in BufReader::new(file).lines() {
        let line = line?;
        if !Heading::begins(&line) {
            return Ok(serde_json::from_str(&line).ok());
        }
    }
    Ok(None)
}

/// Where the file is, and how many of its bytes are whole lines. Its writer goes on as long as somebody holds it.
pub(super) struct Written {
    path: PathBuf,
    bytes: watch::Receiver<u64>,
}

impl Written {
    /// Whether somebody still writes.
    pub(super) fn grows(&self) -> bool {
        self.bytes.has_changed().is_ok()
    }
}

/// Who writes the file.
pub(super) struct LogWriter {
    file: File,
    /// Whether the last line may be there in part: the disk was full.
    torn: bool,
    bytes: watch::Sender<u64>,
}

impl LogWriter {
    /// Makes the file hold just this.
    ///
    /// # Errors
    /// When the disk fails; the file is as it was, then.
    pub(super) fn create(path: &Path, kept: &Kept) -> io::Result<(Self, Written)> {
        let bytes = write(path, kept)?;
        let file = OpenOptions::new().append(true).open(path)?;
        let (sender, receiver) = watch::channel(bytes);
        Ok((Self { file, torn: false, bytes: sender }, Written { path: path.to_owned(), bytes: receiver }))
    }

    /// Adds an event, and tells those who read.
    ///
    /// # Errors
    /// When the disk fails; the same event can be added again, then.
    pub(super) fn append(&mut self, event: &EventAt) -> io::Result<()> {
        self.append_line(serde_json::to_vec(event)?)
    }

    /// Notes that the file is complete up to this block.
    ///
    /// # Errors
    /// As [`Self::append`].
    pub(super) fn complete(&mut self, until: Mark) -> io::Result<()> {
        self.append_line(serde_json::to_vec(&Until { until })?)
    }

    fn append_line(&mut self, mut line: Vec<u8>) -> io::Result<()> {
        line.push(b'\n');
        if self.torn {
            self.file.set_len(*self.bytes.borrow())?;
        }
        // One write: a kill of this process leaves the line or nothing; a torn line of a dead machine is cut off at the
        // next start.
        self.torn = true;
        self.file.write_all(&line)?;
        self.torn = false;
        self.bytes.send_modify(|bytes| *bytes = bytes.saturating_add(line.len() as u64));
        Ok(())
    }

    /// Until nobody reads any more.
    pub(super) async fn unread(&self) {
        self.bytes.closed().await;
    }
}

/// Who reads the file, at a pace of its own.
pub(super) struct LogReader {
    lines: BufReader<File>,
    read: u64,
    bytes: watch::Receiver<u64>,
    _written: Arc<Written>,
}

impl LogReader {
    /// Reads from the beginning.
    ///
    /// # Errors
    /// When the file cannot be opened.
    pub(super) fn open(written: Arc<Written>) -> io::Result<Self> {
        let lines = BufReader::new(File::open(&written.path)?);
        Ok(Self { lines, read: 0, bytes: written.bytes.clone(), _written: written })
    }

    /// The next event; waits for it. None when nothing is written any more. Nothing is lost when it is dropped.
    ///
    /// # Errors
    /// When the disk fails, or somebody else wrote to the file.
    pub(super) async fn next(&mut self) -> io::Result<Option<EventAt>> {
        loop {
            while self.read >= *self.bytes.borrow_and_update() {
                if self.bytes.changed().await.is_err() {
                    return Ok(None);
                }
            }
            let mut line = String::new();
            let taken = self.lines.read_line(&mut line)?;
            self.read = self.read.saturating_add(taken as u64);
            if !line.starts_with(UNTIL) && !Heading::begins(&line) {
                return Ok(Some(serde_json::from_str(&line)?));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tensorlink_types::{B256, JobId};

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

    /// A full disk takes a part of a line.
    #[tokio::test]
    async fn a_line_that_did_not_fit_is_whole_once_there_is_room() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events");
        let (mut writer, written) = LogWriter::create(&path, &kept(&[1], 1)).unwrap();
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
        assert_eq!(read(&path).unwrap(), kept(&[1], 1), "of later blocks it may have a part");
        writer.complete(mark(5)).unwrap();
        assert_eq!(read(&path).unwrap(), kept(&[1, 2, 3], 5));
    }

    fn mark(block: u64) -> Mark {
        Mark { block, hash: B256::ZERO }
    }

    fn kept(blocks: &[u64], until: u64) -> Kept {
        Kept { events: blocks.iter().copied().map(event).collect(), until: Some(mark(until)), undone: 0 }
    }

    #[test]
    fn the_chain_is_known_by_the_blocks_of_the_last_events_and_by_the_last_one() {
        assert_eq!(Kept::default().marks(), []);
        assert_eq!(kept(&[1, 3], 3).marks(), [1, 3].map(mark));
        assert_eq!(kept(&[1, 3], 7).marks(), [1, 3, 7].map(mark));
        let many = kept(&(0..1_000).collect::<Vec<_>>(), 2_000).marks();
        assert_eq!((many.len(), many[0].block), (MARKS + 1, 1_000 - MARKS as u64));
    }

    #[test]
    fn what_is_taken_back_is_forgotten_at_any_depth() {
        for depth in [1, 4, 64, 1_000] {
            let all: Vec<u64> = (1..=100).collect();
            let from = 101u64.saturating_sub(depth);
            let mut left = kept(&all, 100);
            left.take_back(from);
            let stays: Vec<u64> = (1..from.max(1)).collect();
            let expected = if stays.is_empty() { Kept::default() } else { kept(&stays, from - 1) };
            assert_eq!(left, Kept { undone: 1, ..expected }, "{depth}");
        }
        let mut quiet = kept(&[3], 50);
        quiet.take_back(51);
        assert_eq!(quiet, Kept { undone: 1, ..kept(&[3], 50) }, "nothing of it is undone");
        quiet.take_back(40);
        assert_eq!(quiet, Kept { undone: 2, ..kept(&[3], 3) });
    }
}
