//! What a worker writes to disk of an interval, for those who audit it: the state after it, and all that it received.
//! It computes the next interval meanwhile.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use bytes::Bytes;
use tensorlink_node::files;
use tensorlink_node::ports::Owner;
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
    /// Until it is on disk, synced.
    pub(super) elapsed: Duration,
    /// By how much longer the steps take beside it.
    pub(super) delay: Duration,
}

impl Writing {
    /// Writes a state, and so many bytes of received tensors, where temporary files are, in each round: alone, and then
    /// beside steps, of which as many follow alone. Medians.
    pub(super) fn measure(
        rounds: usize,
        state: &[Tensor],
        received: u64,
        mut step: impl FnMut() -> Result<()>,
    ) -> Result<Self> {
        let inputs = noise(received);
        let runtime = Handle::current();
        let (mut processor, mut elapsed, mut delay) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..rounds {
            let mut outcome = Ok(());
            processor.push(once_everywhere(|| outcome = write(state, &inputs)));
            outcome?;
            let began = Instant::now();
            let (written, steps) = thread::scope(|scope| {
                let writer = scope.spawn(|| {
                    let _runtime = runtime.enter();
                    write(state, &inputs).map(|()| began.elapsed())
                });
                let mut steps = 0;
                while !writer.is_finished() {
                    step()?;
                    steps += 1;
                }
                let written = writer.join().map_err(|_| anyhow!("the thread that writes panicked"))??;
                Ok::<_, anyhow::Error>((written, steps))
            })?;
            let beside = began.elapsed();
            let began = Instant::now();
            (0..steps).try_for_each(|_| step())?;
            elapsed.push(written);
            delay.push(beside.saturating_sub(began.elapsed()));
        }
        Ok(Self { processor: median(&mut processor), elapsed: median(&mut elapsed), delay: median(&mut delay) })
    }

    /// What it adds to an interval that takes so long: by how much it slows that down, and what is left to wait for
    /// when that is over.
    pub(super) fn added_to(&self, interval: Duration) -> Duration {
        self.delay + self.elapsed.saturating_sub(interval)
    }
}

/// Writes to a new folder, within a runtime.
fn write(state: &[Tensor], inputs: &Bytes) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let store = Embedded::open(folder.path(), u64::MAX)?;
    for file in [inputs, &files::join(state).into()] {
        let blocks = blocks_of(file);
        if let Some((root, _)) = blocks.last() {
            let root = *root;
            Handle::current().block_on(store.keep(&root, blocks, Owner::Node))?;
        }
    }
    Ok(())
}

/// Bytes of which no part is like another: what is the same is stored once.
fn noise(length: u64) -> Bytes {
    (0..length / 8).flat_map(|i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29).to_le_bytes()).collect()
}
