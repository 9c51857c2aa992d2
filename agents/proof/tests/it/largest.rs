//! The largest program that anybody accepts, and the transactions about it.

use alloy_primitives::{B256, U256};
use alloy_sol_types::SolValue;
use tensorlink_proof::commit::Boundary;
use tensorlink_proof::fraud::{Prover, Sink, StepAnswer, verify_wiring_proof};
use tensorlink_types::program::StateSlot;
use tensorlink_types::{JobKey, Opcode, Operand, Operator, Program, Source, TensorRoot};

use crate::scenario::{COMMITTED_AT, Run, STEPS, Scenario, ty};

/// Most operators (`tensorlink_program::check::MAX_OPERATORS`).
const OPERATORS: u32 = 1 << 17;
/// Most state tensors, and most micro-batches (`tensorlink_program::check::MAX_SLOTS`).
const SLOTS: u32 = 1 << 12;
/// What a public mempool takes, bytes (geth's `txMaxSize`).
const MEMPOOL: usize = 131_072;

/// The last operators go everywhere.
fn largest() -> Scenario {
    let ty = ty(8, 4, &[1]);
    let operand = Operand { source: Source::State(0), ty: ty.clone() };
    let relu = Operator { opcode: Opcode::Relu, operands: vec![operand], attributes: Vec::new(), output: ty.clone() };
    let last = |from: u32| (0..SLOTS).map(move |slot| OPERATORS - from * SLOTS + slot);
    let program = Program {
        names: Vec::new(),
        operators: vec![relu; OPERATORS as usize],
        constants: Vec::new(),
        state: last(1).map(|producer| StateSlot { name: String::new(), ty: ty.clone(), producer }).collect(),
        micro_batches: SLOTS,
        to_next: last(2).collect(),
        to_previous: last(3).collect(),
        from_previous: vec![ty.clone(); SLOTS as usize],
        from_next: vec![ty; SLOTS as usize],
        segments: Vec::new(),
    };
    Scenario { program, constants: Vec::new(), state: Vec::new(), job_key: JobKey(B256::repeat_byte(0x77)) }
}

fn root(number: u32) -> TensorRoot {
    TensorRoot(U256::from(number).into())
}

#[test]
fn the_proof_of_any_wiring_fits_a_public_mempool() {
    let scenario = largest();
    let mut run = Run { state_roots: vec![(0..SLOTS).map(root).collect()], ..Run::default() };
    for local in 0..STEPS {
        run.traces.push((0..OPERATORS).map(root).collect());
        // What the step left behind is nowhere what the trace has for it.
        run.state_roots.push((0..SLOTS).map(root).collect());
        for boundary in Boundary::ALL {
            run.logs.extend((0..SLOTS).map(|entry| (boundary, local, entry, root(entry))));
        }
    }
    let claimed = scenario.claim(&run);
    let prover = Prover::new(claimed.case, &scenario.program, &claimed.claim, COMMITTED_AT, &claimed.logs).unwrap();
    let (said, trace) = (&claimed.answers[1].signed, &run.traces[1]);
    let step = StepAnswer { said, trace, before: &run.state_roots[1], after: &run.state_roots[2] };
    for (sink, from) in [(Sink::State, 1), (Sink::ToNext, 2), (Sink::ToPrevious, 3)] {
        for entry in [0, SLOTS - 1] {
            let proof = prover.wiring(&step, sink, entry).unwrap();
            let conviction = verify_wiring_proof(&claimed.case, &proof).unwrap();
            assert_eq!(conviction.operator, OPERATORS - from * SLOTS + entry);
            let bytes = proof.abi_encoded_size();
            assert!(bytes < MEMPOOL / 8, "{bytes} bytes");
        }
    }
}
