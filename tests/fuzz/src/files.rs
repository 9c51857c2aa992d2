//! Files of a job: tensors, programs, and the operators in a program as the chain is shown them.

use alloy_primitives::B256;
use alloy_sol_types::SolValue;
use tensorlink_node::files::{file_len, join, split};
use tensorlink_num::{StepContext, check_operator, element};
use tensorlink_program::check::{CheckedProgram, MAX_BYTES, MAX_OPERATORS, memory};
use tensorlink_proof::commit::program::ProgramCommitment;
use tensorlink_proof::commit::tensor_root;
use tensorlink_proof::fraud::decode;
use tensorlink_proof::merkle::{TensorTree, data_root, root_from_data};
use tensorlink_types::{JobKey, Operator, Program, TensorType, abi};

use crate::feed::Feed;
use crate::wire::message;

/// Most types of a file here.
const MAX_TYPES: usize = 8;

/// Types, then the bytes of their tensors.
///
/// # Panics
/// Where a rule is broken.
pub fn files(bytes: &[u8]) {
    let Ok((types, rest)) = postcard::take_from_bytes::<Vec<TensorType>>(bytes) else { return };
    if types.len() > MAX_TYPES {
        return;
    }
    for ty in &types {
        assert_eq!(TensorType::from_word(ty.to_word()).as_ref(), Ok(ty));
    }
    let read = split(rest, &types);
    assert!(read.is_err() || file_len(&types) == rest.len() as u64, "only a file of the right length is read");
    let Ok(tensors) = read else { return };
    assert_eq!(join(&tensors), rest);
    for (tensor, ty) in tensors.iter().zip(&types) {
        assert_eq!(tensor.ty(), ty);
        assert!(tensor.mantissas().to_vec().iter().all(|m| m.unsigned_abs() <= ty.limit().unsigned_abs()));
        let own = tensor.to_bytes();
        let tree = TensorTree::from_bytes(ty.clone(), &own).expect("a tensor's own bytes");
        assert_eq!((tree.root(), tree.data_root()), (tensor_root(tensor), data_root(&own)));
        assert_eq!(tree.root(), root_from_data(ty, data_root(&own)));
    }
}

/// A program.
///
/// # Panics
/// Where a rule is broken.
pub fn program(bytes: &[u8]) {
    let Some(program) = message::<Program>(bytes) else { return };
    let Ok(checked) = CheckedProgram::new(program) else { return };
    assert!(memory(&checked) <= MAX_BYTES && checked.operators.len() <= MAX_OPERATORS);
    let commitment = ProgramCommitment::new(&checked).expect("a checked program is not too large");
    let header = &commitment.header;
    let counts = [checked.operators.len(), checked.constants.len(), checked.state.len()];
    assert_eq!([header.operatorCount, header.constantCount, header.stateCount].map(|n| n as usize), counts);
    for operator in &checked.operators {
        assert_eq!(decode::operator(&operator.into()).as_ref(), Ok(operator));
    }
    for producer in checked.to_next.iter().chain(&checked.to_previous) {
        assert!((*producer as usize) < checked.operators.len());
    }
}

/// An operator as calldata has it, and one element of what it gives on any operands.
///
/// # Panics
/// Where a rule is broken.
pub fn operator(bytes: &[u8]) {
    let mut feed = Feed::new(bytes);
    let (index, salt) = (feed.number(), feed.byte());
    let Ok(encoded) = abi::Operator::abi_decode(feed.rest()) else { return };
    assert_eq!(abi::Operator::abi_decode(&encoded.abi_encode()).as_ref(), Ok(&encoded));
    let Ok(operator) = decode::operator(&encoded) else { return };
    assert_eq!(abi::Operator::from(&operator), encoded);
    if check_operator(&operator).is_err() {
        return;
    }
    let context = StepContext { job_key: JobKey(B256::repeat_byte(salt)), step: salt.into() };
    let get = |operand: usize, at: u64| mantissa(&operator, operand, at, salt);
    if let Ok(value) = element(&operator, get, index, &context) {
        assert!(value.unsigned_abs() <= operator.output.limit().unsigned_abs(), "{value} in {}", operator.output);
        assert!(index < operator.output.elements());
    }
}

/// Any mantissa of the operand's type, the same each time.
fn mantissa(operator: &Operator, operand: usize, at: u64, salt: u8) -> Option<i64> {
    let ty = &operator.operands.get(operand)?.ty;
    let noise = (at ^ (operand as u64) << 40 ^ u64::from(salt) << 56).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let span = i128::from(ty.limit()) * 2 + 1;
    (at < ty.elements()).then(|| (i128::from(noise) % span - i128::from(ty.limit())) as i64)
}
