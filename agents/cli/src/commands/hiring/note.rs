//! What a user writes down of a job.

use anyhow::{Context, Result};
use serde::de::DeserializeOwned;
use tensorlink_model::Setting;
use tensorlink_node::Journal;
use tensorlink_types::JobId;
use tensorlink_user::serving::ServingNote;

use crate::config::Config;
use crate::node::Node;

/// Name of the record a user keeps of a job.
pub(super) fn note_name(job: JobId) -> String {
    format!("job-{job}")
}

/// The record a user keeps of a job.
pub fn read_note<T: DeserializeOwned>(node: &Node, job: JobId) -> Result<T> {
    let note = node.ports.journal.read(&note_name(job))?;
    note.with_context(|| format!("this node did not post job {job}: use the data directory of the one that did"))
}

/// In how many bits a serving job is computed; none if no job of this number was posted from this data directory, or
/// an earlier version did.
pub fn setting(journal: &Journal, job: JobId) -> Result<Option<Setting>> {
    let note: Option<ServingNote> = journal.read(&note_name(job))?;
    Ok(note.and_then(|note| note.setting))
}

/// What was written down in this data directory, if anything was: who only asks has no folder made for it.
pub fn journal(config: &Config) -> Result<Option<Journal>> {
    let folder = config.data_dir.join("journal");
    Ok(if folder.is_dir() { Some(Journal::open(folder)?) } else { None })
}
