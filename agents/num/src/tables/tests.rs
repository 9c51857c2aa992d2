//! The tables of functions, against floats and against fingerprints of what other machines must make.

use alloy_primitives::keccak256;

use super::{Function, Grid, TableError, function_table};

const ALL: [Function; 10] = [
    Function::Gelu,
    Function::GeluDerivative,
    Function::GeluCdf,
    Function::Sigmoid,
    Function::Tanh,
    Function::GeluTanh,
    Function::Silu,
    Function::SiluDerivative,
    Function::GeluTanhDerivative,
    Function::GeluTanhCdf,
];

/// Simpson's rule on the density: independent of the series.
fn normal(x: f64) -> f64 {
    let n = 2000;
    let h = x / f64::from(n);
    let density = |t: f64| (-t * t / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
    let weight = |i| if i == 0 || i == n { 1.0 } else { f64::from(2 + 2 * (i % 2)) };
    0.5 + (0..=n).map(|i| weight(i) * density(f64::from(i) * h)).sum::<f64>() * h / 3.0
}

fn float(function: Function, x: f64) -> f64 {
    let density = (-x * x / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
    match function {
        Function::Gelu => x * normal(x),
        Function::GeluDerivative => normal(x) + x * density,
        Function::GeluCdf => normal(x),
        Function::Sigmoid => 1.0 / (1.0 + (-x).exp()),
        Function::Tanh => x.tanh(),
        Function::GeluTanh => {
            x / 2.0 * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3))).tanh())
        }
        Function::GeluTanhCdf => {
            (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3))).tanh()) / 2.0
        }
        Function::GeluTanhDerivative => {
            let argument = 2.0 * (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3));
            let slope = 2.0 * (2.0 / std::f64::consts::PI).sqrt() * (1.0 + 3.0 * 0.044715 * x * x);
            let share = 1.0 / (1.0 + (-argument).exp());
            share + x * share * (1.0 - share) * slope
        }
        Function::Silu => x / (1.0 + (-x).exp()),
        Function::SiluDerivative => {
            let share = 1.0 / (1.0 + (-x).exp());
            share * (1.0 + x * (1.0 - share))
        }
    }
}

#[test]
fn entries_are_the_nearest() {
    let grid = Grid::over(-8, 8, 8).unwrap();
    for function in ALL {
        let table = function_table(function, grid, 32, 27).unwrap();
        for (j, entry) in table.mantissas().to_vec().into_iter().enumerate() {
            let x = -8.0 + j as f64 / 16.0;
            let exact = float(function, x) * 27f64.exp2();
            assert!((entry as f64 - exact).abs() < 0.51, "{function:?}({x}): {entry}, not {exact}");
        }
    }
}

#[test]
fn far_ends_are_the_limits() {
    // Cells of 2^20: everything is at its limit but the middle.
    let grid = Grid { first: -2, cell: 20, log: 2 };
    let table = |function, exponent| function_table(function, grid, 32, exponent).unwrap().mantissas().to_vec();
    assert_eq!(table(Function::GeluCdf, 2), [0, 0, 2, 4, 4]);
    assert_eq!(table(Function::GeluDerivative, 2), [0, 0, 2, 4, 4]);
    assert_eq!(table(Function::SiluDerivative, 2), [0, 0, 2, 4, 4]);
    assert_eq!(table(Function::GeluTanhDerivative, 2), [0, 0, 2, 4, 4]);
    assert_eq!(table(Function::Sigmoid, 2), [0, 0, 2, 4, 4]);
    assert_eq!(table(Function::GeluTanhCdf, 2), [0, 0, 2, 4, 4]);
    assert_eq!(table(Function::Tanh, 2), [-4, -4, 0, 4, 4]);
    for function in [Function::Gelu, Function::GeluTanh, Function::Silu] {
        assert_eq!(table(function, 2), [0, 0, 0, 1 << 22, 1 << 23]);
    }
}

/// A change of these is a change of every program that uses the tables.
#[test]
fn bits_are_pinned() {
    let grid = Grid { first: -2048, cell: -8, log: 12 };
    let fingerprints = ALL.map(|function| {
        let table = function_table(function, grid, 26, 20).unwrap();
        hex(&keccak256(table.to_bytes())[..8])
    });
    assert_eq!(
        fingerprints,
        [
            "690ad3bbd7b10f10",
            "37d127c90f3e5ab3",
            "0cfca4bf981c95d5",
            "208c3b52819e90b2",
            "90085c84530120a5",
            "70c4604bde769f1d",
            "7c14609b2ff52ecb",
            "6632c9216838c14f",
            "c29ca64c7e5c9d8f",
            "87a20fe9361bf9f2",
        ]
    );
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

#[test]
fn bad_parameters_are_refused() {
    let grid = Grid::over(-8, 8, 4).unwrap();
    assert_eq!(grid, Grid { first: -8, cell: 0, log: 4 });
    assert_eq!(Grid::over(-8, 8, 10), Ok(Grid { first: -512, cell: -6, log: 10 }));
    assert_eq!(Grid::over(-8, 8, 2), Ok(Grid { first: -2, cell: 2, log: 2 }));
    for (low, high, log) in [(-8, 7, 4), (8, -8, 4), (0, 0, 0), (-8, 8, 13), (1, 5, 0), (i32::MIN, i32::MAX, 4)] {
        assert!(matches!(Grid::over(low, high, log), Err(TableError::Grid { .. })), "{low} {high} {log}");
    }
    let sigmoid = |grid, bits, exponent| function_table(Function::Sigmoid, grid, bits, exponent);
    assert!(matches!(sigmoid(Grid { cell: 33, ..grid }, 8, 6), Err(TableError::Grid { .. })));
    assert!(matches!(sigmoid(Grid { first: i64::MIN, ..grid }, 8, 6), Err(TableError::Grid { .. })));
    assert!(matches!(sigmoid(grid, 1, 6), Err(TableError::Type(_))));
    assert_eq!(sigmoid(grid, 8, 90), Err(TableError::Exponent(90)));
    assert_eq!(sigmoid(grid, 8, -166), Err(TableError::Exponent(-166)));
    assert!(matches!(sigmoid(grid, 8, 7), Err(TableError::Tensor(_))));
    assert!(sigmoid(grid, 9, 7).is_ok());
}
