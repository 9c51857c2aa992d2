//! What a worker writes to disk of an interval before it claims it, for those who audit it: the state after it, and all that it received.

use std::time::{Duration, Instant};

use anyhow::Result;
use tensorlink_node::files;
use tensorlink_num::Tensor;
use tensorlink_store::Embedded;
use tensorlink_store::backend::Backend;
use tensorlink_store::unixfs::blocks_of;
use tokio::runtime::Handle;

/// Time until a state, and so many bytes of received tensors, are on the disk on which temporary files are, synced. All of it: a lane waits as long.
pub(super) fn written(state: &[Tensor], received: u64) -> Result<Duration> {
    let folder = tempfile::tempdir()?;
    let store = Embedded::open(folder.path(), u64::MAX)?;
    let inputs = noise(received);
    let began = Instant::now();
    for file in [inputs, files::join(state)] {
        let blocks = blocks_of(&file);
        if let Some((root, _)) = blocks.last() {
            let root = *root;
            Handle::current().block_on(store.keep(&root, blocks))?;
        }
    }
    Ok(began.elapsed())
}

/// Bytes of which no part is like another: what is the same is stored once.
fn noise(length: u64) -> Vec<u8> {
    let word = |i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29).to_le_bytes();
    let mut bytes = Vec::new();
    for i in 0..length / 8 {
        bytes.extend_from_slice(&word(i));
    }
    bytes
}
