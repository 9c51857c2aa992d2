// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

/// @title Commitment trees built whole, from rules C-2 to C-4 of `agents/proof/SPEC.md`
/// @notice Level by level over arrays; level 0 holds the leaf hashes with their padding.
library SlowTree {
    function ofLeaves(bytes[] memory leaves) internal pure returns (bytes32[][] memory) {
        bytes32[] memory hashes = new bytes32[](leaves.length);
        for (uint256 i = 0; i < leaves.length; ++i) {
            hashes[i] = keccak256(bytes.concat(hex"00", leaves[i]));
        }
        return _build(hashes);
    }

    function ofDigests(bytes32[] memory digests) internal pure returns (bytes32[][] memory) {
        bytes32[] memory hashes = new bytes32[](digests.length);
        for (uint256 i = 0; i < digests.length; ++i) {
            hashes[i] = keccak256(bytes.concat(hex"03", digests[i]));
        }
        return _build(hashes);
    }

    function rootOf(bytes32[][] memory levels) internal pure returns (bytes32) {
        return levels[levels.length - 1][0];
    }

    /// @dev Siblings of leaf `index`, from the leaf up.
    function path(bytes32[][] memory levels, uint256 index) internal pure returns (bytes32[] memory siblings) {
        siblings = new bytes32[](levels.length - 1);
        for (uint256 i = 0; i + 1 < levels.length; ++i) {
            siblings[i] = levels[i][index % 2 == 0 ? index + 1 : index - 1];
            index /= 2;
        }
    }

    /// @dev Siblings of leaves `[first, first + count)` in the order of C-3.
    function rangePath(bytes32[][] memory levels, uint256 first, uint256 count)
        internal
        pure
        returns (bytes32[] memory siblings)
    {
        bytes32[] memory found = new bytes32[](2 * levels.length);
        uint256 used = 0;
        uint256 last = first + count - 1;
        for (uint256 i = 0; i + 1 < levels.length; ++i) {
            if (first % 2 == 1) found[used++] = levels[i][first - 1];
            if (last % 2 == 0) found[used++] = levels[i][last + 1];
            first /= 2;
            last /= 2;
        }
        siblings = new bytes32[](used);
        for (uint256 i = 0; i < used; ++i) {
            siblings[i] = found[i];
        }
    }

    function _build(bytes32[] memory hashes) private pure returns (bytes32[][] memory levels) {
        uint256 size = 1;
        uint256 depth = 0;
        while (size < hashes.length) {
            size *= 2;
            depth += 1;
        }
        levels = new bytes32[][](depth + 1);
        levels[0] = new bytes32[](size);
        for (uint256 i = 0; i < hashes.length; ++i) {
            levels[0][i] = hashes[i];
        }
        for (uint256 level = 1; level <= depth; ++level) {
            levels[level] = new bytes32[](levels[level - 1].length / 2);
            for (uint256 i = 0; i < levels[level].length; ++i) {
                levels[level][i] =
                    keccak256(bytes.concat(hex"01", levels[level - 1][2 * i], levels[level - 1][2 * i + 1]));
            }
        }
    }
}
