//! The table of characters in a tokenizer of SentencePiece's kind: which of them are read as others. The library that
//! reads texts by it takes any table for a sound one, so it is looked through first.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;

/// What a normaliser with such a table is called.
const KIND: &str = "Precompiled";
/// Bytes of a node.
const NODE: usize = 4;

/// Whether every table of a `tokenizer.json` is sound. What else may be wrong with the file is not looked at.
///
/// # Errors
/// Which part of a table is not.
pub(super) fn check(tokenizer: &[u8]) -> Result<(), String> {
    if !tokenizer.windows(KIND.len()).any(|part| part == KIND.as_bytes()) {
        return Ok(());
    }
    let Ok(tokenizer) = serde_json::from_slice::<Value>(tokenizer) else { return Ok(()) };
    tokenizer.get("normalizer").map_or(Ok(()), of_normalizer)
}

fn of_normalizer(normalizer: &Value) -> Result<(), String> {
    if normalizer.get("type").and_then(Value::as_str) == Some(KIND) {
        let table = normalizer.get("precompiled_charsmap").and_then(Value::as_str).unwrap_or_default();
        let table = BASE64_STANDARD.decode(table).map_err(|error| format!("precompiled_charsmap: {error}"))?;
        return sound(&table).map_err(|reason| format!("precompiled_charsmap {reason}"));
    }
    normalizer.get("normalizers").and_then(Value::as_array).into_iter().flatten().try_for_each(of_normalizer)
}

/// Whether a table is sound: a trie as a double array (of Yata's Darts-clone), its length in bytes before it, and after
/// it the texts that its leaves point at. No text may lead out of either.
///
/// # Errors
/// What is wrong with it.
pub(super) fn sound(table: &[u8]) -> Result<(), &'static str> {
    const CUT: &str = "is cut off";
    const ASTRAY: &str = "leads out of itself";
    let (length, rest) = table.split_first_chunk::<NODE>().ok_or(CUT)?;
    let (nodes, texts) = rest.split_at_checked(u32::from_le_bytes(*length) as usize).ok_or(CUT)?;
    let texts = std::str::from_utf8(texts).map_err(|_| "has texts that are not UTF-8")?;
    let (nodes, []) = nodes.as_chunks::<NODE>() else { return Err(CUT) };
    let node = |place: u32| nodes.get(place as usize).map(|node| u32::from_le_bytes(*node)).ok_or(ASTRAY);
    let below = |place: u32, node: u32| place ^ ((node >> 10) << ((node & (1 << 9)) >> 6));
    let mut seen = vec![false; nodes.len()];
    let mut left = vec![(0, below(0, node(0)?))];
    while let Some((place, base)) = left.pop() {
        if seen.get_mut(place as usize).is_none_or(|seen| std::mem::replace(seen, true)) {
            continue;
        }
        // A byte of 0 ends a text.
        for byte in 1..=u32::from(u8::MAX) {
            let next = node(base ^ byte)?;
            if next & ((1 << 31) | 0xff) != byte {
                continue;
            }
            let after = below(base ^ byte, next);
            if (next >> 8) & 1 == 1 {
                let text = (node(after)? & !(1 << 31)) as usize;
                if !texts.is_char_boundary(text) {
                    return Err("points at no text");
                }
            }
            left.push((base ^ byte, after));
        }
    }
    Ok(())
}
