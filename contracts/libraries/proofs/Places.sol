// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IDisputes} from "../../interfaces/IDisputes.sol";
import {ElementProof} from "../../types/ElementProof.sol";
import {BoundaryLogs, Operand, Operator, ProgramHeader, WiringProof} from "../../types/Types.sol";
import {Reader} from "../encoding/Reader.sol";
import {Merkle} from "./Merkle.sol";

/// @title Where a step's tensors come from and go to
/// @notice Rules C-4 to C-8 of `agents/proof/SPEC.md`: which list holds a tensor, and at which index.
library Places {
    /// @dev `Operand.source`.
    uint8 private constant _FROM_TRACE = 1;
    uint8 private constant _FROM_STATE = 2;
    uint8 private constant _FROM_CONSTANTS = 3;
    uint8 private constant _FROM_PREVIOUS = 4;
    uint8 private constant _FROM_NEXT = 5;
    /// @dev `WiringProof.sink`.
    uint8 private constant _TO_STATE = 1;
    uint8 private constant _TO_NEXT = 2;
    uint8 private constant _TO_PREVIOUS = 3;

    /// @notice Whether one of the operands is in a boundary log.
    function hasNeighbour(Operator memory operator) internal pure returns (bool) {
        for (uint256 i = 0; i < operator.operands.length; ++i) {
            uint8 source = operator.operands[i].source;
            if (source == _FROM_PREVIOUS || source == _FROM_NEXT) return true;
        }
        return false;
    }

    /// @notice Whether `root` is the tensor that operand `i` of the proof's operator names.
    function isOperand(ElementProof memory proof, uint256 i, bytes32 root, uint256 stepsPerInterval)
        internal
        pure
        returns (bool)
    {
        Operand memory operand = proof.operator.operands[i];
        bytes32[] calldata siblings = Reader.toWords(proof.operands[i].membership);
        (uint8 source, uint256 index) = (operand.source, operand.index);
        if (source == _FROM_TRACE) {
            return index < proof.operatorIndex
                && Merkle.isMember(proof.statement.trace, root, index, proof.program.operatorCount, siblings);
        }
        if (source == _FROM_STATE) {
            return Merkle.isMember(proof.statement.preState, root, index, proof.program.stateCount, siblings);
        }
        if (source == _FROM_CONSTANTS) {
            return Merkle.isMember(proof.program.constants, root, index, proof.program.constantCount, siblings);
        }
        if (source != _FROM_PREVIOUS && source != _FROM_NEXT) return false;

        _checkLogs(proof.claim.io, proof.logs);
        bytes32 log = source == _FROM_PREVIOUS ? proof.logs.fromPrevious : proof.logs.fromNext;
        return _isLogged(
            log,
            root,
            proof.statement.step % stepsPerInterval,
            index,
            proof.program.microBatches,
            stepsPerInterval,
            siblings
        );
    }

    /// @notice The stage after or before `stage`. Beyond the ends that is a number which no job has, and so no worker.
    function neighbourOf(uint16 stage, bool next) internal pure returns (uint16) {
        unchecked {
            return next ? stage + 1 : stage - 1;
        }
    }

    /// @notice Whether a stage with the edges of `ProgramHeader.edges` sends tensors to the next stage, or to the
    /// previous one.
    function isSentTo(uint8 edges, bool next) internal pure returns (bool) {
        return edges & (next ? 8 : 2) != 0;
    }

    /// @notice Which logs there are, as `ProgramHeader.edges` has it.
    function edgesOf(BoundaryLogs calldata logs) internal pure returns (uint8) {
        return (logs.fromPrevious == 0 ? 0 : 1) | (logs.toPrevious == 0 ? 0 : 2) | (logs.fromNext == 0 ? 0 : 4)
            | (logs.toNext == 0 ? 0 : 8);
    }

    /// @notice Whether the program wires operator `proof.operatorIndex` to entry `proof.index` of the sink.
    /// @dev Reverts if the sink has no such entry.
    function isWired(WiringProof calldata proof) internal pure returns (bool) {
        ProgramHeader calldata program = proof.program;
        uint256 toNext = isSentTo(program.edges, true) ? program.microBatches : 0;
        uint256 toPrevious = isSentTo(program.edges, false) ? program.microBatches : 0;
        uint256 first = 0;
        uint256 entries = 0;
        if (proof.sink == _TO_STATE) entries = program.stateCount;
        else if (proof.sink == _TO_NEXT) (first, entries) = (program.stateCount, toNext);
        else if (proof.sink == _TO_PREVIOUS) (first, entries) = (program.stateCount + toNext, toPrevious);
        // INVARIANT: an entry of one sink is never taken for one of another.
        if (proof.index >= entries) revert IDisputes.WrongOperator();
        return Merkle.isMember(
            program.wiring,
            bytes32(uint256(proof.operatorIndex)),
            first + proof.index,
            program.stateCount + toNext + toPrevious,
            proof.wiringMembership
        );
    }

    /// @notice Whether the worker committed to `proof.sinkRoot` at entry `proof.index` of the sink, for the
    /// statement's step.
    function isSink(WiringProof calldata proof, uint256 stepsPerInterval) internal pure returns (bool) {
        if (proof.sink == _TO_STATE) {
            return Merkle.isMember(
                proof.statement.postState, proof.sinkRoot, proof.index, proof.program.stateCount, proof.sinkMembership
            );
        }
        _checkLogs(proof.claim.io, proof.logs);
        return _isLogged(
            proof.sink == _TO_NEXT ? proof.logs.toNext : proof.logs.toPrevious,
            proof.sinkRoot,
            proof.statement.step % stepsPerInterval,
            proof.index,
            proof.program.microBatches,
            stepsPerInterval,
            proof.sinkMembership
        );
    }

    function _checkLogs(bytes32 io, BoundaryLogs memory logs) private pure {
        // INVARIANT: the logs are those the worker committed to.
        if (keccak256(abi.encode(logs)) != io) revert IDisputes.WrongLogs();
    }

    /// @dev Whether `root` is the tensor of a local step and micro-batch in a boundary log (C-8).
    function _isLogged(
        bytes32 log,
        bytes32 root,
        uint256 localStep,
        uint256 microBatch,
        uint256 microBatches,
        uint256 stepsPerInterval,
        bytes32[] calldata siblings
    ) private pure returns (bool) {
        // INVARIANT: a micro-batch of another step is never taken for one of this.
        if (microBatch >= microBatches) return false;
        return
            Merkle.isMember(log, root, localStep * microBatches + microBatch, stepsPerInterval * microBatches, siblings);
    }
}
