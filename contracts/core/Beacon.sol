// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {BlockHeader} from "@openzeppelin/contracts/utils/BlockHeader.sol";
import {Memory} from "@openzeppelin/contracts/utils/Memory.sol";
import {SafeCast} from "@openzeppelin/contracts/utils/math/SafeCast.sol";

import {IBeacon} from "../interfaces/IBeacon.sol";

/// @title Beacon
/// @notice See `IBeacon`.
contract Beacon is IBeacon {
    using BlockHeader for Memory.Slice[];
    using SafeCast for uint256;

    /// @notice Length of a period, seconds.
    uint32 public immutable PERIOD;

    mapping(uint64 period => bytes32 seed) private _seeds;

    constructor(uint32 period) {
        PERIOD = period;
    }

    /// @inheritdoc IBeacon
    function record(uint64 period, bytes calldata before, bytes calldata header) external {
        // INVARIANT: a seed is drawn once.
        if (_seeds[period] != 0) revert AlreadyRecorded(period);
        bytes memory copy = header;
        Memory.Slice[] memory block_ = BlockHeader.parseHeader(copy);
        // INVARIANT: the block is of this chain.
        if (!block_.verifyBlockHeader(keccak256(copy))) revert UnknownBlock();
        // INVARIANT: so is the one before.
        if (keccak256(before) != block_.getParentHash()) revert NotTheFirst(period);

        uint256 begins = uint256(period) * PERIOD;
        // INVARIANT: nobody chooses the block: it is the period's first.
        if (block_.getTimestamp() < begins || BlockHeader.getTimestamp(before) >= begins) revert NotTheFirst(period);
        bytes32 seed = block_.getPrevRandao();
        // INVARIANT: nothing is drawn without a seed.
        if (seed == 0) revert NoSeed();

        _seeds[period] = seed;
        emit SeedRecorded(period, seed);
    }

    /// @inheritdoc IBeacon
    function seedOf(uint64 period) external view returns (bytes32) {
        return _seeds[period];
    }

    /// @inheritdoc IBeacon
    function periodAfter(uint256 time) external view returns (uint64) {
        return (time / PERIOD + 2).toUint64();
    }
}
