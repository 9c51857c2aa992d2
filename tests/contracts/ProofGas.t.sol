// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Merkle} from "../../contracts/libraries/Merkle.sol";
import {Opcodes} from "../../contracts/libraries/Opcodes.sol";
import {
    Claim,
    ElementProof,
    JobTerms,
    LeafRange,
    Operand,
    ProgramHeader,
    StepStatement,
    TensorOpening,
    TensorType
} from "../../contracts/types/Types.sol";
import {ProtocolTest} from "./protocol/ProtocolTest.sol";
import {SlowTree} from "./verifier/SlowTree.sol";

/// @title Gas of a conviction over a dot product of 4,096
/// @notice `y = a·bᵀ` in int8 with a 512 × 4,096, b 4,096 × 4,096 (a layer of a large model), in a program of 60 operators
/// and 12 state tensors. Of the tensors there is only what the proof opens; the rest of their trees is noise.
/// forge-config: default.isolate = true
contract ProofGasTest is ProtocolTest {
    using SlowTree for bytes32[][];

    uint32 private constant OPERATORS = 60;
    uint32 private constant OPERATOR = 40;
    uint32 private constant SOURCE = 5;
    uint256 private constant ROW_LEAVES = 16;
    uint64 private constant ELEMENT = 4096 * 300 + 1234;

    TensorType private typeA = TensorType.wrap((8 << 248) | (2 << 224) | (512 << 96) | (4096 << 64));
    TensorType private typeB = TensorType.wrap((8 << 248) | (2 << 224) | (4096 << 96) | (4096 << 64));

    function test_proveSigned_4096() public {
        ElementProof memory p = _proof();
        vm.prank(auditor);
        disputes.proveSigned(p);
        uint256 gas = vm.snapshotGasLastCall("conviction", "proveSigned, int8 dot product of 4096");
        vm.snapshotValue(
            "conviction", "proveSigned, int8 dot product of 4096, calldata bytes", abi.encode(p).length + 4
        );
        assertEq(_staked(workers[0].addr).bonded, 0);
        assertLe(gas, 500_000);
    }

    function _proof() private returns (ElementProof memory p) {
        p.operator.opcode = Opcodes.MAT_MUL;
        p.operator.output = typeA;
        p.operator.operands = new Operand[](2);
        p.operator.operands[0] = Operand({source: 1, index: SOURCE, tensorType: typeA});
        p.operator.operands[1] = Operand({source: 2, index: 3, tensorType: typeB});
        p.operator.attributes = new int64[](1);
        p.operator.attributes[0] = 12;
        (p.operatorIndex, p.element) = (OPERATOR, ELEMENT);

        p.output = _noisyTensor("y", ELEMENT / 256, 1, 13);
        p.operands = new TensorOpening[](2);
        p.operands[0] = _noisyTensor("a", ELEMENT / 4096 * ROW_LEAVES, ROW_LEAVES, 13);
        p.operands[1] = _noisyTensor("b", ELEMENT % 4096 * ROW_LEAVES, ROW_LEAVES, 16);

        bytes32[][] memory operators = _noisyList("operators", OPERATORS, OPERATOR, keccak256(abi.encode(p.operator)));
        p.operatorMembership = operators.path(OPERATOR);
        p.program = ProgramHeader({
            operatorCount: OPERATORS,
            constantCount: 3,
            stateCount: 12,
            microBatches: 4,
            operators: operators.rootOf(),
            constants: keccak256("constants"),
            wiring: keccak256("wiring")
        });

        bytes32[] memory trace = _noise("trace", OPERATORS);
        trace[SOURCE] = Merkle.tensorRoot(typeA, p.operands[0].dataRoot);
        trace[OPERATOR] = Merkle.tensorRoot(typeA, p.output.dataRoot);
        p.output.membership = SlowTree.ofDigests(trace).path(OPERATOR);
        p.operands[0].membership = SlowTree.ofDigests(trace).path(SOURCE);
        bytes32[][] memory state = _noisyList("state", 12, 3, Merkle.tensorRoot(typeB, p.operands[1].dataRoot));
        p.operands[1].membership = state.path(3);

        _commitOneStep(p, state.rootOf(), SlowTree.ofDigests(trace).rootOf());
    }

    /// @dev A job of this program, its first claim, and the worker's statement about step 0.
    function _commitOneStep(ElementProof memory p, bytes32 state, bytes32 trace) private {
        JobTerms memory terms = _terms(address(sno), 1, 1, 1);
        terms.programs[0] = keccak256(abi.encode(p.program));
        terms.initialStates[0] = state;
        uint64 job = _run(terms);
        p.claim = Claim({
            job: job,
            stage: 0,
            replica: 0,
            interval: 0,
            parentState: state,
            newState: keccak256("new state"),
            io: keccak256("io")
        });
        p.committedAt = uint64(block.timestamp);
        vm.prank(workers[0].addr);
        checkpoints.commit(p.claim, _link(p.claim, 0));
        p.statement = StepStatement({
            claimId: checkpoints.claimId(p.claim),
            auditor: auditor,
            step: 0,
            preState: state,
            postState: keccak256("state 1"),
            trace: trace
        });
        p.signature = _sign(workers[0].key, _statementDigest(p.statement));
    }

    function _noise(string memory seed, uint256 count) private pure returns (bytes32[] memory noise) {
        noise = new bytes32[](count);
        for (uint256 i = 0; i < count; ++i) {
            noise[i] = keccak256(abi.encode(seed, i));
        }
    }

    function _noisyList(string memory seed, uint256 count, uint256 index, bytes32 digest)
        private
        pure
        returns (bytes32[][] memory)
    {
        bytes32[] memory digests = _noise(seed, count);
        digests[index] = digest;
        return SlowTree.ofDigests(digests);
    }

    /// @dev `count` aligned leaves (a power of two) of noise in a tree whose other nodes are noise.
    function _noisyTensor(string memory seed, uint256 first, uint256 count, uint256 depth)
        private
        pure
        returns (TensorOpening memory opening)
    {
        bytes[] memory leaves = new bytes[](count);
        bytes memory opened;
        for (uint256 i = 0; i < count; ++i) {
            leaves[i] = abi.encodePacked(_noise(string.concat(seed, vm.toString(i)), 8));
            opened = bytes.concat(opened, leaves[i]);
        }
        bytes32 node = SlowTree.ofLeaves(leaves).rootOf();
        uint256 index = first / count;
        bytes32[] memory siblings = _noise(string.concat(seed, " siblings"), depth - Merkle.depth(count));
        for (uint256 i = 0; i < siblings.length; ++i) {
            node = index & 1 == 0
                ? keccak256(abi.encodePacked(bytes1(0x01), node, siblings[i]))
                : keccak256(abi.encodePacked(bytes1(0x01), siblings[i], node));
            index >>= 1;
        }
        opening.dataRoot = node;
        opening.ranges = new LeafRange[](1);
        opening.ranges[0] = LeafRange({firstLeaf: uint32(first), leaves: opened, siblings: siblings});
    }
}
