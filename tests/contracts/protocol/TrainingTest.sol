// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Claim, ContradictionProof, Operand, StepStatement, WiringProof} from "../../../contracts/types/Types.sol";
import {SlowTree} from "../verifier/SlowTree.sol";
import {ElementProof, TensorOpening} from "./ElementProof.sol";
import {TrainingWorker} from "./TrainingWorker.sol";

/// @title An auditor that builds proofs from the answers of a worker
abstract contract TrainingTest is TrainingWorker {
    using SlowTree for bytes32[][];

    function _elementProof(Claim memory claim, uint32 step, uint32 operator, uint64 element)
        internal
        view
        returns (ElementProof memory p)
    {
        (p.claim, p.committedAt, p.logs) = (claim, uint64(block.timestamp), _logsOf(claim.interval));
        p.statement = _statement(claim, step);
        p.signature = _signed(p.statement);
        (p.program, p.operator, p.operatorIndex) = (header, program[operator], operator);
        p.operatorMembership = _operatorTree().path(operator);
        p.element = element;
        p.output = _open(_output(operator, step), element / 256, 1);
        p.output.membership = _traceTree(step).path(operator);
        p.operands = new TensorOpening[](p.operator.operands.length);
        for (uint256 i = 0; i < p.operands.length; ++i) {
            Operand memory operand = p.operator.operands[i];
            bytes memory data = _operandData(operand, step);
            p.operands[i] = _open(data, 0, data.length / 256);
            p.operands[i].membership = _operandPath(operand, claim.interval, step);
        }
    }

    function _operandData(Operand memory operand, uint32 step) private view returns (bytes memory) {
        if (operand.source == 1) return _output(operand.index, step);
        if (operand.source == 2) return _weights(step);
        if (operand.source == 3) return _constant(operand.index);
        return _arrival(operand.source, step, operand.index);
    }

    function _operandPath(Operand memory operand, uint32 interval, uint32 step)
        private
        view
        returns (bytes32[] memory)
    {
        if (operand.source == 1) return _traceTree(step).path(operand.index);
        if (operand.source == 2) return _stateTree(step).path(operand.index);
        if (operand.source == 3) return _constantTree().path(operand.index);
        uint256 leaf = uint256(step % STEPS) * MICRO_BATCHES + operand.index;
        return _logTree(operand.source == 4 ? 0 : 2, interval).path(leaf % (STEPS * MICRO_BATCHES));
    }

    /// @dev `sink` and `index` as in `WiringProof`. The sinks are right; the trace may be wrong.
    function _wiringProof(Claim memory claim, uint32 step, uint8 sink, uint32 index)
        internal
        view
        returns (WiringProof memory p)
    {
        (p.claim, p.committedAt, p.logs) = (claim, uint64(block.timestamp), _logsOf(claim.interval));
        p.statement = _statement(claim, step);
        p.signature = _signed(p.statement);
        (p.program, p.sink, p.index) = (header, sink, index);
        uint32 source = sink == 1 ? 2 : sink == 2 ? 3 + index : 5 + index;
        (p.operatorIndex, p.wiringMembership) = (source, _wiringTree().path(source - 2));
        p.traceRoot = _root(program[source].output, _output(source, step));
        p.traceMembership = _traceTree(step).path(source);
        p.sinkRoot = _root(program[source].output, _honest(source, step));
        if (sink == 1) {
            p.sinkMembership = _stateTree(step + 1).path(index);
        } else {
            uint256 leaf = uint256(step % STEPS) * MICRO_BATCHES + index;
            p.sinkMembership = _logTree(sink == 2 ? 3 : 1, claim.interval).path(leaf);
        }
    }

    function _contradictionProof(Claim memory claim, StepStatement memory first, StepStatement memory second)
        internal
        view
        returns (ContradictionProof memory)
    {
        return ContradictionProof({
            claim: claim,
            committedAt: uint64(block.timestamp),
            first: first,
            firstSignature: _signed(first),
            second: second,
            secondSignature: _signed(second)
        });
    }
}
