//! `commitments.json`: rules C-1 to C-13 of `agents/proof/SPEC.md`.
//!
//! | module | what lives there |
//! |---|---|
//! | `trees` | tensors, ranges, lists (C-1 to C-4, C-6 to C-8, C-12, C-13) |
//! | `receipts` | receipts and their logs (C-12) |
//! | `structs` | programs, logs, digests, job keys, claim records, seals (C-5, C-8 to C-11, C-14) |

mod receipts;
mod structs;
mod trees;

use std::fmt::Display;

use serde::{Deserialize, Serialize};

use crate::file::{Coverage, VectorError, parse, text};

/// The file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Commitments {
    tensors: Vec<trees::TensorCase>,
    ranges: Vec<trees::RangeCase>,
    lists: Vec<trees::ListCase>,
    programs: Vec<structs::ProgramCase>,
    logs: Vec<structs::LogsCase>,
    digests: Vec<structs::DigestCase>,
    job_keys: Vec<structs::JobKeyCase>,
    records: Vec<structs::RecordCase>,
    seals: Vec<structs::SealCase>,
    receipts: Vec<receipts::ReceiptCase>,
}

/// One case of any kind, so that [`text`] writes them alike.
#[derive(Serialize)]
#[serde(untagged)]
enum AnyCase {
    Tensor(trees::TensorCase),
    Range(trees::RangeCase),
    List(trees::ListCase),
    Program(structs::ProgramCase),
    Logs(structs::LogsCase),
    Digest(structs::DigestCase),
    JobKey(structs::JobKeyCase),
    Record(structs::RecordCase),
    Seal(structs::SealCase),
    Receipt(receipts::ReceiptCase),
}

/// Text of the file.
///
/// # Errors
/// [`VectorError`] if a case cannot be made.
pub fn generate() -> Result<String, VectorError> {
    fn any<T>(cases: Vec<T>, wrap: fn(T) -> AnyCase) -> Vec<AnyCase> {
        cases.into_iter().map(wrap).collect()
    }
    text(&[
        ("tensors", any(trees::tensors()?, AnyCase::Tensor)),
        ("ranges", any(trees::ranges()?, AnyCase::Range)),
        ("lists", any(trees::lists()?, AnyCase::List)),
        ("programs", any(structs::programs()?, AnyCase::Program)),
        ("logs", any(structs::logs(), AnyCase::Logs)),
        ("digests", any(structs::digests()?, AnyCase::Digest)),
        ("jobKeys", any(structs::job_keys(), AnyCase::JobKey)),
        ("records", any(structs::records(), AnyCase::Record)),
        ("seals", any(structs::seals(), AnyCase::Seal)),
        ("receipts", any(receipts::receipts(), AnyCase::Receipt)),
    ])
}

/// Checks the implementation against every case.
///
/// # Errors
/// [`VectorError::Json`], [`VectorError::Malformed`], [`VectorError::Mismatch`].
pub fn verify(text: &str) -> Result<Coverage, VectorError> {
    let file: Commitments = parse(text)?;
    let mut coverage = Coverage::default();
    for case in &file.tensors {
        coverage.add(case.verify()?);
    }
    for case in &file.ranges {
        coverage.add(case.verify()?);
    }
    for case in &file.lists {
        coverage.add(case.verify()?);
    }
    for case in &file.programs {
        coverage.add(case.verify()?);
    }
    for case in &file.logs {
        coverage.add(case.verify()?);
    }
    for case in &file.digests {
        coverage.add(case.verify()?);
    }
    for case in &file.job_keys {
        coverage.add(case.verify()?);
    }
    for case in &file.records {
        coverage.add(case.verify()?);
    }
    for case in &file.seals {
        coverage.add(case.verify()?);
    }
    for case in &file.receipts {
        coverage.add(case.verify()?);
    }
    Ok(coverage)
}

/// A field that does not hold what it should; the cause is in the case's other fields.
fn malformed<E>(case: impl Display, field: &'static str) -> impl FnOnce(E) -> VectorError {
    let case = case.to_string();
    move |_| VectorError::Malformed { case, field }
}

/// Refuses a case of a rule that its array does not hold.
fn check_rule(rule: &str, allowed: &[&str]) -> Result<(), VectorError> {
    if allowed.contains(&rule) { Ok(()) } else { Err(malformed(rule, "rule")(())) }
}
