//! Test vectors: cases of every rule, written here, read by Rust and by forge. The formats are in `README.md`.
//!
//! | module | what lives there |
//! |---|---|
//! | [`mod@file`] | a vector file: its name, generator and verifier; comparing and writing |
//! | [`commitments`] | `commitments.json`: rules C-1 to C-14 |
//! | [`foundations`] | `foundations.json`: rules N-2 to N-4 |
//! | [`operators`] | `operators.json`: rules N-8 and N-11 to N-31; `sampling.json`: rules N-32 to N-37; `training.json`: rules from N-38 on |
//! | [`proofs`] | `proofs.json` and `training-proofs.json`: proofs that convict |
//!
//! A file is made and checked by what this crate has for it:
//!
//! ```
//! use tensorlink_vectors::FILES;
//!
//! let file = FILES.iter().find(|file| file.name == "foundations.json").unwrap();
//! let text = (file.generate)()?;
//! let coverage = (file.verify)(&text)?;
//! assert!(coverage.rules.contains("N-2"), "{coverage:?}");
//! # Ok::<(), tensorlink_vectors::VectorError>(())
//! ```
//!
//! A new file is a module with `generate` and `verify`, and one line in [`FILES`].

pub mod commitments;
pub mod file;
pub mod foundations;
pub mod operators;
pub mod proofs;

pub use file::{Coverage, VectorError, VectorFile};

/// Every vector file.
pub const FILES: &[VectorFile] = &[
    VectorFile { name: "commitments.json", generate: commitments::generate, verify: commitments::verify },
    VectorFile { name: "foundations.json", generate: foundations::generate, verify: foundations::verify },
    VectorFile { name: "operators.json", generate: operators::generate, verify: operators::verify },
    VectorFile { name: "sampling.json", generate: operators::generate_sampling, verify: operators::verify },
    VectorFile { name: "training.json", generate: operators::generate_training, verify: operators::verify },
    VectorFile { name: "proofs.json", generate: proofs::generate, verify: proofs::verify },
    VectorFile { name: "training-proofs.json", generate: proofs::generate_training, verify: proofs::verify },
];
