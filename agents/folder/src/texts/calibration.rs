//! What a model is calibrated on where nothing is named: sentences of many kinds, longer texts, and conversations in
//! the model's own form.

use super::{TextsError, encode};
use crate::{ChatTemplate, ModelFolder};

/// Sentences, one a line.
const SENTENCES: &str = include_str!("../../../../examples/calibration.txt");
/// Longer texts, one a line.
const PASSAGES: &str = include_str!("../../../../examples/passages.txt");
/// Sentences of a conversation, which user and model say in turn, and how many conversations there are.
const TURNS: usize = 3;
const CONVERSATIONS: usize = 6;

/// Our sentences, passages, as much of each as the context takes, and conversations, where the model has a template.
///
/// # Errors
/// A text that the tokenizer cannot read.
pub(super) fn ours(folder: &ModelFolder) -> Result<Vec<Vec<u32>>, TextsError> {
    let tokenizer = folder.tokenizer();
    let mut known = encode(folder, SENTENCES)?;
    let pairs = folder.pairs()?;
    for (passage, sentence) in PASSAGES.lines().zip(SENTENCES.lines().cycle()) {
        known.push(match &pairs {
            Some(pairs) => pairs.encode(sentence, passage)?,
            None => tokenizer.encode_within(passage)?,
        });
    }
    // A template that cannot be read, or refuses this, is no reason not to serve what needs none.
    if let Ok(Some(template)) = folder.chat_template() {
        let lines: Vec<&str> = SENTENCES.lines().collect();
        let conversations = lines.chunks_exact(TURNS).take(CONVERSATIONS).filter_map(|turns| chat(&template, turns));
        known.extend(conversations.filter_map(|text| tokenizer.encode_bare(&text).ok()));
    }
    Ok(known)
}

/// A conversation in the model's form, if it has one for it.
fn chat(template: &ChatTemplate, turns: &[&str]) -> Option<String> {
    template.render(["user", "assistant"].into_iter().cycle().zip(turns.iter().copied())).ok()
}
