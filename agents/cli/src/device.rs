//! Which device computes.

use std::sync::Arc;

use anyhow::{Context, Result, bail};
use tensorlink_graph::EngineError;
use tensorlink_tensor::{Device, TorchEngine};

/// Makes engines: clones of one whose kernels passed their self-test at the start.
pub type Factory = Arc<dyn Fn() -> Result<TorchEngine, EngineError> + Send + Sync>;

/// Parses `cpu`, `cuda` or `cuda:N`.
pub fn parse(text: &str) -> Result<Device> {
    match text.split_once(':') {
        None if text == "cpu" => Ok(Device::Cpu),
        None if text == "cuda" => Ok(Device::Cuda(0)),
        Some(("cuda", index)) => {
            Ok(Device::Cuda(index.parse().with_context(|| format!("{index:?} is not a device number"))?))
        }
        _ => bail!("unknown device {text:?}: use cpu, cuda or cuda:N"),
    }
}

/// Opens the device: the one asked for, else CUDA if there is one, else the CPU.
pub fn open(wanted: Option<&str>) -> Result<TorchEngine> {
    let engine = match wanted {
        Some(text) => TorchEngine::new(parse(text)?),
        None => TorchEngine::new(Device::Cuda(0)).or_else(|_| TorchEngine::new(Device::Cpu)),
    };
    Ok(engine?)
}

/// Clones an engine for each lane or audit.
pub fn factory(engine: TorchEngine) -> Factory {
    let engine = std::sync::Mutex::new(engine);
    Arc::new(move || Ok(engine.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices() {
        assert_eq!(parse("cuda:3").unwrap(), Device::Cuda(3));
        assert!(parse("tpu").is_err() && parse("cuda:x").is_err());
    }
}
