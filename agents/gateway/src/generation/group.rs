//! The texts that a decoder computes side by side.

use std::iter;

use tokio::sync::mpsc;

use super::Piece;
use super::decoder::{Decoder, Turn};
use super::language::Language;
use super::sequence::{Sequence, Task};
use crate::backend::error::{BackendError, EmbedError, failed};

/// Most tokens of prompts between two tokens of the texts under way, unless a single prompt has more: new texts delay
/// others only so long.
const PROMPT_TOKENS: usize = 512;

/// A text and who waits for it.
pub(super) struct Waiting {
    pub(super) task: Task,
    pub(super) pieces: mpsc::Sender<Result<Piece, BackendError>>,
}

/// Texts in the order in which they joined.
pub(super) struct Group<'a, T> {
    language: &'a dyn Language,
    members: Vec<Member<'a, T>>,
}

struct Member<'a, T> {
    text: T,
    sequence: Sequence<'a>,
    pieces: mpsc::Sender<Result<Piece, BackendError>>,
    ended: bool,
}

impl<'a, T> Group<'a, T> {
    pub(super) const fn new(language: &'a dyn Language) -> Self {
        Self { language, members: Vec::new() }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    pub(super) const fn len(&self) -> usize {
        self.members.len()
    }

    /// Takes a text in, unless nobody waits for it any more.
    pub(super) fn join(&mut self, decoder: &mut impl Decoder<Text = T>, Waiting { task, pieces }: Waiting) {
        if pieces.is_closed() {
            return;
        }
        match decoder.begin() {
            Ok(text) => {
                let sequence = Sequence::new(self.language, task);
                self.members.push(Member { text, sequence, pieces, ended: false });
            }
            Err(error) => tell(&pieces, Err(failed("model", &*error))),
        }
    }

    /// A token for every text, but for those whose prompt has to wait its turn. Texts that are at their end leave, and
    /// those that nobody waits for.
    pub(super) fn advance(&mut self, decoder: &mut impl Decoder<Text = T>) {
        self.members.retain(|member| !member.pieces.is_closed());
        let mut prompts = 0usize;
        let (mut turns, mut waiting) = (Vec::new(), Vec::new());
        for Member { text, sequence, pieces, ended } in &mut self.members {
            let due = sequence.due();
            if due > 1 {
                if prompts > 0 && prompts.saturating_add(due) > PROMPT_TOKENS {
                    continue;
                }
                prompts = prompts.saturating_add(due);
            }
            turns.push(Turn { text, step: sequence.step() });
            waiting.push((sequence, pieces, ended));
        }
        if turns.is_empty() {
            return;
        }
        let chosen = decoder.advance(&mut turns);
        let missing = || Err(EmbedError::from("it gave fewer tokens than texts"));
        for ((sequence, pieces, ended), chosen) in
            waiting.into_iter().zip(chosen.into_iter().chain(iter::repeat_with(missing)))
        {
            let piece = chosen.map_err(|error| failed("model", &*error)).and_then(|token| sequence.take(token));
            *ended = !matches!(&piece, Ok(Piece { finish: None, .. }));
            tell(pieces, piece);
        }
        self.members.retain(|member| !member.ended);
    }
}

/// There is room for every piece; a client who left is noticed before the next token.
fn tell(pieces: &mpsc::Sender<Result<Piece, BackendError>>, piece: Result<Piece, BackendError>) {
    let _ = pieces.try_send(piece);
}
