//! The `Chain` port by alloy, and the in-process EVM that foretells verdicts.
//!
//! | module | what lives there |
//! |---|---|
//! | [`chain`] | [`AlloyChain`], the port |
//! | [`deployment`] | the file with the contracts' addresses |
//! | [`local`] | a local chain: the contracts on it without forge, money for whoever asks |
//! | [`keystore`] | the node's key in an encrypted file |
//! | [`revert`] | custom errors by name |
//! | [`verifier`] | the compiled `StepVerifier` in our process |
//! | `rpc` | the endpoints: retries, and which of them is asked |
//! | `endpoint` | one endpoint: its connection, time limits, how it stands |
//! | `failure` | why there is no answer |
//! | `head`, `block` | what is kept of a block; blocks by number or tag |
//! | [`calls`] | calls as transactions; proofs back from them |
//! | [`event`] | logs as events |
//! | `feed` | confirmed events in order, and what a reorganisation undoes of them |
//! | `once` | the same for who cannot take anything back |
//! | `allowance` | what must come before a call |
//! | `challenge` | moves and events of challenges |
//! | `sender` | one call from its nonce to its receipt |
//! | `attempt` | a transaction under way; nonces that are taken |
//! | `way` | fees that rise, and what stands in the way of a transaction |
//! | `limits` | what transactions may cost |
//! | `views` | views of the contracts |
//! | `parameters` | parameters, from the contracts and from files |
//! | `evm` | calls on the newest state, executed here |
//! | `convert` | one ABI shape, two Rust types |
//!
//! The contract itself recomputes one element, in this process:
//!
//! ```
//! use tensorlink_chain::StepVerifierVm;
//! use tensorlink_types::abi::{self, StepContext, Window};
//! use tensorlink_types::{B256, Opcode, Operand, Operator, Source, TensorType};
//!
//! let ty = TensorType::new(8, 0, &[4])?;
//! let operand = Operand { source: Source::State(0), ty: ty.clone() };
//! let relu = Operator { opcode: Opcode::Relu, operands: vec![operand], attributes: vec![], output: ty };
//! let context = StepContext { jobKey: B256::ZERO, step: 0 };
//!
//! // Of the operand, only the byte that element 2 depends on.
//! let opened = |mantissa: i8| vec![vec![Window { firstByte: 2, data: vec![mantissa as u8].into() }]];
//! let vm = StepVerifierVm::new();
//! for (mantissa, expected) in [(5, "5"), (-5, "0")] {
//!     let (recomputed, _gas) = vm.recompute(&abi::Operator::from(&relu), 2, &context, &opened(mantissa)).unwrap();
//!     assert_eq!(recomputed.to_string(), expected);
//! }
//! # Ok::<(), tensorlink_types::TypeError>(())
//! ```

mod allowance;
mod attempt;
mod block;
pub mod calls;
pub mod chain;
mod challenge;
mod convert;
pub mod deployment;
mod endpoint;
pub mod event;
mod evm;
mod failure;
mod feed;
mod head;
mod heads;
pub mod keystore;
mod limits;
pub mod local;
mod once;
mod parameters;
mod pieces;
pub mod revert;
mod rpc;
mod seed;
mod sender;
pub mod verifier;
mod views;
mod way;

pub use chain::{AlloyChain, Config};
pub use deployment::{DeploymentError, read_deployment, write_deployment};
pub use keystore::KeystoreError;
pub use limits::Limits;
pub use local::{LocalChain, LocalError};
pub use revert::Revert;
pub use sender::Pace;
pub use verifier::StepVerifierVm;
