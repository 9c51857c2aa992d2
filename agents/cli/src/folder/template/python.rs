//! What of Python the published chat templates count on, as `transformers` gives it to them.

use std::time::SystemTime;

use minijinja::value::{Kwargs, Value, ValueKind};
use minijinja::{Error, ErrorKind};
use time::OffsetDateTime;
use time::format_description::parse_strftime_owned;

/// Deepest value that is written as JSON.
const DEEPEST: usize = 64;

/// The template without the tags that mark what the assistant says for training masks; they write nothing. Their
/// control of whitespace stays.
pub(super) fn without_generation(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(at) = rest.find("{%") {
        let (before, tag) = rest.split_at(at);
        out.push_str(before);
        let Some(end) = tag.find("%}") else {
            rest = tag;
            break;
        };
        let (whole, after) = tag.split_at(end.saturating_add(2));
        let inner = whole.trim_start_matches("{%").trim_end_matches("%}").trim_matches(['-', '+']).trim();
        match inner {
            "generation" => out.push_str(&whole.replacen("generation", "if true", 1)),
            "endgeneration" => out.push_str(&whole.replacen("endgeneration", "endif", 1)),
            _ => out.push_str(whole),
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

/// `strftime_now(format)`: the time by this machine's clock, in UTC.
pub(super) fn strftime_now(format: &str) -> Result<String, Error> {
    strftime(OffsetDateTime::from(SystemTime::now()), format)
}

fn strftime(at: OffsetDateTime, format: &str) -> Result<String, Error> {
    let wrong = |error: &dyn std::fmt::Display| {
        Error::new(ErrorKind::InvalidOperation, format!("strftime_now({format:?}): {error}"))
    };
    let description = parse_strftime_owned(format).map_err(|error| wrong(&error))?;
    at.format(&description).map_err(|error| wrong(&error))
}

/// `tojson`, as `json.dumps(value, ensure_ascii=False)` writes: a blank after each comma and colon, nothing escaped for
/// HTML; with `indent`, a line for each element.
pub(super) fn to_json(value: &Value, options: Kwargs) -> Result<Value, Error> {
    let indent: Option<usize> = options.get("indent")?;
    // As it is here already. Options that would change more are refused.
    let _: Option<Value> = options.get("ensure_ascii")?;
    options.assert_all_used()?;
    let mut out = String::new();
    write(&mut out, value, indent, 0)?;
    Ok(Value::from_safe_string(out))
}

fn write(out: &mut String, value: &Value, indent: Option<usize>, depth: usize) -> Result<(), Error> {
    if depth > DEEPEST {
        return Err(Error::new(ErrorKind::InvalidOperation, format!("tojson: more than {DEEPEST} levels")));
    }
    match value.kind() {
        ValueKind::Seq | ValueKind::Iterable => {
            let items = value.try_iter()?.map(|item| (None, item)).collect();
            list(out, ('[', ']'), items, indent, depth)
        }
        ValueKind::Map => {
            let mut items = Vec::new();
            for key in value.try_iter()? {
                let item = value.get_item(&key)?;
                items.push((Some(key), item));
            }
            list(out, ('{', '}'), items, indent, depth)
        }
        _ => {
            let text = serde_json::to_string(value);
            out.push_str(&text.map_err(|error| Error::new(ErrorKind::BadSerialization, error.to_string()))?);
            Ok(())
        }
    }
}

fn list(
    out: &mut String,
    (open, close): (char, char),
    items: Vec<(Option<Value>, Value)>,
    indent: Option<usize>,
    depth: usize,
) -> Result<(), Error> {
    let line = |out: &mut String, depth: usize| {
        if let Some(indent) = indent {
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', indent.saturating_mul(depth)));
        }
    };
    out.push(open);
    let empty = items.is_empty();
    for (number, (key, item)) in items.into_iter().enumerate() {
        if number > 0 {
            out.push_str(if indent.is_some() { "," } else { ", " });
        }
        line(out, depth.saturating_add(1));
        if let Some(key) = key {
            let key = key.as_str().map_or_else(|| key.to_string(), str::to_owned);
            let key = serde_json::to_string(&key);
            out.push_str(&key.map_err(|error| Error::new(ErrorKind::BadSerialization, error.to_string()))?);
            out.push_str(": ");
        }
        write(out, &item, indent, depth.saturating_add(1))?;
    }
    if !empty {
        line(out, depth);
    }
    out.push(close);
    Ok(())
}

#[cfg(test)]
mod tests {
    use minijinja::value::Serde;
    use serde_json::json;

    use super::*;

    #[test]
    fn dates_are_written_as_python_writes_them() {
        // 2026-07-04 09:05:06 UTC, a Saturday.
        let at = OffsetDateTime::from_unix_timestamp(1_783_155_906).unwrap();
        for (format, written) in [
            ("%d %b %Y", "04 Jul 2026"),
            ("%Y-%m-%d", "2026-07-04"),
            ("%A, %B %d, %Y", "Saturday, July 04, 2026"),
            ("%H:%M:%S %p", "09:05:06 AM"),
            ("%j %%", "185 %"),
        ] {
            assert_eq!(strftime(at, format).unwrap(), written, "{format}");
        }
        assert!(strftime(at, "%Q").unwrap_err().to_string().contains("strftime_now"));
        assert_eq!(strftime_now("%Y").unwrap().len(), 4);
    }

    #[test]
    fn values_are_written_as_python_dumps_them() {
        let environment = super::super::environment();
        let value = json!({"a": [1, 2.5, true, null, "é<b>'\n"], "b": {}, "c": []});
        let plain =
            environment.render_str("{{ v | tojson }}", minijinja::context! { v => Value::from(Serde(value)) }).unwrap();
        assert_eq!(plain, r#"{"a": [1, 2.5, true, null, "é<b>'\n"], "b": {}, "c": []}"#);
        let source = "{{ v | tojson(indent=2) }}";
        let lines = environment
            .render_str(source, minijinja::context! { v => Value::from(Serde(json!({"a": [1], "b": {}}))) })
            .unwrap();
        assert_eq!(lines, "{\n  \"a\": [\n    1\n  ],\n  \"b\": {}\n}");
    }

    #[test]
    fn marks_of_what_is_generated_write_nothing() {
        let environment = super::super::environment();
        let source = "a {%- generation -%} b {%- endgeneration %} c{% generation %}d{% endgeneration %}{% if x %}";
        let made = without_generation(source);
        assert!(made.ends_with("{% if x %}") && !made.contains("generation"), "{made}");
        let whole = without_generation("a {%- generation -%} b {%- endgeneration %} c");
        assert_eq!(environment.render_str(&whole, ()).unwrap(), "ab c");
        assert_eq!(without_generation("{% generation"), "{% generation");
    }
}
