//! The [`Engine`](tensorlink_program::Engine) on libtorch: exact integer operators on CPU and CUDA.
//!
//! libtorch holds the tensors, moves them between devices and computes on GPUs; on the host the operators are single
//! passes of our own over its memory, because libtorch has no exact requantisation and its integer matrix products are
//! either slow or, on some processors, wrong. Rules N-*n* are those of `agents/num/SPEC.md`.
//!
//! | module | what lives there |
//! |---|---|
//! | `device` | [`Device`]: where it computes, how that is named, which one is taken |
//! | `engine` | [`TorchEngine`]: checks and dispatch; how kernels earn that they are chosen |
//! | `kernels` | which implementation serves an operation |
//! | `tensor` | [`TorchTensor`]: an exact type and memory that libtorch can see; memory of caches |
//! | `slice`, `buffer` | host memory of whatever width; memory of results, used again |
//! | `cache` | keys and values of texts that go on |
//! | `checked` | an operator, checked again |
//! | `host` | operators on host memory, vectorised; matrix products by AVX2, VNNI and AMX |
//! | `torch` | operators in libtorch's operations, for GPUs and other processors |
//! | `matmul` | MatMul, ScaledMatMul, HeadScores and HeadMix by the chosen kernel |
//! | `attention` | HeadScores, softmax and HeadMix in one |
//! | `chain`, `sum` | runs of elementwise operators; gradients and their sum |
//! | `simd` | one loop compiled for several instruction sets |
//! | [`float`] | transformers in floating point: what exact mode is calibrated by and measured against |
//! | `cuda`, `memory`, `hardware` | loading CUDA on demand; free memory; what a device is called |
//!
//! The engine computes the bits of the scalar reference:
//!
//! ```
//! use tensorlink_program::{Engine, StepContext};
//! use tensorlink_num::{Tensor, execute};
//! use tensorlink_tensor::{Device, TorchEngine};
//! use tensorlink_types::{Opcode, Operand, Operator, Source, TensorType};
//!
//! let matrix = TensorType::new(8, 5, &[2, 3])?;
//! let a = Tensor::from_wide(matrix.clone(), &[1, -2, 3, -4, 5, -6])?;
//! let operand = Operand { source: Source::State(0), ty: matrix };
//! let squares = Operator {
//!     opcode: Opcode::MatMul,
//!     operands: vec![operand.clone(), operand],
//!     attributes: vec![0],
//!     output: TensorType::new(16, 10, &[2, 2])?,
//! };
//!
//! let (engine, context) = (TorchEngine::new(Device::Cpu)?, StepContext::default());
//! let there = engine.import(&a)?;
//! let product = engine.export(&engine.execute(&squares, &[&there, &there], &context)?)?;
//! assert_eq!(product, execute(&squares, &[&a, &a], &context)?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[cfg(target_arch = "x86_64")]
mod attention;
mod buffer;
mod cache;
mod calibrate;
mod chain;
mod checked;
mod cuda;
mod device;
mod engine;
pub mod float;
mod hardware;
mod host;
mod kernels;
mod matmul;
mod memory;
mod simd;
mod slice;
#[cfg(target_arch = "x86_64")]
mod sum;
mod tensor;
mod torch;

pub use cache::TorchRoom;
pub use calibrate::calibrate;
pub use device::{Device, UnknownDevice};
pub use engine::TorchEngine;
pub use kernels::{ElementKernel, Int8Kernel, Int16Kernel, Kernels};
pub use tensor::TorchTensor;
