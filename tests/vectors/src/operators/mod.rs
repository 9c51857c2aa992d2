//! `operators.json`, rules N-8 and N-11 to N-31, `sampling.json`, rules N-32 to N-37, and `training.json`, rules from
//! N-38 on: whole outputs and single elements.

mod made;

use serde::{Deserialize, Serialize};
use tensorlink_num::arbitrary::{Case, CaseError, Dice};
use tensorlink_num::tables::gumbel_table;
use tensorlink_num::{Read, StepContext, Tensor, accessor, element, execute, reads};
use tensorlink_types::{B256, Bytes, JobKey, Opcode, Operand, Operator, Source, TensorType, U256};

use crate::file::{Coverage, VectorError, compare, parse, text};

/// Drawn cases of each opcode, besides the made ones.
const DRAWN: usize = 6;
/// Most bytes of a drawn case's operands and output.
const DRAWN_BYTES: u64 = 1_600;
/// The first opcode of `sampling.json`.
const SAMPLING: Opcode = Opcode::RowArgMax;
/// The first opcode that training adds: of `training.json` and `training-proofs.json`.
pub(crate) const TRAINING: Opcode = Opcode::RowCombine;
/// Most elements listed singly.
const ELEMENTS: u64 = 6;

/// The file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Operators {
    /// What operands of no bytes are.
    #[serde(default)]
    tables: Vec<Table>,
    cases: Vec<OperatorCase>,
}

/// A tensor that several cases have, and that is too large for each.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Table {
    rule: String,
    name: String,
    tensor_type: B256,
    bytes: Bytes,
}

/// A line of a file.
#[derive(Serialize)]
#[serde(untagged)]
enum Line {
    Table(Table),
    Case(OperatorCase),
}

/// One operator with its operands, output and some elements.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct OperatorCase {
    rule: String,
    name: String,
    opcode: u8,
    output_type: B256,
    operand_types: Vec<B256>,
    attributes: Vec<String>,
    job_key: B256,
    step: u32,
    operands: Vec<Bytes>,
    output: Bytes,
    elements: Vec<String>,
    mantissas: Vec<String>,
    reads: Vec<String>,
}

/// Text of `operators.json`.
///
/// # Errors
/// [`VectorError::Case`] or [`VectorError::Operator`] if a case breaks a rule.
pub fn generate() -> Result<String, VectorError> {
    text(&[("cases", cases(|opcode| opcode < SAMPLING, &[])?)])
}

/// Text of `sampling.json`.
///
/// # Errors
/// As [`generate`].
pub fn generate_sampling() -> Result<String, VectorError> {
    let tables = tables()?;
    let cases = cases(|opcode| (SAMPLING..TRAINING).contains(&opcode), &tables)?;
    let tables = tables.iter().map(|table| Line::Table(Table::gumbel(table)));
    text(&[("tables", tables.collect()), ("cases", cases.into_iter().map(Line::Case).collect())])
}

/// Text of `training.json`.
///
/// # Errors
/// As [`generate`].
pub fn generate_training() -> Result<String, VectorError> {
    text(&[("cases", cases(|opcode| opcode >= TRAINING, &[])?)])
}

/// Made and drawn cases; operands that are one of the tables have no bytes.
fn cases(which: impl Fn(Opcode) -> bool, tables: &[Tensor]) -> Result<Vec<OperatorCase>, VectorError> {
    let mut cases = Vec::new();
    for opcode in Opcode::ALL.iter().filter(|opcode| which(**opcode)) {
        for (name, case) in made::cases(*opcode)? {
            cases.push(OperatorCase::new(name, &case, tables)?);
        }
        for (name, case) in drawn(*opcode, tables)? {
            cases.push(OperatorCase::new(&name, &case, tables)?);
        }
    }
    Ok(cases)
}

/// The tables of `sampling.json`.
fn tables() -> Result<Vec<Tensor>, VectorError> {
    Ok(vec![gumbel_table().map_err(CaseError::from)?])
}

impl Table {
    fn gumbel(table: &Tensor) -> Self {
        let (rule, name) = ("N-36".to_owned(), "draws of the standard Gumbel distribution".to_owned());
        Self { rule, name, tensor_type: word(table.ty()), bytes: table.to_bytes().into() }
    }
}

/// Small drawn cases, named by what reproduces them.
fn drawn(opcode: Opcode, tables: &[Tensor]) -> Result<Vec<(String, Case)>, VectorError> {
    let mut cases = Vec::new();
    for seed in 0..200u64 {
        let size = 1 + seed as u32 % 5;
        let case = Case::new(opcode, size, seed)?;
        let bytes: u64 = case.operands.iter().filter(|t| !tables.contains(t)).map(|t| t.ty().byte_len()).sum();
        if bytes + case.operator.output.byte_len() <= DRAWN_BYTES {
            cases.push((format!("drawn with size {size}, seed {seed}"), case));
        }
        if cases.len() == DRAWN {
            break;
        }
    }
    Ok(cases)
}

/// Checks the reference, whole and by element, against every case.
///
/// # Errors
/// [`VectorError::Json`], [`VectorError::Malformed`], [`VectorError::Mismatch`], [`VectorError::Operator`].
pub fn verify(text: &str) -> Result<Coverage, VectorError> {
    let file: Operators = parse(text)?;
    let mut coverage = Coverage::default();
    let known = if file.tables.is_empty() { Vec::new() } else { tables()? };
    compare("tables", "number", &file.tables.len(), &known.len())?;
    for (said, table) in file.tables.iter().zip(&known) {
        let table = Table::gumbel(table);
        compare(&table.rule, "tensorType", &said.tensor_type, &table.tensor_type)?;
        compare(&table.rule, "bytes", &said.bytes, &table.bytes)?;
        coverage.add(&said.rule);
    }
    for case in &file.cases {
        case.verify(&known)?;
        coverage.add(&case.rule);
    }
    Ok(coverage)
}

/// Up to [`ELEMENTS`] indices: both ends and some between.
fn some_indices(elements: u64) -> Vec<u64> {
    if elements <= ELEMENTS {
        return (0..elements).collect();
    }
    let mut dice = Dice::new(elements);
    let mut indices = vec![0, elements - 1];
    while (indices.len() as u64) < ELEMENTS {
        let index = dice.bits(64) % elements;
        if !indices.contains(&index) {
            indices.push(index);
        }
    }
    indices.sort_unstable();
    indices
}

/// Four numbers for each read: position in `elements`, operand, first element, count.
fn flat_reads(position: usize, reads: &[Read]) -> impl Iterator<Item = String> + '_ {
    reads
        .iter()
        .flat_map(move |read| [position as u64, read.operand as u64, read.first, read.count].map(|n| n.to_string()))
}

fn word(ty: &TensorType) -> B256 {
    B256::from(ty.to_word())
}

impl OperatorCase {
    fn new(name: &str, case: &Case, tables: &[Tensor]) -> Result<Self, VectorError> {
        let Case { operator, context, .. } = case;
        let operands = case.operands();
        let output = execute(operator, &operands, context)?;
        let indices = some_indices(operator.output.elements());
        let bytes = |t: &Tensor| if tables.contains(t) { Bytes::new() } else { t.to_bytes().into() };
        let (mut mantissas, mut all_reads) = (Vec::new(), Vec::new());
        for (position, index) in indices.iter().enumerate() {
            mantissas.push(element(operator, accessor(&operands), *index, context)?.to_string());
            all_reads.extend(flat_reads(position, &reads(operator, accessor(&operands), *index, context)?));
        }
        Ok(Self {
            rule: format!("N-{}", operator.opcode as u8 + 10),
            name: name.to_owned(),
            opcode: operator.opcode as u8,
            output_type: word(&operator.output),
            operand_types: operator.operands.iter().map(|o| word(&o.ty)).collect(),
            attributes: operator.attributes.iter().map(i64::to_string).collect(),
            job_key: context.job_key.0,
            step: context.step,
            operands: case.operands.iter().map(bytes).collect(),
            output: output.to_bytes().into(),
            elements: indices.iter().map(u64::to_string).collect(),
            mantissas,
            reads: all_reads,
        })
    }

    fn malformed(&self, field: &'static str) -> VectorError {
        VectorError::Malformed { case: self.title(), field }
    }

    fn title(&self) -> String {
        format!("{} {}", self.rule, self.name)
    }

    fn ty(&self, word: B256, field: &'static str) -> Result<TensorType, VectorError> {
        TensorType::from_word(U256::from_be_bytes(word.0)).map_err(|_| self.malformed(field))
    }

    fn numbers<T: std::str::FromStr>(&self, texts: &[String], field: &'static str) -> Result<Vec<T>, VectorError> {
        texts.iter().map(|n| n.parse().map_err(|_| self.malformed(field))).collect()
    }

    /// The operator and its operands, as the fields say; those without bytes are the table of their type.
    fn decode(&self, tables: &[Tensor]) -> Result<(Operator, Vec<Tensor>), VectorError> {
        if self.operands.len() != self.operand_types.len() {
            return Err(self.malformed("operands"));
        }
        let mut operands = Vec::new();
        let mut tensors = Vec::new();
        for (i, (word, bytes)) in (0u32..).zip(self.operand_types.iter().zip(&self.operands)) {
            let ty = self.ty(*word, "operandTypes")?;
            let table = tables.iter().find(|table| bytes.is_empty() && *table.ty() == ty);
            tensors.push(match table {
                Some(table) => table.clone(),
                None => Tensor::from_bytes(ty.clone(), bytes).map_err(|_| self.malformed("operands"))?,
            });
            operands.push(Operand { source: Source::State(i), ty });
        }
        let operator = Operator {
            opcode: Opcode::try_from(self.opcode).map_err(|_| self.malformed("opcode"))?,
            operands,
            attributes: self.numbers(&self.attributes, "attributes")?,
            output: self.ty(self.output_type, "outputType")?,
        };
        Ok((operator, tensors))
    }

    fn verify(&self, tables: &[Tensor]) -> Result<(), VectorError> {
        let title = self.title();
        let (operator, tensors) = self.decode(tables)?;
        compare(&title, "rule", &self.rule, &format!("N-{}", self.opcode + 10))?;
        let context = StepContext { job_key: JobKey(self.job_key), step: self.step };
        let operands: Vec<&Tensor> = tensors.iter().collect();
        let output = Bytes::from(execute(&operator, &operands, &context)?.to_bytes());
        compare(&title, "output", &self.output, &output)?;
        let indices: Vec<u64> = self.numbers(&self.elements, "elements")?;
        let mantissas: Vec<i64> = self.numbers(&self.mantissas, "mantissas")?;
        if indices.is_empty() || indices.len() != mantissas.len() {
            return Err(self.malformed("mantissas"));
        }
        let mut all_reads = Vec::new();
        for (position, (index, mantissa)) in indices.iter().zip(&mantissas).enumerate() {
            let actual = element(&operator, accessor(&operands), *index, &context)?;
            compare(&title, &format!("element {index}"), mantissa, &actual)?;
            all_reads.extend(flat_reads(position, &reads(&operator, accessor(&operands), *index, &context)?));
        }
        compare(&title, "reads", &self.reads.join(" "), &all_reads.join(" "))
    }
}
