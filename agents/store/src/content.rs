//! The store port over a backend and the peers: fetches what is missing, verifies every block, serves what is here.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::{BufMut, Bytes, BytesMut};
use cid::Cid;
use futures::StreamExt;
use futures::stream::FuturesOrdered;
use tensorlink_node::ports::{Incoming, Net, NetError, Protocol, Store, StoreError};
use tensorlink_types::Address;
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

use crate::backend::Backend;
use crate::unixfs::{Assembly, MAX_BLOCK, check_kind, matches};

/// Blocks of a file asked for at once.
const WINDOW: usize = 16;
/// Requests of peers answered at once.
const SERVED: usize = 32;
/// Longest wait for the backend on behalf of a peer.
const PATIENCE: Duration = Duration::from_secs(5);

/// First byte of an answer.
const ABSENT: u8 = 0;
const PRESENT: u8 = 1;

/// Files by CID over a backend and the peers.
pub struct Content<B> {
    backend: Arc<B>,
    net: Arc<dyn Net>,
}

impl<B: Backend> Content<B> {
    /// Joins backend and net, and serves blocks to peers until `shutdown`.
    ///
    /// # Errors
    /// [`NetError`] if the block protocol cannot be served.
    pub async fn start(backend: B, net: Arc<dyn Net>, shutdown: CancellationToken) -> Result<Self, NetError> {
        let backend = Arc::new(backend);
        let requests = net.serve(Protocol::Block).await?;
        tokio::spawn(serve(backend.clone(), requests, shutdown));
        Ok(Self { backend, net })
    }

    /// A block from here or from the first holder that gives it. A holder that gives something else is passed over.
    async fn block(&self, cid: Cid, holders: &[Address]) -> Result<Option<Bytes>, StoreError> {
        if let Some(block) = self.backend.block(&cid).await? {
            return Ok(Some(block));
        }
        let mut lie = None;
        for holder in holders.iter().filter(|holder| **holder != self.net.address()) {
            match self.net.request(*holder, Protocol::Block, cid.to_bytes().into()).await {
                Ok(answer) => match answer.split_first() {
                    Some((&PRESENT, block)) if matches(&cid, block) => return Ok(Some(answer.slice(1..))),
                    Some((&ABSENT, [])) => {}
                    _ => lie = Some(StoreError::Mismatch { cid, from: holder.to_string() }),
                },
                Err(error) => tracing::debug!(%cid, %holder, %error, "a holder does not give a block"),
            }
        }
        lie.map_or(Ok(None), Err)
    }

    async fn assemble(&self, root: &Cid, holders: &[Address], limit: u64) -> Result<Option<Bytes>, StoreError> {
        let mut assembly = Assembly::new(*root, limit);
        loop {
            // A wave of blocks at once, taken in file order. An inner node in it changes what is wanted next, so the wave ends there.
            let wanted = assembly.wanted(WINDOW);
            if wanted.is_empty() {
                return Ok(Some(assembly.finish()));
            }
            let mut wave: FuturesOrdered<_> =
                wanted.iter().map(|cid| async { (*cid, self.block(*cid, holders).await) }).collect();
            while let Some((cid, block)) = wave.next().await {
                if assembly.wanted(1).first() != Some(&cid) {
                    break;
                }
                let Some(block) = block? else { return Ok(None) };
                assembly.feed(&block)?;
            }
        }
    }
}

#[async_trait]
impl<B: Backend> Store for Content<B> {
    async fn put(&self, content: Bytes) -> Result<Cid, StoreError> {
        self.backend.keep(content).await
    }

    async fn get(&self, cid: &Cid, holders: &[Address], limit: u64) -> Result<Bytes, StoreError> {
        check_kind(cid)?;
        if let Some(content) = self.assemble(cid, holders, limit).await? {
            if !self.backend.has(cid).await? {
                self.keep(cid, content.clone()).await?;
            }
            return Ok(content);
        }
        match self.backend.search(cid, limit).await? {
            Some(content) => {
                self.keep(cid, content.clone()).await?;
                Ok(content)
            }
            None => Err(StoreError::NotFound(*cid)),
        }
    }

    async fn has(&self, cid: &Cid) -> Result<bool, StoreError> {
        self.backend.has(cid).await
    }

    async fn unpin(&self, cid: &Cid) -> Result<(), StoreError> {
        self.backend.release(cid).await
    }
}

impl<B: Backend> Content<B> {
    /// Keeps a fetched file. Files chunked in another way than ours have another CID; they are verified all the same, and not kept.
    async fn keep(&self, cid: &Cid, content: Bytes) -> Result<(), StoreError> {
        let kept = self.backend.keep(content).await?;
        if kept != *cid {
            self.backend.release(&kept).await?;
            tracing::debug!(%cid, %kept, "a file chunked in another way is not kept");
        }
        Ok(())
    }
}

async fn serve<B: Backend>(backend: Arc<B>, mut requests: mpsc::Receiver<Incoming>, shutdown: CancellationToken) {
    let slots = Arc::new(Semaphore::new(SERVED));
    loop {
        let request = tokio::select! {
            () = shutdown.cancelled() => return,
            request = requests.recv() => match request { Some(request) => request, None => return },
        };
        let Ok(slot) = slots.clone().acquire_owned().await else { return };
        let backend = backend.clone();
        tokio::spawn(async move {
            let _slot = slot;
            let Incoming { peer, body, reply } = request;
            let block = match Cid::try_from(body.as_ref()) {
                Ok(cid) => tokio::time::timeout(PATIENCE, backend.block(&cid)).await.ok().and_then(Result::ok).flatten(),
                Err(error) => {
                    tracing::debug!(%peer, %error, "a request that is no CID");
                    None
                }
            };
            let answer = match block {
                Some(block) if block.len() < MAX_BLOCK => {
                    let mut answer = BytesMut::with_capacity(block.len() + 1);
                    answer.put_u8(PRESENT);
                    answer.put(block);
                    answer.freeze()
                }
                _ => Bytes::from_static(&[ABSENT]),
            };
            // The peer may be gone; that is its business.
            let _ = reply.send(answer);
        });
    }
}
