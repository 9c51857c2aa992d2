//! The parts of a sentence-transformers model, each in a folder of its own: what of them is computed, and the files of
//! those that have some.

use serde::Deserialize;

use super::small::Small;
use super::{FolderError, MAX_JSON, SMALL, WEIGHTS};

/// What names the parts.
pub(super) const MODULES: &str = "modules.json";
/// Kinds of parts, in the order in which they may follow one another.
const KINDS: [&str; 4] = ["Transformer", "Pooling", DENSE, "Normalize"];
/// The kind that there may be several of.
const DENSE: &str = "Dense";
/// Longest name of a folder, bytes.
const LONGEST: usize = 255;

#[derive(Deserialize)]
struct Module {
    #[serde(rename = "type")]
    class: String,
    #[serde(default)]
    path: String,
}

/// A dense layer after pooling.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Dense(String);

impl Dense {
    /// Its configuration.
    pub(super) fn config(&self) -> String {
        format!("{}/config.json", self.0)
    }

    /// Its weights.
    pub(super) fn weights(&self) -> String {
        format!("{}/{WEIGHTS}", self.0)
    }
}

/// The dense layers that a model names, in order.
///
/// # Errors
/// [`FolderError::Modules`], [`FolderError::Module`] for a part that would change the vector and that nothing here
/// computes.
pub(super) fn dense(small: &Small) -> Result<Vec<Dense>, FolderError> {
    small.optional(MODULES, MAX_JSON)?.map_or(Ok(Vec::new()), |json| read(&json))
}

/// Every file that is read of a model with these dense layers but its weights, with its largest size; most may be
/// absent.
pub(super) fn files(dense: &[Dense]) -> Vec<(String, u64)> {
    let own = SMALL.map(|(name, most)| (name.to_owned(), most));
    own.into_iter().chain(dense.iter().map(|layer| (layer.config(), MAX_JSON))).collect()
}

fn read(json: &[u8]) -> Result<Vec<Dense>, FolderError> {
    let modules: Vec<Module> = serde_json::from_slice(json).map_err(|error| FolderError::Modules(error.to_string()))?;
    let (mut dense, mut before) = (Vec::new(), None);
    for Module { class, path } in modules {
        // The class, whatever package it is in.
        let name = class.rsplit('.').next();
        let kind = KINDS.iter().position(|kind| Some(*kind) == name);
        let again = name == Some(DENSE);
        match kind {
            None => return Err(FolderError::Module(class)),
            Some(kind) if before.is_some_and(|before| kind < before || (kind == before && !again)) => {
                return Err(FolderError::Modules(format!("it has a {class} where none is computed")));
            }
            Some(kind) => before = Some(kind),
        }
        if again {
            // INVARIANT: a name opens nothing outside the model's folder.
            if path.is_empty() || path.len() > LONGEST || path.starts_with('.') || path.contains(['/', '\\', '\0']) {
                return Err(FolderError::Modules(format!("{path:?} is no folder of a part beside it")));
            }
            dense.push(Dense(path));
        }
    }
    Ok(dense)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(parts: &[(&str, &str)]) -> Result<Vec<Dense>, FolderError> {
        let parts = parts.iter().map(|(class, path)| {
            serde_json::json!({"idx": 0, "name": "0", "path": path, "type": format!("sentence_transformers.models.{class}")})
        });
        read(parts.collect::<serde_json::Value>().to_string().as_bytes())
    }

    #[test]
    fn parts_follow_one_another_as_they_are_computed() {
        let (first, pooling, last) = (("Transformer", ""), ("Pooling", "1_Pooling"), ("Normalize", "4_Normalize"));
        let (one, two) = (("Dense", "2_Dense_1024"), ("Dense", "3_Dense"));
        let paths = |parts: &[(&str, &str)]| named(parts).unwrap().into_iter().map(|layer| layer.0).collect::<Vec<_>>();
        assert!(paths(&[]).is_empty() && paths(&[first]).is_empty() && paths(&[first, pooling, last]).is_empty());
        assert_eq!(paths(&[first, pooling, one]), ["2_Dense_1024"]);
        assert_eq!(paths(&[first, pooling, one, two, last]), ["2_Dense_1024", "3_Dense"]);
        for wrong in [&[first, pooling, last, one][..], &[first, one, pooling], &[first, pooling, pooling]] {
            assert!(matches!(named(wrong), Err(FolderError::Modules(_))), "{wrong:?}");
        }
        assert!(
            matches!(named(&[first, ("LSTM", "1_LSTM")]), Err(FolderError::Module(class)) if class.ends_with("LSTM"))
        );
        let long = "x".repeat(256);
        for path in ["", "..", "../2_Dense", "a/b", "a\\b", "\0", &long] {
            assert!(matches!(named(&[first, pooling, ("Dense", path)]), Err(FolderError::Modules(_))), "{path:?}");
        }
    }
}
