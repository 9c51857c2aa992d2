//! Records that only grow: one JSON line each, synced before it counts. The first line tells the version.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::marker::PhantomData;
use std::path::PathBuf;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Journal, JournalError, sync_folder, version};

/// A file of records, one JSON line each. A line torn by a kill is cut off when the file is opened.
#[derive(Debug)]
pub struct Lines<T> {
    path: PathBuf,
    file: File,
    /// Bytes of whole lines.
    length: u64,
    record: PhantomData<fn(T) -> T>,
}

impl<T: Serialize + DeserializeOwned> Lines<T> {
    /// Adds a record; it survives a kill and a power cut once this returns.
    ///
    /// # Errors
    /// [`JournalError::Io`] if the disk refuses; the file is then as it was.
    pub fn append(&mut self, record: &T) -> Result<(), JournalError> {
        let mut line = serde_json::to_vec(record)
            .map_err(|e| JournalError::Format { path: self.path.clone(), reason: e.to_string() })?;
        line.push(b'\n');
        if let Err(source) = self.file.write_all(&line).and_then(|()| self.file.sync_data()) {
            // What was written of it must not stand before the next line. If this fails, too, opening cuts it off.
            let _ = self.file.set_len(self.length);
            return Err(JournalError::Io { path: self.path.clone(), source });
        }
        self.length = self.length.saturating_add(line.len() as u64);
        Ok(())
    }
}

impl Journal {
    fn lines_path(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.jsonl"))
    }

    /// Opens (and creates) a file of lines, and reads it. One of before gets its first line.
    ///
    /// # Errors
    /// [`JournalError::Format`] if a line other than a torn last one is damaged, [`JournalError::Newer`] if the file is
    /// of a newer version.
    pub fn open_lines<T: Serialize + DeserializeOwned>(&self, name: &str) -> Result<(Lines<T>, Vec<T>), JournalError> {
        let path = self.lines_path(name);
        let fail = |source| JournalError::Io { path: path.clone(), source };
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(source) => return Err(fail(source)),
        };
        let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end.saturating_add(1));
        let text = text.get(..whole).unwrap_or_default();
        let first = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let has_heading = version::is_heading(&path, first)?;
        let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).skip(has_heading.into());
        let records = lines.map(|line| serde_json::from_slice(line)).collect::<Result<Vec<T>, _>>();
        let records = records.map_err(|e| JournalError::Format { path: path.clone(), reason: e.to_string() })?;
        if !has_heading {
            return Ok((self.replace_lines(name, &records)?, records));
        }
        let file = OpenOptions::new().create(true).append(true).open(&path).map_err(fail)?;
        let length = whole as u64;
        file.set_len(length).map_err(fail)?;
        sync_folder(&self.folder).map_err(fail)?;
        Ok((Lines { path, file, length, record: PhantomData }, records))
    }

    /// Replaces a file of lines as a whole, and opens it.
    ///
    /// # Errors
    /// [`JournalError::Io`] if the disk refuses; an old file is then still whole.
    pub fn replace_lines<T: Serialize + DeserializeOwned>(
        &self,
        name: &str,
        records: &[T],
    ) -> Result<Lines<T>, JournalError> {
        let path = self.lines_path(name);
        let fail = |source| JournalError::Io { path: path.clone(), source };
        let mut text = version::heading();
        for record in records {
            serde_json::to_writer(&mut text, record)
                .map_err(|e| JournalError::Format { path: path.clone(), reason: e.to_string() })?;
            text.push(b'\n');
        }
        let aside = path.with_extension("tmp");
        let mut file = File::create(&aside).map_err(fail)?;
        file.write_all(&text).and_then(|()| file.sync_all()).map_err(fail)?;
        fs::rename(&aside, &path).map_err(fail)?;
        sync_folder(&self.folder).map_err(fail)?;
        let file = OpenOptions::new().append(true).open(&path).map_err(fail)?;
        Ok(Lines { path, file, length: text.len() as u64, record: PhantomData })
    }

    /// Drops a file of lines; no error if there is none.
    ///
    /// # Errors
    /// [`JournalError::Io`] if the disk refuses.
    pub fn remove_lines(&self, name: &str) -> Result<(), JournalError> {
        let path = self.lines_path(name);
        match fs::remove_file(&path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(JournalError::Io { path, source: e }),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Records cut anywhere by a power cut, with anything after them: whole lines are read, and the file goes on
        /// from there.
        #[test]
        fn records_cut_anywhere(
            records in prop::collection::vec(any::<u16>(), 0..8),
            at in any::<prop::sample::Index>(),
            torn in "[0-9a-z{\"]{0,6}",
        ) {
            let folder = tempfile::tempdir().unwrap();
            let journal = Journal::open(folder.path()).unwrap();
            let text: String = records.iter().map(|record| format!("{record}\n")).collect();
            let cut = &text[..at.index(text.len() + 1)];
            fs::write(folder.path().join("a.jsonl"), format!("{cut}{torn}")).unwrap();
            let (mut lines, read) = journal.open_lines::<u16>("a").unwrap();
            prop_assert_eq!(&read, &records[..cut.matches('\n').count()]);
            lines.append(&7).unwrap();
            prop_assert_eq!(journal.open_lines::<u16>("a").unwrap().1, [&read[..], &[7]].concat());
        }

        /// Whatever lies in the file: records, or an error that names it.
        #[test]
        fn bytes_of_any_kind(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let folder = tempfile::tempdir().unwrap();
            let journal = Journal::open(folder.path()).unwrap();
            fs::write(folder.path().join("a.jsonl"), bytes).unwrap();
            if let Err(error) = journal.open_lines::<u16>("a") {
                prop_assert!(error.to_string().contains("a.jsonl"));
            }
        }
    }

    #[test]
    fn lines_are_appended_replaced_and_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let journal = Journal::open(folder.path()).unwrap();
        let (mut lines, none) = journal.open_lines::<u32>("a").unwrap();
        assert!(none.is_empty());
        lines.append(&1).unwrap();
        lines.append(&2).unwrap();
        assert_eq!(journal.open_lines::<u32>("a").unwrap().1, [1, 2]);
        let mut lines = journal.replace_lines("a", &[7u32]).unwrap();
        lines.append(&8).unwrap();
        assert_eq!(journal.open_lines::<u32>("a").unwrap().1, [7, 8]);
        assert!(journal.names().unwrap().is_empty(), "lines are no records that are replaced");
        journal.remove_lines("a").unwrap();
        journal.remove_lines("a").unwrap();
        assert!(journal.open_lines::<u32>("a").unwrap().1.is_empty());
    }

    #[test]
    fn a_torn_last_line_is_cut_off_and_a_damaged_one_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let journal = Journal::open(folder.path()).unwrap();
        fs::write(folder.path().join("a.jsonl"), "1\n2\n3").unwrap();
        let (mut lines, records) = journal.open_lines::<u32>("a").unwrap();
        assert_eq!(records, [1, 2]);
        lines.append(&4).unwrap();
        assert_eq!(fs::read_to_string(folder.path().join("a.jsonl")).unwrap(), "{\"version\":1}\n1\n2\n4\n");
        fs::write(folder.path().join("a.jsonl"), "1\nx\n3\n").unwrap();
        assert!(journal.open_lines::<u32>("a").unwrap_err().to_string().contains("a.jsonl"));
    }

    #[test]
    fn lines_of_a_newer_version_are_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let journal = Journal::open(folder.path()).unwrap();
        let newer = "{\"version\":2}\n{\"what\":\"else\"}\n";
        fs::write(folder.path().join("a.jsonl"), newer).unwrap();
        assert!(matches!(journal.open_lines::<u32>("a").unwrap_err(), JournalError::Newer { version: 2, .. }));
        assert_eq!(fs::read_to_string(folder.path().join("a.jsonl")).unwrap(), newer);
    }
}
