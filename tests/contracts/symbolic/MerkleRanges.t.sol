// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Merkle} from "../../../contracts/libraries/proofs/Merkle.sol";
import {TensorType} from "../../../contracts/types/Types.sol";
import {SlowTree} from "../verifier/SlowTree.sol";
import {SymbolicProofs} from "./SymbolicProofs.sol";

/// @notice Tensors of up to five leaves: whatever the proof, a range that is accepted is the tensor's there.
contract MerkleRangesSymbolic is SymbolicProofs {
    using SlowTree for bytes32[][];

    uint256 private constant MOST = 5;

    /// @param claimed the leaves that the range is said to hold. They and the tensor's differ in any of 256 bits each.
    function check_acceptedIsTheRange(
        uint8 count,
        uint8 first,
        uint8 length,
        bytes32[8] memory leaves,
        bytes32[8] memory claimed,
        bytes32[3] memory siblings
    ) public view {
        vm.assume(count >= 1 && count <= MOST && first < count && length >= 1 && length <= count - first);
        for (uint256 c = 1; c <= MOST; ++c) {
            if (c != count) continue;
            for (uint256 f = 0; f < c; ++f) {
                if (f != first) continue;
                for (uint256 n = 1; n <= c - f; ++n) {
                    if (n == length) _acceptedIsTheRange(c, f, n, leaves, claimed, siblings);
                }
            }
        }
    }

    function _acceptedIsTheRange(
        uint256 count,
        uint256 first,
        uint256 length,
        bytes32[8] memory leaves,
        bytes32[8] memory claimed,
        bytes32[3] memory siblings
    ) private view {
        bytes32[][] memory tree = SlowTree.ofLeaves(_leaves(leaves, count));
        bytes32[] memory path = tree.rangePath(first, length);
        bytes memory data = _range(claimed, 0, length);
        // As many siblings as fit, and each other number, which must be refused.
        for (uint256 given = 0; given <= 3; ++given) {
            bool accepted = harness.isRange(tree.rootOf(), count, first, data, _first(siblings, given));
            if (!accepted) continue;
            assert(given == path.length);
            for (uint256 i = 0; i < length; ++i) {
                assert(claimed[i] == leaves[first + i]);
            }
        }
        assert(harness.isRange(tree.rootOf(), count, first, _range(leaves, first, length), path));
    }

    function testFuzz_acceptedIsTheRange(
        uint8 count,
        uint8 first,
        uint8 length,
        bytes32[8] memory leaves,
        bytes32[3] memory siblings
    ) public view {
        count = 1 + count % uint8(MOST);
        first = first % count;
        check_acceptedIsTheRange(count, first, 1 + length % (count - first), leaves, leaves, siblings);
    }

    /// @notice No range begins or ends beyond the tensor, however large the tensor is said to be.
    function check_endsWithinTheTensor(bytes32 root, uint256 count, uint256 first, bytes32[8] memory leaves)
        public
        view
    {
        for (uint256 n = 1; n <= 3; ++n) {
            if (first < count && count - first >= n) continue;
            assert(!harness.isRange(root, count, first, _range(leaves, 0, n), new bytes32[](0)));
        }
    }

    /// @notice A tensor's root names its type and its data.
    function check_tensorRootBinds(uint256 word, bytes32 root, uint256 otherWord, bytes32 otherRoot) public pure {
        bytes32 a = Merkle.tensorRoot(TensorType.wrap(word), root);
        bytes32 b = Merkle.tensorRoot(TensorType.wrap(otherWord), otherRoot);
        assert((a == b) == (word == otherWord && root == otherRoot));
    }

    function testFuzz_tensorRootBinds(uint256 word, bytes32 root, uint256 otherWord) public pure {
        check_tensorRootBinds(word, root, otherWord, root);
    }

    function _range(bytes32[8] memory leaves, uint256 first, uint256 length) private pure returns (bytes memory data) {
        for (uint256 i = first; i < first + length; ++i) {
            data = bytes.concat(data, _leaf(leaves[i]));
        }
    }
}
