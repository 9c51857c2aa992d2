//! Blocks in a database of our own: one file, crash-safe, counted by reference, within a budget.
//!
//! Every change is one durable transaction, of blocks and of who owns them: what `keep` returned from is there after a
//! kill or a power cut, and what it did not return from is there wholly or not at all. redb's cheaper commits live in
//! memory until the next durable one, so they would not even outlive the process. They are enough for when a file was
//! used last.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use async_trait::async_trait;
use bytes::Bytes;
use cid::Cid;
use redb::{Database, DatabaseError, Durability, ReadableDatabase};
use tensorlink_node::ports::{Owner, StoreError};
use tokio::task::spawn_blocking;

use crate::backend::{Backend, bytes_of, failure, share_of_quotes};
use crate::blocks::{self, Blocks};
use crate::ledger::{self, Kind, Ledger};

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

/// Opens (and creates) a database in a folder.
pub(crate) fn open(folder: &Path, name: &str) -> Result<Database, StoreError> {
    let at = |error: &dyn std::fmt::Display| StoreError::Backend(format!("{}: {error}", folder.display()));
    std::fs::create_dir_all(folder).map_err(|e| at(&e))?;
    let file = folder.join(name);
    Database::builder().set_cache_size(CACHE).create(file).map_err(|error| match error {
        DatabaseError::DatabaseAlreadyOpen => StoreError::InUse(folder.display().to_string()),
        error => at(&error),
    })
}

/// Opens (and creates) that of blocks. What is there from before owners were recorded is nobody's: roles that need a
/// file own it when they start.
fn open_blocks(folder: &Path) -> Result<Database, StoreError> {
    let at = |error: &dyn std::fmt::Display| StoreError::Backend(format!("{}: {error}", folder.display()));
    let database = open(folder, "blocks.redb")?;
    let write = database.begin_write().map_err(|e| at(&e))?;
    {
        let blocks = Blocks::open(&write)?;
        let mut ledger = Ledger::open(&write)?;
        if !ledger.settle_version().map_err(|e| at(&e))? {
            for (root, bytes) in blocks.files()? {
                ledger.own(Owner::Nobody, &root, bytes)?;
            }
        }
    }
    write.commit().map_err(|e| at(&e))?;
    Ok(database)
}

/// Drops the file that nobody owns and that was not used for longest, of those for quotes only if `quoted`; whether
/// there was one.
fn evict(blocks: &mut Blocks<'_>, ledger: &mut Ledger<'_>, quoted: bool) -> Result<bool, StoreError> {
    let Some(oldest) = ledger.oldest(quoted)? else { return Ok(false) };
    blocks.remove(&oldest)?;
    ledger.forget(&oldest)?;
    Ok(true)
}

impl Embedded {
    /// Opens (and creates) the database in `folder`, to hold at most `budget` bytes of blocks. The
    /// file grows by doubling, so that it may take twice that on disk.
    ///
    /// # Errors
    /// [`StoreError::InUse`] when another process has it open, [`StoreError::Backend`].
    pub fn open(folder: &Path, budget: u64) -> Result<Self, StoreError> {
        let database = Arc::new(RwLock::new(Some(open_blocks(folder)?)));
        Ok(Self { folder: folder.to_owned(), database, budget })
    }

    fn add(
        database: &Database,
        root: &[u8],
        (blocks, owner): (&[(Cid, Bytes)], Owner),
        budget: u64,
    ) -> Result<bool, StoreError> {
        let write = database.begin_write().map_err(failure)?;
        {
            let (mut here, mut ledger) = (Blocks::open(&write)?, Ledger::open(&write)?);
            let bytes = bytes_of(blocks);
            if !here.has(root)? {
                // Returning drops the transaction, which undoes it.
                let full = |needed| if owner.keeps() { Err(StoreError::Full { needed, budget }) } else { Ok(false) };
                let share = share_of_quotes(budget);
                if owner == Owner::Quote && bytes > share {
                    return full(bytes);
                }
                while owner == Owner::Quote && ledger.sum(Kind::Quoted)?.saturating_add(bytes) > share {
                    if !evict(&mut here, &mut ledger, true)? {
                        break;
                    }
                }
                if here.fresh(blocks)? > budget {
                    return full(bytes);
                }
                here.add(root, blocks)?;
                // Afterwards: what is dropped may hold blocks of the file.
                while here.total()? > budget {
                    if !evict(&mut here, &mut ledger, false)? {
                        return full(bytes);
                    }
                }
            }
            ledger.own(owner, root, bytes)?;
        }
        write.commit().map_err(failure)?;
        Ok(true)
    }

    fn add_owner(database: &Database, root: &[u8], owner: Owner) -> Result<bool, StoreError> {
        let read = database.begin_read().map_err(failure)?;
        if !blocks::has(&read, root)? {
            return Ok(false);
        }
        if ledger::is_owned(&read, owner, root)? {
            return Ok(true);
        }
        let mut write = database.begin_write().map_err(failure)?;
        if !owner.keeps() {
            write.set_durability(Durability::None).map_err(failure)?;
        }
        let known = Ledger::open(&write)?.own_known(owner, root)?;
        write.commit().map_err(failure)?;
        Ok(known)
    }

    fn drop_owner(database: &Database, root: &[u8], owner: Owner) -> Result<(), StoreError> {
        let write = database.begin_write().map_err(failure)?;
        {
            let mut ledger = Ledger::open(&write)?;
            if ledger.disown(owner, root)? {
                ledger.forget(root)?;
                Blocks::open(&write)?.remove(root)?;
            }
        }
        write.commit().map_err(failure)
    }

    fn release_all(database: &Database, owner: Owner) -> Result<(), StoreError> {
        if !ledger::has_any(&database.begin_read().map_err(failure)?, owner)? {
            return Ok(());
        }
        let write = database.begin_write().map_err(failure)?;
        Ledger::open(&write)?.release(owner)?;
        write.commit().map_err(failure)
    }

    /// Reads on a thread that may block.
    async fn reading<T: Send + 'static>(
        &self,
        job: impl FnOnce(&redb::ReadTransaction) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.blocking(move |database| job(&database.begin_read().map_err(failure)?)).await
    }

    /// Runs on a thread that may block.
    async fn blocking<T: Send + 'static>(
        &self,
        job: impl FnOnce(&Database) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let store = self.clone();
        spawn_blocking(move || store.with(job)).await.map_err(failure)?
    }

    /// Does something with the database, which is opened again if it failed before.
    fn with<T>(&self, job: impl FnOnce(&Database) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let closed = self.database.read().unwrap_or_else(PoisonError::into_inner).is_none();
        if closed {
            let mut database = self.database.write().unwrap_or_else(PoisonError::into_inner);
            if database.is_none() {
                *database = Some(open_blocks(&self.folder)?);
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
        self.reading(move |read| blocks::read(read, &cid)).await
    }

    async fn keep(&self, root: &Cid, blocks: Vec<(Cid, Bytes)>, owner: Owner) -> Result<bool, StoreError> {
        let (root, budget) = (root.to_bytes(), self.budget);
        self.blocking(move |database| Self::add(database, &root, (&blocks, owner), budget)).await
    }

    async fn own(&self, root: &Cid, owner: Owner) -> Result<bool, StoreError> {
        let root = root.to_bytes();
        self.blocking(move |database| Self::add_owner(database, &root, owner)).await
    }

    async fn mend(&self, cid: &Cid, block: Bytes) -> Result<(), StoreError> {
        let cid = *cid;
        let job = move |database: &Database| {
            let write = database.begin_write().map_err(failure)?;
            Blocks::open(&write)?.mend(&cid, &block)?;
            write.commit().map_err(failure)
        };
        self.blocking(job).await
    }

    async fn has(&self, root: &Cid) -> Result<bool, StoreError> {
        let root = root.to_bytes();
        self.reading(move |read| blocks::has(read, &root)).await
    }

    async fn disown(&self, root: &Cid, owner: Owner) -> Result<(), StoreError> {
        let root = root.to_bytes();
        self.blocking(move |database| Self::drop_owner(database, &root, owner)).await
    }

    async fn release(&self, owner: Owner) -> Result<(), StoreError> {
        self.blocking(move |database| Self::release_all(database, owner)).await
    }

    async fn owners(&self) -> Result<Vec<Owner>, StoreError> {
        self.reading(ledger::owners).await
    }

    async fn room(&self) -> Result<u64, StoreError> {
        let owned = self.reading(|read| ledger::sum(read, Kind::Owned)).await?;
        Ok(self.budget.saturating_sub(owned))
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
        blocks::total(&database.as_ref().unwrap().begin_read().unwrap())
    }

    async fn put(store: &Embedded, content: &[u8]) -> Result<Cid, StoreError> {
        let blocks = blocks_of(&Bytes::copy_from_slice(content));
        let root = blocks.last().unwrap().0;
        store.keep(&root, blocks, Owner::Node).await?;
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
        store.disown(&one, Owner::Node).await.unwrap();
        store.disown(&one, Owner::Node).await.unwrap();
        assert_eq!(store.block(&leaf).await.unwrap().unwrap(), shared);
        store.disown(&two, Owner::Node).await.unwrap();
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
    async fn what_is_there_from_before_owners_were_recorded_is_nobodys_until_somebody_needs_it() {
        let folder = tempfile::tempdir().unwrap();
        let store = Embedded::open(folder.path(), 1000).unwrap();
        let (needed, past) = (put(&store, &[1; 400]).await.unwrap(), put(&store, &[2; 400]).await.unwrap());
        drop(store);
        let database = open(folder.path(), "blocks.redb").unwrap();
        let write = database.begin_write().unwrap();
        for table in write.list_tables().unwrap().collect::<Vec<_>>() {
            if ["owned", "files", "queue", "sums"].contains(&redb::TableHandle::name(&table)) {
                assert!(write.delete_table(table).unwrap());
            }
        }
        write.commit().unwrap();
        drop(database);
        let store = Embedded::open(folder.path(), 1000).unwrap();
        assert_eq!((store.owners().await.unwrap(), store.room().await.unwrap()), (vec![], 1000));
        assert!(store.own(&needed, Owner::Node).await.unwrap());
        assert_eq!(store.room().await.unwrap(), 600);
        put(&store, &[3; 500]).await.unwrap();
        assert!(store.has(&needed).await.unwrap() && !store.has(&past).await.unwrap());
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
            store.disown(&root, Owner::Node).await.unwrap();
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
