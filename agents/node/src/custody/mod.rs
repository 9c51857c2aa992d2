//! Second holders: whoever keeps the state that another's claim ends in, and gives it to who asks (rules P-34, P-35).

mod error;
mod holdings;
mod keeper;
mod pairs;
mod programs;

pub use self::error::KeepError;
pub use self::keeper::{Asked, Keeper, SPARED};
pub use self::pairs::{holders, keeper_of, ward_of};
