//! Which claims to audit.

use tensorlink_node::Identity;
use tensorlink_proof::commit::sign::SignatureError;
use tensorlink_types::{B256, ClaimId, keccak256};

/// Share of claims that are audited, 0 to 1.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Rate(f64);

impl Rate {
    /// Nothing.
    pub const NONE: Self = Self(0.0);

    /// A rate; none outside 0 to 1.
    pub fn new(share: f64) -> Option<Self> {
        (0.0..=1.0).contains(&share).then_some(Self(share))
    }

    /// The share.
    pub const fn share(self) -> f64 {
        self.0
    }
}

/// Whether this validator audits a claim.
///
/// The draw is the validator's own signature over the claim and the block that holds it: nobody else can foresee it, so
/// a worker cannot choose which claims to falsify; and it is deterministic, so a restart draws the same.
///
/// # Errors
/// When the key cannot sign.
pub fn drawn(identity: &Identity, claim: ClaimId, block: B256, rate: Rate) -> Result<bool, SignatureError> {
    let ticket = keccak256([b"tensorlink audit".as_slice(), claim.0.as_slice(), block.as_slice()].concat());
    let signature = identity.sign(ticket)?;
    let draw = keccak256(signature);
    let number = draw.as_slice().iter().take(8).fold(0u64, |n, byte| (n << 8) | u64::from(*byte));
    // 2^64 as a float is exact; a rate of 1 draws every number.
    Ok(number as f64 <= rate.0 * (u64::MAX as f64) && rate.0 > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(rate: f64) -> f64 {
        let identity = Identity::new(&[7; 32]).unwrap();
        let rate = Rate::new(rate).unwrap();
        let claims = 400u32;
        let drawn = (0..claims)
            .filter(|n| {
                let claim = ClaimId(B256::left_padding_from(&n.to_be_bytes()));
                drawn(&identity, claim, B256::ZERO, rate).unwrap()
            })
            .count();
        drawn as f64 / f64::from(claims)
    }

    #[test]
    fn the_share_drawn_is_the_rate() {
        assert_eq!((share(0.0), share(1.0)), (0.0, 1.0));
        assert!((share(0.25) - 0.25).abs() < 0.08);
        assert!(Rate::new(1.5).is_none() && Rate::new(f64::NAN).is_none());
    }
}
