//! Who audits the auditors: whoever made a claim knows what its drawn auditors must answer, tells them nothing before
//! they have, and accuses those that answer something else.

mod checking;

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tensorlink_types::abi::Claim;
use tensorlink_types::{Address, ClaimId, Lane};

/// Auditors that we have accused, by claim: they are penalised once it stands for good. And when our epochs were
/// redeemed, which fixes their receipts.
#[derive(Debug, Default)]
pub(crate) struct Accused {
    all: Mutex<HashMap<(ClaimId, Address), Claim>>,
    redeemed: Mutex<HashMap<(Lane, u32), u64>>,
}

impl Accused {
    fn all(&self) -> MutexGuard<'_, HashMap<(ClaimId, Address), Claim>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn redeemed(&self) -> MutexGuard<'_, HashMap<(Lane, u32), u64>> {
        self.redeemed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
