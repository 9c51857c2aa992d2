//! Nodes with stores, and content for them.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use tempfile::TempDir;
use tensorlink_node::ports::Net;
use tensorlink_store::{Content, Embedded};
use tensorlink_types::Address;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::memory_net::{Hub, MemoryNet};

/// More than any test needs.
pub(crate) const LIMIT: u64 = 1 << 30;

/// A node with an embedded store.
pub(crate) struct Node {
    pub(crate) store: Arc<Content<Embedded>>,
    pub(crate) net: Arc<MemoryNet>,
    pub(crate) folder: TempDir,
    _serving: DropGuard,
}

impl Node {
    pub(crate) async fn start(hub: &Hub, byte: u8, budget: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (net, shutdown) = (hub.node(byte), CancellationToken::new());
        let backend = Embedded::open(folder.path(), budget).unwrap();
        let store = Arc::new(Content::start(backend, net.clone(), shutdown.clone()).await.unwrap());
        Self { store, net, folder, _serving: shutdown.drop_guard() }
    }

    pub(crate) fn address(&self) -> Address {
        self.net.address()
    }

    pub(crate) fn sent(&self) -> usize {
        self.net.sent.load(Ordering::Relaxed)
    }
}

/// Bytes without repetition, others for each seed.
pub(crate) fn content(len: usize, seed: u32) -> Bytes {
    let mut state = u64::from(seed) << 32 | 0x9e37_79b9;
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        bytes.extend_from_slice(&(state ^ (state >> 29)).to_le_bytes());
    }
    bytes.truncate(len);
    bytes.into()
}
