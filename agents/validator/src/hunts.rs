//! One hunt for each claim. Our own lottery, the chain's draw, a replica that differs and an accusation may all ask for
//! the same claim: whoever comes second waits, and finds it decided.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tensorlink_types::ClaimId;

/// Taken by whoever looks into a claim just now.
pub(crate) type Turn = tokio::sync::Mutex<()>;

/// Claims that are looked into.
#[derive(Debug, Default)]
pub(crate) struct Hunts(Mutex<HashMap<ClaimId, Weak<Turn>>>);

impl Hunts {
    /// Joins the hunt for a claim, for as long as what it gives is kept.
    pub(crate) fn join(&self, claim: ClaimId) -> Arc<Turn> {
        let mut hunts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(hunt) = hunts.get(&claim).and_then(Weak::upgrade) {
            return hunt;
        }
        hunts.retain(|_, hunt| hunt.strong_count() > 0);
        let hunt = Arc::new(Turn::default());
        hunts.insert(claim, Arc::downgrade(&hunt));
        hunt
    }

    /// Whether anybody has joined the hunt for a claim.
    pub(crate) fn is_on(&self, claim: ClaimId) -> bool {
        let hunts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        hunts.get(&claim).is_some_and(|hunt| hunt.strong_count() > 0)
    }
}

#[cfg(test)]
mod tests {
    use tensorlink_types::B256;

    use super::*;

    #[test]
    fn who_comes_second_waits_until_the_first_has_left() {
        let hunts = Hunts::default();
        let [one, other] = [1, 2].map(|byte| ClaimId(B256::repeat_byte(byte)));
        let first = hunts.join(one);
        let turn = first.try_lock().unwrap();
        let second = hunts.join(one);
        assert!(second.try_lock().is_err());
        assert!(hunts.join(other).try_lock().is_ok(), "of another claim");
        drop(turn);
        assert!(second.try_lock().is_ok());
        drop(first);
        assert!(hunts.is_on(one));
        drop(second);
        assert!(!hunts.is_on(one) && !hunts.is_on(other));
        drop(hunts.join(one));
        assert_eq!(hunts.0.lock().unwrap().len(), 1, "what is over is let go of");
    }
}
