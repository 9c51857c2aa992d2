//! Runs of operators that follow one another and compute an element from those at its place: the optimiser's, mostly.

use std::ops::Range;

use tensorlink_types::{Opcode, Operator, Source};

/// Most operators of a run: so many blocks of elements fit a first-level cache.
const MOST: usize = 12;

const fn elementwise(opcode: Opcode) -> bool {
    matches!(
        opcode,
        Opcode::Combine | Opcode::Scale | Opcode::Mul | Opcode::RowCombine | Opcode::RowMul | Opcode::Ratio
    )
}

/// Runs of two and more among the operators of a range that are free: of as many elements, each of which shares one
/// with those before it.
pub(super) fn find(operators: &[Operator], range: Range<usize>, free: impl Fn(&usize) -> bool) -> Vec<Vec<usize>> {
    let mut runs = vec![Run::default()];
    for place in range {
        let Some(operator) = operators.get(place) else { continue };
        let fits = free(&place) && elementwise(operator.opcode);
        let joins = fits && runs.last().is_some_and(|run| run.takes(operator));
        if !joins {
            runs.push(Run::default());
        }
        if let (true, Some(run)) = (fits, runs.last_mut()) {
            run.push(place, operator);
        }
    }
    runs.into_iter().map(|run| run.places).filter(|places| places.len() > 1).collect()
}

#[derive(Default)]
struct Run {
    places: Vec<usize>,
    elements: u64,
    /// What its operators read or give, as large as they are.
    seen: Vec<Source>,
}

impl Run {
    fn takes(&self, operator: &Operator) -> bool {
        let shared = operator.operands.iter().any(|operand| self.seen.contains(&operand.source));
        shared && self.places.len() < MOST && operator.output.elements() == self.elements
    }

    fn push(&mut self, place: usize, operator: &Operator) {
        self.elements = operator.output.elements();
        let whole = operator.operands.iter().filter(|operand| operand.ty.elements() == self.elements);
        self.seen.extend(whole.map(|operand| operand.source));
        self.seen.extend(u32::try_from(place).map(Source::Output));
        self.places.push(place);
    }
}
