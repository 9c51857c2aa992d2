//! Texts to calibrate a folder's model on, and others to measure it on.
//!
//! | module | what lives there |
//! |---|---|
//! | here | those of a file, of the folder's own, or of ours |
//! | `calibration` | those of ours to calibrate on |
//! | `passages` | pieces of a long text to measure on |

mod calibration;
mod passages;

use std::path::Path;

use tensorlink_model::Output;
use thiserror::Error;

pub use passages::{PIECES, passages};

use super::{FolderError, ModelFolder, TokenizerError, read_text};
use calibration::ours;

/// Texts to measure on where the user names none.
pub const SENTENCES: &str = include_str!("../../../../examples/sentences.txt");
/// Of the texts that a folder brings along, every so many is held out.
const HELD_OUT: usize = 4;
/// Tokens of short texts to measure a model on before it is served, and pieces of a long text, of some 120 tokens each,
/// if it goes on with texts: some ten seconds for 135 million weights on one core.
const ENOUGH: usize = 600;
const PASSAGES: usize = 8;

/// Why there are no texts to calibrate a model on, or to measure it on.
#[derive(Debug, Error)]
pub enum TextsError {
    /// A file of the folder, or the file of texts, cannot be used.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The tokenizer refuses one of our texts.
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
    /// The tokenizer refuses a line of a file.
    #[error("line {line}")]
    Line {
        /// Its number, from 1.
        line: u32,
        /// Why.
        source: TokenizerError,
    },
    /// The tokenizer refuses a text that the folder brings along.
    #[error("calibration.json")]
    Own(#[source] TokenizerError),
    /// A file of empty lines.
    #[error("no text: give a file with one text a line")]
    None,
    /// The folder brings no text along, and says that it does.
    #[error("calibration.json holds no text: name some with --calibration")]
    NoneKnown,
    /// The folder brings too few texts along for one to be held out.
    #[error("calibration.json holds fewer than {HELD_OUT} texts: name some with --texts")]
    NoneHeldOut,
    /// The long text of this program cannot be unpacked: the program was damaged.
    #[error("the King James text of this program cannot be unpacked: install it again")]
    Passages(#[source] std::io::Error),
}

/// Token numbers of the texts to measure a folder's model on: those of a file, else every fourth of the folder's own,
/// on which it is not calibrated, else ours.
///
/// # Errors
/// As [`encode`], a file that cannot be read, and a folder that brings too few texts along.
pub fn measured_on(folder: &ModelFolder, file: Option<&Path>) -> Result<Vec<Vec<u32>>, TextsError> {
    let (None, Some(own)) = (file, own(folder)?) else {
        return encode(folder, &file.map_or_else(|| Ok(SENTENCES.to_owned()), read_text)?);
    };
    let [_, unseen] = parted(own);
    if unseen.is_empty() { Err(TextsError::NoneHeldOut) } else { Ok(unseen) }
}

/// Token numbers of the texts to calibrate a folder's model on: those of a file, else the folder's own but every
/// fourth, else ours.
///
/// # Errors
/// As [`encode`], and a file that cannot be read.
pub fn known(folder: &ModelFolder, file: Option<&Path>) -> Result<Vec<Vec<u32>>, TextsError> {
    match (file, own(folder)?) {
        (Some(file), _) => encode(folder, &read_text(file)?),
        (None, None) => ours(folder),
        (None, Some(own)) => {
            let [known, _] = parted(own);
            if known.is_empty() { Err(TextsError::NoneKnown) } else { Ok(known) }
        }
    }
}

/// Token numbers of texts to measure a folder's model on that calibration on `known` texts never saw: about 600 tokens
/// of every fourth of the folder's own, else of those of ours that its tokenizer reads, and for a decoder passages of a
/// text that goes on. May be none.
///
/// # Errors
/// Texts of the folder's own that it cannot read.
pub fn held_out(folder: &ModelFolder, known: &[Vec<u32>]) -> Result<Vec<Vec<u32>>, TextsError> {
    let [_, mut candidates] = parted(own(folder)?.unwrap_or_default());
    let mut longer = Vec::new();
    if candidates.is_empty() {
        // A tokenizer of other characters than ours refuses some.
        let sentences: Vec<&str> = SENTENCES.lines().collect();
        candidates = read(folder, &sentences)?.into_iter().filter_map(Result::ok).collect();
        if matches!(folder.architecture().output, Output::Logits { .. }) {
            longer = passages(folder.tokenizer(), PASSAGES).unwrap_or_default();
        }
    }
    let mut tokens = 0;
    let enough = |text: &Vec<u32>| {
        let more = tokens < ENOUGH;
        tokens += text.len();
        more
    };
    // What follows a text's only token is not known.
    let unseen = |text: &Vec<u32>| text.len() > 1 && !known.contains(text);
    let candidates = candidates.into_iter().filter(unseen).take_while(enough);
    Ok(candidates.chain(longer.into_iter().filter(unseen)).collect())
}

/// Texts to calibrate on, and every fourth, which is held out.
fn parted(texts: Vec<Vec<u32>>) -> [Vec<Vec<u32>>; 2] {
    let (mut known, mut unseen) = (Vec::new(), Vec::new());
    for (number, text) in (1..).zip(texts) {
        if number % HELD_OUT == 0 { unseen.push(text) } else { known.push(text) }
    }
    [known, unseen]
}

/// Token numbers of the texts that a folder brings along.
fn own(folder: &ModelFolder) -> Result<Option<Vec<Vec<u32>>>, TextsError> {
    let Some(own) = folder.calibration()? else { return Ok(None) };
    let own: Vec<&str> = own.iter().map(String::as_str).collect();
    let encoded = read(folder, &own)?.into_iter().collect::<Result<Vec<_>, _>>();
    encoded.map(Some).map_err(TextsError::Own)
}

/// Token numbers of texts, one a line, each cut to the context.
///
/// # Errors
/// A line that the tokenizer refuses; no line.
pub fn encode(folder: &ModelFolder, texts: &str) -> Result<Vec<Vec<u32>>, TextsError> {
    let lines = texts.lines().zip(1u32..).filter(|(line, _)| !line.trim().is_empty());
    let (lines, numbers): (Vec<&str>, Vec<u32>) = lines.unzip();
    if lines.is_empty() {
        return Err(TextsError::None);
    }
    let encoded = read(folder, &lines)?;
    let each = encoded.len() / lines.len();
    let number = |at: usize| numbers.get(at / each).copied().unwrap_or_default();
    let numbered = encoded.into_iter().enumerate();
    numbered.map(|(at, text)| text.map_err(|source| TextsError::Line { line: number(at), source })).collect()
}

/// Token numbers of each text, cut to the context. Where the model scores pairs, each is a query of two documents: the
/// text after it, which will not answer it, and both together, which will.
fn read(folder: &ModelFolder, texts: &[&str]) -> Result<Vec<Result<Vec<u32>, TokenizerError>>, FolderError> {
    let Some(pairs) = folder.pairs()? else {
        return Ok(texts.iter().map(|text| folder.tokenizer().encode_within(text)).collect());
    };
    let after = texts.iter().cycle().skip(1);
    let both =
        |(query, other): (&&str, &&str)| [pairs.encode(query, other), pairs.encode(query, &format!("{query} {other}"))];
    Ok(texts.iter().zip(after).flat_map(both).collect())
}

#[cfg(test)]
mod tests {
    use tensorlink_model::Family;
    use tensorlink_model::fixture::Folder;

    use super::*;
    use crate::fixture::{trained, written};

    #[test]
    fn what_is_held_out_is_not_known() {
        let folder = written(&Folder::new(Family::Llama));
        let folder = ModelFolder::open(folder.path()).unwrap();
        let ours = held_out(&folder, &[]).unwrap();
        assert!(!ours.is_empty());
        let (first, rest) = ours.split_first().unwrap();
        assert!(!held_out(&folder, std::slice::from_ref(first)).unwrap().contains(first) && !rest.is_empty());
        let tokens: usize = ours.iter().map(Vec::len).sum();
        let of_passages = PASSAGES * folder.architecture().context as usize;
        assert!(tokens < ENOUGH + 32 + of_passages, "{tokens}");
    }

    #[test]
    fn every_fourth_text_of_a_folders_own_is_held_out() {
        let (_parent, out) = trained(&["a b\n", "ab\n", "b a\n", "ba\n", "a a\n"]);
        let folder = ModelFolder::open(&out).unwrap();
        let encode = |text: &str| folder.tokenizer().encode(text).unwrap();
        let known = known(&folder, None).unwrap();
        assert_eq!(known, ["a b\n", "ab\n", "b a\n", "a a\n"].map(encode));
        assert_eq!(held_out(&folder, &known).unwrap(), ["ba\n"].map(encode));
        // A file is calibrated on in their place: the folder's own are as unseen as before.
        assert_eq!(held_out(&folder, &[encode("ab")]).unwrap(), ["ba\n"].map(encode));
    }

    #[test]
    fn a_model_is_measured_on_the_texts_that_it_brings_along() {
        let (parent, out) = trained(&["a b\n", "ab\n", "b a\n", "ba\n", "a a\n"]);
        let folder = ModelFolder::open(&out).unwrap();
        let encode = |text: &str| folder.tokenizer().encode(text).unwrap();
        assert_eq!(measured_on(&folder, None).unwrap(), ["ba\n"].map(encode));
        let file = parent.path().join("texts");
        std::fs::write(&file, "abba\n").unwrap();
        assert_eq!(measured_on(&folder, Some(&file)).unwrap(), ["abba"].map(encode));
        let (_parent, few) = trained(&["a b\n"]);
        let error = measured_on(&ModelFolder::open(&few).unwrap(), None).unwrap_err().to_string();
        assert!(error.contains("fewer than 4 texts: name some with --texts"), "{error}");
    }

    #[test]
    fn texts_are_cut_to_a_context_that_is_shorter_than_some_of_ours() {
        let model = Folder::new(Family::Llama);
        let context = 10;
        assert_eq!(model.config["max_position_embeddings"], context);
        let folder = written(&model);
        let folder = ModelFolder::open(folder.path()).unwrap();
        let line = ["the cat sat"; 5].join(" ");
        for texts in [known(&folder, None).unwrap(), encode(&folder, &line).unwrap()] {
            assert_eq!(texts.iter().map(Vec::len).max(), Some(context));
        }
        // Passages are measured on, cut as well.
        let held_out = held_out(&folder, &[]).unwrap();
        assert!(held_out.len() >= PASSAGES && held_out.iter().all(|text| text.len() <= context));
    }

    #[test]
    fn a_tokenizer_that_reads_none_of_ours_has_nothing_held_out() {
        let (_parent, out) = trained(&["a b\n"]);
        let folder = ModelFolder::open(&out).unwrap();
        assert!(held_out(&folder, &known(&folder, None).unwrap()).unwrap().is_empty());
    }
}
