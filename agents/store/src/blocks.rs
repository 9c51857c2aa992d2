//! The blocks of files in the embedded database, counted by reference.

use bytes::{Bytes, BytesMut};
use cid::Cid;
use redb::{ReadTransaction, ReadableTable, Table, TableDefinition, WriteTransaction};
use tensorlink_node::ports::StoreError;

use crate::backend::failure;

/// (CID, number of the piece) → piece of the block.
const PIECES: TableDefinition<'_, (&[u8], u32), &[u8]> = TableDefinition::new("pieces");
/// CID → number of files here that hold the block.
const COUNTS: TableDefinition<'_, &[u8], u64> = TableDefinition::new("counts");
/// Root CID → CIDs of the file's blocks, each once.
const PINS: TableDefinition<'_, &[u8], Vec<&[u8]>> = TableDefinition::new("pins");
/// `bytes` → sum of the blocks' sizes.
const TOTALS: TableDefinition<'_, &str, u64> = TableDefinition::new("totals");
const BYTES: &str = "bytes";
/// Largest piece of a block, bytes. The database gives a value a power of two of bytes, its key and header included: a
/// block of 256 KiB in one piece would take 512 KiB of disk.
const PIECE: usize = (64 << 10) - 512;

/// A block in pieces; an empty one has one, so that it is there.
fn pieces_of(block: &[u8]) -> impl Iterator<Item = &[u8]> {
    block.chunks(PIECE).chain(block.is_empty().then_some(&[] as &[u8]))
}

/// A block that is here.
pub(crate) fn read(transaction: &ReadTransaction, cid: &Cid) -> Result<Option<Bytes>, StoreError> {
    let pieces = transaction.open_table(PIECES).map_err(failure)?;
    let key = cid.to_bytes();
    let mut block = None;
    for piece in pieces.range((key.as_slice(), 0)..=(key.as_slice(), u32::MAX)).map_err(failure)? {
        let (_, piece) = piece.map_err(failure)?;
        block.get_or_insert_with(BytesMut::new).extend_from_slice(piece.value());
    }
    Ok(block.map(BytesMut::freeze))
}

/// Whether a file is here.
pub(crate) fn has(transaction: &ReadTransaction, root: &[u8]) -> Result<bool, StoreError> {
    let pins = transaction.open_table(PINS).map_err(failure)?;
    Ok(pins.get(root).map_err(failure)?.is_some())
}

/// Sum of the blocks' sizes.
#[cfg(test)]
pub(crate) fn total(transaction: &ReadTransaction) -> u64 {
    let totals = transaction.open_table(TOTALS).unwrap();
    totals.get(BYTES).unwrap().map_or(0, |total| total.value())
}

/// The tables, open for a change.
pub(crate) struct Blocks<'t> {
    pieces: Table<'t, (&'static [u8], u32), &'static [u8]>,
    counts: Table<'t, &'static [u8], u64>,
    pins: Table<'t, &'static [u8], Vec<&'static [u8]>>,
    totals: Table<'t, &'static str, u64>,
}

impl<'t> Blocks<'t> {
    pub(crate) fn open(write: &'t WriteTransaction) -> Result<Self, StoreError> {
        Ok(Self {
            pieces: write.open_table(PIECES).map_err(failure)?,
            counts: write.open_table(COUNTS).map_err(failure)?,
            pins: write.open_table(PINS).map_err(failure)?,
            totals: write.open_table(TOTALS).map_err(failure)?,
        })
    }

    /// Sum of the blocks' sizes.
    pub(crate) fn total(&self) -> Result<u64, StoreError> {
        Ok(self.totals.get(BYTES).map_err(failure)?.map_or(0, |total| total.value()))
    }

    /// Whether a file is here.
    pub(crate) fn has(&self, root: &[u8]) -> Result<bool, StoreError> {
        Ok(self.pins.get(root).map_err(failure)?.is_some())
    }

    /// All files that are here, each with its bytes.
    pub(crate) fn files(&self) -> Result<Vec<(Vec<u8>, u64)>, StoreError> {
        let mut files = Vec::new();
        for pin in self.pins.iter().map_err(failure)? {
            let (root, cids) = pin.map_err(failure)?;
            let mut bytes = 0u64;
            for cid in cids.value() {
                for piece in self.pieces.range((cid, 0)..=(cid, u32::MAX)).map_err(failure)? {
                    bytes = bytes.saturating_add(piece.map_err(failure)?.1.value().len() as u64);
                }
            }
            files.push((root.value().to_vec(), bytes));
        }
        Ok(files)
    }

    /// Bytes of those blocks that no file here holds.
    pub(crate) fn fresh(&self, blocks: &[(Cid, Bytes)]) -> Result<u64, StoreError> {
        let mut bytes = 0u64;
        for (cid, block) in blocks {
            if self.counts.get(cid.to_bytes().as_slice()).map_err(failure)?.is_none() {
                bytes = bytes.saturating_add(block.len() as u64);
            }
        }
        Ok(bytes)
    }

    /// Adds a file that is not here.
    pub(crate) fn add(&mut self, root: &[u8], blocks: &[(Cid, Bytes)]) -> Result<(), StoreError> {
        let mut total = self.total()?;
        let cids: Vec<Vec<u8>> = blocks.iter().map(|(cid, _)| cid.to_bytes()).collect();
        for (key, (_, block)) in cids.iter().map(Vec::as_slice).zip(blocks) {
            let count = self.counts.get(key).map_err(failure)?.map_or(0, |count| count.value());
            self.counts.insert(key, count.saturating_add(1)).map_err(failure)?;
            if count == 0 {
                total = total.saturating_add(block.len() as u64);
                self.write(key, block)?;
            }
        }
        self.totals.insert(BYTES, total).map_err(failure)?;
        let cids: Vec<&[u8]> = cids.iter().map(Vec::as_slice).collect();
        self.pins.insert(root, cids).map_err(failure)?;
        Ok(())
    }

    /// Puts a block in place of one that is here.
    pub(crate) fn mend(&mut self, cid: &Cid, block: &[u8]) -> Result<(), StoreError> {
        let key = cid.to_bytes();
        if self.counts.get(key.as_slice()).map_err(failure)?.is_none() {
            return Ok(());
        }
        self.write(&key, block)
    }

    fn write(&mut self, key: &[u8], block: &[u8]) -> Result<(), StoreError> {
        for (number, piece) in (0..).zip(pieces_of(block)) {
            self.pieces.insert((key, number), piece).map_err(failure)?;
        }
        Ok(())
    }

    /// Drops a file, with those of its blocks that no other holds.
    pub(crate) fn remove(&mut self, root: &[u8]) -> Result<(), StoreError> {
        let cids: Vec<Vec<u8>> = match self.pins.remove(root).map_err(failure)? {
            Some(cids) => cids.value().into_iter().map(<[u8]>::to_vec).collect(),
            None => return Ok(()),
        };
        let mut total = self.total()?;
        for cid in cids.iter().map(Vec::as_slice) {
            let count = self.counts.get(cid).map_err(failure)?.map_or(0, |count| count.value());
            if count > 1 {
                self.counts.insert(cid, count.saturating_sub(1)).map_err(failure)?;
                continue;
            }
            self.counts.remove(cid).map_err(failure)?;
            let all = (cid, 0)..=(cid, u32::MAX);
            for piece in self.pieces.extract_from_if(all, |_, _| true).map_err(failure)? {
                let (_, piece) = piece.map_err(failure)?;
                total = total.saturating_sub(piece.value().len() as u64);
            }
        }
        self.totals.insert(BYTES, total).map_err(failure)?;
        Ok(())
    }
}
