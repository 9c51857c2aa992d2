//! Operators back from their ABI form.

use tensorlink_types::{Opcode, Operand, Operator, Source, TensorType, abi};

use super::Refusal;

/// An operator as its ABI form spells it; whether it obeys its opcode's rule is for `num` to say.
///
/// # Errors
/// [`Refusal::WrongOperator`] for opcodes, sources or type words that do not exist.
pub fn operator(operator: &abi::Operator) -> Result<Operator, Refusal> {
    let ty = |word| TensorType::from_word(word).map_err(|_| Refusal::WrongOperator);
    let operand = |operand: &abi::Operand| {
        let source = Source::from_pair(operand.source, operand.index).ok_or(Refusal::WrongOperator)?;
        Ok(Operand { source, ty: ty(operand.tensorType)? })
    };
    Ok(Operator {
        opcode: Opcode::try_from(operator.opcode).map_err(|_| Refusal::WrongOperator)?,
        operands: operator.operands.iter().map(operand).collect::<Result<_, Refusal>>()?,
        attributes: operator.attributes.clone(),
        output: ty(operator.output)?,
    })
}
