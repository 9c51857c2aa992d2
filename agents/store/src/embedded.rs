//! Blocks in a database of our own: one file, crash-safe, counted by reference, within a budget.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use cid::Cid;
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};
use tensorlink_node::ports::StoreError;
use tokio::task::spawn_blocking;

use crate::backend::Backend;
use crate::unixfs::blocks_of;

/// CID → block.
const BLOCKS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("blocks");
/// CID → number of pinned files that hold the block.
const COUNTS: TableDefinition<'_, &[u8], u64> = TableDefinition::new("counts");
/// Root CID → CIDs of the file's blocks, one after another.
const PINS: TableDefinition<'_, &[u8], Vec<&[u8]>> = TableDefinition::new("pins");
/// `bytes` → sum of the blocks' sizes.
const TOTALS: TableDefinition<'_, &str, u64> = TableDefinition::new("totals");
const BYTES: &str = "bytes";

/// Blocks on disk.
#[derive(Clone, Debug)]
pub struct Embedded {
    database: Arc<Database>,
    budget: u64,
}

fn backend(error: impl std::fmt::Display) -> StoreError {
    StoreError::Backend(error.to_string())
}

impl Embedded {
    /// Opens (and creates) the database in `folder`, to hold at most `budget` bytes.
    ///
    /// # Errors
    /// [`StoreError::Backend`], e.g. when another process has it open.
    pub fn open(folder: &Path, budget: u64) -> Result<Self, StoreError> {
        std::fs::create_dir_all(folder).map_err(backend)?;
        let database = Database::create(folder.join("blocks.redb")).map_err(backend)?;
        let write = database.begin_write().map_err(backend)?;
        write.open_table(BLOCKS).map_err(backend)?;
        write.open_table(COUNTS).map_err(backend)?;
        write.open_table(PINS).map_err(backend)?;
        write.open_table(TOTALS).map_err(backend)?;
        write.commit().map_err(backend)?;
        Ok(Self { database: Arc::new(database), budget })
    }

    fn read_block(&self, cid: &Cid) -> Result<Option<Bytes>, StoreError> {
        let read = self.database.begin_read().map_err(backend)?;
        let blocks = read.open_table(BLOCKS).map_err(backend)?;
        let block = blocks.get(cid.to_bytes().as_slice()).map_err(backend)?;
        Ok(block.map(|block| Bytes::copy_from_slice(block.value())))
    }

    fn pin(&self, content: &[u8]) -> Result<Cid, StoreError> {
        let blocks = blocks_of(content);
        let (root, _) = blocks.last().ok_or_else(|| backend("a file without blocks"))?;
        let root = *root;
        let write = self.database.begin_write().map_err(backend)?;
        {
            let mut pins = write.open_table(PINS).map_err(backend)?;
            if pins.get(root.to_bytes().as_slice()).map_err(backend)?.is_some() {
                return Ok(root);
            }
            let mut table = write.open_table(BLOCKS).map_err(backend)?;
            let mut counts = write.open_table(COUNTS).map_err(backend)?;
            let mut totals = write.open_table(TOTALS).map_err(backend)?;
            let mut total = totals.get(BYTES).map_err(backend)?.map_or(0, |total| total.value());
            let mut cids: Vec<Vec<u8>> = blocks.iter().map(|(cid, _)| cid.to_bytes()).collect();
            for (cid, block) in &blocks {
                let key = cid.to_bytes();
                let count = counts.get(key.as_slice()).map_err(backend)?.map_or(0, |count| count.value());
                if count == 0 {
                    total += block.len() as u64;
                    table.insert(key.as_slice(), block.as_ref()).map_err(backend)?;
                }
                counts.insert(key.as_slice(), count + 1).map_err(backend)?;
            }
            if total > self.budget {
                // Dropping the transaction undoes it.
                return Err(StoreError::Full { needed: content.len() as u64, budget: self.budget });
            }
            totals.insert(BYTES, total).map_err(backend)?;
            // A block that occurs twice in the file is counted twice, and given back twice.
            let cids: Vec<&[u8]> = cids.iter_mut().map(|cid| cid.as_slice()).collect();
            pins.insert(root.to_bytes().as_slice(), cids).map_err(backend)?;
        }
        write.commit().map_err(backend)?;
        Ok(root)
    }

    fn drop_pin(&self, root: &Cid) -> Result<(), StoreError> {
        let write = self.database.begin_write().map_err(backend)?;
        {
            let mut pins = write.open_table(PINS).map_err(backend)?;
            let Some(cids) = pins.remove(root.to_bytes().as_slice()).map_err(backend)? else { return Ok(()) };
            let mut table = write.open_table(BLOCKS).map_err(backend)?;
            let mut counts = write.open_table(COUNTS).map_err(backend)?;
            let mut totals = write.open_table(TOTALS).map_err(backend)?;
            let mut total = totals.get(BYTES).map_err(backend)?.map_or(0, |total| total.value());
            for cid in cids.value() {
                let count = counts.get(cid).map_err(backend)?.map_or(0, |count| count.value());
                if count > 1 {
                    counts.insert(cid, count - 1).map_err(backend)?;
                } else {
                    counts.remove(cid).map_err(backend)?;
                    let block = table.remove(cid).map_err(backend)?;
                    total = total.saturating_sub(block.map_or(0, |block| block.value().len() as u64));
                }
            }
            totals.insert(BYTES, total).map_err(backend)?;
        }
        write.commit().map_err(backend)
    }

    fn is_pinned(&self, root: &Cid) -> Result<bool, StoreError> {
        let read = self.database.begin_read().map_err(backend)?;
        let pins = read.open_table(PINS).map_err(backend)?;
        Ok(pins.get(root.to_bytes().as_slice()).map_err(backend)?.is_some())
    }

    /// Runs on a thread that may block.
    async fn blocking<T: Send + 'static>(
        &self,
        job: impl FnOnce(&Self) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let store = self.clone();
        spawn_blocking(move || job(&store)).await.map_err(backend)?
    }
}

#[async_trait]
impl Backend for Embedded {
    async fn block(&self, cid: &Cid) -> Result<Option<Bytes>, StoreError> {
        let cid = *cid;
        self.blocking(move |store| store.read_block(&cid)).await
    }

    async fn keep(&self, content: Bytes) -> Result<Cid, StoreError> {
        self.blocking(move |store| store.pin(&content)).await
    }

    async fn has(&self, root: &Cid) -> Result<bool, StoreError> {
        let root = *root;
        self.blocking(move |store| store.is_pinned(&root)).await
    }

    async fn release(&self, root: &Cid) -> Result<(), StoreError> {
        let root = *root;
        self.blocking(move |store| store.drop_pin(&root)).await
    }

    async fn search(&self, _: &Cid, _: u64) -> Result<Option<Bytes>, StoreError> {
        // There is no network behind this backend but the holders, and they were asked.
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn total(store: &Embedded) -> u64 {
        let read = store.database.begin_read().unwrap();
        let totals = read.open_table(TOTALS).unwrap();
        totals.get(BYTES).unwrap().map_or(0, |t| t.value())
    }

    #[tokio::test]
    async fn blocks_shared_by_files_are_kept_until_the_last_is_unpinned() {
        let folder = tempfile::tempdir().unwrap();
        let store = Embedded::open(folder.path(), 64 << 20).unwrap();
        let shared = vec![7u8; 256 << 10];
        let one = store.keep([shared.as_slice(), b"one"].concat().into()).await.unwrap();
        let two = store.keep([shared.as_slice(), b"two"].concat().into()).await.unwrap();
        let leaf = crate::unixfs::blocks_of(&shared)[0].0;
        store.release(&one).await.unwrap();
        assert!(store.block(&leaf).await.unwrap().is_some());
        store.release(&two).await.unwrap();
        store.release(&two).await.unwrap();
        assert!(store.block(&leaf).await.unwrap().is_none());
        assert_eq!(total(&store), 0);
    }

    #[tokio::test]
    async fn a_file_over_budget_leaves_nothing_behind_and_a_reopened_store_has_all() {
        let folder = tempfile::tempdir().unwrap();
        let store = Embedded::open(folder.path(), 1000).unwrap();
        let small = store.keep(Bytes::from_static(b"small")).await.unwrap();
        let error = store.keep(vec![1; 2000].into()).await.unwrap_err();
        assert!(matches!(error, StoreError::Full { needed: 2000, budget: 1000 }), "{error}");
        drop(store);
        let store = Embedded::open(folder.path(), 1000).unwrap();
        assert!(store.has(&small).await.unwrap());
        assert_eq!(total(&store), 5);
    }
}
