//! Where an engine computes.

use std::fmt;
use std::str::FromStr;

use tensorlink_program::EngineError;
use thiserror::Error;

use crate::cuda;

/// Where an engine keeps its tensors and computes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Device {
    /// The host's memory and processor.
    Cpu,
    /// The CUDA device of this number, from 0.
    Cuda(usize),
}

/// A text that names no device.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{0:?} is no device: use cpu, cuda or cuda:N")]
pub struct UnknownDevice(String);

impl Device {
    /// The first CUDA device if there is one, else the host.
    ///
    /// # Errors
    /// [`EngineError::Device`] if a CUDA device may be there, but libtorch cannot reach it: a fallback to the host
    /// would be of another speed, and nobody would know why.
    pub fn preferred() -> Result<Self, EngineError> {
        Ok(if cuda::count()? > 0 { Self::Cuda(0) } else { Self::Cpu })
    }

    /// Waits until everything that was asked of the device is computed: CUDA answers before it is. For stopwatches.
    pub fn synchronize(self) {
        if let Self::Cuda(index) = self {
            // SAFETY of the cast: a device that is there has a small number.
            tch::Cuda::synchronize(index as i64);
        }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu => f.write_str("cpu"),
            Self::Cuda(index) => write!(f, "cuda:{index}"),
        }
    }
}

impl FromStr for Device {
    type Err = UnknownDevice;

    fn from_str(text: &str) -> Result<Self, UnknownDevice> {
        let unknown = || UnknownDevice(text.to_owned());
        match text.split_once(':') {
            None if text == "cpu" => Ok(Self::Cpu),
            None if text == "cuda" => Ok(Self::Cuda(0)),
            Some(("cuda", index)) => index.parse().map(Self::Cuda).map_err(|_| unknown()),
            _ => Err(unknown()),
        }
    }
}

impl From<Device> for tch::Device {
    fn from(device: Device) -> Self {
        match device {
            Device::Cpu => Self::Cpu,
            Device::Cuda(index) => Self::Cuda(index),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_that_are_shown() {
        for device in [Device::Cpu, Device::Cuda(0), Device::Cuda(3)] {
            assert_eq!(device.to_string().parse(), Ok(device));
        }
        assert_eq!("cuda".parse(), Ok(Device::Cuda(0)));
        for wrong in ["", "tpu", "cuda:", "cuda:x", "cuda:-1", "cpu:0", "CUDA"] {
            let error = wrong.parse::<Device>().unwrap_err().to_string();
            assert!(error.contains("use cpu, cuda or cuda:N"), "{error}");
        }
    }
}
