//! Pieces of the King James text, which no model here is calibrated on.

use std::io::Read;

use anyhow::{Result, ensure};
use flate2::read::GzDecoder;

use crate::folder::TextTokenizer;

const KING_JAMES: &[u8] = include_bytes!("../../../../examples/kjv-1100k.txt.gz");
/// Pieces, from all over the text.
const PIECES: usize = 36;
/// Tokens after which a piece ends with its verse.
const LEAST: usize = 116;

/// Token numbers of the first pieces: 36 have more than 4,000 tokens.
pub(super) fn passages(tokenizer: &TextTokenizer, pieces: usize) -> Result<Vec<Vec<u32>>> {
    let mut text = String::new();
    GzDecoder::new(KING_JAMES).read_to_string(&mut text)?;
    let verses: Vec<&str> = text.lines().collect();
    let piece = |at: usize| {
        let mut piece = String::new();
        for verse in verses.iter().skip(at * verses.len() / PIECES) {
            piece.push_str(if piece.is_empty() { "" } else { " " });
            piece.push_str(verse);
            let tokens = tokenizer.encode(&piece)?;
            if tokens.len() >= LEAST {
                return Ok(tokens);
            }
        }
        Ok(tokenizer.encode(&piece)?)
    };
    let pieces = (0..pieces.min(PIECES)).map(piece).collect::<Result<Vec<_>>>()?;
    ensure!(!pieces.is_empty(), "no piece of text was asked for");
    Ok(pieces)
}

/// All of them.
pub(super) fn all(tokenizer: &TextTokenizer) -> Result<Vec<Vec<u32>>> {
    passages(tokenizer, PIECES)
}
