//! Which device computes.

use std::sync::Arc;

use anyhow::{Context, Result};
use tensorlink_node::budget::Budget;
use tensorlink_program::EngineError;
use tensorlink_tensor::{Device, TorchEngine};
use tracing::warn;

/// Makes engines: clones of one whose kernels passed their self-test at the start.
pub type Factory = Arc<dyn Fn() -> Result<TorchEngine, EngineError> + Send + Sync>;

/// What to do where CUDA, which nobody asked for, does not work.
const INSTEAD: &str = "--device cpu computes on the processor instead";

/// The device asked for, else CUDA if there is one, else the CPU.
///
/// # Errors
/// For a name of no device; if nothing was asked for and there is a CUDA device that does not work.
pub fn choose(wanted: Option<&str>) -> Result<Device> {
    let Some(text) = wanted else {
        return Device::preferred().context(INSTEAD);
    };
    Ok(text.parse()?)
}

/// Opens the device: the one asked for, else CUDA if there is one, else the CPU.
///
/// # Errors
/// As [`choose`]; if the device fails or computes wrongly.
pub fn open(wanted: Option<&str>) -> Result<TorchEngine> {
    let device = choose(wanted)?;
    let engine = TorchEngine::new(device);
    let engine = if wanted.is_none() && device != Device::Cpu { engine.context(INSTEAD)? } else { engine? };
    // On a host it is the processor's make that decides; on a GPU something is amiss.
    if device != Device::Cpu {
        for why in engine.passed_over() {
            warn!(%device, "a slower kernel is used: {why}");
        }
    }
    Ok(engine)
}

/// Clones an engine for each lane or audit.
pub fn factory(engine: TorchEngine) -> Factory {
    let engine = std::sync::Mutex::new(engine);
    Arc::new(move || Ok(engine.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone()))
}

/// Opens the device for audits: what makes their engines, and the memory that they may use together, half of what is
/// free now.
///
/// # Errors
/// As [`open`]; if the system does not tell what is free.
pub fn for_audits(wanted: Option<&str>) -> Result<(Factory, Arc<Budget>)> {
    let engine = open(wanted)?;
    let memory = Budget::new(engine.memory()? / 2);
    Ok((factory(engine), memory))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_was_asked_for_is_taken_or_refused() {
        assert_eq!(choose(Some("cuda:3")).unwrap(), Device::Cuda(3));
        assert!(choose(Some("tpu")).is_err());
        assert_eq!(open(Some("cpu")).unwrap().device(), Device::Cpu);
        assert!(open(Some("cuda:4096")).is_err(), "no fallback from what was asked for");
    }
}
