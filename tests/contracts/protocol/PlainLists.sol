// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Delivery} from "../../../contracts/types/Custody.sol";
import {ProgramHeader, TensorType} from "../../../contracts/types/Types.sol";
import {SlowTree} from "../verifier/SlowTree.sol";

/// @title States that nothing computed, and programs that nothing runs
/// @notice Each list has one tensor of one leaf, so there is one answer to any demand for a part of it.
abstract contract PlainLists {
    using SlowTree for bytes32[][];

    /// @dev A vector of 256 int8.
    TensorType private constant _TYPE = TensorType.wrap((8 << 248) | (1 << 224) | (256 << 96));

    function _stateAt(uint16 stage, uint32 interval) internal pure virtual returns (bytes32) {
        return _plainRoot(_stateLeaf(stage, interval));
    }

    function _programAt(uint16 stage) internal pure virtual returns (ProgramHeader memory program) {
        (program.operatorCount, program.constantCount, program.stateCount) = (1, 1, 1);
        program.microBatches = 1;
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

    function _plainLeaf(bytes32 word) private pure returns (bytes memory) {
        return abi.encode(word, ~word, word, ~word, word, ~word, word, ~word);
    }

    function _plainDelivery(bytes memory leaf) internal pure returns (Delivery memory delivery) {
        (delivery.tensorType, delivery.dataRoot) = (_TYPE, _dataRoot(leaf));
        delivery.range.leaves = leaf;
    }

    function _plainRoot(bytes memory leaf) private pure returns (bytes32) {
        bytes32[] memory digests = new bytes32[](1);
        digests[0] = keccak256(abi.encodePacked(hex"02", TensorType.unwrap(_TYPE), _dataRoot(leaf)));
        return SlowTree.ofDigests(digests).rootOf();
    }

    function _dataRoot(bytes memory leaf) private pure returns (bytes32) {
        return keccak256(bytes.concat(hex"00", leaf));
    }
}
