//! A trained transformer in integers against the contract: every operator of a real text, one element each.

use std::path::Path;

use alloy_primitives::I256;
use tensorlink::quantized::{Quantising, exact};
use tensorlink_chain::StepVerifierVm;
use tensorlink_folder::ModelFolder;
use tensorlink_model::{StageRunner, tokens};
use tensorlink_num::{StepContext, Tensor, accessor, element, reads};
use tensorlink_program::CheckedProgram;
use tensorlink_proof::commit::tensor_root;
use tensorlink_tensor::{Device, TorchEngine};
use tensorlink_types::abi::{self, Window};
use tensorlink_types::{Opcode, Operator, Source};

const MINILM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../.toolchain/models/all-MiniLM-L6-v2");

/// What a program read and made for one text.
struct Pass {
    program: CheckedProgram,
    constants: Vec<Tensor>,
    input: Tensor,
    outputs: Vec<Tensor>,
}

impl Pass {
    fn of_minilm(text: &str) -> Self {
        let folder = ModelFolder::open(Path::new(MINILM)).unwrap();
        let exact = exact(&folder, &Quantising::default(), Device::Cpu).unwrap();
        let (plan, constants) = exact.stage(0..exact.architecture().layers, tensor_root).unwrap();
        let input = tokens(&folder.tokenizer().encode(text).unwrap()).unwrap();
        let program = plan.program(input.ty().dims()[0]).unwrap();
        let runner = StageRunner::new(TorchEngine::new(Device::Cpu).unwrap(), plan, &constants).unwrap();
        let outputs = runner.trace(&input).unwrap();
        Self { program, constants, input, outputs }
    }

    fn operands(&self, operator: &Operator) -> Vec<&Tensor> {
        let find = |source| match source {
            Source::Output(i) => &self.outputs[i as usize],
            Source::Constant(i) => &self.constants[i as usize],
            Source::FromPrevious(0) => &self.input,
            other => panic!("an encoder reads no {other:?}"),
        };
        operator.operands.iter().map(|operand| find(operand.source)).collect()
    }

    /// What the contract computes for an element, given only what it reads.
    fn recomputed(&self, vm: &StepVerifierVm, operator: &Operator, index: u64) -> I256 {
        let (operands, context) = (self.operands(operator), StepContext::default());
        let mut windows = vec![Vec::new(); operands.len()];
        for read in reads(operator, accessor(&operands), index, &context).unwrap() {
            let tensor = operands[read.operand];
            let width = tensor.ty().width().bytes();
            let mantissas = (read.first..read.first + read.count).map(|i| tensor.get(i).unwrap().to_le_bytes());
            let data: Vec<u8> = mantissas.flat_map(|bytes| bytes[..width].to_vec()).collect();
            windows[read.operand].push(Window { firstByte: read.first * width as u64, data: data.into() });
        }
        let context = abi::StepContext { jobKey: context.job_key.0, step: context.step };
        vm.recompute(&abi::Operator::from(operator), index, &context, &windows).unwrap().0
    }
}

#[test]
fn the_contract_computes_what_a_trained_transformer_did() {
    let pass = Pass::of_minilm("The quick brown fox jumps over the lazy dog, twice a day.");
    let vm = StepVerifierVm::new();
    let mut seen = Vec::new();
    for (place, (operator, output)) in pass.program.operators.iter().zip(&pass.outputs).enumerate() {
        // Anywhere in the tensor, elsewhere in each operator.
        let index = (place as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) % output.ty().elements();
        let claimed = output.get(index).unwrap();
        let recomputed = pass.recomputed(&vm, operator, index);
        assert_eq!(recomputed, I256::try_from(claimed).unwrap(), "{}[{index}]", pass.program.names[place]);
        seen.push(operator.opcode);
        let operands = pass.operands(operator);
        assert_eq!(element(operator, accessor(&operands), index, &StepContext::default()), Ok(claimed));
    }
    seen.sort();
    seen.dedup();
    // What an encoder has no use for: training, rotary positions, the choice of a token, and training of transformers.
    let training = [
        Opcode::MatMul,
        Opcode::Scale,
        Opcode::Relu,
        Opcode::ReluGrad,
        Opcode::OneHotSub,
        Opcode::Sample,
        Opcode::ScaledMatMul,
        Opcode::RowAbsMax,
    ];
    let choice =
        [Opcode::RowArgMax, Opcode::RowPick, Opcode::TailSum, Opcode::Threshold, Opcode::Perturb, Opcode::Choose];
    let of_training = Opcode::RowCombine..=Opcode::Dither;
    let transformers = Opcode::ALL.iter().copied().filter(|opcode| of_training.contains(opcode)).collect::<Vec<_>>();
    let idle = [&training[..], &[Opcode::Rope], &choice, &transformers[..]].concat();
    let due: Vec<Opcode> = Opcode::ALL.iter().copied().filter(|opcode| !idle.contains(opcode)).collect();
    assert_eq!(seen, due);
}
