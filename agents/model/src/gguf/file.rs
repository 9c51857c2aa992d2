//! A GGUF file to be written.

use std::io::{self, Write};

use super::MAGIC;

/// Tensors begin at multiples of so many bytes.
const ALIGNMENT: usize = 32;

/// A value of the metadata.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    /// A whole number.
    U32(u32),
    /// A number.
    F32(f32),
    /// Yes or no.
    Flag(bool),
    /// A text.
    Text(String),
    /// A list of texts.
    Texts(Vec<String>),
    /// A list of whole numbers.
    I32s(Vec<i32>),
    /// A list of numbers.
    F32s(Vec<f32>),
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl<const N: usize> From<[&str; N]> for Value {
    fn from(texts: [&str; N]) -> Self {
        Self::Texts(texts.map(str::to_owned).into())
    }
}

/// A tensor.
#[derive(Clone, PartialEq, Debug)]
pub struct Tensor {
    /// Its name.
    pub name: String,
    /// Its shape, rows first.
    pub shape: Vec<u64>,
    /// Its type, as ggml numbers it.
    pub kind: u32,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

impl Tensor {
    /// One of 32-bit floats.
    pub fn floats(name: &str, shape: &[usize], values: &[f32]) -> Self {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        Self { name: name.to_owned(), shape: shape.iter().map(|size| *size as u64).collect(), kind: 0, bytes }
    }
}

/// A file that can be changed before it is written.
#[derive(Clone, PartialEq, Debug)]
pub struct File {
    /// Its version.
    pub version: u32,
    /// Its metadata.
    pub values: Vec<(String, Value)>,
    /// Its tensors.
    pub tensors: Vec<Tensor>,
}

impl File {
    /// A value of the metadata.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.values.iter().find(|(known, _)| known == key).map(|(_, value)| value)
    }

    /// Sets a value of the metadata.
    pub fn set(&mut self, key: &str, value: Value) {
        self.remove(key);
        self.values.push((key.to_owned(), value));
    }

    /// Removes a value of the metadata.
    pub fn remove(&mut self, key: &str) {
        self.values.retain(|(known, _)| known != key);
    }

    /// A tensor by its name.
    pub fn tensor(&mut self, name: &str) -> Option<&mut Tensor> {
        self.tensors.iter_mut().find(|tensor| tensor.name == name)
    }

    /// Writes header, metadata, what there is of each tensor, and the tensors themselves at multiples of 32.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let mut written = self.head();
        out.write_all(&written)?;
        let mut length = written.len();
        for tensor in &self.tensors {
            written.clear();
            written.resize(length.next_multiple_of(ALIGNMENT).saturating_sub(length), 0);
            out.write_all(&written)?;
            out.write_all(&tensor.bytes)?;
            length = tensor.bytes.len();
        }
        Ok(())
    }

    /// Everything before the tensors, as long as they want it.
    fn head(&self) -> Vec<u8> {
        let mut head = MAGIC.to_vec();
        head.extend(self.version.to_le_bytes());
        head.extend((self.tensors.len() as u64).to_le_bytes());
        head.extend((self.values.len() as u64).to_le_bytes());
        for (key, value) in &self.values {
            text(&mut head, key);
            field(&mut head, value);
        }
        let mut offset = 0usize;
        for tensor in &self.tensors {
            text(&mut head, &tensor.name);
            head.extend((tensor.shape.len() as u32).to_le_bytes());
            head.extend(tensor.shape.iter().rev().flat_map(|size| size.to_le_bytes()));
            head.extend(tensor.kind.to_le_bytes());
            offset = offset.next_multiple_of(ALIGNMENT);
            head.extend((offset as u64).to_le_bytes());
            offset = offset.saturating_add(tensor.bytes.len());
        }
        head.resize(head.len().next_multiple_of(ALIGNMENT), 0);
        head
    }

    /// The file in memory.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        // Memory takes whatever it is given.
        let _written = self.write(&mut bytes);
        bytes
    }
}

fn text(file: &mut Vec<u8>, text: &str) {
    file.extend((text.len() as u64).to_le_bytes());
    file.extend(text.as_bytes());
}

fn field(file: &mut Vec<u8>, value: &Value) {
    let list = |file: &mut Vec<u8>, kind: u32, count: usize| {
        file.extend(9_u32.to_le_bytes());
        file.extend(kind.to_le_bytes());
        file.extend((count as u64).to_le_bytes());
    };
    match value {
        Value::U32(number) => file.extend([4_u32.to_le_bytes(), number.to_le_bytes()].as_flattened()),
        Value::F32(number) => file.extend([6_u32.to_le_bytes(), number.to_le_bytes()].as_flattened()),
        Value::Flag(flag) => {
            file.extend(7_u32.to_le_bytes());
            file.push(u8::from(*flag));
        }
        Value::Text(content) => {
            file.extend(8_u32.to_le_bytes());
            text(file, content);
        }
        Value::Texts(texts) => {
            list(file, 8, texts.len());
            texts.iter().for_each(|content| text(file, content));
        }
        Value::I32s(numbers) => {
            list(file, 5, numbers.len());
            file.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        }
        Value::F32s(numbers) => {
            list(file, 6, numbers.len());
            file.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        }
    }
}
