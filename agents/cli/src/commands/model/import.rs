//! `tensorlink model import`.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail, ensure};
use serde::Serialize;
use tensorlink_folder::{Survey, may_be_model, there, vacant};

use super::folder::{Shown, rows, show};
use crate::advice;
use crate::config::Config;
use crate::live::say;
use crate::output;

#[derive(Serialize)]
struct Report {
    model: Option<Shown>,
    refused: Vec<String>,
    ignored: Vec<String>,
    out: Option<PathBuf>,
}

/// Checks all of a folder or a GGUF file, tells all that is wrong, and copies what is used of one that is right.
pub(super) fn import(config: &Config, source: &Path, out: Option<&Path>, stages: u16) -> Result<()> {
    out.map_or(Ok(()), vacant)?;
    let name = source.display();
    if source.is_file() && !may_be_model(source) {
        bail!(
            "{name} is no .gguf file: unpack the archive or install the package that it is, and name the folder with \
             config.json"
        );
    }
    there(source)?;
    say!("reading all of {name} ...");
    let Survey { folder, refused, ignored } = Survey::of(source)?;
    let model = folder.as_ref().map(|folder| show(folder, stages)).transpose()?;
    if let (Some(folder), Some(out)) = (&folder, out) {
        say!("copying to {} ...", out.display());
        folder.copy(out)?;
    }
    let report = Report {
        model,
        refused: refused.into_iter().map(|error| advice::words(&error.into())).collect(),
        ignored,
        out: out.filter(|_| folder.is_some()).map(Path::to_owned),
    };
    output::print(config.json, &report, || told(&report))?;
    let count = report.refused.len();
    ensure!(count == 0, "{name} is refused for {count} reason{}", if count == 1 { "" } else { "s" });
    Ok(())
}

fn told(report: &Report) -> String {
    let mut told = report.model.as_ref().map(rows).unwrap_or_default();
    told.extend(report.refused.iter().map(|reason| ("refused", reason.clone())));
    if !report.ignored.is_empty() {
        told.push(("not read", report.ignored.join(", ")));
    }
    told.extend(report.out.iter().map(|out| ("copied to", out.display().to_string())));
    output::table(&told)
}
