//! A serving stage with a program for each length of text, a worker for it, and lies to tell.

use alloy_primitives::B256;
use tensorlink_num::{StepContext, Tensor, execute};
use tensorlink_proof::audit::{Answer, OwnInterval};
use tensorlink_proof::commit::sign::address_of;
use tensorlink_proof::commit::{
    BoundaryLists, Crossed, ProgramCommitment, ProgramList, receipt, receipt_statement, tensor_root,
};
use tensorlink_proof::fraud::{Case, Prover, Signed, StepAnswer, Work};
use tensorlink_types::abi::{Claim, StepStatement};
use tensorlink_types::program::ConstantSlot;
use tensorlink_types::{JobId, JobKey, Lane, Opcode, Operand, Operator, Program, Source, TensorRoot, TensorType};

use crate::scenario::{AUDITOR, CONTRACTS, signed, tensor, ty, worker_key};

pub(crate) const LONGEST: u32 = 5;
pub(crate) const TEXT: u32 = 1_000_003;
pub(crate) const LANE: Lane = Lane { job: JobId(9), stage: 1, replica: 0 };
pub(crate) const JOB_KEY: JobKey = JobKey(B256::repeat_byte(0x77));

pub(crate) const MATMUL: u32 = 0;
pub(crate) const LAST: u32 = 2;

/// Linear, ReLU, halved. Nothing outlives a text.
pub(crate) struct Stage {
    pub(crate) programs: Vec<Program>,
    pub(crate) weights: Tensor,
    pub(crate) list: ProgramList,
}

impl Stage {
    pub(crate) fn new() -> Self {
        let weights = tensor(&ty(8, 4, &[80, 64]), 5, 100);
        let programs: Vec<Program> = (1..=LONGEST).map(|tokens| program(tokens, &weights)).collect();
        let list = ProgramList::new(programs.iter().map(|p| ProgramCommitment::new(p).unwrap().root()));
        Self { programs, weights, list }
    }

    pub(crate) fn program(&self, tokens: u32) -> &Program {
        &self.programs[tokens as usize - 1]
    }

    pub(crate) fn case(&self) -> Case {
        Case {
            contracts: CONTRACTS,
            worker: address_of(&worker_key()),
            lineage: JOB_KEY.into(),
            work: Work::Serving { longest: LONGEST, programs: self.list.root() },
        }
    }

    /// What the previous stage sends for the text.
    pub(crate) fn input(&self, tokens: u32) -> Tensor {
        tensor(&self.program(tokens).from_previous[0], 100, 100)
    }

    /// Computes the text; `lie` may replace an operator's output, and what follows builds on it.
    pub(crate) fn run(&self, tokens: u32, lie: impl Fn(u32, Tensor) -> Tensor) -> Vec<Tensor> {
        let mut outputs = vec![];
        for (i, op) in (0..).zip(&self.program(tokens).operators) {
            let operands = self.operands(tokens, op, &outputs);
            let context = StepContext { job_key: JOB_KEY, step: tokens };
            outputs.push(lie(i, execute(op, &operands.iter().collect::<Vec<_>>(), &context).unwrap()));
        }
        outputs
    }

    pub(crate) fn honest(&self, tokens: u32) -> Vec<Tensor> {
        self.run(tokens, |_, output| output)
    }

    pub(crate) fn operands(&self, tokens: u32, op: &Operator, outputs: &[Tensor]) -> Vec<Tensor> {
        let tensor = |source| match source {
            Source::Output(i) => outputs[i as usize].clone(),
            Source::Constant(_) => self.weights.clone(),
            _ => self.input(tokens),
        };
        op.operands.iter().map(|operand| tensor(operand.source)).collect()
    }

    /// The receipt for outputs, and what the worker signs about it.
    pub(crate) fn told(&self, tokens: u32, outputs: &[Tensor]) -> Told {
        self.told_giving(tokens, outputs, tensor_root(outputs.last().unwrap()))
    }

    /// As [`Self::told`], by a worker that gave this to the next stage.
    pub(crate) fn told_giving(&self, tokens: u32, outputs: &[Tensor], to_next: TensorRoot) -> Told {
        let from_previous = tensor_root(&self.input(tokens));
        let (claim, logs) = receipt(LANE, TEXT, &Crossed { from_previous, from_next: None, to_next });
        let trace: Vec<TensorRoot> = outputs.iter().map(tensor_root).collect();
        let statement = receipt_statement(CONTRACTS.claim_id(&claim), AUDITOR, tokens, &trace);
        Told { claim, logs, signed: signed(statement), trace }
    }

    pub(crate) fn prover<'a>(&'a self, tokens: u32, told: &'a Told) -> Prover<'a> {
        let membership = self.list.prove(tokens).unwrap();
        Prover::of_receipt(self.case(), self.program(tokens), membership, &told.claim, &told.logs).unwrap()
    }
}

fn program(tokens: u32, weights: &Tensor) -> Program {
    let (x, y) = (ty(8, 4, &[tokens, 64]), ty(16, 4, &[tokens, 80]));
    let op = |opcode, operands: &[(Source, &TensorType)], attributes: &[i64]| Operator {
        opcode,
        operands: operands.iter().map(|(source, ty)| Operand { source: *source, ty: (*ty).clone() }).collect(),
        attributes: attributes.to_vec(),
        output: y.clone(),
    };
    let operators = vec![
        op(Opcode::MatMul, &[(Source::FromPrevious(0), &x), (Source::Constant(0), weights.ty())], &[4]),
        op(Opcode::Relu, &[(Source::Output(0), &y)], &[]),
        op(Opcode::Scale, &[(Source::Output(1), &y)], &[1, 1]),
    ];
    let weights = ConstantSlot { name: "w".into(), ty: weights.ty().clone(), root: tensor_root(weights) };
    Program {
        names: (0..operators.len()).map(|i| i.to_string()).collect(),
        operators,
        constants: vec![weights],
        state: vec![],
        micro_batches: 1,
        to_next: vec![LAST],
        to_previous: vec![],
        from_previous: vec![x],
        from_next: vec![],
        segments: vec![],
    }
}

/// A receipt, and its worker's word on it.
pub(crate) struct Told {
    pub(crate) claim: Claim,
    pub(crate) logs: BoundaryLists,
    pub(crate) signed: Signed,
    pub(crate) trace: Vec<TensorRoot>,
}

impl Told {
    pub(crate) fn answer(&self) -> StepAnswer<'_> {
        StepAnswer { said: &self.signed, trace: &self.trace, before: &[], after: &[] }
    }

    pub(crate) fn answered(&self) -> Answer {
        Answer { signed: self.signed.clone(), trace: Some(self.trace.clone()), post_state: None }
    }

    /// The worker's word, changed and signed again.
    pub(crate) fn restated(&self, change: impl FnOnce(&mut StepStatement)) -> Signed {
        let mut statement = self.signed.statement.clone();
        change(&mut statement);
        signed(statement)
    }
}

pub(crate) fn own(tokens: u32, outputs: &[Tensor]) -> OwnInterval {
    OwnInterval { first_step: tokens, state: vec![], traces: vec![outputs.iter().map(tensor_root).collect()] }
}
