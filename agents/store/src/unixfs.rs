//! Files as blocks: UnixFS, CIDv1, SHA-256, raw leaves of 256 KiB, 174 links a node, which is what
//! `ipfs add --cid-version 1 --chunker size-262144` makes of the same bytes. Files chunked in another way can be read.

use std::collections::HashSet;

use bytes::Bytes;
use cid::Cid;
use multihash_codetable::{Code, MultihashDigest};
use rust_unixfs::file::adder::{BalancedCollector, Chunker, FileAdder};
use rust_unixfs::file::visit::{FileVisit, IdleFileVisit};
use tensorlink_node::ports::StoreError;

/// Bytes of a leaf.
pub const CHUNK: usize = 256 << 10;
/// Links of an inner node.
const LINKS: usize = 174;
/// Largest block of any store we talk to, bytes.
pub const MAX_BLOCK: usize = 2 << 20;
/// Smallest mean size of a leaf that we accept, bytes. What is chunked finer costs more to walk than it is worth.
const MIN_MEAN_CHUNK: u64 = 1 << 10;
/// Blocks that a file of any size may have.
const FREE_BLOCKS: u64 = 256;
/// Multicodec of a raw leaf.
const RAW: u64 = 0x55;
/// Multicodec of a dag-pb node.
const DAG_PB: u64 = 0x70;

/// The blocks of a file, each once, in the order in which they become complete: the root is the last. Leaves are parts
/// of `content` itself, which may be gigabytes.
pub fn blocks_of(content: &Bytes) -> Vec<(Cid, Bytes)> {
    let mut adder = FileAdder::builder()
        .with_cid_version(cid::Version::V1)
        .with_raw_leaves(true)
        .with_chunker(Chunker::Size(CHUNK))
        .with_collector(BalancedCollector::with_branching_factor(LINKS))
        .build();
    let (mut blocks, mut seen) = (Vec::new(), HashSet::new());
    let mut leaves = content.clone();
    let mut take = |(cid, block): (Cid, Vec<u8>)| {
        let block =
            if cid.codec() == RAW { leaves.split_to(block.len().min(leaves.len())) } else { Bytes::from(block) };
        if seen.insert(cid) {
            blocks.push((cid, block));
        }
    };
    let mut rest: &[u8] = content;
    while !rest.is_empty() {
        let (made, used) = adder.push(rest);
        made.for_each(&mut take);
        rest = rest.get(used..).unwrap_or_default();
    }
    adder.finish().for_each(&mut take);
    blocks
}

/// Whether we can verify what a CID names: SHA-256 over a raw leaf or a dag-pb node.
fn verifiable(cid: &Cid) -> bool {
    let hash = cid.hash();
    matches!(cid.codec(), RAW | DAG_PB) && hash.code() == u64::from(Code::Sha2_256) && hash.size() == 32
}

/// What IPFS calls the codec of a CID that passed [`check_kind`] or came from [`blocks_of`].
pub fn codec_name(cid: &Cid) -> &'static str {
    if cid.codec() == RAW { "raw" } else { "dag-pb" }
}

/// Refuses CIDs that are not of a file in CIDv1, or that we cannot verify.
///
/// # Errors
/// [`StoreError::Unsupported`].
pub fn check_kind(cid: &Cid) -> Result<(), StoreError> {
    if cid.version() == cid::Version::V1 && verifiable(cid) { Ok(()) } else { Err(StoreError::Unsupported(*cid)) }
}

/// Whether bytes hash to their CID.
pub fn matches(cid: &Cid, block: &[u8]) -> bool {
    Code::Sha2_256.digest(block) == *cid.hash()
}

/// Puts a file together from its blocks, asked for one after the other in file order.
///
/// Blocks come from strangers and a CID proves only that they are the ones it names: they may name no file, or one that
/// is small and takes forever to walk (nodes that link to one another's copies, all of them empty). So the walk is
/// bounded by the blocks that a file within the limit can have.
#[derive(Debug)]
pub struct Assembly {
    root: Cid,
    visit: Option<FileVisit>,
    started: bool,
    content: Vec<u8>,
    limit: u64,
    /// Blocks taken.
    taken: u64,
}

impl Assembly {
    /// A file of at most `limit` bytes.
    pub const fn new(root: Cid, limit: u64) -> Self {
        Self { root, visit: None, started: false, content: Vec::new(), limit, taken: 0 }
    }

    /// The blocks wanted, the next one first; at most `most`, one that recurs as often as it does. Empty when the file
    /// is whole.
    pub fn wanted(&self, most: usize) -> Vec<Cid> {
        match &self.visit {
            Some(visit) => {
                let (first, rest) = visit.pending_links();
                std::iter::once(first).chain(rest).take(most).copied().collect()
            }
            None if self.started => Vec::new(),
            None => vec![self.root],
        }
    }

    /// Takes the next block, already verified.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`], or [`StoreError::Unsupported`] for blocks that are no file of ours to read.
    pub fn feed(&mut self, block: &[u8]) -> Result<(), StoreError> {
        let broken = || StoreError::Unsupported(self.root);
        let too_large = || StoreError::TooLarge { cid: self.root, limit: self.limit };
        let (bytes, visit) = match self.visit.take() {
            Some(visit) => visit.continue_walk(block, &mut None).map_err(|_| broken())?,
            None if self.root.codec() == RAW => (block, None),
            None => {
                let (bytes, size, _, visit) = IdleFileVisit::default().start(block).map_err(|_| broken())?;
                if size > self.limit {
                    return Err(too_large());
                }
                (bytes, visit)
            }
        };
        if (self.content.len() + bytes.len()) as u64 > self.limit {
            return Err(too_large());
        }
        self.taken += 1;
        // Only an inner node, which has no bytes, adds links: no need to look at them after a leaf.
        if let Some(visit) = visit.as_ref().filter(|_| bytes.is_empty()) {
            let (first, rest) = visit.pending_links();
            let most = FREE_BLOCKS + self.limit / MIN_MEAN_CHUNK;
            let mut links = self.taken;
            for cid in std::iter::once(first).chain(rest) {
                links += 1;
                if links > most || !verifiable(cid) {
                    return Err(broken());
                }
            }
        }
        self.content.extend_from_slice(bytes);
        self.visit = visit;
        self.started = true;
        Ok(())
    }

    /// The file, once nothing more is wanted.
    pub fn finish(self) -> Bytes {
        self.content.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assemble(blocks: &[(Cid, Bytes)], limit: u64) -> Result<Bytes, StoreError> {
        let find = |cid: &Cid| blocks.iter().find(|(c, _)| c == cid).map(|(_, b)| b.clone()).unwrap();
        let mut assembly = Assembly::new(blocks.last().unwrap().0, limit);
        while let Some(cid) = assembly.wanted(1).first().copied() {
            assembly.feed(&find(&cid))?;
        }
        Ok(assembly.finish())
    }

    #[test]
    fn files_of_every_depth_come_back_whole() {
        for len in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 5 * CHUNK + 17, 176 * CHUNK] {
            let content: Bytes = (0..len).map(|i| (i * 31 + i / 255) as u8).collect();
            let blocks = blocks_of(&content);
            assert!(blocks.iter().all(|(cid, block)| matches(cid, block) && check_kind(cid).is_ok()));
            assert_eq!(assemble(&blocks, len as u64).unwrap(), content, "{len}");
            if len > 0 {
                assert!(matches!(assemble(&blocks, len as u64 - 1), Err(StoreError::TooLarge { .. })), "{len}");
            }
        }
    }

    #[test]
    fn the_cid_is_what_ipfs_gives() {
        // `echo -n hello | ipfs add --cid-version 1`.
        let root = blocks_of(&Bytes::from_static(b"hello")).last().unwrap().0;
        assert_eq!(root.to_string(), "bafkreibm6jg3ux5qumhcn2b3flc3tyu6dmlb4xa7u5bf44yegnrjhc4yeq");
    }

    #[test]
    fn a_forged_block_does_not_match() {
        let (cid, block) = blocks_of(&Bytes::from_static(b"hello")).pop().unwrap();
        assert!(matches(&cid, &block) && !matches(&cid, b"hellp"));
    }
}
