use super::super::super::family::Family;
use super::super::super::fixture::Folder;
use super::super::super::fixture::gguf::{File, Tensor, Value};
use super::super::{Gguf, GgufError};

fn llama() -> File {
    File::of(&Folder::new(Family::Llama))
}

fn refused(file: &File) -> GgufError {
    Gguf::parse(&file.bytes()).unwrap_err()
}

/// A file with one tensor more.
fn with(tensor: Tensor) -> File {
    let mut file = llama();
    file.tensors.push(tensor);
    file
}

fn blocks(kind: u32, shape: &[u64], bytes: usize) -> Tensor {
    Tensor { name: "extra.weight".into(), shape: shape.into(), kind, bytes: vec![0; bytes] }
}

/// Where a number of 64 bits that follows a text stands.
fn after(bytes: &[u8], text: &str) -> usize {
    bytes.windows(text.len()).position(|window| window == text.as_bytes()).unwrap() + text.len()
}

#[test]
fn both_versions_are_read() {
    for version in [2, 3] {
        let bytes = File { version, ..llama() }.bytes();
        let file = Gguf::parse(&bytes).unwrap();
        assert_eq!(file.text("general.architecture").unwrap(), Some("llama"));
        assert_eq!(file.whole("llama.block_count").unwrap(), Some(2));
        assert_eq!(file.number("llama.attention.layer_norm_rms_epsilon").unwrap(), Some(1e-5), "as it was written");
        assert_eq!(file.texts("tokenizer.ggml.merges").unwrap().unwrap()[1], "th e");
        assert_eq!(file.wholes("tokenizer.ggml.token_type").unwrap().unwrap()[..5], [3, 3, 3, 3, 1]);
        assert_eq!(file.tensors["blk.1.ffn_down.weight"].shape, [8, 12]);
    }
}

#[test]
fn other_files_and_versions_are_refused() {
    let bytes = llama().bytes();
    for other in [&b""[..], b"GGU", b"GGML", &[b"\x08\0\0\0\0\0\0\0", &bytes[..]].concat()] {
        assert_eq!(Gguf::parse(other).unwrap_err(), GgufError::Magic);
    }
    assert_eq!(refused(&File { version: 1, ..llama() }), GgufError::Version(1));
    assert_eq!(refused(&File { version: 4, ..llama() }), GgufError::Version(4));
    assert_eq!(refused(&File { version: 3_u32.swap_bytes(), ..llama() }), GgufError::BigEndian);
    assert!(GgufError::Version(1).to_string().contains("convert"));
}

#[test]
fn a_file_that_was_cut_is_refused_wherever_it_was() {
    let bytes = llama().bytes();
    for length in (0..bytes.len()).step_by(7).chain([bytes.len() - 1]) {
        let error = Gguf::parse(&bytes[..length]).unwrap_err();
        let cut = matches!(error, GgufError::Truncated { .. } | GgufError::Outside { .. } | GgufError::Magic);
        assert!(cut, "{length}: {error}");
        assert!(error.to_string().contains("download") || length < 4, "{error}");
    }
}

#[test]
fn counts_beyond_the_file_are_refused_and_nothing_is_kept_for_them() {
    let bytes = llama().bytes();
    let changed = |at: usize, count: u64| {
        let mut bytes = bytes.clone();
        bytes[at..at + 8].copy_from_slice(&count.to_le_bytes());
        Gguf::parse(&bytes).unwrap_err()
    };
    for count in [1 << 17, u64::MAX] {
        assert!(matches!(changed(8, count), GgufError::Count { of: "tensors", .. }));
        assert!(matches!(changed(16, count), GgufError::Count { of: "keys", .. }));
        // The length of a key; the number of texts, and of numbers; the length of the first text.
        let texts = after(&bytes, "tokenizer.ggml.tokens") + 8;
        let numbers = after(&bytes, "tokenizer.ggml.token_type") + 8;
        for at in [24, texts, numbers, texts + 8] {
            assert!(matches!(changed(at, count), GgufError::Truncated { .. }), "{at}");
        }
        // A size of a tensor.
        let size = after(&bytes, "output_norm.weight") + 4;
        let error = changed(size, count);
        assert!(matches!(error, GgufError::Shape { .. } | GgufError::Outside { .. }), "{error}");
    }
    // As many keys and tensors as are allowed, and not there.
    for at in [8, 16] {
        let error = changed(at, 1 << 16);
        assert!(!matches!(error, GgufError::Count { .. }), "{error}");
    }
}

#[test]
fn tensors_that_cannot_be_are_refused() {
    let error = refused(&with(blocks(12, &[2, 128], 144)));
    assert!(
        matches!(&error, GgufError::Width { width: 128, kind: "Q4_K", block: 256, .. }),
        "K-quants of a width that 256 does not divide: {error}"
    );
    assert!(matches!(refused(&with(blocks(2, &[2, 16], 18))), GgufError::Width { block: 32, .. }));
    for (kind, name) in [(10, "Q2_K"), (20, "IQ4_NL"), (4, "4"), (999, "999")] {
        let error = refused(&with(blocks(kind, &[256], 144)));
        assert!(matches!(&error, GgufError::Quantisation { kind, .. } if kind == name), "{error}");
        assert!(error.to_string().contains("Q4_K"), "it says what is read: {error}");
    }
    for shape in [&[][..], &[0], &[4, 0], &[u64::MAX, 2], &[1 << 40, 1 << 40]] {
        let error = refused(&with(blocks(0, shape, 4)));
        assert!(matches!(error, GgufError::Shape { .. }), "{shape:?}: {error}");
    }
    assert!(matches!(refused(&with(blocks(0, &[1; 5], 4))), GgufError::Count { .. }));
    let error = refused(&with(blocks(0, &[9], 8)));
    assert!(matches!(&error, GgufError::Outside { tensor } if tensor == "extra.weight"), "{error}");
    let mut twice = llama();
    twice.tensors.push(twice.tensors[0].clone());
    assert!(matches!(refused(&twice), GgufError::Twice(_)));
}

#[test]
fn offsets_that_overlap_or_leave_the_file_are_refused() {
    let bytes = llama().bytes();
    // A name, the number of dimensions, one size, the type.
    let at = after(&bytes, "output_norm.weight") + 4 + 8 + 4;
    let moved = |offset: u64| {
        let mut bytes = bytes.clone();
        bytes[at..at + 8].copy_from_slice(&offset.to_le_bytes());
        Gguf::parse(&bytes).unwrap_err()
    };
    assert!(matches!(moved(0), GgufError::Overlap { .. }));
    assert!(matches!(moved(5), GgufError::Offset { alignment: 32, .. }));
    for offset in [1 << 20, u64::MAX - 31] {
        assert!(matches!(moved(offset), GgufError::Outside { .. }), "{offset}");
    }
}

#[test]
fn metadata_that_cannot_be_are_refused() {
    let set = |key: &str, value: Value| {
        let mut file = llama();
        file.set(key, value);
        refused(&file)
    };
    for alignment in [0, 4, 12, 1 << 20] {
        assert_eq!(set("general.alignment", Value::U32(alignment)), GgufError::Alignment(alignment.into()));
    }
    assert!(matches!(set("general.alignment", "32".into()), GgufError::Type { .. }));
    let parts = set("split.count", Value::U32(3));
    assert!(parts == GgufError::Split(3) && parts.to_string().contains("--merge"), "{parts}");
    let mut twice = llama();
    twice.values.push(twice.values[0].clone());
    assert!(matches!(refused(&twice), GgufError::Twice(_)));

    let bytes = llama().bytes();
    let at = after(&bytes, "tokenizer.ggml.model");
    let changed = |at: usize, byte: u8| {
        let mut bytes = bytes.clone();
        bytes[at] = byte;
        Gguf::parse(&bytes).unwrap_err()
    };
    assert!(matches!(changed(at, 13), GgufError::Kind { kind: 13, .. }));
    assert!(matches!(changed(at + 12, 0xff), GgufError::Utf8 { .. }));
    // A list of lists.
    assert!(matches!(changed(after(&bytes, "tokenizer.ggml.tokens") + 4, 9), GgufError::Kind { kind: 9, .. }));
}

#[test]
fn random_bytes_are_refused_or_read_but_never_break_anything() {
    let whole = llama().bytes();
    let mut state = 1_u32;
    let mut draw = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state as usize
    };
    for _ in 0..2000 {
        let mut bytes = whole.clone();
        for _ in 0..1 + draw() % 4 {
            let at = draw() % bytes.len();
            bytes[at] = draw() as u8;
        }
        if let Ok(file) = Gguf::parse(&bytes) {
            drop((super::super::config(&file), super::super::pooling(&file)));
        }
    }
}
