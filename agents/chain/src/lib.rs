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
//! | `rpc` | the endpoint: time limits, retries, reconnection |
//! | [`calls`] | calls as transactions; proofs back from them |
//! | [`event`] | logs as events |
//! | `feed` | confirmed events in order, each once |
//! | `allowance` | what must come before a call |
//! | `challenge` | moves and events of challenges |
//! | `sender` | nonces, fees, receipts |
//! | `views` | views of the contracts |
//! | `evm` | calls on the newest state, executed here |
//! | `convert` | one ABI shape, two Rust types |

mod allowance;
pub mod calls;
pub mod chain;
mod challenge;
mod convert;
pub mod deployment;
pub mod event;
mod evm;
mod feed;
pub mod keystore;
pub mod local;
pub mod revert;
mod rpc;
mod seed;
mod sender;
pub mod verifier;
mod views;

pub use chain::{AlloyChain, Config};
pub use deployment::{DeploymentError, read_deployment, write_deployment};
pub use keystore::KeystoreError;
pub use local::{LocalChain, LocalError};
pub use revert::Revert;
pub use sender::Pace;
pub use verifier::StepVerifierVm;
