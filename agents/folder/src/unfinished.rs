//! A folder that is being written: under another name until it is whole, and removed if it does not become so.

use std::fs::{self, File, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::FolderError;

/// Whether a new folder can have this name: asked before minutes are spent on its content.
///
/// # Errors
/// [`FolderError::Exists`].
pub fn vacant(out: &Path) -> Result<(), FolderError> {
    if out.symlink_metadata().is_ok() { Err(FolderError::Exists(out.to_owned())) } else { Ok(()) }
}

/// A folder that is not whole yet. Dropping it removes it.
#[derive(Debug)]
pub(super) struct Unfinished {
    folder: TempDir,
    out: PathBuf,
}

impl Unfinished {
    /// Begins what is to become `out`, beside it.
    ///
    /// # Errors
    /// [`FolderError::Exists`] for an `out` that is there, [`FolderError::Write`].
    pub(super) fn begin(out: &Path) -> Result<Self, FolderError> {
        vacant(out)?;
        let failed = |source| FolderError::Write { file: out.to_owned(), source };
        let name = out.file_name().ok_or_else(|| failed(io::ErrorKind::InvalidInput.into()))?;
        let parent = out.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let prefix = format!(".{}-", name.to_string_lossy());
        // As a folder that is made by hand: the process's umask takes away what others may not do.
        let (mut builder, open) = (tempfile::Builder::new(), Permissions::from_mode(0o777));
        let folder = builder.prefix(&prefix).permissions(open).tempdir_in(parent).map_err(failed)?;
        Ok(Self { folder, out: out.to_owned() })
    }

    /// Writes a file; `name` may lead into a folder, which is made.
    pub(super) fn write(
        &self,
        name: &str,
        content: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
    ) -> Result<(), FolderError> {
        let path = self.folder.path().join(name);
        let write = || {
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent)?;
            }
            let mut file = BufWriter::new(File::create(&path)?);
            content(&mut file)?;
            file.flush()?;
            file.get_ref().sync_all()
        };
        write().map_err(|source| FolderError::Write { file: self.out.join(name), source })
    }

    /// Writes files that are in memory.
    pub(super) fn write_all<'a>(&self, files: impl IntoIterator<Item = (&'a str, Vec<u8>)>) -> Result<(), FolderError> {
        files.into_iter().try_for_each(|(name, content)| self.write(name, |file| file.write_all(&content)))
    }

    /// Gives the folder its name.
    pub(super) fn finish(self) -> Result<(), FolderError> {
        let Self { folder, out } = self;
        // Once renamed, there is nothing to remove under the old name.
        fs::rename(folder.path(), &out).map_err(|source| FolderError::Write { file: out, source })
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::names;
    use super::*;

    #[test]
    fn a_folder_is_whole_or_not_there() {
        let parent = tempfile::tempdir().unwrap();
        let out = parent.path().join("model");
        let begun = Unfinished::begin(&out).unwrap();
        begun.write("a/b", |file| file.write_all(b"1")).unwrap();
        assert!(!out.exists());
        let failed = begun.write("c", |_| Err(io::ErrorKind::StorageFull.into())).unwrap_err();
        assert!(matches!(&failed, FolderError::Write { file, .. } if *file == out.join("c")), "{failed}");
        drop(begun);
        assert_eq!(names(parent.path()), [""; 0]);

        let begun = Unfinished::begin(&out).unwrap();
        begun.write("a/b", |file| file.write_all(b"1")).unwrap();
        begun.finish().unwrap();
        assert_eq!(
            (names(parent.path()), fs::read(out.join("a/b")).unwrap()),
            (vec!["model".to_owned()], b"1".to_vec())
        );
        let again = Unfinished::begin(&out).unwrap_err();
        assert!(matches!(again, FolderError::Exists(_)) && again.to_string().contains("--out"), "{again}");
        assert!(matches!(Unfinished::begin(&parent.path().join("no/model")), Err(FolderError::Write { .. })));
    }
}
