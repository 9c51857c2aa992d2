//! Proofs of a wrong element as bytes (C-17).

use alloy_primitives::{Address, B256};
use tensorlink_proof::commit::Contracts;
use tensorlink_proof::fraud::bytes::{decode, encode};
use tensorlink_proof::fraud::{BytesError, ElementProof, OpenedTensor, verify_element_proof};
use tensorlink_types::abi::LeafRange;

use crate::fraud::{LOCAL, lie, prove};
use crate::scenario::{CONTRACTS, Claimed, Scenario};

/// A worker that is wrong in element 9 of an operator's output, and the proof of it.
fn wrong(scenario: &Scenario, operator: u32) -> (Claimed, ElementProof) {
    let lied = lie(scenario, operator, 9);
    let claimed = scenario.claim(&lied);
    let theirs = lied.outputs[LOCAL as usize][operator as usize].to_bytes();
    let proof = prove(scenario, &lied, &claimed, operator, 9, &theirs).unwrap();
    (claimed, proof)
}

/// Also what follows from the rest: the claim's id, the trace and the program's operators.
#[test]
fn a_proof_comes_back_whole() {
    let scenario = Scenario::new();
    for operator in 0..scenario.program.operators.len() as u32 {
        let (claimed, proof) = wrong(&scenario, operator);
        let back = decode(&encode(&proof).unwrap(), &CONTRACTS).unwrap();
        assert_eq!(back, proof, "operator {operator}");
        assert!(verify_element_proof(&claimed.case, &back).is_ok());
    }
}

/// The claim's id is of a chain and a contract.
#[test]
fn on_another_chain_it_is_another_claim() {
    let (claimed, proof) = wrong(&Scenario::new(), 0);
    for elsewhere in [
        Contracts { chain_id: CONTRACTS.chain_id + 1, ..CONTRACTS },
        Contracts { checkpoints: Address::repeat_byte(0xcc), ..CONTRACTS },
    ] {
        let back = decode(&encode(&proof).unwrap(), &elsewhere).unwrap();
        assert_ne!(back.statement.claimId, proof.statement.claimId);
        assert!(verify_element_proof(&claimed.case, &back).is_err());
    }
}

#[test]
fn neither_a_part_of_a_proof_nor_more_is_one() {
    let (_, proof) = wrong(&Scenario::new(), 0);
    let bytes = encode(&proof).unwrap();
    for length in 0..bytes.len() {
        assert_eq!(decode(&bytes[..length], &CONTRACTS), Err(BytesError::TooShort), "{length} bytes");
    }
    let more = [bytes, vec![0]].concat();
    assert_eq!(decode(&more, &CONTRACTS), Err(BytesError::TooLong(1)));
}

/// What can be part of nothing, whatever was registered and signed.
#[test]
fn what_opens_nothing_is_no_proof() {
    let (_, good) = wrong(&Scenario::new(), 0);
    let refused = |change: fn(&mut ElementProof)| {
        let mut bad = good.clone();
        change(&mut bad);
        decode(&encode(&bad).unwrap(), &CONTRACTS).unwrap_err()
    };
    for change in [
        (|p| p.operator_index = p.program.operatorCount) as fn(&mut ElementProof),
        |p| p.operator_membership.push(B256::ZERO),
        |p| p.output.membership.clear(),
        |p| p.output.ranges[0].firstLeaf = 1 << 20,
        |p| p.output.ranges[0].siblings.push(B256::ZERO),
        |p| p.output.ranges[0].leaves = Vec::new().into(),
    ] {
        assert!(matches!(refused(change), BytesError::Opening(_)));
    }
    assert_eq!(refused(|p| p.operator.output = Default::default()), BytesError::Type);
}

#[test]
fn what_has_no_bytes_is_not_sent() {
    let (_, good) = wrong(&Scenario::new(), 0);
    assert!(good.logs.is_some(), "an operand arrives from the stage before");
    let refused = |change: fn(&mut ElementProof)| {
        let mut bad = good.clone();
        change(&mut bad);
        encode(&bad).unwrap_err()
    };
    assert_eq!(refused(|p| p.logs = None), BytesError::Logs);
    for change in [
        (|p| p.signature = vec![0; 64].into()) as fn(&mut ElementProof),
        |p| p.program_membership = vec![B256::ZERO; 256],
        |p| p.operator.attributes = vec![0; 256],
        |p| p.operands = vec![OpenedTensor::default(); 256],
        |p| p.output.ranges.push(p.output.ranges[0].clone()),
        |p| p.output.ranges.clear(),
        |p| p.output.ranges = vec![LeafRange { firstLeaf: 0, leaves: vec![0; 255].into(), siblings: vec![] }],
        |p| p.operands[0].ranges.clear(),
    ] {
        assert!(matches!(refused(change), BytesError::Length(_)));
    }
}
