// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Opcodes} from "../../../contracts/libraries/operators/Opcodes.sol";
import {
    BoundaryLogs,
    Claim,
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

/// @title A worker that serves texts and signs what it did
/// @notice The middle one of a text's stages: it has two micro-batches of a row for each token, and weights `w`. One
/// program for each length (C-13), which differ in the rows of their types.
///
/// | operator | | goes to |
/// |---|---|---|
/// | 0, 2 | MatMul(micro-batch 0, 1 from the previous stage; w) | |
/// | 1, 3 | Relu(0), Relu(2) | the next stage |
abstract contract ServingWorker is ProtocolTest, Int8Tensors {
    using SlowTree for bytes32[][];

    uint32 internal constant OPERATORS = 4;
    uint32 internal constant MICRO_BATCHES = 2;
    uint32 internal constant WIDTH = 16;
    uint256 internal constant NOTHING = type(uint256).max;

    uint64 internal job;
    /// @dev Program roots by length, from one token on.
    bytes32[] private _programRoots;

    /// @dev What the worker gets wrong when it answers: a byte of an output.
    uint256 internal wrongOperator = NOTHING;
    uint256 internal wrongByte;

    function setUp() public virtual override {
        super.setUp();
        for (uint32 tokens = 1; tokens <= LONGEST; ++tokens) {
            _programRoots.push(keccak256(abi.encode(_header(tokens))));
        }
        job = _postServing(LONGEST);
    }

    /// @dev Posts and starts a job of one stage and two replicas, texts of at most `longest` tokens.
    function _postServing(uint32 longest) internal returns (uint64) {
        return _postServing(longest, _programTree(longest).rootOf());
    }

    function _postServing(uint32 longest, bytes32 programs) internal returns (uint64) {
        JobTerms memory terms = _servingTerms(address(sno), 1, 2, 100);
        (terms.stepsPerInterval, terms.programs[0]) = (longest, programs);
        return _run(terms);
    }

    // Programs

    function _program(uint32 tokens) internal pure returns (Operator[] memory program) {
        program = new Operator[](OPERATORS);
        TensorType y = _matrix(tokens, 8);
        for (uint32 i = 0; i < OPERATORS; i += 2) {
            Operand[] memory factors = new Operand[](2);
            (factors[0], factors[1]) = (Operand(4, i / 2, _matrix(tokens, WIDTH)), Operand(3, 0, _matrix(8, WIDTH)));
            int64[] memory shift = new int64[](1);
            shift[0] = 6;
            program[i] = Operator(Opcodes.MAT_MUL, y, factors, shift);
            Operand[] memory input = new Operand[](1);
            input[0] = Operand(1, i, y);
            program[i + 1] = Operator(Opcodes.RELU, y, input, new int64[](0));
        }
    }

    /// @dev Operators 1 and 3 go to the next stage.
    function _wiringTree() internal pure returns (bytes32[][] memory) {
        bytes32[] memory operators = new bytes32[](MICRO_BATCHES);
        (operators[0], operators[1]) = (bytes32(uint256(1)), bytes32(uint256(3)));
        return SlowTree.ofDigests(operators);
    }

    function _header(uint32 tokens) internal pure returns (ProgramHeader memory) {
        return ProgramHeader({
            operatorCount: OPERATORS,
            constantCount: 1,
            stateCount: 0,
            microBatches: MICRO_BATCHES,
            edges: 9,
            operators: _operatorTree(tokens).rootOf(),
            constants: _constantTree().rootOf(),
            wiring: _wiringTree().rootOf()
        });
    }

    function _operatorTree(uint32 tokens) internal pure returns (bytes32[][] memory) {
        Operator[] memory program = _program(tokens);
        bytes32[] memory digests = new bytes32[](OPERATORS);
        for (uint256 i = 0; i < OPERATORS; ++i) {
            digests[i] = keccak256(abi.encode(program[i]));
        }
        return SlowTree.ofDigests(digests);
    }

    function _constantTree() internal pure returns (bytes32[][] memory) {
        bytes32[] memory digests = new bytes32[](1);
        digests[0] = _root(_matrix(8, WIDTH), _weights());
        return SlowTree.ofDigests(digests);
    }

    /// @dev The programs by length, that for one token first.
    function _programTree(uint32 longest) internal view returns (bytes32[][] memory) {
        bytes32[] memory digests = new bytes32[](longest);
        for (uint32 i = 0; i < longest; ++i) {
            digests[i] = _programRoots[i];
        }
        return SlowTree.ofDigests(digests);
    }

    // Tensors

    function _weights() internal pure returns (bytes memory data) {
        data = _padded(8 * WIDTH);
        for (uint256 i = 0; i < 8 * WIDTH; ++i) {
            _put(data, i, int256(i * 11 % 101) - 50);
        }
    }

    /// @dev What comes from the previous stage for a text.
    function _arrival(uint32 text, uint32 tokens, uint32 microBatch) internal pure returns (bytes memory data) {
        uint256 length = uint256(tokens) * WIDTH;
        data = _padded(length);
        for (uint256 i = 0; i < length; ++i) {
            _put(data, i, int256((i + 1) * (uint256(text) + 3) * (microBatch + 2) % 121) - 60);
        }
    }

    /// @dev Output of an operator, as the program gives it.
    function _honest(uint256 operator, uint32 text, uint32 tokens) internal pure returns (bytes memory data) {
        if (operator % 2 == 1) return _relu(_honest(operator - 1, text, tokens));
        data = _padded(uint256(tokens) * 8);
        (bytes memory x, bytes memory w) = (_arrival(text, tokens, uint32(operator / 2)), _weights());
        for (uint256 i = 0; i < uint256(tokens) * 8; ++i) {
            int256 sum = 0;
            for (uint256 k = 0; k < WIDTH; ++k) {
                sum += _get(x, i / 8 * WIDTH + k) * _get(w, i % 8 * WIDTH + k);
            }
            _put(data, i, Slow.rescale(sum, 6, 8));
        }
    }

    /// @dev Output of an operator, as the worker says.
    function _output(uint256 operator, uint32 text, uint32 tokens) internal view returns (bytes memory data) {
        data = _honest(operator, text, tokens);
        if (operator == wrongOperator) data[wrongByte] ^= 0x01;
    }

    // Commitments of the worker

    function _traceTree(uint32 text, uint32 tokens) internal view returns (bytes32[][] memory) {
        bytes32[] memory digests = new bytes32[](OPERATORS);
        for (uint256 i = 0; i < OPERATORS; ++i) {
            digests[i] = _root(_matrix(tokens, 8), _output(i, text, tokens));
        }
        return SlowTree.ofDigests(digests);
    }

    /// @dev Log of what came from the previous stage, or of what went to the next: one step (C-12).
    function _logTree(bool arrived, uint32 text, uint32 tokens) internal pure returns (bytes32[][] memory) {
        bytes32[] memory digests = new bytes32[](MICRO_BATCHES);
        for (uint32 i = 0; i < MICRO_BATCHES; ++i) {
            digests[i] = arrived
                ? _root(_matrix(tokens, WIDTH), _arrival(text, tokens, i))
                : _root(_matrix(tokens, 8), _honest(2 * i + 1, text, tokens));
        }
        return SlowTree.ofDigests(digests);
    }

    function _logs(uint32 text, uint32 tokens) internal pure returns (BoundaryLogs memory logs) {
        logs.fromPrevious = _logTree(true, text, tokens).rootOf();
        logs.toNext = _logTree(false, text, tokens).rootOf();
    }

    /// @dev Receipt of replica 0 for a text (C-12).
    function _receipt(uint32 text, uint32 tokens) internal view returns (Claim memory) {
        return Claim({
            job: job,
            stage: 0,
            replica: 0,
            interval: text,
            parentState: 0,
            newState: 0,
            io: keccak256(abi.encode(_logs(text, tokens)))
        });
    }

    function _statement(uint32 text, uint32 tokens) internal view returns (StepStatement memory) {
        return StepStatement({
            claimId: checkpoints.claimId(_receipt(text, tokens)),
            auditor: auditor,
            step: tokens,
            preState: 0,
            postState: 0,
            trace: _traceTree(text, tokens).rootOf()
        });
    }

    function _signed(StepStatement memory statement) internal view returns (bytes memory) {
        return _sign(workers[0].key, _statementDigest(statement));
    }
}
