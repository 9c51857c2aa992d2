//! A decoder made up for tests: tokens are bytes, and what it says follows from its prompt.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex};

use tensorlink_gateway::backend::{EmbedError, Makes, Model, TokenizeError};
use tensorlink_gateway::generation::batch::Capacity;
use tensorlink_gateway::generation::decoder::{Decoder, Turn};
use tensorlink_gateway::generation::language::{Language, Spell};
use tensorlink_gateway::generation::{Conversation, Prompt, SamplingParams};
use tensorlink_gateway::local::Local;

pub(crate) const SPEAKER: &str = "speaker";
pub(crate) const CONTEXT: u32 = 64;
/// The token that ends a text.
const END: u32 = 256;

/// The made-up model: bytes as tokens, and one that ends a text.
pub(crate) fn shape() -> Model {
    Model { id: SPEAKER.into(), created: 1_700_000_000, context: CONTEXT, vocabulary: 257, makes: Makes::Text }
}

/// A backend of the made-up model, and of the gateway's other one.
pub(crate) fn speaking(speaker: Speaker, capacity: Capacity) -> Arc<Local> {
    let mut local = Local::new();
    local.add_decoder(shape(), Arc::new(Bytes), speaker, capacity).unwrap();
    local.add(crate::served::model(crate::served::MODEL), crate::served::Words::default(), 64).unwrap();
    Arc::new(local)
}

/// Does what the end of its prompt says, after the last `=` if there is one:
///
/// | prompt | said |
/// |---|---|
/// | `say X` | X, then the end |
/// | `hex X` | the bytes X, then the end |
/// | `repeat X` | X again and again |
/// | `fail X` | X, then it fails |
/// | `panic X` | X, then it panics |
/// | `choice` | how its tokens are chosen, then the end |
#[derive(Clone, Default)]
pub(crate) struct Speaker {
    pub(crate) gate: Option<Arc<Gate>>,
}

/// Lets batches pass one by one; remembers them by the last words of their texts' prompts.
#[derive(Default)]
pub(crate) struct Gate {
    state: Mutex<(usize, Vec<Vec<String>>)>,
    changed: Condvar,
}

impl Gate {
    pub(crate) fn let_pass(&self, batches: usize) {
        self.state.lock().unwrap().0 += batches;
        self.changed.notify_all();
    }

    pub(crate) fn reached(&self) -> Vec<Vec<String>> {
        self.state.lock().unwrap().1.clone()
    }

    fn pass(&self, batch: Vec<String>) {
        let mut state = self.state.lock().unwrap();
        state.1.push(batch);
        while state.0 == 0 {
            state = self.changed.wait(state).unwrap();
        }
        state.0 -= 1;
    }
}

/// A text under way.
#[derive(Default)]
pub(crate) struct HfTokenizer {
    prompt: Vec<u8>,
    left: VecDeque<u8>,
}

impl HfTokenizer {
    /// The prompt's command and its operand.
    fn command(&self) -> (String, String) {
        let prompt = String::from_utf8_lossy(&self.prompt);
        let last = prompt.rsplit('=').next().unwrap_or_default();
        let (command, operand) = last.split_once(' ').unwrap_or((last, ""));
        (command.to_owned(), operand.to_owned())
    }

    fn next(&mut self) -> Result<u32, EmbedError> {
        let (command, operand) = self.command();
        if let Some(byte) = self.left.pop_front() {
            return Ok(byte.into());
        }
        match command.as_str() {
            "repeat" => self.left.extend(operand.bytes()),
            "fail" => return Err("the secret reason".into()),
            "panic" => panic!("as the test asked"),
            _ => return Ok(END),
        }
        self.next()
    }

    fn begin(&mut self, choice: SamplingParams) {
        let (command, operand) = self.command();
        self.left = match command.as_str() {
            "hex" => hex(&operand).into(),
            "choice" => {
                let SamplingParams { temperature, top_k, top_p, min_p, repetition_penalty, seed } = choice;
                format!("[{temperature},{top_k},{top_p},{min_p},{repetition_penalty},{seed}]").into_bytes().into()
            }
            _ => operand.into_bytes().into(),
        };
    }
}

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u32> = text.chars().map(|digit| digit.to_digit(16).unwrap()).collect();
    digits.chunks(2).map(|pair| u8::try_from(pair[0] * 16 + pair[1]).unwrap()).collect()
}

impl Decoder for Speaker {
    type Text = HfTokenizer;

    fn begin(&mut self) -> Result<HfTokenizer, EmbedError> {
        Ok(HfTokenizer::default())
    }

    fn advance(&mut self, batch: &mut [Turn<'_, HfTokenizer>]) -> Vec<Result<u32, EmbedError>> {
        for Turn { text, step } in &mut *batch {
            if text.prompt.is_empty() {
                text.prompt = step.tokens.iter().map(|token| u8::try_from(*token).unwrap()).collect();
                text.begin(step.choice);
            } else {
                assert_eq!(step.tokens.len(), 1);
                assert!(step.position as usize >= text.prompt.len());
            }
        }
        if let Some(gate) = &self.gate {
            gate.pass(batch.iter().map(|turn| turn.text.command().1).collect());
        }
        batch.iter_mut().map(|turn| turn.text.next()).collect()
    }
}

/// Bytes as tokens.
pub(crate) struct Bytes;

impl Language for Bytes {
    fn encode(&self, prompt: &Prompt) -> Result<Vec<u32>, TokenizeError> {
        match prompt {
            Prompt::Text(text) if text == "!refuse" => Err(TokenizeError::Refused("send another text".into())),
            Prompt::Text(text) => Ok(text.bytes().map(u32::from).collect()),
            Prompt::Tokens(ids) => Ok(ids.clone()),
            Prompt::Chat(Conversation { messages, .. }) => {
                let lines: Vec<String> =
                    messages.iter().map(|said| format!("{}={}", said.role, said.content)).collect();
                Ok(lines.join(";").bytes().map(u32::from).collect())
            }
        }
    }

    fn ends(&self) -> &[u32] {
        &[END]
    }

    fn spell(&self, _: &[u32]) -> Box<dyn Spell + Send + '_> {
        Box::new(Characters::default())
    }
}

#[derive(Default)]
struct Characters(Vec<u8>);

impl Spell for Characters {
    fn push(&mut self, token: u32) -> Result<String, EmbedError> {
        self.0.push(u8::try_from(token)?);
        match std::str::from_utf8(&self.0) {
            Ok(text) => {
                let text = text.to_owned();
                self.0.clear();
                Ok(text)
            }
            Err(_) => Ok(String::new()),
        }
    }

    fn rest(&mut self) -> Result<String, EmbedError> {
        Ok(String::from_utf8_lossy(&std::mem::take(&mut self.0)).into_owned())
    }
}
