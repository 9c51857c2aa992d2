//! Contract bindings, generated from the compiled contracts.
//!
//! One module for each contract of a deployment, made by alloy from `abi/<name>.json`, which `script/bindings` writes
//! and `script/test` compares with what the compiler gives. Structs of `contracts/types` appear here once for each
//! contract that takes them; they have the ABI shape of `tensorlink_types::abi`, which is the one the rest of the
//! code knows.
//!
//! What a call sends, by alloy:
//!
//! ```
//! use alloy::primitives::{Address, U256};
//! use alloy::sol_types::SolCall;
//! use tensorlink_bindings::SNO;
//!
//! let call = SNO::transferCall { to: Address::ZERO, value: U256::from(5) };
//! let sent = call.abi_encode();
//! assert_eq!(sent[..4], SNO::transferCall::SELECTOR);
//! assert_eq!(SNO::transferCall::abi_decode(&sent)?.value, call.value);
//! # Ok::<(), alloy::sol_types::Error>(())
//! ```

#![allow(missing_docs, clippy::all, reason = "generated")]

/// The compiled contracts as JSON (`abi`, `bytecode`, `deployedBytecode`), by name: for tools that work on any of them.
pub const ARTIFACTS: [(&str, &str); 11] = [
    ("SNO", include_str!("../abi/SNO.json")),
    ("Staking", include_str!("../abi/Staking.json")),
    ("Jobs", include_str!("../abi/Jobs.json")),
    ("Checkpoints", include_str!("../abi/Checkpoints.json")),
    ("Channels", include_str!("../abi/Channels.json")),
    ("Disputes", include_str!("../abi/Disputes.json")),
    ("Challenges", include_str!("../abi/Challenges.json")),
    ("Custody", include_str!("../abi/Custody.json")),
    ("Audits", include_str!("../abi/Audits.json")),
    ("Beacon", include_str!("../abi/Beacon.json")),
    ("StepVerifier", include_str!("../abi/StepVerifier.json")),
];

macro_rules! bind {
    ($(#[doc = $doc:literal] $module:ident = $contract:ident, $path:literal;)*) => {
        $(
            #[doc = $doc]
            pub mod $module {
                alloy::sol!(
                    #[sol(rpc)]
                    #[derive(Debug, PartialEq, Eq)]
                    $contract,
                    $path
                );
            }
        )*
    };
}

bind! {
    /// The token.
    sno = SNO, "abi/SNO.json";
    /// Stake of workers and collateral of validators.
    staking = Staking, "abi/Staking.json";
    /// Terms, escrow and assignments.
    jobs = Jobs, "abi/Jobs.json";
    /// Claims, challenge windows and finality.
    checkpoints = Checkpoints, "abi/Checkpoints.json";
    /// Payment of serving jobs by vouchers.
    channels = Channels, "abi/Channels.json";
    /// Proofs and convictions.
    disputes = Disputes, "abi/Disputes.json";
    /// What silent workers are made to say.
    challenges = Challenges, "abi/Challenges.json";
    /// Second holders of states, and demands for withheld data.
    custody = Custody, "abi/Custody.json";
    /// Validators that are drawn to answer for claims.
    audits = Audits, "abi/Audits.json";
    /// The seeds that draw them.
    beacon = Beacon, "abi/Beacon.json";
    /// Recomputation of one element.
    step_verifier = StepVerifier, "abi/StepVerifier.json";
}

pub mod creation;

pub use audits::Audits;
pub use beacon::Beacon;
pub use challenges::Challenges;
pub use channels::Channels;
pub use checkpoints::Checkpoints;
pub use creation::Creation;
pub use custody::Custody;
pub use disputes::Disputes;
pub use jobs::Jobs;
pub use sno::SNO;
pub use staking::Staking;
pub use step_verifier::StepVerifier;
