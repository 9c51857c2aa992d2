//! Blocks in a database of our own: one file, crash-safe, counted by reference, within a budget.
//!
//! Every change is one durable transaction: what `keep` returned from is there after a kill or a power cut, and what it
//! did not return from is there wholly or not at all. redb's cheaper commits live in memory until the next durable one,
//! so they would not even outlive the process.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use cid::Cid;
use redb::{Database, DatabaseError, ReadableDatabase, ReadableTable, TableDefinition};
use tensorlink_node::ports::StoreError;
use tokio::task::spawn_blocking;

use crate::backend::Backend;

/// (CID, number of the piece) → piece of the block.
const PIECES: TableDefinition<'_, (&[u8], u32), &[u8]> = TableDefinition::new("pieces");
/// CID → number of pinned files that hold the block.
const COUNTS: TableDefinition<'_, &[u8], u64> = TableDefinition::new("counts");
/// Root CID → CIDs of the file's blocks, each once.
const PINS: TableDefinition<'_, &[u8], Vec<&[u8]>> = TableDefinition::new("pins");
/// `bytes` → sum of the blocks' sizes.
const TOTALS: TableDefinition<'_, &str, u64> = TableDefinition::new("totals");
const BYTES: &str = "bytes";
/// Largest piece of a block, bytes. The database gives a value a power of two of bytes, its key and header included: a
/// block of 256 KiB in one piece would take 512 KiB of disk.
const PIECE: usize = (64 << 10) - 512;
/// Memory that the database may use as a cache, bytes: for its indices. Files are read seldom, and the operating system
/// caches as well.
const CACHE: usize = 4 << 20;

/// Blocks on disk.
#[derive(Clone, Debug)]
pub struct Embedded {
    folder: PathBuf,
    /// None after a failure of the disk, a full one for instance: redb does nothing more then until it is opened again.
    database: Arc<RwLock<Option<Database>>>,
    budget: u64,
}

fn backend(error: impl std::fmt::Display) -> StoreError {
    StoreError::Backend(error.to_string())
}

/// A block in pieces; an empty one has one, so that it is there.
fn pieces_of(block: &[u8]) -> impl Iterator<Item = &[u8]> {
    block.chunks(PIECE).chain(block.is_empty().then_some(&[] as &[u8]))
}

/// Opens (and creates) the database in a folder.
fn open(folder: &Path) -> Result<Database, StoreError> {
    let at = |error: &dyn std::fmt::Display| StoreError::Backend(format!("{}: {error}", folder.display()));
    std::fs::create_dir_all(folder).map_err(|e| at(&e))?;
    let file = folder.join("blocks.redb");
    let database = Database::builder().set_cache_size(CACHE).create(file).map_err(|error| match error {
        DatabaseError::DatabaseAlreadyOpen => StoreError::InUse(folder.display().to_string()),
        error => at(&error),
    })?;
    let write = database.begin_write().map_err(|e| at(&e))?;
    write.open_table(PIECES).map_err(|e| at(&e))?;
    write.open_table(COUNTS).map_err(|e| at(&e))?;
    write.open_table(PINS).map_err(|e| at(&e))?;
    write.open_table(TOTALS).map_err(|e| at(&e))?;
    write.commit().map_err(|e| at(&e))?;
    Ok(database)
}

impl Embedded {
    /// Opens (and creates) the database in `folder`, to hold at most `budget` bytes of blocks. The
    /// file grows by doubling, so that it may take twice that on disk.
    ///
    /// # Errors
    /// [`StoreError::InUse`] when another process has it open, [`StoreError::Backend`].
    pub fn open(folder: &Path, budget: u64) -> Result<Self, StoreError> {
        let database = Arc::new(RwLock::new(Some(open(folder)?)));
        Ok(Self { folder: folder.to_owned(), database, budget })
    }

    fn read_block(database: &Database, cid: &Cid) -> Result<Option<Bytes>, StoreError> {
        let read = database.begin_read().map_err(backend)?;
        let pieces = read.open_table(PIECES).map_err(backend)?;
        let key = cid.to_bytes();
        let mut block = None;
        for piece in pieces.range((key.as_slice(), 0)..=(key.as_slice(), u32::MAX)).map_err(backend)? {
            let (_, piece) = piece.map_err(backend)?;
            block.get_or_insert_with(BytesMut::new).extend_from_slice(piece.value());
        }
        Ok(block.map(BytesMut::freeze))
    }

    fn pin(database: &Database, root: &Cid, blocks: &[(Cid, Bytes)], budget: u64) -> Result<(), StoreError> {
        let write = database.begin_write().map_err(backend)?;
        {
            let mut pins = write.open_table(PINS).map_err(backend)?;
            if pins.get(root.to_bytes().as_slice()).map_err(backend)?.is_some() {
                return Ok(());
            }
            let mut pieces = write.open_table(PIECES).map_err(backend)?;
            let mut counts = write.open_table(COUNTS).map_err(backend)?;
            let mut totals = write.open_table(TOTALS).map_err(backend)?;
            let total = totals.get(BYTES).map_err(backend)?.map_or(0, |total| total.value());
            let mut needed = 0;
            let cids: Vec<Vec<u8>> = blocks.iter().map(|(cid, _)| cid.to_bytes()).collect();
            for (key, (_, block)) in cids.iter().map(Vec::as_slice).zip(blocks) {
                let count = counts.get(key).map_err(backend)?.map_or(0, |count| count.value());
                counts.insert(key, count + 1).map_err(backend)?;
                if count > 0 {
                    continue;
                }
                needed += block.len() as u64;
                if total + needed > budget {
                    // Dropping the transaction undoes it.
                    let needed = blocks.iter().map(|(_, block)| block.len() as u64).sum();
                    return Err(StoreError::Full { needed, budget });
                }
                for (i, piece) in (0..).zip(pieces_of(block)) {
                    pieces.insert((key, i), piece).map_err(backend)?;
                }
            }
            totals.insert(BYTES, total + needed).map_err(backend)?;
            let cids: Vec<&[u8]> = cids.iter().map(Vec::as_slice).collect();
            pins.insert(root.to_bytes().as_slice(), cids).map_err(backend)?;
        }
        write.commit().map_err(backend)
    }

    fn overwrite(database: &Database, cid: &Cid, block: &[u8]) -> Result<(), StoreError> {
        let write = database.begin_write().map_err(backend)?;
        {
            let counts = write.open_table(COUNTS).map_err(backend)?;
            let mut pieces = write.open_table(PIECES).map_err(backend)?;
            let key = cid.to_bytes();
            let key = key.as_slice();
            if counts.get(key).map_err(backend)?.is_none() {
                return Ok(());
            }
            for (i, piece) in (0..).zip(pieces_of(block)) {
                pieces.insert((key, i), piece).map_err(backend)?;
            }
        }
        write.commit().map_err(backend)
    }

    fn drop_pin(database: &Database, root: &Cid) -> Result<(), StoreError> {
        let write = database.begin_write().map_err(backend)?;
        {
            let mut pins = write.open_table(PINS).map_err(backend)?;
            let Some(cids) = pins.remove(root.to_bytes().as_slice()).map_err(backend)? else { return Ok(()) };
            let mut pieces = write.open_table(PIECES).map_err(backend)?;
            let mut counts = write.open_table(COUNTS).map_err(backend)?;
            let mut totals = write.open_table(TOTALS).map_err(backend)?;
            let mut total = totals.get(BYTES).map_err(backend)?.map_or(0, |total| total.value());
            for cid in cids.value() {
                let count = counts.get(cid).map_err(backend)?.map_or(0, |count| count.value());
                if count > 1 {
                    counts.insert(cid, count - 1).map_err(backend)?;
                } else {
                    counts.remove(cid).map_err(backend)?;
                    let all = (cid, 0)..=(cid, u32::MAX);
                    for piece in pieces.extract_from_if(all, |_, _| true).map_err(backend)? {
                        let (_, piece) = piece.map_err(backend)?;
                        total = total.saturating_sub(piece.value().len() as u64);
                    }
                }
            }
            totals.insert(BYTES, total).map_err(backend)?;
        }
        write.commit().map_err(backend)
    }

    fn is_pinned(database: &Database, root: &Cid) -> Result<bool, StoreError> {
        let read = database.begin_read().map_err(backend)?;
        let pins = read.open_table(PINS).map_err(backend)?;
        Ok(pins.get(root.to_bytes().as_slice()).map_err(backend)?.is_some())
    }

    /// Runs on a thread that may block.
    async fn blocking<T: Send + 'static>(
        &self,
        job: impl FnOnce(&Database) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let store = self.clone();
        spawn_blocking(move || store.with(job)).await.map_err(backend)?
    }

    /// Does something with the database, which is opened again if it failed before.
    fn with<T>(&self, job: impl FnOnce(&Database) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let closed = self.database.read().unwrap_or_else(PoisonError::into_inner).is_none();
        if closed {
            let mut database = self.database.write().unwrap_or_else(PoisonError::into_inner);
            if database.is_none() {
                *database = Some(open(&self.folder)?);
            }
        }
        let done = match self.database.read().unwrap_or_else(PoisonError::into_inner).as_ref() {
            Some(database) => job(database),
            None => Err(StoreError::Backend("it failed a moment ago".into())),
        };
        if matches!(done, Err(StoreError::Backend(_))) {
            // Waits for whoever still reads. Closed before it is opened again: one process has it open once.
            *self.database.write().unwrap_or_else(PoisonError::into_inner) = None;
        }
        done
    }
}

#[async_trait]
impl Backend for Embedded {
    async fn block(&self, cid: &Cid) -> Result<Option<Bytes>, StoreError> {
        let cid = *cid;
        self.blocking(move |database| Self::read_block(database, &cid)).await
    }

    async fn keep(&self, root: &Cid, blocks: Vec<(Cid, Bytes)>) -> Result<(), StoreError> {
        let root = *root;
        let budget = self.budget;
        self.blocking(move |database| Self::pin(database, &root, &blocks, budget)).await
    }

    async fn mend(&self, cid: &Cid, block: Bytes) -> Result<(), StoreError> {
        let cid = *cid;
        self.blocking(move |database| Self::overwrite(database, &cid, &block)).await
    }

    async fn has(&self, root: &Cid) -> Result<bool, StoreError> {
        let root = *root;
        self.blocking(move |database| Self::is_pinned(database, &root)).await
    }

    async fn release(&self, root: &Cid) -> Result<(), StoreError> {
        let root = *root;
        self.blocking(move |database| Self::drop_pin(database, &root)).await
    }

    async fn search(&self, _: &Cid) -> Result<Option<Bytes>, StoreError> {
        // There is no network behind this backend but the holders, and they were asked.
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unixfs::{CHUNK, blocks_of};

    fn total(store: &Embedded) -> u64 {
        let database = store.database.read().unwrap();
        let read = database.as_ref().unwrap().begin_read().unwrap();
        let totals = read.open_table(TOTALS).unwrap();
        totals.get(BYTES).unwrap().map_or(0, |t| t.value())
    }

    async fn put(store: &Embedded, content: &[u8]) -> Result<Cid, StoreError> {
        let blocks = blocks_of(&Bytes::copy_from_slice(content));
        let root = blocks.last().unwrap().0;
        store.keep(&root, blocks).await?;
        Ok(root)
    }

    #[tokio::test]
    async fn blocks_shared_by_files_are_kept_until_the_last_is_unpinned() {
        let folder = tempfile::tempdir().unwrap();
        let store = Embedded::open(folder.path(), 64 << 20).unwrap();
        let shared = vec![7u8; CHUNK];
        // The first file holds the shared block twice.
        let one = put(&store, &[shared.as_slice(), &shared, b"one"].concat()).await.unwrap();
        let two = put(&store, &[shared.as_slice(), b"two"].concat()).await.unwrap();
        let leaf = blocks_of(&shared.clone().into())[0].0;
        assert!(total(&store) < 2 * CHUNK as u64);
        store.release(&one).await.unwrap();
        store.release(&one).await.unwrap();
        assert_eq!(store.block(&leaf).await.unwrap().unwrap(), shared);
        store.release(&two).await.unwrap();
        assert!(store.block(&leaf).await.unwrap().is_none());
        assert_eq!(total(&store), 0);
    }

    #[tokio::test]
    async fn a_file_over_budget_leaves_nothing_behind_and_a_reopened_store_has_all() {
        let folder = tempfile::tempdir().unwrap();
        let store = Embedded::open(folder.path(), 1000).unwrap();
        let small = put(&store, b"small").await.unwrap();
        let error = put(&store, &[1; 2000]).await.unwrap_err();
        assert!(matches!(error, StoreError::Full { needed: 2000, budget: 1000 }), "{error}");
        assert!(store.block(&blocks_of(&vec![1; 2000].into())[0].0).await.unwrap().is_none());
        let error = Embedded::open(folder.path(), 1000).unwrap_err();
        assert!(matches!(error, StoreError::InUse(_)), "{error}");
        drop(store);
        let store = Embedded::open(folder.path(), 1000).unwrap();
        assert!(store.has(&small).await.unwrap());
        assert_eq!(total(&store), 5);
    }

    #[tokio::test]
    async fn the_disk_holds_little_more_than_the_blocks_and_room_is_used_again() {
        let folder = tempfile::tempdir().unwrap();
        let store = Embedded::open(folder.path(), 64 << 20).unwrap();
        let size = || std::fs::metadata(folder.path().join("blocks.redb")).unwrap().len();
        for round in 0..6u32 {
            let content: Vec<u8> = (0..2u32 << 20).flat_map(|i| (i ^ round << 24).to_le_bytes()).collect();
            let root = put(&store, &content).await.unwrap();
            assert!(size() < 2 * content.len() as u64 + (3 << 20), "{} bytes after {round}", size());
            store.release(&root).await.unwrap();
        }
    }

    #[test]
    fn a_file_that_is_no_database_is_an_error_that_names_it() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("blocks.redb"), b"not a database, but long enough to look at".repeat(1000))
            .unwrap();
        let error = Embedded::open(folder.path(), 1000).unwrap_err().to_string();
        assert!(error.contains(&folder.path().display().to_string()), "{error}");
    }
}
