// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

/// @title Beacon: randomness that nobody chooses
/// @notice Time is parted into periods of `PERIOD` seconds, counted from the epoch. A period's seed is the `prevrandao` of the first block
/// whose timestamp lies in it or after. That block is a fact: whoever records it proves it by its header and the one before, so
/// that who records, and when, decides nothing.
/// @dev Weakness: whoever proposes the block before a period's first can leave it out, or, of that block, choose its time within
/// the chain's rules, and so has one draw more for each slot in a row that it holds; it forgoes the blocks. Seeds are as good as the chain's
/// `prevrandao`: one sequencer that makes it up draws whom it likes.
interface IBeacon {
    event SeedRecorded(uint64 indexed period, bytes32 seed);

    error AlreadyRecorded(uint64 period);
    /// @dev Not a header, or not of one of the last 8,191 blocks (EIP-2935).
    error UnknownBlock();
    /// @dev The second block is not the first of its period, or does not follow the first block.
    error NotTheFirst(uint64 period);
    /// @dev The chain has no `prevrandao`.
    error NoSeed();

    /// @notice Records a period's seed. Anyone, once.
    /// Requirements: `header` is the RLP of the header (yellow paper, 4.4; EIP-4399) of the first block of the period, `before` of the one before it.
    function record(uint64 period, bytes calldata before, bytes calldata header) external;

    /// @notice The seed of a period; zero if it is not recorded.
    function seedOf(uint64 period) external view returns (bytes32);

    /// @notice The period whose seed draws for what was fixed at `time`: the second that begins after it, so that at least `PERIOD` seconds
    /// lie between what is fixed and the seed.
    function periodAfter(uint256 time) external view returns (uint64);
}
