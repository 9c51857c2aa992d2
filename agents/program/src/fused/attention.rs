//! Attention as one: engines may compute it a few rows at a time, so that scores need not leave a cache.

use tensorlink_types::operator::Operand;
use tensorlink_types::{Opcode, Operator, Source};

/// How often each of the outputs within an attention is read there, and so by anybody.
const READS: [u32; 5] = [2, 1, 2, 1, 1];

/// HeadScores, RowMax, ExpNeg, RowSum, Normalize and HeadMix, where each reads the outputs before it and nobody else
/// does: the operators, or their places in a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FusedAttention<T>([T; 6]);

impl<T: Copy> FusedAttention<T> {
    /// HeadScores, RowMax, ExpNeg, RowSum, Normalize, HeadMix.
    pub const fn operators(&self) -> [T; 6] {
        self.0
    }
}

impl<'a> FusedAttention<&'a Operator> {
    /// What it takes from outside: queries, keys, the table of powers, values.
    pub fn operands(&self) -> Option<[&'a Operand; 4]> {
        let [scores, _, powers, .., mixed] = self.0;
        match (scores.operands.as_slice(), powers.operands.as_slice(), mixed.operands.as_slice()) {
            ([query, key], [_, _, table], [_, values]) => Some([query, key, table, values]),
            _ => None,
        }
    }
}

impl FusedAttention<usize> {
    /// The places.
    pub(super) fn places(&self) -> impl Iterator<Item = usize> {
        self.0.into_iter()
    }

    pub(super) fn in_program<'a>(&self, operators: &'a [Operator]) -> Option<FusedAttention<&'a Operator>> {
        let [scores, max, powers, sum, probabilities, mixed] = self.0.map(|place| operators.get(place));
        Some(FusedAttention([scores?, max?, powers?, sum?, probabilities?, mixed?]))
    }
}

/// The operator whose output is the operand of another, if it is of an opcode and the types agree.
pub(super) fn producer(operators: &[Operator], reader: usize, operand: usize, opcode: Opcode) -> Option<usize> {
    let operand = operators.get(reader)?.operands.get(operand)?;
    let Source::Output(place) = operand.source else { return None };
    let producer = operators.get(place as usize)?;
    (producer.opcode == opcode && producer.output == operand.ty && (place as usize) < reader).then_some(place as usize)
}

/// The attention whose last operator is in a place.
pub(super) fn ending_at(operators: &[Operator], last: usize, readers: &[u32]) -> Option<FusedAttention<usize>> {
    operators.get(last).filter(|operator| operator.opcode == Opcode::HeadMix)?;
    let before = |reader, operand, opcode| producer(operators, reader, operand, opcode);
    let probabilities = before(last, 0, Opcode::Normalize)?;
    let powers = before(probabilities, 0, Opcode::ExpNeg)?;
    let sum = before(probabilities, 1, Opcode::RowSum)?;
    let max = before(powers, 1, Opcode::RowMax)?;
    let scores = before(powers, 0, Opcode::HeadScores)?;
    let places = [scores, max, powers, sum, probabilities];
    let linked = before(sum, 0, Opcode::ExpNeg) == Some(powers) && before(max, 0, Opcode::HeadScores) == Some(scores);
    // The first attribute of RowMax is the last of ExpNeg: whether rows see what comes after them.
    let causal = |place: usize, first: bool| {
        let attributes = &operators.get(place)?.attributes;
        if first { attributes.first() } else { attributes.last() }
    };
    let alike = causal(max, true) == causal(powers, false);
    let read = places.iter().map(|place| readers.get(*place).copied());
    (linked && alike && read.eq(READS.map(Some))).then(|| {
        let [scores, max, powers, sum, probabilities] = places;
        FusedAttention([scores, max, powers, sum, probabilities, last])
    })
}

#[cfg(test)]
mod tests {
    use tensorlink_types::TensorType;
    use tensorlink_types::operator::Operand;

    use super::super::{Fusions, Turn};
    use super::*;

    /// An operator whose operands are outputs of others, or come from outside where the list names the operator itself.
    fn operator(place: u32, opcode: Opcode, operands: &[u32], attributes: &[i64]) -> Operator {
        let ty = || TensorType::new(16, 0, &[2]).unwrap();
        let source = |from: u32| if from == place { Source::Constant(0) } else { Source::Output(from) };
        let operands = operands.iter().map(|from| Operand { source: source(*from), ty: ty() }).collect();
        Operator { opcode, operands, attributes: attributes.to_vec(), output: ty() }
    }

    /// An attention with a transposition among its operators.
    fn program() -> Vec<Operator> {
        vec![
            operator(0, Opcode::HeadScores, &[0, 0], &[1, 0]),
            operator(1, Opcode::RowMax, &[0], &[1]),
            operator(2, Opcode::ExpNeg, &[0, 1, 2], &[5, 0, 1]),
            operator(3, Opcode::RowSum, &[2], &[0]),
            operator(4, Opcode::Normalize, &[2, 3], &[0]),
            operator(5, Opcode::Transpose, &[5], &[]),
            operator(6, Opcode::HeadMix, &[4, 5], &[1, 0]),
        ]
    }

    /// Places at which something is computed, and those that have then run.
    fn turns(operators: &[Operator], wanted: &[u32]) -> Vec<(usize, Vec<usize>)> {
        let fusions = Fusions::attentions(operators, wanted.iter().map(|place| Source::Output(*place)));
        let computed = |place: &usize| !matches!(fusions.turn(operators, *place), Some(Turn::Later) | None);
        (0..operators.len()).filter(computed).map(|place| (place, fusions.done(place).collect())).collect()
    }

    #[test]
    fn an_attention_is_computed_at_its_last_operator() {
        let operators = program();
        assert_eq!(turns(&operators, &[6]), [(5, vec![5]), (6, vec![0, 1, 2, 3, 4, 6])]);
        let fusions = Fusions::attentions(&operators, [Source::Output(6)]);
        let Some(Turn::Attention(_, fused)) = fusions.turn(&operators, 6) else { panic!("no attention") };
        let sources = fused.operands().unwrap().map(|operand| operand.source);
        assert_eq!(sources, [Source::Constant(0), Source::Constant(0), Source::Constant(0), Source::Output(5)]);
    }

    #[test]
    fn what_others_read_or_what_is_no_softmax_is_computed_by_itself() {
        let operators = program();
        let alone: Vec<_> = (0..7).map(|place| (place, vec![place])).collect();
        for place in 0..5 {
            assert_eq!(turns(&operators, &[6, place]), alone, "{place} is read by somebody else");
        }
        let changes: [fn(&mut Vec<Operator>); 5] = [
            |operators| operators[1].attributes = vec![0],
            |operators| operators[1].operands[0].source = Source::State(0),
            |operators| operators[3].operands[0].source = Source::Output(0),
            |operators| operators[4].operands[1].ty = TensorType::new(8, 0, &[2]).unwrap(),
            |operators| operators[6].operands.swap(0, 1),
        ];
        for (number, change) in changes.into_iter().enumerate() {
            let mut operators = operators.clone();
            change(&mut operators);
            assert_eq!(turns(&operators, &[6]), alone, "change {number}");
        }
        assert_eq!(turns(&operators[..6], &[]), alone[..6]);
    }
}
