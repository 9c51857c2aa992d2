//! The tags of a template, and what stands in them.

/// Words that no value can have as its name.
const WORDS: [&str; 7] = ["and", "else", "if", "in", "is", "not", "or"];
/// Marks of two characters.
const PAIRS: [&str; 6] = ["**", "//", "==", "!=", "<=", ">="];

/// What stands between `{{` and `}}`, or `{%` and `%}`.
pub(super) struct Tag<'a> {
    /// It is a `{% … %}`.
    pub(super) statement: bool,
    pub(super) tokens: Vec<Token<'a>>,
    /// Where its end begins, with the control of whitespace; in bytes of the template.
    pub(super) end: usize,
}

#[derive(Clone, Copy)]
pub(super) struct Token<'a> {
    pub(super) kind: Kind,
    pub(super) text: &'a str,
    /// Where it begins, in bytes of the template.
    pub(super) at: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Name,
    /// A word of the language where values are expected.
    Word,
    /// A text or a number.
    Literal,
    Open,
    Close,
    /// An operator, or what parts expressions.
    Mark,
}

impl Token<'_> {
    /// Where it ends, in bytes of the template.
    pub(super) fn end(&self) -> usize {
        self.at.saturating_add(self.text.len())
    }
}

/// The tags of a template in their order, up to the first that never ends. Comments and raw parts have none.
pub(super) struct Tags<'a> {
    source: &'a str,
    at: usize,
}

impl<'a> Tags<'a> {
    pub(super) fn of(source: &'a str) -> Self {
        Self { source, at: 0 }
    }

    fn rest(&self) -> &'a str {
        self.source.get(self.at..).unwrap_or_default()
    }

    /// Goes to where `rest` begins, which is a tail of the template.
    fn go_to(&mut self, rest: &str) {
        self.at = self.source.len().saturating_sub(rest.len());
    }

    /// The tag that begins here; none if it does not end.
    fn tag(&mut self, statement: bool) -> Option<Tag<'a>> {
        let close = if statement { "%}" } else { "}}" };
        let (mut tokens, mut depth) = (Vec::new(), 0_usize);
        loop {
            let rest = self.rest().trim_start();
            self.go_to(rest);
            let end = rest.strip_prefix(['-', '+']).unwrap_or(rest).strip_prefix(close);
            if let Some(after) = end.filter(|_| depth == 0) {
                let end = self.at;
                self.go_to(after);
                return Some(Tag { statement, tokens, end });
            }
            let (kind, text) = token(rest, &tokens)?;
            match kind {
                Kind::Open => depth = depth.saturating_add(1),
                Kind::Close => depth = depth.saturating_sub(1),
                _ => {}
            }
            tokens.push(Token { kind, text, at: self.at });
            self.at = self.at.saturating_add(text.len());
        }
    }

    /// Goes into the tag that ends a raw part.
    fn pass_raw(&mut self) -> Option<()> {
        loop {
            let (_, tag) = self.rest().split_once("{%")?;
            self.go_to(tag);
            if tag.trim_start_matches(['-', '+']).trim_start().starts_with("endraw") {
                return Some(());
            }
        }
    }
}

impl<'a> Iterator for Tags<'a> {
    type Item = Tag<'a>;

    fn next(&mut self) -> Option<Tag<'a>> {
        loop {
            let mut places = self.rest().match_indices('{').filter_map(|(at, _)| self.rest().get(at..)?.get(1..));
            let tag = places.find(|after| after.starts_with(['{', '%', '#']))?;
            let inner = tag.get(1..)?;
            if tag.starts_with('#') {
                let (_, after) = inner.split_once("#}")?;
                self.go_to(after);
                continue;
            }
            self.go_to(inner.strip_prefix(['-', '+']).unwrap_or(inner));
            let found = self.tag(tag.starts_with('%'))?;
            if found.statement && matches!(found.tokens.as_slice(), [Token { text: "raw", .. }]) {
                self.pass_raw()?;
            }
            return Some(found);
        }
    }
}

/// The token that begins here, after others of its tag; none at the end, and in a text that does not end.
fn token<'a>(rest: &'a str, before: &[Token<'_>]) -> Option<(Kind, &'a str)> {
    let first = rest.chars().next()?;
    let part = |length: usize| rest.get(..length);
    let named = |c: char| c.is_alphanumeric() || c == '_';
    Some(match first {
        '\'' | '"' => (Kind::Literal, part(quoted(rest, first)?)?),
        '0'..='9' => (Kind::Literal, part(number(rest))?),
        _ if named(first) => {
            let text = part(rest.find(|c| !named(c)).unwrap_or(rest.len()))?;
            let word = WORDS.contains(&text) && !names_follow(before);
            (if word { Kind::Word } else { Kind::Name }, text)
        }
        '(' | '[' | '{' => (Kind::Open, part(1)?),
        ')' | ']' | '}' => (Kind::Close, part(1)?),
        _ => match PAIRS.iter().find(|pair| rest.starts_with(**pair)) {
            Some(pair) => (Kind::Mark, part(pair.len())?),
            None => (Kind::Mark, part(first.len_utf8())?),
        },
    })
}

/// Whether the next is the name of an attribute, a filter or a test, whatever it is called.
fn names_follow(before: &[Token<'_>]) -> bool {
    let before = match before {
        [before @ .., Token { text: "not", .. }] => before,
        _ => before,
    };
    let last = before.last().map(|last| (last.kind, last.text));
    matches!(last, Some((Kind::Mark, "." | "|") | (Kind::Word, "is")))
}

/// Bytes of a text in quotes, with both.
fn quoted(rest: &str, quote: char) -> Option<usize> {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == quote => return Some(at.saturating_add(1)),
            _ => {}
        }
    }
    None
}

/// Bytes of a number, of which we need to know no more than where it ends.
fn number(rest: &str) -> usize {
    let (mut length, mut last) = (0, '0');
    let mut following = rest.chars().peekable();
    while let Some(c) = following.next() {
        let digit = following.peek().is_some_and(char::is_ascii_digit);
        let within = match c {
            '.' => digit,
            '+' | '-' => digit && matches!(last, 'e' | 'E') && !rest.starts_with("0x"),
            _ => c.is_alphanumeric() || c == '_',
        };
        if !within {
            break;
        }
        (length, last) = (c.len_utf8().saturating_add(length), c);
    }
    length
}
