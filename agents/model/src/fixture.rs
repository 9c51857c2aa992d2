//! Tiny model folders as Hugging Face writes them, for tests: every family, random weights, a tokenizer.
//!
//! Names and shapes stand here as the publishers' own files have them, not as the importer expects them.

pub mod gguf;
pub mod integers;

use serde_json::{Map, Value, json};

use super::family::Family;

/// Every family.
pub const FAMILIES: [Family; Family::ALL.len()] = Family::ALL;
/// Words of the tokenizer, special tokens included; models have [`VOCABULARY`] rows.
pub const WORDS: [&str; 12] = ["<s>", "<pad>", "</s>", "<unk>", "the", "cat", "dog", "sat", "ran", "on", "a", "mat"];
/// Tokens of a tiny model: more than its tokenizer has, as is usual.
pub const VOCABULARY: usize = 16;
/// Layers of a tiny model.
pub const LAYERS: usize = 2;
/// Layers of a deeper one.
const DEEP: usize = 7;

const WIDTH: usize = 8;
const HIDDEN: usize = 12;
const KV_HEADS: usize = 1;
const HEADS: usize = 2;
/// Heads of Qwen 3 and Gemma 3 need not add up to their width.
const WIDE_HEAD: usize = 6;
/// Most tokens of a text.
pub const CONTEXT: usize = 10;

/// A tensor of a file.
#[derive(Clone, PartialEq, Debug)]
pub struct Tensor {
    /// Its name.
    pub name: String,
    /// Its shape.
    pub shape: Vec<usize>,
    /// Its values, row-major.
    pub values: Vec<f32>,
}

/// How a file stores its numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stored {
    /// 32-bit floats.
    F32,
    /// 16-bit floats.
    F16,
    /// The upper halves of 32-bit floats.
    Bf16,
}

/// A model folder.
#[derive(Clone, PartialEq, Debug)]
pub struct Folder {
    /// `config.json`.
    pub config: Map<String, Value>,
    /// The tensors of its files.
    pub tensors: Vec<Tensor>,
}

impl Folder {
    /// A tiny model of a family, the same each time. All values are whole multiples of 1/256 in ±1/2, exact in every
    /// [`Stored`] form.
    pub fn new(family: Family) -> Self {
        Self::of(family, LAYERS)
    }

    /// A tiny Gemma 3 of more layers, whose scores and positions are stretched: every third layer sees all.
    pub fn deep_gemma3() -> Self {
        let mut folder = Self::of(Family::Gemma3, DEEP);
        let stretched = json!({ "rope_type": "linear", "factor": 8.0 });
        for (field, value) in [
            ("num_hidden_layers", json!(DEEP)),
            ("sliding_window_pattern", json!(3)),
            ("query_pre_attn_scalar", json!(9)),
            ("rope_theta", json!(500.0)),
            ("rope_local_base_freq", json!(20.0)),
            ("rope_scaling", stretched),
        ] {
            folder.config.insert(field.to_owned(), value);
        }
        folder
    }

    /// A tiny encoder of BERT's or RoBERTa's family that scores pairs of texts.
    pub fn reranker(family: Family) -> Self {
        Self::classifier(family, &["LABEL_0"])
    }

    /// A tiny encoder of BERT's or RoBERTa's family that tells classes of texts apart.
    pub fn classifier(family: Family, labels: &[&str]) -> Self {
        let classes = labels.len();
        let mut folder = Self::new(family);
        let (class, shapes): (_, &[(&str, &[usize])]) = match family {
            Family::Roberta => (
                "RobertaForSequenceClassification",
                &[
                    ("classifier.dense.weight", &[WIDTH, WIDTH]),
                    ("classifier.dense.bias", &[WIDTH]),
                    ("classifier.out_proj.weight", &[classes, WIDTH]),
                    ("classifier.out_proj.bias", &[classes]),
                ],
            ),
            _ => (
                "BertForSequenceClassification",
                &[("classifier.weight", &[classes, WIDTH]), ("classifier.bias", &[classes])],
            ),
        };
        folder.config.insert("architectures".to_owned(), json!([class]));
        let labels: Map<String, Value> =
            labels.iter().enumerate().map(|(number, label)| (number.to_string(), json!(label))).collect();
        folder.config.insert("id2label".to_owned(), labels.into());
        folder.tensors.extend(shapes.iter().map(|(name, shape)| {
            let values = values(name, shape.iter().product());
            Tensor { name: (*name).to_owned(), shape: shape.to_vec(), values }
        }));
        folder
    }

    fn of(family: Family, layers: usize) -> Self {
        let config = match config(family) {
            Value::Object(fields) => fields,
            _ => Map::new(),
        };
        let shapes = match family {
            Family::Bert => bert("bert.", CONTEXT, 2),
            Family::Roberta => bert("roberta.", CONTEXT + 2, 1),
            Family::Gpt2 => gpt2(),
            Family::Llama | Family::Mistral | Family::Qwen2 | Family::Qwen3 | Family::Gemma3 => llama(family, layers),
        };
        let tensors = shapes.into_iter().map(|(name, shape)| {
            let values = values(&name, shape.iter().product());
            Tensor { name, shape, values }
        });
        Self { config, tensors: tensors.collect() }
    }

    /// The bytes of `config.json`.
    pub fn config_json(&self) -> Vec<u8> {
        Value::Object(self.config.clone()).to_string().into_bytes()
    }

    /// A tensor by its name.
    pub fn tensor(&mut self, name: &str) -> Option<&mut Tensor> {
        self.tensors.iter_mut().find(|tensor| tensor.name == name)
    }

    /// All tensors as one safetensors file.
    pub fn safetensors(&self, stored: Stored) -> Vec<u8> {
        write(&self.tensors, stored)
    }

    /// The tensors dealt out to `count` files, and their index.
    pub fn sharded(&self, count: usize, stored: Stored) -> (Vec<u8>, Vec<(String, Vec<u8>)>) {
        let (mut map, mut files) = (Map::new(), Vec::new());
        for shard in 0..count {
            let name = format!("model-{:05}-of-{count:05}.safetensors", shard + 1);
            let dealt: Vec<Tensor> = self.tensors.iter().skip(shard).step_by(count).cloned().collect();
            map.extend(dealt.iter().map(|tensor| (tensor.name.clone(), name.clone().into())));
            files.push((name, write(&dealt, stored)));
        }
        (json!({ "metadata": { "total_size": 0 }, "weight_map": map }).to_string().into_bytes(), files)
    }
}

/// Values of a tensor, from its name alone: xorshift (Marsaglia 2003) from FNV-1a.
fn values(name: &str, count: usize) -> Vec<f32> {
    let hash = |state: u32, byte: u8| (state ^ u32::from(byte)).wrapping_mul(16_777_619);
    let mut state = name.bytes().fold(2_166_136_261, hash) | 1;
    let mut draw = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        (state % 257) as f32 / 256.0 - 0.5
    };
    (0..count).map(|_| draw()).collect()
}

/// The bytes of a `tokenizer.json` with [`WORDS`]: words between spaces, `<s>` before and `</s>` after. It pads and
/// truncates, as files from training do; whoever serves must turn that off.
pub fn tokenizer_json() -> Vec<u8> {
    let vocabulary: Map<String, Value> =
        WORDS.iter().enumerate().map(|(id, word)| ((*word).into(), id.into())).collect();
    let special = |id: usize, content: &str| {
        json!({ "id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false,
                "normalized": false, "special": true })
    };
    let first = json!({ "SpecialToken": { "id": "<s>", "type_id": 0 } });
    let last = |text: u32| json!({ "SpecialToken": { "id": "</s>", "type_id": text } });
    let text = |id: &str, text: u32| json!({ "Sequence": { "id": id, "type_id": text } });
    json!({
        "version": "1.0",
        "truncation": { "max_length": 4, "strategy": "LongestFirst", "stride": 0, "direction": "Right" },
        "padding": { "strategy": { "Fixed": 4 }, "direction": "Right", "pad_to_multiple_of": null, "pad_id": 1,
                     "pad_type_id": 0, "pad_token": "<pad>" },
        "added_tokens": [special(0, "<s>"), special(1, "<pad>"), special(2, "</s>"), special(3, "<unk>")],
        "normalizer": null,
        "pre_tokenizer": { "type": "WhitespaceSplit" },
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [first, text("A", 0), last(0)],
            "pair": [first, text("A", 0), last(0), text("B", 1), last(1)],
            "special_tokens": { "<s>": { "id": "<s>", "ids": [0], "tokens": ["<s>"] },
                                "</s>": { "id": "</s>", "ids": [2], "tokens": ["</s>"] } },
        },
        "decoder": null,
        "model": { "type": "WordLevel", "vocab": vocabulary, "unk_token": "<unk>" },
    })
    .to_string()
    .into_bytes()
}

fn config(family: Family) -> Value {
    let encoder = |kind: &str, class: &str, rows: usize, types: usize| {
        json!({ "model_type": kind, "architectures": [class], "vocab_size": VOCABULARY, "hidden_size": WIDTH,
                "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "intermediate_size": HIDDEN,
                "hidden_act": "gelu", "max_position_embeddings": rows, "type_vocab_size": types,
                "layer_norm_eps": 1e-12, "pad_token_id": 1, "position_embedding_type": "absolute" })
    };
    let llama = |kind: &str, class: &str, more: Value| {
        let mut fields = json!({
            "model_type": kind, "architectures": [class], "vocab_size": VOCABULARY, "hidden_size": WIDTH,
            "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS,
            "intermediate_size": HIDDEN, "hidden_act": "silu", "max_position_embeddings": CONTEXT,
            "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": false, "torch_dtype": "bfloat16",
            "bos_token_id": 0, "eos_token_id": 2 });
        if let (Value::Object(fields), Value::Object(more)) = (&mut fields, more) {
            fields.extend(more);
        }
        fields
    };
    match family {
        Family::Bert => encoder("bert", "BertForMaskedLM", CONTEXT, 2),
        Family::Roberta => encoder("roberta", "RobertaForMaskedLM", CONTEXT + 2, 1),
        Family::Gpt2 => json!({
            "model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "vocab_size": VOCABULARY, "n_embd": WIDTH,
            "n_layer": LAYERS, "n_head": HEADS, "n_positions": CONTEXT, "n_ctx": CONTEXT, "n_inner": HIDDEN,
            "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5, "bos_token_id": 0, "eos_token_id": 2 }),
        Family::Llama => llama(
            "llama",
            "LlamaForCausalLM",
            json!({ "attention_bias": false, "mlp_bias": false,
            "rope_scaling": { "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                              "original_max_position_embeddings": 128, "rope_type": "llama3" },
            "rope_theta": 100.0, "eos_token_id": [2, 3] }),
        ),
        Family::Mistral => llama("mistral", "MistralForCausalLM", json!({ "sliding_window": null })),
        Family::Qwen2 => llama(
            "qwen2",
            "Qwen2ForCausalLM",
            json!({ "tie_word_embeddings": true,
            "use_sliding_window": false, "sliding_window": 4, "max_window_layers": 1 }),
        ),
        Family::Qwen3 => llama(
            "qwen3",
            "Qwen3ForCausalLM",
            json!({ "head_dim": WIDE_HEAD, "attention_bias": false,
            "use_sliding_window": false, "sliding_window": null }),
        ),
        // The first layer sees three tokens, the second all.
        Family::Gemma3 => {
            let mut fields = llama(
                "gemma3_text",
                "Gemma3ForCausalLM",
                json!({ "head_dim": WIDE_HEAD, "hidden_activation": "gelu_pytorch_tanh", "query_pre_attn_scalar": 6,
                "rope_theta": 1000000.0, "rope_local_base_freq": 10000.0, "rope_scaling": null, "sliding_window": 3,
                "sliding_window_pattern": 2, "attention_bias": false, "attn_logit_softcapping": null,
                "final_logit_softcapping": null, "tie_word_embeddings": true }),
            );
            fields.as_object_mut().map(|fields| fields.remove("hidden_act"));
            fields
        }
    }
}

type Shapes = Vec<(String, Vec<usize>)>;

fn bert(prefix: &str, rows: usize, types: usize) -> Shapes {
    let mut list = vec![
        (format!("{prefix}embeddings.word_embeddings.weight"), vec![VOCABULARY, WIDTH]),
        (format!("{prefix}embeddings.position_embeddings.weight"), vec![rows, WIDTH]),
        (format!("{prefix}embeddings.token_type_embeddings.weight"), vec![types, WIDTH]),
        (format!("{prefix}embeddings.LayerNorm.weight"), vec![WIDTH]),
        (format!("{prefix}embeddings.LayerNorm.bias"), vec![WIDTH]),
        (format!("{prefix}pooler.dense.weight"), vec![WIDTH, WIDTH]),
        (format!("{prefix}pooler.dense.bias"), vec![WIDTH]),
    ];
    for n in 0..LAYERS {
        for (part, outputs, inputs) in [
            ("attention.self.query", WIDTH, WIDTH),
            ("attention.self.key", WIDTH, WIDTH),
            ("attention.self.value", WIDTH, WIDTH),
            ("attention.output.dense", WIDTH, WIDTH),
            ("intermediate.dense", HIDDEN, WIDTH),
            ("output.dense", WIDTH, HIDDEN),
        ] {
            list.push((format!("{prefix}encoder.layer.{n}.{part}.weight"), vec![outputs, inputs]));
            list.push((format!("{prefix}encoder.layer.{n}.{part}.bias"), vec![outputs]));
        }
        for part in ["attention.output.LayerNorm", "output.LayerNorm"] {
            list.push((format!("{prefix}encoder.layer.{n}.{part}.weight"), vec![WIDTH]));
            list.push((format!("{prefix}encoder.layer.{n}.{part}.bias"), vec![WIDTH]));
        }
    }
    list
}

fn gpt2() -> Shapes {
    let mut list = vec![
        ("transformer.wte.weight".into(), vec![VOCABULARY, WIDTH]),
        ("transformer.wpe.weight".into(), vec![CONTEXT, WIDTH]),
        ("transformer.ln_f.weight".into(), vec![WIDTH]),
        ("transformer.ln_f.bias".into(), vec![WIDTH]),
    ];
    for n in 0..LAYERS {
        list.push((format!("transformer.h.{n}.attn.bias"), vec![1, 1, CONTEXT, CONTEXT]));
        for part in ["ln_1", "ln_2"] {
            list.push((format!("transformer.h.{n}.{part}.weight"), vec![WIDTH]));
            list.push((format!("transformer.h.{n}.{part}.bias"), vec![WIDTH]));
        }
        for (part, inputs, outputs) in [
            ("attn.c_attn", WIDTH, 3 * WIDTH),
            ("attn.c_proj", WIDTH, WIDTH),
            ("mlp.c_fc", WIDTH, HIDDEN),
            ("mlp.c_proj", HIDDEN, WIDTH),
        ] {
            list.push((format!("transformer.h.{n}.{part}.weight"), vec![inputs, outputs]));
            list.push((format!("transformer.h.{n}.{part}.bias"), vec![outputs]));
        }
    }
    list
}

fn llama(family: Family, layers: usize) -> Shapes {
    let (gemma, normalised) = (family == Family::Gemma3, matches!(family, Family::Qwen3 | Family::Gemma3));
    let head = if normalised { WIDE_HEAD } else { WIDTH / HEADS };
    let mut list =
        vec![("model.embed_tokens.weight".into(), vec![VOCABULARY, WIDTH]), ("model.norm.weight".into(), vec![WIDTH])];
    if family != Family::Qwen2 && !gemma {
        list.push(("lm_head.weight".into(), vec![VOCABULARY, WIDTH]));
    }
    for n in 0..layers {
        for (part, outputs, inputs) in [
            ("self_attn.q_proj", HEADS * head, WIDTH),
            ("self_attn.k_proj", KV_HEADS * head, WIDTH),
            ("self_attn.v_proj", KV_HEADS * head, WIDTH),
            ("self_attn.o_proj", WIDTH, HEADS * head),
            ("mlp.gate_proj", HIDDEN, WIDTH),
            ("mlp.up_proj", HIDDEN, WIDTH),
            ("mlp.down_proj", WIDTH, HIDDEN),
        ] {
            list.push((format!("model.layers.{n}.{part}.weight"), vec![outputs, inputs]));
            if family == Family::Qwen2 && matches!(part, "self_attn.q_proj" | "self_attn.k_proj" | "self_attn.v_proj") {
                list.push((format!("model.layers.{n}.{part}.bias"), vec![outputs]));
            }
        }
        for part in ["input_layernorm", "post_attention_layernorm"] {
            list.push((format!("model.layers.{n}.{part}.weight"), vec![WIDTH]));
        }
        let around = ["pre_feedforward_layernorm", "post_feedforward_layernorm"];
        for part in around.into_iter().filter(|_| gemma) {
            list.push((format!("model.layers.{n}.{part}.weight"), vec![WIDTH]));
        }
        if normalised {
            list.push((format!("model.layers.{n}.self_attn.q_norm.weight"), vec![head]));
            list.push((format!("model.layers.{n}.self_attn.k_norm.weight"), vec![head]));
        }
    }
    list
}

/// Header length, header, values: the format as it is specified.
fn write(tensors: &[Tensor], stored: Stored) -> Vec<u8> {
    let (mut header, mut data) = (Map::new(), Vec::new());
    for tensor in tensors {
        let start = data.len();
        for &value in &tensor.values {
            match stored {
                Stored::F32 => data.extend(value.to_le_bytes()),
                Stored::F16 => data.extend(half::f16::from_f32(value).to_le_bytes()),
                Stored::Bf16 => data.extend(half::bf16::from_f32(value).to_le_bytes()),
            }
        }
        let dtype = match stored {
            Stored::F32 => "F32",
            Stored::F16 => "F16",
            Stored::Bf16 => "BF16",
        };
        let entry = json!({ "dtype": dtype, "shape": tensor.shape, "data_offsets": [start, data.len()] });
        header.insert(tensor.name.clone(), entry);
    }
    let header = Value::Object(header).to_string();
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.into_bytes());
    file.extend(data);
    file
}
