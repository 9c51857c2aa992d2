// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Opcodes} from "../../../contracts/libraries/operators/Opcodes.sol";
import {
    BoundaryLogs,
    Claim,
    EdgeLog,
    JobTerms,
    Operand,
    Operator,
    ProgramHeader,
    StepStatement,
    TensorType
} from "../../../contracts/types/Types.sol";
import {Slow} from "../verifier/Slow.sol";
import {SlowTree} from "../verifier/SlowTree.sol";
import {Int8Tensors} from "./Int8Tensors.sol";
import {ProtocolTest} from "./ProtocolTest.sol";

/// @title A worker that runs a small program and signs what it did
/// @notice The middle one of three stages, with two micro-batches. The state is one matrix `w`, negated by every step.
///
/// | operator | | goes to |
/// |---|---|---|
/// | 0 | MatMul(constant 0, w) | |
/// | 1 | Relu(0) | |
/// | 2 | Scale(w, −1) | state 0 |
/// | 3, 4 | Relu(micro-batch 0, 1 from the previous stage) | the next stage |
/// | 5, 6 | Relu(micro-batch 0, 1 from the next stage) | the previous stage |
/// | 7 | Sample(constant 1) | |
abstract contract TrainingWorker is ProtocolTest, Int8Tensors {
    using SlowTree for bytes32[][];

    uint16 internal constant STAGE = 1;
    uint32 internal constant OPERATORS = 8;
    uint32 internal constant MICRO_BATCHES = 2;
    uint256 internal constant NOTHING = type(uint256).max;

    uint64 internal job;
    Operator[] internal program;
    ProgramHeader internal header;

    /// @dev What the worker gets wrong when it answers: a byte of an output, by a mask.
    uint256 internal wrongOperator = NOTHING;
    uint256 internal wrongByte;
    bytes1 internal wrongMask = 0x01;
    /// @dev From the end of this step on the worker's state is wrong.
    uint256 internal wrongStep = NOTHING;

    function setUp() public virtual override {
        super.setUp();
        _writeProgram();
        _postTraining();
    }

    /// @dev Posts and starts a job with the program as it stands in its middle stage, three intervals.
    function _postTraining() internal {
        header = _headerOf();
        JobTerms memory terms = _terms(address(sno), 3, 1, 3);
        terms.programs[STAGE] = keccak256(abi.encode(header));
        terms.initialStates[STAGE] = _stateTree(0).rootOf();
        job = _post(terms);
        _accept(job);
        vm.prevrandao(keccak256("beacon"));
        _start(job);
    }

    // The program

    function _writeProgram() private {
        TensorType x = _matrix(2, 64);
        TensorType w = _matrix(8, 64);
        TensorType y = _matrix(2, 8);
        TensorType v = _vector(4);
        _add(Opcodes.MAT_MUL, y);
        _operand(3, 0, x);
        _operand(2, 0, w);
        program[0].attributes.push(6);
        _add(Opcodes.RELU, y);
        _operand(1, 0, y);
        _add(Opcodes.SCALE, w);
        _operand(2, 0, w);
        program[2].attributes.push(-1);
        program[2].attributes.push(0);
        for (uint32 i = 0; i < 4; ++i) {
            _add(Opcodes.RELU, v);
            _operand(i < 2 ? 4 : 5, i % 2, v);
        }
        _add(Opcodes.SAMPLE, v);
        _operand(3, 1, _vector(300));
        program[7].attributes.push(10);
    }

    /// @dev Operator 2 is the next state, 3 and 4 go to the next stage, 5 and 6 to the previous one.
    function _wiringTree() internal pure returns (bytes32[][] memory) {
        bytes32[] memory operators = new bytes32[](5);
        for (uint256 i = 0; i < operators.length; ++i) {
            operators[i] = bytes32(i + 2);
        }
        return SlowTree.ofDigests(operators);
    }

    function _add(uint8 opcode, TensorType output) private {
        Operator storage op = program.push();
        (op.opcode, op.output) = (opcode, output);
    }

    function _operand(uint8 source, uint32 index, TensorType tensorType) private {
        program[program.length - 1].operands.push(Operand(source, index, tensorType));
    }

    function _headerOf() private view returns (ProgramHeader memory) {
        return ProgramHeader({
            operatorCount: OPERATORS,
            constantCount: 2,
            stateCount: 1,
            microBatches: MICRO_BATCHES,
            edges: 15,
            operators: _operatorTree().rootOf(),
            constants: _constantTree().rootOf(),
            wiring: _wiringTree().rootOf()
        });
    }

    function _operatorTree() internal view returns (bytes32[][] memory) {
        bytes32[] memory digests = new bytes32[](OPERATORS);
        for (uint256 i = 0; i < OPERATORS; ++i) {
            digests[i] = keccak256(abi.encode(program[i]));
        }
        return SlowTree.ofDigests(digests);
    }

    function _constantTree() internal pure returns (bytes32[][] memory) {
        bytes32[] memory digests = new bytes32[](2);
        digests[0] = _root(_matrix(2, 64), _constant(0));
        digests[1] = _root(_vector(300), _constant(1));
        return SlowTree.ofDigests(digests);
    }

    // Tensors

    function _constant(uint256 index) internal pure returns (bytes memory data) {
        uint256 length = index == 0 ? 128 : 300;
        data = _padded(length);
        for (uint256 i = 0; i < length; ++i) {
            _put(data, i, int256(i * 37 % 127) - 63);
        }
    }

    /// @dev The state before `step`.
    function _weights(uint32 step) internal pure returns (bytes memory data) {
        data = _padded(512);
        for (uint256 i = 0; i < 512; ++i) {
            int256 value = int256(i * 11 % 101) - 50;
            _put(data, i, step % 2 == 0 ? value : -value);
        }
    }

    /// @dev The state before `step`, as the worker says.
    function _weightsSaid(uint32 step) internal view returns (bytes memory data) {
        data = _weights(step);
        if (step > wrongStep) data[300] ^= 0x01;
    }

    /// @dev What comes from the previous (source 4) or next (5) stage.
    function _arrival(uint8 source, uint32 step, uint32 microBatch) internal pure returns (bytes memory data) {
        data = _padded(4);
        for (uint256 i = 0; i < 4; ++i) {
            _put(data, i, int256((i + 1) * (step + 3) * (microBatch + 2) * source % 61) - 25);
        }
    }

    /// @dev Output of an operator, as the program gives it.
    function _honest(uint256 operator, uint32 step) internal view returns (bytes memory data) {
        if (operator == 0) return _product(step);
        if (operator == 1) return _relu(_product(step));
        if (operator == 2) return _weights(step + 1);
        if (operator < 7) return _relu(_arrival(operator < 5 ? 4 : 5, step, uint32(operator - 3) % 2));
        (data, operator) = (_padded(4), uint256(300));
        for (uint32 i = 0; i < 4; ++i) {
            uint256 row = uint256(Slow.philox(jobs.jobOf(job).jobKey, 10 + i, step)) * operator >> 32;
            _put(data, i, _get(_constant(1), row));
        }
    }

    function _product(uint32 step) private pure returns (bytes memory data) {
        data = _padded(16);
        (bytes memory x, bytes memory w) = (_constant(0), _weights(step));
        for (uint256 i = 0; i < 16; ++i) {
            int256 sum = 0;
            for (uint256 k = 0; k < 64; ++k) {
                sum += _get(x, i / 8 * 64 + k) * _get(w, i % 8 * 64 + k);
            }
            _put(data, i, Slow.rescale(sum, 6, 8));
        }
    }

    /// @dev Output of an operator, as the worker says.
    function _output(uint256 operator, uint32 step) internal view returns (bytes memory data) {
        data = operator == 2 ? _weightsSaid(step + 1) : _honest(operator, step);
        if (operator == wrongOperator) data[wrongByte] ^= wrongMask;
    }

    // Commitments of the worker

    function _traceTree(uint32 step) internal view returns (bytes32[][] memory) {
        bytes32[] memory digests = new bytes32[](OPERATORS);
        for (uint256 i = 0; i < OPERATORS; ++i) {
            digests[i] = _root(program[i].output, _output(i, step));
        }
        return SlowTree.ofDigests(digests);
    }

    function _stateTree(uint32 step) internal view returns (bytes32[][] memory) {
        bytes32[] memory digests = new bytes32[](1);
        digests[0] = _root(_matrix(8, 64), _weightsSaid(step));
        return SlowTree.ofDigests(digests);
    }

    /// @dev Log `which` (of the fields of `BoundaryLogs`, in order) of an interval.
    function _logTree(uint256 which, uint32 interval) internal view returns (bytes32[][] memory) {
        bytes32[] memory digests = new bytes32[](STEPS * MICRO_BATCHES);
        for (uint32 i = 0; i < digests.length; ++i) {
            (uint32 step, uint32 microBatch) = (interval * STEPS + i / MICRO_BATCHES, i % MICRO_BATCHES);
            digests[i] = _logged(which, step, microBatch);
        }
        return SlowTree.ofDigests(digests);
    }

    /// @dev Entry of a log.
    function _logged(uint256 which, uint32 step, uint32 microBatch) internal view returns (bytes32) {
        if (which == 0) return _root(_vector(4), _arrival(4, step, microBatch));
        if (which == 1) return _root(_vector(4), _honest(5 + microBatch, step));
        if (which == 2) return _root(_vector(4), _arrival(5, step, microBatch));
        return _root(_vector(4), _honest(3 + microBatch, step));
    }

    function _logsOf(uint32 interval) internal view returns (BoundaryLogs memory) {
        return BoundaryLogs({
            fromPrevious: _logTree(0, interval).rootOf(),
            toPrevious: _logTree(1, interval).rootOf(),
            fromNext: _logTree(2, interval).rootOf(),
            toNext: _logTree(3, interval).rootOf()
        });
    }

    /// @dev What a neighbour of the stage signed as sent to it in an interval.
    function _signedLog(uint16 from, uint32 interval, bytes32 root) internal view returns (bytes memory) {
        EdgeLog memory log = EdgeLog(job, 0, from, STAGE, interval, root);
        return _sign(workers[from].key, _edgeLogDigest(log));
    }

    function _trainingClaim(uint32 interval) internal view returns (Claim memory) {
        return Claim({
            job: job,
            stage: STAGE,
            replica: 0,
            interval: interval,
            parentState: _stateTree(interval * STEPS).rootOf(),
            newState: _stateTree((interval + 1) * STEPS).rootOf(),
            io: keccak256(abi.encode(_logsOf(interval)))
        });
    }

    function _commitTraining(uint32 interval) internal returns (Claim memory claim) {
        claim = _trainingClaim(interval);
        Claim memory parent;
        if (interval > 0) parent = _trainingClaim(interval - 1);
        vm.prank(workers[STAGE].addr);
        checkpoints.commit(claim, _link(parent, uint64(block.timestamp)));
    }

    function _statement(Claim memory claim, uint32 step) internal view returns (StepStatement memory) {
        return StepStatement({
            claimId: checkpoints.claimId(claim),
            auditor: auditor,
            step: step,
            preState: _stateTree(step).rootOf(),
            postState: _stateTree(step + 1).rootOf(),
            trace: _traceTree(step).rootOf()
        });
    }

    function _signed(StepStatement memory statement) internal view returns (bytes memory) {
        return _sign(workers[STAGE].key, _statementDigest(statement));
    }
}
