//! `proofs.json`: proofs that convict (P-14), one for each opcode, sink and kind of contradiction;
//! `training-proofs.json`: those of the opcodes that training adds.
//!
//! Each convicts a worker of a program made up around one operator, whose operands come from every source in turn; most
//! over an interval, some over a receipt.

mod made;
mod stage;

use alloy_sol_types::SolValue;
use serde::{Deserialize, Serialize};
use tensorlink_num::arbitrary::{Case, Dice};
use tensorlink_num::{StepContext, execute};
use tensorlink_proof::commit::{Boundary, Contracts, record_hash, tensor_root};
use tensorlink_proof::fraud::{
    self, Conviction, Sink, Work, bytes, verify_contradiction_proof, verify_element_proof, verify_wiring_proof,
};
use tensorlink_proof::merkle::{LEAF_BYTES, TensorTree};
use tensorlink_types::abi::{Claim, ContradictionProof, JobKind, StepStatement, WiringProof};
use tensorlink_types::program::{ConstantSlot, StateSlot};
use tensorlink_types::{Address, B256, Bytes, JobKey, Opcode, Program, Source};

use self::stage::{
    About, COMMITTED_AT, CONTRACTS, MICRO_BATCHES, STEPS, Stage, broken, claim, filler, logs, relu, signed, wired,
};
use crate::file::{Coverage, VectorError, compare, parse, text};
use crate::operators::TRAINING;

const RULE: &str = "P-14";
/// Most bytes of the operands and the output of a case.
const BYTES: u64 = 2_000;
/// Least bytes of a table of Gumbel draws.
const TABLE_BYTES: u64 = 8_224;

/// The file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Proofs {
    element: Vec<ProofCase>,
    #[serde(default)]
    wiring: Vec<ProofCase>,
    #[serde(default)]
    contradiction: Vec<ProofCase>,
}

/// A proof, what the chain knows, and what it convicts of.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct ProofCase {
    rule: String,
    name: String,
    proof: Bytes,
    chain_id: u32,
    checkpoints: Address,
    disputes: Address,
    worker: Address,
    kind: u8,
    steps_per_interval: u32,
    job_key: B256,
    program: B256,
    claim_id: B256,
    auditor: Address,
    step: u32,
    operator: u32,
    element: u32,
    claimed: String,
    recomputed: String,
}

/// Text of the file.
///
/// # Errors
/// [`VectorError`] if a case cannot be made.
pub fn generate() -> Result<String, VectorError> {
    let mut element = wrong_elements(|opcode| opcode < TRAINING)?;
    element.push(wrong_element(1, &small(Opcode::RowSum)?, Lie::Padding)?);
    element.push(wrong_element(2, &small(Opcode::Relu)?, Lie::BeyondLimit)?);
    element.push(wrong_element(3, &made::apart()?, Lie::At("two ranges of leaves of each operand", made::APART))?);
    element.push(wrong_element(4, &made::hidden()?, Lie::At("a hidden element, which reads nothing", made::HIDDEN))?);
    element.push(wrong_in_text(&small(Opcode::MatMul)?, 3, 5, Lie::OffByOne)?);
    element.push(wrong_in_text(&small(Opcode::ExpNeg)?, 2, 4, Lie::OffByOne)?);
    element.push(wrong_in_text(&small(Opcode::Sample)?, 6, 7, Lie::OffByOne)?);
    element.push(wrong_in_text(&small(Opcode::RowSum)?, 8, 8, Lie::Padding)?);
    element.push(wrong_in_text(&small(Opcode::Relu)?, 1, 1, Lie::BeyondLimit)?);
    let (step, of_text) = (About::Step(STEPS + 1), About::Text { tokens: 2, longest: 3 });
    let wiring = [(step, Sink::State), (step, Sink::ToNext), (step, Sink::ToPrevious), (of_text, Sink::ToNext)];
    let wiring = wiring.into_iter().map(|(about, sink)| wrong_sink(about, sink)).collect::<Result<_, _>>()?;
    text(&[("element", element), ("wiring", wiring), ("contradiction", contradictions()?)])
}

/// Text of `training-proofs.json`.
///
/// # Errors
/// As [`generate`].
pub fn generate_training() -> Result<String, VectorError> {
    let mut element = wrong_elements(|opcode| opcode >= TRAINING)?;
    element.push(wrong_element(0, &made::shared()?, Lie::At("a range of leaves for each head", made::SHARED))?);
    element.push(wrong_element(
        1,
        &made::dropped()?,
        Lie::At("a dropped element, which reads nothing", made::DROPPED),
    )?);
    text(&[("element", element)])
}

/// One wrong element of each of these opcodes.
fn wrong_elements(which: impl Fn(Opcode) -> bool) -> Result<Vec<ProofCase>, VectorError> {
    let opcodes = Opcode::ALL.iter().enumerate().filter(|(_, opcode)| which(**opcode));
    opcodes.map(|(k, opcode)| wrong_element(k, &small(*opcode)?, Lie::OffByOne)).collect()
}

/// Checks every proof, as the contract does.
///
/// # Errors
/// [`VectorError::Json`], [`VectorError::Malformed`], [`VectorError::Mismatch`].
pub fn verify(text: &str) -> Result<Coverage, VectorError> {
    let file: Proofs = parse(text)?;
    let mut coverage = Coverage::default();
    for case in &file.element {
        let proof = bytes::decode(&case.proof, &case.contracts()).map_err(case.malformed("proof"))?;
        case.check(&proof.claim, |chain| verify_element_proof(chain, &proof))?;
        coverage.add(&case.rule);
    }
    for case in &file.wiring {
        let proof = WiringProof::abi_decode(&case.proof).map_err(case.malformed("proof"))?;
        case.check(&proof.claim, |chain| verify_wiring_proof(chain, &proof))?;
        coverage.add(&case.rule);
    }
    for case in &file.contradiction {
        let proof = ContradictionProof::abi_decode(&case.proof).map_err(case.malformed("proof"))?;
        case.check(&proof.claim, |chain| verify_contradiction_proof(chain, &proof))?;
        coverage.add(&case.rule);
    }
    Ok(coverage)
}

impl ProofCase {
    fn new(name: String, proof: Vec<u8>, stage: &Stage, conviction: &Conviction) -> Self {
        let chain = stage.case();
        let (kind, steps_per_interval, program) = match chain.work {
            Work::Training { steps_per_interval, program, .. } => (JobKind::Training, steps_per_interval, program),
            Work::Serving { longest, programs } => (JobKind::Serving, longest, programs),
        };
        Self {
            rule: RULE.into(),
            name,
            proof: proof.into(),
            chain_id: CONTRACTS.chain_id as u32,
            checkpoints: CONTRACTS.checkpoints,
            disputes: CONTRACTS.disputes,
            worker: chain.worker,
            kind: kind as u8,
            steps_per_interval,
            job_key: stage.job_key.into(),
            program,
            claim_id: CONTRACTS.claim_id(&stage.claim).into(),
            auditor: conviction.auditor,
            step: conviction.step,
            operator: conviction.operator,
            element: conviction.element as u32,
            claimed: conviction.claimed.to_string(),
            recomputed: conviction.recomputed.to_string(),
        }
    }

    fn contracts(&self) -> Contracts {
        Contracts {
            chain_id: self.chain_id.into(),
            checkpoints: self.checkpoints,
            disputes: self.disputes,
            ..CONTRACTS
        }
    }

    fn malformed<E>(&self, field: &'static str) -> impl FnOnce(E) -> VectorError {
        let case = format!("{} {}", self.rule, self.name);
        move |_| VectorError::Malformed { case, field }
    }

    /// Compares what a proof convicts of with the file.
    fn check(
        &self,
        claim: &Claim,
        convict: impl FnOnce(&fraud::Case) -> Result<Conviction, fraud::Refusal>,
    ) -> Result<(), VectorError> {
        let name = &self.name;
        compare(name, "rule", &self.rule.as_str(), &RULE)?;
        let contracts = self.contracts();
        compare(name, "claimId", &self.claim_id, &contracts.claim_id(claim).into())?;
        let work = match JobKind::from_number(self.kind).ok_or(()).map_err(self.malformed("kind"))? {
            JobKind::Training => Work::Training {
                steps_per_interval: self.steps_per_interval,
                program: self.program,
                record: record_hash(claim, COMMITTED_AT),
            },
            JobKind::Serving => Work::Serving { longest: self.steps_per_interval, programs: self.program },
        };
        let chain = fraud::Case { contracts, worker: self.worker, lineage: JobKey(self.job_key).into(), work };
        let conviction = convict(&chain).map_err(self.malformed("proof"))?;
        compare(name, "auditor", &self.auditor, &conviction.auditor)?;
        compare(name, "step", &self.step, &conviction.step)?;
        compare(name, "operator", &self.operator, &conviction.operator)?;
        compare(name, "element", &u64::from(self.element), &conviction.element)?;
        compare(name, "claimed", &self.claimed, &conviction.claimed.to_string())?;
        compare(name, "recomputed", &self.recomputed, &conviction.recomputed.to_string())
    }
}

/// How an output is wrong.
#[derive(Clone, Copy)]
enum Lie {
    OffByOne,
    /// Off by one at this element, which is about what the text says.
    At(&'static str, u64),
    BeyondLimit,
    Padding,
}

/// Where an operand comes from.
#[derive(Clone, Copy)]
enum Place {
    Output,
    State,
    Constant,
    Previous,
    Next,
}

const SOURCES: [Place; 5] = [Place::Output, Place::State, Place::Constant, Place::Previous, Place::Next];
/// A text has no state.
const SOURCES_OF_A_TEXT: [Place; 4] = [Place::Previous, Place::Constant, Place::Output, Place::Next];

/// As [`wrong`], in an interval.
fn wrong_element(k: usize, case: &Case, lie: Lie) -> Result<ProofCase, VectorError> {
    wrong(k, case, About::Step(case.context.step), lie)
}

/// As [`wrong`], in a text of `tokens` tokens, where the longest has `longest`.
fn wrong_in_text(case: &Case, tokens: u32, longest: u32, lie: Lie) -> Result<ProofCase, VectorError> {
    let case = Case { context: StepContext { step: tokens, ..case.context }, ..case.clone() };
    wrong(0, &case, About::Text { tokens, longest }, lie)
}

/// A wrong element of the output of the case's operator, whose operands are spread over the sources from the `k`-th on.
fn wrong(k: usize, case: &Case, about: About, lie: Lie) -> Result<ProofCase, VectorError> {
    let opcode = case.operator.opcode;
    let local = about.local();
    let sources: &[Place] = if about.is_text() { &SOURCES_OF_A_TEXT } else { &SOURCES };
    let mut operator = case.operator.clone();
    let (mut operators, mut trace, mut entries) = (vec![], vec![], vec![]);
    let (mut constants, mut state, mut before) = (vec![], vec![], vec![]);
    for (i, (operand, tensor)) in operator.operands.iter_mut().zip(&case.operands).enumerate() {
        let (ty, root, micro_batch) = (operand.ty.clone(), tensor_root(tensor), entries.len() as u32);
        operand.source = match sources.iter().cycle().nth(i + k).ok_or("no source").map_err(broken)? {
            Place::Output => {
                operators.push(relu(Source::State(0), &ty));
                trace.push(root);
                Source::Output(trace.len() as u32 - 1)
            }
            Place::State => {
                state.push(StateSlot { name: String::new(), ty, producer: 0 });
                before.push(root);
                Source::State(before.len() as u32 - 1)
            }
            Place::Constant => {
                constants.push(ConstantSlot { name: String::new(), ty, root });
                Source::Constant(constants.len() as u32 - 1)
            }
            Place::Previous => {
                entries.push((Boundary::FromPrevious, local, micro_batch, root));
                Source::FromPrevious(micro_batch)
            }
            Place::Next => {
                entries.push((Boundary::FromNext, local, micro_batch, root));
                Source::FromNext(micro_batch)
            }
        };
    }
    let index = operators.len() as u32;
    let (element, theirs) = lied(case, k, lie)?;
    let tree = TensorTree::from_bytes(operator.output.clone(), &theirs).map_err(broken)?;
    let output = operator.output.clone();
    operators.extend([operator, relu(Source::Output(index), &output)]);
    trace.extend([tree.root(), filler(9, 0)]);
    if !about.is_text() {
        before.push(filler(9, 1));
        state.push(StateSlot { name: String::new(), ty: output.clone(), producer: index });
    }
    let program = Program {
        operators,
        constants,
        state,
        micro_batches: MICRO_BATCHES,
        to_next: vec![index; MICRO_BATCHES as usize],
        to_previous: vec![index; MICRO_BATCHES as usize],
        from_previous: vec![output.clone(); MICRO_BATCHES as usize],
        from_next: vec![output; MICRO_BATCHES as usize],
        segments: vec![],
        names: vec![],
    };
    let logs = logs(&program, about, &entries)?;
    let (claim, after) = (claim(about, &logs), before.clone());
    let stage = Stage { program, logs, claim, job_key: case.context.job_key, about, before, trace, after };
    let said = signed(stage.statement())?;
    let prover = stage.prover()?;
    let proof = prover.element(&stage.answer(&said), index, element, &tree, &case.operands()).map_err(broken)?;
    let conviction = verify_element_proof(prover.case(), &proof).map_err(broken)?;
    let what = match lie {
        Lie::OffByOne => "an element off by one",
        Lie::At(what, _) => what,
        Lie::BeyondLimit => "a mantissa beyond its bits",
        Lie::Padding => "padding that is not zero",
    };
    let place = if about.is_text() { ", in a text" } else { "" };
    let bytes = bytes::encode(&proof).map_err(broken)?;
    Ok(ProofCase::new(format!("{}: {what}{place}", opcode.name()), bytes, &stage, &conviction))
}

/// The smallest of a few drawn cases of an opcode that leaves room in the last leaf.
fn small(opcode: Opcode) -> Result<Case, VectorError> {
    for seed in 0..200 {
        let case = Case::new(opcode, 1 + seed as u32 % 3, seed)?;
        // Of a table only a leaf is opened.
        let bytes: u64 = case.operands.iter().map(|t| t.ty().byte_len()).filter(|bytes| *bytes < TABLE_BYTES).sum();
        let output = &case.operator.output;
        let room = output.byte_len() % (LEAF_BYTES as u64) != 0 && output.bits() < 64;
        // So that the claim's interval is not the first.
        if bytes + output.byte_len() <= BYTES && room && case.context.step >= STEPS {
            return Ok(case);
        }
    }
    Err(broken("no small case"))
}

/// Bytes of a wrong output, and where it is wrong.
fn lied(case: &Case, k: usize, lie: Lie) -> Result<(u64, Vec<u8>), VectorError> {
    let honest = execute(&case.operator, &case.operands(), &case.context)?;
    let (ty, mut bytes) = (honest.ty(), honest.to_bytes());
    bytes.resize(bytes.len().next_multiple_of(LEAF_BYTES), 0);
    let drawn = Dice::new(k as u64).bits(64) % ty.elements();
    let off_by_one = |element| {
        let value = honest.get(element).unwrap_or_default();
        (element, if value == ty.limit() { value - 1 } else { value + 1 })
    };
    let (element, value) = match lie {
        Lie::OffByOne => off_by_one(drawn),
        Lie::At(_, element) => off_by_one(element),
        // One below the lower limit: the value that two's complement has and a tensor has not.
        Lie::BeyondLimit => (drawn, i64::MIN >> (64 - 8 * ty.width().bytes())),
        Lie::Padding => (ty.elements(), -1),
    };
    let width = ty.width().bytes();
    let at = element as usize * width;
    for (byte, lied) in bytes.iter_mut().skip(at).zip(value.to_le_bytes().into_iter().take(width)) {
        *byte = lied;
    }
    Ok((element, bytes))
}

fn wrong_sink(about: About, sink: Sink) -> Result<ProofCase, VectorError> {
    let (name, index) = match sink {
        Sink::State => ("another tensor in the state", 2),
        Sink::ToNext => ("another tensor in the log to the next stage", 1),
        Sink::ToPrevious => ("another tensor in the log to the previous stage", 1),
    };
    let stage = wired(about, Some(sink))?;
    let said = signed(stage.statement())?;
    let prover = stage.prover()?;
    let proof = prover.wiring(&stage.answer(&said), sink, index).map_err(broken)?;
    let conviction = verify_wiring_proof(prover.case(), &proof).map_err(broken)?;
    let place = if about.is_text() { ", of a text" } else { "" };
    Ok(ProofCase::new(format!("{name}{place}"), proof.abi_encode(), &stage, &conviction))
}

fn contradictions() -> Result<Vec<ProofCase>, VectorError> {
    type Change = fn(&mut StepStatement);
    let same: Change = |_| {};
    let (step, text) = (About::Step, About::Text { tokens: 2, longest: 5 });
    let cases: [(&str, About, Change, u32, Change); 10] = [
        ("two traces of one step", step(4), same, 4, |s| s.trace = B256::ZERO),
        ("two states before one step", step(4), same, 4, |s| s.preState = B256::ZERO),
        ("two states after one step", step(4), same, 4, |s| s.postState = B256::ZERO),
        ("a step that starts elsewhere than the one before ended", step(4), same, 5, |s| s.preState = B256::ZERO),
        ("a first step that does not start from the parent state", step(3), same, 3, same),
        ("a last step that does not end in the new state", step(5), same, 5, same),
        ("two traces of one text", text, same, 2, |s| s.trace = B256::ZERO),
        ("two lengths of one text", text, same, 5, same),
        ("a state before a text", text, |s| s.preState = B256::repeat_byte(1), 2, same),
        ("a state after a text", text, |s| s.postState = B256::repeat_byte(1), 2, same),
    ];
    let case = |(name, about, change, second_step, second_change): (&str, About, Change, u32, Change)| {
        let stage = wired(about, None)?;
        let prover = stage.prover()?;
        let said = |step, change: Change| {
            let mut statement = StepStatement { step, ..stage.statement() };
            change(&mut statement);
            signed(statement)
        };
        let (first, second) = (said(about.step(), change)?, said(second_step, second_change)?);
        let proof = prover.contradiction(&first, &second).map_err(broken)?;
        let conviction = verify_contradiction_proof(prover.case(), &proof).map_err(broken)?;
        Ok(ProofCase::new(name.into(), proof.abi_encode(), &stage, &conviction))
    };
    cases.map(case).into_iter().collect()
}
