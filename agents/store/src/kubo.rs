//! Files in a Kubo daemon, by its RPC API.
//!
//! Files go in block by block and are then pinned, not by `add`: how that cuts a file depends on the daemon's
//! configuration (`Import.*`), and the CID must not.
//!
//! Who owns which file is in a database of our own, since a daemon knows no owners. It is written before a file is
//! pinned and after it is unpinned, so that a kill in between leaves nothing pinned that is not in it. What is not
//! pinned any more, the daemon drops when it collects garbage.

use std::io::Cursor;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use cid::Cid;
use futures::{StreamExt, TryStreamExt, stream};
use ipfs_api_backend_hyper::request::BlockPut;
use ipfs_api_backend_hyper::{BackendWithGlobalOptions, Error, GlobalOptions, IpfsApi, IpfsClient, TryFromUri};
use redb::{Database, ReadTransaction, ReadableDatabase};
use tensorlink_node::ports::{Owner, StoreError};
use tokio::sync::Mutex;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::backend::{Backend, bytes_of, failure, share_of_quotes};
use crate::embedded::open;
use crate::ledger::{self, Kind, Ledger};
use crate::unixfs::{MAX_BLOCK, codec_name};

/// Longest wait for something the daemon has, or for one block that it takes.
const LOCAL: Duration = Duration::from_secs(10);
/// Longest wait for something it must look for.
const SEARCH: Duration = Duration::from_secs(30);
/// Longest wait for a pin; the daemon walks over the whole file, which it has.
const PIN: Duration = Duration::from_secs(60);
/// Blocks sent at once.
const UPLOADS: usize = 8;

/// A Kubo daemon.
pub struct Kubo {
    /// What the daemon has.
    local: BackendWithGlobalOptions<IpfsClient>,
    /// What the daemon can find.
    client: IpfsClient,
    url: String,
    /// Who owns which file.
    database: Arc<Database>,
    /// Bytes of files that may be pinned.
    budget: u64,
    /// Held while it changes what is pinned: room that was made is taken by who made it.
    changing: Mutex<()>,
}

impl Kubo {
    /// Names a daemon by the URL of its RPC API, e.g. `http://127.0.0.1:5001`, and checks that it answers. Who owns
    /// what is recorded in `folder`; at most `budget` bytes of files are pinned.
    ///
    /// # Errors
    /// [`StoreError::Backend`] if the URL is malformed or nobody answers there, [`StoreError::InUse`] when another
    /// process has the record open.
    pub async fn connect(url: &str, folder: &Path, budget: u64) -> Result<Self, StoreError> {
        // The client panics on a URL without scheme, and speaks no TLS.
        let client = match url.strip_prefix("http://") {
            Some(_) => IpfsClient::from_str(url).map_err(|error| error.to_string()),
            None => Err("it must start with http://, as http://127.0.0.1:5001 does".to_owned()),
        };
        let client =
            client.map_err(|error| StoreError::Backend(format!("{url:?} is no URL of an IPFS daemon: {error}")))?;
        let offline = GlobalOptions { offline: Some(true), timeout: None };
        let local = BackendWithGlobalOptions::new(client.clone(), offline);
        let database = open(folder, "owners.redb")?;
        let write = database.begin_write().map_err(failure)?;
        Ledger::open(&write)?.settle_version()?;
        write.commit().map_err(failure)?;
        let (database, changing) = (Arc::new(database), Mutex::default());
        let kubo = Self { local, client, url: url.to_owned(), database, budget, changing };
        let version = kubo.within(LOCAL, kubo.client.version()).await?;
        tracing::info!(url, version = version.version, "the IPFS daemon answers");
        Ok(kubo)
    }

    fn failure(&self, reason: impl std::fmt::Display) -> StoreError {
        StoreError::Backend(format!(
            "the IPFS daemon at {}: {reason}; is `ipfs daemon` running, and is this its RPC API",
            self.url
        ))
    }

    async fn put(&self, cid: &Cid, block: Bytes) -> Result<(), StoreError> {
        let options = BlockPut::builder().format(codec_name(cid)).mhtype("sha2-256").build();
        let put = self.within(LOCAL, self.local.block_put_with_options(Cursor::new(block), options)).await?;
        match put.key.parse::<Cid>() {
            // A daemon may answer by a CID of the other version.
            Ok(kept) if kept.hash() == cid.hash() => Ok(()),
            _ => Err(self.failure(format_args!("it names {:?} what is {cid}", put.key))),
        }
    }

    /// Changes the record of owners.
    async fn change<T: Send + 'static>(
        &self,
        change: impl FnOnce(&mut Ledger<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let database = self.database.clone();
        let changing = move || {
            let write = database.begin_write().map_err(failure)?;
            let done = change(&mut Ledger::open(&write)?)?;
            write.commit().map_err(failure)?;
            Ok(done)
        };
        spawn_blocking(changing).await.map_err(failure)?
    }

    /// Reads the record of owners.
    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&ReadTransaction) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let database = self.database.clone();
        spawn_blocking(move || read(&database.begin_read().map_err(failure)?)).await.map_err(failure)?
    }

    /// Adds an owner to a file that is in the record; whether it is.
    async fn own_recorded(&self, key: Vec<u8>, owner: Owner) -> Result<bool, StoreError> {
        let known = key.clone();
        if self.read(move |read| ledger::is_owned(read, owner, &known)).await? {
            return Ok(true);
        }
        self.change(move |ledger| ledger.own_known(owner, &key)).await
    }

    async fn unpin(&self, name: &str) -> Result<(), StoreError> {
        // Asked first, because an error of the next call may mean more than that there is no such pin.
        if self.is_pinned(name).await? {
            self.within(LOCAL, self.local.pin_rm(name, true)).await?;
        }
        Ok(())
    }

    async fn is_pinned(&self, name: &str) -> Result<bool, StoreError> {
        let pins =
            self.within(LOCAL, async { unless_denied(self.local.pin_ls(Some(name), Some("recursive")).await) }).await?;
        Ok(pins.is_some_and(|pins| !pins.keys.is_empty()))
    }

    /// Unpins what must go for a file of so many bytes; whether there is room for it then.
    async fn make_room(&self, bytes: u64, owner: Owner) -> Result<bool, StoreError> {
        let budget = self.budget;
        let Some(going) = self.change(move |ledger| going(ledger, (bytes, owner), budget)).await? else {
            return Ok(false);
        };
        for root in going {
            let cid = Cid::try_from(root.as_slice()).map_err(failure)?;
            self.unpin(&cid.to_string()).await?;
            self.change(move |ledger| ledger.forget(&root)).await?;
        }
        Ok(true)
    }

    async fn within<T>(&self, limit: Duration, call: impl Future<Output = Result<T, Error>>) -> Result<T, StoreError> {
        match timeout(limit, call).await {
            Ok(result) => result.map_err(|error| self.failure(error)),
            Err(_) => Err(self.failure(format_args!("no answer in {limit:?}"))),
        }
    }
}

/// Which files that nobody owns must go for one of so many bytes; none if it has no room even without them.
fn going(ledger: &Ledger<'_>, (bytes, owner): (u64, Owner), budget: u64) -> Result<Option<Vec<Vec<u8>>>, StoreError> {
    let mut quoted = ledger.sum(Kind::Quoted)?;
    let mut all = ledger.sum(Kind::Owned)?.saturating_add(ledger.sum(Kind::Passing)?).saturating_add(quoted);
    let share = if owner == Owner::Quote { share_of_quotes(budget) } else { u64::MAX };
    if bytes > share {
        return Ok(None);
    }
    let mut going = Vec::new();
    for (root, freed, of_quote) in ledger.unowned()? {
        let (crowded, full) = (quoted.saturating_add(bytes) > share, all.saturating_add(bytes) > budget);
        if full || (crowded && of_quote) {
            all = all.saturating_sub(freed);
            quoted = quoted.saturating_sub(if of_quote { freed } else { 0 });
            going.push(root);
        }
    }
    Ok((all.saturating_add(bytes) <= budget).then_some(going))
}

/// What the daemon says "no" to, it says by an error of its own, and it has one code for them all.
fn unless_denied<T>(result: Result<T, Error>) -> Result<Option<T>, Error> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(Error::Api(denial)) => {
            tracing::trace!(%denial, "the IPFS daemon says no");
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Reads a block to its end, unless it is larger than any block may be: one byte more is enough to see that.
async fn read<S>(mut chunks: S) -> Result<Bytes, Error>
where
    S: futures::Stream<Item = Result<Bytes, Error>> + Unpin,
{
    let mut block = BytesMut::new();
    while let Some(chunk) = chunks.try_next().await? {
        block.extend_from_slice(&chunk);
        if block.len() > MAX_BLOCK {
            break;
        }
    }
    Ok(block.freeze())
}

#[async_trait]
impl Backend for Kubo {
    async fn block(&self, cid: &Cid) -> Result<Option<Bytes>, StoreError> {
        let name = cid.to_string();
        self.within(LOCAL, async { unless_denied(read(self.local.block_get(&name)).await) }).await
    }

    async fn keep(&self, root: &Cid, blocks: Vec<(Cid, Bytes)>, owner: Owner) -> Result<bool, StoreError> {
        let (bytes, key, budget) = (bytes_of(&blocks), root.to_bytes(), self.budget);
        let _changing = self.changing.lock().await;
        if !self.own_recorded(key.clone(), owner).await? {
            if !self.make_room(bytes, owner).await? {
                return if owner.keeps() { Err(StoreError::Full { needed: bytes, budget }) } else { Ok(false) };
            }
            self.change(move |ledger| ledger.own(owner, &key, bytes)).await?;
        }
        let uploads = stream::iter(blocks).map(|(cid, block)| async move { self.put(&cid, block).await });
        uploads.buffer_unordered(UPLOADS).try_collect::<()>().await?;
        let name = root.to_string();
        self.within(PIN, self.local.pin_add(&name, true)).await?;
        Ok(true)
    }

    async fn own(&self, root: &Cid, owner: Owner) -> Result<bool, StoreError> {
        if !self.is_pinned(&root.to_string()).await? {
            return Ok(false);
        }
        let _changing = self.changing.lock().await;
        self.own_recorded(root.to_bytes(), owner).await
    }

    async fn mend(&self, cid: &Cid, block: Bytes) -> Result<(), StoreError> {
        self.put(cid, block).await
    }

    async fn has(&self, root: &Cid) -> Result<bool, StoreError> {
        self.is_pinned(&root.to_string()).await
    }

    async fn disown(&self, root: &Cid, owner: Owner) -> Result<(), StoreError> {
        let _changing = self.changing.lock().await;
        let key = root.to_bytes();
        if self.change(move |ledger| ledger.disown(owner, &key)).await? {
            self.unpin(&root.to_string()).await?;
            let key = root.to_bytes();
            self.change(move |ledger| ledger.forget(&key)).await?;
        }
        Ok(())
    }

    async fn release(&self, owner: Owner) -> Result<(), StoreError> {
        let _changing = self.changing.lock().await;
        if self.read(move |read| ledger::has_any(read, owner)).await? {
            self.change(move |ledger| ledger.release(owner)).await?;
        }
        Ok(())
    }

    async fn owners(&self) -> Result<Vec<Owner>, StoreError> {
        self.read(ledger::owners).await
    }

    async fn room(&self) -> Result<u64, StoreError> {
        let owned = self.read(|read| ledger::sum(read, Kind::Owned)).await?;
        Ok(self.budget.saturating_sub(owned))
    }

    async fn search(&self, cid: &Cid) -> Result<Option<Bytes>, StoreError> {
        let name = cid.to_string();
        // A search that takes too long is one that found nothing.
        match timeout(SEARCH, read(self.client.block_get(&name))).await {
            Ok(found) => unless_denied(found).map_err(|error| self.failure(error)),
            Err(_) => Ok(None),
        }
    }
}
