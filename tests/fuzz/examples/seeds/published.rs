//! Seeds of published folders: their JSON files, tokenizers, chat templates.

use serde_json::{Value, json};
use tensorlink_fuzz::folders::{FAMILIES, FILES};
use tensorlink_model::Family;

use super::Seed;

/// Files of SentencePiece's own library: with a token for each byte, and with a table of characters.
const PIECES: [(&str, Family, &[u8]); 2] = [
    ("llama", Family::Llama, include_bytes!("../../../../agents/folder/src/sentencepiece/llama.model")),
    ("xlmr", Family::Roberta, include_bytes!("../../../../agents/folder/src/sentencepiece/xlmr.model")),
];

macro_rules! published {
    ($($name:literal),+) => {
        [$(($name, include_bytes!(concat!("../../../transformers/templates/", $name, ".jinja")).as_slice())),+]
    };
}

/// Templates in the manner of published ones, that of each part of the language.
const TEMPLATES: [(&str, &[u8]); 8] = published!(
    "chatml",
    "llama-3",
    "gemma-3",
    "mistral-v0.1",
    "percent-formats",
    "filters-and-methods",
    "collecting-macros",
    "command-r-tool-macros"
);

fn letter(family: Family) -> u8 {
    (b'a'..).zip(FAMILIES).find(|(_, known)| *known == family).map_or(b'a', |(letter, _)| letter)
}

/// A folder of a family's letter with some files, and a text that is read.
fn folder(model: u8, text: &str, files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut seed = [&[model], text.as_bytes()].concat();
    for (name, content) in files {
        let letter = (b'a'..).zip(FILES).find(|(_, known)| known == name).map_or(b'a', |(letter, _)| letter);
        seed.extend([0, letter]);
        seed.extend_from_slice(content);
    }
    seed
}

pub(super) fn folders() -> Vec<Seed> {
    let bytes = |value: &Value| value.to_string().into_bytes();
    let chat = json!({ "bos_token": "<s>", "model_max_length": 8, "chat_template":
        "{{ bos_token }}{% for m in messages %}{{ m.role }}: {{ m.content | trim }}\n{% endfor %}" });
    let generation = json!({ "eos_token_id": [2, 0], "temperature": 0.7, "top_p": 0.9, "top_k": 20 });
    let part =
        |class: &str, path: &str| json!({ "type": format!("sentence_transformers.models.{class}"), "path": path });
    let modules = json!([part("Transformer", ""), part("Pooling", "1_Pooling"), part("Normalize", "2_Normalize")]);
    let prompts = json!({ "prompts": { "query": "the ", "none": null }, "default_prompt_name": "query" });
    let reading = json!({ "max_seq_length": 6, "do_lower_case": true });
    let words = b"[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\ncat\n##s\nsat\n";
    let lists: [&[u8]; 2] = [
        include_bytes!("../../../../agents/folder/src/byte_pairs/vocab.json"),
        include_bytes!("../../../../agents/folder/src/byte_pairs/merges.txt"),
    ];
    let bert = letter(Family::Bert);
    let mut seeds: Vec<Seed> = vec![
        (
            "chat".into(),
            folder(
                b'a',
                "the cat",
                &[("tokenizer_config.json", &bytes(&chat)), ("generation_config.json", &bytes(&generation))],
            ),
        ),
        (
            "sentences".into(),
            folder(
                bert,
                "The cat",
                &[
                    ("modules.json", &bytes(&modules)),
                    ("1_Pooling/config.json", br#"{"pooling_mode_mean_tokens": true}"#),
                    ("config_sentence_transformers.json", &bytes(&prompts)),
                    ("sentence_bert_config.json", &bytes(&reading)),
                ],
            ),
        ),
        ("words".into(), folder(bert, "The cats sat", &[("tokenizer.json", b""), ("vocab.txt", words)])),
        (
            "lists".into(),
            folder(
                letter(Family::Gpt2),
                "The cat's",
                &[
                    ("tokenizer.json", b""),
                    ("vocab.json", lists[0]),
                    ("merges.txt", lists[1]),
                    ("added_tokens.json", br#"{"<x>": 400}"#),
                ],
            ),
        ),
        ("pairs".into(), folder(bert + 1, "the dog", &[("calibration.json", br#"["the cat"]"#)])),
        (
            "refused-integers".into(),
            folder(b'a', "the", &[("quantized.json", br#"{"version": 3, "files": {}, "root": ""}"#)]),
        ),
    ];
    // The library panics over it.
    let cut = folder(b'a', "the", &[("tokenizer.json", br#"{"version": "1.0", "decoder": {"type":"#)]);
    seeds.push(("refused-decoder".into(), cut));
    seeds.extend(tokenizers().map(|(name, tokenizer)| {
        (name.to_owned(), folder(b'a', "The cat sät", &[("tokenizer.json", &bytes(&tokenizer))]))
    }));
    seeds
}

/// `tokenizer.json` of each kind of model, with the steps that stand before and after it in published ones.
fn tokenizers() -> impl Iterator<Item = (&'static str, Value)> {
    let special = |id: u32, content: &str| {
        json!({ "id": id, "content": content, "single_word": false, "lstrip": true, "rstrip": false,
                "normalized": false, "special": true })
    };
    let around = json!({ "type": "TemplateProcessing",
        "single": [{ "SpecialToken": { "id": "<s>", "type_id": 0 } }, { "Sequence": { "id": "A", "type_id": 0 } }],
        "pair": [{ "Sequence": { "id": "A", "type_id": 0 } }, { "Sequence": { "id": "B", "type_id": 1 } }],
        "special_tokens": { "<s>": { "id": "<s>", "ids": [0], "tokens": ["<s>"] } } });
    let replaced = json!({ "type": "Replace", "pattern": { "String": " " }, "content": "▁" });
    let whole = move |parts: [Value; 5]| {
        let [normalizer, pre_tokenizer, post_processor, decoder, model] = parts;
        json!({ "version": "1.0", "truncation": null, "padding": null,
            "added_tokens": [special(0, "<s>"), special(2, "</s>")], "normalizer": normalizer,
            "pre_tokenizer": pre_tokenizer, "post_processor": post_processor, "decoder": decoder, "model": model })
    };
    let vocabulary = json!({ "<s>": 0, "<unk>": 1, "</s>": 2, "t": 3, "h": 4, "e": 5, "th": 6, "the": 7, "▁": 8 });
    let pairs = [
        json!({ "type": "Sequence", "normalizers": [{ "type": "NFKC" }, { "type": "Lowercase" }, replaced] }),
        json!({ "type": "Split", "pattern": { "Regex": "\\p{N}{1,3}|▁" }, "behavior": "MergedWithNext", "invert": false }),
        around.clone(),
        json!({ "type": "Sequence", "decoders": [{ "type": "Replace", "pattern": { "String": "▁" }, "content": " " },
            { "type": "ByteFallback" }, { "type": "Fuse" },
            { "type": "Strip", "content": " ", "start": 1, "stop": 0 }] }),
        json!({ "type": "BPE", "dropout": null, "unk_token": "<unk>", "continuing_subword_prefix": null,
            "end_of_word_suffix": null, "fuse_unk": true, "byte_fallback": true, "vocab": vocabulary,
            "merges": [["t", "h"], ["th", "e"]] }),
    ];
    let unigram = [
        json!({ "type": "Strip", "strip_left": true, "strip_right": true }),
        json!({ "type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": true }),
        around,
        json!({ "type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": true }),
        json!({ "type": "Unigram", "unk_id": 1, "byte_fallback": false,
            "vocab": [["<s>", 0.0], ["<unk>", 0.0], ["</s>", 0.0], ["▁", -2.0], ["▁the", -3.5], ["t", -4.0]] }),
    ];
    let pieces = [
        json!({ "type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null,
            "lowercase": true }),
        json!({ "type": "Sequence", "pretokenizers": [{ "type": "WhitespaceSplit" },
            { "type": "Punctuation", "behavior": "Isolated" }, { "type": "Digits", "individual_digits": true }] }),
        json!({ "type": "BertProcessing", "sep": ["</s>", 2], "cls": ["<s>", 0] }),
        json!({ "type": "WordPiece", "prefix": "##", "cleanup": true }),
        json!({ "type": "WordPiece", "unk_token": "<unk>", "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100, "vocab": { "<s>": 0, "<unk>": 1, "</s>": 2, "the": 3, "##s": 4 } }),
    ];
    [("pairs-json", pairs), ("unigram-json", unigram), ("pieces-json", pieces)]
        .into_iter()
        .map(move |(name, parts)| (name, whole(parts)))
}

/// A token of a GGUF file: its kind, its score, its text.
type Token<'a> = (u8, i8, &'a str);

/// `made` says how it is made: by which model, cut how, with which flags and special tokens.
fn gguf(made: [u8; 6], tokens: &[Token<'_>], merges: &[[u8; 2]], text: &str) -> Vec<u8> {
    let mut seed = made.to_vec();
    seed.push(tokens.len() as u8);
    for (kind, score, text) in tokens {
        seed.extend([*kind, score.cast_unsigned(), text.len() as u8]);
        seed.extend(text.as_bytes());
    }
    seed.push(merges.len() as u8);
    seed.extend(merges.as_flattened());
    seed.extend(text.as_bytes());
    seed
}

pub(super) fn gguf_tokenizers() -> Vec<Seed> {
    let special = [(2, 0, "<unk>"), (3, 0, "<s>"), (3, 0, "</s>"), (4, 0, "<x>")];
    let pieces = ["▁", "t", "h", "e", "th", "the", "▁the", "a", "▁a", "ä"];
    let pieces: Vec<Token<'_>> = (0..).zip(pieces).map(|(rank, text)| (1, -rank, text)).collect();
    let with = |more: &[Token<'static>]| [&special, more].concat();
    let words = with(&[(1, 0, "▁the"), (1, 0, "▁cat"), (1, 0, "s"), (5, 0, "")]);
    let joined = with(&[(1, 0, "th"), (1, 0, "the"), (1, 0, "Ġt")]);
    // The characters that stand for bytes come after them, from `!` on, those beyond ASCII last.
    let byte = |byte: u8| joined.len() as u8 + byte - b'!';
    let merges = [[byte(b't'), byte(b'h')], [4, byte(b'e')]];
    let mut seeds: Vec<Seed> = vec![
        ("pieces".into(), gguf([0, 0, 0b10001, 1, 2, 0], &[&special[..], &pieces].concat(), &[], "the ät 日 the")),
        ("pieces-bare".into(), gguf([0, 0, 0b01101, 1, 2, 0], &[&special[..3], &pieces].concat(), &[], "the\tät")),
        ("words".into(), gguf([2, 0, 0, 1, 2, 0], &words, &[], "The cats")),
    ];
    for (cut, name) in [(0, "gpt-2"), (3, "llama"), (4, "qwen"), (5, "default")] {
        seeds
            .push((format!("bytes-{name}"), gguf([1, cut, 0b0101, 1, 2, 0], &joined, &merges, "the they'll 1234 é\n")));
    }
    seeds
}

pub(super) fn sentencepiece() -> Vec<Seed> {
    let text = "the cät <x>";
    let seed =
        |family, config: u8, file: &[u8]| [&[letter(family), config, text.len() as u8], text.as_bytes(), file].concat();
    let whole = PIECES.map(|(name, family, file)| (name.to_owned(), seed(family, 0, file)));
    let tiny = [("tiny-unigram", Family::Mistral, 1), ("tiny-pairs", Family::Gemma3, 2)];
    let tiny = tiny.map(|(name, family, kind)| (name.to_owned(), seed(family, kind, &pieces(kind))));
    whole.into_iter().chain(tiny).collect()
}

/// A file of a few pieces by protobuf: of each its text, its score, its kind; then the kind of model, and the rules of
/// spaces.
fn pieces(model: u8) -> Vec<u8> {
    let tokens: [Token<'_>; 9] = [
        (2, 0, "<unk>"),
        (3, 0, "<s>"),
        (3, 0, "</s>"),
        (1, -1, "▁"),
        (1, -2, "t"),
        (1, -3, "h"),
        (1, -4, "th"),
        (1, -5, "▁th"),
        (4, 0, "<x>"),
    ];
    let mut file = Vec::new();
    for (kind, score, text) in tokens {
        let length = text.len() as u8;
        file.extend([0x0a, length + 9, 0x0a, length]);
        file.extend(text.as_bytes());
        file.push(0x15);
        file.extend(f32::from(score).to_le_bytes());
        file.extend([0x18, kind]);
    }
    file.extend([0x12, 2, 0x18, model, 0x1a, 4, 0x18, 1, 0x20, 0]);
    file
}

pub(super) fn templates() -> Vec<Seed> {
    let said = b"\0sBe brief.\0uHi \0aHello\0u<b>'&\"</b>";
    TEMPLATES.map(|(name, source)| (name.to_owned(), [source, said].concat())).into()
}
