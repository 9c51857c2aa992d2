// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Operator, TensorType, Window} from "../../types/Types.sol";
import {FixedPoint} from "../arithmetic/FixedPoint.sol";
import {RowTails} from "../arithmetic/RowTails.sol";
import {TensorTypes} from "../encoding/TensorTypes.sol";
import {Operands} from "../operands/Operands.sol";
import {Strides} from "../operands/Strides.sol";

/// @title Sums of what flows back to a row of an embedding and to a group of heads (N-41, N-45)
library Gradients {
    using Operands for Operator;
    using Operands for Window[][];
    using Strides for Window[][];
    using TensorTypes for TensorType;

    /// @dev Most heads of a group: each is read from a place of its own.
    uint256 private constant MAX_SHARE = 128;

    /// @notice `rescale(Σ_t (i(t) = v ? g[k,t] : 0), shift)`, i(t) being `ids[t]` limited to the rows of the output.
    /// Operands g, ids. Reads row k of g and as many ids, each from one window.
    function gatherGrad(Operator calldata operator, uint256 element, Window[][] calldata windows)
        internal
        pure
        returns (int256)
    {
        operator.expectForm(2, 1);
        (TensorType g, TensorType y) = (operator.typeOf(0), operator.output);
        (uint256 tokens, uint256 width) = (g.row(), y.row());
        Operands.ensure(g.rank() == 2 && y.rank() == 2 && width == g.dim(0) && tokens <= Operands.MAX_REDUCTION);
        uint256[] memory those = _naming(operator, element / width, tokens, windows);
        uint256 position = windows.run(0, g, element % width * tokens, tokens);
        int256 sum = RowTails.sum(those, position, tokens, g.width());
        return FixedPoint.rescaleHalfEven(sum, operator.shift(0), y.bits());
    }

    /// @dev Those of the first `tokens` ids that name row `v` of the output: the first or last where they name none. As
    /// a bitmap of `RowTails`.
    function _naming(Operator calldata operator, uint256 v, uint256 tokens, Window[][] calldata windows)
        private
        pure
        returns (uint256[] memory those)
    {
        TensorType ids = operator.typeOf(1);
        (uint256 position, uint256 width) = (windows.run(1, ids, 0, tokens), ids.width());
        // SAFETY of the casts: a row is below 2^32.
        // forge-lint: disable-start(unsafe-typecast)
        those = RowTails.reaching(position, tokens, width, v == 0 ? type(int256).min : int256(v));
        // Whatever reaches the last row is its.
        if (v + 1 == operator.output.dim(0)) return those;
        uint256[] memory beyond = RowTails.reaching(position, tokens, width, int256(v + 1));
        // forge-lint: disable-end(unsafe-typecast)
        for (uint256 i = 0; i < those.length; ++i) {
            those[i] ^= beyond[i];
        }
    }

    /// @notice `rescale(Σ_h a[t, h·D + d], shift)` over the heads of group g for output element (t, g·D + d). Reads an
    /// element of each.
    function groupSum(Operator calldata operator, uint256 element, Window[][] calldata windows)
        internal
        pure
        returns (int256)
    {
        operator.expectForm(1, 2);
        (TensorType a, TensorType y) = (operator.typeOf(0), operator.output);
        (uint256 share, uint256 width) = _group(operator, a, y);
        uint256 column = element % y.row();
        uint256 place = element / y.row() * a.row() + column / width * share * width + column % width;
        return FixedPoint.rescaleHalfEven(windows.sum(0, a, place, width, share), operator.shift(1), y.bits());
    }

    /// @dev Heads of a in each group, and elements of one.
    function _group(Operator calldata operator, TensorType a, TensorType y)
        private
        pure
        returns (uint256 share, uint256 width)
    {
        (share, width) = operator.heads(a.row());
        uint256 kvHeads = y.row() / width;
        // INVARIANT: they are whole, there is one, and as many heads share each.
        Operands.ensure(kvHeads != 0 && kvHeads * width == y.row() && share % kvHeads == 0 && y.rows() == a.rows());
        share /= kvHeads;
        Operands.ensure(share <= MAX_SHARE);
    }
}
