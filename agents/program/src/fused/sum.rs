//! A parameter's gradients by several sequences, and their sum: computed when the sum is, so that what each adds need
//! not be kept. What products are computed from takes a fraction of a gradient's memory.

use std::collections::BTreeMap;

use tensorlink_types::{Opcode, Operator, Source};

/// Attributes of a Combine that adds.
const SUM: [i64; 3] = [1, 1, 0];

/// Places of the operators of every sum of two gradients and more, in the program's order.
pub(super) fn find(operators: &[Operator], readers: &[u32]) -> impl Iterator<Item = Vec<usize>> {
    let mut sums: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (place, operator) in operators.iter().enumerate() {
        let alike = operator.operands.iter().all(|operand| operand.ty == operator.output);
        if operator.opcode != Opcode::Combine || operator.attributes != SUM || !alike {
            continue;
        }
        let [Some(total), Some(part)] = [0, 1].map(|operand| read_once(operators, (place, operand), readers)) else {
            continue;
        };
        if total == part || !gradient(operators, part) {
            continue;
        }
        let mut places = match sums.remove(&total) {
            Some(places) => places,
            None if gradient(operators, total) => vec![total],
            None => continue,
        };
        places.extend([part, place]);
        sums.insert(place, places);
    }
    sums.into_values().map(|mut places| {
        places.sort_unstable();
        places
    })
}

/// The operator whose output is an operand of another, which alone reads it.
fn read_once(operators: &[Operator], (place, operand): (usize, usize), readers: &[u32]) -> Option<usize> {
    let Source::Output(read) = operators.get(place)?.operands.get(operand)?.source else { return None };
    let read = read as usize;
    (readers.get(read) == Some(&1) && read < place).then_some(read)
}

/// Whether an operator gives a gradient, of what the program holds itself: what neighbours sent is dropped before sums
/// are computed.
fn gradient(operators: &[Operator], place: usize) -> bool {
    operators.get(place).is_some_and(|operator| {
        let ours = |source| matches!(source, Source::Output(_) | Source::State(_) | Source::Constant(_));
        matches!(operator.opcode, Opcode::ScaledMatMul | Opcode::GatherGrad)
            && operator.operands.iter().all(|operand| ours(operand.source))
    })
}
