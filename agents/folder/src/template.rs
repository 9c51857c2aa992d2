//! Chat templates: the Jinja by which a model folder says how its conversations look.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};

use minijinja::syntax::SyntaxConfig;
use minijinja::{AutoEscape, Environment, Error, ErrorKind, Value, context};
use serde::Deserialize;
use thiserror::Error as ThisError;

mod json;
mod methods;
mod objects;
mod percent;
mod python;
mod rewrite;
mod scan;

use super::small::Small;
use super::{FolderError, MAX_JSON, ModelFolder};

const TEMPLATE: &str = "chat_template.jinja";
const CONFIG: &str = "tokenizer_config.json";
/// Where a GGUF file has it.
const KEY: &str = "tokenizer.chat_template";
/// Longest template, bytes.
const MAX_TEMPLATE: u64 = 1 << 20;
/// Most instructions of a rendering, far above what any conversation within a context needs.
const FUEL: u64 = 10_000_000;
/// Longest conversation in a model's form, bytes.
const MAX_RENDERED: usize = 16 << 20;

/// Why a template, or a conversation, was refused.
#[derive(Clone, PartialEq, Eq, Debug, ThisError)]
pub enum TemplateError {
    /// The file that holds it cannot be read.
    #[error("{CONFIG} cannot be read ({0}); download it again")]
    Config(String),
    /// Longer than any template.
    #[error("the chat template in {file} has more than {MAX_TEMPLATE} bytes; download it again")]
    TooLong {
        /// The file.
        file: &'static str,
    },
    /// Not Jinja as we know it.
    #[error("the chat template in {file} cannot be read ({reason}); correct or remove it")]
    Syntax {
        /// The file.
        file: &'static str,
        /// Why, with the line.
        reason: String,
    },
    /// The template refuses a conversation, in its own words.
    #[error("the model's chat template refuses the conversation: {0}")]
    Refused(String),
    /// It cannot be carried out.
    #[error("the model's chat template ({file}) fails over the conversation: {reason}")]
    Failed {
        /// The file.
        file: &'static str,
        /// Why, with the line.
        reason: String,
    },
}

impl TemplateError {
    /// The same, of a template that stands elsewhere.
    fn at(self, place: &'static str) -> Self {
        match self {
            Self::TooLong { .. } => Self::TooLong { file: place },
            Self::Syntax { reason, .. } => Self::Syntax { file: place, reason },
            Self::Failed { reason, .. } => Self::Failed { file: place, reason },
            Self::Config(_) | Self::Refused(_) => self,
        }
    }
}

/// What a request adds to what templates see, by name. Tables within keep the order in which they were written: a
/// template may write them out.
pub type Variables = BTreeMap<String, Value>;

/// A chat template.
///
/// It sees the conversation, the names of two tokens and the clock; it can reach no file and no network. Its steps
/// and what it writes are bounded; what it holds in variables meanwhile, and how deep that nests, is not: it can take
/// all memory, or the stack, and the process with it. So take templates from whom you take weights.
#[derive(Clone, Debug)]
pub struct ChatTemplate {
    environment: Environment<'static>,
    file: &'static str,
    beginning: String,
    end: String,
}

/// What of `tokenizer_config.json` matters here.
#[derive(Deserialize, Default)]
struct Config {
    chat_template: Option<Templates>,
    bos_token: Option<Special>,
    eos_token: Option<Special>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Templates {
    One(String),
    /// For chats, tools, retrieval …
    Named(Vec<Named>),
}

#[derive(Deserialize)]
struct Named {
    name: String,
    template: String,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Special {
    Text(String),
    Added { content: String },
}

impl Special {
    fn text(self) -> String {
        match self {
            Self::Text(text) | Self::Added { content: text } => text,
        }
    }
}

impl ModelFolder {
    /// The chat template; none if the model was not made to chat.
    ///
    /// # Errors
    /// [`FolderError::Template`], or a file that cannot be read.
    pub fn chat_template(&self) -> Result<Option<ChatTemplate>, FolderError> {
        ChatTemplate::find(&self.small)
    }
}

impl ChatTemplate {
    /// The template among the files of a model.
    pub(super) fn find(small: &Small) -> Result<Option<Self>, FolderError> {
        let config = small.optional(CONFIG, MAX_JSON)?;
        let own = small.optional(TEMPLATE, MAX_TEMPLATE)?;
        let read = Self::read(config.as_deref(), own.as_deref());
        Ok(match small {
            Small::Lying { .. } => read?,
            Small::Made { .. } => read.map_err(|error| error.at(KEY))?.map(|template| Self { file: KEY, ..template }),
        })
    }

    /// Reads the template of `tokenizer_config.json`, or of a file of its own, which comes first, as in Hugging
    /// Face's loader.
    ///
    /// # Errors
    /// [`TemplateError`].
    pub fn read(config: Option<&[u8]>, own: Option<&[u8]>) -> Result<Option<Self>, TemplateError> {
        let unread = |error: serde_json::Error| TemplateError::Config(error.to_string());
        let config: Config = config.map(serde_json::from_slice).transpose().map_err(unread)?.unwrap_or_default();
        let (file, source) = match (own, config.chat_template) {
            (Some(own), _) => {
                let text = std::str::from_utf8(own);
                let reason =
                    |error: std::str::Utf8Error| TemplateError::Syntax { file: TEMPLATE, reason: error.to_string() };
                (TEMPLATE, text.map_err(reason)?.to_owned())
            }
            (None, Some(Templates::One(template))) => (CONFIG, template),
            (None, Some(Templates::Named(mut all))) => {
                let place = all.iter().position(|named| named.name == "default").or((all.len() == 1).then_some(0));
                match place {
                    Some(place) => (CONFIG, all.swap_remove(place).template),
                    None => return Ok(None),
                }
            }
            (None, None) => return Ok(None),
        };
        if source.len() as u64 > MAX_TEMPLATE {
            return Err(TemplateError::TooLong { file });
        }
        let mut environment = environment();
        let added = environment.add_template_owned(TEMPLATE, rewrite::rewritten(&source));
        added.map_err(|error| TemplateError::Syntax { file, reason: said(&error) })?;
        let text = |special: Option<Special>| special.map(Special::text).unwrap_or_default();
        Ok(Some(Self { environment, file, beginning: text(config.bos_token), end: text(config.eos_token) }))
    }

    /// A conversation in the model's form, up to where its answer begins. Messages are roles, each with what it said.
    ///
    /// # Errors
    /// [`TemplateError::Refused`], [`TemplateError::Failed`].
    pub fn render<'a>(&self, messages: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<String, TemplateError> {
        self.render_with(messages, &Variables::new())
    }

    /// The same with more variables, by name; what templates always know is not replaced by them.
    ///
    /// # Errors
    /// [`TemplateError::Refused`], [`TemplateError::Failed`].
    pub fn render_with<'a>(
        &self,
        messages: impl IntoIterator<Item = (&'a str, &'a str)>,
        variables: &Variables,
    ) -> Result<String, TemplateError> {
        let message = |(role, content): (&str, &str)| context! { role, content };
        let messages: Vec<Value> = messages.into_iter().map(message).collect();
        let failed = |error: Error| match error.kind() {
            ErrorKind::InvalidOperation if raised(&error).is_some() => {
                TemplateError::Refused(raised(&error).unwrap_or_default().to_owned())
            }
            ErrorKind::OutOfFuel => TemplateError::Failed { file: self.file, reason: "it takes too many steps".into() },
            _ => TemplateError::Failed { file: self.file, reason: said(&error) },
        };
        let template = self.environment.get_template(TEMPLATE).map_err(failed)?;
        let none: Option<()> = None;
        let values = context! {
            messages,
            add_generation_prompt => true,
            bos_token => self.beginning.as_str(),
            eos_token => self.end.as_str(),
            tools => none,
            documents => none,
            ..Value::from(variables.clone()),
        };
        let mut bounded = Bounded(Vec::new());
        // The engine panics over some slices of nothing, which is no reason to lose what else goes on.
        let rendered = catch_unwind(AssertUnwindSafe(|| template.render_captured_to(values, &mut bounded).map(drop)));
        let fallen = || TemplateError::Failed { file: self.file, reason: "the template engine fails over it".into() };
        rendered.map_err(|_| fallen())?.map_err(failed)?;
        String::from_utf8(bounded.0)
            .map_err(|error| TemplateError::Failed { file: self.file, reason: error.to_string() })
    }
}

/// That a filter or a method cannot do what it is asked to.
fn refused(reason: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOperation, reason.into())
}

/// What a filter has written, and is about to write: no more than a template may in all, which is looked at only when
/// the filter is done.
fn bounded(written: &str, more: usize) -> Result<(), Error> {
    let fits = written.len().saturating_add(more) <= MAX_RENDERED;
    if fits { Ok(()) } else { Err(refused("it writes too much")) }
}

/// Jinja as Hugging Face's renderer sets it up, but `lipsum`, whose texts are drawn by chance.
fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    // Jinja's own delimiters, which never collide.
    environment.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build().unwrap_or_default());
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_unknown_method_callback(methods::call);
    environment.set_formatter(python::print);
    environment.add_function("raise_exception", raise);
    environment.add_function("strftime_now", python::strftime_now);
    environment.add_function(rewrite::COLLECTING, objects::collecting);
    environment.add_function("cycler", objects::cycler);
    environment.add_function("joiner", objects::joiner);
    environment.add_filter(rewrite::REMAINDER, percent::remainder);
    environment.add_filter("format", percent::format);
    environment.add_filter("tojson", json::to_json);
    environment.add_filter("indent", methods::indent);
    environment.add_filter("int", python::int);
    environment.add_filter("float", python::to_float);
    environment.add_test("sequence", python::is_sequence);
    environment.add_test("callable", python::is_callable);
    environment.set_fuel(Some(FUEL));
    environment
}

/// The mark of errors that templates raise themselves.
#[derive(Debug, ThisError)]
#[error("{0}")]
struct Raised(String);

fn raise(message: String) -> Result<String, Error> {
    Err(Error::new(ErrorKind::InvalidOperation, "raised").with_source(Raised(message)))
}

fn raised(error: &Error) -> Option<&str> {
    std::error::Error::source(error)?.downcast_ref::<Raised>().map(|raised| raised.0.as_str())
}

/// An error and its line.
fn said(error: &Error) -> String {
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}")).unwrap_or_default();
    format!("{error}{cause}")
}

/// Memory for a rendering.
struct Bounded(Vec<u8>);

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len().saturating_add(bytes.len()) > MAX_RENDERED {
            return Err(io::Error::other("it writes too much"));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
