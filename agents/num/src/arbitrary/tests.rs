//! The generator reaches what it is there for: every rule's corners, and results that say something.

use std::collections::BTreeSet;

use tensorlink_types::Opcode;

use super::{Case, MAX_SIZE};
use crate::bounds::{EPSILON_BOUND, MIN_INVERSE_SHIFT, MIN_SHIFTED_SHIFT, NORM_INPUT_BITS};
use crate::{execute, reads};

/// Drawn cases of an opcode, of every size.
fn cases(opcode: Opcode) -> impl Iterator<Item = Case> {
    (0..400).map(move |seed| Case::new(opcode, 1 + seed as u32 % MAX_SIZE, seed).unwrap())
}

/// How many of an opcode's cases are of a kind.
fn count(opcode: Opcode, kind: impl Fn(&Case) -> bool) -> usize {
    cases(opcode).filter(|case| kind(case)).count()
}

fn dim(case: &Case, operand: usize, axis: usize) -> i64 {
    case.operands[operand].ty().dims()[axis].into()
}

fn values(case: &Case, operand: usize) -> Vec<i64> {
    case.operands[operand].mantissas().to_vec()
}

fn output(case: &Case) -> Vec<i64> {
    execute(&case.operator, &case.operands(), &case.context).unwrap().mantissas().to_vec()
}

fn attribute(case: &Case, index: usize) -> i64 {
    case.operator.attributes[index]
}

/// An opcode's cases are of a kind often, and often not.
fn both(opcode: Opcode, what: &str, kind: &dyn Fn(&Case) -> bool) {
    let drawn = count(opcode, kind);
    assert!((25..=375).contains(&drawn), "{}: {what} in {drawn} of 400", opcode.name());
}

/// A third of the cases that could differ have elements that are neither all alike nor all at the limits.
#[test]
fn results_say_something() {
    for opcode in Opcode::ALL {
        let (mut able, mut telling) = (0, 0);
        for case in cases(*opcode).filter(|case| case.operator.output.elements() > 3) {
            let output = execute(&case.operator, &case.operands(), &case.context).unwrap();
            let limit = output.ty().limit();
            let values: BTreeSet<i64> = output.mantissas().to_vec().into_iter().collect();
            able += 1;
            telling += usize::from(values.iter().filter(|v| v.abs() < limit).count() > 1);
        }
        assert!(able > 60 && 3 * telling > able, "{}: {telling} of {able}", opcode.name());
    }
}

#[test]
fn causal_rows_are_drawn_and_their_hidden_elements() {
    for opcode in [Opcode::RowMax, Opcode::ExpNeg] {
        let causal = |case: &Case| case.operator.attributes.last() == Some(&1);
        assert!(count(opcode, causal) > 60 && count(opcode, |case| !causal(case)) > 60, "{}", opcode.name());
    }
    let hidden = |case: &Case| {
        let get = |operand: usize, index| case.operands[operand].get(index);
        let read = |index| reads(&case.operator, get, index, &case.context).unwrap();
        (0..case.operator.output.elements()).any(|index| read(index).is_empty())
    };
    assert!(count(Opcode::ExpNeg, hidden) > 30);
}

#[test]
fn corners_of_transformers_are_drawn() {
    let slack = |case: &Case| dim(case, 0, 1) - dim(case, 1, 1);
    let offset =
        |wanted: fn(i64, i64) -> bool| count(Opcode::ScaledMatMul, |case| wanted(attribute(case, 0), slack(case)));
    assert!(offset(|_, slack| slack == 0) > 5, "whole rows");
    assert!(offset(|at, slack| at == 0 && slack > 0) > 30, "first part");
    assert!(offset(|at, slack| at == slack && slack > 0) > 30, "last part");
    assert!(offset(|at, slack| 0 < at && at < slack) > 30, "a part between");

    let kv_heads = |case: &Case| dim(case, 1, 1) * attribute(case, 0) / dim(case, 0, 1);
    let shared = count(Opcode::HeadScores, |case| (2..attribute(case, 0)).contains(&kv_heads(case)));
    let own = count(Opcode::HeadScores, |case| kv_heads(case) == attribute(case, 0));
    assert!(shared > 30 && own > 30, "{shared} shared, {own} not");

    let norm = |wanted: fn(&Case) -> bool| count(Opcode::Norm, wanted);
    assert!(norm(|case| case.operator.attributes[0] == 0) > 100, "RMSNorm");
    assert!(norm(|case| case.operator.attributes[0] == 1) > 100, "LayerNorm");
    assert!(norm(|case| case.operator.attributes[1] == 1) > 30, "least epsilon");
    assert!(norm(|case| case.operator.attributes[1] == EPSILON_BOUND - 1) > 30, "largest epsilon");
    let rows = |case: &Case| case.operands[0].mantissas().to_vec();
    let zero =
        |case: &Case| rows(case).chunks(case.operands[0].ty().row() as usize).any(|row| row.iter().all(|x| *x == 0));
    assert!(count(Opcode::Norm, zero) > 30, "rows of zeros");
    assert!(norm(|case| case.operands[1].ty().elements() < case.operands[0].ty().row()) > 20, "runs within a row");

    let width = |case: &Case| i64::from(*case.operands[0].ty().dims().last().unwrap()) / attribute(case, 0);
    let whole = count(Opcode::Rope, |case| width(case) == dim(case, 1, 1));
    assert!(whole > 30 && whole < 300, "{whole} whole heads turn");

    let ids = |wanted: fn(i64, i64) -> bool| {
        count(Opcode::Gather, |case| {
            let entries = dim(case, 0, 0);
            case.operands[2].mantissas().to_vec().iter().any(|id| wanted(*id, entries))
        })
    };
    assert!(ids(|id, _| id < 0) > 60 && ids(|id, entries| id >= entries) > 60, "ids outside");
    assert!(ids(|id, entries| 0 < id && id < entries) > 60, "ids inside");

    for opcode in [Opcode::ScaledMatMul, Opcode::HeadScores, Opcode::HeadMix, Opcode::Norm, Opcode::RowAbsMax] {
        let longest = count(opcode, |case| case.operands.iter().any(|t| t.ty().row() >= 4096));
        assert!(longest > 1, "{}: longest reduction", opcode.name());
    }
}

#[test]
fn corners_of_sampling_are_drawn() {
    let parted = |case: &Case| dim(case, 0, 0) * dim(case, 0, 1) > 1 && case.operator.output.row() > 1;
    for opcode in [Opcode::RowArgMax, Opcode::RowPick, Opcode::TailSum] {
        let parted = count(opcode, parted);
        assert!(parted > 60 && parted < 340, "{}: {parted} in parts", opcode.name());
    }
    for opcode in [Opcode::RowArgMax, Opcode::TailSum, Opcode::Threshold, Opcode::Choose] {
        let longest = count(opcode, |case| case.operands.iter().any(|t| t.ty().row() >= 4096));
        assert!(longest > 1, "{}: longest reduction", opcode.name());
    }
    assert!(count(Opcode::RowArgMax, |case| output(case).iter().any(|place| *place > 0)) > 150, "later places");
    let weighted = count(Opcode::TailSum, |case| case.operator.attributes[1] == 1);
    assert!(weighted > 100 && weighted < 300, "{weighted} sums are weighted");
    let reaching = |wanted: fn(usize, usize) -> bool| {
        count(Opcode::TailSum, |case| {
            let (a, t, bound) = (values(case, 0), values(case, 2), case.operator.attributes[0]);
            let rows = a.chunks(case.operands[0].ty().row() as usize).zip(&t);
            let mut rows = rows.map(|(row, t)| (row.iter().filter(|a| **a >= t + bound).count(), row.len()));
            rows.any(|(reaching, all)| wanted(reaching, all))
        })
    };
    assert!(reaching(|some, all| 0 < some && some < all) > 60, "some reach");
    assert!(reaching(|some, _| some == 0) > 60 && reaching(|some, all| some == all) > 60, "none or all reach");
    let raised = count(Opcode::Threshold, |case| output(case) != values(case, 0));
    let kept = count(Opcode::Threshold, |case| output(case).iter().zip(values(case, 0)).any(|(y, t)| *y == t));
    assert!(raised > 60 && kept > 60, "{raised} raised, {kept} kept");
    let controls = |opcode, operand, wanted: &dyn Fn(&[i64]) -> bool| {
        count(opcode, |case| values(case, operand).chunks(7).any(wanted))
    };
    assert!(controls(Opcode::Threshold, 4, &|row| row[3] < 1) > 30, "least k");
    assert!(controls(Opcode::Threshold, 4, &|row| row[4] < 1) > 30, "least q");
    assert!(controls(Opcode::Threshold, 4, &|row| row[4] > 1 << 16) > 30, "largest q");
    for row in [|tau: i64| tau < 0, |tau| tau == 0, |tau| tau > 0] {
        assert!(controls(Opcode::Perturb, 2, &|controls| row(controls[1])) > 60, "temperatures");
    }
    let drawn = |case: &Case, drawn: bool| {
        let get = |operand: usize, index| case.operands[operand].get(index);
        let read = |index| reads(&case.operator, get, index, &case.context).unwrap();
        (0..case.operator.output.elements()).any(|index| read(index).iter().any(|r| r.operand == 3) == drawn)
    };
    assert!(count(Opcode::Perturb, |case| drawn(case, true)) > 100, "draws");
    assert!(count(Opcode::Perturb, |case| drawn(case, false)) > 100, "elements without a draw");
    assert!(
        controls(Opcode::Choose, 2, &|row| row[0] == 0) > 60 && controls(Opcode::Choose, 2, &|row| row[0] != 0) > 60
    );
}

#[test]
fn corners_of_gradients_are_drawn() {
    both(Opcode::Transpose, "several matrices", &|case| case.operator.output.dims().len() == 3);
    for opcode in [Opcode::RowMax, Opcode::RowSum, Opcode::RowAbsMax, Opcode::InverseNorm] {
        both(opcode, "parts", &|case| case.operator.output.elements() > case.operands[0].ty().rows());
    }
    for (opcode, operand) in [(Opcode::Gather, 2), (Opcode::GatherGrad, 1)] {
        both(opcode, "ids of rank 2", &|case| case.operands[operand].ty().dims().len() == 2);
    }

    let run = |case: &Case| case.operands[0].ty().elements() / case.operands[1].ty().elements();
    for opcode in [Opcode::RowCombine, Opcode::RowMul] {
        both(opcode, "an element for each", &|case| run(case) == 1);
        both(opcode, "one for all", &|case| case.operands[1].ty().elements() == 1);
        both(opcode, "runs", &|case| run(case) > 1 && case.operands[1].ty().elements() > 1);
    }

    both(Opcode::InverseNorm, "mean taken away", &|case| attribute(case, 0) == 1);
    both(Opcode::InverseNorm, "large epsilon", &|case| attribute(case, 1) > 1 << 30);
    both(Opcode::InverseNorm, "small epsilon", &|case| attribute(case, 1) < 1 << 10);
    // A negative shift less its j.
    both(Opcode::InverseNorm, "shift to the left", &|case| attribute(case, 2) < 0);
    assert!(cases(Opcode::InverseNorm).all(|case| attribute(&case, 2) >= MIN_INVERSE_SHIFT));
    for opcode in [Opcode::RowMax, Opcode::RowSum, Opcode::InverseNorm, Opcode::GatherGrad] {
        let longest = count(opcode, |case| case.operands[0].ty().row() >= 4096);
        assert!(longest > 1, "{}: longest reduction", opcode.name());
    }

    let ids = |case: &Case| values(case, 1)[..case.operands[0].ty().row() as usize].to_vec();
    let entries = |case: &Case| case.operator.output.rows() as i64;
    both(Opcode::GatherGrad, "an id below", &|case| ids(case).iter().any(|id| *id < 0));
    both(Opcode::GatherGrad, "an id beyond", &|case| ids(case).iter().any(|id| *id >= entries(case)));
    both(Opcode::GatherGrad, "ids that are not read", &|case| ids(case).len() < values(case, 1).len());
    let rows = |case: &Case| ids(case).iter().map(|id| (*id).clamp(0, entries(case) - 1)).collect::<BTreeSet<_>>();
    both(Opcode::GatherGrad, "a row that is shared", &|case| rows(case).len() < ids(case).len());
    both(Opcode::GatherGrad, "a row that is left out", &|case| (rows(case).len() as i64) < entries(case));

    let summed = |case: &Case| case.operands[0].ty().row() / case.operator.output.row();
    both(Opcode::GroupSum, "heads of their own", &|case| summed(case) == 1);
    both(Opcode::GroupSum, "one group", &|case| summed(case) as i64 == attribute(case, 0) && summed(case) > 1);
    both(Opcode::GroupSum, "several groups", &|case| summed(case) > 1 && (summed(case) as i64) < attribute(case, 0));

    let slack = |case: &Case| dim(case, 0, 1) - case.operator.output.row() as i64;
    both(Opcode::Slice, "whole rows", &|case| slack(case) == 0);
    both(Opcode::Slice, "first part", &|case| slack(case) > 0 && attribute(case, 0) == 0);
    both(Opcode::Slice, "last part", &|case| slack(case) > 0 && attribute(case, 0) == slack(case));
    both(Opcode::Slice, "a part between", &|case| (1..slack(case)).contains(&attribute(case, 0)));
}

#[test]
fn corners_of_shifted_rows_are_drawn() {
    both(Opcode::RowShift, "rows that fit", &|case| output(case).contains(&0));
    both(Opcode::RowShift, "rows that do not", &|case| output(case).iter().any(|s| *s > 0));
    both(Opcode::RowShift, "parts", &|case| case.operator.output.elements() > case.operands[0].ty().rows());
    for (opcode, operand) in [(Opcode::ShiftRows, 1), (Opcode::ShiftedMatMul, 2)] {
        both(opcode, "shifts below zero", &|case| values(case, operand).iter().any(|s| *s < 0));
        both(opcode, "shifts", &|case| values(case, operand).iter().any(|s| (1..31).contains(s)));
        both(opcode, "shifts beyond the largest", &|case| values(case, operand).iter().any(|s| *s > 31));
    }
    both(Opcode::ShiftedMatMul, "words by bytes", &|case| {
        case.operands[0].ty().bits() > 8 && case.operands[1].ty().bits() <= 8
    });
    both(Opcode::ShiftedMatMul, "shift to the left", &|case| attribute(case, 1) < 0);
    assert!(cases(Opcode::ShiftedMatMul).all(|case| attribute(&case, 1) >= MIN_SHIFTED_SHIFT));
    for opcode in [Opcode::RowShift, Opcode::ShiftedMatMul] {
        let longest = count(opcode, |case| case.operands[0].ty().row() >= 4096);
        assert!(longest > 1, "{}: longest reduction", opcode.name());
    }
    for opcode in [Opcode::Norm, Opcode::InverseNorm] {
        both(opcode, "wide rows", &|case| case.operands[0].ty().bits() > 16);
        assert!(count(opcode, |case| case.operands[0].ty().bits() == NORM_INPUT_BITS) > 3, "widest rows");
    }
}

#[test]
fn corners_of_optimisers_are_drawn() {
    both(Opcode::Ratio, "roots of what is below zero", &|case| values(case, 1).iter().any(|v| *v < 0));
    both(Opcode::Ratio, "small floors", &|case| attribute(case, 1) < 1 << 10);
    both(Opcode::Ratio, "large floors", &|case| attribute(case, 1) > 1 << 30);
    both(Opcode::Ratio, "no places", &|case| attribute(case, 0) == 0);
    let whole = |case: &Case| (1 << attribute(case, 1)).min(case.operator.output.limit());
    both(Opcode::Shrink, "what is small enough", &|case| output(case).iter().any(|y| *y == whole(case)));
    both(Opcode::Shrink, "what is too large", &|case| output(case).iter().any(|y| *y < whole(case)));
    both(Opcode::Shrink, "sums below zero", &|case| values(case, 0).iter().any(|s| *s < 0));

    both(Opcode::AtStep, "a step beyond the table", &|case| i64::from(case.context.step) >= dim(case, 0, 0));
    let inside = |case: &Case| (1..dim(case, 0, 0)).contains(&case.context.step.into());
    both(Opcode::AtStep, "a step within the table", &inside);
    both(Opcode::AtStep, "single elements", &|case| case.operands[0].ty().dims().len() == 1);
}

#[test]
fn corners_of_draws_are_drawn() {
    let kept = |case: &Case, kept: bool| {
        let get = |operand: usize, index| case.operands[operand].get(index);
        let read = |index| reads(&case.operator, get, index, &case.context).unwrap();
        (0..case.operator.output.elements()).any(|index| read(index).is_empty() != kept)
    };
    both(Opcode::Dropout, "elements dropped", &|case| kept(case, false));
    both(Opcode::Dropout, "all kept", &|case| !kept(case, false));
    assert!(count(Opcode::Dropout, |case| attribute(case, 0) == 1) > 10, "least share");
    assert!(count(Opcode::Dropout, |case| attribute(case, 0) == 1 << 32) > 10, "largest share");
    both(Opcode::Dropout, "large streams", &|case| attribute(case, 1) >= 1 << 31);

    both(Opcode::Dither, "divisors below one", &|case| values(case, 1).iter().any(|z| *z < 1));
    both(Opcode::Dither, "divisors above one", &|case| values(case, 1).iter().any(|z| *z > 1));
    both(Opcode::Dither, "dividends below zero", &|case| values(case, 0).iter().any(|p| *p < 0));
    let up = |case: &Case| {
        let (y, z, row) = (output(case), values(case, 1), case.operands[0].ty().row() as usize);
        let exact = |(i, p): (usize, i64)| (i128::from(p) << attribute(case, 0)).div_euclid(z[i / row].max(1).into());
        let floors: Vec<i128> = values(case, 0).into_iter().enumerate().map(exact).collect();
        y.iter()
            .zip(floors)
            .any(|(y, floor)| i128::from(*y) > floor && floor > -i128::from(case.operator.output.limit()))
    };
    both(Opcode::Dither, "rounding upwards", &up);
}
