//! One text on its way: what to compute next, and what its token means. It does not matter where the stages run.

use super::language::Language;
use super::writer::Writer;
use super::{Ask, Finish, Piece, Prompt, SamplingParams};
use crate::backend::error::{BackendError, EmbedError, failed};
use crate::backend::model::{Model, known};

/// What a text needs of a model, checked.
#[derive(Clone, PartialEq, Debug)]
pub struct Task {
    /// Token ids of the prompt: at least one, all of the model's, and room for one more in the context.
    pub prompt: Vec<u32>,
    /// Most tokens to add, at least 1; prompt and these are within the context.
    pub most: u32,
    /// How tokens are chosen.
    pub choice: SamplingParams,
    /// Stop sequences.
    pub stops: Vec<String>,
}

impl Task {
    /// Tokens of the prompt.
    pub fn prompt_tokens(&self) -> u32 {
        u32::try_from(self.prompt.len()).unwrap_or(u32::MAX)
    }
}

/// The texts of a request. One that is refused refuses them all.
///
/// # Errors
/// [`BackendError`] that counts prompts from 0.
pub fn tasks(model: &Model, language: &dyn Language, ask: Ask) -> Result<Vec<Task>, BackendError> {
    let Ask { prompts, most, sampling, stops } = ask;
    let task = |(index, prompt): (usize, Prompt)| {
        let ids = match prompt {
            Prompt::Tokens(ids) => Ok(ids),
            Prompt::Text(_) | Prompt::Chat(_) => language.encode(&prompt),
        };
        let prompt = known(model, index, ids)?;
        let tokens = u32::try_from(prompt.len()).unwrap_or(u32::MAX);
        let room = model.context.saturating_sub(tokens);
        // Clients ask for as many as any model may give: what there is no room for is not given.
        let most = most.min(room);
        if most == 0 {
            return Err(BackendError::NoRoom { index, tokens: prompt.len(), wanted: 1, context: model.context });
        }
        Ok(Task { prompt, most, choice: sampling.of_a_text(), stops: stops.clone() })
    };
    prompts.into_iter().enumerate().map(task).collect()
}

/// Tokens to compute, the last of which chooses the next.
#[derive(Clone, PartialEq, Debug)]
pub struct Step {
    /// Those not computed yet: the prompt, later the last token chosen.
    pub tokens: Vec<u32>,
    /// Position of the first of them in the text, from 0.
    pub position: u32,
    /// How the token after the last of them is chosen.
    pub choice: SamplingParams,
}

/// A text on its way.
pub struct Sequence<'a> {
    language: &'a dyn Language,
    writer: Writer<'a>,
    choice: SamplingParams,
    next: Vec<u32>,
    position: u32,
    left: u32,
}

impl<'a> Sequence<'a> {
    /// The beginning of a text.
    pub fn new(language: &'a dyn Language, task: Task) -> Self {
        let writer = Writer::new(language.spell(&task.prompt), task.stops);
        Self { language, writer, choice: task.choice, next: task.prompt, position: 0, left: task.most }
    }

    /// What to compute next; asked for once for each token.
    pub fn step(&mut self) -> Step {
        let tokens = std::mem::take(&mut self.next);
        let position = self.position;
        self.position = self.position.saturating_add(u32::try_from(tokens.len()).unwrap_or(u32::MAX));
        Step { tokens, position, choice: self.choice }
    }

    /// Tokens that the next step computes.
    pub fn due(&self) -> usize {
        self.next.len()
    }

    /// Takes the token that was chosen. Nothing follows a piece with a reason to finish.
    ///
    /// # Errors
    /// [`BackendError::Failed`] if the tokenizer cannot decode it.
    pub fn take(&mut self, token: u32) -> Result<Piece, BackendError> {
        self.left = self.left.saturating_sub(1);
        let (text, finish) = self.read(token).map_err(|error| failed("tokenizer", &*error))?;
        self.next = vec![token];
        Ok(Piece { token, text, finish })
    }

    fn read(&mut self, token: u32) -> Result<(String, Option<Finish>), EmbedError> {
        if self.language.ends().contains(&token) {
            return Ok((self.writer.end()?.0, Some(Finish::Stop)));
        }
        let (mut text, stopped) = self.writer.push(token)?;
        if stopped {
            return Ok((text, Some(Finish::Stop)));
        }
        if self.left > 0 {
            return Ok((text, None));
        }
        let (rest, stopped) = self.writer.end()?;
        text.push_str(&rest);
        Ok((text, Some(if stopped { Finish::Stop } else { Finish::Length })))
    }
}
