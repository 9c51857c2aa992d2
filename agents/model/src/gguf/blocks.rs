//! Blocks of small integers with scales, as ggml packs weights: back to floats, by the same products and sums.
//!
//! A number is `d·q`, `d·(q − middle)` or `d·q + m`; blocks of 256 have a scale, and some a minimum, for each 16 or 32
//! of them, which are small integers themselves. `d` and `m` are 16-bit floats, all else is computed in 32 bits.

use half::f16;

/// A packing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Blocks {
    Q4_0,
    Q4_1,
    Q5_0,
    Q5_1,
    Q8_0,
    Q4K,
    Q5K,
    Q6K,
}

impl Blocks {
    /// Its name in ggml.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Q4_0 => "Q4_0",
            Self::Q4_1 => "Q4_1",
            Self::Q5_0 => "Q5_0",
            Self::Q5_1 => "Q5_1",
            Self::Q8_0 => "Q8_0",
            Self::Q4K => "Q4_K",
            Self::Q5K => "Q5_K",
            Self::Q6K => "Q6_K",
        }
    }

    /// Numbers in a block.
    pub(crate) const fn elements(self) -> usize {
        match self {
            Self::Q4_0 | Self::Q4_1 | Self::Q5_0 | Self::Q5_1 | Self::Q8_0 => 32,
            Self::Q4K | Self::Q5K | Self::Q6K => 256,
        }
    }

    /// Bytes of a block.
    pub(crate) const fn bytes(self) -> usize {
        match self {
            Self::Q4_0 => 2 + 16,
            Self::Q4_1 => 2 + 2 + 16,
            Self::Q5_0 => 2 + 4 + 16,
            Self::Q5_1 => 2 + 2 + 4 + 16,
            Self::Q8_0 => 2 + 32,
            Self::Q4K => 2 + 2 + 12 + 128,
            Self::Q5K => 2 + 2 + 12 + 32 + 128,
            Self::Q6K => 128 + 64 + 16 + 2,
        }
    }

    /// Adds the numbers of a block; nothing for one of another length.
    pub(crate) fn unpack(self, block: &[u8], to: &mut Vec<f32>) {
        if block.len() == self.bytes() {
            let unpacked = match self {
                Self::Q4_0 => q4_0(block, to),
                Self::Q4_1 => q4_1(block, to),
                Self::Q5_0 => q5_0(block, to),
                Self::Q5_1 => q5_1(block, to),
                Self::Q8_0 => q8_0(block, to),
                Self::Q4K => q4_k(block, to),
                Self::Q5K => q5_k(block, to),
                Self::Q6K => q6_k(block, to),
            };
            // INVARIANT: every part is there, for the block has its length.
            debug_assert!(unpacked.is_some());
        }
    }
}

/// A 16-bit float, and what follows.
fn float(bytes: &[u8]) -> Option<(f32, &[u8])> {
    let (float, rest) = bytes.split_first_chunk()?;
    Some((f16::from_le_bytes(*float).to_f32(), rest))
}

/// All lower halves of some bytes, then all upper ones.
fn halves(bytes: &[u8]) -> impl Iterator<Item = u8> {
    bytes.iter().map(|byte| byte & 15).chain(bytes.iter().map(|byte| byte >> 4))
}

/// Numbers of 5 bits: 4 of each as [`halves`], the uppermost of all before them.
fn fives(bytes: &[u8]) -> Option<impl Iterator<Item = u8>> {
    let (upper, lower) = bytes.split_first_chunk()?;
    let upper = u32::from_le_bytes(*upper);
    Some(halves(lower).zip(0..32).map(move |(low, bit)| low | if upper >> bit & 1 == 1 { 16 } else { 0 }))
}

fn q4_0(block: &[u8], to: &mut Vec<f32>) -> Option<()> {
    let (d, rest) = float(block)?;
    to.extend(halves(rest).map(|q| (f32::from(q) - 8.0) * d));
    Some(())
}

fn q4_1(block: &[u8], to: &mut Vec<f32>) -> Option<()> {
    let (d, rest) = float(block)?;
    let (m, rest) = float(rest)?;
    to.extend(halves(rest).map(|q| f32::from(q) * d + m));
    Some(())
}

fn q5_0(block: &[u8], to: &mut Vec<f32>) -> Option<()> {
    let (d, rest) = float(block)?;
    to.extend(fives(rest)?.map(|q| (f32::from(q) - 16.0) * d));
    Some(())
}

fn q5_1(block: &[u8], to: &mut Vec<f32>) -> Option<()> {
    let (d, rest) = float(block)?;
    let (m, rest) = float(rest)?;
    to.extend(fives(rest)?.map(|q| f32::from(q) * d + m));
    Some(())
}

fn q8_0(block: &[u8], to: &mut Vec<f32>) -> Option<()> {
    let (d, rest) = float(block)?;
    to.extend(rest.iter().map(|q| f32::from(q.cast_signed()) * d));
    Some(())
}

/// Scale and minimum of each 32 numbers out of 256, of 6 bits each: of the first four whole, then the lower four bits
/// of the others, whose upper two are above those of the first.
fn scales(packed: &[u8; 12]) -> [(f32, f32); 8] {
    let [a, b, c, d, e, f, g, h, i, j, k, l] = *packed;
    let first = |scale: u8, minimum: u8| (f32::from(scale & 63), f32::from(minimum & 63));
    let other = |both: u8, scale: u8, minimum: u8| {
        (f32::from((both & 15) | (scale >> 6 << 4)), f32::from((both >> 4) | (minimum >> 6 << 4)))
    };
    [first(a, e), first(b, f), first(c, g), first(d, h), other(i, a, e), other(j, b, f), other(k, c, g), other(l, d, h)]
}

fn q4_k(block: &[u8], to: &mut Vec<f32>) -> Option<()> {
    let (d, rest) = float(block)?;
    let (m, rest) = float(rest)?;
    let (packed, rest) = rest.split_first_chunk()?;
    let numbers = rest.chunks(32).flat_map(halves);
    let each = scales(packed).into_iter().flat_map(|scale| std::iter::repeat_n(scale, 32));
    to.extend(numbers.zip(each).map(|(q, (scale, minimum))| d * scale * f32::from(q) - m * minimum));
    Some(())
}

fn q5_k(block: &[u8], to: &mut Vec<f32>) -> Option<()> {
    let (d, rest) = float(block)?;
    let (m, rest) = float(rest)?;
    let (packed, rest) = rest.split_first_chunk()?;
    let (upper, lower) = rest.split_first_chunk::<32>()?;
    let uppers = (0..8).flat_map(|bit| upper.iter().map(move |byte| (byte >> bit & 1) << 4));
    let numbers = lower.chunks(32).flat_map(halves).zip(uppers).map(|(low, high)| low | high);
    let each = scales(packed).into_iter().flat_map(|scale| std::iter::repeat_n(scale, 32));
    to.extend(numbers.zip(each).map(|(q, (scale, minimum))| d * scale * f32::from(q) - m * minimum));
    Some(())
}

fn q6_k(block: &[u8], to: &mut Vec<f32>) -> Option<()> {
    let (lower, rest) = block.split_first_chunk::<128>()?;
    let (upper, rest) = rest.split_first_chunk::<64>()?;
    let (scales, rest) = rest.split_first_chunk::<16>()?;
    let (d, _) = float(rest)?;
    let lows = lower.chunks(64).flat_map(halves);
    let highs = upper.chunks(32).flat_map(|chunk| {
        [0, 2, 4, 6].into_iter().flat_map(move |shift| chunk.iter().map(move |byte| (byte >> shift & 3) << 4))
    });
    let numbers = lows.zip(highs).map(|(low, high)| f32::from(low | high) - 32.0);
    let each = scales.iter().flat_map(|scale| std::iter::repeat_n(f32::from(scale.cast_signed()), 16));
    to.extend(numbers.zip(each).map(|(q, scale)| d * scale * q));
    Some(())
}
