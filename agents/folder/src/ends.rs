//! The tokens that end a text: those of `config.json` and of `generation_config.json`.

use serde::Deserialize;
use tensorlink_model::Description;

use super::small::Small;
use super::{FolderError, MAX_JSON, ModelFolder};

const CONFIG: &str = "generation_config.json";

/// What of `generation_config.json` matters here.
#[derive(Deserialize, Default)]
struct Config {
    eos_token_id: Option<Ends>,
}

/// One, or several, as in Llama 3.
#[derive(Deserialize)]
#[serde(untagged)]
enum Ends {
    One(u32),
    Several(Vec<u32>),
}

impl ModelFolder {
    /// The tokens that end a text, in order; none if the folder names none.
    ///
    /// # Errors
    /// [`FolderError::Generation`] for a file that cannot be understood, or names a token that the model does not have.
    pub fn ends(&self) -> Result<Vec<u32>, FolderError> {
        ends(&self.small, self.description())
    }
}

/// The tokens that end a text of the model that these files are of.
pub(super) fn ends(small: &Small, description: &Description) -> Result<Vec<u32>, FolderError> {
    let json = small.optional(CONFIG, MAX_JSON)?;
    let refused = |reason: String| FolderError::Generation(reason);
    let config: Option<Config> =
        json.as_deref().map(serde_json::from_slice).transpose().map_err(|error| refused(error.to_string()))?;
    let mut ends = match config.unwrap_or_default().eos_token_id {
        None => vec![],
        Some(Ends::One(end)) => vec![end],
        Some(Ends::Several(ends)) => ends,
    };
    let vocabulary = description.architecture.vocabulary;
    if let Some(end) = ends.iter().find(|end| **end >= vocabulary) {
        return Err(refused(format!("its eos_token_id {end} is no token of a model with {vocabulary}")));
    }
    ends.extend(&description.ends);
    ends.sort_unstable();
    ends.dedup();
    Ok(ends)
}
