//! Fuzzers: whatever a peer, a file or the chain says, its decoder answers and does not panic, and what it accepts
//! obeys the type's rules.
//!
//! Each target is a function of bytes here. `script/fuzz` runs it by libFuzzer, `cargo test` over its corpus.
//!
//! | module | what lives there |
//! |---|---|
//! | [`wire`] | frames, messages, adverts, manifests, receipts, events, native mode: what is decoded is encoded and decoded to the same |
//! | [`files`] | tensors, programs, operators |
//! | [`models`] | plans, weights, GGUF files, configurations, tables |
//! | [`games`] | challenges: events folded, both players' moves |
//! | [`folders`], [`tokenizers`], [`templates`] | published folders: their JSON files, what tokenizers are made of, chat templates |
//! | [`trees`] | another's tree as it is answered; openings |
//! | [`proofs`] | proofs that convict, with bytes changed |
//! | `feed` | numbers out of an input |

mod feed;
pub mod files;
pub mod folders;
pub mod games;
pub mod models;
pub mod proofs;
pub mod templates;
pub mod tokenizers;
pub mod trees;
pub mod wire;

/// A target: its name, and what it does with an input. It panics where a rule is broken.
pub type Target = (&'static str, fn(&[u8]));

/// Every target. Each has a folder in `corpus`.
pub const TARGETS: [Target; 23] = [
    ("config", models::config),
    ("events", wire::events),
    ("files", files::files),
    ("folder", folders::folder),
    ("frame", wire::frame),
    ("game", games::game),
    ("gguf", models::gguf),
    ("gguf_tokenizer", tokenizers::gguf_tokenizer),
    ("gossip", wire::gossip),
    ("known", trees::known),
    ("manifest", wire::manifest),
    ("native", wire::native),
    ("openings", trees::openings),
    ("operator", files::operator),
    ("plan", models::plan),
    ("program", files::program),
    ("proof", proofs::proof),
    ("receipts", wire::receipts),
    ("rpc", wire::rpc),
    ("sentencepiece", tokenizers::sentencepiece),
    ("table", models::table),
    ("template", templates::template),
    ("weights", models::weights),
];

/// A message as it is sent; nothing of what has no encoding.
pub fn wire_bytes<T: serde::Serialize>(message: &T) -> Vec<u8> {
    tensorlink_node::wire::encode("message", message).map(Into::into).unwrap_or_default()
}
