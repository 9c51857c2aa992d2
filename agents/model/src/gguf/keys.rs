//! The keys of a file's architecture, by name and type.

use serde_json::Value;

use super::container::{Gguf, Stored};
use super::error::GgufError;
use super::names::{EMBEDDING, HEAD};
use crate::family::Family;

/// Keys of an architecture that are read here, or change nothing.
const KNOWN: [&str; 29] = [
    "attention.causal",
    "attention.head_count",
    "attention.head_count_kv",
    "attention.key_length",
    "attention.layer_norm_epsilon",
    "attention.layer_norm_rms_epsilon",
    "attention.sliding_window",
    "attention.value_length",
    "block_count",
    "context_length",
    "embedding_length",
    "expert_count",
    "expert_used_count",
    "feed_forward_length",
    "pooling_type",
    "rope.dimension_count",
    "rope.freq_base",
    "rope.scale_linear",
    "rope.scaling.attn_factor",
    "rope.scaling.factor",
    "rope.scaling.finetuned",
    "rope.scaling.original_context_length",
    "rope.scaling.type",
    "rope.scaling.yarn_attn_factor",
    "rope.scaling.yarn_beta_fast",
    "rope.scaling.yarn_beta_slow",
    "tensor_data_layout",
    "use_parallel_residual",
    "vocab_size",
];

pub(crate) fn unsupported(key: String, value: &impl ToString, supported: &str) -> GgufError {
    GgufError::Unsupported { key, value: value.to_string(), supported: supported.to_owned() }
}

/// The keys of a file's architecture.
pub(crate) struct Keys<'f, 'a> {
    pub(crate) file: &'f Gguf<'a>,
    pub(crate) arch: &'a str,
    pub(crate) family: Family,
}

impl<'f, 'a> Keys<'f, 'a> {
    pub(super) fn of(file: &'f Gguf<'a>) -> Result<Self, GgufError> {
        let key = "general.architecture";
        let arch = file.text(key)?.ok_or_else(|| GgufError::Missing(key.to_owned()))?;
        match Family::ALL.into_iter().find(|family| family.manner().gguf == Some(arch)) {
            Some(family) => Ok(Self { file, arch, family }),
            None => Err(GgufError::Architecture(arch.to_owned())),
        }
    }

    pub(crate) fn name(&self, key: &str) -> String {
        format!("{}.{key}", self.arch)
    }

    pub(crate) fn whole(&self, key: &str) -> Result<Option<u64>, GgufError> {
        self.file.whole(&self.name(key))
    }

    pub(crate) fn needed(&self, key: &str) -> Result<u64, GgufError> {
        self.whole(key)?.ok_or_else(|| GgufError::Missing(self.name(key)))
    }

    pub(crate) fn epsilon(&self, key: &str) -> Result<f64, GgufError> {
        self.file.number(&self.name(key))?.ok_or_else(|| GgufError::Missing(self.name(key)))
    }

    /// Refuses a value that is said and is not one of those that change nothing.
    pub(crate) fn must(&self, key: &str, only: u64) -> Result<(), GgufError> {
        match self.whole(key)? {
            Some(value) if value != only => Err(unsupported(self.name(key), &value, &only.to_string())),
            _ => Ok(()),
        }
    }

    /// Refuses what would change the result and is not understood.
    pub(super) fn check(&self) -> Result<(), GgufError> {
        let own = |key: &&&str| key.strip_prefix(self.arch).is_some_and(|rest| rest.starts_with('.'));
        let more = self.family.manner().known_keys;
        for key in self.file.metadata.keys().filter(own) {
            if !KNOWN.iter().chain(more).any(|known| self.name(known) == **key) {
                return Err(GgufError::Unknown((*key).to_owned()));
            }
        }
        self.must("expert_count", 0)?;
        self.must("expert_used_count", 0)?;
        for key in ["rope.scale_linear", "rope.scaling.attn_factor", "rope.scaling.yarn_attn_factor"] {
            if let Some(value) = self.file.number(&self.name(key))?.filter(|value| *value != 1.0) {
                return Err(unsupported(self.name(key), &value, "1"));
            }
        }
        let causal = self.family.manner().decodes();
        let flags = [("attention.causal", causal), ("use_parallel_residual", false)];
        for (key, only) in flags {
            if let Some(value) = self.file.flag(&self.name(key))?.filter(|value| *value != only) {
                return Err(unsupported(self.name(key), &value, &only.to_string()));
            }
        }
        Ok(())
    }

    pub(crate) fn embedding(&self) -> Result<&'f Stored<'a>, GgufError> {
        self.file.tensors.get(EMBEDDING).ok_or_else(|| GgufError::Missing(EMBEDDING.to_owned()))
    }

    /// Whether the output weights are those of the embedding: there are none, or the same again.
    pub(crate) fn tied(&self) -> Result<bool, GgufError> {
        let embedding = self.embedding()?;
        Ok(self.file.tensors.get(HEAD).is_none_or(|head| head.dtype == embedding.dtype && head.data == embedding.data))
    }

    pub(crate) fn begins_and_ends(&self, fields: &mut Value) -> Result<(), GgufError> {
        let token = |name: &str| self.file.token(&format!("tokenizer.ggml.{name}_token_id"));
        let ends = [token("eos")?, token("eot")?, token("eom")?];
        let mut ends: Vec<u32> = ends.into_iter().flatten().collect();
        ends.sort_unstable();
        ends.dedup();
        if let Some(fields) = fields.as_object_mut() {
            fields.insert("bos_token_id".to_owned(), token("bos")?.into());
            fields.insert("eos_token_id".to_owned(), ends.into());
        }
        Ok(())
    }
}
