//! Pieces of the King James text, which no model here is calibrated on.

use std::io::Read;

use flate2::read::GzDecoder;

use super::TextsError;
use crate::TextTokenizer;

const KING_JAMES: &[u8] = include_bytes!("../../../../examples/kjv-1100k.txt.gz");
/// Pieces, from all over the text: together they have more than 4,000 tokens.
pub const PIECES: usize = 36;
/// Tokens after which a piece ends with its verse.
const LEAST: usize = 116;

/// Token numbers of so many pieces, at most [`PIECES`], from all over the text, each cut to the context.
///
/// # Errors
/// A piece that the tokenizer refuses.
pub fn passages(tokenizer: &TextTokenizer, pieces: usize) -> Result<Vec<Vec<u32>>, TextsError> {
    let mut text = String::new();
    GzDecoder::new(KING_JAMES).read_to_string(&mut text).map_err(TextsError::Passages)?;
    let verses: Vec<&str> = text.lines().collect();
    let pieces = pieces.clamp(1, PIECES);
    let enough = LEAST.min(tokenizer.context() as usize);
    let piece = |number: usize| {
        let mut piece = String::new();
        // One of `PIECES` places, so that fewer pieces are some of the same.
        let place = number * PIECES / pieces;
        for verse in verses.iter().skip(place * verses.len() / PIECES) {
            piece.push_str(if piece.is_empty() { "" } else { " " });
            piece.push_str(verse);
            let tokens = tokenizer.encode_within(&piece)?;
            if tokens.len() >= enough {
                return Ok(tokens);
            }
        }
        Ok(tokenizer.encode_within(&piece)?)
    };
    (0..pieces).map(piece).collect()
}
