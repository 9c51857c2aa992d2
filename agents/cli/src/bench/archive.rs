//! What a worker writes to disk of an interval before it claims it, for those who audit it: the state after it, and all that it received.

use std::time::{Duration, Instant};

use anyhow::Result;
use tensorlink_node::files;
use tensorlink_num::Tensor;
use tensorlink_store::Embedded;
use tensorlink_store::backend::Backend;
use tensorlink_store::unixfs::blocks_of;
use tokio::runtime::Handle;

use super::time::{median, once_everywhere};

/// What writing an interval takes.
pub(super) struct Writing {
    /// Of processors.
    pub(super) processor: Duration,
    /// Until it is on disk, synced. The next interval is computed meanwhile.
    pub(super) elapsed: Duration,
}

impl Writing {
    /// Medians of some rounds of writing a state, and so many bytes of received tensors, where temporary files are.
    pub(super) fn measure(rounds: usize, state: &[Tensor], received: u64) -> Result<Self> {
        let inputs = noise(received);
        let (mut processor, mut elapsed) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            let folder = tempfile::tempdir()?;
            let store = Embedded::open(folder.path(), u64::MAX)?;
            let began = Instant::now();
            let mut outcome = Ok(());
            processor.push(once_everywhere(|| outcome = write(&store, state, &inputs)));
            outcome?;
            elapsed.push(began.elapsed());
        }
        Ok(Self { processor: median(&mut processor), elapsed: median(&mut elapsed) })
    }

    /// What it adds to an interval that takes so long: what it takes of processors, and as long as it is waited for.
    pub(super) fn added_to(&self, interval: Duration) -> Duration {
        self.processor + self.elapsed.saturating_sub(interval)
    }
}

fn write(store: &Embedded, state: &[Tensor], inputs: &[u8]) -> Result<()> {
    for file in [inputs, &files::join(state)] {
        let blocks = blocks_of(file);
        if let Some((root, _)) = blocks.last() {
            let root = *root;
            Handle::current().block_on(store.keep(&root, blocks))?;
        }
    }
    Ok(())
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
