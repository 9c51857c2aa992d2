//! Tells tests and benches where libtorch lies, so that they run without `LD_LIBRARY_PATH`.
//!
//! Cargo passes on what torch-sys found to normal dependents only, and the worker does not depend on libtorch: only its
//! tests and benches do. So this looks where torch-sys looks.

use std::path::{Path, PathBuf};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=LIBTORCH");
    println!("cargo::rerun-if-env-changed=LIBTORCH_LIB");
    // `LIBTORCH_LIB` is the folder above `lib` too.
    let Some(root) = std::env::var_os("LIBTORCH_LIB").or_else(|| std::env::var_os("LIBTORCH")) else { return };
    let lib: PathBuf = Path::new(&root).join("lib");
    for target in ["tests", "benches"] {
        println!("cargo::rustc-link-arg-{target}=-Wl,-rpath,{}", lib.display());
    }
}
