//! Reaching CUDA from an executable that was linked without it.
//!
//! libtorch registers its CUDA operations when `libtorch_cuda` is loaded; executables are linked to the CPU
//! library alone, so that they start on machines without a GPU. Where the CUDA libraries were installed they are
//! loaded on demand.

use std::ffi::{CStr, c_int};
use std::sync::OnceLock;

use libloading::Library;
use tensorlink_program::EngineError;

/// Versions of the CUDA runtime that libtorch builds exist for.
#[cfg(unix)]
const RUNTIMES: [&str; 2] = ["libcudart.so.13", "libcudart.so.12"];
#[cfg(not(unix))]
const RUNTIMES: [&str; 2] = ["cudart64_13.dll", "cudart64_12.dll"];

/// Numbers of the compute capability's two parts among a device's attributes (`cudaDeviceAttr`).
const COMPUTE_CAPABILITY: [c_int; 2] = [75, 76];

/// Asks cuBLAS for `f64` products that are not exact; no engine may run under it.
const EMULATION: &str = "CUBLAS_EMULATE_DOUBLE_PRECISION";

fn failed(why: impl Into<String>) -> EngineError {
    EngineError::Device(why.into())
}

/// The driver's library: where it does not load, there is no CUDA.
#[cfg(unix)]
const DRIVER: &str = "libcuda.so.1";
#[cfg(not(unix))]
const DRIVER: &str = "nvcuda.dll";

/// Bytes of a device's name, at most.
const NAME: usize = 256;

/// `cudaErrorNoDevice`: a driver without a device.
const NO_DEVICE: c_int = 100;

/// How many CUDA devices this machine has: none if it has no driver.
///
/// # Errors
/// [`EngineError::Device`] if there is a driver, but libtorch or the CUDA runtime cannot use it.
pub(crate) fn count() -> Result<usize, EngineError> {
    // SAFETY: NVIDIA's own library; its initialisers do not touch the program.
    if unsafe { Library::new(DRIVER) }.is_err() {
        return Ok(0);
    }
    load()?;
    let (runtime, mut count) = (runtime()?, 0);
    // SAFETY: name and signature are those of the CUDA runtime API, versions 12 and 13; the pointer outlives the call.
    let status = unsafe {
        let get: libloading::Symbol<'_, unsafe extern "C" fn(*mut c_int) -> c_int> =
            runtime.get(b"cudaGetDeviceCount\0").map_err(|error| failed(error.to_string()))?;
        get(&raw mut count)
    };
    match status {
        0 => Ok(usize::try_from(count).unwrap_or(0)),
        NO_DEVICE => Ok(0),
        _ => Err(failed(format!("CUDA error {status} when asked for its devices; does nvidia-smi work?"))),
    }
}

/// Loads libtorch's CUDA part and checks that the device is there.
///
/// # Errors
/// [`EngineError::Device`] with what to install or unset.
pub(crate) fn reach(index: usize) -> Result<(), EngineError> {
    if std::env::var_os(EMULATION).is_some_and(|value| value != "0") {
        return Err(failed(format!("{EMULATION} makes matrix products inexact: unset it")));
    }
    let count = count()?;
    if index < count { Ok(()) } else { Err(failed(format!("cuda:{index} of {count} CUDA devices: choose another"))) }
}

/// Loads libtorch's CUDA part once, for the life of the process; it must come before the first question about CUDA.
fn load() -> Result<(), EngineError> {
    static LOADED: OnceLock<Result<(), String>> = OnceLock::new();
    let loaded = LOADED.get_or_init(|| {
        #[cfg(unix)]
        {
            use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};
            // SAFETY: libtorch's own library; its initialisers register operations and nothing else.
            let library = unsafe { Library::open(Some("libtorch_cuda.so"), RTLD_NOW | RTLD_GLOBAL) };
            match library {
                // Unloading would leave libtorch with dangling registrations.
                Ok(library) => drop(library.into_raw()),
                Err(error) => {
                    return Err(format!(
                        "libtorch's CUDA part does not load: {error}; TENSORLINK_LIBTORCH=cuda \
                        script/setup installs it"
                    ));
                }
            }
        }
        Ok(())
    });
    loaded.clone().map_err(failed)
}

fn number(index: usize) -> Result<c_int, EngineError> {
    c_int::try_from(index).map_err(|_| failed("CUDA devices are numbered in 31 bits"))
}

fn runtime() -> Result<Library, EngineError> {
    // SAFETY: the CUDA runtime is the one libtorch has loaded already.
    let runtime = RUNTIMES.iter().find_map(|name| unsafe { Library::new(*name) }.ok());
    runtime.ok_or_else(|| failed("the CUDA runtime does not load"))
}

/// Compute capability of a CUDA device, before and after the point.
///
/// # Errors
/// [`EngineError::Device`] if the device or the CUDA runtime is not there.
pub(crate) fn compute_capability(index: usize) -> Result<(u8, u8), EngineError> {
    reach(index)?;
    let (index, runtime) = (number(index)?, runtime()?);
    let attribute = |attribute| {
        let mut value: c_int = 0;
        // SAFETY: name and signature are those of the CUDA runtime API, versions 12 and 13; the pointer outlives
        // the call.
        let status = unsafe {
            let get: libloading::Symbol<'_, unsafe extern "C" fn(*mut c_int, c_int, c_int) -> c_int> =
                runtime.get(b"cudaDeviceGetAttribute\0").map_err(|error| failed(error.to_string()))?;
            get(&raw mut value, attribute, index)
        };
        let value = u8::try_from(value).ok().filter(|_| status == 0);
        value.ok_or_else(|| failed(format!("CUDA error {status} when asked for its compute capability")))
    };
    let [major, minor] = COMPUTE_CAPABILITY.map(attribute);
    Ok((major?, minor?))
}

/// A CUDA device as its maker calls it.
///
/// # Errors
/// [`EngineError::Device`] if the device or its driver is not there.
pub(crate) fn name(index: usize) -> Result<String, EngineError> {
    reach(index)?;
    // SAFETY: NVIDIA's own library, which the runtime has loaded and initialised when it counted devices.
    let (index, driver) = (number(index)?, unsafe { Library::new(DRIVER) }.map_err(|error| failed(error.to_string()))?);
    let (mut device, mut name): (c_int, [u8; NAME]) = (0, [0; NAME]);
    // SAFETY: names and signatures are those of the CUDA driver API; both pointers outlive the calls, and the last
    // byte of the name is not given away, so that it ends.
    let status = unsafe {
        let get: libloading::Symbol<'_, unsafe extern "C" fn(*mut c_int, c_int) -> c_int> =
            driver.get(b"cuDeviceGet\0").map_err(|error| failed(error.to_string()))?;
        let called: libloading::Symbol<'_, unsafe extern "C" fn(*mut u8, c_int, c_int) -> c_int> =
            driver.get(b"cuDeviceGetName\0").map_err(|error| failed(error.to_string()))?;
        match get(&raw mut device, index) {
            0 => called(name.as_mut_ptr(), NAME as c_int - 1, device),
            status => status,
        }
    };
    let name = CStr::from_bytes_until_nul(&name).map_err(|error| failed(error.to_string()))?;
    match status {
        0 => Ok(name.to_string_lossy().into_owned()),
        _ => Err(failed(format!("CUDA error {status} when asked for its name"))),
    }
}

/// Bytes free on a CUDA device. What libtorch keeps of memory that it no longer uses counts as taken: ask before there
/// is much of that.
///
/// # Errors
/// [`EngineError::Device`] if the device or the CUDA runtime is not there.
pub(crate) fn free_memory(index: usize) -> Result<u64, EngineError> {
    reach(index)?;
    let (index, runtime) = (number(index)?, runtime()?);
    let (mut free, mut total) = (0usize, 0usize);
    // SAFETY: names and signatures are those of the CUDA runtime API, versions 12 and 13; both pointers outlive
    // the call.
    let status = unsafe {
        let set: libloading::Symbol<'_, unsafe extern "C" fn(c_int) -> c_int> =
            runtime.get(b"cudaSetDevice\0").map_err(|error| failed(error.to_string()))?;
        let info: libloading::Symbol<'_, unsafe extern "C" fn(*mut usize, *mut usize) -> c_int> =
            runtime.get(b"cudaMemGetInfo\0").map_err(|error| failed(error.to_string()))?;
        match set(index) {
            0 => info(&raw mut free, &raw mut total),
            status => status,
        }
    };
    if status == 0 { Ok(free as u64) } else { Err(failed(format!("CUDA error {status} when asked for free memory"))) }
}
