// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {MerkleHarness} from "../libraries/proofs/Merkle.t.sol";
import {Test} from "forge-std/Test.sol";

/// @title Unknown proofs
/// @notice A solver gives arrays of fixed length; proofs are arrays of any. Their parts are cut out here.
abstract contract SymbolicProofs is Test {
    MerkleHarness internal harness = new MerkleHarness();

    function _first(bytes32[8] memory all, uint256 count) internal pure returns (bytes32[] memory some) {
        some = new bytes32[](count);
        for (uint256 i = 0; i < count; ++i) {
            some[i] = all[i];
        }
    }

    function _first(bytes32[3] memory all, uint256 count) internal pure returns (bytes32[] memory some) {
        some = new bytes32[](count);
        for (uint256 i = 0; i < count; ++i) {
            some[i] = all[i];
        }
    }

    /// @dev Leaf i is the 256 bytes of word i, eight times, each time with another number added.
    function _leaves(bytes32[8] memory words, uint256 count) internal pure returns (bytes[] memory leaves) {
        leaves = new bytes[](count);
        for (uint256 i = 0; i < count; ++i) {
            leaves[i] = _leaf(words[i]);
        }
    }

    function _leaf(bytes32 word) internal pure returns (bytes memory) {
        return bytes.concat(word, word, word, word, ~word, word, word, word);
    }
}
