// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Header, Headers} from "./Headers.sol";
import {ProtocolTest} from "./ProtocolTest.sol";

/// @title A chain whose headers are known
abstract contract BeaconTest is ProtocolTest {
    using Headers for Header;

    /// @dev Two blocks of the chain, the second at `timestamp`, the first a second before.
    function _blocks(uint256 timestamp, bytes32 prevRandao)
        internal
        returns (bytes memory before, bytes memory header)
    {
        return _blocks(timestamp - 1, timestamp, prevRandao);
    }

    function _blocks(uint256 timeBefore, uint256 timestamp, bytes32 prevRandao)
        internal
        returns (bytes memory before, bytes memory header)
    {
        vm.roll(block.number + 2);
        before = Header(keccak256("parent"), block.number - 2, timeBefore, keccak256("before")).encode();
        header = Header(keccak256(before), block.number - 1, timestamp, prevRandao).encode();
        vm.setBlockhash(block.number - 2, keccak256(before));
        vm.setBlockhash(block.number - 1, keccak256(header));
    }

    /// @dev Goes to where a period begins, if that is to come, and records its seed by real headers.
    function _recordSeed(uint64 period, bytes32 seed) internal {
        uint256 begins = uint256(period) * PERIOD;
        if (block.timestamp <= begins) vm.warp(begins + 1);
        (bytes memory before, bytes memory header) = _blocks(begins, seed);
        beacon.record(period, before, header);
    }
}
