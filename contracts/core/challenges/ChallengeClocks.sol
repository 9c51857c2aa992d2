// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Position} from "../../types/Challenge.sol";
import {ChallengeRecords} from "./ChallengeRecords.sol";

/// @title ChallengeClocks
/// @notice Whose turn it is, and how long.
abstract contract ChallengeClocks is ChallengeRecords {
    uint32 internal immutable _CLOCK;
    uint32 private immutable _MOVE_GRACE;
    uint32 internal immutable _MOVE_BLOCKS;

    constructor(uint32 clock, uint32 moveGrace, uint32 moveBlocks) {
        (_CLOCK, _MOVE_GRACE, _MOVE_BLOCKS) = (clock, moveGrace, moveBlocks);
    }

    function _waiting(uint256 challenge, State state) internal view returns (Challenge storage c) {
        c = _challenges[challenge];
        if (c.state == State.None) revert UnknownChallenge(challenge);
        if (c.state != state) revert NotYourTurn(challenge);
    }

    function _known(Challenge storage c, Position calldata position) internal view returns (Position memory p) {
        // INVARIANT: who is late has lost, whether or not anyone has said so yet.
        if (_isOver(c)) revert DeadlinePassed(c.deadline);
        p = position;
        if (_hash(p) != c.position) revert WrongPosition();
    }

    function _turn(Challenge storage c, State state, uint256 left, Position memory p)
        internal
        returns (uint40 deadline)
    {
        // SAFETY: a time of this era, and a number of blocks that takes a chain a century.
        // forge-lint: disable-next-line(unsafe-typecast)
        (deadline, c.turnBlock) = (uint40(block.timestamp + _allowed(left)), uint32(block.number));
        (c.state, c.deadline) = (state, deadline);
        c.position = _hash(p);
    }

    /// @dev What a clock that showed `left` when the turn began shows now.
    function _leftOf(Challenge storage c, uint256 left) internal view returns (uint256) {
        uint256 began = c.deadline - _allowed(left);
        uint256 taken = block.timestamp - began;
        return taken < left ? left - taken : 0;
    }

    /// @dev Seconds for a move: what the clock shows, and never less than the grace.
    function _allowed(uint256 left) internal view returns (uint256) {
        return left > _MOVE_GRACE ? left : _MOVE_GRACE;
    }

    function _isOver(Challenge storage c) internal view returns (bool) {
        return block.timestamp >= c.deadline && block.number >= uint256(c.turnBlock) + _MOVE_BLOCKS;
    }
}
