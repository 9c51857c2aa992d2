// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Position, Way} from "../types/Challenge.sol";

/// @title Check of the nodes, entries and leaves that answer a question of a challenge
/// @notice Rules P-22 and P-39 of `contracts/SPEC.md`. Anyone may call. The contract has no state, so the same
/// arguments always give the same result. Its errors are `WrongLevels` and `WrongAnswer` of `IChallenges`.
interface IAnswerChecker {
    /// @notice Follows the hints from a node, and checks that the data hash up to where they lead.
    /// @param position what is asked for, with the node
    /// @param way where the hints lead; empty if there are none
    /// @param data the nodes, entries or leaves asked for
    /// @return node the node to which the hints lead, over the data
    /// @return index its place among the nodes of its height, from 0
    /// @return height levels from it down to the tree's leaves
    function check(Position calldata position, Way calldata way, bytes calldata data)
        external
        view
        returns (bytes32 node, uint64 index, uint8 height);
}
