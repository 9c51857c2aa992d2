//! How fast this machine computes: measured once, and remembered in the user's cache by what decides it.
//!
//! | module | what lives there |
//! |---|---|
//! | here | what decides it; what is remembered, else measured |
//! | [`cache`] | the file, and the lock on it |

pub mod cache;

use anyhow::Result;
use serde::{Deserialize, Serialize};
use tensorlink_node::{Speed, memory};
use tensorlink_program::Engine;
use tensorlink_tensor::TorchEngine;
use tracing::{info, warn};

use self::cache::Cache;

/// Of this program. What a build for tests measures, which checks every sum, is not what others do.
const VERSION: &str =
    if cfg!(debug_assertions) { concat!(env!("CARGO_PKG_VERSION"), ", checked") } else { env!("CARGO_PKG_VERSION") };

/// What decides how fast an engine is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Machine {
    /// Of this program.
    pub version: String,
    /// Library, device, kernels and threads.
    pub engine: String,
    /// Model of the processor, or of the GPU.
    pub hardware: String,
}

impl Machine {
    /// Of an engine.
    ///
    /// # Errors
    /// When the device does not tell what it is.
    pub fn of(engine: &TorchEngine) -> Result<Self> {
        Ok(Self { version: VERSION.to_owned(), engine: engine.describe(), hardware: engine.hardware()? })
    }
}

/// What is remembered of this machine, else what is measured now, which takes most of a second. Blocks.
///
/// # Errors
/// When the device fails. Without a cache that works it measures, and says so.
pub fn known_or_measured(engine: &TorchEngine) -> Result<Speed> {
    match Machine::of(engine) {
        Ok(machine) => known_or(Cache::find(), &machine, || measure(engine)),
        Err(error) => {
            warn!("this machine is measured at every start: {error:#}");
            measure(engine)
        }
    }
}

/// Measures, and remembers it. Blocks.
///
/// # Errors
/// When the device fails, or the cache cannot be written.
pub fn measured_anew(engine: &TorchEngine, machine: &Machine, cache: Option<&Cache>) -> Result<Speed> {
    // INVARIANT: who holds the lock is the only one that measures.
    let _lock = cache.map(Cache::lock);
    let speed = measure(engine)?;
    if let Some(cache) = cache {
        cache.keep(machine, speed)?;
    }
    Ok(speed)
}

fn known_or(cache: Option<Cache>, machine: &Machine, measure: impl FnOnce() -> Result<Speed>) -> Result<Speed> {
    let Some(cache) = cache else {
        info!("measuring this machine, at every start: there is no home folder to remember it in");
        return measure();
    };
    if let Some(speed) = cache.known(machine) {
        return Ok(speed);
    }
    // INVARIANT: of several workers that start at once one measures, undisturbed; the others wait for what it finds.
    let _lock = cache.lock();
    if let Some(speed) = cache.known(machine) {
        return Ok(speed);
    }
    info!(hardware = machine.hardware, "measuring this machine, about a second");
    let speed = measure()?;
    if let Err(error) = cache.keep(machine, speed) {
        warn!("the next start will measure again: {error:#}");
    }
    Ok(speed)
}

fn measure(engine: &TorchEngine) -> Result<Speed> {
    let speed = tensorlink_bench::speed::measure(engine);
    // The operands were larger than much that is to come.
    memory::give_back();
    speed
}

#[cfg(test)]
mod tests {
    use anyhow::bail;
    use tensorlink_node::speed::Measured;

    use super::*;

    fn machine(hardware: &str) -> Machine {
        Machine { version: "1".into(), engine: "cpu".into(), hardware: hardware.into() }
    }

    fn speed(memory: u64) -> Speed {
        Measured { fast: 3, standard: 2, reference: 1, memory }.try_into().unwrap()
    }

    #[test]
    fn a_machine_is_measured_once() {
        let folder = tempfile::tempdir().unwrap();
        let find = || Some(Cache::at(&folder.path().join("new")));
        let asked = |hardware, measured: Option<u64>| {
            known_or(find(), &machine(hardware), || match measured {
                Some(memory) => Ok(speed(memory)),
                None => bail!("it is measured again"),
            })
        };
        assert_eq!(asked("a", Some(5)).unwrap(), speed(5));
        assert_eq!(asked("a", None).unwrap(), speed(5));
        assert_eq!(asked("b", Some(6)).unwrap(), speed(6), "another one");
        assert_eq!(asked("a", None).unwrap(), speed(5));
        assert!(asked("c", None).is_err(), "a device that fails");
    }

    #[test]
    fn without_a_cache_that_works_it_is_measured_all_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "no folder").unwrap();
        for cache in [None, Some(Cache::at(&file))] {
            assert_eq!(known_or(cache, &machine("a"), || Ok(speed(5))).unwrap(), speed(5));
        }
    }

    #[test]
    fn those_that_start_at_once_wait_for_the_one_that_measures() {
        let folder = tempfile::tempdir().unwrap();
        let measured = std::sync::atomic::AtomicU64::new(0);
        let start = || {
            known_or(Some(Cache::at(folder.path())), &machine("a"), || {
                Ok(speed(1 + measured.fetch_add(1, std::sync::atomic::Ordering::SeqCst)))
            })
        };
        std::thread::scope(|scope| {
            let started: Vec<_> = (0..4).map(|_| scope.spawn(start)).collect();
            for one in started {
                assert_eq!(one.join().unwrap().unwrap(), speed(1));
            }
        });
    }
}
