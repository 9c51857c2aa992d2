//! The committed files are what the generator writes, every case in them is read, and every rule has one.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use tensorlink_vectors::{FILES, VectorError, VectorFile};

/// Rules that must have a case, besides those that no single case can show (layout, bounds, precision).
const RULES: &[&str] = &[
    "N-2", "N-3", "N-4", "N-11", "N-12", "N-13", "N-14", "N-15", "N-16", "N-17", "N-18", "N-19", "N-20", "N-21",
    "N-22", "N-23", "N-24", "N-25", "N-26", "N-27", "N-28", "N-29", "N-30", "N-31", "N-32", "N-33", "N-34", "N-35",
    "N-36", "N-37", "N-38", "N-39", "N-40", "N-41", "N-42", "N-43", "N-44", "N-45", "N-46", "N-47", "N-48", "C-1",
    "C-2", "C-3", "C-4", "C-5", "C-6", "C-7", "C-8", "C-9", "C-10", "C-11", "C-12", "C-13", "C-14", "P-14",
];

#[test]
fn committed_files_are_fresh() {
    for file in FILES {
        if let Err(error) = file.check() {
            panic!("{error}");
        }
    }
}

#[test]
fn every_case_holds_and_every_rule_has_one() {
    let mut rules = BTreeSet::new();
    for file in FILES {
        rules.extend(file.verify(&file.read().unwrap()).unwrap_or_else(|e| panic!("{}: {e}", file.name)).rules);
    }
    let missing: Vec<_> = RULES.iter().filter(|rule| !rules.contains(**rule)).collect();
    assert!(missing.is_empty(), "no case for {missing:?}");
}

#[test]
fn every_file_has_a_reader() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let present = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let present: BTreeSet<_> = present.filter(|name| name.ends_with(".json")).collect();
    assert_eq!(present, FILES.iter().map(|file| file.name.to_owned()).collect());
}

#[test]
fn a_changed_case_is_noticed() {
    for file in FILES {
        let text = file.read().unwrap();
        let at = text.rfind(|c: char| c.is_ascii_digit()).unwrap();
        let digit = if &text[at..=at] == "1" { "2" } else { "1" };
        let changed = format!("{}{digit}{}", &text[..at], &text[at + 1..]);
        assert!(file.verify(&changed).is_err(), "{}: a changed digit passes", file.name);
    }
}

#[test]
fn an_unread_case_is_noticed() {
    let lazy = VectorFile { verify: |_| Ok(Default::default()), ..FILES[0] };
    assert!(matches!(lazy.verify(&lazy.read().unwrap()), Err(VectorError::Unread { checked: 0, .. })));
}
