// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";

import {IChallenges} from "../interfaces/IChallenges.sol";
import {ICheckpoints} from "../interfaces/ICheckpoints.sol";
import {IDisputes} from "../interfaces/IDisputes.sol";
import {IJobs} from "../interfaces/IJobs.sol";
import {Facts, Position, Question, Subject} from "../types/Challenge.sol";
import {Parameters} from "../types/Parameters.sol";
import {Claim} from "../types/Types.sol";
import {ChallengeAnswers} from "./challenges/ChallengeAnswers.sol";
import {ChallengeClocks} from "./challenges/ChallengeClocks.sol";
import {ChallengeMoney} from "./challenges/ChallengeMoney.sol";
import {ChallengeQuestions} from "./challenges/ChallengeQuestions.sol";
import {ChallengeRecords} from "./challenges/ChallengeRecords.sol";

/// @title Challenges
/// @notice See `IChallenges`. Here a challenge begins. Its questions are in `ChallengeQuestions`, answers in
/// `ChallengeAnswers`, whose turn it is in `ChallengeClocks`, how it ends in `ChallengeMoney`.
contract Challenges is ChallengeQuestions, ChallengeAnswers {
    using SafeERC20 for IERC20;

    constructor(IERC20 sno, IJobs jobs, ICheckpoints checkpoints, IDisputes disputes, Parameters memory p)
        ChallengeRecords(jobs, checkpoints, disputes)
        ChallengeClocks(p.disputeClock, p.moveGrace, p.moveBlocks)
        ChallengeMoney(sno, p.disputeBond, p.bountyBps)
    {}

    /// @inheritdoc IChallenges
    function open(Claim calldata claim, uint64 committedAt, Question calldata question)
        external
        payable
        nonReentrant
        returns (uint256 challenge)
    {
        bytes32 claimId = CHECKPOINTS.requireLive(claim, committedAt);
        (uint256 steps, uint256 window) = JOBS.termsOf(claim.job);
        uint256 until = uint256(committedAt) + 2 * window;
        // INVARIANT: nothing delays a claim without end (P-10).
        if (block.timestamp >= until) {
            // SAFETY: a time of this era.
            // forge-lint: disable-next-line(unsafe-typecast)
            revert DeadlinePassed(uint40(until));
        }

        Facts memory facts;
        Position memory p;
        if (steps == 1) {
            (facts.step, facts.preState, facts.postState) = (claim.interval, claim.parentState, claim.newState);
            p.subject = Subject.Statement;
        } else {
            p = _tree(Subject.Steps, 0, steps);
        }
        _question(p, question);
        return _open(claim, claimId, facts, p, question);
    }

    function _open(
        Claim calldata claim,
        bytes32 claimId,
        Facts memory facts,
        Position memory p,
        Question calldata question
    ) private returns (uint256 challenge) {
        challenge = ++_challengeCount;
        Challenge storage c = _challenges[challenge];
        address worker = JOBS.workerOf(claim.job, claim.stage, claim.replica);
        uint96 bond = _nextBond(claim.job, claimId);
        (c.challenger, c.job, c.stage, c.replica) = (msg.sender, claim.job, claim.stage, claim.replica);
        (c.worker, c.bond) = (worker, bond);
        (c.interval, c.challengerLeft, c.workerLeft) = (claim.interval, _CLOCK, _CLOCK);
        c.claimId = claimId;
        emit ChallengeOpened(challenge, claimId, msg.sender, worker, claim);
        _deposit(challenge, c);
        _establish(challenge, p, facts);
        // Its turn begins, and is over.
        _turn(c, State.Asking, _CLOCK, p);
        _asked(challenge, c, p, question.hints);

        CHECKPOINTS.hold(claimId);
        SNO.safeTransferFrom(msg.sender, address(this), bond);
    }
}
