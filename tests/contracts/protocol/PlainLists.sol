// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Delivery} from "../../../contracts/types/Custody.sol";
import {BoundaryLogs, ProgramHeader, TensorType} from "../../../contracts/types/Types.sol";
import {SlowTree} from "../verifier/SlowTree.sol";

/// @title States that nothing computed, programs that nothing runs, and logs of what nobody sent
/// @notice Each tensor has one leaf, and each list but a log one tensor, so there is one answer to any demand for a
/// part of it.
abstract contract PlainLists {
    using SlowTree for bytes32[][];

    /// @dev Entries of a log, one for each step of an interval.
    uint32 private constant _ENTRIES = 4;
    /// @dev A vector of 256 int8.
    TensorType private constant _TYPE = TensorType.wrap((8 << 248) | (1 << 224) | (256 << 96));

    function _stateAt(uint16 stage, uint32 interval) internal pure virtual returns (bytes32) {
        return _plainRoot(_stateLeaf(stage, interval));
    }

    function _programAt(uint16 stage) internal pure virtual returns (ProgramHeader memory program) {
        (program.operatorCount, program.constantCount, program.stateCount) = (1, 1, 1);
        (program.microBatches, program.edges) = (1, 15);
        program.operators = keccak256(abi.encode("operators", stage));
        program.constants = _plainRoot(_constantLeaf(stage));
        program.wiring = keccak256(abi.encode("wiring", stage));
    }

    function _stateLeaf(uint16 stage, uint32 interval) internal pure returns (bytes memory) {
        return _plainLeaf(keccak256(abi.encode("state", stage, interval)));
    }

    function _constantLeaf(uint16 stage) internal pure returns (bytes memory) {
        return _plainLeaf(keccak256(abi.encode("constant", stage)));
    }

    function _sentLeaf(uint16 stage, uint32 interval, bool toNext, uint32 entry) internal pure returns (bytes memory) {
        return _plainLeaf(keccak256(abi.encode("sent", stage, interval, toNext, entry)));
    }

    /// @dev What was received nobody asks for.
    function _plainLogs(uint16 stage, uint32 interval) internal pure returns (BoundaryLogs memory logs) {
        logs.fromPrevious = keccak256(abi.encode("from the previous", stage, interval));
        logs.toPrevious = _sentTree(stage, interval, false).rootOf();
        logs.fromNext = keccak256(abi.encode("from the next", stage, interval));
        logs.toNext = _sentTree(stage, interval, true).rootOf();
    }

    function _plainSent(uint16 stage, uint32 interval, bool toNext, uint32 entry)
        internal
        pure
        returns (Delivery memory delivery)
    {
        delivery = _plainDelivery(_sentLeaf(stage, interval, toNext, entry));
        delivery.membership = _sentTree(stage, interval, toNext).path(entry);
    }

    function _sentTree(uint16 stage, uint32 interval, bool toNext) private pure returns (bytes32[][] memory) {
        bytes32[] memory digests = new bytes32[](_ENTRIES);
        for (uint32 i = 0; i < _ENTRIES; ++i) {
            digests[i] = _plainDigest(_sentLeaf(stage, interval, toNext, i));
        }
        return SlowTree.ofDigests(digests);
    }

    function _plainLeaf(bytes32 word) private pure returns (bytes memory) {
        return abi.encode(word, ~word, word, ~word, word, ~word, word, ~word);
    }

    function _plainDelivery(bytes memory leaf) internal pure returns (Delivery memory delivery) {
        (delivery.tensorType, delivery.dataRoot) = (_TYPE, _dataRoot(leaf));
        delivery.range.leaves = leaf;
    }

    function _plainRoot(bytes memory leaf) private pure returns (bytes32) {
        bytes32[] memory digests = new bytes32[](1);
        digests[0] = _plainDigest(leaf);
        return SlowTree.ofDigests(digests).rootOf();
    }

    function _plainDigest(bytes memory leaf) private pure returns (bytes32) {
        return keccak256(abi.encodePacked(hex"02", TensorType.unwrap(_TYPE), _dataRoot(leaf)));
    }

    function _dataRoot(bytes memory leaf) private pure returns (bytes32) {
        return keccak256(bytes.concat(hex"00", leaf));
    }
}
