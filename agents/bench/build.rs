//! Tells the executables of this package where libtorch lies, so that they run without `LD_LIBRARY_PATH`.

use std::path::Path;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Given by torch-sys to its direct dependents only.
    let Ok(lib) = std::env::var("DEP_TCH_LIBTORCH_LIB") else { return };
    println!("cargo::rustc-link-arg=-Wl,-rpath,{lib}");
    // The CUDA library registers its kernels when it is loaded; no symbol of it is named, so the linker would drop it.
    if Path::new(&lib).join("libtorch_cuda.so").exists() {
        println!("cargo::rustc-link-arg=-Wl,--no-as-needed,-ltorch_cuda,--as-needed");
    }
}
