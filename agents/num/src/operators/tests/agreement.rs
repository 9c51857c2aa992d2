//! The two forms of the reference agree, read what they say they read, and survive anything.

use std::cell::RefCell;
use std::collections::BTreeSet;

use proptest::prelude::*;
use tensorlink_types::{Opcode, Operand, Operator, Source, TensorType};

use crate::arbitrary::{Case, MAX_SIZE, case};
use crate::{OpError, Read, Tensor, accessor, check_operator, element, execute, reads};

fn agree(case: &Case) {
    let Case { operator, context, .. } = case;
    let operands = case.operands();
    let output = execute(operator, &operands, context).unwrap();
    assert_eq!(output.ty(), &operator.output);
    for index in 0..output.ty().elements() {
        let asked = RefCell::new(BTreeSet::new());
        let get = |operand, element| {
            asked.borrow_mut().insert((operand, element));
            accessor(&operands)(operand, element)
        };
        assert_eq!(element(operator, get, index, context), Ok(output.get(index).unwrap()), "{operator} at {index}");
        let named = reads(operator, accessor(&operands), index, context).unwrap();
        let end = |read: &Read| (read.operand, read.first + read.count);
        let ordered = named.windows(2).all(|pair| end(&pair[0]) <= (pair[1].operand, pair[1].first));
        assert!(ordered, "{operator} at {index}: {named:?}");
        let named: BTreeSet<_> =
            named.iter().flat_map(|r| (r.first..r.first + r.count).map(|element| (r.operand, element))).collect();
        assert_eq!(asked.into_inner(), named, "{operator} at {index} reads what it names and nothing else");
    }
}

#[test]
fn every_opcode_agrees_on_fixed_seeds() {
    for opcode in Opcode::ALL {
        for seed in 0..60 {
            let size = 1 + seed as u32 % MAX_SIZE;
            agree(&Case::new(*opcode, size, seed).unwrap_or_else(|e| panic!("{opcode:?} {size} {seed}: {e}")));
        }
    }
}

#[test]
fn missing_and_malformed_elements_are_refused() {
    let case = Case::new(Opcode::RowSum, 6, 1).unwrap();
    let nothing = element(&case.operator, |_, _| None, 0, &case.context);
    assert_eq!(nothing, Err(OpError::Missing { operand: 0, element: 0 }));
    let beyond = element(&case.operator, |_, _| Some(i64::MIN), 0, &case.context);
    assert!(matches!(beyond, Err(OpError::Range { value: i64::MIN, .. })));
    let elements = case.operator.output.elements();
    let outside = element(&case.operator, accessor(&case.operands()), elements, &case.context);
    assert_eq!(outside, Err(OpError::NoSuchElement { index: elements, elements }));
}

fn any_type() -> impl Strategy<Value = TensorType> {
    let dims = prop::collection::vec(prop_oneof![4 => 1u32..5, 1 => Just(257), 1 => 1u32..9000], 1..=4);
    (2u8..=64, -256i16..=256, dims).prop_filter_map("too large", |(b, e, d)| TensorType::new(b, e, &d).ok())
}

fn any_operator() -> impl Strategy<Value = Operator> {
    let attribute = prop_oneof![-70i64..70, any::<i64>(), Just(0)];
    let parts = (
        prop::sample::select(Opcode::ALL),
        prop::collection::vec(any_type(), 0..5),
        prop::collection::vec(attribute, 0..6),
        any_type(),
    );
    parts.prop_map(|(opcode, types, attributes, output)| {
        let operands = types.into_iter().map(|ty| Operand { source: Source::State(0), ty }).collect();
        Operator { opcode, operands, attributes, output }
    })
}

/// An accepted operator with one thing changed.
fn mutated() -> impl Strategy<Value = (Case, Operator)> {
    (case(), 0usize..5, any_type(), any::<i64>(), any::<prop::sample::Index>()).prop_map(|(case, what, ty, x, at)| {
        let mut op = case.operator.clone();
        match what {
            0 if !op.attributes.is_empty() => *at.get_mut(&mut op.attributes) = x,
            1 => at.get_mut(&mut op.operands).ty = ty,
            2 => op.output = ty,
            3 => op.opcode = *at.get(Opcode::ALL),
            _ => drop(op.operands.pop()),
        }
        (case, op)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn both_forms_agree(case in case()) {
        agree(&case);
    }

    #[test]
    fn garbage_never_panics(operator in any_operator(), value in any::<i64>(), index in any::<u64>()) {
        let context = Default::default();
        let accepted = check_operator(&operator).is_ok();
        let result = element(&operator, |_, _| Some(value), index, &context);
        prop_assert!(accepted || result.is_err());
        prop_assert_eq!(execute(&operator, &[], &context).err().is_some(), true);
        if let Err(error) = check_operator(&operator) {
            prop_assert!(!error.to_string().is_empty());
        }
    }

    /// Whatever still passes the check is computed without wrapping: both forms agree.
    #[test]
    fn mutations_are_refused_or_agree((case, operator) in mutated()) {
        let sizes = operator.operands.iter().map(|o| o.ty.elements()).chain([operator.output.elements()]);
        // Larger ones are only checked: no test machine holds them.
        let accepted = check_operator(&operator).is_ok();
        if sizes.max() < Some(10_000) {
            let fit = |(named, given): (&Operand, &Tensor)| match named.ty == *given.ty() {
                true => given.clone(),
                false => Tensor::zeros(named.ty.clone()),
            };
            let operands: Vec<Tensor> = operator.operands.iter().zip(&case.operands).map(fit).collect();
            if accepted {
                agree(&Case { operator, operands, context: case.context });
            } else {
                let operands: Vec<&Tensor> = operands.iter().collect();
                prop_assert!(execute(&operator, &operands, &case.context).is_err());
            }
        }
    }

    #[test]
    fn tensors_of_other_types_are_refused(case in case(), other in case()) {
        let (mine, theirs) = (case.operands(), other.operands());
        let same = mine.len() == theirs.len() && mine.iter().zip(&theirs).all(|(a, b)| a.ty() == b.ty());
        prop_assert_eq!(execute(&case.operator, &theirs, &case.context).is_ok(), same);
    }
}
