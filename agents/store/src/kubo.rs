//! Files in a Kubo daemon, by its RPC API.

use std::io::Cursor;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use cid::Cid;
use futures::TryStreamExt;
use ipfs_api_backend_hyper::request::Add;
use ipfs_api_backend_hyper::{IpfsApi, IpfsClient, TryFromUri};
use tensorlink_node::ports::StoreError;
use tokio::time::timeout;

use crate::backend::Backend;
use crate::unixfs::{CHUNK, blocks_of};

/// Longest wait for something the daemon has.
const LOCAL: Duration = Duration::from_secs(10);
/// Longest wait for something it must look for.
const SEARCH: Duration = Duration::from_secs(30);
/// Longest wait for an upload.
const UPLOAD: Duration = Duration::from_secs(120);

/// A Kubo daemon.
#[derive(Clone)]
pub struct Kubo {
    client: IpfsClient,
    address: String,
}

impl Kubo {
    /// Names a daemon by the URL of its RPC API, e.g. `http://127.0.0.1:5001`, and checks that it answers.
    ///
    /// # Errors
    /// [`StoreError::Backend`] if the URL is malformed or nobody answers there.
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        let client = IpfsClient::from_str(url).map_err(|e| StoreError::Backend(format!("{url}: {e}")))?;
        let kubo = Self { client, address: url.to_owned() };
        let version = kubo.within(LOCAL, kubo.client.version()).await?;
        tracing::info!(url, version = version.version, "IPFS daemon answers");
        Ok(kubo)
    }

    async fn within<T, E: std::fmt::Display>(
        &self,
        limit: Duration,
        call: impl Future<Output = Result<T, E>>,
    ) -> Result<T, StoreError> {
        match timeout(limit, call).await {
            Ok(result) => result.map_err(|e| StoreError::Backend(format!("IPFS daemon at {}: {e}", self.address))),
            Err(_) => {
                Err(StoreError::Backend(format!("IPFS daemon at {} did not answer in {limit:?}", self.address)))
            }
        }
    }

    async fn is_pinned(&self, cid: &Cid) -> Result<bool, StoreError> {
        match timeout(LOCAL, self.client.pin_ls(Some(&cid.to_string()), None)).await {
            Ok(Ok(pins)) => Ok(!pins.keys.is_empty()),
            // The daemon answers with an error when there is no such pin.
            Ok(Err(ipfs_api_backend_hyper::Error::Api(_))) => Ok(false),
            Ok(Err(error)) => Err(StoreError::Backend(format!("IPFS daemon at {}: {error}", self.address))),
            Err(_) => Err(StoreError::Backend(format!("IPFS daemon at {} did not answer", self.address))),
        }
    }
}

#[async_trait]
impl Backend for Kubo {
    async fn block(&self, cid: &Cid) -> Result<Option<Bytes>, StoreError> {
        // Only what is pinned: for the rest the daemon would search the network, and the peer who asks can do that itself.
        if !self.is_pinned(cid).await? {
            return Ok(None);
        }
        let name = cid.to_string();
        let block = self.client.block_get(&name).map_ok(|chunk| chunk.to_vec()).try_concat();
        self.within(LOCAL, block).await.map(|block| Some(block.into()))
    }

    async fn keep(&self, content: Bytes) -> Result<Cid, StoreError> {
        let chunker = format!("size-{CHUNK}");
        let options = Add::builder().cid_version(1).raw_leaves(true).chunker(&chunker).pin(true).build();
        let expected = blocks_of(&content).last().map(|(cid, _)| *cid);
        let added = self.within(UPLOAD, self.client.add_with_options(Cursor::new(content), options)).await?;
        let cid: Cid =
            added.hash.parse().map_err(|_| StoreError::Backend(format!("{:?} is not a CID", added.hash)))?;
        match expected {
            Some(expected) if expected != cid => {
                Err(StoreError::Backend(format!("the IPFS daemon names {cid} what is {expected}")))
            }
            _ => Ok(cid),
        }
    }

    async fn has(&self, root: &Cid) -> Result<bool, StoreError> {
        self.is_pinned(root).await
    }

    async fn release(&self, root: &Cid) -> Result<(), StoreError> {
        if self.is_pinned(root).await? {
            self.within(LOCAL, self.client.pin_rm(&root.to_string(), true)).await?;
        }
        Ok(())
    }

    async fn search(&self, root: &Cid, limit: u64) -> Result<Option<Bytes>, StoreError> {
        let name = root.to_string();
        let mut stream = self.client.cat(&name);
        let read = async {
            let mut content = Vec::new();
            while let Some(chunk) = stream.try_next().await? {
                content.extend_from_slice(&chunk);
                if content.len() as u64 > limit {
                    break;
                }
            }
            Ok::<_, ipfs_api_backend_hyper::Error>(content)
        };
        match timeout(SEARCH, read).await {
            Ok(Ok(content)) if content.len() as u64 > limit => Err(StoreError::TooLarge { cid: *root, limit }),
            // The daemon verifies, but it is another program: we verify too.
            Ok(Ok(content)) if blocks_of(&content).last().map(|(cid, _)| cid) == Some(root) => {
                Ok(Some(content.into()))
            }
            Ok(Ok(_)) => Err(StoreError::Mismatch { cid: *root, from: self.address.clone() }),
            Ok(Err(error)) => Err(StoreError::Backend(format!("IPFS daemon at {}: {error}", self.address))),
            Err(_) => Ok(None),
        }
    }
}
