// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IAnswerChecker} from "../interfaces/IAnswerChecker.sol";
import {IChallengeAnswers} from "../interfaces/challenges/IChallengeAnswers.sol";
import {IChallengeQuestions} from "../interfaces/challenges/IChallengeQuestions.sol";
import {Dissection} from "../libraries/challenges/Dissection.sol";
import {Position, Way} from "../types/Challenge.sol";

/// @title AnswerChecker: what nodes, entries and leaves hash up to, for `Challenges`
/// @notice Apart from it because the code of one contract does not hold all.
contract AnswerChecker is IAnswerChecker {
    using Dissection for Position;

    /// @inheritdoc IAnswerChecker
    function check(Position calldata position, Way calldata way, bytes calldata data)
        external
        pure
        returns (bytes32 node, uint64 index, uint8 height)
    {
        Position memory p = position;
        if (!p.canAsk()) revert IChallengeQuestions.WrongLevels(p.levels);
        // INVARIANT: nothing passes for an answer but what lies under the node (no node is zero).
        if (p.node == 0 || !p.follow(way) || p.nodeOver(data) != p.node) revert IChallengeAnswers.WrongAnswer();
        return (p.node, p.index, p.height);
    }
}
