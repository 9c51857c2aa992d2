//! What engines compute as one, by executing one operator after another.

use tensorlink_types::Operator;

use super::{Engine, EngineError, StepContext};
use crate::fused::attention::FusedAttention;
use crate::fused::chain::{Chain, Taken};

/// [`Engine::attend`] by executing one operator after another.
///
/// # Errors
/// Those of [`Engine::execute`].
pub fn attend<E: Engine + ?Sized>(
    engine: &E,
    attention: &FusedAttention<&Operator>,
    [query, key, table, values]: [&E::Tensor; 4],
    context: &StepContext,
) -> Result<E::Tensor, EngineError> {
    let [scores, max, powers, sum, probabilities, mixed] = attention.operators();
    let scores = engine.execute(scores, &[query, key], context)?;
    let max = engine.execute(max, &[&scores], context)?;
    let powers = engine.execute(powers, &[&scores, &max, table], context)?;
    let sum = engine.execute(sum, &[&powers], context)?;
    let probabilities = engine.execute(probabilities, &[&powers, &sum], context)?;
    engine.execute(mixed, &[&probabilities, values], context)
}

/// [`Engine::chain`] by executing one operator after another.
///
/// # Errors
/// Those of [`Engine::execute`]; [`EngineError::Malformed`] for operands that the chain does not have.
pub fn chain<E: Engine + ?Sized>(
    engine: &E,
    chain: &Chain<&Operator>,
    operands: &[&E::Tensor],
    context: &StepContext,
) -> Result<Vec<E::Tensor>, EngineError> {
    let mut outputs: Vec<E::Tensor> = Vec::with_capacity(chain.links().len());
    for link in chain.links() {
        let find = |from: &Taken| match *from {
            Taken::Outside(number) => operands.get(number).copied(),
            Taken::Link(place) => outputs.get(place),
        };
        let found = link.operands.iter().map(find).collect::<Option<Vec<_>>>();
        let found = found.ok_or_else(|| EngineError::Malformed(format!("{}: an operand is missing", link.operator)))?;
        let output = engine.execute(link.operator, &found, context)?;
        outputs.push(output);
    }
    let kept = outputs.into_iter().zip(chain.links()).filter(|(_, link)| link.kept);
    Ok(kept.map(|(output, _)| output).collect())
}
