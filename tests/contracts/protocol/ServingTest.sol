// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {ContradictionProof, Operand, StepStatement, WiringProof} from "../../../contracts/types/Types.sol";
import {SlowTree} from "../verifier/SlowTree.sol";
import {ElementProof, TensorOpening} from "./ElementProof.sol";
import {ServingWorker} from "./ServingWorker.sol";

/// @title An auditor that builds proofs from a worker's answers about a receipt
abstract contract ServingTest is ServingWorker {
    using SlowTree for bytes32[][];

    function _elementProof(uint32 text, uint32 tokens, uint32 operator, uint64 element)
        internal
        view
        returns (ElementProof memory p)
    {
        (p.claim, p.logs) = (_receipt(text, tokens), _logs(text, tokens));
        p.statement = _statement(text, tokens);
        p.signature = _signed(p.statement);
        (p.program, p.programMembership) = (_header(tokens), _programPath(tokens));
        (p.operator, p.operatorIndex) = (_program(tokens)[operator], operator);
        p.operatorMembership = _operatorTree(tokens).path(operator);
        p.element = element;
        p.output = _open(_output(operator, text, tokens), element / 256, 1);
        p.output.membership = _traceTree(text, tokens).path(operator);
        p.operands = new TensorOpening[](p.operator.operands.length);
        for (uint256 i = 0; i < p.operands.length; ++i) {
            p.operands[i] = _openOperand(p.operator.operands[i], text, tokens);
        }
    }

    function _openOperand(Operand memory operand, uint32 text, uint32 tokens)
        private
        view
        returns (TensorOpening memory opening)
    {
        bytes memory data = operand.source == 1
            ? _output(operand.index, text, tokens)
            : operand.source == 3 ? _weights() : _arrival(text, tokens, operand.index);
        opening = _open(data, 0, data.length / 256);
        if (operand.source == 1) opening.membership = _traceTree(text, tokens).path(operand.index);
        else if (operand.source == 3) opening.membership = _constantTree().path(operand.index);
        else opening.membership = _logTree(true, text, tokens).path(operand.index);
    }

    /// @dev From the program for `tokens` to the list that the job registered.
    function _programPath(uint32 tokens) internal view returns (bytes32[] memory) {
        return _programTree(jobs.jobOf(job).stepsPerInterval).path(tokens - 1);
    }

    /// @dev Of what went to the next stage for micro-batch `index`. The log is right; the trace may be wrong.
    function _wiringProof(uint32 text, uint32 tokens, uint32 index) internal view returns (WiringProof memory p) {
        (p.claim, p.logs) = (_receipt(text, tokens), _logs(text, tokens));
        p.statement = _statement(text, tokens);
        p.signature = _signed(p.statement);
        (p.program, p.programMembership) = (_header(tokens), _programPath(tokens));
        (p.sink, p.index) = (2, index);
        uint32 source = 2 * index + 1;
        (p.operatorIndex, p.wiringMembership) = (source, _wiringTree().path(index));
        p.traceRoot = _root(_matrix(tokens, 8), _output(source, text, tokens));
        p.traceMembership = _traceTree(text, tokens).path(source);
        p.sinkRoot = _root(_matrix(tokens, 8), _honest(source, text, tokens));
        p.sinkMembership = _logTree(false, text, tokens).path(index);
    }

    function _contradictionProof(uint32 text, uint32 tokens, StepStatement memory first, StepStatement memory second)
        internal
        view
        returns (ContradictionProof memory)
    {
        return ContradictionProof({
            claim: _receipt(text, tokens),
            committedAt: 0,
            first: first,
            firstSignature: _signed(first),
            second: second,
            secondSignature: _signed(second)
        });
    }
}
