//! Which balance of an account is meant.

use serde::{Deserialize, Serialize};

/// Which balance of an account in `Staking`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Executes stages.
    Worker,
    /// Audits claims.
    Validator,
}
