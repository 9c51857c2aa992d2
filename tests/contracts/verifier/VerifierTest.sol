// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {StepVerifier} from "../../../contracts/core/StepVerifier.sol";
import {TensorTypes} from "../../../contracts/libraries/encoding/TensorTypes.sol";
import {Operand, Operator, StepContext, TensorType, Window} from "../../../contracts/types/Types.sol";
import {Test} from "forge-std/Test.sol";

/// @dev A tensor in the clear.
struct Tensor {
    TensorType tensorType;
    int256[] mantissas;
}

/// @title Operators, tensors and windows for tests of `StepVerifier`
abstract contract VerifierTest is Test {
    using TensorTypes for TensorType;

    StepVerifier internal verifier;
    StepContext internal context = StepContext({jobKey: keccak256("job"), step: 7});

    uint256 private _noise;

    function setUp() public virtual {
        verifier = new StepVerifier();
    }

    // Randomness: a stream from the fuzzer's seed.

    function seedNoise(uint256 seed) internal {
        _noise = uint256(keccak256(abi.encode(seed)));
    }

    /// @dev Uniform in `[low, high]`.
    function pick(int256 low, int256 high) internal returns (int256) {
        _noise = uint256(keccak256(abi.encode(_noise)));
        return low + int256(_noise % uint256(high - low + 1));
    }

    function pickUint(uint256 low, uint256 high) internal returns (uint256) {
        return uint256(pick(int256(low), int256(high)));
    }

    /// @dev Extremes, small values and values of every size.
    function pickMantissa(TensorType tensorType) internal returns (int256) {
        int256 limit = tensorType.limit();
        uint256 kind = pickUint(0, 9);
        if (kind == 0) return limit;
        if (kind == 1) return -limit;
        if (kind == 2) return pick(-1, 1);
        if (kind < 6) limit >>= pickUint(0, tensorType.bits() - 2);
        return pick(-limit, limit);
    }

    function randomTensor(TensorType tensorType) internal returns (Tensor memory t) {
        t.tensorType = tensorType;
        t.mantissas = new int256[](tensorType.elements());
        for (uint256 i = 0; i < t.mantissas.length; ++i) {
            t.mantissas[i] = pickMantissa(tensorType);
        }
    }

    // Types.

    function vector(uint256 bits, int256 exponent, uint256 d0) internal pure returns (TensorType) {
        return _pack(bits, exponent, 1, d0 << 96);
    }

    function matrix(uint256 bits, int256 exponent, uint256 d0, uint256 d1) internal pure returns (TensorType) {
        return _pack(bits, exponent, 2, (d0 << 96) | (d1 << 64));
    }

    function cube(uint256 bits, int256 exponent, uint256 d0, uint256 d1, uint256 d2)
        internal
        pure
        returns (TensorType)
    {
        return _pack(bits, exponent, 3, (d0 << 96) | (d1 << 64) | (d2 << 32));
    }

    /// @dev `shape` with other bits.
    function withBits(TensorType shape, uint256 bits) internal pure returns (TensorType) {
        return TensorType.wrap((TensorType.unwrap(shape) & (type(uint256).max >> 8)) | (bits << 248));
    }

    /// @dev A type of rank 1 to 3 with at most 60 elements.
    function randomShape(uint256 bits) internal returns (TensorType) {
        uint256 rank = pickUint(1, 3);
        int256 exponent = pick(-256, 256);
        if (rank == 1) return vector(bits, exponent, pickUint(1, 60));
        if (rank == 2) return matrix(bits, exponent, pickUint(1, 7), pickUint(1, 8));
        return cube(bits, exponent, pickUint(1, 3), pickUint(1, 4), pickUint(1, 5));
    }

    function _pack(uint256 bits, int256 exponent, uint256 rank, uint256 dims) private pure returns (TensorType) {
        return TensorType.wrap((bits << 248) | (uint256(uint16(int16(exponent))) << 232) | (rank << 224) | dims);
    }

    // Operators.

    function operatorOf(uint8 opcode, TensorType output, Tensor[] memory inputs, int256[] memory attributes)
        internal
        pure
        returns (Operator memory op)
    {
        op.opcode = opcode;
        op.output = output;
        op.operands = new Operand[](inputs.length);
        for (uint256 i = 0; i < inputs.length; ++i) {
            op.operands[i] = Operand({source: 1, index: uint32(i), tensorType: inputs[i].tensorType});
        }
        op.attributes = new int64[](attributes.length);
        for (uint256 i = 0; i < attributes.length; ++i) {
            op.attributes[i] = int64(attributes[i]);
        }
    }

    function list(Tensor memory a) internal pure returns (Tensor[] memory l) {
        l = new Tensor[](1);
        l[0] = a;
    }

    function list(Tensor memory a, Tensor memory b) internal pure returns (Tensor[] memory l) {
        l = new Tensor[](2);
        (l[0], l[1]) = (a, b);
    }

    function list(Tensor memory a, Tensor memory b, Tensor memory c) internal pure returns (Tensor[] memory l) {
        l = new Tensor[](3);
        (l[0], l[1], l[2]) = (a, b, c);
    }

    function list(Tensor memory a, Tensor memory b, Tensor memory c, Tensor memory d)
        internal
        pure
        returns (Tensor[] memory l)
    {
        l = new Tensor[](4);
        (l[0], l[1], l[2], l[3]) = (a, b, c, d);
    }

    function list(Tensor memory a, Tensor memory b, Tensor memory c, Tensor memory d, Tensor memory e)
        internal
        pure
        returns (Tensor[] memory l)
    {
        l = new Tensor[](5);
        (l[0], l[1], l[2], l[3], l[4]) = (a, b, c, d, e);
    }

    function ints() internal pure returns (int256[] memory) {
        return new int256[](0);
    }

    function ints(int256 a) internal pure returns (int256[] memory l) {
        l = new int256[](1);
        l[0] = a;
    }

    function ints(int256 a, int256 b) internal pure returns (int256[] memory l) {
        l = new int256[](2);
        (l[0], l[1]) = (a, b);
    }

    function ints(int256 a, int256 b, int256 c) internal pure returns (int256[] memory l) {
        l = new int256[](3);
        (l[0], l[1], l[2]) = (a, b, c);
    }

    function ints(int256 a, int256 b, int256 c, int256 d) internal pure returns (int256[] memory l) {
        l = new int256[](4);
        (l[0], l[1], l[2], l[3]) = (a, b, c, d);
    }

    // Canonical bytes and windows.

    /// @dev C-1 without the padding.
    function encode(Tensor memory t) internal pure returns (bytes memory data) {
        uint256 width = t.tensorType.width();
        data = new bytes(t.mantissas.length * width);
        for (uint256 i = 0; i < t.mantissas.length; ++i) {
            uint256 value = uint256(t.mantissas[i]);
            for (uint256 j = 0; j < width; ++j) {
                data[i * width + j] = bytes1(uint8(value >> (8 * j)));
            }
        }
    }

    /// @dev One window for each operand, its whole tensor.
    function wholeWindows(Tensor[] memory inputs) internal pure returns (Window[][] memory windows) {
        windows = new Window[][](inputs.length);
        for (uint256 i = 0; i < inputs.length; ++i) {
            windows[i] = new Window[](1);
            windows[i][0].data = encode(inputs[i]);
        }
    }

    /// @dev What the contract says to an operator of these operands.
    function recomputed(Operator memory op, Tensor[] memory inputs, uint256 element) internal returns (int256) {
        return verifier.recompute(op, uint64(element), context, scatteredWindows(inputs));
    }

    /// @dev For each operand some true slices of random bounds, then the tensor from a random leaf on and the
    /// tensor whole.
    function scatteredWindows(Tensor[] memory inputs) internal returns (Window[][] memory windows) {
        windows = new Window[][](inputs.length);
        for (uint256 i = 0; i < inputs.length; ++i) {
            bytes memory data = encode(inputs[i]);
            windows[i] = new Window[](pickUint(1, 4));
            for (uint256 j = 0; j + 1 < windows[i].length; ++j) {
                uint256 from = pickUint(0, data.length);
                windows[i][j] = Window({firstByte: uint64(from), data: slice(data, from, pickUint(from, data.length))});
            }
            windows[i][windows[i].length - 1].data = data;
        }
    }

    function slice(bytes memory data, uint256 from, uint256 to) internal pure returns (bytes memory part) {
        part = new bytes(to - from);
        for (uint256 i = 0; i < part.length; ++i) {
            part[i] = data[from + i];
        }
    }
}
