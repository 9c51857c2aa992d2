//! Whether what commands print as JSON is what `docs/src/reference/json.md` says.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::Value;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/src/reference/json.md");

/// A table: type of each path.
type Table = BTreeMap<String, String>;

/// The tables of each command.
static COMMANDS: LazyLock<BTreeMap<String, Vec<Table>>> =
    LazyLock::new(|| parse(&std::fs::read_to_string(PAGE).unwrap()));

/// Commands that print the same as another.
const ALIASES: [(&str, &str); 5] = [
    ("key address", "key new"),
    ("key import", "key new"),
    ("key export", "key new"),
    ("dispute explain", "dispute show"),
    ("localnet add-villain", "localnet add-worker"),
];

/// Commands that also print what another does.
const AFTERWARDS: [(&str, &str); 3] = [("job post", "job resume"), ("job resume", "job watch"), ("train", "job post")];

fn parse(page: &str) -> BTreeMap<String, Vec<Table>> {
    let mut commands: BTreeMap<String, Vec<Table>> = BTreeMap::new();
    let mut command = String::new();
    for line in page.lines() {
        if let Some(name) = line.strip_prefix("## ") {
            command = name.to_owned();
            commands.entry(command.clone()).or_default();
        } else if line.starts_with("| field |") {
            commands.entry(command.clone()).or_default().push(Table::new());
        } else if let Some(row) = line.strip_prefix("| `") {
            let mut cells = row.split(" | ");
            let path = cells.next().unwrap().trim_end_matches('`').to_owned();
            let kind = cells.next().unwrap_or_else(|| panic!("no type in {line}")).to_owned();
            let table = commands.get_mut(&command).and_then(|tables| tables.last_mut());
            let before = table.unwrap_or_else(|| panic!("no table for {line}")).insert(path, kind);
            assert!(before.is_none(), "{command}: twice: {line}");
        }
    }
    commands
}

/// The tables for a command line, if it is one that prints data.
fn tables(arguments: &[String]) -> Option<Vec<&'static Table>> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).filter(|word| !word.starts_with('-')).collect();
    let named = |name: &str| {
        let name: Vec<&str> = name.split(' ').collect();
        words.starts_with(&name)
    };
    let alias = ALIASES.iter().find(|(name, _)| named(name)).map(|(_, other)| *other);
    let known = || COMMANDS.keys().rev().find(|name| named(name)).map(String::as_str);
    let mut command = alias.or_else(known)?;
    let mut tables: Vec<&Table> = COMMANDS[command].iter().collect();
    while let Some((_, other)) = AFTERWARDS.iter().find(|(name, _)| *name == command) {
        command = other;
        tables.extend(&COMMANDS[command]);
    }
    Some(tables)
}

/// Checks what a command line printed.
///
/// # Panics
/// If a value is of no table of its command: with the differences from the nearest.
pub(crate) fn check(arguments: &[String], value: &Value) {
    let Some(tables) = tables(arguments) else { return };
    let differences = tables.iter().map(|table| differences(table, value)).min_by_key(Vec::len);
    let differences = differences.unwrap_or_else(|| vec!["nothing is said of it".to_owned()]);
    assert!(
        differences.is_empty(),
        "docs/src/reference/json.md does not describe what `{}` printed: {}\n{value}",
        arguments.join(" "),
        differences.join("; ")
    );
}

/// Where a value is not what a table says.
fn differences(table: &Table, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    look(table, "", value, &mut found);
    found
}

fn look(table: &Table, path: &str, value: &Value, found: &mut Vec<String>) {
    let kind = table.get(path).map(String::as_str);
    match (kind, value) {
        (Some("any" | "any or none"), _) => {}
        (Some(kind), Value::Null) if kind.ends_with(" or none") => {}
        (None | Some("object" | "object or none"), Value::Object(fields)) => {
            let map = format!("{path}{{}}");
            if table.keys().any(|key| key.starts_with(&map)) {
                fields.values().for_each(|value| look(table, &map, value, found));
                return;
            }
            let prefix = if path.is_empty() { String::new() } else { format!("{path}.") };
            let below = table.keys().filter_map(|key| key.strip_prefix(&prefix)).filter(|rest| !rest.is_empty());
            let names: std::collections::BTreeSet<&str> =
                below.map(|rest| rest.split(['.', '[', '{']).next().unwrap_or(rest)).collect();
            for name in names.iter().filter(|name| !fields.contains_key(**name)) {
                let optional = [format!("{prefix}{name}"), format!("{prefix}{name}[]"), format!("{prefix}{name}{{}}")];
                let kinds = optional.iter().filter_map(|path| table.get(path));
                if !kinds.clone().any(|kind| kind.ends_with(" or none") || kind == "any") {
                    found.push(format!("`{prefix}{name}` is missing"));
                }
            }
            for (name, value) in fields {
                if names.contains(name.as_str()) {
                    look(table, &format!("{prefix}{name}"), value, found);
                } else {
                    found.push(format!("`{prefix}{name}` is not described"));
                }
            }
        }
        (None, Value::Array(values)) => {
            let each = format!("{path}[]");
            if !table.keys().any(|key| key.starts_with(&each)) {
                found.push(format!("`{path}` is a list"));
            }
            values.iter().for_each(|value| look(table, &each, value, found));
        }
        (None, Value::Null) if table.get(&format!("{path}[]")).is_some_and(|kind| kind.ends_with(" or none")) => {}
        (Some(kind), value) if is_of(kind.trim_end_matches(" or none"), value) => {}
        (kind, value) => found.push(format!("`{path}` is {value}, not {}", kind.unwrap_or("described"))),
    }
}

fn is_of(kind: &str, value: &Value) -> bool {
    let hex = |digits: usize| {
        let lower = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        let digits_of = |text: &str| text.len() == digits && text.bytes().all(lower);
        value.as_str().and_then(|text| text.strip_prefix("0x")).is_some_and(digits_of)
    };
    match kind {
        "amount" => value.as_str().is_some_and(|text| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())),
        "address" => hex(40),
        "hash" => hex(64),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        _ => false,
    }
}

#[test]
fn a_field_that_is_not_described_or_missing_or_of_another_type_is_found() {
    let page = "## some command\n\n| field | type | meaning |\n|---|---|---|\n| `a` | integer | |\n| `b[].c` | amount | |\n\
                | `d` | object or none | |\n| `d.e` | string | |\n| `f{}` | hash or none | |\n";
    let table = &parse(page)["some command"][0];
    let found = |value: Value| differences(table, &value);
    let good = serde_json::json!({ "a": 1, "b": [{ "c": "12" }], "d": { "e": "x" }, "f": {} });
    assert_eq!(found(good.clone()), Vec::<String>::new());
    assert_eq!(found(serde_json::json!({ "a": 1, "b": [] })), Vec::<String>::new(), "what may be absent is");
    for (field, value, words) in [
        ("a", serde_json::json!("1"), "`a` is"),
        ("b", serde_json::json!([{ "c": 12 }]), "`b[].c` is"),
        ("b", serde_json::json!([{}]), "`b[].c` is missing"),
        ("d", serde_json::json!({}), "`d.e` is missing"),
        ("g", serde_json::json!(1), "`g` is not described"),
    ] {
        let mut wrong = good.clone();
        wrong[field] = value;
        let told = found(wrong);
        assert!(told.len() == 1 && told[0].starts_with(words), "{told:?}");
    }
}

#[test]
fn every_command_of_the_page_is_one_of_the_program() {
    let commands =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/src/reference/cli.md")).unwrap();
    for command in COMMANDS.keys() {
        assert!(commands.contains(&format!("\n## tensorlink {command}\n")), "there is no `tensorlink {command}`");
        assert!(!COMMANDS[command].is_empty() || AFTERWARDS.iter().any(|(name, _)| name == command), "{command}");
    }
}
