//! Reverts by name: every custom error of every contract of the deployment, from their ABIs.

use std::collections::HashMap;
use std::sync::LazyLock;

use alloy::dyn_abi::{DynSolValue, ErrorExt};
use alloy::json_abi::{Error as AbiError, JsonAbi};
use alloy::primitives::Selector;
use alloy::sol_types::{Panic, Revert as RevertString, SolError};
use serde::Deserialize;
use tensorlink_bindings::ARTIFACTS;
use tensorlink_node::ports::ChainError;

/// What a contract answered instead of doing what it was asked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Revert {
    /// Name of the error; `Unknown` if it is none of ours, `Error` and `Panic` for Solidity's own.
    pub name: String,
    /// Its arguments for people, e.g. `(1700000000)`.
    pub arguments: String,
}

impl Revert {
    /// The error in the data that a call reverted with.
    pub fn decode(data: &[u8]) -> Self {
        let own = |name: &str, arguments: String| Self { name: name.to_owned(), arguments };
        if let Ok(error) = RevertString::abi_decode(data) {
            return own("Error", format!("({})", error.reason));
        }
        if let Ok(error) = Panic::abi_decode(data) {
            return own("Panic", format!("({:#04x})", error.code));
        }
        let known = data.first_chunk::<4>().and_then(|selector| ERRORS.get(&Selector::from(*selector)));
        let Some(error) = known else {
            return own(
                "Unknown",
                if data.is_empty() { "()".into() } else { format!("({})", alloy::hex::encode_prefixed(data)) },
            );
        };
        let arguments = error.decode_error(data).map_or_else(|_| "(?)".into(), |decoded| list(&decoded.body));
        own(&error.name, arguments)
    }
}

impl From<Revert> for ChainError {
    fn from(Revert { name, arguments }: Revert) -> Self {
        Self::Reverted { name, arguments }
    }
}

static ERRORS: LazyLock<HashMap<Selector, AbiError>> = LazyLock::new(|| {
    #[derive(Deserialize)]
    struct Artifact {
        abi: JsonAbi,
    }
    let parsed = ARTIFACTS.iter().filter_map(|(_, json)| serde_json::from_str::<Artifact>(json).ok());
    let errors = parsed.flat_map(|artifact| artifact.abi.errors.into_values().flatten());
    errors.map(|error| (error.selector(), error)).collect()
});

fn list(values: &[DynSolValue]) -> String {
    let texts: Vec<String> = values.iter().map(show).collect();
    format!("({})", texts.join(", "))
}

fn show(value: &DynSolValue) -> String {
    match value {
        DynSolValue::Bool(value) => value.to_string(),
        DynSolValue::Int(value, _) => value.to_string(),
        DynSolValue::Uint(value, _) => value.to_string(),
        DynSolValue::Address(value) => value.to_string(),
        DynSolValue::String(value) => value.clone(),
        DynSolValue::FixedBytes(word, size) => alloy::hex::encode_prefixed(word.get(..*size).unwrap_or_default()),
        DynSolValue::Bytes(bytes) => alloy::hex::encode_prefixed(bytes),
        DynSolValue::Function(function) => function.to_string(),
        DynSolValue::Array(values) | DynSolValue::FixedArray(values) | DynSolValue::Tuple(values) => list(values),
        DynSolValue::CustomStruct { tuple, .. } => list(tuple),
    }
}

#[cfg(test)]
mod tests {
    use alloy::primitives::{U256, aliases::U40};
    use tensorlink_bindings::{Channels, Checkpoints, Disputes, SNO};

    use super::*;

    fn shown(error: &impl SolError) -> String {
        let Revert { name, arguments } = Revert::decode(&error.abi_encode());
        name + &arguments
    }

    #[test]
    fn names_errors_of_every_contract() {
        assert_eq!(shown(&Checkpoints::WindowOpen { until: U40::from(1_700_000_000u64) }), "WindowOpen(1700000000)");
        assert_eq!(shown(&Disputes::NoFault {}), "NoFault()");
        assert_eq!(shown(&Channels::NotTheNextEpoch { epoch: 4 }), "NotTheNextEpoch(4)");
        assert_eq!(shown(&Channels::TokensOutOfRange { tokens: 5 }), "TokensOutOfRange(5)");
        assert_eq!(shown(&Channels::JobNotOpen { job: 6 }), "JobNotOpen(6)");
        let empty = SNO::ERC20InsufficientBalance {
            sender: tensorlink_types::Address::ZERO,
            balance: U256::from(1),
            needed: U256::from(2),
        };
        assert_eq!(shown(&empty), "ERC20InsufficientBalance(0x0000000000000000000000000000000000000000, 1, 2)");
        assert_eq!(shown(&RevertString { reason: "no".into() }), "Error(no)");
        assert_eq!(shown(&Panic { code: U256::from(0x11) }), "Panic(0x11)");
    }

    #[test]
    fn names_nothing_that_it_does_not_know() {
        assert_eq!(Revert::decode(&[]), Revert { name: "Unknown".into(), arguments: "()".into() });
        assert_eq!(Revert::decode(&[1, 2, 3, 4, 5]).arguments, "(0x0102030405)");
        // A known selector with a body that is cut off.
        assert_eq!(Revert::decode(&Checkpoints::WindowOpen::SELECTOR).arguments, "(?)");
    }
}
