//! RoBERTa (Liu et al. 2019), also with the tokenizer of XLM (Conneau et al. 2019).

use super::Family;
use super::bert;
use super::manner::{Manner, PAIRS, TOKENS, Tokenizer};

pub(super) const MANNER: Manner = Manner {
    published: &[
        ("roberta", &["RobertaModel", "RobertaForMaskedLM", "RobertaForSequenceClassification"]),
        ("xlm-roberta", &["XLMRobertaModel", "XLMRobertaForMaskedLM", "XLMRobertaForSequenceClassification"]),
    ],
    read: |fields| bert::read(fields, Family::Roberta, true),
    gguf: None,
    prefixes: &["roberta.", ""],
    module,
    oldest_names: false,
    padding: 1,
    tokenizer: Tokenizer { files: &["sentencepiece.bpe.model", TOKENS, PAIRS], cut: "gpt-2", fairseq: true },
    ..bert::MANNER
};

/// The pooler stands with the classes.
fn module(module: &str) -> Option<String> {
    match module {
        "pooler" => Some("classifier.dense".to_owned()),
        "head" => Some("classifier.out_proj".to_owned()),
        _ => bert::module(module),
    }
}

/// Its tiny model.
#[cfg(any(test, feature = "fixture"))]
pub(super) mod tiny {
    use super::super::bert::tiny as bert;
    use super::super::tiny::{CONTEXT, Tiny};

    pub(in crate::family) fn folder(_: usize) -> Tiny {
        bert::written("roberta", "RobertaForMaskedLM", "roberta.", (CONTEXT + 2, 1))
    }
}
