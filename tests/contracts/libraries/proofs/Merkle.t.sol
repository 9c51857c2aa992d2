// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Merkle} from "../../../../contracts/libraries/proofs/Merkle.sol";
import {TensorType} from "../../../../contracts/types/Types.sol";
import {SlowTree} from "../../verifier/SlowTree.sol";
import {Test} from "forge-std/Test.sol";

contract MerkleHarness {
    function isMember(bytes32 root, bytes32 digest, uint256 index, uint256 count, bytes32[] calldata siblings)
        external
        pure
        returns (bool)
    {
        return Merkle.isMember(root, digest, index, count, siblings);
    }

    function isRange(bytes32 root, uint256 count, uint256 first, bytes calldata leaves, bytes32[] calldata siblings)
        external
        pure
        returns (bool)
    {
        return Merkle.isRange(root, count, first, leaves, siblings);
    }

    /// @dev `isRange` where other hashing has left its bytes beyond the free memory pointer.
    function isRangeInUsedMemory(
        bytes32 root,
        uint256 count,
        uint256 first,
        bytes calldata leaves,
        bytes32[] calldata siblings
    ) external pure returns (bool) {
        bytes32 other = Merkle.tensorRoot(TensorType.wrap(type(uint256).max), bytes32(type(uint256).max));
        return other != root && Merkle.isRange(root, count, first, leaves, siblings);
    }
}

/// @notice True proofs of every shape pass; every forged one fails.
contract MerkleTest is Test {
    using SlowTree for bytes32[][];

    MerkleHarness private harness = new MerkleHarness();

    function _digests(uint256 count) private pure returns (bytes32[] memory digests) {
        digests = new bytes32[](count);
        for (uint256 i = 0; i < count; ++i) {
            digests[i] = keccak256(abi.encode("digest", i));
        }
    }

    function _leaves(uint256 count) private pure returns (bytes[] memory leaves) {
        leaves = new bytes[](count);
        for (uint256 i = 0; i < count; ++i) {
            bytes32 noise = keccak256(abi.encode("leaf", i));
            leaves[i] = bytes.concat(noise, noise, noise, noise, noise, noise, noise, bytes32(i));
        }
    }

    function _concat(bytes[] memory leaves, uint256 first, uint256 count) private pure returns (bytes memory data) {
        for (uint256 i = first; i < first + count; ++i) {
            data = bytes.concat(data, leaves[i]);
        }
    }

    function _resized(bytes32[] memory siblings, uint256 length) private pure returns (bytes32[] memory other) {
        other = new bytes32[](length);
        for (uint256 i = 0; i < length && i < siblings.length; ++i) {
            other[i] = siblings[i];
        }
    }

    function test_depth() public pure {
        uint256[9] memory counts = [uint256(0), 1, 2, 3, 4, 5, 8, 9, 2 ** 32];
        uint256[9] memory depths = [uint256(0), 0, 1, 2, 2, 3, 3, 4, 32];
        for (uint256 i = 0; i < counts.length; ++i) {
            assertEq(Merkle.depth(counts[i]), depths[i]);
        }
        assertEq(Merkle.depth(type(uint256).max), 256);
    }

    function test_tensorRoot() public pure {
        TensorType word = TensorType.wrap(uint256(keccak256("type")));
        bytes32 root = keccak256("root");
        assertEq(Merkle.tensorRoot(word, root), keccak256(abi.encodePacked(hex"02", TensorType.unwrap(word), root)));
    }

    // Lists.

    function test_everyMemberOfEveryList() public view {
        for (uint256 count = 1; count <= 17; ++count) {
            bytes32[] memory digests = _digests(count);
            bytes32[][] memory tree = SlowTree.ofDigests(digests);
            for (uint256 i = 0; i < count; ++i) {
                assertTrue(harness.isMember(tree.rootOf(), digests[i], i, count, tree.path(i)));
                // At no other index, under no other digest.
                for (uint256 j = 0; j < count + 3; ++j) {
                    if (j != i) assertFalse(harness.isMember(tree.rootOf(), digests[i], j, count, tree.path(i)));
                }
                assertFalse(harness.isMember(tree.rootOf(), keccak256("other"), i, count, tree.path(i)));
            }
        }
    }

    function test_emptyListHasNoMembers() public view {
        assertFalse(harness.isMember(0, 0, 0, 0, new bytes32[](0)));
    }

    /// @notice Index aliasing: an index that agrees in its low bits only.
    function testFuzz_aliasedIndexFails(uint256 alias_, uint256 count) public view {
        count = bound(count, 1, 20);
        bytes32[][] memory tree = SlowTree.ofDigests(_digests(count));
        for (uint256 i = 0; i < count; ++i) {
            uint256 index = (alias_ << (tree.length - 1)) | i;
            assertEq(harness.isMember(tree.rootOf(), _digests(count)[i], index, count, tree.path(i)), index == i);
        }
    }

    /// @notice Padding is no entry, though the tree holds it: neither as digest zero nor at an index beyond the count.
    function test_paddingIsNoMember() public view {
        bytes32[][] memory tree = SlowTree.ofDigests(_digests(5));
        for (uint256 i = 5; i < 8; ++i) {
            assertFalse(harness.isMember(tree.rootOf(), 0, i, 5, tree.path(i)));
            assertFalse(harness.isMember(tree.rootOf(), 0, i, 8, tree.path(i)));
        }
    }

    function testFuzz_wrongLengthFails(uint256 count, uint256 length) public view {
        count = bound(count, 1, 20);
        bytes32[] memory digests = _digests(count);
        bytes32[][] memory tree = SlowTree.ofDigests(digests);
        length = bound(length, 0, 8);
        bytes32[] memory siblings = _resized(tree.path(count - 1), length);
        bool whole = length == tree.length - 1;
        assertEq(harness.isMember(tree.rootOf(), digests[count - 1], count - 1, count, siblings), whole);
    }

    /// @notice The count fixes the depth: the path of a deeper or shallower list proves nothing.
    function test_wrongCountFails() public view {
        bytes32[] memory digests = _digests(8);
        bytes32[][] memory tree = SlowTree.ofDigests(digests);
        for (uint256 count = 1; count <= 40; ++count) {
            bool right = count > 4 && count <= 8;
            assertEq(harness.isMember(tree.rootOf(), digests[0], 0, count, tree.path(0)), right);
        }
    }

    /// @notice Second preimage: an inner node passed as an entry of a shorter list, or its children as one digest.
    function test_innerNodeIsNoMember() public view {
        bytes32[][] memory tree = SlowTree.ofDigests(_digests(8));
        bytes32[] memory short = _resized(tree.path(0), 2);
        (short[0], short[1]) = (tree[1][1], tree[2][1]);
        // The path of node (1, 0) is right as a path: only the leaf's domain stops it.
        assertEq(_fold(tree[1][0], short), tree.rootOf());
        assertFalse(harness.isMember(tree.rootOf(), tree[1][0], 0, 4, short));
        assertFalse(harness.isMember(tree.rootOf(), tree.rootOf(), 0, 1, new bytes32[](0)));
    }

    /// @notice A leaf hash of a tensor's tree is no entry of a list, and the other way round.
    function test_treesOfOtherKindsDoNotMix() public view {
        bytes[] memory leaves = _leaves(4);
        bytes32[][] memory tree = SlowTree.ofLeaves(leaves);
        assertFalse(harness.isMember(tree.rootOf(), tree[0][0], 0, 4, tree.path(0)));
        assertFalse(harness.isMember(tree.rootOf(), keccak256(leaves[0]), 0, 4, tree.path(0)));
        bytes32[][] memory listTree = SlowTree.ofDigests(_digests(4));
        assertFalse(harness.isRange(listTree.rootOf(), 4, 0, leaves[0], listTree.path(0)));
    }

    function _fold(bytes32 node, bytes32[] memory siblings) private pure returns (bytes32) {
        for (uint256 i = 0; i < siblings.length; ++i) {
            node = keccak256(bytes.concat(hex"01", node, siblings[i]));
        }
        return node;
    }

    // Ranges.

    function test_everyRangeOfEveryTree() public view {
        for (uint256 count = 1; count <= 11; ++count) {
            bytes[] memory leaves = _leaves(count);
            bytes32[][] memory tree = SlowTree.ofLeaves(leaves);
            for (uint256 first = 0; first < count; ++first) {
                for (uint256 length = 1; first + length <= count; ++length) {
                    bytes memory data = _concat(leaves, first, length);
                    assertTrue(harness.isRange(tree.rootOf(), count, first, data, tree.rangePath(first, length)));
                }
            }
        }
    }

    function testFuzz_longRange(uint256 count, uint256 first, uint256 length) public view {
        count = bound(count, 1, 70);
        first = bound(first, 0, count - 1);
        length = bound(length, 1, count - first);
        bytes[] memory leaves = _leaves(count);
        bytes32[][] memory tree = SlowTree.ofLeaves(leaves);
        bytes memory data = _concat(leaves, first, length);
        assertTrue(harness.isRange(tree.rootOf(), count, first, data, tree.rangePath(first, length)));
    }

    function test_hashingInUsedMemory() public view {
        bytes[] memory leaves = _leaves(6);
        bytes32[][] memory tree = SlowTree.ofLeaves(leaves);
        for (uint256 length = 1; length < 6; ++length) {
            bytes memory data = _concat(leaves, 1, length);
            assertTrue(harness.isRangeInUsedMemory(tree.rootOf(), 6, 1, data, tree.rangePath(1, length)));
        }
    }

    /// @notice One changed byte of leaves or siblings, or another place, is refused.
    function testFuzz_tamperedRangeFails(uint256 first, uint256 length, uint256 where, uint8 flip) public view {
        vm.assume(flip != 0);
        first = bound(first, 0, 12);
        length = bound(length, 1, 13 - first);
        bytes[] memory leaves = _leaves(13);
        bytes32[][] memory tree = SlowTree.ofLeaves(leaves);
        bytes memory data = _concat(leaves, first, length);
        bytes32[] memory siblings = tree.rangePath(first, length);

        where = where % (data.length + 32 * siblings.length);
        if (where < data.length) {
            data[where] ^= bytes1(flip);
        } else {
            where -= data.length;
            siblings[where / 32] ^= bytes32(uint256(flip)) << (8 * (where % 32));
        }
        assertFalse(harness.isRange(tree.rootOf(), 13, first, data, siblings));
    }

    function testFuzz_otherPlaceFails(uint256 first, uint256 length, uint256 claimed) public view {
        first = bound(first, 0, 12);
        length = bound(length, 1, 13 - first);
        vm.assume(claimed != first);
        if (claimed % 2 == 0) claimed = claimed % 20;
        vm.assume(claimed != first);
        bytes[] memory leaves = _leaves(13);
        bytes32[][] memory tree = SlowTree.ofLeaves(leaves);
        bytes memory data = _concat(leaves, first, length);
        assertFalse(harness.isRange(tree.rootOf(), 13, claimed, data, tree.rangePath(first, length)));
    }

    function testFuzz_siblingsMissingOrLeftOverFail(uint256 first, uint256 length, uint256 given) public view {
        first = bound(first, 0, 12);
        length = bound(length, 1, 13 - first);
        bytes[] memory leaves = _leaves(13);
        bytes32[][] memory tree = SlowTree.ofLeaves(leaves);
        bytes32[] memory siblings = tree.rangePath(first, length);
        given = bound(given, 0, siblings.length + 3);
        bytes memory data = _concat(leaves, first, length);
        bool whole = given == siblings.length;
        assertEq(harness.isRange(tree.rootOf(), 13, first, data, _resized(siblings, given)), whole);
    }

    /// @notice A tree cannot be taken for a shallower or deeper one: the type's leaf count fixes the depth.
    function test_wrongDepthFails() public view {
        bytes[] memory leaves = _leaves(8);
        bytes32[][] memory tree = SlowTree.ofLeaves(leaves);
        for (uint256 count = 1; count <= 40; ++count) {
            bool right = count > 4 && count <= 8;
            assertEq(harness.isRange(tree.rootOf(), count, 0, leaves[0], tree.path(0)), right);
        }
    }

    /// @notice Only whole leaves count: 64 bytes of two child nodes are no leaf, nor is the empty range a proof
    /// of anything.
    function test_partialLeavesFail() public view {
        bytes[] memory leaves = _leaves(4);
        bytes32[][] memory tree = SlowTree.ofLeaves(leaves);
        bytes32[] memory none = new bytes32[](0);
        assertFalse(harness.isRange(tree.rootOf(), 1, 0, bytes.concat(tree[1][0], tree[1][1]), none));
        assertFalse(harness.isRange(tree.rootOf(), 4, 0, "", none));
        assertFalse(harness.isRange(0, 1, 0, "", none));
        bytes memory data = _concat(leaves, 0, 4);
        assertTrue(harness.isRange(tree.rootOf(), 4, 0, data, none));
        assertFalse(harness.isRange(tree.rootOf(), 4, 0, bytes.concat(data, hex"00"), none));
        assertFalse(harness.isRange(tree.rootOf(), 4, 0, bytes.concat(data, leaves[0]), none));
    }

    /// @notice A range may not run past the tensor's end into padding.
    function test_rangeIntoPaddingFails() public view {
        bytes[] memory leaves = _leaves(5);
        bytes32[][] memory tree = SlowTree.ofLeaves(leaves);
        bytes memory data = bytes.concat(leaves[4], new bytes(256));
        assertFalse(harness.isRange(tree.rootOf(), 5, 4, data, tree.rangePath(4, 2)));
        assertFalse(harness.isRange(tree.rootOf(), 5, 5, new bytes(256), tree.rangePath(5, 1)));
        assertFalse(harness.isRange(tree.rootOf(), 5, type(uint256).max, leaves[0], tree.rangePath(0, 1)));
    }

    /// @notice A range may not run past the tree, where its last nodes would never reach the root: not with whatever
    /// siblings its made-up levels ask for.
    function test_rangeBeyondTheTreeFails() public view {
        bytes[] memory leaves = _leaves(4);
        bytes32[][] memory tree = SlowTree.ofLeaves(leaves);
        bytes memory data = _concat(leaves, 0, 4);
        for (uint256 extra = 1; extra <= 8; ++extra) {
            data = bytes.concat(data, leaves[extra % 4]);
            for (uint256 given = 0; given <= 4; ++given) {
                assertFalse(harness.isRange(tree.rootOf(), 4, 0, data, new bytes32[](given)));
            }
        }
        // A tensor of one leaf is its own root.
        bytes[] memory one = _leaves(1);
        bytes memory two = bytes.concat(one[0], one[0]);
        assertFalse(harness.isRange(SlowTree.ofLeaves(one).rootOf(), 1, 0, two, new bytes32[](0)));
    }
}
