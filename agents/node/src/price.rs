//! What a lane costs at an advertised price: the worker asks for it, the user checks it.

use tensorlink_types::{Opcode, Program};

/// Multiply-adds of a step of a program: those of its matrix products, which dominate.
pub fn multiply_adds(program: &Program) -> u128 {
    let products = program.operators.iter().filter(|op| op.opcode == Opcode::MatMul);
    products
        .map(|op| {
            let k = op.operands.first().map_or(0, |a| a.ty.row());
            u128::from(op.output.elements()) * u128::from(k)
        })
        .sum()
}

/// Price of an interval of `steps` in wei at `price_per_gmac` wei per billion multiply-adds, rounded up; at least 1. None if it does not fit.
pub fn price_per_interval(program: &Program, steps: u32, price_per_gmac: u128) -> Option<u128> {
    let work = multiply_adds(program).checked_mul(u128::from(steps))?;
    Some(work.checked_mul(price_per_gmac)?.div_ceil(1_000_000_000).max(1))
}
