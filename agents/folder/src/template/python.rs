//! What of Python the published chat templates count on, as `transformers` gives it to them.

use std::fmt::Write;
use std::time::SystemTime;

use minijinja::value::{Kwargs, Value, ValueKind};
use minijinja::{Error, ErrorKind, Output, State, escape_formatter, filters};
use time::OffsetDateTime;
use time::format_description::parse_strftime_owned;

use super::{bounded, refused};

/// Deepest value that is written out.
const DEEPEST: usize = 64;

/// `strftime_now(format)`: the time by this machine's clock, in UTC.
pub(super) fn strftime_now(format: &str) -> Result<String, Error> {
    strftime(OffsetDateTime::from(SystemTime::now()), format)
}

fn strftime(at: OffsetDateTime, format: &str) -> Result<String, Error> {
    let wrong = |error: &dyn std::fmt::Display| refused(format!("strftime_now({format:?}): {error}"));
    let description = parse_strftime_owned(format).map_err(|error| wrong(&error))?;
    at.format(&description).map_err(|error| wrong(&error))
}

/// A float as Python writes it: as short as it can be read back, with an exponent of two digits where it is large or
/// small.
pub(super) fn float(x: f64) -> String {
    if !x.is_finite() {
        return if x.is_nan() { "nan" } else { ["inf", "-inf"][usize::from(x < 0.0)] }.into();
    }
    let shortest = format!("{x:e}");
    let (digits, exponent) = shortest.split_once('e').unwrap_or((&shortest, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (-4..16).contains(&exponent) {
        return format!("{x:?}");
    }
    format!("{digits}e{}", exponent_of(exponent))
}

/// An exponent as C and Python write it.
pub(super) fn exponent_of(exponent: i32) -> String {
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{sign}{:02}", exponent.unsigned_abs())
}

/// A value as Python's `str` has it.
pub(super) fn text(value: &Value) -> Result<String, Error> {
    let mut out = String::new();
    match value.as_str() {
        Some(text) => out.push_str(text),
        None if value.is_undefined() => {}
        None => written(&mut out, value, 0)?,
    }
    Ok(out)
}

/// A value as Python's `repr` has it.
pub(super) fn representation(value: &Value) -> Result<String, Error> {
    let mut out = String::new();
    written(&mut out, value, 0)?;
    Ok(out)
}

fn written(out: &mut String, value: &Value, depth: usize) -> Result<(), Error> {
    if depth > DEEPEST {
        return Err(refused(format!("a value of more than {DEEPEST} levels")));
    }
    let deeper = depth.saturating_add(1);
    let (open, close) = match value.kind() {
        ValueKind::Map if is_macro(value) => {
            write!(out, "<Macro {}>", quoted(&text(&value.get_attr("name")?)?))
                .map_err(|_| refused("a macro's name"))?;
            return Ok(());
        }
        ValueKind::Map => ('{', '}'),
        ValueKind::Seq if value.is_tuple() => ('(', ')'),
        ValueKind::Seq | ValueKind::Iterable if value.len().is_some() => ('[', ']'),
        kind => {
            let text = match value.as_str() {
                Some(text) => quoted(text),
                None if kind == ValueKind::Undefined => "Undefined".into(),
                None if kind == ValueKind::Number && !value.is_integer() => float(value.clone().try_into()?),
                None => value.to_string(),
            };
            bounded(out, text.len())?;
            out.push_str(&text);
            return Ok(());
        }
    };
    bounded(out, 2)?;
    out.push(open);
    for (place, item) in value.try_iter()?.enumerate() {
        if place > 0 {
            out.push_str(", ");
        }
        written(out, &item, deeper)?;
        if open == '{' {
            out.push_str(": ");
            written(out, &value.get_item(&item)?, deeper)?;
        }
    }
    if open == '(' && value.len() == Some(1) {
        out.push(',');
    }
    out.push(close);
    Ok(())
}

/// A text in quotes, with escapes for what cannot be seen.
fn quoted(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut out = String::with_capacity(text.len().saturating_add(2));
    out.push(quote);
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            _ if c == quote || c == '\\' => out.extend(['\\', c]),
            ' '..='~' => out.push(c),
            _ if visible(c) => out.push(c),
            _ => out.push_str(&escape(c)),
        }
    }
    out.push(quote);
    out
}

/// Python's escape of a character.
pub(super) fn escape(c: char) -> String {
    match u32::from(c) {
        code @ ..=0xff => format!("\\x{code:02x}"),
        code @ ..=0xffff => format!("\\u{code:04x}"),
        code => format!("\\U{code:08x}"),
    }
}

/// Whether a character is seen on its own or on the one before it.
fn visible(c: char) -> bool {
    let mut both = String::from("a");
    both.push(c);
    both.escape_debug().nth(1) == Some(c)
}

/// Writes what an expression gives.
pub(super) fn print(out: &mut Output<'_>, state: &mut State<'_, '_>, value: &Value) -> Result<(), Error> {
    match value.kind() {
        ValueKind::Number | ValueKind::Seq | ValueKind::Map | ValueKind::Iterable => {
            let unwritten = |_| Error::new(ErrorKind::WriteFailure, "the text cannot be written");
            out.write_str(&text(value)?).map_err(unwritten)
        }
        _ => escape_formatter(out, state, value),
    }
}

/// `int`, which gives its default for what is no number.
pub(super) fn int(
    state: &State<'_, '_>,
    value: &Value,
    default: Option<Value>,
    base: Option<u32>,
    options: Kwargs,
) -> Result<Value, Error> {
    let default = default.or(options.get("default")?).unwrap_or_else(|| 0.into());
    filters::int(state, value, Some(default), base, options)
}

/// `float`, which does so too.
pub(super) fn to_float(
    state: &State<'_, '_>,
    value: &Value,
    default: Option<Value>,
    options: Kwargs,
) -> Result<Value, Error> {
    let default = default.or(options.get("default")?).unwrap_or_else(|| 0.0.into());
    filters::float(state, value, Some(default), options)
}

/// `is sequence`: what has a length and elements, as texts and tables have.
pub(super) fn is_sequence(value: &Value) -> bool {
    matches!(value.kind(), ValueKind::Seq | ValueKind::Map | ValueKind::String)
}

/// `is callable`: functions and macros.
pub(super) fn is_callable(value: &Value) -> bool {
    value.kind() == ValueKind::Plain && value.as_object().is_some() || is_macro(value)
}

/// Whether it is a macro, which the engine has as a table of three entries.
fn is_macro(value: &Value) -> bool {
    value.kind() == ValueKind::Map && value.len() == Some(3) && value.to_string().starts_with("<macro ")
}

#[cfg(test)]
mod tests {
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
    fn floats_are_written_as_python_writes_them() {
        for (x, written) in [
            (0.0, "0.0"),
            (-100.5, "-100.5"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (123_456_789_012_345_678.0, "1.2345678901234568e+17"),
            (1e100, "1e+100"),
            (1e-4, "0.0001"),
            (1e-5, "1e-05"),
            (-2.5e-10, "-2.5e-10"),
            (f64::NAN, "nan"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            assert_eq!(float(x), written);
        }
    }
}
