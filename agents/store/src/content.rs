//! The store port over a backend and the peers: fetches what is missing, verifies every block, keeps and serves it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::{BufMut, Bytes, BytesMut};
use cid::Cid;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tensorlink_node::ports::{Incoming, Net, NetError, Owner, Protocol, Store, StoreError};
use tensorlink_types::Address;
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

use crate::backend::Backend;
use crate::holders::Holders;
use crate::unixfs::{Assembly, MAX_BLOCK, blocks_of, check_kind, matches};

/// Blocks of a file asked for at once.
const WINDOW: usize = 16;
/// Requests of peers answered at once.
const SERVED: usize = 32;
/// Longest wait for the backend on behalf of a peer.
const PATIENCE: Duration = Duration::from_secs(5);

/// First byte of an answer.
const ABSENT: u8 = 0;
const PRESENT: u8 = 1;

/// Files by CID over a backend and the peers, as one owner has them.
pub struct Content<B> {
    backend: Arc<B>,
    net: Arc<dyn Net>,
    owner: Owner,
}

impl<B: Backend> Content<B> {
    /// Joins backend and net, and serves blocks to peers until `shutdown`. The owner is the node itself.
    ///
    /// # Errors
    /// [`NetError`] if the block protocol cannot be served.
    pub async fn start(backend: B, net: Arc<dyn Net>, shutdown: CancellationToken) -> Result<Self, NetError> {
        let backend = Arc::new(backend);
        let requests = net.serve(Protocol::Block).await?;
        tokio::spawn(serve(backend.clone(), requests, shutdown));
        Ok(Self { backend, net, owner: Owner::Node })
    }

    /// A verified block: from here, else from the first holder that gives it, else from the network behind the backend.
    /// One that is here and damaged is mended by it.
    ///
    /// # Errors
    /// [`StoreError::Mismatch`] if nobody gives the block and somebody gave something else, else
    /// [`StoreError::NotFound`].
    async fn block(&self, cid: Cid, holders: &Holders) -> Result<Bytes, StoreError> {
        match self.backend.block(&cid).await? {
            Some(block) if matches(&cid, &block) => Ok(block),
            Some(_) => {
                tracing::error!(%cid, "a block in this node's own store is damaged: check the disk");
                let block = self.block_of_others(cid, holders, Some("this node's own store".to_owned())).await?;
                match self.backend.mend(&cid, block.clone()).await {
                    Ok(()) => tracing::info!(%cid, "the damaged block is replaced by what a holder has"),
                    Err(error) => tracing::warn!(%cid, %error, "the damaged block cannot be replaced"),
                }
                Ok(block)
            }
            None => self.block_of_others(cid, holders, None).await,
        }
    }

    /// A verified block of somebody else; `lie` is who gave another already.
    async fn block_of_others(&self, cid: Cid, holders: &Holders, mut lie: Option<String>) -> Result<Bytes, StoreError> {
        let mut asked = HashSet::new();
        while let Some(holder) = holders.next(&mut asked) {
            // Every wait in it is bounded by the net.
            match self.net.request(holder, Protocol::Block, cid.to_bytes().into()).await {
                Ok(answer) => match answer.split_first() {
                    Some((&PRESENT, block)) if matches(&cid, block) => return Ok(answer.slice(1..)),
                    Some((&ABSENT, [])) => {}
                    _ => {
                        tracing::warn!(%cid, %holder, "a holder gives a block that does not match its CID");
                        holders.lied(holder);
                        lie = Some(holder.to_string());
                    }
                },
                Err(error) => {
                    tracing::debug!(%cid, %holder, %error, "a holder does not give a block");
                    holders.failed(holder);
                }
            }
        }
        match self.backend.search(&cid).await? {
            Some(block) if matches(&cid, &block) => return Ok(block),
            Some(_) => lie = Some("the network behind the backend".to_owned()),
            None => {}
        }
        // What made another fetch of this file pass a liar over is why this one finds nothing.
        Err(match lie.or_else(|| holders.liar().map(|liar| liar.to_string())) {
            Some(from) => StoreError::Mismatch { cid, from },
            None => StoreError::NotFound(cid),
        })
    }

    /// The file, and its blocks if they are to be kept.
    async fn assemble(
        &self,
        root: &Cid,
        holders: &Holders,
        limit: u64,
        keep: bool,
    ) -> Result<(Bytes, Vec<(Cid, Bytes)>), StoreError> {
        let mut assembly = Assembly::new(*root, limit);
        let mut have: HashMap<Cid, Bytes> = HashMap::new();
        let mut asked: HashSet<Cid> = HashSet::new();
        let mut fetches = FuturesUnordered::new();
        loop {
            // The next blocks in file order. Those that recur are asked for once.
            let wanted = assembly.wanted(WINDOW);
            let Some(next) = wanted.first() else { break };
            if let Some(block) = have.get(next) {
                assembly.feed(block)?;
                if !keep {
                    have.remove(next);
                }
                continue;
            }
            for &cid in &wanted {
                if fetches.len() < WINDOW && !have.contains_key(&cid) && asked.insert(cid) {
                    fetches.push(async move { (cid, self.block(cid, holders).await) });
                }
            }
            // Never none: the next block is among them, or will be once one of these makes room.
            let Some((cid, block)) = fetches.next().await else { return Err(StoreError::NotFound(*next)) };
            asked.remove(&cid);
            have.insert(cid, block?);
        }
        drop(fetches);
        Ok((assembly.finish(), have.into_iter().collect()))
    }
}

#[async_trait]
impl<B: Backend> Store for Content<B> {
    fn of(&self, owner: Owner) -> Arc<dyn Store> {
        Arc::new(Self { backend: self.backend.clone(), net: self.net.clone(), owner })
    }

    async fn put(&self, content: Bytes) -> Result<Cid, StoreError> {
        // Hashing megabytes takes milliseconds: not on a thread that others wait for.
        let blocks = tokio::task::spawn_blocking(move || blocks_of(&content))
            .await
            .map_err(|error| StoreError::Backend(error.to_string()))?;
        let Some((root, _)) = blocks.last() else { return Err(StoreError::Backend("a file without blocks".into())) };
        let root = *root;
        self.backend.keep(&root, blocks, self.owner).await?;
        Ok(root)
    }

    async fn get(&self, cid: &Cid, holders: &[Address], limit: u64) -> Result<Bytes, StoreError> {
        check_kind(cid)?;
        let holders = Holders::new(holders, self.net.address());
        // Before it is read: what nobody owns may make room for another file meanwhile.
        let here = self.backend.own(cid, self.owner).await?;
        let (content, blocks) = self.assemble(cid, &holders, limit, !here).await?;
        if !here && !self.backend.keep(cid, blocks, self.owner).await? {
            tracing::debug!(%cid, "a file that nobody owns is not kept: there is no room beside what others own");
        }
        Ok(content)
    }

    async fn has(&self, cid: &Cid) -> Result<bool, StoreError> {
        self.backend.has(cid).await
    }

    async fn own(&self, cid: &Cid) -> Result<bool, StoreError> {
        self.backend.own(cid, self.owner).await
    }

    async fn unpin(&self, cid: &Cid) -> Result<(), StoreError> {
        self.backend.disown(cid, self.owner).await
    }

    async fn release(&self) -> Result<(), StoreError> {
        self.backend.release(self.owner).await
    }

    async fn owners(&self) -> Result<Vec<Owner>, StoreError> {
        self.backend.owners().await
    }

    async fn room(&self) -> Result<u64, StoreError> {
        self.backend.room().await
    }
}

/// The answer to a peer's request.
async fn answer<B: Backend>(backend: &B, peer: Address, body: &[u8]) -> Bytes {
    let block = match Cid::try_from(body) {
        Ok(cid) => match tokio::time::timeout(PATIENCE, backend.block(&cid)).await {
            Ok(Ok(block)) => block,
            Ok(Err(error)) => {
                tracing::warn!(%cid, %error, "a block cannot be served");
                None
            }
            Err(_) => {
                tracing::warn!(%cid, "a block cannot be served: the store did not answer within {PATIENCE:?}");
                None
            }
        },
        Err(error) => {
            tracing::debug!(%peer, %error, "a request that is no CID");
            None
        }
    };
    match block {
        Some(block) if block.len() < MAX_BLOCK => {
            let mut answer = BytesMut::with_capacity(block.len() + 1);
            answer.put_u8(PRESENT);
            answer.put(block);
            answer.freeze()
        }
        _ => Bytes::from_static(&[ABSENT]),
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
            // The peer may be gone; that is its business.
            let _ = reply.send(answer(&*backend, peer, &body).await);
        });
    }
}
