//! Methods of Python's values that published chat templates call and minijinja does not know.

use minijinja::value::{Kwargs, Tuple, Value, ValueKind, from_args};
use minijinja::{Error, State};
use minijinja_contrib::pycompat::unknown_method_callback;

use super::{bounded, refused};

/// Widest text that is made by padding.
const WIDEST: usize = 1 << 16;
/// What ends lines.
const ENDS: [char; 10] = ['\n', '\r', '\u{b}', '\u{c}', '\u{1c}', '\u{1d}', '\u{1e}', '\u{85}', '\u{2028}', '\u{2029}'];

/// A method that is not the template language's own.
pub(super) fn call(state: &mut State<'_, '_>, value: &Value, method: &str, args: &[Value]) -> Result<Value, Error> {
    let found = match (value.kind(), value.as_str()) {
        (_, Some(text)) => text_method(text, method, args)?,
        (ValueKind::Seq, None) if method == "index" => Some(place(value, args)?),
        (ValueKind::Map, None) if method == "copy" => {
            let () = from_args(args)?;
            Some(value.clone())
        }
        _ => None,
    };
    found.map_or_else(|| unknown_method_callback(state, value, method, args), Ok)
}

/// Where in a list an element stands first.
fn place(list: &Value, args: &[Value]) -> Result<Value, Error> {
    let (what,): (&Value,) = from_args(args)?;
    let found = list.try_iter()?.position(|item| item == *what);
    found.map(Value::from).ok_or_else(|| refused(format!("{what} is not in the list")))
}

fn text_method(text: &str, method: &str, args: &[Value]) -> Result<Option<Value>, Error> {
    let value = match method {
        "rsplit" => {
            let (separator, most): (Option<&str>, Option<i64>) = from_args(args)?;
            let most =
                most.and_then(|most| usize::try_from(most).ok()).map_or(usize::MAX, |most| most.saturating_add(1));
            let mut parts: Vec<&str> = match separator {
                Some("") => return Err(refused("rsplit: empty separator")),
                Some(separator) => text.rsplitn(most, separator).collect(),
                None => by_whitespace(text, most),
            };
            parts.reverse();
            parts.into_iter().map(Value::from).collect()
        }
        "partition" | "rpartition" => {
            let (separator,): (&str,) = from_args(args)?;
            let last = method == "rpartition";
            let found = if last { text.rsplit_once(separator) } else { text.split_once(separator) };
            let parts = match found {
                _ if separator.is_empty() => return Err(refused(format!("{method}: empty separator"))),
                Some((before, after)) => [before, separator, after],
                None if last => ["", "", text],
                None => [text, "", ""],
            };
            Value::from(Tuple::from(parts.map(Value::from)))
        }
        "index" | "rindex" => {
            let (what,): (&str,) = from_args(args)?;
            let found = if method == "index" { text.find(what) } else { text.rfind(what) };
            let before = found.and_then(|at| text.get(..at)).ok_or_else(|| refused("substring not found"))?;
            before.chars().count().into()
        }
        "splitlines" => {
            let (whole,): (Option<bool>,) = from_args(args)?;
            lines(text).map(|(line, end)| format!("{line}{}", if whole == Some(true) { end } else { "" })).collect()
        }
        "removeprefix" => {
            let (prefix,): (&str,) = from_args(args)?;
            text.strip_prefix(prefix).unwrap_or(text).into()
        }
        "removesuffix" => {
            let (suffix,): (&str,) = from_args(args)?;
            text.strip_suffix(suffix).unwrap_or(text).into()
        }
        "ljust" | "rjust" | "center" => {
            let (width, fill): (usize, Option<char>) = from_args(args)?;
            let missing = missing(text, width)?;
            let left = match method {
                "ljust" => 0,
                "rjust" => missing,
                // The odd one stands where Python has it.
                _ => missing / 2 + (missing & width & 1),
            };
            padded(text, [left, missing.saturating_sub(left)], fill.unwrap_or(' ')).into()
        }
        "zfill" => {
            let (width,): (usize,) = from_args(args)?;
            let sign = text.get(..1).filter(|sign| matches!(*sign, "+" | "-")).unwrap_or_default();
            let digits = text.strip_prefix(sign).unwrap_or(text);
            format!("{sign}{}", padded(digits, [missing(text, width)?, 0], '0')).into()
        }
        "title" => {
            let () = from_args(args)?;
            titled(text).into()
        }
        "swapcase" => {
            let () = from_args(args)?;
            let swapped =
                |c: char| if c.is_uppercase() { c.to_lowercase().to_string() } else { c.to_uppercase().to_string() };
            text.chars().map(swapped).collect::<String>().into()
        }
        _ => return Ok(None),
    };
    Ok(Some(value))
}

/// Lines, each with what ends it.
fn lines(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (line, after) = rest.split_at(rest.find(ENDS).unwrap_or(rest.len()));
        let length = if after.starts_with("\r\n") { 2 } else { after.chars().next().map_or(0, char::len_utf8) };
        let (end, next) = after.split_at(length);
        rest = next;
        Some((line, end))
    })
}

/// `indent`: blanks, or a text, before every line but the first, and but empty ones.
pub(super) fn indent(
    text: &str,
    width: Option<Value>,
    first: Option<bool>,
    blank: Option<bool>,
    options: Kwargs,
) -> Result<String, Error> {
    let width = width.or(options.get("width")?).unwrap_or_else(|| 4.into());
    let first = first.or(options.get("first")?).unwrap_or(false);
    let blank = blank.or(options.get("blank")?).unwrap_or(false);
    options.assert_all_used()?;
    let indention = match width.as_str() {
        Some(text) => text.to_owned(),
        None => padded("", [missing("", width.try_into()?)?, 0], ' '),
    };
    // An empty line at the end is a line, too.
    let text = format!("{text}\n");
    let mut out = String::new();
    for (number, (line, _)) in lines(&text).enumerate() {
        bounded(&out, indention.len().saturating_add(line.len()))?;
        if number > 0 {
            out.push('\n');
        }
        if if number == 0 { first } else { blank || !line.is_empty() } {
            out.push_str(&indention);
        }
        out.push_str(line);
    }
    Ok(out)
}

/// Words from the last one back, at most so many parts; the last part is what is before them.
fn by_whitespace(text: &str, most: usize) -> Vec<&str> {
    let (mut parts, mut rest) = (Vec::new(), text.trim_end());
    while !rest.is_empty() {
        let word = rest.rfind(char::is_whitespace).filter(|_| parts.len().saturating_add(1) < most);
        let blank = word.and_then(|at| rest.get(at..)?.chars().next()).map_or(0, char::len_utf8);
        let (before, after) = rest.split_at(word.map_or(0, |at| at.saturating_add(blank)));
        parts.push(after);
        rest = before.trim_end();
    }
    parts
}

/// Characters that a text lacks of a width.
fn missing(text: &str, width: usize) -> Result<usize, Error> {
    if width > WIDEST {
        return Err(refused(format!("a text of {width} characters, more than {WIDEST}")));
    }
    Ok(width.saturating_sub(text.chars().count()))
}

fn padded(text: &str, [left, right]: [usize; 2], fill: char) -> String {
    let run = |count| std::iter::repeat_n(fill, count);
    run(left).chain(text.chars()).chain(run(right)).collect()
}

/// Every word with a large first letter; words are runs of letters.
fn titled(text: &str) -> String {
    let mut within = false;
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if within {
            out.extend(c.to_lowercase());
        } else {
            out.extend(c.to_uppercase());
        }
        within = c.is_alphabetic();
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::environment;

    /// What Python gives.
    #[test]
    fn methods_give_what_those_of_python_give() {
        for (source, given) in [
            ("' a b  c '.rsplit(), ' a b  c '.rsplit(none, 1)", "(['a', 'b', 'c'], [' a b', 'c'])"),
            ("''.rsplit(), 'a-b-c'.rsplit('-', 1), ' a b '.rsplit(none, 0)", "([], ['a-b', 'c'], [' a b'])"),
            ("'abc'.partition('x'), 'abc'.rpartition('x')", "(('abc', '', ''), ('', '', 'abc'))"),
            ("'a-b-c'.partition('-'), 'a-b-c'.rpartition('-')", "(('a', '-', 'b-c'), ('a-b', '-', 'c'))"),
            ("'ab'.center(5), 'abc'.center(6), 'a'.center(4)", "('  ab ', ' abc  ', ' a  ')"),
            ("'é'.ljust(3, '*'), 'é'.rjust(3), 'é'.rjust(0)", "('é**', '  é', 'é')"),
            ("'-7'.zfill(4), '+é'.zfill(4), '12'.zfill(1)", "('-007', '+00é', '12')"),
            ("\"they're BILL's x1y\".title(), 'aBß'.swapcase()", "(\"They'Re Bill'S X1Y\", 'AbSS')"),
            ("'abcabc'.rindex('b'), 'éb'.index('b'), [1, 'a'].index('a')", "(4, 1, 1)"),
            ("'ab'.removeprefix('a'), 'ab'.removeprefix('b'), 'ab'.removesuffix('b')", "('b', 'ab', 'a')"),
            (
                "'a\\r\\nb\\rc\\x85d\\n'.splitlines(), 'a\\n\\nb'.splitlines(true)",
                "(['a', 'b', 'c', 'd'], ['a\\n', '\\n', 'b'])",
            ),
            ("'a\\n b\\n' | indent(2, first=true), 'a\\n\\nb' | indent('> ')", "('  a\\n   b\\n', 'a\\n\\n> b')"),
            ("'x' | int, 'x' | int(5), '3.7' | int, 'ff' | int(0, 16), 'x' | float", "(0, 5, 3, 255, 0.0)"),
            ("'abc' is sequence, {} is sequence, 1 is sequence", "(True, True, False)"),
            ("range is callable, 1 is callable, {'a': 1}.copy()", "(True, False, {'a': 1})"),
        ] {
            assert_eq!(environment().render_str(&format!("{{{{ ({source}) }}}}"), ()).unwrap(), given, "{source}");
        }
        for wrong in [
            "'a'.index('b')",
            "[].index(1)",
            "'a'.rsplit('')",
            "'a'.ljust(10 ** 9)",
            "'a'.nothing()",
            "('\\n' * 9999) | indent(9999, blank=true)",
        ] {
            assert!(environment().render_str(&format!("{{{{ {wrong} }}}}"), ()).is_err(), "{wrong}");
        }
    }
}
