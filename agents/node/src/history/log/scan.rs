//! What is to be known of the file before it is gone on with, by one look at each line.

use std::collections::VecDeque;
use std::io;
use std::path::Path;

use serde::Deserialize;
use tensorlink_types::B256;

use super::heading::Heading;
use super::lines::{Line, Lines};
use crate::ports::chain::Mark;

/// Blocks of events by which the chain is known.
const MARKS: usize = 256;

/// Of an event, where it stands.
#[derive(Deserialize)]
pub(super) struct Brief {
    pub(super) block: u64,
    pub(super) block_hash: B256,
    log_index: u64,
}

impl Brief {
    pub(super) const fn mark(&self) -> Mark {
        Mark { block: self.block, hash: self.block_hash }
    }
}

/// What the file holds up to the last block of which it says that it is complete, in whole lines and in order.
#[derive(Default, Debug)]
pub(in super::super) struct Scanned {
    /// None of a file of before.
    pub(super) heading: Option<Heading>,
    /// Blocks up to which everything is there, oldest first, by which a reorganisation is found.
    pub(in super::super) marks: Vec<Mark>,
    /// Bytes of it.
    pub(in super::super) bytes: u64,
    /// Events.
    pub(in super::super) events: u64,
    /// Events that were left when some were forgotten last.
    pub(in super::super) left: u64,
}

impl Scanned {
    /// The block; none before the first is read.
    pub(in super::super) fn until(&self) -> Option<Mark> {
        self.marks.last().copied()
    }
}

/// Looks through a file.
///
/// # Errors
/// When the disk fails, or a newer version has written the file.
pub(in super::super) fn scan(path: &Path) -> io::Result<Scanned> {
    let mut scanned = Scanned::default();
    let Some(mut lines) = Lines::open(path, u64::MAX)? else { return Ok(scanned) };
    let (mut known, mut fresh) = (VecDeque::new(), VecDeque::new());
    let (mut until, mut events, mut last) = (None, 0, None);
    while let Some(line) = lines.next()? {
        match line {
            Line::Heading(heading) => (scanned.heading, scanned.bytes) = (Some(heading), lines.read()),
            Line::Until(mark, left) => {
                until = Some(mark);
                known.append(&mut fresh);
                shorten(&mut known);
                scanned.left = left.unwrap_or(scanned.left);
                (scanned.bytes, scanned.events) = (lines.read(), events);
            }
            Line::Event(text) => {
                let Ok(brief) = serde_json::from_slice::<Brief>(text) else { break };
                let place = Some((brief.block, brief.log_index));
                if last >= place {
                    break;
                }
                (last, events) = (place, events + 1);
                if fresh.back().or(known.back()) != Some(&brief.mark()) {
                    fresh.push_back(brief.mark());
                    shorten(&mut fresh);
                }
            }
        }
    }
    if let Some(until) = until {
        let before = known.iter().filter(|mark| mark.block < until.block).copied();
        scanned.marks = before.chain([until]).collect();
        let over = scanned.marks.len().saturating_sub(MARKS + 1);
        scanned.marks.drain(..over);
    }
    Ok(scanned)
}

/// One more than needed: the last may be that of the block itself.
fn shorten(marks: &mut VecDeque<Mark>) {
    let over = marks.len().saturating_sub(MARKS + 1);
    marks.drain(..over);
}
