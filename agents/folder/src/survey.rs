//! All that is wrong with a model folder, and what of it is not used: everything is read, nothing is kept.

use std::path::Path;

use tensorlink_model::{Checkpoint, Description, export};

use super::ends::ends;
use super::integers::MANIFEST;
use super::small::{Small, there};
use super::unfinished::Unfinished;
use super::{ChatTemplate, Floats, FolderError, INDEX, ModelFolder, Stored, WEIGHTS, described, modules, tokenizer_of};

/// Most files of a folder that are named as not used.
const MOST_NAMED: usize = 100;

/// What was found.
#[derive(Debug)]
pub struct Survey {
    /// The folder, if nothing in it is refused.
    pub folder: Option<ModelFolder>,
    /// Everything for which it is refused.
    pub refused: Vec<FolderError>,
    /// Files that are not read, in order of their names.
    pub ignored: Vec<String>,
}

impl Survey {
    /// Looks at a folder with floats, or a GGUF file: configuration, tokenizer, chat template, names, types, shapes and
    /// all values of the weights. Goes on after what is wrong, as far as the rest can be understood without it.
    ///
    /// # Errors
    /// [`FolderError::Nothing`] if nothing is there, [`FolderError::Read`] if it is no folder,
    /// [`FolderError::Quantised`] if it holds no floats.
    pub fn of(path: &Path) -> Result<Self, FolderError> {
        there(path)?;
        if path.join(MANIFEST).exists() {
            return Err(FolderError::Quantised(path.to_owned()));
        }
        let mut refused = Vec::new();
        let Some(mut small) = kept(Small::of(path), &mut refused) else {
            return Ok(Self { folder: None, refused, ignored: Vec::new() });
        };
        let description = kept(described(&small), &mut refused);
        let tokenizer =
            description.as_ref().and_then(|description| kept(tokenizer_of(&mut small, description), &mut refused));
        if let Some(description) = &description {
            kept(ends(&small, description), &mut refused);
        }
        if let Some(Some(template)) = kept(ChatTemplate::find(&small), &mut refused)
            && let Err(error) = template.render([("user", "Hello")])
        {
            refused.push(error.into());
        }
        let floats = kept(Floats::of(&small), &mut refused);
        if let (Some(floats), Some(description)) = (&floats, &description) {
            refused.extend(floats.problems(description));
        }
        let ignored = match &small {
            Small::Lying { folder, made } => {
                let files = modules::files(&modules::dense(&small).unwrap_or_default());
                let family = description.as_ref().map(|description| description.architecture.family);
                let instead = family.filter(|_| !made.is_empty()).map_or(&[][..], |family| family.tokenizer().files);
                not_read((folder, &files), floats.as_ref(), instead)?
            }
            Small::Made { .. } => Vec::new(),
        };
        let folder = match (description, tokenizer, floats) {
            (Some(description), Some(tokenizer), Some(floats)) if refused.is_empty() => {
                let (path, stored) = (path.to_owned(), Stored::Floats(floats));
                Some(ModelFolder { path, small, description, tokenizer, stored })
            }
            _ => None,
        };
        Ok(Self { folder, refused, ignored })
    }
}

fn kept<T>(result: Result<T, FolderError>, refused: &mut Vec<FolderError>) -> Option<T> {
    result.map_err(|error| refused.push(error)).ok()
}

impl Floats {
    fn problems(&self, description: &Description) -> Vec<FolderError> {
        match Checkpoint::examine(&description.architecture, &self.given(), self.index.as_deref()) {
            Ok((checkpoint, problems)) => problems.into_iter().chain(checkpoint.faults()).map(Into::into).collect(),
            Err(problem) => vec![problem.into()],
        }
    }
}

/// Files and folders beside what is read, and what the tokenizer was made of.
fn not_read(
    (path, small): (&Path, &[(String, u64)]),
    floats: Option<&Floats>,
    instead: &[&str],
) -> Result<Vec<String>, FolderError> {
    let failed = |source| FolderError::Read { file: path.to_owned(), source };
    let mut names = Vec::new();
    for entry in std::fs::read_dir(path).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name().to_string_lossy().into_owned();
        let small = small.iter().any(|(read, _)| read.split('/').next() == Some(&name));
        let weights = floats.is_some_and(|floats| {
            floats.files.iter().any(|file| file.name == name) || (floats.index.is_some() && name == INDEX)
        });
        let read = small || weights || instead.contains(&name.as_str());
        if !read && names.len() < MOST_NAMED {
            names.push(name);
        }
    }
    names.sort_unstable();
    Ok(names)
}

impl ModelFolder {
    /// Copies what is read of a folder with floats, and nothing else, to a new one. Of a GGUF file it makes the folder
    /// that says the same, its weights as 32-bit floats.
    ///
    /// # Errors
    /// [`FolderError::Quantised`], [`FolderError::Exists`], [`FolderError::Read`], [`FolderError::Write`]; then there
    /// is no `out`.
    pub fn copy(&self, out: &Path) -> Result<(), FolderError> {
        let new = Unfinished::begin(out)?;
        let Stored::Floats(Floats { files, index, dense }) = &self.stored else {
            return Err(FolderError::Quantised(self.path.clone()));
        };
        for (name, most) in modules::files(&modules::dense(&self.small)?) {
            if let Some(content) = self.small.optional(&name, most)? {
                new.write_all([(name.as_str(), content)])?;
            }
        }
        if self.is_file() {
            new.write_all([(WEIGHTS, export::safetensors(self.architecture(), &self.weights()?)?)])?;
            return new.finish();
        }
        let weights = files.iter().chain(dense).map(|file| file.name.as_str()).chain(index.as_ref().map(|_| INDEX));
        for name in weights {
            let path = self.path.join(name);
            let failed = |source| FolderError::Read { file: path.clone(), source };
            let mut from = std::fs::File::open(&path).map_err(failed)?;
            new.write(name, |file| std::io::copy(&mut from, file.get_mut()).map(drop))?;
        }
        new.finish()
    }
}

#[cfg(test)]
mod tests;
