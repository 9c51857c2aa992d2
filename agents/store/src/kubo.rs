//! Files in a Kubo daemon, by its RPC API.
//!
//! Files go in block by block and are then pinned, not by `add`: how that cuts a file depends on the daemon's
//! configuration (`Import.*`), and the CID must not.

use std::io::Cursor;
use std::time::Duration;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use cid::Cid;
use futures::{StreamExt, TryStreamExt, stream};
use ipfs_api_backend_hyper::request::BlockPut;
use ipfs_api_backend_hyper::{BackendWithGlobalOptions, Error, GlobalOptions, IpfsApi, IpfsClient, TryFromUri};
use tensorlink_node::ports::StoreError;
use tokio::time::timeout;

use crate::backend::Backend;
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
}

impl Kubo {
    /// Names a daemon by the URL of its RPC API, e.g. `http://127.0.0.1:5001`, and checks that it answers.
    ///
    /// # Errors
    /// [`StoreError::Backend`] if the URL is malformed or nobody answers there.
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        // The client panics on a URL without scheme, and speaks no TLS.
        let client = match url.strip_prefix("http://") {
            Some(_) => IpfsClient::from_str(url).map_err(|error| error.to_string()),
            None => Err("it must start with http://, as http://127.0.0.1:5001 does".to_owned()),
        };
        let client =
            client.map_err(|error| StoreError::Backend(format!("{url:?} is no URL of an IPFS daemon: {error}")))?;
        let offline = GlobalOptions { offline: Some(true), timeout: None };
        let local = BackendWithGlobalOptions::new(client.clone(), offline);
        let kubo = Self { local, client, url: url.to_owned() };
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

    async fn within<T>(&self, limit: Duration, call: impl Future<Output = Result<T, Error>>) -> Result<T, StoreError> {
        match timeout(limit, call).await {
            Ok(result) => result.map_err(|error| self.failure(error)),
            Err(_) => Err(self.failure(format_args!("no answer in {limit:?}"))),
        }
    }
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

    async fn keep(&self, root: &Cid, blocks: Vec<(Cid, Bytes)>) -> Result<(), StoreError> {
        let uploads = stream::iter(blocks).map(|(cid, block)| async move { self.put(&cid, block).await });
        uploads.buffer_unordered(UPLOADS).try_collect::<()>().await?;
        let name = root.to_string();
        self.within(PIN, self.local.pin_add(&name, true)).await.map(drop)
    }

    async fn mend(&self, cid: &Cid, block: Bytes) -> Result<(), StoreError> {
        self.put(cid, block).await
    }

    async fn has(&self, root: &Cid) -> Result<bool, StoreError> {
        let name = root.to_string();
        let pins = self
            .within(LOCAL, async { unless_denied(self.local.pin_ls(Some(&name), Some("recursive")).await) })
            .await?;
        Ok(pins.is_some_and(|pins| !pins.keys.is_empty()))
    }

    async fn release(&self, root: &Cid) -> Result<(), StoreError> {
        // Asked first, because an error of the next call may mean more than that there is no such pin.
        if self.has(root).await? {
            let name = root.to_string();
            self.within(LOCAL, self.local.pin_rm(&name, true)).await?;
        }
        Ok(())
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
