//! Every opcode exists everywhere: in the specification, in the generator of cases, in the vectors, in the contracts.

use std::fs;
use std::path::Path;

use serde_json::Value;
use tensorlink_num::arbitrary::Case;
use tensorlink_proof::commit::Contracts;
use tensorlink_proof::fraud::bytes::decode;
use tensorlink_types::{Address, Bytes, Opcode};

/// For whom a proof is signed is the same to what it opens.
const NOWHERE: Contracts = Contracts {
    chain_id: 0,
    jobs: Address::ZERO,
    checkpoints: Address::ZERO,
    channels: Address::ZERO,
    disputes: Address::ZERO,
    custody: Address::ZERO,
};

/// A file of the repository.
fn file(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    fs::read_to_string(root.join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// Cases of an array in a vector file.
fn cases(path: &str, array: &str) -> Vec<Value> {
    let json: Value = serde_json::from_str(&file(path)).unwrap();
    json[array].as_array().unwrap().clone()
}

/// Every proof of a wrong element.
fn proofs() -> Vec<Value> {
    let mut proofs = cases("tests/vectors/proofs.json", "element");
    proofs.extend(cases("tests/vectors/training-proofs.json", "element"));
    proofs
}

/// `HeadScores` as Solidity writes constants: `HEAD_SCORES`.
fn constant(name: &str) -> String {
    let mut constant = String::new();
    for (i, letter) in name.chars().enumerate() {
        if i > 0 && letter.is_uppercase() {
            constant.push('_');
        }
        constant.push(letter.to_ascii_uppercase());
    }
    constant
}

fn rule(opcode: Opcode) -> String {
    format!("N-{}", opcode as u8 + 10)
}

#[test]
fn every_opcode_is_everywhere() {
    let (specification, numbers) = (file("agents/num/SPEC.md"), file("contracts/libraries/operators/Opcodes.sol"));
    let table = file("agents/types/src/operator.rs");
    let verifier = file("contracts/core/StepVerifier.sol") + &file("contracts/core/TrainingVerifier.sol");
    let mut operators = cases("tests/vectors/operators.json", "cases");
    operators.extend(cases("tests/vectors/sampling.json", "cases"));
    operators.extend(cases("tests/vectors/training.json", "cases"));
    let proofs = proofs();
    let mut gaps = Vec::new();
    for opcode in Opcode::ALL {
        let (name, rule, constant) = (opcode.name(), rule(*opcode), constant(opcode.name()));
        let of_rule: Vec<&str> =
            operators.iter().filter(|c| c["rule"] == rule.as_str()).map(|c| c["name"].as_str().unwrap()).collect();
        let drawn = of_rule.iter().filter(|name| name.starts_with("drawn ")).count();
        let proof = |case: &Value| case["name"].as_str().is_some_and(|n| n.starts_with(&format!("{name}: ")));
        let checks = [
            ("a heading in SPEC.md", specification.contains(&format!("- **{rule} {name}**("))),
            ("a rule", !specification.contains(&format!("to be written: {name}."))),
            ("a description", !table.contains(&format!("To be written: {name}."))),
            ("a generator", Case::new(*opcode, 3, 5).is_ok_and(|case| case.operator.opcode == *opcode)),
            ("a made case in operators.json, sampling.json or training.json", of_rule.len() > drawn),
            ("drawn cases in operators.json, sampling.json or training.json", drawn > 1),
            ("a proof in proofs.json or training-proofs.json", proofs.iter().any(proof)),
            ("its number in Opcodes.sol", numbers.contains(&format!(" constant {constant} = {};", *opcode as u8))),
            (
                "a branch in StepVerifier.sol or TrainingVerifier.sol",
                verifier.contains(&format!("Opcodes.{constant})")),
            ),
        ];
        gaps.extend(checks.iter().filter(|(_, there)| !there).map(|(what, _)| format!("{name} lacks {what}")));
    }
    assert!(gaps.is_empty(), "{gaps:#?}");
}

#[test]
fn nothing_names_an_opcode_that_does_not_exist() {
    let constants = file("contracts/libraries/operators/Opcodes.sol").matches(" constant ").count();
    assert_eq!(constants, Opcode::ALL.len(), "Opcodes.sol");
    let (foundations, operators) = (11, 11 + Opcode::ALL.len());
    let specification = file("agents/num/SPEC.md");
    for number in foundations..operators + 20 {
        let heading = specification.contains(&format!("\n- **N-{number} "));
        assert_eq!(heading, number < operators, "rule N-{number}");
    }
}

/// Rule N-8 has no opcode of its own: its cases are RowMax and ExpNeg with the attribute set, and elements hidden
/// by it.
#[test]
fn visibility_has_cases() {
    let operators = cases("tests/vectors/operators.json", "cases");
    for opcode in [Opcode::RowMax, Opcode::ExpNeg] {
        let of_opcode = operators.iter().filter(|c| c["rule"] == rule(opcode).as_str());
        let causal = of_opcode.filter(|c| c["attributes"].as_array().unwrap().last().unwrap() == "1");
        assert!(causal.count() > 1, "{}", opcode.name());
    }
    let hidden = |case: &&Value| {
        let elements = case["elements"].as_array().unwrap().len();
        let reads = case["reads"].as_array().unwrap();
        let read = |position: usize| reads.chunks(4).any(|read| read[0] == position.to_string().as_str());
        case["rule"] == "N-20" && (0..elements).any(|position| !read(position))
    };
    assert!(operators.iter().filter(hidden).count() > 1, "no element that is hidden and so reads nothing");
}

/// Proofs of elements that read unusual places open as many ranges of leaves of each operand.
#[test]
fn proofs_open_what_is_read() {
    let proofs = proofs();
    for (name, expected) in [
        ("Rope: two ranges of leaves of each operand", vec![2, 2]),
        ("ExpNeg: a hidden element, which reads nothing", vec![0, 0, 0]),
        ("GroupSum: a range of leaves for each head", vec![3]),
        ("Dropout: a dropped element, which reads nothing", vec![0]),
    ] {
        let case = proofs.iter().find(|case| case["name"] == name).unwrap_or_else(|| panic!("no proof {name}"));
        let bytes: Bytes = case["proof"].as_str().unwrap().parse().unwrap();
        let proof = decode(&bytes, &NOWHERE).unwrap();
        let ranges: Vec<usize> = proof.operands.iter().map(|operand| operand.ranges.len()).collect();
        assert_eq!(ranges, expected, "{name}");
    }
}
