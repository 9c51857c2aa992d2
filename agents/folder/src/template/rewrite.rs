//! What of Jinja the template engine does not know, put into its own words before it reads a template.
//!
//! | the template says | the engine reads |
//! |---|---|
//! | `a % b` | `(a) \| __remainder(b)`, which also fills in texts, as Python does |
//! | a macro that speaks of `varargs` or `kwargs` | a macro that has them as parameters, behind `__collecting` |
//! | `{% generation %}`, which marks what is learnt from | `{% with %}`: it writes nothing, and scopes |
//!
//! No line moves, so errors tell the lines of the template.

use super::scan::{Kind, Tag, Tags, Token};

/// The filter behind `%`.
pub(super) const REMAINDER: &str = "__remainder";
/// The function that makes of a macro, and whether it has `varargs` and `kwargs`, one that collects arguments.
pub(super) const COLLECTING: &str = "__collecting";

/// So many bytes of the template become a text.
struct Edit {
    at: usize,
    bytes: usize,
    text: String,
}

/// A macro whose end is still to come.
struct Macro<'a> {
    name: &'a str,
    parameters: Vec<&'a str>,
    /// Where the parenthesis behind its parameters is.
    close: usize,
    varargs: bool,
    kwargs: bool,
}

#[derive(Default)]
struct Rewriting<'a> {
    edits: Vec<Edit>,
    macros: Vec<Macro<'a>>,
}

/// A template in the engine's words.
pub(super) fn rewritten(source: &str) -> String {
    let mut rewriting = Rewriting::default();
    for tag in Tags::of(source) {
        let tokens = match tag.tokens.split_first() {
            Some((first, rest)) if tag.statement => {
                rewriting.statement(&tag, first, rest);
                rest
            }
            _ => {
                rewriting.notice(&tag.tokens);
                &tag.tokens
            }
        };
        rewriting.remainders(tokens);
    }
    rewriting.applied_to(source)
}

impl<'a> Rewriting<'a> {
    fn edit(&mut self, at: usize, bytes: usize, text: impl Into<String>) {
        self.edits.push(Edit { at, bytes, text: text.into() });
    }

    fn applied_to(mut self, source: &str) -> String {
        // Of edits at one place, those made first come first.
        self.edits.sort_by_key(|edit| edit.at);
        let (mut out, mut done) = (String::with_capacity(source.len()), 0);
        for Edit { at, bytes, text } in self.edits {
            out.push_str(source.get(done..at).unwrap_or_default());
            out.push_str(&text);
            done = at.saturating_add(bytes);
        }
        out.push_str(source.get(done..).unwrap_or_default());
        out
    }

    fn statement(&mut self, tag: &Tag<'a>, first: &Token<'a>, rest: &[Token<'a>]) {
        match (first.text, rest) {
            ("generation", []) => self.edit(first.at, first.text.len(), "with"),
            ("endgeneration", []) => self.edit(first.at, first.text.len(), "endwith"),
            ("macro", [name, ..]) => return self.macros.extend(Macro::declared(name.text, rest)),
            ("endmacro", _) => self.end_macro(tag.end),
            _ => {}
        }
        self.notice(rest);
    }

    /// Macros that speak of what is collected for them, in a tag of theirs.
    fn notice(&mut self, tokens: &[Token<'a>]) {
        for (place, token) in tokens.iter().enumerate() {
            let attribute =
                tokens.get(..place).is_some_and(|before| before.last().is_some_and(|last| last.text == "."));
            let assigned = tokens.get(place.saturating_add(1)).is_some_and(|next| next.text == "=");
            if token.kind != Kind::Name || attribute || assigned {
                continue;
            }
            for open in self.macros.iter_mut().filter(|open| !open.parameters.contains(&token.text)) {
                open.varargs |= token.text == "varargs";
                open.kwargs |= token.text == "kwargs";
            }
        }
    }

    fn end_macro(&mut self, end: usize) {
        let Some(Macro { name, parameters, close, varargs, kwargs }) = self.macros.pop() else { return };
        if !(varargs || kwargs) {
            return;
        }
        let added = [("varargs", varargs), ("kwargs", kwargs)].into_iter().filter(|(_, has)| *has);
        let added: Vec<String> = added.map(|(name, _)| format!("{name}=none")).collect();
        let comma = if parameters.is_empty() { "" } else { ", " };
        self.edit(close, 0, format!("{comma}{}", added.join(", ")));
        self.edit(end, 0, format!("%}}{{% set {name} = {COLLECTING}({name}, {varargs}, {kwargs}) "));
    }

    /// Every `%` between values of a tag. It binds as `*` and `/` do, from the left: what it divides begins where the
    /// products begin.
    fn remainders(&mut self, tokens: &[Token<'a>]) {
        let mut products = vec![Product::default()];
        let mut end = 0;
        for token in tokens {
            let Some(product) = products.last_mut() else { return };
            match (token.kind, token.text) {
                (Kind::Name | Kind::Literal, _) => product.begin(token.at),
                (Kind::Open, _) => {
                    product.begin(token.at);
                    products.push(Product::default());
                }
                (Kind::Close, _) => {
                    self.close(products.pop(), end);
                }
                (Kind::Word, "is") | (Kind::Mark, "." | "|") => {}
                (Kind::Mark, "**") => product.awaits = true,
                (Kind::Mark, "-" | "+") if product.awaits => {
                    product.begin(token.at);
                    product.awaits = true;
                }
                (Kind::Mark, "*" | "/" | "//") => {
                    let start = product.start;
                    self.close(products.pop(), end);
                    products.push(Product { start, awaits: true, open: false });
                }
                (Kind::Mark, "%") => {
                    let start = product.start;
                    self.close(products.pop(), end);
                    if let Some(start) = start {
                        self.edit(start, 0, "(");
                        self.edit(token.at, 1, format!(") | {REMAINDER}("));
                    }
                    products.push(Product { start, awaits: true, open: start.is_some() });
                }
                (Kind::Word | Kind::Mark, _) => {
                    self.close(products.pop(), end);
                    products.push(Product::default());
                }
            }
            end = token.end();
        }
        while let Some(product) = products.pop() {
            self.close(Some(product), end);
        }
    }

    /// Ends what divides, if any, where the last token ended.
    fn close(&mut self, product: Option<Product>, end: usize) {
        if product.is_some_and(|product| product.open) {
            self.edit(end, 0, ")");
        }
    }
}

impl<'a> Macro<'a> {
    /// `NAME(PARAMETER, PARAMETER=DEFAULT …)`; none if it is not that.
    fn declared(name: &'a str, tokens: &[Token<'a>]) -> Option<Self> {
        let (mut depth, mut parameters) = (0_usize, Vec::new());
        for pair in tokens.windows(2) {
            let [before, token] = pair else { continue };
            match token.kind {
                Kind::Open => depth = depth.saturating_add(1),
                Kind::Close if depth == 1 => {
                    return Some(Self { name, parameters, close: token.at, varargs: false, kwargs: false });
                }
                Kind::Close => depth = depth.saturating_sub(1),
                Kind::Name if depth == 1 && matches!(before.text, "(" | ",") => parameters.push(token.text),
                _ => {}
            }
        }
        None
    }
}

/// Factors one after another, within one pair of brackets.
struct Product {
    /// Where they begin.
    start: Option<usize>,
    /// The next is a value.
    awaits: bool,
    /// The last one is what divides, and does not yet end.
    open: bool,
}

impl Default for Product {
    fn default() -> Self {
        Self { start: None, awaits: true, open: false }
    }
}

impl Product {
    fn begin(&mut self, at: usize) {
        self.start.get_or_insert(at);
        self.awaits = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remainders_take_what_binds_as_strongly_on_their_left() {
        for (source, made) in [
            ("{{ a % b }}", "{{ (a ) | __remainder( b) }}"),
            ("{{ a*b % -c.d('%')[1] ** 2 | f * e }}", "{{ (a*b ) | __remainder( -c.d('%')[1] ** 2 | f) * e }}"),
            ("{{ x+a%b%c~d }}", "{{ x+((a) | __remainder(b)) | __remainder(c)~d }}"),
            ("{{ (1 - 2 % 3) % 4 }}", "{{ ((1 - (2 ) | __remainder( 3)) ) | __remainder( 4) }}"),
            ("{%- if not a % 2 == 0 and b -%}", "{%- if not (a ) | __remainder( 2) == 0 and b -%}"),
            (
                "{% set x = {'a': [1e-5 % 2, '%d' % 3]} %}",
                "{% set x = {'a': [(1e-5 ) | __remainder( 2), ('%d' ) | __remainder( 3)]} %}",
            ),
            ("{{ f(*a, x=b is not none % 2, **c) }}", "{{ f(*a, x=(b is not none ) | __remainder( 2), **c) }}"),
            ("{{ a if b.in % 2 else c % 3}}", "{{ a if (b.in ) | __remainder( 2) else (c ) | __remainder( 3)}}"),
        ] {
            assert_eq!(rewritten(source), made);
        }
    }

    #[test]
    fn what_is_no_expression_stays() {
        for source in [
            "5 % 2 {# {{ 5 % 2 }} #} {%- raw %}{{ 5 % 2 }}{% generation %}{%- endraw -%} {{ '{{ a % b }}' }}",
            "{{ 'it\\'s %' }}{% if x %}{{ a",
            "{% generation",
            "{{ % }}",
            "{",
        ] {
            assert_eq!(rewritten(source), source);
        }
    }

    #[test]
    fn macros_that_collect_are_wrapped() {
        let source = "{%- macro f(a, b=g(1)) -%}{{ varargs }}{%- endmacro -%}";
        let made = "{%- macro f(a, b=g(1), varargs=none) -%}{{ varargs }}{%- endmacro %}\
                    {% set f = __collecting(f, true, false) -%}";
        assert_eq!(rewritten(source), made);
        for plain in ["a.varargs", "g(kwargs=a)", "'varargs'"] {
            let source = format!("{{% macro f(a) %}}{{{{ {plain} }}}}{{% endmacro %}}{{{{ kwargs }}}}");
            assert_eq!(rewritten(&source), source);
        }
        let own = "{% macro f(varargs) %}{{ varargs }}{% endmacro %}";
        assert_eq!(rewritten(own), own);
    }

    #[test]
    fn marks_of_what_is_generated_become_scopes() {
        let source = "a {%- generation -%} b {%- endgeneration %} c";
        assert_eq!(rewritten(source), "a {%- with -%} b {%- endwith %} c");
    }
}
