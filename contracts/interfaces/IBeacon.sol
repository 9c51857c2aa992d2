// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

/// @title Beacon: randomness that nobody chooses
/// @notice Time is divided into periods of `PERIOD` seconds, counted from the Unix epoch. A period's seed is the
/// `prevrandao` of the first block whose timestamp lies in the period or after it. That block is a fact: whoever
/// records the seed proves the block by its header and the header before it. So who records a seed, and when, decides
/// nothing.
/// @dev Weakness: the proposer of the block before a period's first can leave that block out, or choose its time within
/// the chain's rules, and so has one more draw for each slot in a row that it holds. It forgoes the blocks. Seeds are
/// as good as the chain's `prevrandao`: a single sequencer that makes it up draws whom it likes.
interface IBeacon {
    /// @notice A period's seed is on record.
    /// @param period number of the period
    /// @param seed its seed
    event SeedRecorded(uint64 indexed period, bytes32 seed);

    /// @notice The period has a seed.
    /// @param period number of the period
    error AlreadyRecorded(uint64 period);

    /// @notice `header` is not a block header, or not that of one of the last 8,191 blocks (EIP-2935).
    error UnknownBlock();

    /// @notice The block is not the first of its period, or `before` is not the header before it.
    /// @param period number of the period
    error NotTheFirst(uint64 period);

    /// @notice The chain has no `prevrandao`.
    error NoSeed();

    /// @notice Records a period's seed, once. Anyone may call.
    /// @param period number of the period
    /// @param before RLP of the header of the block before
    /// @param header RLP of the header (yellow paper, 4.4; EIP-4399) of the period's first block
    function record(uint64 period, bytes calldata before, bytes calldata header) external;

    /// @notice The seed of a period.
    /// @param period number of the period
    /// @return the seed; zero if it is not recorded
    function seedOf(uint64 period) external view returns (bytes32);

    /// @notice The period whose seed draws for what was fixed at `time`: the second period that begins after it. So at
    /// least `PERIOD` seconds lie between the two.
    /// @param time Unix timestamp
    /// @return number of the period
    function periodAfter(uint256 time) external view returns (uint64);
}
