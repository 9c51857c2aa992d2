// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {TensorTypes} from "../../../contracts/libraries/encoding/TensorTypes.sol";
import {StepContext, TensorType} from "../../../contracts/types/Types.sol";
import {Slow} from "./Slow.sol";
import {Tensor} from "./VerifierTest.sol";

/// @title The rules that training adds, naively, as `Slow`
library SlowTraining {
    using TensorTypes for TensorType;

    /// @dev N-41 before the rescaling: of `count` gradients from `first`, those whose id is row `v` of `rows`.
    function gathered(int256[] memory g, uint256 first, uint256 count, int256[] memory ids, uint256 rows, uint256 v)
        internal
        pure
        returns (int256 sum)
    {
        for (uint256 t = 0; t < count; ++t) {
            int256 row = ids[t];
            if (row > int256(rows) - 1) row = int256(rows) - 1;
            if (row < 0) row = 0;
            if (row == int256(v)) sum += g[first + t];
        }
    }

    /// @dev N-45 before the rescaling: every head is asked whether it is of the element's group.
    function groupSum(Tensor memory a, uint256 groups, uint256 heads, uint256 width, uint256 i)
        internal
        pure
        returns (int256 sum)
    {
        uint256 t = i / (groups * width);
        for (uint256 h = 0; h < heads; ++h) {
            if (h * groups / heads != i % (groups * width) / width) continue;
            sum += a.mantissas[t * a.tensorType.row() + h * width + i % width];
        }
    }

    /// @dev `⌊√max(x, 0)⌋`.
    function rootOf(int256 x) internal pure returns (int256) {
        return x < 0 ? int256(0) : int256(Slow.root(uint256(x)));
    }

    /// @dev w of N-46 and N-48 for an element below 2^34.
    function word(StepContext memory context, uint256 i, uint32 stream, uint32 kind) internal pure returns (uint32) {
        uint32[2] memory key;
        for (uint256 k = 0; k < 8; ++k) {
            key[k / 4] |= uint32(uint8(context.jobKey[k])) << uint32(8 * (k % 4));
        }
        return Slow.philox(key, [uint32(i / 4), context.step, stream, kind])[i % 4];
    }
}
