//! `tojson`, as `transformers` gives it to chat templates: `json.dumps` of Python, with its options.

use std::fmt::Write;

use minijinja::value::{Kwargs, Value, ValueKind};
use minijinja::{Error, ErrorKind};

use super::python::float;
use super::{bounded, refused};

/// Deepest value that is written as JSON.
const DEEPEST: usize = 64;

/// How it is written: by default a blank after each comma and colon, nothing escaped but what JSON asks for; with
/// `indent`, a line for each element.
struct Style {
    ascii: bool,
    indent: Option<usize>,
    comma: String,
    colon: String,
    sorted: bool,
}

/// The filter. Options that `json.dumps` has and `transformers` does not pass on are refused.
pub(super) fn to_json(value: &Value, options: Kwargs) -> Result<Value, Error> {
    let indent: Option<usize> = options.get("indent")?;
    let (ascii, sorted): (Option<bool>, Option<bool>) = (options.get("ensure_ascii")?, options.get("sort_keys")?);
    let separators: Option<Vec<String>> = options.get("separators")?;
    options.assert_all_used()?;
    let comma = if indent.is_some() { "," } else { ", " };
    let [comma, colon] = match separators.map(TryInto::try_into) {
        None => [comma.to_owned(), ": ".to_owned()],
        Some(Ok(both)) => both,
        Some(Err(_)) => return Err(refused("tojson: separators are two texts")),
    };
    let style = Style { ascii: ascii.unwrap_or(false), indent, comma, colon, sorted: sorted.unwrap_or(false) };
    let mut out = String::new();
    style.write(&mut out, value, 0)?;
    Ok(Value::from_safe_string(out))
}

impl Style {
    fn write(&self, out: &mut String, value: &Value, depth: usize) -> Result<(), Error> {
        if depth > DEEPEST {
            return Err(refused(format!("tojson: more than {DEEPEST} levels")));
        }
        match value.kind() {
            ValueKind::Seq | ValueKind::Iterable => {
                let items = value.try_iter()?.map(|item| (None, item)).collect();
                self.list(out, ('[', ']'), items, depth)
            }
            ValueKind::Map => {
                let mut items = Vec::new();
                for key in value.try_iter()? {
                    let item = value.get_item(&key)?;
                    items.push((Some(key.as_str().map_or_else(|| key.to_string(), str::to_owned)), item));
                }
                if self.sorted {
                    items.sort_by(|(a, _), (b, _)| a.cmp(b));
                }
                self.list(out, ('{', '}'), items, depth)
            }
            ValueKind::Number if !value.is_integer() => {
                let x: f64 = value.clone().try_into()?;
                let named = [("NaN", x.is_nan()), ("Infinity", x == f64::INFINITY), ("-Infinity", x == -f64::INFINITY)];
                let name = named.into_iter().find(|(_, is)| *is);
                out.push_str(&name.map_or_else(|| float(x), |(name, _)| name.to_owned()));
                Ok(())
            }
            _ => match value.as_str() {
                Some(text) => self.text(out, text),
                None => scalar(out, value),
            },
        }
    }

    fn list(
        &self,
        out: &mut String,
        (open, close): (char, char),
        items: Vec<(Option<String>, Value)>,
        depth: usize,
    ) -> Result<(), Error> {
        let line = |out: &mut String, depth: usize| {
            if let Some(indent) = self.indent {
                let blanks = indent.saturating_mul(depth);
                bounded(out, blanks)?;
                out.push('\n');
                out.extend(std::iter::repeat_n(' ', blanks));
            }
            Ok::<_, Error>(())
        };
        bounded(out, 2)?;
        out.push(open);
        let empty = items.is_empty();
        for (number, (key, item)) in items.into_iter().enumerate() {
            if number > 0 {
                out.push_str(&self.comma);
            }
            line(out, depth.saturating_add(1))?;
            if let Some(key) = key {
                self.text(out, &key)?;
                out.push_str(&self.colon);
            }
            self.write(out, &item, depth.saturating_add(1))?;
        }
        if !empty {
            line(out, depth)?;
        }
        out.push(close);
        Ok(())
    }

    fn text(&self, out: &mut String, text: &str) -> Result<(), Error> {
        if !self.ascii {
            return scalar(out, text);
        }
        let mut written = String::new();
        scalar(&mut written, text)?;
        for c in written.chars() {
            if matches!(c, ' '..='~') {
                out.push(c);
            } else {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    write!(out, "\\u{unit:04x}").map_err(|_| refused("tojson"))?;
                }
            }
        }
        Ok(())
    }
}

/// What JSON's own writer writes as Python's does.
fn scalar(out: &mut String, value: impl serde::Serialize) -> Result<(), Error> {
    let text = serde_json::to_string(&value);
    out.push_str(&text.map_err(|error| Error::new(ErrorKind::BadSerialization, error.to_string()))?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use minijinja::context;
    use minijinja::value::Serde;
    use serde_json::json;

    use super::super::environment;

    #[test]
    fn values_are_written_as_python_dumps_them() {
        let environment = environment();
        let value =
            json!({"b": [1, 1e-5, true, null, "é<b>'\n/\u{7f}"], "a": {}, "c": [], "d": {"z": "😀", "y": 1e16}});
        for (options, written) in [
            (
                "",
                "{\"a\": {}, \"b\": [1, 1e-05, true, null, \"é<b>'\\n/\u{7f}\"], \"c\": [], \"d\": {\"y\": 1e+16, \"z\": \"😀\"}}",
            ),
            (
                "(ensure_ascii=true, separators=(',', ':'), sort_keys=true)",
                r#"{"a":{},"b":[1,1e-05,true,null,"\u00e9<b>'\n/\u007f"],"c":[],"d":{"y":1e+16,"z":"\ud83d\ude00"}}"#,
            ),
        ] {
            let source = format!("{{{{ v | tojson{options} }}}}");
            assert_eq!(environment.render_str(&source, context! { v => Serde(&value) }).unwrap(), written);
        }
        let lines =
            environment.render_str("{{ v | tojson(indent=2) }}", context! { v => Serde(json!({"a": [1], "b": {}})) });
        assert_eq!(lines.unwrap(), "{\n  \"a\": [\n    1\n  ],\n  \"b\": {}\n}");
        for wrong in ["default=1", "separators=','", "separators=(',',)"] {
            assert!(environment.render_str(&format!("{{{{ 1 | tojson({wrong}) }}}}"), ()).is_err(), "{wrong}");
        }
        assert!(
            environment.render_str("{{ [1] | tojson(indent=10 ** 12) }}", ()).is_err(),
            "more than there is memory"
        );
    }
}
