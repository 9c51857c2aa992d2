//! Second holders (rule P-34): states and shards that workers keep for each other.
//!
//! | module | what lives there |
//! |---|---|
//! | `holders` | others keep our states |
//! | `wards` | we keep theirs |

mod holders;
mod wards;

pub(crate) use holders::Holders;
pub(crate) use wards::Wards;
