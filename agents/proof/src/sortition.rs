//! Which validators are drawn to answer for a claim, when, and how an answer is sealed: as `contracts/core/Audits.sol`
//! has it (C-15, P-31 to P-33).

use alloy_sol_types::SolValue;
use tensorlink_types::abi::{AuditAnswer, StepStatement};
use tensorlink_types::{Address, B256, ClaimId, U256, keccak256};

/// One, in 1/10,000.
const WHOLE_BPS: u32 = 10_000;

/// The period whose seed draws for what was fixed at `time`; both in seconds. None where a period has no length, or
/// times end.
pub fn period_after(time: u64, period: u64) -> Option<u64> {
    time.checked_div(period)?.checked_add(2)
}

/// Whether a seed draws a validator, one of so many, to answer for a claim. `audits_per_claim_bps`: in 1/10,000 of an
/// audit. The more validators there are, the fewer of the same are drawn: to make some, or to unmake them, draws
/// nobody anew.
pub fn is_drawn(seed: B256, claim: ClaimId, auditor: Address, validators: u64, audits_per_claim_bps: u32) -> bool {
    // A share of 2^128; what it is compared with has 128 + 32 bits at most.
    let ticket = U256::from_be_bytes(keccak256((seed, claim.0, auditor).abi_encode()).0) >> 128_usize;
    let tickets = U256::from(WHOLE_BPS).saturating_mul(U256::from(validators));
    validators > 0 && ticket.saturating_mul(tickets) < U256::from(audits_per_claim_bps) << 128_usize
}

/// What an auditor shows of its answer before it reveals it. Nobody else may know the salt.
pub fn sealed_answer(claim: ClaimId, answer: &AuditAnswer, auditor: Address, salt: B256) -> B256 {
    keccak256((claim.0, answer.clone(), auditor, salt).abi_encode())
}

/// The answer that a statement about the same step amounts to.
pub fn answer_of(statement: &StepStatement) -> AuditAnswer {
    AuditAnswer { step: statement.step, preState: statement.preState, trace: statement.trace }
}

/// A claim's challenge window in its quarters: answers are committed in the first, revealed in the second, and auditors
/// are accused until the third is over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Quarters {
    /// When the claim was fixed, seconds.
    pub fixed_at: u64,
    /// The job's challenge window, seconds.
    pub window: u64,
    /// Time of each side of a challenge, seconds: no quarter is longer.
    pub clock: u64,
}

impl Quarters {
    /// When the `n`-th quarter is over.
    pub fn end(&self, n: u64) -> u64 {
        let window = self.window.min(self.clock.saturating_mul(4));
        self.fixed_at.saturating_add(n.saturating_mul(window) / 4)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draws(validators: u64, bps: u32) -> usize {
        let claims = (0..2_000u32).map(|n| ClaimId(B256::left_padding_from(&n.to_be_bytes())));
        let auditor = Address::repeat_byte(7);
        claims.filter(|claim| is_drawn(B256::repeat_byte(1), *claim, auditor, validators, bps)).count()
    }

    #[test]
    fn as_many_are_drawn_as_audits_are_wanted() {
        assert_eq!((draws(1, 0), draws(1, 10_000), draws(3, 30_000)), (0, 2_000, 2_000));
        // 5 % of 2,000 are 100, give or take 10 (one standard deviation).
        assert!((60..140).contains(&draws(2, 1_000)), "{}", draws(2, 1_000));
        assert_eq!(draws(0, 1_000), 0, "nobody is drawn from nobody");
    }

    #[test]
    fn more_validators_draw_fewer_of_the_same() {
        let drawn = |claim: u32, validators| {
            let claim = ClaimId(B256::left_padding_from(&claim.to_be_bytes()));
            is_drawn(B256::repeat_byte(1), claim, Address::repeat_byte(7), validators, 5_000)
        };
        for claim in 0..500 {
            assert!((1..10).all(|n| drawn(claim, n) || !drawn(claim, n + 1)), "claim {claim}");
        }
    }

    #[test]
    fn a_whole_period_lies_before_the_seed() {
        assert_eq!(period_after(600, 300), Some(4));
        assert_eq!(period_after(899, 300), Some(4));
        assert_eq!(period_after(899, 0), None);
    }

    #[test]
    fn quarters_are_rounded_as_the_contract_does() {
        let quarters = Quarters { fixed_at: 100, window: 10, clock: 60 };
        assert_eq!([0, 1, 2, 3, 4].map(|n| quarters.end(n)), [100, 102, 105, 107, 110]);
        let quarters = Quarters { clock: 2, ..quarters };
        assert_eq!(
            [1, 2, 3].map(|n| quarters.end(n)),
            [102, 104, 106],
            "a worker that is challenged at once has so much time"
        );
    }

    #[test]
    fn a_seal_binds_all_that_it_is_made_of() {
        let answer = AuditAnswer { step: 3, preState: B256::repeat_byte(1), trace: B256::repeat_byte(2) };
        let sealed = |claim: u8, answer: &AuditAnswer, auditor: u8, salt: u8| {
            let claim = ClaimId(B256::repeat_byte(claim));
            sealed_answer(claim, answer, Address::repeat_byte(auditor), B256::repeat_byte(salt))
        };
        let first = sealed(1, &answer, 2, 3);
        assert_ne!(first, sealed(4, &answer, 2, 3));
        assert_ne!(first, sealed(1, &AuditAnswer { step: 4, ..answer }, 2, 3));
        assert_ne!(first, sealed(1, &answer, 4, 3));
        assert_ne!(first, sealed(1, &answer, 2, 4));
    }
}
