//! The generator reaches what it is there for: every rule's corners, and results that say something.

use std::collections::BTreeSet;

use tensorlink_types::Opcode;

use super::{Case, MAX_SIZE};
use crate::kernel::EPSILON_BOUND;
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
    let attribute = |case: &Case, i: usize| case.operator.attributes[i];
    let slack = |case: &Case| dim(case, 0, 1) - dim(case, 1, 1);
    let offset =
        |wanted: fn(i64, i64) -> bool| count(Opcode::ScaledMatMul, |case| wanted(attribute(case, 0), slack(case)));
    assert!(offset(|_, slack| slack == 0) > 5, "whole rows");
    assert!(offset(|at, slack| at == 0 && slack > 0) > 30, "first part");
    assert!(offset(|at, slack| at == slack && slack > 0) > 30, "last part");
    assert!(offset(|at, slack| 0 < at && at < slack) > 30, "a part between");

    let groups = |case: &Case| dim(case, 1, 1) * attribute(case, 0) / dim(case, 0, 1);
    let shared = count(Opcode::HeadScores, |case| (2..attribute(case, 0)).contains(&groups(case)));
    let own = count(Opcode::HeadScores, |case| groups(case) == attribute(case, 0));
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
    let values = |case: &Case, operand: usize| case.operands[operand].mantissas().to_vec();
    let parted = |case: &Case| dim(case, 0, 0) * dim(case, 0, 1) > 1 && case.operator.output.row() > 1;
    for opcode in [Opcode::RowArgMax, Opcode::RowPick, Opcode::TailSum] {
        let parted = count(opcode, parted);
        assert!(parted > 60 && parted < 340, "{}: {parted} in parts", opcode.name());
    }
    for opcode in [Opcode::RowArgMax, Opcode::TailSum, Opcode::Threshold, Opcode::Choose] {
        let longest = count(opcode, |case| case.operands.iter().any(|t| t.ty().row() >= 4096));
        assert!(longest > 1, "{}: longest reduction", opcode.name());
    }
    let output = |case: &Case| execute(&case.operator, &case.operands(), &case.context).unwrap().mantissas().to_vec();
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
