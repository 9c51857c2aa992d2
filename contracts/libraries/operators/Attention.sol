// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Operator, TensorType, Window} from "../../types/Types.sol";
import {FixedPoint} from "../arithmetic/FixedPoint.sol";
import {TensorTypes} from "../encoding/TensorTypes.sol";
import {Operands} from "../operands/Operands.sol";
import {RowProducts} from "../operands/RowProducts.sol";

/// @title The two products of attention, head by head (N-26, N-27)
/// @dev Several heads may share a head of keys and values: head h of H uses head ⌊h·G/H⌋ of G.
library Attention {
    using Operands for Operator;
    using Operands for Window[][];
    using TensorTypes for TensorType;

    /// @dev `heads · width` elements of queries go with `kvHeads · width` of keys or values.
    struct Heads {
        uint256 heads;
        uint256 kvHeads;
        uint256 width;
    }

    /// @notice `rescale(Σ_d q[t, h·D + d]·k[s, ⌊h·G/H⌋·D + d], shift)` for output element (h, t, s). Reads D elements
    /// of row t of q and D of row s of k, each from one window.
    function headScores(Operator calldata operator, uint256 element, Window[][] calldata windows)
        internal
        pure
        returns (int256)
    {
        operator.expectForm(2, 2);
        (TensorType q, TensorType k, TensorType y) = (operator.typeOf(0), operator.typeOf(1), operator.output);
        Operands.ensure(q.rank() == 2 && k.rank() == 2 && y.rank() == 3);
        Heads memory h = _heads(operator, q.row(), k.row());
        Operands.ensure(y.dim(0) == h.heads && y.dim(1) == q.dim(0) && y.dim(2) == k.dim(0));
        RowProducts.expect(q, k, h.width);

        uint256 head = element / (y.dim(1) * y.dim(2));
        uint256 i = element / y.dim(2) % y.dim(1) * q.row() + head * h.width;
        uint256 j = element % y.dim(2) * k.row() + _kvHead(h, head) * h.width;
        return _product(operator, windows, i, j, h.width);
    }

    /// @notice `rescale(Σ_s p[h,t,s]·v[⌊h·G/H⌋·D + d, s], shift)` for output element (t, h·D + d). Reads row (h, t) of
    /// p and a row of v, each from one window.
    function headMix(Operator calldata operator, uint256 element, Window[][] calldata windows)
        internal
        pure
        returns (int256)
    {
        operator.expectForm(2, 2);
        (TensorType p, TensorType v, TensorType y) = (operator.typeOf(0), operator.typeOf(1), operator.output);
        Operands.ensure(p.rank() == 3 && v.rank() == 2 && y.rank() == 2);
        Heads memory h = _heads(operator, y.row(), v.dim(0));
        Operands.ensure(p.dim(0) == h.heads && p.dim(1) == y.dim(0) && p.dim(2) == v.dim(1));
        uint256 length = v.row();
        RowProducts.expect(p, v, length);

        uint256 column = element % y.row();
        uint256 head = column / h.width;
        uint256 i = (head * p.dim(1) + element / y.row()) * length;
        uint256 j = (_kvHead(h, head) * h.width + column % h.width) * length;
        return _product(operator, windows, i, j, length);
    }

    function _product(Operator calldata operator, Window[][] calldata windows, uint256 i, uint256 j, uint256 length)
        private
        pure
        returns (int256)
    {
        int256 sum = RowProducts.sum(operator, windows, i, j, length);
        return FixedPoint.rescaleHalfEven(sum, operator.shift(1), operator.output.bits());
    }

    /// @dev The heads of `queries` elements and those of `keys`.
    function _heads(Operator calldata operator, uint256 queries, uint256 keys) private pure returns (Heads memory h) {
        (h.heads, h.width) = operator.heads(queries);
        h.kvHeads = keys / h.width;
        // INVARIANT: the latter are whole, there is one, and as many heads share each.
        Operands.ensure(h.kvHeads * h.width == keys && h.heads % h.kvHeads == 0);
    }

    function _kvHead(Heads memory h, uint256 head) private pure returns (uint256) {
        return head * h.kvHeads / h.heads;
    }
}
