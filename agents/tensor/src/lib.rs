//! The `Engine` on libtorch: exact and native, on CPU and CUDA.
