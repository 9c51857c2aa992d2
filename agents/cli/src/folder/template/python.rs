//! What of Python the published chat templates count on, as `transformers` gives it to them.

use std::time::SystemTime;

use minijinja::value::{Kwargs, Value, ValueKind};
use minijinja::{Error, ErrorKind, Output, State, escape_formatter, filters};
use time::OffsetDateTime;
use time::format_description::parse_strftime_owned;

use super::refused;

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
    let wrong = |error: &dyn std::fmt::Display| refused(format!("strftime_now({format:?}): {error}"));
    let description = parse_strftime_owned(format).map_err(|error| wrong(&error))?;
    at.format(&description).map_err(|error| wrong(&error))
}

/// A float as Python writes it: as short as it can be read back, with an exponent of two digits where it is large or
/// small.
pub(super) fn float(x: f64) -> String {
    if x.is_nan() {
        return "NaN".into();
    }
    if x.is_infinite() {
        return if x > 0.0 { "Infinity" } else { "-Infinity" }.into();
    }
    let shortest = format!("{x:e}");
    let (digits, exponent) = shortest.split_once('e').unwrap_or((&shortest, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (-4..16).contains(&exponent) {
        return format!("{x:?}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
}

/// Writes what an expression gives.
pub(super) fn print(out: &mut Output<'_>, state: &mut State<'_, '_>, value: &Value) -> Result<(), Error> {
    if value.kind() == ValueKind::Number && !value.is_integer() {
        let text = float(value.clone().try_into()?);
        return out.write_str(&text).map_err(|_| Error::new(ErrorKind::WriteFailure, "the text cannot be written"));
    }
    escape_formatter(out, state, value)
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
    value.kind() == ValueKind::Plain && value.as_object().is_some()
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
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Infinity"),
        ] {
            assert_eq!(float(x), written);
        }
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
