//! Tells the executables of this package where libtorch lies, so that they run without `LD_LIBRARY_PATH`.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Given by torch-sys to its direct dependents only.
    if let Ok(lib) = std::env::var("DEP_TCH_LIBTORCH_LIB") {
        println!("cargo::rustc-link-arg=-Wl,-rpath,{lib}");
    }
}
