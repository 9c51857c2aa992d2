//! Tests of rules N-32, N-33 and N-37: places of elements, and elements at places.

use tensorlink_types::Opcode;

use super::drawing::{any_controls, count, longest, output, parts_of_rows};
use super::meaning::{run, tensor, wide};
use super::refusing::{A, B, C, OUT, Ty, accepts, is_bound, is_reduction, refuses, refuses_attribute, refuses_type};

#[test]
fn row_arg_max() {
    let op = Opcode::RowArgMax;
    let a: Ty<'_> = (64, 3, &[2, 3, 8192]);
    accepts(op, &[a], &[], (32, 0, &[2, 3, 2]));
    accepts(op, &[a], &[], (32, 0, &[24]));
    refuses_type(OUT, op, &[a], &[], (32, 0, &[5]));
    refuses_type(OUT, op, &[a], &[], (31, 0, &[12]));
    refuses_type(OUT, op, &[a], &[], (32, 3, &[12]));
    // Six elements a row: not four parts of it.
    refuses_type(OUT, op, &[(8, 0, &[2, 6])], &[], (32, 0, &[8]));
    // Nor one part of two rows.
    refuses_type(OUT, op, &[(8, 0, &[2, 6])], &[], (32, 0, &[1]));
    assert!(is_reduction(refuses(op, &[(8, 0, &[4097])], &[], (32, 0, &[1]))));
}

#[test]
fn row_pick() {
    let op = Opcode::RowPick;
    let (a, y): (Ty<'_>, Ty<'_>) = ((64, 3, &[2, 9000]), (64, 3, &[2, 3]));
    accepts(op, &[a, (2, 0, &[6])], &[], y);
    accepts(op, &[a, (64, 0, &[2, 1])], &[], (64, 3, &[2]));
    refuses_type(OUT, op, &[a, (8, 0, &[7])], &[], (64, 3, &[7]));
    refuses_type(B, op, &[a, (8, 0, &[2])], &[], y);
    refuses_type(B, op, &[a, (8, 1, &[6])], &[], y);
    refuses_type(OUT, op, &[a, (8, 0, &[6])], &[], (64, 2, &[2, 3]));
    refuses_type(OUT, op, &[a, (8, 0, &[6])], &[], (63, 3, &[2, 3]));
}

#[test]
fn choose() {
    let op = Opcode::Choose;
    let (place, best): (Ty<'_>, Ty<'_>) = ((32, 0, &[3, 8]), (64, 16, &[3, 8]));
    let (controls, y): (Ty<'_>, Ty<'_>) = ((33, 0, &[3, 7]), (32, 0, &[3]));
    for length in [1, 4096] {
        accepts(op, &[place, best, controls], &[length], y);
    }
    for length in [0, 4097] {
        refuses_attribute("length", op, &[place, best, controls], &[length], y);
    }
    refuses_type(A, op, &[(32, 1, &[3, 8]), best, controls], &[9], y);
    refuses_type(B, op, &[place, (64, 16, &[3, 7]), controls], &[9], y);
    refuses_type(B, op, &[place, (64, 16, &[2, 8]), controls], &[9], y);
    refuses_type(C, op, &[place, best, (33, 0, &[3, 8])], &[9], y);
    refuses_type(C, op, &[place, best, (33, 0, &[2, 7])], &[9], y);
    refuses_type(OUT, op, &[place, best, controls], &[9], (32, 0, &[4]));
    refuses_type(OUT, op, &[place, best, controls], &[9], (33, 0, &[3]));
    assert!(is_bound(refuses(op, &[(63, 0, &[3, 8]), best, controls], &[9], y)));
    let long: Ty<'_> = (8, 0, &[1, 4097]);
    assert!(is_reduction(refuses(op, &[long, long, (8, 0, &[7])], &[9], (32, 0, &[1]))));
}

#[test]
fn corners_are_drawn() {
    parts_of_rows(Opcode::RowArgMax);
    parts_of_rows(Opcode::RowPick);
    longest(Opcode::RowArgMax, 0);
    longest(Opcode::Choose, 0);
    assert!(count(Opcode::RowArgMax, |case| output(case).iter().any(|place| *place > 0)) > 150, "later places");
    assert!(count(Opcode::Choose, |case| any_controls(case, 2, |row| row[0] == 0)) > 60, "none chosen");
    assert!(count(Opcode::Choose, |case| any_controls(case, 2, |row| row[0] != 0)) > 60, "some chosen");
}

#[test]
fn the_first_of_the_largest_is_taken() {
    let a = tensor(8, 5, &[2, 6], &[1, 7, 7, -3, -3, -9, 0, 0, 0, -1, 5, 5]);
    let best = |parts: u32| run(Opcode::RowArgMax, &[&a], &[], (32, 0, &[2, parts]));
    assert_eq!(wide(&best(1)), [1, 4]);
    assert_eq!(wide(&best(2)), [1, 0, 0, 1]);
    assert_eq!(wide(&best(6)), [0; 12]);
    let picked = run(Opcode::RowPick, &[&a, &best(2)], &[], (8, 5, &[2, 2]));
    assert_eq!(wide(&picked), [7, -3, 0, 5]);
    let outside = tensor(8, 0, &[4], &[-1, 3, 127, 2]);
    assert_eq!(wide(&run(Opcode::RowPick, &[&a, &outside], &[], (8, 5, &[2, 2]))), [1, -9, 0, 5]);
    let controls = |chosen: [i64; 2]| tensor(8, 0, &[2, 7], &chosen.map(|c| [c, 0, 0, 0, 0, 0, 0]).concat());
    let choose = |chosen| wide(&run(Opcode::Choose, &[&best(2), &picked, &controls(chosen)], &[3], (32, 0, &[2])));
    assert_eq!(choose([1, -1]), [1, 4]);
    assert_eq!(choose([0, 1]), [0, 4]);
}
