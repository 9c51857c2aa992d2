//! Families of models: how the files of each name things, and what they leave unsaid.
//!
//! A family is a file here, with its `mod` and its line of the list below; `manner.rs` says what the file holds, and
//! `tiny.rs` what its tiny model is for. One of Llama's kind says only in what it differs.

mod bert;
mod gemma3;
mod gpt2;
mod llama;
mod manner;
mod mistral;
mod qwen2;
mod qwen3;
mod roberta;
#[cfg(any(test, feature = "fixture"))]
pub(crate) mod tiny;

use serde::{Deserialize, Serialize};

pub(crate) use self::manner::Manner;
pub use self::manner::{PAIRS, TOKENS, Tokenizer, WORDS};

macro_rules! families {
    ($($(#[$doc:meta])* $family:ident => $module:ident,)*) => {
        /// Whose conventions a model folder follows: how its files name things.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Family {
            $($(#[$doc])* $family,)*
        }

        impl Family {
            /// Every family.
            pub const ALL: [Self; [$(stringify!($family)),*].len()] = [$(Self::$family),*];

            pub(crate) const fn manner(self) -> &'static Manner {
                match self {
                    $(Self::$family => &$module::MANNER,)*
                }
            }

            /// Its tiny model, for tests; of as many layers where it can have more.
            #[cfg(any(test, feature = "fixture"))]
            pub(crate) fn tiny(self, layers: usize) -> tiny::Tiny {
                match self {
                    $(Self::$family => $module::tiny::folder(layers),)*
                }
            }
        }
    };
}

// Plans tell a family by its place: new ones come last.
families! {
    /// BERT and MiniLM.
    Bert => bert,
    /// RoBERTa.
    Roberta => roberta,
    /// GPT-2.
    Gpt2 => gpt2,
    /// Llama 2 and 3.
    Llama => llama,
    /// Mistral.
    Mistral => mistral,
    /// Qwen 2.
    Qwen2 => qwen2,
    /// Qwen 3.
    Qwen3 => qwen3,
    /// Gemma 3, its text.
    Gemma3 => gemma3,
}

impl Family {
    /// The token that texts are padded with, where a configuration does not say.
    pub const fn padding(self) -> u32 {
        self.manner().padding
    }

    /// What its tokenizer is made of where a folder has none.
    pub const fn tokenizer(self) -> &'static Tokenizer {
        &self.manner().tokenizer
    }
}

/// What GGUF files call the families that they tell apart, for messages.
pub(crate) fn in_gguf() -> String {
    let named: Vec<&str> = Family::ALL.into_iter().filter_map(|family| family.manner().gguf).collect();
    named.join(", ")
}
