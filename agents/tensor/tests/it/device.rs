//! Which engines the tests are about.
//!
//! Those of the host, unless `TENSORLINK_DEVICE` names a GPU (`cuda`, `cuda:N`). The operations that a GPU runs are
//! tested in either case: libtorch has them on the host as well.

use tensorlink_tensor::{Device, ElementKernel, Int8Kernel, Int16Kernel, Kernels, TorchEngine};

/// The device under test.
pub(crate) fn device() -> Device {
    std::env::var("TENSORLINK_DEVICE").map_or(Device::Cpu, |name| name.parse().unwrap())
}

/// An engine as a node opens it.
pub(crate) fn engine() -> TorchEngine {
    TorchEngine::new(device()).unwrap()
}

/// The same, and one that computes on the host what a GPU would.
pub(crate) fn engines() -> Vec<TorchEngine> {
    let mut engines = vec![engine()];
    if device() == Device::Cpu {
        engines.push(as_a_gpu().expect("f64 products are exact anywhere"));
    }
    engines
}

/// The operations of a GPU on the host: bytes by `_int_mm`, where that does not saturate.
fn as_a_gpu() -> Option<TorchEngine> {
    let products = [(Int8Kernel::IntMm, Int16Kernel::Int8Halves), (Int8Kernel::F64, Int16Kernel::F64)];
    products.into_iter().find_map(|(int8, int16)| {
        TorchEngine::with_kernels(Device::Cpu, Kernels { int8, int16, elements: ElementKernel::Torch }).ok()
    })
}

/// An engine with each of these kernels that is exact on the device; on a GPU, those that compute there.
pub(crate) fn with(kernels: impl IntoIterator<Item = (Int8Kernel, Int16Kernel, ElementKernel)>) -> Vec<TorchEngine> {
    let kernels = kernels.into_iter().map(|(int8, int16, elements)| Kernels { int8, int16, elements });
    kernels.filter_map(|kernels| TorchEngine::with_kernels(device(), kernels).ok()).collect()
}
