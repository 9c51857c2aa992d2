//! The container: a header, metadata by key, tensors by name, and the bytes of these.
//!
//! All that the file says of itself is bounded by its length, or by what models have.

use std::collections::BTreeMap;

use super::super::import::decode::Dtype;
use super::error::GgufError;
use super::value::{List, Value};
use super::{Blocks, MAGIC};

/// Most keys, and most tensors.
const MAX_ENTRIES: u64 = 1 << 16;
/// Most dimensions of a tensor.
const MAX_DIMENSIONS: u32 = 4;
/// What tensors begin at multiples of, where the file does not say.
const ALIGNMENT: u64 = 32;
const MAX_ALIGNMENT: u64 = 1 << 16;

/// A tensor of a file.
#[derive(Clone, Debug)]
pub(crate) struct Stored<'a> {
    /// Its rows first, as everywhere but in the file.
    pub(crate) shape: Vec<usize>,
    pub(crate) dtype: Dtype,
    pub(crate) data: &'a [u8],
}

/// An open file: its metadata, and where its tensors lie.
#[derive(Debug)]
pub struct Gguf<'a> {
    pub(super) metadata: BTreeMap<&'a str, Value<'a>>,
    pub(crate) tensors: BTreeMap<&'a str, Stored<'a>>,
}

impl<'a> Gguf<'a> {
    /// Reads all but the values of the tensors.
    ///
    /// # Errors
    /// A [`GgufError`] for a file that is not whole, or says what cannot be.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, GgufError> {
        let mut reader = Reader { bytes, at: 0 };
        reader.version()?;
        let count = |of, count: u64| match count {
            0..=MAX_ENTRIES => Ok(count),
            _ => Err(GgufError::Count { of, count, most: MAX_ENTRIES }),
        };
        let tensors = count("tensors", reader.u64("the header")?)?;
        let keys = count("keys", reader.u64("the header")?)?;
        let mut metadata = BTreeMap::new();
        for _ in 0..keys {
            let key = reader.text("the name of a key")?;
            let kind = reader.u32(key)?;
            let value = reader.value(key, kind)?;
            if metadata.insert(key, value).is_some() {
                return Err(GgufError::Twice(key.to_owned()));
            }
        }
        let mut file = Self { metadata, tensors: BTreeMap::new() };
        if let Some(parts) = file.whole("split.count")?.filter(|parts| *parts > 1) {
            return Err(GgufError::Split(parts));
        }
        let alignment = file.whole("general.alignment")?.unwrap_or(ALIGNMENT);
        if !(8..=MAX_ALIGNMENT).contains(&alignment) || !alignment.is_multiple_of(8) {
            return Err(GgufError::Alignment(alignment));
        }
        let infos = (0..tensors).map(|_| reader.info()).collect::<Result<Vec<_>, _>>()?;
        file.place(infos, reader.after(alignment), alignment)?;
        Ok(file)
    }

    /// Finds the bytes of each tensor: none outside, no two the same.
    fn place(&mut self, mut infos: Vec<Info<'a>>, data: &'a [u8], alignment: u64) -> Result<(), GgufError> {
        infos.sort_by_key(|info| info.offset);
        let mut before: Option<(&Info<'_>, u64)> = None;
        for info in &infos {
            let tensor = || info.name.to_owned();
            if !info.offset.is_multiple_of(alignment) {
                return Err(GgufError::Offset { tensor: tensor(), offset: info.offset, alignment });
            }
            if let Some((first, end)) = before
                && info.offset < end
            {
                return Err(GgufError::Overlap { first: first.name.to_owned(), second: tensor() });
            }
            let outside = || GgufError::Outside { tensor: tensor() };
            let end = info.offset.checked_add(info.bytes).ok_or_else(outside)?;
            let range = usize::try_from(info.offset).ok().zip(usize::try_from(end).ok());
            let bytes = range.and_then(|(begin, end)| data.get(begin..end)).ok_or_else(outside)?;
            let stored = Stored { shape: info.shape.clone(), dtype: info.dtype, data: bytes };
            if self.tensors.insert(info.name, stored).is_some() {
                return Err(GgufError::Twice(tensor()));
            }
            before = Some((info, end));
        }
        Ok(())
    }
}

/// What the file says of a tensor.
struct Info<'a> {
    name: &'a str,
    shape: Vec<usize>,
    dtype: Dtype,
    offset: u64,
    bytes: u64,
}

/// Goes through the bytes once.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: u64, within: &str) -> Result<&'a [u8], GgufError> {
        let end = usize::try_from(count).ok().and_then(|count| self.at.checked_add(count));
        let taken = end.and_then(|end| Some((self.bytes.get(self.at..end)?, end)));
        let (taken, end) = taken.ok_or_else(|| GgufError::Truncated { within: within.to_owned() })?;
        self.at = end;
        Ok(taken)
    }

    fn number<const N: usize>(&mut self, within: &str) -> Result<[u8; N], GgufError> {
        let bytes = self.take(N as u64, within)?;
        bytes.try_into().map_err(|_| GgufError::Truncated { within: within.to_owned() })
    }

    fn u32(&mut self, within: &str) -> Result<u32, GgufError> {
        self.number(within).map(u32::from_le_bytes)
    }

    fn u64(&mut self, within: &str) -> Result<u64, GgufError> {
        self.number(within).map(u64::from_le_bytes)
    }

    fn text(&mut self, within: &str) -> Result<&'a str, GgufError> {
        let length = self.u64(within)?;
        let bytes = self.take(length, within)?;
        std::str::from_utf8(bytes).map_err(|_| GgufError::Utf8 { within: within.to_owned() })
    }

    fn version(&mut self) -> Result<(), GgufError> {
        if self.bytes.get(..MAGIC.len()) != Some(MAGIC) {
            return Err(GgufError::Magic);
        }
        self.at = MAGIC.len();
        match self.u32("the header")? {
            2 | 3 => Ok(()),
            // Its numbers are small the other way round.
            version if version.swap_bytes() < 1 << 16 => Err(GgufError::BigEndian),
            version => Err(GgufError::Version(version)),
        }
    }

    /// A value of a type by its number; lists hold no lists.
    fn value(&mut self, key: &str, kind: u32) -> Result<Value<'a>, GgufError> {
        Ok(match kind {
            0 => Value::Whole(u8::from_le_bytes(self.number(key)?).into()),
            1 => Value::Whole(i8::from_le_bytes(self.number(key)?).into()),
            2 => Value::Whole(u16::from_le_bytes(self.number(key)?).into()),
            3 => Value::Whole(i16::from_le_bytes(self.number(key)?).into()),
            4 => Value::Whole(self.u32(key)?.into()),
            5 => Value::Whole(i32::from_le_bytes(self.number(key)?).into()),
            6 => Value::Float(f32::from_le_bytes(self.number(key)?)),
            7 => Value::Flag(self.number::<1>(key)? != [0]),
            8 => Value::Text(self.text(key)?),
            9 => Value::List(self.list(key)?),
            10 => Value::Whole(self.u64(key)?.into()),
            11 => Value::Whole(i64::from_le_bytes(self.number(key)?).into()),
            12 => Value::Double(f64::from_le_bytes(self.number(key)?)),
            kind => return Err(GgufError::Kind { key: key.to_owned(), kind }),
        })
    }

    fn list(&mut self, key: &str) -> Result<List<'a>, GgufError> {
        let kind = self.u32(key)?;
        let count = self.u64(key)?;
        let each: u64 = match kind {
            0 | 1 | 7 => 1,
            2 | 3 => 2,
            4..=6 => 4,
            10..=12 => 8,
            8 => {
                let mut texts = Vec::new();
                for _ in 0..count {
                    texts.push(self.text(key)?);
                }
                return Ok(List::Texts(texts));
            }
            kind => return Err(GgufError::Kind { key: key.to_owned(), kind }),
        };
        let bytes = count.checked_mul(each).ok_or_else(|| GgufError::Truncated { within: key.to_owned() })?;
        Ok(List::Numbers { kind, bytes: self.take(bytes, key)? })
    }

    fn info(&mut self) -> Result<Info<'a>, GgufError> {
        let name = self.text("the name of a tensor")?;
        let dimensions = self.u32(name)?;
        let most = u64::from(MAX_DIMENSIONS);
        if dimensions > MAX_DIMENSIONS {
            return Err(GgufError::Count { of: "dimensions of a tensor", count: dimensions.into(), most });
        }
        let shape = (0..dimensions).map(|_| self.u64(name)).collect::<Result<Vec<u64>, _>>()?;
        let kind = self.u32(name)?;
        let offset = self.u64(name)?;
        let (dtype, block, size) = dtype(name, kind)?;
        let impossible = || GgufError::Shape { tensor: name.to_owned(), shape: shape.clone() };
        let elements = shape.iter().try_fold(1, |all: u64, size| all.checked_mul(*size)).filter(|all| *all > 0);
        let (elements, width) = elements.zip(shape.first().copied()).ok_or_else(impossible)?;
        if let Dtype::Blocks(blocks) = dtype
            && !width.is_multiple_of(block)
        {
            let (kind, block) = (blocks.name(), blocks.elements());
            return Err(GgufError::Width { tensor: name.to_owned(), width, kind, block });
        }
        let bytes = (elements / block).checked_mul(size).ok_or_else(impossible)?;
        let rows_first = shape.iter().rev().map(|size| usize::try_from(*size));
        let rows_first = rows_first.collect::<Result<_, _>>().map_err(|_| impossible())?;
        Ok(Info { name, shape: rows_first, dtype, offset, bytes })
    }

    /// What follows, from the next multiple of the alignment on.
    fn after(&self, alignment: u64) -> &'a [u8] {
        let begin = (self.at as u64).checked_next_multiple_of(alignment);
        let begin = begin.and_then(|begin| usize::try_from(begin).ok());
        begin.and_then(|begin| self.bytes.get(begin..)).unwrap_or_default()
    }
}

/// Types by their numbers in ggml; names of those that are not read.
const OTHERS: [(u32, &str); 18] = [
    (9, "Q8_1"),
    (10, "Q2_K"),
    (11, "Q3_K"),
    (15, "Q8_K"),
    (16, "IQ2_XXS"),
    (17, "IQ2_XS"),
    (18, "IQ3_XXS"),
    (19, "IQ1_S"),
    (20, "IQ4_NL"),
    (21, "IQ3_S"),
    (22, "IQ2_S"),
    (23, "IQ4_XS"),
    (24, "I8"),
    (26, "I32"),
    (28, "F64"),
    (29, "IQ1_M"),
    (34, "TQ1_0"),
    (39, "MXFP4"),
];

/// A type by its number, the numbers of a block, and its bytes.
fn dtype(tensor: &str, kind: u32) -> Result<(Dtype, u64, u64), GgufError> {
    let blocks = |blocks: Blocks| Ok((Dtype::Blocks(blocks), blocks.elements() as u64, blocks.bytes() as u64));
    match kind {
        0 => Ok((Dtype::F32, 1, 4)),
        1 => Ok((Dtype::F16, 1, 2)),
        2 => blocks(Blocks::Q4_0),
        3 => blocks(Blocks::Q4_1),
        6 => blocks(Blocks::Q5_0),
        7 => blocks(Blocks::Q5_1),
        8 => blocks(Blocks::Q8_0),
        12 => blocks(Blocks::Q4K),
        13 => blocks(Blocks::Q5K),
        14 => blocks(Blocks::Q6K),
        30 => Ok((Dtype::Bf16, 1, 2)),
        _ => {
            let named = OTHERS.iter().find(|(number, _)| *number == kind);
            let kind = named.map_or_else(|| kind.to_string(), |(_, name)| (*name).to_owned());
            Err(GgufError::Quantisation { tensor: tensor.to_owned(), kind })
        }
    }
}
