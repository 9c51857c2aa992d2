//! Repeatable choices from a seed.

use tensorlink_types::{B256, TensorType};

use crate::philox::philox4x32;
use crate::tensor::{Tensor, TensorError};

/// A stream of pseudo-random numbers, the same on every machine.
#[derive(Clone, Debug)]
pub struct Dice {
    key: [u32; 2],
    rolls: u64,
}

impl Dice {
    /// A stream for this seed.
    pub const fn new(seed: u64) -> Self {
        // SAFETY of the casts: the two halves.
        Self { key: [seed as u32, (seed >> 32) as u32], rolls: 0 }
    }

    /// The next `bits` bits, at most 64.
    pub fn bits(&mut self, bits: u32) -> u64 {
        let [low, high] = [self.rolls as u32, (self.rolls >> 32) as u32];
        self.rolls = self.rolls.wrapping_add(1);
        let [a, b, ..] = philox4x32(self.key, [low, high, 0xd1ce, 0]);
        let word = (u64::from(a) << 32) | u64::from(b);
        word.checked_shr(64u32.saturating_sub(bits)).unwrap_or_default()
    }

    /// A number from `low` to `high`, both included; `low` where the range is empty.
    pub fn range(&mut self, low: i64, high: i64) -> i64 {
        let span = i128::from(high).saturating_sub(low.into()).saturating_add(1).max(1);
        let offset = i128::from(self.bits(64)).checked_rem(span).unwrap_or_default();
        // SAFETY of the cast: between low and high.
        i128::from(low).saturating_add(offset) as i64
    }

    /// True once in `n` times.
    pub fn once_in(&mut self, n: i64) -> bool {
        self.range(1, n) == 1
    }

    /// A random word.
    pub fn word(&mut self) -> B256 {
        let mut word = B256::ZERO;
        for chunk in word.chunks_exact_mut(8) {
            chunk.copy_from_slice(&self.bits(64).to_be_bytes());
        }
        word
    }

    /// A mantissa: often uniform, sometimes small, sometimes at the limit.
    pub fn mantissa(&mut self, limit: i64) -> i64 {
        match self.range(0, 9) {
            0 => limit,
            1 => limit.saturating_neg(),
            2 | 3 => self.range(-2, 2).clamp(limit.saturating_neg(), limit),
            _ => self.range(limit.saturating_neg(), limit),
        }
    }

    /// A tensor of mantissas: all of them at the limits once in a while.
    pub fn tensor(&mut self, ty: &TensorType) -> Result<Tensor, TensorError> {
        let (limit, extreme) = (ty.limit(), self.once_in(12));
        let values: Vec<i64> = (0..ty.elements())
            .map(|_| match extreme {
                true if self.once_in(6) => limit.saturating_neg(),
                true => limit,
                false => self.mantissa(limit),
            })
            .collect();
        Tensor::from_wide(ty.clone(), &values)
    }
}
