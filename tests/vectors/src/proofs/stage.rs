//! Stages whose worker lies, and their claims, logs and signatures.

use k256::ecdsa::SigningKey;
use tensorlink_proof::commit::sign::address_of;
use tensorlink_proof::commit::{
    Boundary, BoundaryLists, Contracts, LogBuilder, ProgramCommitment, ProgramList, io_root, record_hash, sign,
    state_root, trace_root,
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
    custody: Address::repeat_byte(0xd5),
};

pub(super) fn broken<E: std::fmt::Display>(error: E) -> VectorError {
    VectorError::Malformed { case: format!("P-14: {error}"), field: "proof" }
}

/// What a case's claim is about.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum About {
    /// The interval of this step.
    Step(u32),
    /// A text of so many tokens, in a job whose longest has `longest`.
    Text { tokens: u32, longest: u32 },
}

impl About {
    /// What the statement names.
    pub(super) const fn step(self) -> u32 {
        match self {
            Self::Step(step) | Self::Text { tokens: step, .. } => step,
        }
    }

    /// Steps that the logs hold.
    const fn steps(self) -> u32 {
        match self {
            Self::Step(_) => STEPS,
            Self::Text { .. } => 1,
        }
    }

    /// The step counted from the claim's first.
    pub(super) const fn local(self) -> u32 {
        self.step() % self.steps()
    }

    pub(super) fn is_text(self) -> bool {
        matches!(self, Self::Text { .. })
    }
}

/// A worker's claim on one program, and its word on one step.
pub(super) struct Stage {
    pub(super) program: Program,
    pub(super) logs: BoundaryLists,
    pub(super) claim: Claim,
    pub(super) job_key: JobKey,
    pub(super) about: About,
    pub(super) before: Vec<TensorRoot>,
    pub(super) trace: Vec<TensorRoot>,
    pub(super) after: Vec<TensorRoot>,
}

pub(super) fn key() -> Result<SigningKey, VectorError> {
    SigningKey::from_slice(&[0x42; 32]).map_err(broken)
}

impl Stage {
    fn program_root(&self) -> B256 {
        ProgramCommitment::new(&self.program).map(|c| c.root()).unwrap_or_default()
    }

    /// The programs of a serving job: this one, and others for the other lengths.
    fn programs(&self, tokens: u32, longest: u32) -> ProgramList {
        let root = |n: u32| if n == tokens { self.program_root() } else { filler(6, n as u8).0 };
        ProgramList::new((1..=longest).map(root))
    }

    pub(super) fn case(&self) -> fraud::Case {
        let work = match self.about {
            About::Step(_) => Work::Training {
                steps_per_interval: STEPS,
                program: self.program_root(),
                record: record_hash(&self.claim, COMMITTED_AT),
            },
            About::Text { tokens, longest } => {
                Work::Serving { longest, programs: self.programs(tokens, longest).root() }
            }
        };
        fraud::Case {
            contracts: CONTRACTS,
            worker: key().map(|key| address_of(&key)).unwrap_or_default(),
            lineage: self.job_key.into(),
            work,
        }
    }

    pub(super) fn prover(&self) -> Result<Prover<'_>, VectorError> {
        let (case, program, claim, logs) = (self.case(), &self.program, &self.claim, &self.logs);
        match self.about {
            About::Step(_) => Prover::new(case, program, claim, COMMITTED_AT, logs).map_err(broken),
            About::Text { tokens, longest } => {
                let membership = self.programs(tokens, longest).prove(tokens).map_err(broken)?;
                Prover::of_receipt(case, program, membership, claim, logs).map_err(broken)
            }
        }
    }

    pub(super) fn statement(&self) -> StepStatement {
        StepStatement {
            claimId: CONTRACTS.claim_id(&self.claim).into(),
            auditor: AUDITOR,
            step: self.about.step(),
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

pub(super) fn claim(about: About, logs: &BoundaryLists) -> Claim {
    let (interval, parent_state, new_state) = match about {
        About::Step(step) => (step / STEPS, B256::repeat_byte(1), B256::repeat_byte(2)),
        About::Text { .. } => (4_000_000_001, B256::ZERO, B256::ZERO),
    };
    Claim {
        job: 5,
        stage: 1,
        replica: 0,
        interval,
        parentState: parent_state,
        newState: new_state,
        io: io_root(&logs.roots()),
    }
}

/// Logs in which every entry but the given ones is a filler.
pub(super) fn logs(
    program: &Program,
    about: About,
    entries: &[(Boundary, u32, u32, TensorRoot)],
) -> Result<BoundaryLists, VectorError> {
    let steps = about.steps();
    let mut builder = LogBuilder::new(program, steps).map_err(broken)?;
    for boundary in [Boundary::FromPrevious, Boundary::FromNext, Boundary::ToNext, Boundary::ToPrevious] {
        for (step, m) in (0..steps).flat_map(|step| (0..MICRO_BATCHES).map(move |m| (step, m))) {
            let entry = entries.iter().find(|(e, s, n, _)| (*e, *s, *n) == (boundary, step, m));
            let filler = filler(boundary as u8, (step * MICRO_BATCHES + m) as u8);
            builder.record(boundary, step, m, entry.map_or(filler, |entry| entry.3)).map_err(broken)?;
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
pub(super) fn wired(about: About, wrong: Option<Sink>) -> Result<Stage, VectorError> {
    let ty = TensorType::new(8, 0, &[3]).map_err(broken)?;
    let slot = |producer| StateSlot { name: String::new(), ty: ty.clone(), producer };
    let state = if about.is_text() { vec![] } else { vec![slot(1), slot(3), slot(1)] };
    let program = Program {
        operators: vec![relu(Source::State(0), &ty); 5],
        constants: vec![],
        state,
        micro_batches: MICRO_BATCHES,
        to_next: vec![0, 2],
        to_previous: vec![4, 1],
        from_previous: vec![ty.clone(); MICRO_BATCHES as usize],
        from_next: vec![ty.clone(); MICRO_BATCHES as usize],
        segments: vec![],
        names: vec![],
    };
    let trace: Vec<TensorRoot> = (0..5).map(|i| filler(8, i)).collect();
    let output = |operator: u32| trace.get(operator as usize).copied().unwrap_or(filler(9, 9));
    let mut after: Vec<TensorRoot> = program.state.iter().map(|slot| output(slot.producer)).collect();
    let local = about.local();
    let mut entries = vec![];
    for m in 0..MICRO_BATCHES {
        for (boundary, sink, sources) in [
            (Boundary::ToNext, Sink::ToNext, &program.to_next),
            (Boundary::ToPrevious, Sink::ToPrevious, &program.to_previous),
        ] {
            let lied = wrong == Some(sink) && m == 1;
            let root = sources.get(m as usize).filter(|_| !lied).map_or(filler(9, 7), |source| output(*source));
            entries.push((boundary, local, m, root));
        }
    }
    if let (Some(Sink::State), Some(last)) = (wrong, after.last_mut()) {
        *last = filler(9, 8);
    }
    let logs = logs(&program, about, &entries)?;
    let before = (0u8..).zip(&program.state).map(|(i, _)| filler(7, i)).collect();
    Ok(Stage {
        claim: claim(about, &logs),
        job_key: JobKey(B256::repeat_byte(3)),
        program,
        logs,
        about,
        before,
        trace,
        after,
    })
}
