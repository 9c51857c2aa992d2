// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {SlowTree} from "../verifier/SlowTree.sol";
import {SymbolicProofs} from "./SymbolicProofs.sol";

/// @notice Lists of up to eight digests: whatever the proof, what is accepted is the entry at that index.
/// @dev Proven for a hash without collisions, of which nothing else is known. Depths are walked to the limit of each
/// check; the library's loop is the same at every level.
contract MerkleListsSymbolic is SymbolicProofs {
    using SlowTree for bytes32[][];

    function check_acceptedIsTheEntry(
        uint8 count,
        uint8 index,
        bytes32[8] memory entries,
        bytes32 digest,
        bytes32[3] memory siblings
    ) public view {
        vm.assume(count >= 1 && count <= 8 && index < count);
        for (uint256 c = 1; c <= 8; ++c) {
            if (c == count) _acceptedIsTheEntry(c, index, entries, digest, siblings);
        }
    }

    function _acceptedIsTheEntry(
        uint256 count,
        uint256 index,
        bytes32[8] memory entries,
        bytes32 digest,
        bytes32[3] memory siblings
    ) private view {
        bytes32[][] memory tree = SlowTree.ofDigests(_first(entries, count));
        for (uint256 i = 0; i < count; ++i) {
            if (i != index) continue;
            if (harness.isMember(tree.rootOf(), digest, i, count, _first(siblings, tree.length - 1))) {
                assert(digest == entries[i]);
            }
            assert(harness.isMember(tree.rootOf(), entries[i], i, count, tree.path(i)));
        }
    }

    function testFuzz_acceptedIsTheEntry(
        uint8 count,
        uint8 index,
        bytes32[8] memory entries,
        bytes32[3] memory siblings
    ) public view {
        count = 1 + count % 8;
        check_acceptedIsTheEntry(count, index % count, entries, entries[index % 8], siblings);
    }

    /// @notice Of any list at all: no entry beyond its end, and no proof of another length than the count asks for.
    function check_lengthFollowsFromCount(
        bytes32 root,
        bytes32 digest,
        uint32 index,
        uint32 count,
        uint8 given,
        bytes32[3] memory siblings
    ) public view {
        vm.assume(given <= 3);
        // Below a bound that keeps the number of ways through the loop over levels small, and is beyond all
        // proofs given.
        vm.assume(count <= 64);
        for (uint256 n = 0; n <= 3; ++n) {
            if (n != given) continue;
            for (uint256 i = 0; i < 8; ++i) {
                if (i == index && harness.isMember(root, digest, i, count, _first(siblings, n))) {
                    assert(i < count && count <= 1 << n && (n == 0 || count > 1 << (n - 1)));
                }
            }
        }
    }

    function check_noEntryBeyondTheEnd(
        bytes32 root,
        bytes32 digest,
        uint256 index,
        uint256 count,
        bytes32[3] memory siblings
    ) public view {
        vm.assume(index >= count);
        for (uint256 n = 0; n <= 3; ++n) {
            assert(!harness.isMember(root, digest, index, count, _first(siblings, n)));
        }
    }

    function testFuzz_noEntryBeyondTheEnd(bytes32 root, bytes32 digest, uint256 index, uint256 count) public view {
        if (index < count) (index, count) = (count, index);
        bytes32[3] memory siblings;
        check_noEntryBeyondTheEnd(root, digest, index, count, siblings);
    }

    /// @notice A list is none of another depth: an inner node is no entry, nor is anything below an entry.
    function check_noOtherDepth(
        uint8 size,
        uint8 claimed,
        bytes32[8] memory entries,
        bytes32 digest,
        bytes32[3] memory siblings
    ) public view {
        vm.assume(size <= 3 && claimed <= 3 && size != claimed);
        for (uint256 s = 0; s <= 3; ++s) {
            if (s != size) continue;
            bytes32 root = SlowTree.ofDigests(_first(entries, 1 << s)).rootOf();
            for (uint256 c = 0; c <= 3; ++c) {
                if (c != claimed) continue;
                for (uint256 i = 0; i < 1 << c; ++i) {
                    assert(!harness.isMember(root, digest, i, 1 << c, _first(siblings, c)));
                }
            }
        }
    }

    function testFuzz_noOtherDepth(uint8 size, bytes32[8] memory entries, bytes32[3] memory siblings) public view {
        check_noOtherDepth(size % 4, (size % 4 + 1 + size / 4 % 3) % 4, entries, entries[0], siblings);
    }

    /// @notice A tensor's tree is no list, whatever its leaves.
    function check_noTensorIsAList(bytes32[8] memory leaves, bytes32 digest, bytes32[3] memory siblings) public view {
        for (uint256 depth = 0; depth <= 2; ++depth) {
            bytes32 root = SlowTree.ofLeaves(_leaves(leaves, 1 << depth)).rootOf();
            for (uint256 i = 0; i < 1 << depth; ++i) {
                assert(!harness.isMember(root, digest, i, 1 << depth, _first(siblings, depth)));
            }
        }
    }

    function testFuzz_noTensorIsAList(bytes32[8] memory leaves, bytes32 digest, bytes32[3] memory siblings)
        public
        view
    {
        check_noTensorIsAList(leaves, digest, siblings);
    }
}
