//! Chains of operators on the host: elementwise ones in a row.

use tensorlink_program::EngineError;
use tensorlink_program::fused::chain::{Chain, Link, Taken};
use tensorlink_types::{Operator, Width};

use crate::host::elementwise::Precision;
use crate::host::run::{self, Spread, Step, run};
use crate::instruction::Instruction;
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
            let Some((step, shift, spread)) = decode(link)? else { return Ok(None) };
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
fn decode(link: &Link<&Operator>) -> Result<Option<(Step, i32, Spread)>, EngineError> {
    let elements = |operand: usize| link.operator.operands.get(operand).map_or(1, |operand| operand.ty.elements());
    // A tensor in memory has as many elements as a usize counts.
    let runs = Spread::Runs((elements(0) / elements(1)) as usize);
    let narrow = link.operator.operands.iter().all(|operand| operand.ty.bits() <= 32);
    Ok(Some(match Instruction::parse(link.operator)? {
        Instruction::Combine { ca, cb, shift } => (Step::Combine(ca, cb), shift, Spread::Repeated),
        Instruction::RowCombine { ca, cb, shift } => (Step::Combine(ca, cb), shift, runs),
        Instruction::Scale { c, shift } => (Step::Scale(c), shift, Spread::Repeated),
        Instruction::Mul { shift } => (Step::Mul(narrow), shift, Spread::Repeated),
        Instruction::RowMul { shift } => (Step::Mul(narrow), shift, runs),
        Instruction::Ratio { bits, floor } => (Step::Ratio(bits, floor), 0, Spread::Repeated),
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
