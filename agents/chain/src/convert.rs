//! One ABI shape, two Rust types: the bindings' structs and those of `tensorlink_types::abi`.

use alloy::sol_types::{Error, SolType, SolValue};

/// The same value as the other type of its ABI shape.
pub(crate) fn recode<A: SolValue, B>(value: &A) -> Result<B, Error>
where
    B: SolValue + From<<<B as SolValue>::SolType as SolType>::RustType>,
{
    B::abi_decode(&value.abi_encode())
}
