//! A store that takes files in a way of its own, and is another one in all else.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use cid::Cid;
use tensorlink_node::ports::{Owner, Store, StoreError};
use tensorlink_types::Address;

/// How files are stored.
#[async_trait]
pub trait Press: Send + Sync + 'static {
    /// Stores a file.
    async fn put(&self, store: &dyn Store, content: Bytes) -> Result<Cid, StoreError>;
}

/// The store.
pub struct Pressed<P> {
    /// How it stores files.
    pub press: Arc<P>,
    /// What it is in all else.
    pub store: Arc<dyn Store>,
}

#[async_trait]
impl<P: Press> Store for Pressed<P> {
    fn of(&self, owner: Owner) -> Arc<dyn Store> {
        Arc::new(Self { press: self.press.clone(), store: self.store.of(owner) })
    }

    async fn put(&self, content: Bytes) -> Result<Cid, StoreError> {
        self.press.put(self.store.as_ref(), content).await
    }

    async fn get(&self, cid: &Cid, holders: &[Address], limit: u64) -> Result<Bytes, StoreError> {
        self.store.get(cid, holders, limit).await
    }

    async fn has(&self, cid: &Cid) -> Result<bool, StoreError> {
        self.store.has(cid).await
    }

    async fn own(&self, cid: &Cid) -> Result<bool, StoreError> {
        self.store.own(cid).await
    }

    async fn unpin(&self, cid: &Cid) -> Result<(), StoreError> {
        self.store.unpin(cid).await
    }

    async fn release(&self) -> Result<(), StoreError> {
        self.store.release().await
    }

    async fn owners(&self) -> Result<Vec<Owner>, StoreError> {
        self.store.owners().await
    }

    async fn room(&self) -> Result<u64, StoreError> {
        self.store.room().await
    }
}
