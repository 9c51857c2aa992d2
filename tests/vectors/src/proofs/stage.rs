//! Stages whose worker lies, and their claims, logs and signatures.

use k256::ecdsa::SigningKey;
use tensorlink_proof::commit::sign::address_of;
use tensorlink_proof::commit::{
    BoundaryLists, Contracts, Edge, LogBuilder, ProgramCommitment, io_root, record_hash, sign, state_root, trace_root,
};
use tensorlink_proof::fraud::{self, Prover, Signed, Sink, StepAnswer, Work};
use tensorlink_types::abi::{Claim, StepStatement};
use tensorlink_types::program::StateSlot;
use tensorlink_types::{Address, B256, JobKey, Opcode, Operand, Operator, Program, Source, TensorRoot, TensorType};

use crate::file::VectorError;

pub(super) const STEPS: u32 = 3;
pub(super) const MICRO_BATCHES: u32 = 2;
pub(super) const COMMITTED_AT: u64 = 1_800_000_000;
pub(super) const AUDITOR: Address = Address::repeat_byte(0xaa);
pub(super) const CONTRACTS: Contracts = Contracts {
    chain_id: 31_337,
    jobs: Address::repeat_byte(0xd1),
    checkpoints: Address::repeat_byte(0xd2),
    channels: Address::repeat_byte(0xd4),
    disputes: Address::repeat_byte(0xd3),
};

pub(super) fn broken<E: std::fmt::Display>(error: E) -> VectorError {
    VectorError::Malformed { case: format!("P-14: {error}"), field: "proof" }
}

/// A worker's claim on one program, and its word on one step.
pub(super) struct Stage {
    pub(super) program: Program,
    pub(super) logs: BoundaryLists,
    pub(super) claim: Claim,
    pub(super) job_key: JobKey,
    pub(super) step: u32,
    pub(super) before: Vec<TensorRoot>,
    pub(super) trace: Vec<TensorRoot>,
    pub(super) after: Vec<TensorRoot>,
}

pub(super) fn key() -> Result<SigningKey, VectorError> {
    SigningKey::from_slice(&[0x42; 32]).map_err(broken)
}

impl Stage {
    pub(super) fn case(&self) -> fraud::Case {
        fraud::Case {
            contracts: CONTRACTS,
            worker: key().map(|key| address_of(&key)).unwrap_or_default(),
            job_key: self.job_key,
            work: Work::Training {
                steps_per_interval: STEPS,
                program: ProgramCommitment::new(&self.program).map(|c| c.root()).unwrap_or_default(),
                record: record_hash(&self.claim, COMMITTED_AT),
            },
        }
    }

    pub(super) fn prover(&self) -> Result<Prover<'_>, VectorError> {
        Prover::new(self.case(), &self.program, &self.claim, COMMITTED_AT, &self.logs).map_err(broken)
    }

    pub(super) fn statement(&self) -> StepStatement {
        StepStatement {
            claimId: CONTRACTS.claim_id(&self.claim).into(),
            auditor: AUDITOR,
            step: self.step,
            preState: state_root(&self.before),
            postState: state_root(&self.after),
            trace: trace_root(&self.trace),
        }
    }

    pub(super) fn answer<'a>(&'a self, said: &'a Signed) -> StepAnswer<'a> {
        StepAnswer { said, trace: &self.trace, before: &self.before, after: &self.after }
    }
}

pub(super) fn signed(statement: StepStatement) -> Result<Signed, VectorError> {
    let signature = sign(&key()?, CONTRACTS.statement(&statement)).map_err(broken)?;
    Ok(Signed { statement, signature: signature.into() })
}

pub(super) fn claim(step: u32, logs: &BoundaryLists) -> Claim {
    Claim {
        job: 5,
        stage: 1,
        replica: 0,
        interval: step / STEPS,
        parentState: B256::repeat_byte(1),
        newState: B256::repeat_byte(2),
        io: io_root(&logs.roots()),
    }
}

/// Logs in which every entry but the given ones is a filler.
pub(super) fn logs(program: &Program, entries: &[(Edge, u32, u32, TensorRoot)]) -> Result<BoundaryLists, VectorError> {
    let mut builder = LogBuilder::new(program, STEPS).map_err(broken)?;
    for edge in [Edge::FromPrevious, Edge::FromNext, Edge::ToNext, Edge::ToPrevious] {
        for (step, m) in (0..STEPS).flat_map(|step| (0..MICRO_BATCHES).map(move |m| (step, m))) {
            let entry = entries.iter().find(|(e, s, n, _)| (*e, *s, *n) == (edge, step, m));
            let filler = filler(edge as u8, (step * MICRO_BATCHES + m) as u8);
            builder.record(edge, step, m, entry.map_or(filler, |entry| entry.3)).map_err(broken)?;
        }
    }
    builder.finish().map_err(broken)
}

pub(super) fn filler(kind: u8, index: u8) -> TensorRoot {
    let mut root = B256::repeat_byte(0xf0 | kind);
    root.0[31] = index;
    TensorRoot(root)
}

pub(super) fn relu(source: Source, ty: &TensorType) -> Operator {
    let operands = vec![Operand { source, ty: ty.clone() }];
    Operator { opcode: Opcode::Relu, operands, attributes: vec![], output: ty.clone() }
}

/// A stage of five operators whose every output is wired somewhere; nothing of it is executed.
pub(super) fn wired(step: u32, wrong: Option<Sink>) -> Result<Stage, VectorError> {
    let ty = TensorType::new(8, 0, &[3]).map_err(broken)?;
    let slot = |producer| StateSlot { name: String::new(), ty: ty.clone(), producer };
    let program = Program {
        operators: vec![relu(Source::State(0), &ty); 5],
        constants: vec![],
        state: vec![slot(1), slot(3), slot(1)],
        micro_batches: MICRO_BATCHES,
        to_next: vec![0, 2],
        to_previous: vec![4, 1],
        from_previous: Some(ty.clone()),
        from_next: Some(ty.clone()),
        segments: vec![],
        names: vec![],
    };
    let trace: Vec<TensorRoot> = (0..5).map(|i| filler(8, i)).collect();
    let output = |operator: u32| trace.get(operator as usize).copied().unwrap_or(filler(9, 9));
    let mut after: Vec<TensorRoot> = program.state.iter().map(|slot| output(slot.producer)).collect();
    let local = step % STEPS;
    let mut entries = vec![];
    for m in 0..MICRO_BATCHES {
        for (edge, sink, sources) in
            [(Edge::ToNext, Sink::ToNext, &program.to_next), (Edge::ToPrevious, Sink::ToPrevious, &program.to_previous)]
        {
            let lied = wrong == Some(sink) && m == 1;
            let root = sources.get(m as usize).filter(|_| !lied).map_or(filler(9, 7), |source| output(*source));
            entries.push((edge, local, m, root));
        }
    }
    if let (Some(Sink::State), Some(last)) = (wrong, after.last_mut()) {
        *last = filler(9, 8);
    }
    let logs = logs(&program, &entries)?;
    let before = vec![filler(7, 0), filler(7, 1), filler(7, 2)];
    Ok(Stage {
        claim: claim(step, &logs),
        job_key: JobKey(B256::repeat_byte(3)),
        program,
        logs,
        step,
        before,
        trace,
        after,
    })
}
