// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Vm} from "forge-std/Vm.sol";

import {IChallenges} from "../../../contracts/interfaces/IChallenges.sol";
import {IChallengeAnswers} from "../../../contracts/interfaces/challenges/IChallengeAnswers.sol";
import {IChallengeMoney} from "../../../contracts/interfaces/challenges/IChallengeMoney.sol";
import {IChallengeQuestions} from "../../../contracts/interfaces/challenges/IChallengeQuestions.sol";
import {AnswerCost} from "../../../contracts/libraries/challenges/AnswerCost.sol";
import {Facts, Position} from "../../../contracts/types/Challenge.sol";
import {BoundaryLogs} from "../../../contracts/types/Types.sol";
import {ProtocolTest} from "./ProtocolTest.sol";

/// @title What the events tell about challenges, which is all that its players know
abstract contract ChallengeFeed is ProtocolTest {
    /// @dev Gas by which a word that is changed is dearer than one that stays.
    uint256 private constant WRITTEN = 2800;

    mapping(uint256 challenge => Position position) internal positions;
    mapping(uint256 challenge => Facts facts) internal factsOf;
    /// @dev The last question's hints, the last answer's way and nodes, the worker's last signature and logs, of
    /// any challenge.
    bytes internal hinted;
    bytes32[] internal led;
    bytes internal answered;
    bytes internal stated;
    BoundaryLogs internal logsGiven;
    /// @dev Gas of the last answer as the contract metered it.
    uint256 internal charged;

    function setUp() public virtual override {
        super.setUp();
        vm.recordLogs();
    }

    /// @dev Reads what has happened since the last time.
    function _follow() internal {
        Vm.Log[] memory logs = vm.getRecordedLogs();
        for (uint256 i = 0; i < logs.length; ++i) {
            if (logs[i].emitter != address(challenges)) continue;
            (bytes32 kind, bytes memory data) = (logs[i].topics[0], logs[i].data);
            uint256 challenge = uint256(logs[i].topics[1]);
            if (kind == IChallenges.Established.selector) {
                factsOf[challenge] = abi.decode(data, (Facts));
            } else if (kind == IChallengeQuestions.Asked.selector) {
                (, positions[challenge], hinted) = abi.decode(data, (uint40, Position, bytes));
            } else if (kind == IChallengeAnswers.Answered.selector) {
                (, positions[challenge], led, answered) = abi.decode(data, (uint40, Position, bytes32[], bytes));
            } else if (kind == IChallengeAnswers.Stated.selector) {
                stated = abi.decode(data, (bytes));
            } else if (kind == IChallengeMoney.Charged.selector) {
                (charged,,) = abi.decode(data, (uint256, uint256, bool));
            } else if (kind == IChallengeAnswers.LogsGiven.selector) {
                (logsGiven,,) = abi.decode(data, (BoundaryLogs, bytes, bytes));
            }
        }
    }

    /// @dev P-42: what an answer is charged is what its transaction costs, and hardly more. Calls that are isolated pay
    /// no base fee, so they write down nothing that is owed.
    function _isPaidFor(uint256 challenge, uint256 used) internal view {
        assertGe(charged, used + WRITTEN, "an answer is paid for");
        assertLe(charged, used + used / 8, "and not much more than that");
        uint256 most = AnswerCost.mostGas(challenges.challengeOf(challenge).lastBytes);
        assertLe(charged, most, "a question's deposit covers it");
    }
}
