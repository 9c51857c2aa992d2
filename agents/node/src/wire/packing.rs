//! Tensors of 32-bit words in fewer bits, without loss.
//!
//! Sums of gradients and residual streams leave room in their types, so that most of the upper bits say nothing.
//! Signs go to the lowest bit (zigzag), and blocks of 128 words keep as many bits as their largest one needs (frame
//! of reference; Lemire and Boytsov, "Decoding billions of integers per second through vectorization", 2015, by the
//! crate `bitpacking`).
//!
//! Packed: number of words (u32, little-endian); then of each whole block the bits of a word (1 byte) and 16 bytes for
//! each bit; then the words that make no block, as they are.

use bitpacking::{BitPacker, BitPacker4x};
use bytes::Bytes;

use super::Malformed;

/// Words of a block.
const BLOCK: usize = BitPacker4x::BLOCK_LEN;
/// Bytes of a word.
const WORD: usize = size_of::<i32>();
/// Bytes that a block takes for each bit of a word.
const BYTES_A_BIT: usize = BLOCK / 8;
/// Packs what gets smaller by a share of one in so many: less is not worth the time.
const GAIN: usize = 16;

/// The packed form of what may be words; none if it is not worth it. Whether they are words shows by that.
pub fn pack(data: &[u8]) -> Option<Vec<u8>> {
    let (words, rest) = data.as_chunks::<WORD>();
    let count = u32::try_from(words.len()).ok().filter(|_| rest.is_empty())?;
    let most = data.len().checked_sub(data.len() / GAIN).filter(|_| words.len() >= BLOCK)?;
    let packer = BitPacker4x::new();
    let mut packed = Vec::with_capacity(most);
    packed.extend(count.to_le_bytes());
    let (blocks, rest) = words.as_chunks::<BLOCK>();
    for block in blocks {
        let block = block.map(|word| zigzag(i32::from_le_bytes(word)));
        let bits = packer.num_bits(&block);
        let length = usize::from(bits) * BYTES_A_BIT;
        if packed.len() + 1 + length > most {
            return None;
        }
        packed.push(bits);
        let mut bytes = [0; BLOCK * WORD];
        packer.compress(&block, &mut bytes, bits);
        packed.extend(bytes.get(..length)?);
    }
    packed.extend(rest.as_flattened());
    (packed.len() <= most).then_some(packed)
}

/// What was packed, at most `limit` bytes of it.
///
/// # Errors
/// [`Malformed`] for what [`pack`] does not make.
pub fn unpack(packed: &[u8], limit: usize) -> Result<Bytes, Malformed> {
    let malformed = |reason: &str| Malformed { what: "packed tensor", reason: reason.into() };
    let short = || malformed("it ends too early");
    let (count, mut packed) = packed.split_first_chunk().ok_or_else(short)?;
    let count = u32::from_le_bytes(*count) as usize;
    if count.saturating_mul(WORD) > limit {
        return Err(malformed("it has more words than the tensor"));
    }
    let packer = BitPacker4x::new();
    let mut data = Vec::with_capacity(count * WORD);
    for _ in 0..count / BLOCK {
        let (bits, rest) = packed.split_first().ok_or_else(short)?;
        if *bits > 32 {
            return Err(malformed("a word has more than 32 bits"));
        }
        let (bytes, rest) = rest.split_at_checked(usize::from(*bits) * BYTES_A_BIT).ok_or_else(short)?;
        packed = rest;
        let mut block = [0; BLOCK];
        packer.decompress(bytes, &mut block, *bits);
        data.extend(block.map(|word| signed(word).to_le_bytes()).as_flattened());
    }
    if packed.len() != count % BLOCK * WORD {
        return Err(malformed("its last words are not as many as it says"));
    }
    data.extend(packed);
    Ok(data.into())
}

/// Small for small magnitudes.
const fn zigzag(word: i32) -> u32 {
    ((word << 1) ^ (word >> 31)).cast_unsigned()
}

const fn signed(word: u32) -> i32 {
    (word >> 1).cast_signed() ^ -((word & 1).cast_signed())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bytes(words: &[i32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    proptest! {
        #[test]
        fn what_is_packed_is_smaller_and_comes_back(words in prop::collection::vec(-(1 << 20)..1 << 20, 0..700)) {
            let data = bytes(&words);
            match pack(&data) {
                Some(packed) => {
                    // A block has 21 bits a word in place of 32; less than one is left over.
                    let (blocks, left) = (words.len() / BLOCK, words.len() % BLOCK);
                    prop_assert!(packed.len() <= WORD + blocks * (1 + 21 * BYTES_A_BIT) + left * WORD);
                    prop_assert_eq!(unpack(&packed, data.len()).unwrap(), data);
                }
                None => prop_assert!(words.len() < 2 * BLOCK),
            }
        }

        #[test]
        fn whatever_comes_is_taken_apart_or_refused(packed in prop::collection::vec(any::<u8>(), 0..1000)) {
            if let Ok(data) = unpack(&packed, 1 << 16) {
                prop_assert!(data.len() <= 1 << 16);
            }
        }
    }

    #[test]
    fn the_largest_words_keep_their_signs() {
        let mut words = vec![0; 4096];
        words[7..10].copy_from_slice(&[i32::MIN, i32::MAX, -1]);
        let packed = pack(&bytes(&words)).unwrap();
        assert_eq!(unpack(&packed, words.len() * WORD).unwrap(), bytes(&words));
    }

    #[test]
    fn noise_is_left_as_it_is() {
        let noise: Vec<i32> = (0..1000i32).map(|i| i.wrapping_mul(-1_640_531_535)).collect();
        assert_eq!(pack(&bytes(&noise)), None);
        assert_eq!(pack(&bytes(&[0; 100])), None, "less than a block");
        assert_eq!(pack(&[0; 1001]), None, "no words");
    }

    #[test]
    fn what_is_torn_or_too_long_is_refused() {
        let packed = pack(&bytes(&[5; 300])).unwrap();
        let reason = |packed: &[u8], limit| unpack(packed, limit).unwrap_err().reason;
        assert!(reason(&packed, 1199).contains("more words than the tensor"));
        assert!(reason(&packed[..3], 1200).contains("too early") && reason(&packed[..40], 1200).contains("too early"));
        assert!(reason(&[&packed[..], &[0]].concat(), 1200).contains("last words"));
        let mut wide = packed;
        wide[4] = 33;
        assert!(reason(&wide, 1200).contains("32 bits"));
    }
}
