//! Chains of operators on the host: elementwise ones in a row.

use tensorlink_num::operators::CheckedOperator;
use tensorlink_program::EngineError;
use tensorlink_program::fused::chain::{Chain, Link, Taken};
use tensorlink_types::{Operator, Width};

use crate::checked::decode;
use crate::host::block::Precision;
use crate::host::run::{self, Spread, Step, run};
use crate::simd::Simd;
use crate::tensor::TorchTensor;

/// A run of elementwise operators, decoded.
pub(crate) struct Run<'a> {
    chain: &'a Chain<&'a Operator>,
    links: Vec<run::Link>,
    /// Numbers of the operands from outside, and how they lie along the elements.
    inputs: Vec<(usize, Spread)>,
}

impl<'a> Run<'a> {
    /// Checks and decodes; nothing of other operators, or of words alone, for which there are kernels of their own.
    ///
    /// # Errors
    /// [`EngineError::Malformed`] with the rule that is broken.
    pub(crate) fn parse(chain: &'a Chain<&'a Operator>) -> Result<Option<Self>, EngineError> {
        if chain.links().iter().all(|link| matches!(link.operator.output.width(), Width::I8 | Width::I16)) {
            return Ok(None);
        }
        let mut run = Self { chain, links: Vec::new(), inputs: Vec::new() };
        // Slots of results follow those of operands, which must be known first.
        let mut slots = Vec::new();
        for link in chain.links() {
            let Some((step, shift, spread)) = step_of(link)? else { return Ok(None) };
            let limit = link.operator.output.limit();
            if !step.serves(limit) || !linked(chain, link) {
                return Ok(None);
            }
            let mut slot = |operand: usize, spread: Spread| match link.operands.get(operand).copied() {
                Some(Taken::Outside(number)) => Slot::Input(run.input((number, spread))),
                Some(Taken::Link(place)) => Slot::Result(place),
                // Scale has one operand; what stands for the other is not read.
                None => Slot::Input(0),
            };
            slots.push((slot(0, Spread::Repeated), slot(1, spread)));
            run.links.push(run::Link { step, slots: (0, 0), to: Precision { shift, limit }, kept: link.kept });
        }
        let inputs = run.inputs.len();
        let number = |slot: &Slot| match *slot {
            Slot::Input(input) => input,
            Slot::Result(place) => inputs + place,
        };
        for (link, (a, b)) in run.links.iter_mut().zip(&slots) {
            link.slots = (number(a), number(b));
        }
        Ok(Some(run))
    }

    fn input(&mut self, input: (usize, Spread)) -> usize {
        let known = self.inputs.iter().position(|known| *known == input);
        known.unwrap_or_else(|| {
            self.inputs.push(input);
            self.inputs.len() - 1
        })
    }

    /// What is kept, from the operands from outside.
    ///
    /// # Errors
    /// [`EngineError::Device`] if memory runs out or an operand is not in host memory.
    pub(crate) fn compute(&self, simd: Simd, operands: &[&TorchTensor]) -> Result<Vec<TorchTensor>, EngineError> {
        let input = |(number, spread): &(usize, Spread)| Ok((operands[*number].slice()?, *spread));
        let inputs = self.inputs.iter().map(input).collect::<Result<Vec<_>, EngineError>>()?;
        let kept = self.chain.links().iter().filter(|link| link.kept);
        let types: Vec<_> = kept.map(|link| &link.operator.output).collect();
        TorchTensor::build_all(&types, |outputs| {
            run(simd, &inputs, &self.links, outputs);
            Ok(())
        })
    }
}

/// Where an operand of a run lies.
enum Slot {
    Input(usize),
    Result(usize),
}

/// What an operator computes, by how much it is rescaled, and how its second operand lies along the elements.
fn step_of(link: &Link<&Operator>) -> Result<Option<(Step, i32, Spread)>, EngineError> {
    let runs = |run: u64| Spread::Runs(run as usize);
    let narrow = link.operator.operands.iter().all(|operand| operand.ty.bits() <= 32);
    // The check keeps shifts within ±63.
    Ok(Some(match decode(link.operator)? {
        CheckedOperator::Combine(op) => (Step::Combine(op.ca, op.cb), op.shift as i32, Spread::Repeated),
        CheckedOperator::RowCombine(op) => (Step::Combine(op.ca, op.cb), op.shift as i32, runs(op.run)),
        CheckedOperator::Scale(op) => (Step::Scale(op.c), op.shift as i32, Spread::Repeated),
        CheckedOperator::Mul(op) => (Step::Mul(narrow), op.shift as i32, Spread::Repeated),
        CheckedOperator::RowMul(op) => (Step::Mul(narrow), op.shift as i32, runs(op.run)),
        CheckedOperator::Ratio(op) => (Step::Ratio(op.bits, op.floor), 0, Spread::Repeated),
        _ => return Ok(None),
    }))
}

/// Whether what a link takes from others is of the type it names and of as many elements as it gives.
fn linked(chain: &Chain<&Operator>, link: &Link<&Operator>) -> bool {
    let elements = link.operator.output.elements();
    let first = chain.links().first().map(|first| first.operator.output.elements());
    first == Some(elements)
        && link.operands.iter().zip(&link.operator.operands).all(|(from, named)| match *from {
            Taken::Outside(_) => true,
            Taken::Link(place) => chain.links().get(place).is_some_and(|link| link.operator.output == named.ty),
        })
}
