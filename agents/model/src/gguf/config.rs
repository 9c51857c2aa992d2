//! The metadata of a file in the words of a Hugging Face folder's configuration, which [`describe`] then reads: what is
//! supported, and its bounds, are decided there alone.
//!
//! [`describe`]: super::super::describe

use serde_json::{Map, Value, json};

use super::super::architecture::{Family, Rotary, Scaling};
use super::super::config::{LOCAL_THETA, MAX_HEAD_WIDTH, stated};
use super::architectures::NAMES;
use super::container::{Gguf, Stored};
use super::error::GgufError;
use super::names::{EMBEDDING, HEAD};
use super::rotary::scaling;

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

/// The same of Gemma 3 alone.
const KNOWN_OF_GEMMA3: [&str; 4] =
    ["attention.sliding_window_pattern", "attn_logit_softcapping", "final_logit_softcapping", "rope.freq_base_swa"];
/// Every how many-th layer sees all, where a file of Gemma 3 does not say.
const GEMMA3_PERIOD: u64 = 6;
/// Layers of the one Gemma 3 whose scores are divided by the root of `width / heads`. Files do not say it; llama.cpp
/// knows it by the same number.
const GEMMA3_27B_LAYERS: u64 = 62;

/// `config.json` of the model in a file.
///
/// # Errors
/// A [`GgufError`] that names the key.
pub fn config(file: &Gguf<'_>) -> Result<Map<String, Value>, GgufError> {
    let keys = Keys::of(file)?;
    keys.check()?;
    let fields = match keys.family {
        Family::Gpt2 => keys.gpt2()?,
        Family::Bert => keys.bert()?,
        Family::Gemma3 => keys.gemma3()?,
        _ => keys.llama()?,
    };
    let (model_type, class) = stated(keys.family).ok_or_else(|| GgufError::Architecture(keys.arch.to_owned()))?;
    let shared = json!({
        "model_type": model_type,
        "architectures": [class],
        "vocab_size": keys.embedding()?.shape.first(),
        "pad_token_id": file.token("tokenizer.ggml.padding_token_id")?,
        "torch_dtype": "float32",
    });
    Ok([shared, fields].into_iter().filter_map(object).flatten().collect())
}

/// `1_Pooling/config.json` of a model that says how it makes one vector of a text.
///
/// # Errors
/// A [`GgufError`] that names the key.
pub fn pooling(file: &Gguf<'_>) -> Result<Option<Value>, GgufError> {
    let keys = Keys::of(file)?;
    let key = keys.name("pooling_type");
    let mode = match file.whole(&key)? {
        None | Some(0) => return Ok(None),
        Some(1) => "mean",
        Some(2) => "cls",
        Some(3) => "lasttoken",
        Some(other) => return Err(unsupported(key, &other, "1 (mean), 2 (first token) or 3 (last token)")),
    };
    Ok(Some(json!({ "pooling_mode": mode })))
}

fn object(value: Value) -> Option<Map<String, Value>> {
    match value {
        Value::Object(fields) => Some(fields),
        _ => None,
    }
}

fn unsupported(key: String, value: &impl ToString, supported: &str) -> GgufError {
    GgufError::Unsupported { key, value: value.to_string(), supported: supported.to_owned() }
}

/// The keys of a file's architecture.
struct Keys<'f, 'a> {
    file: &'f Gguf<'a>,
    arch: &'a str,
    family: Family,
}

impl<'f, 'a> Keys<'f, 'a> {
    fn of(file: &'f Gguf<'a>) -> Result<Self, GgufError> {
        let key = "general.architecture";
        let arch = file.text(key)?.ok_or_else(|| GgufError::Missing(key.to_owned()))?;
        match NAMES.iter().find(|(name, _)| *name == arch) {
            Some((_, family)) => Ok(Self { file, arch, family: *family }),
            None => Err(GgufError::Architecture(arch.to_owned())),
        }
    }

    fn name(&self, key: &str) -> String {
        format!("{}.{key}", self.arch)
    }

    fn whole(&self, key: &str) -> Result<Option<u64>, GgufError> {
        self.file.whole(&self.name(key))
    }

    fn needed(&self, key: &str) -> Result<u64, GgufError> {
        self.whole(key)?.ok_or_else(|| GgufError::Missing(self.name(key)))
    }

    fn epsilon(&self, key: &str) -> Result<f64, GgufError> {
        self.file.number(&self.name(key))?.ok_or_else(|| GgufError::Missing(self.name(key)))
    }

    /// Refuses a value that is said and is not one of those that change nothing.
    fn must(&self, key: &str, only: u64) -> Result<(), GgufError> {
        match self.whole(key)? {
            Some(value) if value != only => Err(unsupported(self.name(key), &value, &only.to_string())),
            _ => Ok(()),
        }
    }

    /// Refuses what would change the result and is not understood.
    fn check(&self) -> Result<(), GgufError> {
        let own = |key: &&&str| key.strip_prefix(self.arch).is_some_and(|rest| rest.starts_with('.'));
        let more: &[&str] = if self.family == Family::Gemma3 { &KNOWN_OF_GEMMA3 } else { &[] };
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
        let causal = self.family != Family::Bert;
        let flags = [("attention.causal", causal), ("use_parallel_residual", false)];
        for (key, only) in flags {
            if let Some(value) = self.file.flag(&self.name(key))?.filter(|value| *value != only) {
                return Err(unsupported(self.name(key), &value, &only.to_string()));
            }
        }
        Ok(())
    }

    fn embedding(&self) -> Result<&'f Stored<'a>, GgufError> {
        self.file.tensors.get(EMBEDDING).ok_or_else(|| GgufError::Missing(EMBEDDING.to_owned()))
    }

    /// Whether the output weights are those of the embedding: there are none, or the same again.
    fn tied(&self) -> Result<bool, GgufError> {
        let embedding = self.embedding()?;
        Ok(self.file.tensors.get(HEAD).is_none_or(|head| head.dtype == embedding.dtype && head.data == embedding.data))
    }

    fn begins_and_ends(&self, fields: &mut Value) -> Result<(), GgufError> {
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

    fn gpt2(&self) -> Result<Value, GgufError> {
        let mut fields = json!({
            "n_embd": self.needed("embedding_length")?,
            "n_layer": self.needed("block_count")?,
            "n_head": self.needed("attention.head_count")?,
            "n_positions": self.needed("context_length")?,
            "n_inner": self.needed("feed_forward_length")?,
            "activation_function": "gelu_new",
            "layer_norm_epsilon": self.epsilon("attention.layer_norm_epsilon")?,
            "tie_word_embeddings": self.tied()?,
        });
        self.begins_and_ends(&mut fields)?;
        Ok(fields)
    }

    fn bert(&self) -> Result<Value, GgufError> {
        let types = self.file.tensors.get("token_types.weight").and_then(|types| types.shape.first());
        Ok(json!({
            "hidden_size": self.needed("embedding_length")?,
            "num_hidden_layers": self.needed("block_count")?,
            "num_attention_heads": self.needed("attention.head_count")?,
            "intermediate_size": self.needed("feed_forward_length")?,
            "max_position_embeddings": self.needed("context_length")?,
            "type_vocab_size": types.copied().unwrap_or(0),
            "hidden_act": "gelu",
            "layer_norm_eps": self.epsilon("attention.layer_norm_epsilon")?,
        }))
    }

    fn llama(&self) -> Result<Value, GgufError> {
        let (width, heads) = (self.needed("embedding_length")?, self.needed("attention.head_count")?);
        let head = self.whole("attention.key_length")?.unwrap_or(width / heads.max(1));
        for key in ["attention.value_length", "rope.dimension_count"] {
            self.must(key, head)?;
        }
        let theta = self.file.number(&self.name("rope.freq_base"))?.unwrap_or(10_000.0);
        // Bounds of both are the configuration's; a head out of them has no rotation to compare factors with.
        let pairs = u32::try_from(head).ok().filter(|head| *head <= MAX_HEAD_WIDTH);
        let rotary = Rotary { theta, width: pairs.unwrap_or(0), scaling: Scaling::None };
        let mut fields = json!({
            "hidden_size": width,
            "num_hidden_layers": self.needed("block_count")?,
            "num_attention_heads": heads,
            "num_key_value_heads": self.whole("attention.head_count_kv")?,
            "head_dim": head,
            "intermediate_size": self.needed("feed_forward_length")?,
            "max_position_embeddings": self.needed("context_length")?,
            "hidden_act": "silu",
            "rms_norm_eps": self.epsilon("attention.layer_norm_rms_epsilon")?,
            "rope_theta": theta,
            "rope_scaling": scaling(self.file, self.arch, rotary)?,
            "attention_bias": self.file.tensors.contains_key("blk.0.attn_q.bias"),
            "mlp_bias": self.file.tensors.contains_key("blk.0.ffn_up.bias"),
            "tie_word_embeddings": self.tied()?,
        });
        let window = self.whole("attention.sliding_window")?.filter(|window| *window > 0);
        if let (Some(window), Some(fields)) = (window, fields.as_object_mut()) {
            fields.insert("sliding_window".to_owned(), window.into());
            // Whatever the family: attention slides because the file says so.
            fields.insert("layer_types".to_owned(), ["sliding_attention"].into());
        }
        self.begins_and_ends(&mut fields)?;
        Ok(fields)
    }

    /// As Llama's, with what only Gemma has.
    fn gemma3(&self) -> Result<Value, GgufError> {
        for key in ["attn_logit_softcapping", "final_logit_softcapping"] {
            if let Some(value) = self.file.number(&self.name(key))?.filter(|value| *value != 0.0) {
                return Err(unsupported(self.name(key), &value, "0"));
            }
        }
        let (width, heads) = (self.needed("embedding_length")?, self.needed("attention.head_count")?);
        let of_width = self.needed("block_count")? == GEMMA3_27B_LAYERS;
        let stated = if of_width { None } else { self.whole("attention.key_length")? };
        let slides = self.whole("attention.sliding_window")?.is_some_and(|window| window > 0);
        let period = if slides { self.whole("attention.sliding_window_pattern")?.unwrap_or(GEMMA3_PERIOD) } else { 1 };
        let own = json!({
            "hidden_activation": "gelu_pytorch_tanh",
            "query_pre_attn_scalar": stated.unwrap_or(width / heads.max(1)),
            "rope_local_base_freq": self.file.number(&self.name("rope.freq_base_swa"))?.unwrap_or(LOCAL_THETA),
            "sliding_window_pattern": period,
        });
        let mut fields = object(self.llama()?).unwrap_or_default();
        fields.retain(|name, _| !["hidden_act", "mlp_bias", "layer_types"].contains(&name.as_str()));
        fields.extend(object(own).unwrap_or_default());
        Ok(fields.into())
    }
}
