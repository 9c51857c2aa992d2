// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IJobs} from "../../../../contracts/interfaces/IJobs.sol";
import {TensorTypes} from "../../../../contracts/libraries/encoding/TensorTypes.sol";
import {Opcodes} from "../../../../contracts/libraries/operators/Opcodes.sol";
import {Merkle} from "../../../../contracts/libraries/proofs/Merkle.sol";
import {
    Claim,
    JobKind,
    JobTerms,
    LeafRange,
    Operand,
    ProgramHeader,
    StepStatement,
    TensorType
} from "../../../../contracts/types/Types.sol";
import {ElementProof, TensorOpening} from "../../protocol/ElementProof.sol";
import {ProtocolTest} from "../../protocol/ProtocolTest.sol";
import {SlowTree} from "../../verifier/SlowTree.sol";

/// @title Gas of convictions over rows of 4,096
/// @notice Operators of a layer of a large model, 512 tokens by 4,096 channels, in a program of 60 operators and 12
/// state tensors. Of the tensors there is only what the proof opens; the rest of their trees is noise.
/// forge-config: default.isolate = true
contract ProofGasTest is ProtocolTest {
    using SlowTree for bytes32[][];
    using TensorTypes for TensorType;

    uint32 private constant OPERATORS = 60;
    uint32 private constant OPERATOR = 40;
    uint32 private constant TOKENS = 512;
    /// @dev Of a serving job: the list of programs is 12 nodes deep.
    uint32 private constant LONGEST_TEXT = 4096;
    uint64 private constant TOKEN = 300;
    uint64 private constant CHANNEL = 1234;
    uint64 private constant ELEMENT = 4096 * TOKEN + CHANNEL;

    /// @dev An operand and the one run of it that the proof opens, whole leaves.
    struct Opened {
        TensorType tensorType;
        uint256 element;
        uint256 count;
    }

    function _matrix(uint256 bits, uint256 rows) private pure returns (TensorType) {
        return _matrix(bits, rows, 4096);
    }

    function _matrix(uint256 bits, uint256 rows, uint256 row) private pure returns (TensorType) {
        return TensorType.wrap((bits << 248) | (2 << 224) | (rows << 96) | (row << 64));
    }

    function _vector(uint256 bits, uint256 length) private pure returns (TensorType) {
        return TensorType.wrap((bits << 248) | (1 << 224) | (length << 96));
    }

    /// @notice `y = a·bᵀ`, b of the state.
    function test_proveSigned_4096() public {
        Opened[] memory opened = _factors(8, 2);
        assertLe(_measure("int8 dot product of 4096", Opcodes.MAT_MUL, opened, _attributes(12)), 450_000);
    }

    /// @notice The same about a receipt: b is a constant of the program, which is one of as many as a text can
    /// have tokens.
    function test_receipt_4096() public {
        Opened[] memory opened = _factors(8, 2);
        ElementProof memory p = _proof(Opcodes.MAT_MUL, opened, _attributes(12), JobKind.Serving);
        assertEq(p.programMembership.length, 12);
        assertLe(_measure("receipt, int8 dot product of 4096", p), 460_000);
        assertEq(uint8(_stateOfJob(p.claim.job)), uint8(IJobs.State.Closing));
    }

    /// @notice The same with a scale for each token and channel.
    function test_scaledProductInt8() public {
        Opened[] memory opened = _scaled(8);
        assertLe(
            _measure("int8 scaled dot product of 4096", Opcodes.SCALED_MAT_MUL, opened, _attributes(0, 40)), 500_000
        );
    }

    /// @dev What counts is the floor price of calldata (EIP-7623), 40 gas for each byte of 16 KiB: arithmetic costs
    /// none on top.
    function test_scaledProductInt16() public {
        Opened[] memory opened = _scaled(16);
        assertLe(
            _measure("int16 scaled dot product of 4096", Opcodes.SCALED_MAT_MUL, opened, _attributes(0, 40)), 820_000
        );
    }

    /// @notice int16 activations by int8 weights. The price being linear in the length, 2816 elements, the longest row
    /// that the compiler takes at once, cost 517,000.
    function test_scaledProductMixed_2048() public {
        Opened[] memory opened = _mixed(2048);
        string memory name = "int16 by int8 scaled dot product of 2048";
        assertLe(_measure(name, Opcodes.SCALED_MAT_MUL, opened, _attributes(0, 40)), 470_000);
    }

    function test_scaledProductMixed_4096() public {
        Opened[] memory opened = _mixed(4096);
        string memory name = "int16 by int8 scaled dot product of 4096";
        assertLe(_measure(name, Opcodes.SCALED_MAT_MUL, opened, _attributes(0, 40)), 660_000);
    }

    /// @notice What programs of served models have: words or bytes of a shifted row by words or bytes.
    function test_shiftedProducts() public {
        Opened[] memory opened = _shifted(_mixed(4096));
        string memory name = "int16 by int8 shifted dot product of 4096";
        assertLe(_measure(name, Opcodes.SHIFTED_MAT_MUL, opened, _attributes(0, 20)), 660_000);
    }

    function test_shiftedProductOfWords() public {
        Opened[] memory opened = _shifted(_scaled(16));
        string memory name = "int16 shifted dot product of 4096";
        assertLe(_measure(name, Opcodes.SHIFTED_MAT_MUL, opened, _attributes(0, 20)), 820_000);
    }

    /// @notice The widest rows: all of their mantissas' four bytes are in the proof.
    function test_wideRows() public {
        Opened[] memory opened = new Opened[](1);
        opened[0] = Opened(_matrix(24, 512), TOKEN * 4096, 4096);
        assertLe(_measure("RowShift of 4096 of 24 bits", Opcodes.ROW_SHIFT, opened, _attributes(16)), 850_000);
    }

    function test_wideLayerNorm() public {
        Opened[] memory opened = _layerNorm(24);
        string memory name = "int24 LayerNorm of 4096";
        assertLe(_measure(name, Opcodes.NORM, opened, _attributes(1, 1000, 0, 40)), 850_000);
    }

    function _shifted(Opened[] memory opened) private pure returns (Opened[] memory) {
        opened[2] = Opened(_vector(8, 512), TOKEN, 1);
        return opened;
    }

    function _mixed(uint256 length) private pure returns (Opened[] memory opened) {
        opened = _scaled(8);
        opened[0] = Opened(_matrix(16, 512), TOKEN * 4096, length);
        opened[1] = Opened(_matrix(8, 4096, length), CHANNEL * length, length);
    }

    function _scaled(uint256 bits) private pure returns (Opened[] memory opened) {
        opened = _factors(bits, 4);
        opened[2] = Opened(_vector(16, 512), TOKEN, 1);
        opened[3] = Opened(_vector(16, 4096), CHANNEL, 1);
    }

    function test_layerNorm() public {
        Opened[] memory opened = _layerNorm(16);
        assertLe(_measure("int16 LayerNorm of 4096", Opcodes.NORM, opened, _attributes(1, 1000, 0, 40)), 550_000);
    }

    function _layerNorm(uint256 bits) private pure returns (Opened[] memory opened) {
        opened = new Opened[](3);
        opened[0] = Opened(_matrix(bits, 512), TOKEN * 4096, 4096);
        opened[1] = Opened(_vector(16, 4096), CHANNEL, 1);
        opened[2] = Opened(_vector(16, 4096), CHANNEL, 1);
    }

    /// @dev Row `TOKEN` of an operand from the trace and row `CHANNEL` of one from the state, first of `operands`.
    function _factors(uint256 bits, uint256 operands) private pure returns (Opened[] memory opened) {
        opened = new Opened[](operands);
        opened[0] = Opened(_matrix(bits, 512), TOKEN * 4096, 4096);
        opened[1] = Opened(_matrix(bits, 4096), CHANNEL * 4096, 4096);
    }

    function _attributes(int64 a) private pure returns (int64[] memory l) {
        l = new int64[](1);
        l[0] = a;
    }

    function _attributes(int64 a, int64 b) private pure returns (int64[] memory l) {
        l = new int64[](2);
        (l[0], l[1]) = (a, b);
    }

    function _attributes(int64 a, int64 b, int64 c, int64 d) private pure returns (int64[] memory l) {
        l = new int64[](4);
        (l[0], l[1], l[2], l[3]) = (a, b, c, d);
    }

    /// @dev Convicts over such an operator, whose output is of 8 bits.
    function _measure(string memory name, uint8 opcode, Opened[] memory opened, int64[] memory attributes)
        private
        returns (uint256 gas)
    {
        return _measure(name, _proof(opcode, opened, attributes, JobKind.Training));
    }

    function _measure(string memory name, ElementProof memory p) private returns (uint256 gas) {
        _addValidator();
        bytes memory proof = p.pack();
        vm.prank(auditor);
        disputes.proveSigned(proof);
        name = string.concat("proveSigned, ", name);
        gas = vm.snapshotGasLastCall("conviction", name);
        vm.snapshotValue(
            "conviction", string.concat(name, ", calldata bytes"), abi.encodeCall(disputes.proveSigned, (proof)).length
        );
        assertEq(_staked(workers[0].addr).bonded, 0);
    }

    function _proof(uint8 opcode, Opened[] memory opened, int64[] memory attributes, JobKind kind)
        private
        returns (ElementProof memory p)
    {
        p.operator.opcode = opcode;
        p.operator.output = _matrix(8, 512);
        p.operator.attributes = attributes;
        (p.operatorIndex, p.element) = (OPERATOR, ELEMENT);
        bytes32 dataRoot;
        (p.output, dataRoot) = _noisyTensor("y", Opened(p.operator.output, ELEMENT, 1));

        bytes32[] memory trace = _noise("trace", OPERATORS);
        trace[OPERATOR] = Merkle.tensorRoot(p.operator.output, dataRoot);
        bytes32[] memory weights = _noise("weights", 12);
        p.operator.operands = new Operand[](opened.length);
        p.operands = new TensorOpening[](opened.length);
        for (uint256 i = 0; i < opened.length; ++i) {
            // From the trace and from the weights in turn: state in training, constants in serving.
            uint8 source = i % 2 == 0 ? 1 : kind == JobKind.Training ? 2 : 3;
            p.operator.operands[i] = Operand(source, uint32(5 + i), opened[i].tensorType);
            (p.operands[i], dataRoot) = _noisyTensor(string.concat("operand ", vm.toString(i)), opened[i]);
            (i % 2 == 0 ? trace : weights)[5 + i] = Merkle.tensorRoot(opened[i].tensorType, dataRoot);
        }
        p.output.membership = SlowTree.ofDigests(trace).path(OPERATOR);
        for (uint256 i = 0; i < opened.length; ++i) {
            p.operands[i].membership = SlowTree.ofDigests(i % 2 == 0 ? trace : weights).path(5 + i);
        }

        bytes32[] memory operators = _noise("operators", OPERATORS);
        operators[OPERATOR] = keccak256(abi.encode(p.operator));
        p.operatorMembership = SlowTree.ofDigests(operators).path(OPERATOR);
        bool serving = kind == JobKind.Serving;
        bytes32 root = SlowTree.ofDigests(weights).rootOf();
        p.program = ProgramHeader({
            operatorCount: OPERATORS,
            constantCount: serving ? 12 : 3,
            stateCount: serving ? 0 : 12,
            microBatches: 4,
            edges: 0,
            operators: SlowTree.ofDigests(operators).rootOf(),
            constants: serving ? root : keccak256("constants"),
            wiring: keccak256("wiring")
        });
        if (serving) _signReceipt(p, SlowTree.ofDigests(trace).rootOf());
        else _commitOneStep(p, root, SlowTree.ofDigests(trace).rootOf());
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

    /// @dev A job with this program among others, and the worker's statement about a receipt.
    function _signReceipt(ElementProof memory p, bytes32 trace) private {
        JobTerms memory terms = _servingTerms(address(sno), 1, 1, 1);
        terms.stepsPerInterval = LONGEST_TEXT;
        bytes32[] memory programs = _noise("programs", LONGEST_TEXT);
        programs[TOKENS - 1] = keccak256(abi.encode(p.program));
        bytes32[][] memory tree = SlowTree.ofDigests(programs);
        terms.programs[0] = tree.rootOf();
        p.programMembership = tree.path(TOKENS - 1);
        (p.claim.job, p.claim.io) = (_run(terms), keccak256("io"));
        p.statement = StepStatement({
            claimId: checkpoints.claimId(p.claim),
            auditor: auditor,
            step: TOKENS,
            preState: 0,
            postState: 0,
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

    /// @dev Makes little-endian numbers of four bytes such of three.
    function _extendSigns(bytes memory leaf) private pure {
        for (uint256 i = 3; i < leaf.length; i += 4) {
            leaf[i] = leaf[i - 1] >= 0x80 ? bytes1(0xff) : bytes1(0);
        }
    }

    /// @dev The leaves of a run (a power of two of them, aligned) of noise in a tree whose other nodes are noise.
    function _noisyTensor(string memory seed, Opened memory opened)
        private
        pure
        returns (TensorOpening memory opening, bytes32 node)
    {
        TensorType t = opened.tensorType;
        uint256 first = opened.element * t.width() / 256;
        uint256 count = (opened.count * t.width() + 255) / 256;
        bytes[] memory leaves = new bytes[](count);
        bytes memory all;
        for (uint256 i = 0; i < count; ++i) {
            leaves[i] = abi.encodePacked(_noise(string.concat(seed, vm.toString(i)), 8));
            if (t.bits() == 24) _extendSigns(leaves[i]);
            all = bytes.concat(all, leaves[i]);
        }
        node = SlowTree.ofLeaves(leaves).rootOf();
        uint256 index = first / count;
        uint256 depth = Merkle.depth(t.leafCount()) - Merkle.depth(count);
        bytes32[] memory siblings = _noise(string.concat(seed, " siblings"), depth);
        for (uint256 i = 0; i < siblings.length; ++i) {
            node = index & 1 == 0
                ? keccak256(abi.encodePacked(bytes1(0x01), node, siblings[i]))
                : keccak256(abi.encodePacked(bytes1(0x01), siblings[i], node));
            index >>= 1;
        }
        opening.ranges = new LeafRange[](1);
        opening.ranges[0] = LeafRange({firstLeaf: uint32(first), leaves: all, siblings: siblings});
    }
}
