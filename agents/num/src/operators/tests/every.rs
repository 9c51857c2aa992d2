//! What is tested of every opcode at once.

use std::collections::BTreeSet;

use tensorlink_types::Opcode;

use super::drawing::cases;
use super::refusing::refuses;
use crate::error::OpError;
use crate::execute;

#[test]
fn counts() {
    let op = Opcode::Relu;
    assert!(matches!(refuses(op, &[], &[], (8, 0, &[1])), OpError::OperandCount { expected: 1, actual: 0, .. }));
    let extra = refuses(op, &[(8, 0, &[1])], &[3], (8, 0, &[1]));
    assert!(matches!(extra, OpError::AttributeCount { expected: 0, actual: 1, .. }));
}

#[test]
fn errors_say_what_to_change() {
    let error = refuses(Opcode::RowSum, &[(8, 0, &[4097])], &[0], (8, 0, &[1]));
    assert_eq!(
        error.to_string(),
        "N-6: RowSum reduces 4097 elements: split it into parts of at most 4096 and add those"
    );
    let error = refuses(Opcode::Scale, &[(8, 3, &[1])], &[1, 99], (8, 0, &[1]));
    assert_eq!(error.to_string(), "N-14: shift of Scale is 99: choose -63 to 63");
}

/// A third of the cases that could differ have elements that are neither all alike nor all at the limits.
#[test]
fn results_say_something() {
    for opcode in Opcode::ALL {
        let (mut able, mut telling) = (0, 0);
        for case in cases(*opcode).filter(|case| case.operator.output.elements() > 3) {
            let output = execute(&case.operator, &case.operands(), &case.context).unwrap();
            let limit = output.ty().limit();
            let values: BTreeSet<i64> = output.mantissas().to_vec().into_iter().collect();
            able += 1;
            telling += usize::from(values.iter().filter(|v| v.abs() < limit).count() > 1);
        }
        assert!(able > 60 && 3 * telling > able, "{}: {telling} of {able}", opcode.name());
    }
}
