//! Tests of rules N-18 and N-20: functions given by tables.

use tensorlink_types::Opcode;

use super::drawing::{any_element, causal_or_not, count};
use super::refusing::{B, C, OUT, Ty, accepts, operator, refuses, refuses_type};
use crate::arbitrary::Case;
use crate::error::OpError;
use crate::operators::{Read, check_operator};

#[test]
fn lookup() {
    let v: &[u32] = &[4];
    let look = |table: &[u32], attributes: &[i64]| {
        let operator = operator(Opcode::Lookup, &[(16, 8, v), (32, 10, table)], attributes, (16, 4, v));
        check_operator(&operator)
    };
    for len in [2, 3, 5, 4097] {
        assert_eq!(look(&[len], &[0, 0, 16, 22]), Ok(()));
    }
    for len in [1, 4, 8193] {
        assert!(matches!(look(&[len], &[0, 0, 16, 22]), Err(OpError::Type { place: B, .. })), "{len}");
    }
    assert!(matches!(look(&[5], &[0, 0, 17, 23]), Err(OpError::Attribute { name: "fraction_bits", .. })));
    assert!(matches!(look(&[5], &[0, 0, 0, 6]), Err(OpError::Attribute { name: "fraction_bits", .. })));
    assert!(matches!(look(&[5], &[64, 0, 16, 22]), Err(OpError::Attribute { name: "input_shift", .. })));
    assert!(matches!(look(&[5], &[0, 1 << 40, 16, 22]), Err(OpError::Attribute { name: "low", .. })));
    assert!(matches!(look(&[5], &[0, 0, 16, 21]), Err(OpError::Precision { expected: 22, .. })));
}

#[test]
fn exp_neg() {
    let (a, max, table, y): (Ty<'_>, Ty<'_>, Ty<'_>, Ty<'_>) =
        ((16, 8, &[2, 6]), (16, 8, &[2]), (26, 24, &[257]), (26, 24, &[2, 6]));
    let op = Opcode::ExpNeg;
    accepts(op, &[a, max, table], &[23637, 6, 0], y);
    refuses_type(B, op, &[a, (16, 7, &[2]), table], &[23637, 6, 0], y);
    refuses_type(B, op, &[a, (16, 8, &[3]), table], &[23637, 6, 0], y);
    refuses_type(C, op, &[a, max, (26, 24, &[256])], &[23637, 6, 0], y);
    refuses_type(C, op, &[a, max, (26, 23, &[257])], &[23637, 6, 0], y);
    refuses_type(C, op, &[a, max, (33, 24, &[257])], &[23637, 6, 0], y);
    refuses_type(OUT, op, &[a, max, table], &[23637, 6, 0], (25, 24, &[2, 6]));
    for c in [0, 1 << 24] {
        assert!(matches!(refuses(op, &[a, max, table], &[c, 6, 0], y), OpError::Attribute { name: "multiplier", .. }));
    }
}

#[test]
fn causal_exp_neg() {
    let exp = |dims, max, causal| {
        refuses(Opcode::ExpNeg, &[(16, 8, dims), (16, 8, max), (26, 24, &[257])], &[23637, 6, causal], (26, 24, dims))
    };
    assert!(matches!(exp(&[2, 6], &[2], 2), OpError::Attribute { name: "causal", min: 0, max: 1, .. }));
    let error = exp(&[6], &[1], 1);
    let message = "N-20: operand 0 of ExpNeg is i16e8[6]: it must be of at least two dimensions, being causal";
    assert_eq!(error.to_string(), message);
}

#[test]
fn corners_are_drawn() {
    causal_or_not(Opcode::ExpNeg);
    let hidden = |case: &Case| any_element(case, <[Read]>::is_empty);
    assert!(count(Opcode::ExpNeg, hidden) > 30, "hidden elements");
}
