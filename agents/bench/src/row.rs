//! What is measured together.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// A row of the table; `tensorlink bench` takes its name, and shows what is said of it here.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Row {
    /// A folder's model in integers against its floats, over sentences.
    Model,
    /// What decoders expect to follow, by integers and by floats, in each setting; untrained ones as well.
    Logits,
    /// Reading a text, against libtorch's floats.
    Prefill,
    /// The next token, against libtorch's floats; eight texts at once.
    Decode,
    /// Both against llama.cpp.
    Llamacpp,
    /// A training step, against libtorch's autograd; what commitments take of it, and audits.
    Train,
    /// Native mode, which is not provable: how far honest results of different devices are apart, and which cheats
    /// are further.
    Native,
    /// A token through two workers, against the engine alone and against one worker.
    Pipeline,
    /// What receipts and vouchers cost.
    Receipts,
    /// Memory of a worker against its weights.
    Memory,
    /// Gas of claims, vouchers and convictions.
    Gas,
}

impl Row {
    /// As it is typed.
    pub fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }
}
