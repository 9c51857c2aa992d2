//! Hashes of ABI-encoded structs, and what is signed.

use alloy_sol_types::{SolStruct, SolValue};
use k256::ecdsa::SigningKey;
use serde::{Deserialize, Serialize};
use tensorlink_proof::commit::sign::address_of;
use tensorlink_proof::commit::{
    Contracts, ProgramCommitment, io_root, job_key, operator_hash, program_hash, record_hash, recover, seal, sign,
    wired, wiring_place,
};
use tensorlink_proof::merkle::{List, list_root};
use tensorlink_types::abi::{
    self, BoundaryLogs, Claim, EdgeLog, Holding, Offer, ProgramHeader, SINK_STATE, StepStatement, Voucher,
};
use tensorlink_types::program::{ConstantSlot, StateSlot};
use tensorlink_types::{
    Address, B256, Bytes, ClaimId, JobId, Opcode, Operand, Operator, Program, Source, TensorRoot, TensorType,
};

use super::{check_rule, malformed};
use crate::file::{VectorError, compare};

/// A program's root and what opens it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct ProgramCase {
    rule: String,
    name: String,
    operators: Vec<Bytes>,
    constants: Vec<B256>,
    wiring: Vec<u32>,
    header: Bytes,
    operator_index: u32,
    operator_siblings: Vec<B256>,
    root: B256,
}

/// Boundary logs and what a claim holds of them.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LogsCase {
    rule: String,
    name: String,
    logs: Bytes,
    io: B256,
}

/// A struct, its EIP-712 digest and a signature.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct DigestCase {
    rule: String,
    kind: String,
    chain_id: u32,
    contract: Address,
    encoded: Bytes,
    digest: B256,
    key: B256,
    signer: Address,
    signature: Bytes,
}

/// A job's beacon value.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct JobKeyCase {
    rule: String,
    prevrandao: B256,
    job: u32,
    key: B256,
}

/// What a replica shows of a claim before it reveals it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct SealCase {
    rule: String,
    claim_id: B256,
    salt: B256,
    seal: B256,
}

/// What the chain stores of a claim.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct RecordCase {
    rule: String,
    claim: Bytes,
    committed_at: u32,
    record: B256,
}

/// A program that need not run: every source, attributes of both signs, three operators.
fn small_program() -> Result<Program, VectorError> {
    let ty = |bits, exponent, dims: &[u32]| {
        TensorType::new(bits, exponent, dims).map_err(malformed("small program", "operators"))
    };
    let (x, w, y) = (ty(8, 4, &[2, 64])?, ty(8, 4, &[3, 64])?, ty(16, 4, &[2, 3])?);
    let (rows, data) = (ty(16, 4, &[2, 3])?, ty(16, 4, &[50, 3])?);
    let op = |opcode, operands: Vec<(Source, &TensorType)>, attributes: Vec<i64>, output: &TensorType| Operator {
        opcode,
        operands: operands.into_iter().map(|(source, ty)| Operand { source, ty: ty.clone() }).collect(),
        attributes,
        output: output.clone(),
    };
    let slot = |ty: &TensorType, producer| StateSlot { name: String::new(), ty: ty.clone(), producer };
    let root = TensorRoot(B256::repeat_byte(0x0c));
    Ok(Program {
        operators: vec![
            op(Opcode::MatMul, vec![(Source::FromPrevious(0), &x), (Source::State(0), &w)], vec![4], &y),
            op(Opcode::ReluGrad, vec![(Source::FromNext(0), &y), (Source::Output(0), &y)], vec![], &y),
            op(Opcode::Sample, vec![(Source::Constant(0), &data)], vec![7], &rows),
            op(Opcode::Combine, vec![(Source::State(1), &rows), (Source::Output(2), &rows)], vec![1, -3, -2], &rows),
            op(Opcode::Scale, vec![(Source::State(0), &w)], vec![-5, 1], &w),
        ],
        constants: vec![ConstantSlot { name: String::new(), ty: data, root }],
        state: vec![slot(&w, 4), slot(&rows, 3)],
        micro_batches: 1,
        to_next: vec![0],
        to_previous: vec![1],
        from_previous: vec![x],
        from_next: vec![y],
        segments: vec![],
        names: vec![],
    })
}

pub(super) fn programs() -> Result<Vec<ProgramCase>, VectorError> {
    let mut alone = small_program()?;
    alone.operators.drain(..4);
    (alone.state, alone.constants) = (alone.state.into_iter().take(1).collect(), vec![]);
    (alone.to_next, alone.to_previous) = (vec![], vec![]);
    if let Some(slot) = alone.state.first_mut() {
        slot.producer = 0;
    }
    let case = |(name, index, program): (&str, u32, Program)| {
        let commitment = ProgramCommitment::new(&program).map_err(malformed(name, "operators"))?;
        Ok(ProgramCase {
            rule: "C-5".into(),
            name: name.into(),
            operators: program.operators.iter().map(|op| abi::Operator::from(op).abi_encode().into()).collect(),
            constants: commitment.constants.items().to_vec(),
            wiring: (program.state.iter().map(|slot| slot.producer))
                .chain(program.to_next.iter().chain(&program.to_previous).copied())
                .collect(),
            header: commitment.header.abi_encode().into(),
            operator_index: index,
            operator_siblings: commitment.operators.prove(index.into()).map_err(malformed(name, "operatorIndex"))?,
            root: commitment.root(),
        })
    };
    [("a middle stage", 3, small_program()?), ("one operator, no constant, no neighbour", 0, alone)]
        .map(case)
        .into_iter()
        .collect()
}

impl ProgramCase {
    pub(super) fn verify(&self) -> Result<&str, VectorError> {
        check_rule(&self.rule, &["C-5"])?;
        let name = &self.name;
        let operator = |bytes: &Bytes| abi::Operator::abi_decode(bytes).map_err(malformed(name, "operators"));
        let operators = self.operators.iter().map(operator).collect::<Result<Vec<_>, _>>()?;
        let header = ProgramHeader::abi_decode(&self.header).map_err(malformed(name, "header"))?;
        for (operator, bytes) in operators.iter().zip(&self.operators) {
            compare(name, "encoding", bytes, &operator.abi_encode().into())?;
        }
        let list = List::new(operators.iter().map(operator_hash));
        compare(name, "operatorCount", &(header.operatorCount as usize), &operators.len())?;
        compare(name, "constantCount", &(header.constantCount as usize), &self.constants.len())?;
        compare(name, "list of operators", &header.operators, &list.root())?;
        compare(name, "list of constants", &header.constants, &list_root(self.constants.iter().copied()))?;
        compare(name, "wiring", &header.wiring, &list_root(self.wiring.iter().copied().map(wired)))?;
        let (_, entries) = wiring_place(&header, SINK_STATE, 0).unwrap_or_default();
        compare(name, "entries of the wiring", &entries, &(self.wiring.len() as u64))?;
        compare(name, "root", &self.root, &program_hash(&header))?;
        let siblings = list.prove(self.operator_index.into()).map_err(malformed(name, "operatorIndex"))?;
        compare(name, "siblings", &format!("{:?}", self.operator_siblings), &format!("{siblings:?}"))?;
        Ok(&self.rule)
    }
}

pub(super) fn logs() -> Vec<LogsCase> {
    let case = |name: &str, from_previous: u8, to_previous: u8, from_next: u8, to_next: u8| {
        let logs = BoundaryLogs {
            fromPrevious: B256::repeat_byte(from_previous),
            toPrevious: B256::repeat_byte(to_previous),
            fromNext: B256::repeat_byte(from_next),
            toNext: B256::repeat_byte(to_next),
        };
        LogsCase { rule: "C-8".into(), name: name.into(), io: io_root(&logs), logs: logs.abi_encode().into() }
    };
    vec![case("a middle stage", 1, 2, 3, 4), case("a last stage", 1, 2, 0, 0), case("the only stage", 0, 0, 0, 0)]
}

impl LogsCase {
    pub(super) fn verify(&self) -> Result<&str, VectorError> {
        check_rule(&self.rule, &["C-8"])?;
        let logs = BoundaryLogs::abi_decode(&self.logs).map_err(malformed(&self.name, "logs"))?;
        compare(&self.name, "io", &self.io, &io_root(&logs))?;
        Ok(&self.rule)
    }
}

fn claim() -> Claim {
    Claim {
        job: 0x0102_0304_0506,
        stage: 7,
        replica: 2,
        interval: 0x0908_0706,
        parentState: B256::repeat_byte(0x11),
        newState: B256::repeat_byte(0x22),
        io: B256::repeat_byte(0x33),
    }
}

fn contracts(chain_id: u32, contract: Address) -> Contracts {
    let (jobs, checkpoints, channels, disputes, custody) = (contract, contract, contract, contract, contract);
    Contracts { chain_id: chain_id.into(), jobs, checkpoints, channels, disputes, custody }
}

/// Digest of a struct given by its kind and encoding.
fn digest_of(kind: &str, contracts: &Contracts, encoded: &[u8]) -> Result<B256, VectorError> {
    let bad = || malformed(kind, "encoded");
    Ok(match kind {
        "Offer" => contracts.offer(&Offer::abi_decode(encoded).map_err(bad())?),
        "Claim" => contracts.claim_id(&Claim::abi_decode(encoded).map_err(bad())?).into(),
        "StepStatement" => contracts.statement(&StepStatement::abi_decode(encoded).map_err(bad())?),
        "Voucher" => contracts.voucher(&Voucher::abi_decode(encoded).map_err(bad())?),
        "EdgeLog" => contracts.edge_log(&EdgeLog::abi_decode(encoded).map_err(bad())?),
        "Holding" => contracts.holding(ClaimId(Holding::abi_decode(encoded).map_err(bad())?.claimId)),
        _ => return Err(malformed(kind, "kind")(())),
    })
}

pub(super) fn digests() -> Result<Vec<DigestCase>, VectorError> {
    let offer = Offer {
        job: 12,
        terms: B256::repeat_byte(0x22),
        stage: 3,
        replica: 1,
        worker: Address::repeat_byte(0xab),
        pricePerInterval: u128::MAX - 1,
        expires: alloy_primitives::aliases::U40::from(1_900_000_000u64),
    };
    let statement = StepStatement {
        claimId: B256::repeat_byte(0x44),
        auditor: Address::repeat_byte(0xcd),
        step: 1_000_001,
        preState: B256::repeat_byte(0x55),
        postState: B256::repeat_byte(0x66),
        trace: B256::repeat_byte(0x77),
    };
    let edge_log =
        EdgeLog { job: 12, replica: 1, fromStage: 3, toStage: 4, interval: 99, root: B256::repeat_byte(0x88) };
    let voucher = Voucher {
        job: 12,
        stage: 3,
        replica: 1,
        epoch: 4_000_000_000,
        before: 999_999,
        tokens: 1_000_001,
        receipts: B256::repeat_byte(0x99),
    };
    fn name<T: SolStruct>(_: &T) -> &'static str {
        T::NAME
    }
    let holding = Holding { claimId: B256::repeat_byte(0xaa) };
    let structs: [(&str, Vec<u8>); 6] = [
        (name(&offer), offer.abi_encode()),
        (name(&claim()), claim().abi_encode()),
        (name(&statement), statement.abi_encode()),
        (name(&edge_log), edge_log.abi_encode()),
        (name(&voucher), voucher.abi_encode()),
        (name(&holding), holding.abi_encode()),
    ];
    let mut cases = Vec::new();
    for (kind, encoded) in structs {
        for (chain_id, contract, key) in [(1, 0x5a, 0x01), (31_337, 0xa5, 0x7f)] {
            let (contract, key) = (Address::repeat_byte(contract), B256::repeat_byte(key));
            let digest = digest_of(kind, &contracts(chain_id, contract), &encoded)?;
            let signing = SigningKey::from_slice(key.as_slice()).map_err(malformed(kind, "key"))?;
            let signature = sign(&signing, digest).map_err(malformed(kind, "signature"))?;
            cases.push(DigestCase {
                rule: "C-9".into(),
                kind: kind.into(),
                chain_id,
                contract,
                encoded: encoded.clone().into(),
                digest,
                key,
                signer: address_of(&signing),
                signature: signature.into(),
            });
        }
    }
    Ok(cases)
}

impl DigestCase {
    pub(super) fn verify(&self) -> Result<&str, VectorError> {
        check_rule(&self.rule, &["C-9"])?;
        let digest = digest_of(&self.kind, &contracts(self.chain_id, self.contract), &self.encoded)?;
        compare(&self.kind, "digest", &self.digest, &digest)?;
        let key = SigningKey::from_slice(self.key.as_slice()).map_err(malformed(&self.kind, "key"))?;
        let signature = sign(&key, digest).map_err(malformed(&self.kind, "signature"))?;
        compare(&self.kind, "signature", &self.signature, &signature.into())?;
        compare(&self.kind, "signer", &self.signer, &address_of(&key))?;
        let recovered = recover(&self.signature, digest).map_err(malformed(&self.kind, "signature"))?;
        compare(&self.kind, "recovered signer", &self.signer, &recovered)?;
        Ok(&self.rule)
    }
}

pub(super) fn job_keys() -> Vec<JobKeyCase> {
    let case = |prevrandao: B256, job: u32| {
        let key = job_key(prevrandao, JobId(job.into())).into();
        JobKeyCase { rule: "C-10".into(), prevrandao, job, key }
    };
    vec![case(B256::repeat_byte(0xe1), 1), case(B256::ZERO, u32::MAX)]
}

impl JobKeyCase {
    pub(super) fn verify(&self) -> Result<&str, VectorError> {
        check_rule(&self.rule, &["C-10"])?;
        compare("C-10", "key", &self.key, &job_key(self.prevrandao, JobId(self.job.into())).into())?;
        Ok(&self.rule)
    }
}

pub(super) fn seals() -> Vec<SealCase> {
    let case = |claim_id: B256, salt: B256| {
        let seal = seal(ClaimId(claim_id), salt);
        SealCase { rule: "C-14".into(), claim_id, salt, seal }
    };
    vec![case(B256::repeat_byte(0xc1), B256::repeat_byte(0x5a)), case(B256::repeat_byte(0xc1), B256::ZERO)]
}

impl SealCase {
    pub(super) fn verify(&self) -> Result<&str, VectorError> {
        check_rule(&self.rule, &["C-14"])?;
        compare("C-14", "seal", &self.seal, &seal(ClaimId(self.claim_id), self.salt))?;
        Ok(&self.rule)
    }
}

pub(super) fn records() -> Vec<RecordCase> {
    let case = |claim: Claim, committed_at: u32| {
        let record = record_hash(&claim, committed_at.into());
        RecordCase { rule: "C-11".into(), claim: claim.abi_encode().into(), committed_at, record }
    };
    vec![case(claim(), 1_800_000_000), case(Claim { interval: 0, ..claim() }, 1)]
}

impl RecordCase {
    pub(super) fn verify(&self) -> Result<&str, VectorError> {
        check_rule(&self.rule, &["C-11"])?;
        let claim = Claim::abi_decode(&self.claim).map_err(malformed("C-11", "claim"))?;
        compare("C-11", "record", &self.record, &record_hash(&claim, self.committed_at.into()))?;
        Ok(&self.rule)
    }
}
