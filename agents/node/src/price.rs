//! What a lane costs at an advertised price: the worker asks for it, the user checks it.

use serde::{Deserialize, Serialize};
use tensorlink_types::{Address, Opcode, Operator, Program, U256};

use crate::ports::chain::Parameters;

/// One, in 1/10,000.
const WHOLE_BPS: U256 = U256::from_limbs([10_000, 0, 0, 0]);

/// What a worker asks for a billion multiply-adds, in wei of each currency that it takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Prices {
    /// In SNO.
    pub sno: u128,
    /// In ETH; none: jobs that pay in ETH are declined.
    pub eth: Option<u128>,
}

impl Prices {
    /// The price in a job's token, the zero address for ETH; none where that is not taken.
    pub fn in_token(&self, token: Address) -> Option<u128> {
        if token.is_zero() { self.eth } else { Some(self.sno) }
    }
}

/// Multiply-adds of a step of a program: those of its matrix products, which dominate.
pub fn multiply_adds(program: &Program) -> u128 {
    program.operators.iter().map(|op| u128::from(op.output.elements()) * u128::from(terms(op))).sum()
}

/// Products that an element of a matrix product sums; 0 for other operators.
fn terms(op: &Operator) -> u64 {
    let row = |operand: usize| op.operands.get(operand).map_or(0, |operand| operand.ty.row());
    match op.opcode {
        Opcode::MatMul | Opcode::ScaledMatMul | Opcode::ShiftedMatMul | Opcode::HeadMix => row(1),
        // A row of the queries is one of every head.
        Opcode::HeadScores => row(0) / op.output.dims().first().map_or(1, |heads| u64::from(*heads).max(1)),
        _ => 0,
    }
}

/// Price of an interval of `steps` in wei at `price_per_gmac` wei per billion multiply-adds, rounded up; at least 1.
/// None if it does not fit.
pub fn price_per_interval(program: &Program, steps: u32, price_per_gmac: u128) -> Option<u128> {
    let work = multiply_adds(program).checked_mul(u128::from(steps))?;
    Some(work.checked_mul(price_per_gmac)?.div_ceil(1_000_000_000).max(1))
}

/// Price of a token of a serving lane in wei, by the program of its longest text of `tokens` tokens, rounded up; at
/// least 1. None if it does not fit.
pub fn price_per_token(longest: &Program, tokens: u32, price_per_gmac: u128) -> Option<u128> {
    price_of_token(multiply_adds(longest), tokens, price_per_gmac)
}

/// As [`price_per_token`], by the multiply-adds of that program.
pub fn price_of_token(longest: u128, tokens: u32, price_per_gmac: u128) -> Option<u128> {
    let price = longest.checked_mul(price_per_gmac)?;
    let divisor = u128::from(tokens.max(1)).checked_mul(1_000_000_000)?;
    Some(price.div_ceil(divisor).max(1))
}

/// What a job's escrow holds for audits beyond what it holds for work (rule P-29), wei: `per_unit` is what an interval
/// costs in all lanes, or a token; `units` how many there are; `longest` how many a claim can be about, one interval or
/// the tokens of the longest text.
pub fn audit_budget(parameters: &Parameters, per_unit: U256, units: u32, longest: u32) -> U256 {
    let bps = u64::from(parameters.audits_per_claim_bps);
    if bps == 0 {
        return U256::ZERO;
    }
    let twice_the_mean = U256::from(units) * U256::from(2 * bps);
    let audits = twice_the_mean.div_ceil(U256::from(longest.max(1)) * WHOLE_BPS) + U256::ONE;
    audits
        .saturating_mul(per_unit.saturating_mul(U256::from(longest) * U256::from(parameters.audit_fee_bps)) / WHOLE_BPS)
}

/// Least stake of a lane whose unit costs `price` wei of SNO, wei (rule P-30).
pub fn least_stake(parameters: &Parameters, price: u128, longest: u32) -> U256 {
    U256::from(price).saturating_mul(U256::from(longest) * U256::from(parameters.min_stake_intervals))
}

#[cfg(test)]
mod tests {
    use tensorlink_types::{Operand, Source, TensorType};

    use super::*;

    fn operator(opcode: Opcode, operands: &[&[u32]], output: &[u32]) -> Operator {
        let ty = |dims: &[u32]| TensorType::new(8, 0, dims).unwrap();
        let operands = operands.iter().map(|dims| Operand { source: Source::State(0), ty: ty(dims) }).collect();
        Operator { opcode, operands, attributes: vec![], output: ty(output) }
    }

    #[test]
    fn audits_are_paid_in_whole_fees() {
        let parameters = Parameters { audits_per_claim_bps: 1_000, audit_fee_bps: 12_500, ..Parameters::default() };
        let budget = |units, longest| audit_budget(&parameters, U256::from(8), units, longest);
        // Twice a tenth of 4 intervals makes a whole audit, and there is one more: each costs 10.
        assert_eq!([budget(4, 1), budget(5, 1), budget(6, 1)].map(|b| b.to::<u64>()), [20, 20, 30]);
        // 100 tokens are two texts of 50.
        assert_eq!(budget(100, 50), U256::from(2 * 50 * 10));
        assert_eq!(audit_budget(&Parameters::default(), U256::from(8), 4, 1), U256::ZERO);
    }

    #[test]
    fn every_matrix_product_has_its_price() {
        // 5 tokens, 4 heads of 8 elements, 2 heads of keys and values, MLP of 48.
        assert_eq!(terms(&operator(Opcode::ScaledMatMul, &[&[5, 32], &[48, 32], &[5], &[48]], &[5, 48])), 32);
        assert_eq!(terms(&operator(Opcode::HeadScores, &[&[5, 32], &[5, 16]], &[4, 5, 5])), 8);
        assert_eq!(terms(&operator(Opcode::HeadMix, &[&[4, 5, 5], &[16, 5]], &[5, 32])), 5);
        assert_eq!(terms(&operator(Opcode::Transpose, &[&[5, 32]], &[32, 5])), 0);
    }
}
