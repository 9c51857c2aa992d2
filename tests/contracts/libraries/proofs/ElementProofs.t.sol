// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Test} from "forge-std/Test.sol";

import {IDisputes} from "../../../../contracts/interfaces/IDisputes.sol";
import {Reader} from "../../../../contracts/libraries/encoding/Reader.sol";
import {ElementProofs} from "../../../../contracts/libraries/proofs/ElementProofs.sol";
import {ElementProof as Parsed, OpenedTensor, Slice} from "../../../../contracts/types/ElementProof.sol";
import {
    BoundaryLogs,
    Claim,
    LeafRange,
    Operand,
    ProgramHeader,
    StepStatement,
    TensorType
} from "../../../../contracts/types/Types.sol";
import {ElementProof, TensorOpening} from "../../protocol/ElementProof.sol";

contract ElementProofsHarness {
    using Reader for Slice;

    /// @dev What was parsed, as the tests make it.
    function parse(bytes calldata data) external pure returns (ElementProof memory p) {
        Parsed memory parsed = ElementProofs.parse(data);
        (p.claim, p.committedAt, p.statement) = (parsed.claim, parsed.committedAt, parsed.statement);
        (p.signature, p.program) = (parsed.signature.toBytes(), parsed.program);
        p.programMembership = parsed.programMembership.toWords();
        (p.operator, p.operatorIndex) = (parsed.operator, parsed.operatorIndex);
        p.operatorMembership = parsed.operatorMembership.toWords();
        (p.logs, p.element, p.output) = (parsed.logs, parsed.element, _tensor(parsed.output));
        p.operands = new TensorOpening[](parsed.operands.length);
        for (uint256 i = 0; i < p.operands.length; ++i) {
            p.operands[i] = _tensor(parsed.operands[i]);
        }
    }

    function _tensor(OpenedTensor memory opened) private pure returns (TensorOpening memory opening) {
        opening.membership = opened.membership.toWords();
        opening.ranges = new LeafRange[](opened.ranges.length);
        for (uint256 i = 0; i < opened.ranges.length; ++i) {
            opening.ranges[i].firstLeaf = opened.ranges[i].firstLeaf;
            opening.ranges[i].leaves = opened.ranges[i].leaves.toBytes();
            opening.ranges[i].siblings = opened.ranges[i].siblings.toWords();
        }
    }
}

/// @dev C-17: proofs of a wrong element as bytes.
contract ElementProofsTest is Test {
    /// @dev Of a proof with no operands, from its end: how many operands, the siblings of the only range and their
    /// number, its leaf.
    uint256 private constant LAST_COUNT = 1;
    uint256 private constant LEAVES_FROM_END = LAST_COUNT + 1 + 256 + 4;

    ElementProofsHarness private harness;

    function setUp() public {
        harness = new ElementProofsHarness();
    }

    function _words(uint256 count, uint256 seed) private pure returns (bytes32[] memory words) {
        words = new bytes32[](count);
        for (uint256 i = 0; i < count; ++i) {
            words[i] = keccak256(abi.encode(seed, i));
        }
    }

    function _opening(uint256 ranges, uint256 seed) private pure returns (TensorOpening memory opening) {
        opening.ranges = new LeafRange[](ranges);
        if (ranges == 0) return opening;
        opening.membership = _words(seed % 5, seed);
        for (uint256 i = 0; i < ranges; ++i) {
            bytes memory leaves = abi.encodePacked(_words(8 * (seed % 3 + i), seed + i));
            opening.ranges[i] =
                LeafRange({firstLeaf: uint32(seed >> i), leaves: leaves, siblings: _words(seed % 4 + i, ~seed)});
        }
    }

    /// @dev Every field is what was given, with what follows from the rest left out.
    function testFuzz_everyFieldArrives(
        Claim memory claim,
        StepStatement memory statement,
        ProgramHeader memory program,
        BoundaryLogs memory logs,
        uint256 seed
    ) public view {
        seed >>= 1;
        ElementProof memory p;
        (p.claim, p.statement, p.program, p.committedAt) = (claim, statement, program, uint64(seed));
        (p.statement.claimId, p.statement.trace, p.program.operators) = (0, 0, 0);
        p.signature = abi.encodePacked(_words(2, seed), uint8(27));
        p.programMembership = _words(seed % 7, seed + 1);
        (p.operator.opcode, p.operator.output) = (uint8(seed), TensorType.wrap(seed));
        p.operator.operands = new Operand[](seed % 6);
        for (uint256 i = 0; i < p.operator.operands.length; ++i) {
            uint8 source = uint8((seed >> i) % 6);
            p.operator.operands[i] = Operand(source, uint32(seed), TensorType.wrap(seed));
            if (source > 3) p.logs = logs;
        }
        p.operator.attributes = new int64[](seed % 9);
        for (uint256 i = 0; i < p.operator.attributes.length; ++i) {
            p.operator.attributes[i] = int64(uint64(seed >> i));
        }
        (p.operatorIndex, p.operatorMembership) = (uint32(seed >> 7), _words(seed % 9, seed + 2));
        (p.element, p.output) = (uint64(seed >> 3), _opening(1, seed));
        p.operands = new TensorOpening[](seed % 5);
        for (uint256 i = 0; i < p.operands.length; ++i) {
            p.operands[i] = _opening((seed >> i) % 3, seed >> i);
        }
        assertEq(keccak256(abi.encode(harness.parse(p.pack()))), keccak256(abi.encode(p)));
    }

    function _small() private pure returns (ElementProof memory p) {
        p.signature = new bytes(65);
        p.programMembership = _words(1, 1);
        p.operator.operands = new Operand[](1);
        p.operator.operands[0].source = 4;
        p.operator.attributes = new int64[](1);
        p.output.ranges = new LeafRange[](1);
        p.output.ranges[0].leaves = new bytes(256);
    }

    function _refused(bytes memory data) private {
        vm.expectRevert(IDisputes.MalformedProof.selector);
        harness.parse(data);
    }

    function test_neitherAPartOfAProofNorMore() public {
        bytes memory whole = _small().pack();
        harness.parse(whole);
        for (uint256 length = 0; length < whole.length; ++length) {
            bytes memory part = new bytes(length);
            for (uint256 i = 0; i < length; ++i) {
                part[i] = whole[i];
            }
            _refused(part);
        }
        _refused(bytes.concat(whole, hex"00"));
    }

    /// @dev A number of what there cannot be costs no memory.
    function testFuzz_moreThanThereIs(uint32 count) public {
        bytes memory whole = _small().pack();
        count = uint32(bound(count, 2, type(uint32).max));
        bytes4 many = bytes4(count);
        uint256 place = whole.length - LEAVES_FROM_END;
        for (uint256 i = 0; i < 4; ++i) {
            whole[place + i] = many[i];
        }
        _refused(whole);

        // Ranges of an operand.
        whole = _small().pack();
        whole[whole.length - 1] = 0x01;
        _refused(bytes.concat(whole, many, hex"00"));
    }

    /// @dev Whatever is parsed has no other bytes.
    function testFuzz_noise(bytes memory data, uint256 place, bytes1 other) public view {
        bytes memory spoiled = _small().pack();
        spoiled[place % spoiled.length] = other;
        for (uint256 i = 0; i < 2; ++i) {
            bytes memory given = i == 0 ? data : spoiled;
            try harness.parse(given) returns (ElementProof memory p) {
                assertEq(p.pack(), given);
            } catch (bytes memory reason) {
                assertEq(bytes4(reason), IDisputes.MalformedProof.selector);
            }
        }
    }
}
