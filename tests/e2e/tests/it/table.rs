//! The table of villains in `tests/e2e/README.md`: what it names is there.

use std::collections::BTreeSet;
use std::path::Path;

/// Rows that the table has at least.
const ROWS: usize = 25;
/// Scenario, test, verdict, who pays, transactions, gas.
const COLUMNS: usize = 6;

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The cells of each row below the heading.
fn rows() -> Vec<Vec<String>> {
    let readme = read("README.md");
    let rows = readme.lines().skip_while(|line| !line.starts_with("| scenario |")).skip(2);
    let cells = |line: &str| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect();
    rows.take_while(|line| line.starts_with('|')).map(cells).collect()
}

/// Whether a module has such a test.
fn is_test(module: &str, function: &str) -> bool {
    let source = read(&format!("tests/it/{module}.rs"));
    let lines: Vec<&str> = source.lines().map(str::trim).collect();
    let head = format!("fn {function}()");
    lines.windows(2).any(|pair| pair[0].starts_with("#[tokio::test") && pair[1].contains(&head))
}

#[test]
fn every_villain_of_the_table_has_the_test_that_it_names() {
    let rows = rows();
    assert!(rows.len() >= ROWS, "{} rows", rows.len());
    let mut scenarios = BTreeSet::new();
    for row in &rows {
        assert_eq!(row.len(), COLUMNS, "{row:?}");
        assert!(row.iter().all(|cell| !cell.is_empty()), "{row:?}");
        assert!(scenarios.insert(&row[0]), "twice: {row:?}");
        let (module, function) = row[1].trim_matches('`').split_once("::").unwrap_or_else(|| panic!("{row:?}"));
        assert!(is_test(module, function), "there is no test {module}::{function}");
    }
}
