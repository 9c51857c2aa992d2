//! Philox4x32-10 (rule N-4), in `int64`.

use tch::{TchError, Tensor};
use tensorlink_num::philox::{MULTIPLIERS, ROUNDS, WEYL};

/// The low half of a word.
pub(super) const LOW: i64 = 0xffff_ffff;

/// High and low word of the product of a word by a constant one, from halves: no intermediate leaves 49 bits.
fn product(multiplier: u32, word: &Tensor) -> Result<(Tensor, Tensor), TchError> {
    let multiplier = i64::from(multiplier);
    let low = word.f_mul_scalar(multiplier & 0xffff)?;
    let high = word.f_mul_scalar(multiplier >> 16)?;
    let carried = low.f_bitwise_right_shift_tensor_scalar(16)?.f_add(&high)?;
    let low_word =
        carried.f_bitwise_and(0xffff)?.f_bitwise_left_shift_tensor_scalar(16)?.f_add(&low.f_bitwise_and(0xffff)?)?;
    Ok((carried.f_bitwise_right_shift_tensor_scalar(16)?, low_word))
}

/// Output words of Philox4x32-10; words of counter and key have shapes that go together.
pub(super) fn philox(counter: [Tensor; 4], key: [Tensor; 2]) -> Result<[Tensor; 4], TchError> {
    let mut state = counter;
    for round in 0..ROUNDS {
        let key = |i: usize| key[i].f_add_scalar(i64::from(WEYL[i]) * i64::from(round))?.f_bitwise_and(LOW);
        let [c0, c1, c2, c3] = &state;
        let ((high0, low0), (high1, low1)) = (product(MULTIPLIERS[0], c0)?, product(MULTIPLIERS[1], c2)?);
        let first = high1.f_bitwise_xor_tensor(c1)?.f_bitwise_xor_tensor(&key(0)?)?;
        let third = high0.f_bitwise_xor_tensor(c3)?.f_bitwise_xor_tensor(&key(1)?)?;
        state = [first, low1, third, low0];
    }
    Ok(state)
}
