// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {FixedPointMathLib} from "solady/utils/FixedPointMathLib.sol";

import {Position, Subject} from "../../types/Challenge.sol";

/// @title What an answer weighs, and what gas it takes (P-42, P-43)
/// @notice A worker is paid back what an answer costs it, and no more: it must not be able to use up its challenger's
/// deposit, which would win the game for it. So what counts is bounded by what was asked for, whatever the worker adds
/// to its transaction.
library AnswerCost {
    /// @dev Bytes that a challenger can ask for in one challenge. The longest game that asks for whole rows, the last
    /// entry of 10,000 steps, 3,000 operators and 2^21 leaves, takes 20 KiB of them; by hints it takes 11.
    uint256 internal constant MAX_BYTES = 48 * 1024;

    /// @dev At most so many bytes of an answer are of the same length whatever is asked for; siblings of the list of
    /// states, 32 at most, are among them.
    uint256 private constant HEAD = 2048;
    /// @dev At least so many of them are zero. The others, and all that is asked for, are taken as not zero.
    uint256 private constant ZEROS = 400;
    /// @dev Gas of any transaction.
    uint256 private constant BASE = 21_000;
    /// @dev Gas of what is not metered: finding the function, and writing down and telling what is owed. A test holds
    /// it against whole transactions (`tests/contracts/libraries/challenges/AnswerCost.t.sol`).
    uint256 private constant REST = 6400;
    /// @dev Most gas of an answer without what is asked for, and of each byte of that.
    uint256 private constant MOST = 130_000;
    uint256 private constant MOST_A_BYTE = 40;

    /// @notice Bytes that the answer to a question takes at most, besides those that every answer takes.
    /// @param hints length of the question's hints, which the answer repeats
    function bytesOf(Position memory p, uint256 hints) internal pure returns (uint256) {
        if (p.subject == Subject.Logs) return 0;
        bool leaves = p.subject == Subject.Output && p.levels + p.guided == p.height;
        return ((leaves ? 256 : 32) << p.levels) + 32 * uint256(p.guided) + hints;
    }

    /// @notice Gas of the transaction that brings an answer: the dearer of what it executes and the floor that
    /// EIP-7623 sets for its calldata.
    /// @param executed gas of the answer's execution until it is metered
    /// @param asked `bytesOf` the question
    function gasOf(uint256 executed, uint256 asked) internal pure returns (uint256) {
        // INVARIANT: nobody is paid for bytes that were not asked for.
        uint256 length = FixedPointMathLib.min(msg.data.length, HEAD + asked);
        // SAFETY: every answer is longer than its zeros; sums of gas are small.
        unchecked {
            return BASE + FixedPointMathLib.max(executed + REST + 16 * length - 12 * ZEROS, 40 * length - 30 * ZEROS);
        }
    }

    /// @notice At least as much as `gasOf` any answer to a question.
    /// @param asked `bytesOf` the question
    function mostGas(uint256 asked) internal pure returns (uint256) {
        return MOST + MOST_A_BYTE * asked;
    }
}
