//! Tiny model folders as Hugging Face writes them, for tests: every family, random weights, a tokenizer.
//!
//! What a family's files hold, the family says (`family/tiny.rs`).

pub mod gguf;
pub mod integers;

use serde_json::{Map, Value, json};

use super::family::Family;
use super::family::tiny::WIDTH;

pub use super::family::tiny::{CONTEXT, LAYERS, VOCABULARY};

/// Every family.
pub const FAMILIES: [Family; Family::ALL.len()] = Family::ALL;
/// Words of the tokenizer, special tokens included; models have [`VOCABULARY`] rows.
pub const WORDS: [&str; 12] = ["<s>", "<pad>", "</s>", "<unk>", "the", "cat", "dog", "sat", "ran", "on", "a", "mat"];
/// Layers of a deeper one.
const DEEP: usize = 7;

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
        let tiny = family.tiny(layers);
        let config = match tiny.config {
            Value::Object(fields) => fields,
            _ => Map::new(),
        };
        let tensors = tiny.shapes.into_iter().map(|(name, shape)| {
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
