//! The contract's arithmetic is the reference's, for random operators, elements and openings.

use std::sync::LazyLock;

use alloy::primitives::I256;
use proptest::prelude::*;
use proptest::sample::Index;
use tensorlink_chain::StepVerifierVm;
use tensorlink_num::arbitrary::{Case, case};
use tensorlink_num::{accessor, element, reads};
use tensorlink_types::abi::{Operator, StepContext, Window};

static VM: LazyLock<StepVerifierVm> = LazyLock::new(StepVerifierVm::new);

/// For every operand just the bytes that the element reads, and `margin` elements on both sides.
fn windows(case: &Case, index: u64, margin: u64) -> Vec<Vec<Window>> {
    let operands = case.operands();
    let read = reads(&case.operator, accessor(&operands), index, &case.context).unwrap();
    let mut windows = vec![Vec::new(); operands.len()];
    for read in read {
        let tensor = operands[read.operand];
        let (bytes, elements) = (tensor.to_bytes(), tensor.ty().elements());
        let width = tensor.ty().byte_len() / elements;
        let first = read.first.saturating_sub(margin) * width;
        let end = (read.first + read.count + margin).min(elements) * width;
        let data = bytes[first as usize..end as usize].to_vec().into();
        windows[read.operand].push(Window { firstByte: first, data });
    }
    windows
}

fn context(case: &Case) -> StepContext {
    StepContext { jobKey: case.context.job_key.0, step: case.context.step }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn recomputes_what_the_reference_computes(case in case(), at in any::<Index>(), margin in 0..3u64) {
        let index = at.index(case.operator.output.elements() as usize) as u64;
        let operands = case.operands();
        let expected = element(&case.operator, accessor(&operands), index, &case.context).unwrap();
        let windows = windows(&case, index, margin);
        let (mantissa, _) = VM.recompute(&Operator::from(&case.operator), index, &context(&case), &windows).unwrap();
        prop_assert_eq!(mantissa, I256::try_from(expected).unwrap());
    }

    #[test]
    fn nothing_is_made_up_for_elements_that_were_not_opened(case in case(), at in any::<Index>(), cut in any::<Index>()) {
        let index = at.index(case.operator.output.elements() as usize) as u64;
        let mut windows = windows(&case, index, 0);
        let opened: Vec<usize> = (0..windows.len()).filter(|operand| !windows[*operand].is_empty()).collect();
        // Nothing is read for what a token may not see (N-8).
        prop_assume!(!opened.is_empty());
        let operand = opened[cut.index(opened.len())];
        let window = &mut windows[operand][0];
        window.data = window.data.slice(..window.data.len() - 1);
        let refused = VM.recompute(&Operator::from(&case.operator), index, &context(&case), &windows).unwrap_err();
        prop_assert_eq!(refused.name, "MissingElement");
    }
}

#[test]
fn reverts_are_named() {
    let case = Case::new(tensorlink_types::Opcode::Relu, 3, 1).unwrap();
    let beyond = case.operator.output.elements();
    let operator = Operator::from(&case.operator);
    let refused = VM.recompute(&operator, beyond, &context(&case), &[]).unwrap_err();
    assert_eq!((refused.name.as_str(), refused.arguments), ("ElementOutOfRange", format!("({beyond})")));
    let unknown = Operator { opcode: 99, ..operator };
    let refused = VM.recompute(&unknown, 0, &context(&case), &[]).unwrap_err();
    assert_eq!((refused.name.as_str(), refused.arguments.as_str()), ("UnknownOpcode", "(99)"));
}
