// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IStepVerifier} from "../../../contracts/interfaces/IStepVerifier.sol";
import {TensorTypes} from "../../../contracts/libraries/encoding/TensorTypes.sol";
import {Opcodes} from "../../../contracts/libraries/operators/Opcodes.sol";
import {Operator, TensorType, Window} from "../../../contracts/types/Types.sol";
import {GoodOperators} from "./GoodOperators.sol";
import {Tensor} from "./VerifierTest.sol";

/// @title What tests of an operator ask: whether it is refused, and what its dearest element costs
abstract contract OperatorTest is GoodOperators {
    using TensorTypes for TensorType;

    /// @dev Gas. No element of one row costs more; the largest is the place of the largest in 32 KiB of int64.
    uint256 internal constant LIMIT = 560_000;
    /// @dev Nor one of two rows; the largest is the weight of a tail, both rows of int64.
    uint256 private constant LIMIT_OF_TAILS = 650_000;

    function refuses(Operator memory op, Window[][] memory windows) internal {
        vm.expectRevert(IStepVerifier.MalformedOperator.selector);
        verifier.recompute(op, 0, context, windows);
    }

    function refusesAttribute(uint8 opcode, uint256 attribute, int64 value) internal {
        (Operator memory op, Tensor[] memory inputs) = good(opcode);
        op.attributes[attribute] = value;
        refuses(op, wholeWindows(inputs));
    }

    /// @dev Both ends of an attribute's range pass, their neighbours do not.
    function range(uint8 opcode, uint256 attribute, int64 low, int64 high) internal {
        (Operator memory op, Tensor[] memory inputs) = good(opcode);
        Window[][] memory windows = wholeWindows(inputs);
        op.attributes[attribute] = low;
        verifier.recompute(op, 0, context, windows);
        op.attributes[attribute] = high;
        verifier.recompute(op, 0, context, windows);
        int64[4] memory refused = [low - 1, high + 1, type(int64).min, type(int64).max];
        for (uint256 i = 0; i < refused.length; ++i) {
            op.attributes[attribute] = refused[i];
            refuses(op, windows);
        }
    }

    /// @dev Operand `place`, or the output for 9, takes a type that does not go with the rest.
    function swap(uint8 opcode, uint256 place, TensorType tensorType) internal {
        (Operator memory op, Tensor[] memory inputs) = good(opcode);
        if (place == 9) op.output = tensorType;
        else op.operands[place].tensorType = tensorType;
        assertTrue(tensorType.isValid());
        refuses(op, wholeWindows(inputs));
    }

    /// @dev Gas of the last element, compared with `snapshots`. Execution only, without the transaction's calldata.
    function measure(
        string memory name,
        uint8 opcode,
        TensorType output,
        Tensor[] memory inputs,
        int256[] memory attributes
    ) internal returns (uint256 gas) {
        Operator memory op = operatorOf(opcode, output, inputs, attributes);
        Window[][] memory windows = wholeWindows(inputs);
        verifier.recompute(op, uint64(output.elements() - 1), context, windows);
        gas = vm.snapshotGasLastCall("StepVerifier", name);
        assertLt(gas, opcode == Opcodes.TAIL_SUM ? LIMIT_OF_TAILS : LIMIT);
    }

    /// @dev Mantissas at alternating extremes.
    function extremes(TensorType tensorType) internal pure returns (Tensor memory t) {
        t.tensorType = tensorType;
        t.mantissas = new int256[](tensorType.elements());
        for (uint256 i = 0; i < t.mantissas.length; ++i) {
            t.mantissas[i] = i % 2 == 0 ? tensorType.limit() : -tensorType.limit();
        }
    }
}
