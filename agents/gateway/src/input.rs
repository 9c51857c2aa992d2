//! The four forms of `input`: a text, texts, a text in token ids, texts in token ids. Bounded while it is read.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, SeqAccess, Visitor};

use super::backend::Input;

/// Most texts of a request, as OpenAI has it.
pub const MAX_INPUTS: usize = 2048;

const EXPECTED: &str = "a string, an array of strings, an array of token ids, or an array of arrays of token ids";

/// 1 to [`MAX_INPUTS`] texts, none of them empty.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Inputs(pub Vec<Input>);

impl<'de> Deserialize<'de> for Inputs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(InputsVisitor)
    }
}

struct InputsVisitor;

impl<'de> Visitor<'de> for InputsVisitor {
    type Value = Inputs;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(EXPECTED)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Inputs, E> {
        if text.is_empty() {
            return Err(E::custom("input is an empty text: send at least one character"));
        }
        Ok(Inputs(vec![Input::Text(text.to_owned())]))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Inputs, A::Error> {
        let Some(first) = seq.next_element()? else {
            return Err(A::Error::custom("input is an empty array: send at least one text"));
        };
        let first = match first {
            Element::Token(first) => {
                let mut ids = vec![first];
                while let Some(Token(id)) = seq.next_element()? {
                    ids.push(id);
                }
                return Ok(Inputs(vec![Input::Tokens(ids)]));
            }
            Element::Whole(first) => first,
        };
        let texts = matches!(first, Input::Text(_));
        let mut inputs = vec![first];
        while inputs.len() < MAX_INPUTS {
            match seq.next_element()? {
                None => return Ok(Inputs(inputs)),
                Some(Element::Whole(input)) if matches!(input, Input::Text(_)) == texts => inputs.push(input),
                Some(_) => {
                    return Err(A::Error::custom(format_args!(
                        "input {} is of another kind than input 0",
                        inputs.len()
                    )));
                }
            }
        }
        let mut count = inputs.len();
        while seq.next_element::<IgnoredAny>()?.is_some() {
            count += 1;
        }
        if count > MAX_INPUTS {
            return Err(A::Error::custom(format_args!("{count} inputs: send at most {MAX_INPUTS} in one request")));
        }
        Ok(Inputs(inputs))
    }
}

/// An element of the outer array: a text, or a token id of the only text.
enum Element {
    Whole(Input),
    Token(u32),
}

impl<'de> Deserialize<'de> for Element {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ElementVisitor)
    }
}

struct ElementVisitor;

impl<'de> Visitor<'de> for ElementVisitor {
    type Value = Element;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a string, a token id, or an array of token ids")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Element, E> {
        if text.is_empty() {
            return Err(E::custom("a text is empty: leave it out"));
        }
        Ok(Element::Whole(Input::Text(text.to_owned())))
    }

    fn visit_u64<E: Error>(self, id: u64) -> Result<Element, E> {
        token(id).map(Element::Token)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Element, A::Error> {
        let mut ids = Vec::new();
        while let Some(Token(id)) = seq.next_element()? {
            ids.push(id);
        }
        if ids.is_empty() {
            return Err(A::Error::custom("an array of token ids is empty: leave it out"));
        }
        Ok(Element::Whole(Input::Tokens(ids)))
    }
}

struct Token(u32);

impl<'de> Deserialize<'de> for Token {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        token(u64::deserialize(deserializer)?).map(Token)
    }
}

fn token<E: Error>(id: u64) -> Result<u32, E> {
    u32::try_from(id).map_err(|_| E::custom(format_args!("{id} is no token id: they are below 2^32")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse(value: &serde_json::Value) -> Result<Vec<Input>, String> {
        serde_json::from_str(&value.to_string()).map(|Inputs(inputs)| inputs).map_err(|error| error.to_string())
    }

    #[test]
    fn four_forms() {
        let text = |text: &str| Input::Text(text.to_owned());
        assert_eq!(parse(&json!("a")), Ok(vec![text("a")]));
        assert_eq!(parse(&json!(["a", "b"])), Ok(vec![text("a"), text("b")]));
        assert_eq!(parse(&json!([1, 2, 4_294_967_295u32])), Ok(vec![Input::Tokens(vec![1, 2, u32::MAX])]));
        assert_eq!(parse(&json!([[1], [2, 3]])), Ok(vec![Input::Tokens(vec![1]), Input::Tokens(vec![2, 3])]));
    }

    #[test]
    fn anything_else_is_refused_in_words() {
        for (value, part) in [
            (json!(""), "empty text"),
            (json!([]), "empty array"),
            (json!(["a", ""]), "empty"),
            (json!([[]]), "empty"),
            (json!(["a", [1]]), "input 1 is of another kind"),
            (json!([["a"]]), "string \"a\", expected u64"),
            (json!([1, "a"]), "expected u64"),
            (json!(["a", 1]), "input 1 is of another kind"),
            (json!([-1]), "expected a string, a token id"),
            (json!([1.5]), "expected a string, a token id"),
            (json!([4_294_967_296u64]), "below 2^32"),
            (json!(null), "expected a string, an array of strings"),
            (json!({"text": "a"}), "expected a string, an array of strings"),
            (json!([null]), "expected a string, a token id"),
        ] {
            let error = parse(&value).unwrap_err();
            assert!(error.contains(part), "{value}: {error}");
        }
    }

    #[test]
    fn inputs_are_counted() {
        assert_eq!(parse(&json!(vec!["a"; MAX_INPUTS])).unwrap().len(), MAX_INPUTS);
        let error = parse(&json!(vec!["a"; MAX_INPUTS + 2])).unwrap_err();
        assert!(error.contains("2050 inputs") && error.contains("2048"), "{error}");
        // A single text of many tokens is not many texts.
        assert_eq!(parse(&json!(vec![1; MAX_INPUTS + 2])).unwrap().len(), 1);
    }
}
