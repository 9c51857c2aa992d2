//! `%` between values: what is left of a division, and texts that are filled in as C's `printf` does, in Python's
//! manner.

use std::iter::Peekable;
use std::str::Chars;

use minijinja::value::{Kwargs, Rest, Tuple, Value, ValueKind};
use minijinja::{Error, State, context};

use super::python::{escape, exponent_of, representation, text};
use super::{bounded, refused};

/// Widest text, and most digits, that a conversion asks for.
const WIDEST: usize = 1 << 15;

/// `left % right`.
pub(super) fn remainder(state: &State<'_, '_>, left: &Value, right: &Value) -> Result<Value, Error> {
    match left.as_str() {
        Some(format) => filled(format, right).map(Value::from),
        None => state.env().compile_expression("left % right")?.eval(context! { left, right }),
    }
}

/// The filter `format`: the same, with its arguments on the right.
pub(super) fn format(template: &Value, values: Rest<Value>, named: Kwargs) -> Result<String, Error> {
    let format = text(template)?;
    let names: Vec<String> = named.args().map(str::to_owned).collect();
    match (names.is_empty(), values.is_empty()) {
        (true, _) => filled(&format, &Value::from(Tuple::from(values.0))),
        (false, true) => {
            let pairs = names.iter().map(|name| Ok((name.as_str(), named.get::<Value>(name)?)));
            filled(&format, &Value::from_pairs(pairs.collect::<Result<Vec<_>, Error>>()?))
        }
        (false, false) => Err(refused("format: values by place, or by name")),
    }
}

/// How a value is written.
#[derive(Default)]
struct Conversion {
    left: bool,
    sign: Option<char>,
    other: bool,
    zeros: bool,
    width: usize,
    precision: Option<usize>,
}

/// What is filled in, and how much of it was.
struct Values<'a> {
    all: &'a Value,
    /// The elements of a tuple; none of anything else, which is one value.
    elements: Option<Vec<Value>>,
    taken: usize,
}

impl Values<'_> {
    fn next(&mut self) -> Result<Value, Error> {
        let next = match &self.elements {
            Some(elements) => elements.get(self.taken),
            None => Some(self.all).filter(|_| self.taken == 0),
        };
        self.taken = self.taken.saturating_add(1);
        next.cloned().ok_or_else(|| refused("not enough arguments for format string"))
    }

    /// A width that is one of the values.
    fn number(&mut self) -> Result<i64, Error> {
        let value = self.next()?;
        Some(&value).filter(|value| value.is_integer()).and_then(Value::as_i64).ok_or_else(|| refused("* wants int"))
    }

    fn named(&self, name: &str) -> Result<Value, Error> {
        if self.all.kind() != ValueKind::Map {
            return Err(refused("format requires a mapping"));
        }
        let value = self.all.get_item(&name.into())?;
        if value.is_undefined() { Err(refused(format!("no '{name}' to fill in"))) } else { Ok(value) }
    }

    /// Whether Python minds what was not filled in.
    fn left_over(&self) -> bool {
        match &self.elements {
            Some(elements) => self.taken < elements.len(),
            None => {
                let subscripted = !matches!(self.all.kind(), ValueKind::None | ValueKind::Bool | ValueKind::Number);
                self.taken == 0 && (!subscripted || self.all.as_str().is_some())
            }
        }
    }
}

/// A text with values filled in: the elements of a tuple, a table's by name, or one.
fn filled(format: &str, right: &Value) -> Result<String, Error> {
    let elements = right.is_tuple().then(|| right.try_iter().map(Iterator::collect)).transpose()?;
    let mut values = Values { all: right, elements, taken: 0 };
    let (mut out, mut rest) = (String::new(), format.chars().peekable());
    while let Some(c) = rest.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let name = name(&mut rest)?;
        let given = name.map(|name| values.named(&name)).transpose()?;
        if given.is_some() {
            // Python forgets the table then.
            values.taken = 1;
        }
        let conversion = Conversion::read(&mut rest, &mut values)?;
        let letter = rest.next().ok_or_else(|| refused("incomplete format"))?;
        if letter == '%' {
            out.push('%');
            continue;
        }
        let value = given.map_or_else(|| values.next(), Ok)?;
        let made = conversion.written(letter, &value)?;
        bounded(&out, made.len())?;
        out.push_str(&made);
    }
    if values.left_over() {
        return Err(refused("not all arguments converted during string formatting"));
    }
    Ok(out)
}

/// The name in parentheses, if there is one.
fn name(rest: &mut Peekable<Chars<'_>>) -> Result<Option<String>, Error> {
    if rest.next_if_eq(&'(').is_none() {
        return Ok(None);
    }
    let (mut depth, mut name) = (1_usize, String::new());
    for c in rest {
        match c {
            '(' => depth = depth.saturating_add(1),
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return Ok(Some(name));
        }
        name.push(c);
    }
    Err(refused("incomplete format key"))
}

/// A number in digits; none are 0.
fn digits(rest: &mut Peekable<Chars<'_>>) -> Result<usize, Error> {
    let mut number = 0_usize;
    while let Some(digit) = rest.peek().and_then(|c| c.to_digit(10)) {
        number = number.saturating_mul(10).saturating_add(digit as usize);
        rest.next();
    }
    within(number)
}

fn within(number: usize) -> Result<usize, Error> {
    if number > WIDEST {
        return Err(refused(format!("a text of {number} characters, more than {WIDEST}")));
    }
    Ok(number)
}

impl Conversion {
    fn read(rest: &mut Peekable<Chars<'_>>, values: &mut Values<'_>) -> Result<Self, Error> {
        let mut read = Self::default();
        while let Some(flag) = rest.next_if(|c| "-+ #0".contains(*c)) {
            match flag {
                '-' => read.left = true,
                '+' => read.sign = Some('+'),
                ' ' => read.sign = read.sign.or(Some(' ')),
                '#' => read.other = true,
                _ => read.zeros = true,
            }
        }
        if rest.next_if_eq(&'*').is_some() {
            let width = values.number()?;
            read.left |= width < 0;
            read.width = within(usize::try_from(width.unsigned_abs()).unwrap_or(usize::MAX))?;
        } else {
            read.width = digits(rest)?;
        }
        if rest.next_if_eq(&'.').is_some() {
            let starred = rest.next_if_eq(&'*').is_some();
            let precision = if starred {
                within(usize::try_from(values.number()?.max(0)).unwrap_or(usize::MAX))?
            } else {
                digits(rest)?
            };
            read.precision = Some(precision);
        }
        rest.next_if(|c| "hlL".contains(*c));
        Ok(read)
    }

    fn written(&self, letter: char, value: &Value) -> Result<String, Error> {
        match letter {
            's' => Ok(self.text(&text(value)?)),
            'r' => Ok(self.text(&representation(value)?)),
            'a' => {
                let seen = |c: char| if c.is_ascii() { c.to_string() } else { escape(c) };
                Ok(self.text(&representation(value)?.chars().map(seen).collect::<String>()))
            }
            'c' => Ok(Self { precision: None, ..*self }.text(&character(value)?)),
            'd' | 'i' | 'u' | 'o' | 'x' | 'X' => self.integer(letter, value),
            'e' | 'E' | 'f' | 'F' | 'g' | 'G' => self.float(letter, value),
            _ => Err(refused(format!("unsupported format character '{letter}'"))),
        }
    }

    fn text(&self, text: &str) -> String {
        let part: String = text.chars().take(self.precision.unwrap_or(usize::MAX)).collect();
        self.padded("", &part, ' ')
    }

    /// Widened: a sign stands before zeros, and after blanks.
    fn padded(&self, sign: &str, body: &str, fill: char) -> String {
        let written = sign.chars().count().saturating_add(body.chars().count());
        let missing = self.width.saturating_sub(written);
        let run = |c: char| c.to_string().repeat(missing);
        match (self.left, fill) {
            (true, _) => format!("{sign}{body}{}", run(' ')),
            (false, '0') => format!("{sign}{}{body}", run('0')),
            (false, _) => format!("{}{sign}{body}", run(' ')),
        }
    }

    fn signed(&self, negative: bool, prefix: &str, body: &str) -> String {
        let sign = if negative { Some('-') } else { self.sign };
        let sign: String = sign.into_iter().chain(prefix.chars()).collect();
        self.padded(&sign, body, if self.zeros { '0' } else { ' ' })
    }

    fn integer(&self, letter: char, value: &Value) -> Result<String, Error> {
        let whole = value.is_integer() || value.kind() == ValueKind::Bool;
        let decimal = matches!(letter, 'd' | 'i' | 'u');
        let number: i128 = match value.kind() {
            ValueKind::Bool => i128::from(value.is_true()),
            ValueKind::Number if whole => value.clone().try_into()?,
            ValueKind::Number if decimal => truncated(value.clone().try_into()?)?,
            kind => return Err(refused(format!("%{letter} format: a number is required, not {kind}"))),
        };
        let size = number.unsigned_abs();
        let (prefix, digits) = match letter {
            'o' => ("0o", format!("{size:o}")),
            'x' => ("0x", format!("{size:x}")),
            'X' => ("0X", format!("{size:X}")),
            _ => ("", size.to_string()),
        };
        let zeros = "0".repeat(self.precision.unwrap_or(0).saturating_sub(digits.len()));
        let prefix = if self.other { prefix } else { "" };
        Ok(self.signed(number < 0, prefix, &format!("{zeros}{digits}")))
    }

    fn float(&self, letter: char, value: &Value) -> Result<String, Error> {
        let x: f64 = match value.kind() {
            ValueKind::Bool => f64::from(u8::from(value.is_true())),
            ValueKind::Number => value.clone().try_into()?,
            kind => return Err(refused(format!("must be real number, not {kind}"))),
        };
        let precision = self.precision.unwrap_or(6);
        let size = x.abs();
        let body = match letter.to_ascii_lowercase() {
            _ if x.is_nan() => "nan".into(),
            _ if x.is_infinite() => "inf".into(),
            'f' => self.pointed(format!("{size:.precision$}")),
            'e' => self.scientific(size, precision),
            _ => self.general(size, precision.max(1)),
        };
        let body = if letter.is_ascii_uppercase() { body.to_ascii_uppercase() } else { body };
        Ok(self.signed(x.is_sign_negative() && !x.is_nan(), "", &body))
    }

    /// With a point in any case, if that is asked for.
    fn pointed(&self, digits: String) -> String {
        if self.other && !digits.contains('.') { format!("{digits}.") } else { digits }
    }

    fn scientific(&self, x: f64, precision: usize) -> String {
        let (digits, exponent) = parts(x, precision);
        format!("{}e{}", self.pointed(digits), exponent_of(exponent))
    }

    /// The shorter one of both, without zeros at its end.
    fn general(&self, x: f64, precision: usize) -> String {
        let bare = |digits: String| match digits.contains('.') && !self.other {
            true => digits.trim_end_matches('0').trim_end_matches('.').to_owned(),
            false => self.pointed(digits),
        };
        let (digits, exponent) = parts(x, precision.saturating_sub(1));
        match usize::try_from(exponent) {
            Ok(before) if before >= precision => format!("{}e{}", bare(digits), exponent_of(exponent)),
            Err(_) if exponent < -4 => format!("{}e{}", bare(digits), exponent_of(exponent)),
            _ => {
                let after = i64::try_from(precision).unwrap_or_default() - 1 - i64::from(exponent);
                let after = usize::try_from(after).unwrap_or_default();
                bare(format!("{x:.after$}"))
            }
        }
    }
}

/// The digits of a float with one before the point, and its exponent.
fn parts(x: f64, precision: usize) -> (String, i32) {
    let written = format!("{x:.precision$e}");
    let (digits, exponent) = written.split_once('e').unwrap_or((&written, "0"));
    (digits.to_owned(), exponent.parse().unwrap_or_default())
}

/// A float without its fraction.
fn truncated(x: f64) -> Result<i128, Error> {
    // Beyond are integers of more digits than the template language has.
    if x.is_finite() && x.abs() < i128::MAX as f64 { Ok(x as i128) } else { Err(refused("%d format: not an integer")) }
}

fn character(value: &Value) -> Result<String, Error> {
    let code = || value.as_i64().and_then(|code| char::from_u32(u32::try_from(code).ok()?));
    match value.as_str() {
        Some(text) if text.chars().count() == 1 => Ok(text.to_owned()),
        None if value.is_integer() => code().map(String::from).ok_or_else(|| refused("%c arg not in range(0x110000)")),
        _ => Err(refused("%c requires int or char")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{environment, rewrite::rewritten};

    fn rendered(expression: &str) -> Result<String, minijinja::Error> {
        environment().render_str(&rewritten(&format!("{{{{ {expression} }}}}")), ())
    }

    /// What Python gives.
    #[test]
    fn texts_are_filled_in_as_python_fills_them_in() {
        for (expression, given) in [
            ("'%s|%r|%%' % ('é', \"it's\")", "é|\"it's\"|%"),
            ("'%s' % [1, 1e16, none, 'a']", "[1, 1e+16, None, 'a']"),
            ("'%5s|%-5s|%.2s|%5%' % ('a', 'b', 'cde')", "    a|b    |cd|%"),
            ("'%d|%i|%05d|%+d|% d|%-4d|%.3d' % (3.9, -3, 7, 7, 7, 7, 7)", "3|-3|00007|+7| 7|7   |007"),
            ("'%x|%X|%#x|%o|%#o|%#06x' % (255, 255, 255, 8, 8, -5)", "ff|FF|0xff|10|0o10|-0x005"),
            ("'%f|%.2f|%.0f|%#.0f|%07.2f|%+.1f' % (1.5, 2.675, 2.5, 2, -1.5, true)", "1.500000|2.67|2|2.|-001.50|+1.0"),
            ("'%e|%.2E|%.0e' % (12345.678, 0.00012, 5)", "1.234568e+04|1.20E-04|5e+00"),
            (
                "'%g|%g|%g|%G|%.3g|%#g' % (100000, 1e6, 0.0001, 1e-5, 3.14159, 1)",
                "100000|1e+06|0.0001|1E-05|3.14|1.00000",
            ),
            ("'%5.1f|%05f|%s' % ('inf' | float, '-inf' | float, 'nan' | float)", "  inf|-0inf|nan"),
            ("'%c%c|%a' % (65, 'é', 'é日😀')", "Aé|'\\xe9\\u65e5\\U0001f600'"),
            ("'%*d|%-*d|%.*f' % (4, 7, 4, 7, 1, 2.25)", "   7|7   |2.2"),
            ("'%(a)s %(b(c))03d %%' % {'a': 'x', 'b(c)': 5}", "x 005 %"),
            ("'%s' % undefined ~ '|' ~ '%r' % '\\u200b\\t'", "|'\\u200b\\t'"),
            ("'a' % [] ~ 'b' % {} ~ '%s' % 'c' * 2", "abcc"),
            ("7 % 4 ~ ' ' ~ -7 % 4 ~ ' ' ~ 7.5 % 2", "3 1 1.5"),
            ("'%s-%s' | format(1, 'b') ~ '%(a)d' | format(a=3)", "1-b3"),
            ("{'a': (1,), 'b': (), 1: [1.0]}", "{'a': (1,), 'b': (), 1: [1.0]}"),
        ] {
            assert_eq!(rendered(expression).unwrap(), given, "{expression}");
        }
    }

    #[test]
    fn what_python_refuses_is_refused() {
        for wrong in [
            "'%s %s' % 'a'",
            "'%s' % ('a', 'b')",
            "'a' % 'b'",
            "'a' % 1",
            "'%d' % 'a'",
            "'%x' % 1.5",
            "'%f' % 'a'",
            "'%y' % 1",
            "'%' % 1",
            "'%(a' % {}",
            "'%(a)s' % 1",
            "'%(a)s' % {}",
            "'%99999999999d' % 1",
            "'%.40000f' % 1",
            "'%*d' % ('a', 1)",
            "'%c' % 'ab'",
            "'%d' % ('inf' | float)",
            "'%s' | format(1, a=2)",
            "1 % 0",
            "[] % 2",
        ] {
            assert!(rendered(wrong).is_err(), "{wrong}");
        }
    }
}
