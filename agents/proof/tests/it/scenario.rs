//! A middle stage that touches every source and sink, a worker for it, and lies to tell.

use alloy_primitives::{Address, B256, Bytes};
use k256::ecdsa::SigningKey;
use tensorlink_num::{StepContext, Tensor, execute};
use tensorlink_proof::audit::{Answer, OwnInterval};
use tensorlink_proof::commit::sign::address_of;
use tensorlink_proof::commit::{
    Boundary, BoundaryLists, Contracts, LogBuilder, ProgramCommitment, io_root, record_hash, sign, state_root,
    tensor_root, trace_root,
};
use tensorlink_proof::fraud::{Case, Signed, Work};
use tensorlink_types::abi::{Claim, StepStatement};
use tensorlink_types::program::{ConstantSlot, StateSlot};
use tensorlink_types::{JobKey, Opcode, Operand, Operator, Program, Source, TensorRoot, TensorType};

pub(crate) const STEPS: u32 = 3;
pub(crate) const INTERVAL: u32 = 2;
pub(crate) const COMMITTED_AT: u64 = 1_700_000_000;
pub(crate) const AUDITOR: Address = Address::repeat_byte(0xaa);

pub(crate) const CONTRACTS: Contracts = Contracts {
    chain_id: 31_337,
    jobs: Address::repeat_byte(1),
    checkpoints: Address::repeat_byte(2),
    channels: Address::repeat_byte(4),
    disputes: Address::repeat_byte(3),
    custody: Address::repeat_byte(5),
};

pub(crate) fn worker_key() -> SigningKey {
    SigningKey::from_slice(&[0x42; 32]).unwrap()
}

pub(crate) fn ty(bits: u8, exponent: i16, dims: &[u32]) -> TensorType {
    TensorType::new(bits, exponent, dims).unwrap()
}

/// Mantissas from a seed, within ±limit.
pub(crate) fn tensor(ty: &TensorType, seed: u64, limit: i64) -> Tensor {
    let value = |i: u64| {
        let x = (i + 1).wrapping_mul(seed | 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        ((x >> 20) % (2 * limit as u64 + 1)) as i64 - limit
    };
    Tensor::from_wide(ty.clone(), &(0..ty.elements()).map(value).collect::<Vec<_>>()).unwrap()
}

fn op(opcode: Opcode, operands: &[(Source, &TensorType)], attributes: &[i64], output: &TensorType) -> Operator {
    let operands = operands.iter().map(|(source, ty)| Operand { source: *source, ty: (*ty).clone() }).collect();
    Operator { opcode, operands, attributes: attributes.to_vec(), output: output.clone() }
}

/// Per micro-batch m: matmul, gradient through relu (to the previous stage), relu (to the next). Then the update: rows
/// of a data set added to one state tensor, the other halved.
pub(crate) struct Scenario {
    pub(crate) program: Program,
    pub(crate) constants: Vec<Tensor>,
    pub(crate) state: Vec<Tensor>,
    pub(crate) job_key: JobKey,
}

pub(crate) const MATMUL: u32 = 0;
pub(crate) const SAMPLE: u32 = 6;
pub(crate) const COMBINE: u32 = 7;
pub(crate) const HALVE: u32 = 8;

impl Scenario {
    pub(crate) fn new() -> Self {
        let (x, w, y) = (ty(8, 4, &[4, 64]), ty(8, 4, &[80, 64]), ty(16, 4, &[4, 80]));
        let (rows, data) = (ty(16, 4, &[5, 40]), ty(16, 4, &[50, 40]));
        let constants = vec![tensor(&data, 5, 1000)];
        let mut operators = Vec::new();
        for m in 0..2 {
            let at = 3 * m;
            operators.push(op(Opcode::MatMul, &[(Source::FromPrevious(m), &x), (Source::State(0), &w)], &[4], &y));
            operators.push(op(Opcode::ReluGrad, &[(Source::FromNext(m), &y), (Source::Output(at), &y)], &[], &y));
            operators.push(op(Opcode::Relu, &[(Source::Output(at), &y)], &[], &y));
        }
        operators.push(op(Opcode::Sample, &[(Source::Constant(0), &data)], &[3], &rows));
        let sum = [(Source::State(1), &rows), (Source::Output(SAMPLE), &rows)];
        operators.push(op(Opcode::Combine, &sum, &[1, 1, 0], &rows));
        operators.push(op(Opcode::Scale, &[(Source::State(0), &w)], &[1, 1], &w));
        let slot = |name: &str, ty: &TensorType, producer| StateSlot { name: name.into(), ty: ty.clone(), producer };
        let program = Program {
            names: (0..operators.len()).map(|i| i.to_string()).collect(),
            operators,
            constants: vec![ConstantSlot { name: "data".into(), ty: data, root: tensor_root(&constants[0]) }],
            state: vec![slot("w", &w, HALVE), slot("sum", &rows, COMBINE)],
            micro_batches: 2,
            to_next: vec![2, 5],
            to_previous: vec![1, 4],
            from_previous: vec![x.clone(), x],
            from_next: vec![y.clone(), y],
            segments: vec![],
        };
        let state = vec![tensor(&w, 7, 100), tensor(&rows, 11, 1000)];
        Self { program, constants, state, job_key: JobKey(B256::repeat_byte(0x77)) }
    }

    /// What the neighbours send.
    pub(crate) fn input(&self, source: Source, step: u32) -> Tensor {
        match source {
            Source::FromPrevious(m) => {
                tensor(&self.program.from_previous[m as usize], u64::from(100 + 2 * step + m), 100)
            }
            Source::FromNext(m) => tensor(&self.program.from_next[m as usize], u64::from(500 + 2 * step + m), 3000),
            _ => unreachable!("not an input"),
        }
    }

    /// Runs the interval; `lie` may replace an operator's output, and what follows builds on it.
    pub(crate) fn run(&self, lie: impl Fn(u32, u32, Tensor) -> Tensor) -> Run {
        let mut run = Run { states: vec![self.state.clone()], ..Run::default() };
        for local in 0..STEPS {
            let step = INTERVAL * STEPS + local;
            let context = StepContext { job_key: self.job_key, step };
            let mut outputs: Vec<Tensor> = vec![];
            for (i, op) in self.program.operators.iter().enumerate() {
                let operands = self.operands(&run, local, op, &outputs);
                let output = execute(op, &operands.iter().collect::<Vec<_>>(), &context).unwrap();
                outputs.push(lie(local, i as u32, output));
            }
            run.states.push(self.program.state.iter().map(|s| outputs[s.producer as usize].clone()).collect());
            run.traces.push(outputs.iter().map(tensor_root).collect());
            for m in 0..2u32 {
                for (boundary, root) in [
                    (Boundary::FromPrevious, tensor_root(&self.input(Source::FromPrevious(m), step))),
                    (Boundary::FromNext, tensor_root(&self.input(Source::FromNext(m), step))),
                    (Boundary::ToNext, tensor_root(&outputs[self.program.to_next[m as usize] as usize])),
                    (Boundary::ToPrevious, tensor_root(&outputs[self.program.to_previous[m as usize] as usize])),
                ] {
                    run.logs.push((boundary, local, m, root));
                }
            }
            run.outputs.push(outputs);
        }
        run.state_roots = run.states.iter().map(|state| state.iter().map(tensor_root).collect()).collect();
        run
    }

    pub(crate) fn honest(&self) -> Run {
        self.run(|_, _, output| output)
    }

    /// An operator's operands, given the outputs before it.
    pub(crate) fn operands(&self, run: &Run, local: u32, op: &Operator, outputs: &[Tensor]) -> Vec<Tensor> {
        let tensor = |source| match source {
            Source::Output(i) => outputs[i as usize].clone(),
            Source::State(i) => run.states[local as usize][i as usize].clone(),
            Source::Constant(i) => self.constants[i as usize].clone(),
            input => self.input(input, INTERVAL * STEPS + local),
        };
        op.operands.iter().map(|operand| tensor(operand.source)).collect()
    }

    /// Claims a run and answers about each of its steps.
    pub(crate) fn claim(&self, run: &Run) -> Claimed {
        let mut logs = LogBuilder::new(&self.program, STEPS).unwrap();
        for (boundary, local, m, root) in &run.logs {
            logs.record(*boundary, *local, *m, *root).unwrap();
        }
        let logs = logs.finish().unwrap();
        let claim = Claim {
            job: 9,
            stage: 1,
            replica: 0,
            interval: INTERVAL,
            parentState: state_root(&run.state_roots[0]),
            newState: state_root(run.state_roots.last().unwrap()),
            io: io_root(&logs.roots()),
        };
        let case = Case {
            contracts: CONTRACTS,
            worker: address_of(&worker_key()),
            lineage: self.job_key.into(),
            work: Work::Training {
                steps_per_interval: STEPS,
                program: ProgramCommitment::new(&self.program).unwrap().root(),
                record: record_hash(&claim, COMMITTED_AT),
            },
        };
        let answer = |local: usize| Answer {
            signed: signed(StepStatement {
                claimId: CONTRACTS.claim_id(&claim).0,
                auditor: AUDITOR,
                step: INTERVAL * STEPS + local as u32,
                preState: state_root(&run.state_roots[local]),
                postState: state_root(&run.state_roots[local + 1]),
                trace: trace_root(&run.traces[local]),
            }),
            trace: Some(run.traces[local].clone()),
            post_state: Some(run.state_roots[local + 1].clone()),
        };
        Claimed { case, answers: (0..STEPS as usize).map(answer).collect(), claim, logs }
    }
}

/// An interval as somebody executed it, or says so.
#[derive(Default)]
pub(crate) struct Run {
    pub(crate) states: Vec<Vec<Tensor>>,
    pub(crate) outputs: Vec<Vec<Tensor>>,
    pub(crate) traces: Vec<Vec<TensorRoot>>,
    pub(crate) state_roots: Vec<Vec<TensorRoot>>,
    pub(crate) logs: Vec<(Boundary, u32, u32, TensorRoot)>,
}

impl Run {
    pub(crate) fn own(&self) -> OwnInterval {
        OwnInterval { first_step: INTERVAL * STEPS, state: self.state_roots[0].clone(), traces: self.traces.clone() }
    }
}

/// What the chain and the worker's answers hold.
pub(crate) struct Claimed {
    pub(crate) case: Case,
    pub(crate) claim: Claim,
    pub(crate) logs: BoundaryLists,
    pub(crate) answers: Vec<Answer>,
}

/// Signed by the worker.
pub(crate) fn signed(statement: StepStatement) -> Signed {
    let signature = sign(&worker_key(), CONTRACTS.statement(&statement)).unwrap();
    Signed { statement, signature: Bytes::from(signature) }
}

/// The tensor with one mantissa replaced.
pub(crate) fn with_element(tensor: &Tensor, element: u64, value: i64) -> Tensor {
    let mut values = tensor.mantissas().to_vec();
    values[element as usize] = value;
    Tensor::from_wide(tensor.ty().clone(), &values).unwrap()
}
