//! Tests of rule N-29: elements turned by their token's position.

use tensorlink_types::Opcode;

use super::drawing::{attribute, count, dim};
use super::meaning::{distance, run, tensor, uniform};
use super::refusing::{A, B, OUT, Ty, accepts, refuses_attribute, refuses_precision, refuses_type};
use crate::arbitrary::{Case, Dice};

#[test]
fn rope() {
    let op = Opcode::Rope;
    // Three heads of five elements, of which four rotate.
    let (x, table, y): (Ty<'_>, Ty<'_>, Ty<'_>) = ((16, 9, &[6, 15]), (16, 14, &[8, 4]), (16, 10, &[6, 15]));
    accepts(op, &[x, table], &[3, 13], y);
    accepts(op, &[(16, 9, &[2, 3, 15]), table], &[3, 13], (16, 10, &[2, 3, 15]));
    accepts(op, &[x, (16, 15, &[6, 2])], &[3, 14], y);
    accepts(op, &[x, (2, 0, &[6, 2])], &[3, -1], y);
    refuses_precision("shift", op, &[x, table], &[3, 14], y);
    for heads in [0, 16] {
        refuses_attribute("heads", op, &[x, table], &[heads, 13], y);
    }
    refuses_type(A, op, &[x, table], &[4, 13], y);
    refuses_type(A, op, &[(17, 9, &[6, 15]), table], &[3, 13], y);
    for wrong in [(17, 14, &[8, 4]), (16, 14, &[8, 3]), (16, 14, &[8, 6]), (16, 14, &[5, 4]), (16, 16, &[8, 4])] {
        let (bits, exponent, dims): (u8, i16, &[u32; 2]) = wrong;
        refuses_type(B, op, &[x, (bits, exponent, dims)], &[3, 13], y);
    }
    refuses_type(B, op, &[x, (16, -1, &[8, 4])], &[3, 13], y);
    refuses_type(OUT, op, &[x, table], &[3, 13], (16, 10, &[90]));
}

#[test]
fn corners_are_drawn() {
    let width = |case: &Case| i64::from(*case.operands[0].ty().dims().last().unwrap()) / attribute(case, 0);
    let whole = count(Opcode::Rope, |case| width(case) == dim(case, 1, 1));
    assert!(whole > 30 && whole < 300, "{whole} whole heads turn");
}

#[test]
fn rope_rotates_the_front_of_every_head() {
    let (heads, width, rotating, tokens) = (3usize, 10usize, 8usize, 7usize);
    let mut dice = Dice::new(1);
    let x = uniform(&mut dice, 16, 12, &[7, 30]);
    let half = rotating / 2;
    let angle = |t: usize, j: usize| t as f64 * 10_000f64.powf(-2.0 * j as f64 / rotating as f64);
    let turn = |(t, j): (usize, usize)| if j < half { angle(t, j).cos() } else { angle(t, j - half).sin() };
    let table: Vec<i64> = (0..tokens + 2)
        .flat_map(|t| (0..rotating).map(move |j| (t, j)))
        .map(|at| (turn(at) * 16384.0).round() as i64)
        .collect();
    let table = tensor(16, 14, &[9, 8], &table);
    let y = run(Opcode::Rope, &[&x, &table], &[heads as i64, 14], (18, 12, &[7, 30])).to_f64();
    let x = x.to_f64();
    let expected = (0..tokens * heads * width).map(|index| {
        let (t, i) = (index / (heads * width), index % width);
        let (low, high) = (|j: usize| x[index - i + j], |j: usize| x[index - i + j + half]);
        match i {
            i if i < half => low(i) * angle(t, i).cos() - high(i) * angle(t, i).sin(),
            i if i < rotating => high(i - half) * angle(t, i - half).cos() + low(i - half) * angle(t, i - half).sin(),
            _ => x[index],
        }
    });
    assert!(distance(&y, expected) < 2e-3);
}
