// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {TensorTypes} from "../../../contracts/libraries/encoding/TensorTypes.sol";
import {Operator, TensorType, Window} from "../../../contracts/types/Types.sol";
import {Tensor, VerifierTest} from "./VerifierTest.sol";

/// @title Operators on tensors small enough to work out by hand, every element of the output
abstract contract ByHand is VerifierTest {
    using TensorTypes for TensorType;

    function tensorOf(TensorType tensorType, int256[] memory mantissas) internal pure returns (Tensor memory) {
        assertEq(mantissas.length, tensorType.elements());
        return Tensor(tensorType, mantissas);
    }

    function check(
        uint8 opcode,
        TensorType output,
        Tensor[] memory inputs,
        int256[] memory attributes,
        int256[] memory expected
    ) internal view {
        Operator memory op = operatorOf(opcode, output, inputs, attributes);
        Window[][] memory windows = wholeWindows(inputs);
        assertEq(expected.length, output.elements());
        for (uint256 i = 0; i < expected.length; ++i) {
            assertEq(verifier.recompute(op, uint64(i), context, windows), expected[i]);
        }
    }

    function six(int256[6] memory values) internal pure returns (int256[] memory l) {
        l = new int256[](6);
        for (uint256 i = 0; i < 6; ++i) {
            l[i] = values[i];
        }
    }
}
