// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {
    BoundaryLogs,
    Claim,
    LeafRange,
    Operand,
    Operator,
    ProgramHeader,
    StepStatement
} from "../../../contracts/types/Types.sol";

using ElementProofBytes for ElementProof global;

/// @dev A tensor's place in its list, and leaves of it.
struct TensorOpening {
    bytes32[] membership;
    LeafRange[] ranges;
}

/// @dev A proof of a wrong element, to be spoiled in any of its fields. What is not in its bytes (C-17) is for those
/// who read it.
struct ElementProof {
    Claim claim;
    uint64 committedAt;
    BoundaryLogs logs;
    StepStatement statement;
    bytes signature;
    ProgramHeader program;
    bytes32[] programMembership;
    Operator operator;
    uint32 operatorIndex;
    bytes32[] operatorMembership;
    uint64 element;
    TensorOpening output;
    TensorOpening[] operands;
}

/// @title Proofs of a wrong element as bytes
/// @notice Rule C-17 of `agents/proof/SPEC.md`.
library ElementProofBytes {
    function pack(ElementProof memory p) internal pure returns (bytes memory) {
        return bytes.concat(_signedPart(p), _programPart(p), _openedPart(p));
    }

    function _signedPart(ElementProof memory p) private pure returns (bytes memory) {
        Claim memory c = p.claim;
        StepStatement memory s = p.statement;
        bytes memory claim =
            abi.encodePacked(c.job, c.stage, c.replica, c.interval, c.parentState, c.newState, c.io, p.committedAt);
        return bytes.concat(claim, abi.encodePacked(s.auditor, s.step, s.preState, s.postState, p.signature));
    }

    function _programPart(ElementProof memory p) private pure returns (bytes memory all) {
        ProgramHeader memory h = p.program;
        all = abi.encodePacked(
            h.operatorCount, h.constantCount, h.stateCount, h.microBatches, h.edges, h.constants, h.wiring
        );
        all = bytes.concat(all, _words(p.programMembership));

        Operator memory o = p.operator;
        bool hasNeighbour;
        all = abi.encodePacked(all, o.opcode, o.output, uint8(o.operands.length));
        for (uint256 i = 0; i < o.operands.length; ++i) {
            Operand memory operand = o.operands[i];
            all = abi.encodePacked(all, operand.source, operand.index, operand.tensorType);
            hasNeighbour = hasNeighbour || operand.source == 4 || operand.source == 5;
        }
        all = abi.encodePacked(all, uint8(o.attributes.length));
        for (uint256 i = 0; i < o.attributes.length; ++i) {
            all = abi.encodePacked(all, o.attributes[i]);
        }
        all = abi.encodePacked(all, p.operatorIndex, _words(p.operatorMembership));
        if (hasNeighbour) all = bytes.concat(all, abi.encode(p.logs));
    }

    function _openedPart(ElementProof memory p) private pure returns (bytes memory all) {
        all = abi.encodePacked(p.element, _tensor(p.output), uint8(p.operands.length));
        for (uint256 i = 0; i < p.operands.length; ++i) {
            uint256 ranges = p.operands[i].ranges.length;
            all = abi.encodePacked(all, uint32(ranges));
            if (ranges > 0) all = bytes.concat(all, _tensor(p.operands[i]));
        }
    }

    function _tensor(TensorOpening memory opening) private pure returns (bytes memory all) {
        all = _words(opening.membership);
        for (uint256 i = 0; i < opening.ranges.length; ++i) {
            LeafRange memory range = opening.ranges[i];
            uint32 leaves = uint32(range.leaves.length / 256);
            all = abi.encodePacked(all, range.firstLeaf, leaves, range.leaves, _words(range.siblings));
        }
    }

    function _words(bytes32[] memory list) private pure returns (bytes memory) {
        return abi.encodePacked(uint8(list.length), list);
    }
}
