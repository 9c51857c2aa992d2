// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IDisputes} from "../../interfaces/IDisputes.sol";
import {ElementProof, OpenedRange, OpenedTensor} from "../../types/ElementProof.sol";
import {BoundaryLogs, Claim, Operand, Operator, ProgramHeader, TensorType} from "../../types/Types.sol";
import {Cursor, Reader} from "../encoding/Reader.sol";
import {TensorTypes} from "../encoding/TensorTypes.sol";
import {Places} from "./Places.sol";

/// @title Proofs of a wrong element as bytes
/// @notice Rule C-17 of `agents/proof/SPEC.md`: fields in order and without gaps, each in the width of its type.
library ElementProofs {
    using Reader for Cursor;

    uint256 private constant _SIGNATURE_BYTES = 65;

    /// @notice The proof that `data` holds, and nothing more.
    function parse(bytes calldata data) internal pure returns (ElementProof memory proof) {
        Cursor memory input = Reader.over(data);
        _claim(input, proof.claim);
        proof.committedAt = input.u64();
        proof.statement.auditor = input.account();
        proof.statement.step = input.u32();
        proof.statement.preState = input.word();
        proof.statement.postState = input.word();
        proof.signature = input.slice(_SIGNATURE_BYTES);
        _program(input, proof.program);
        proof.programMembership = input.words();
        _operator(input, proof.operator);
        proof.operatorIndex = input.u32();
        proof.operatorMembership = input.words();
        if (Places.hasNeighbour(proof.operator)) _logs(input, proof.logs);
        proof.element = input.u64();
        proof.output = _tensor(input, 1);
        proof.operands = _operands(input);
        // INVARIANT: nothing hides behind a proof.
        if (input.left() != 0) revert IDisputes.MalformedProof();
    }

    function _claim(Cursor memory input, Claim memory claim) private pure {
        claim.job = input.u64();
        claim.stage = input.u16();
        claim.replica = input.u16();
        claim.interval = input.u32();
        claim.parentState = input.word();
        claim.newState = input.word();
        claim.io = input.word();
    }

    function _program(Cursor memory input, ProgramHeader memory program) private pure {
        program.operatorCount = input.u32();
        program.constantCount = input.u32();
        program.stateCount = input.u32();
        program.microBatches = input.u32();
        program.edges = input.u8();
        program.constants = input.word();
        program.wiring = input.word();
    }

    function _operator(Cursor memory input, Operator memory operator) private pure {
        operator.opcode = input.u8();
        operator.output = TensorType.wrap(uint256(input.word()));
        Operand[] memory operands = new Operand[](input.u8());
        for (uint256 i = 0; i < operands.length; ++i) {
            operands[i].source = input.u8();
            operands[i].index = input.u32();
            operands[i].tensorType = TensorType.wrap(uint256(input.word()));
        }
        int64[] memory attributes = new int64[](input.u8());
        for (uint256 i = 0; i < attributes.length; ++i) {
            attributes[i] = int64(input.u64());
        }
        (operator.operands, operator.attributes) = (operands, attributes);
    }

    function _logs(Cursor memory input, BoundaryLogs memory logs) private pure {
        logs.fromPrevious = input.word();
        logs.toPrevious = input.word();
        logs.fromNext = input.word();
        logs.toNext = input.word();
    }

    function _operands(Cursor memory input) private pure returns (OpenedTensor[] memory operands) {
        operands = new OpenedTensor[](input.u8());
        for (uint256 i = 0; i < operands.length; ++i) {
            uint256 ranges = input.u32();
            if (ranges > 0) operands[i] = _tensor(input, ranges);
        }
    }

    /// @param count of ranges
    function _tensor(Cursor memory input, uint256 count) private pure returns (OpenedTensor memory tensor) {
        tensor.membership = input.words();
        // INVARIANT: there is memory for what there are bytes of.
        if (count > input.left()) revert IDisputes.MalformedProof();
        OpenedRange[] memory ranges = new OpenedRange[](count);
        for (uint256 i = 0; i < count; ++i) {
            ranges[i].firstLeaf = input.u32();
            ranges[i].leaves = input.slice(input.u32() * TensorTypes.LEAF_BYTES);
            ranges[i].siblings = input.words();
        }
        tensor.ranges = ranges;
    }
}
