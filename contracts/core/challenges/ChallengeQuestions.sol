// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IChallengeQuestions} from "../../interfaces/challenges/IChallengeQuestions.sol";
import {AnswerCost} from "../../libraries/challenges/AnswerCost.sol";
import {Dissection} from "../../libraries/challenges/Dissection.sol";
import {TensorTypes} from "../../libraries/encoding/TensorTypes.sol";
import {Merkle} from "../../libraries/proofs/Merkle.sol";
import {ParameterBounds} from "../../libraries/terms/ParameterBounds.sol";
import {Facts, Pick, Position, Question, Subject} from "../../types/Challenge.sol";
import {BoundaryLogs, Claim, Operator, TensorType} from "../../types/Types.sol";
import {ChallengeMoney} from "./ChallengeMoney.sol";

/// @title ChallengeQuestions
/// @notice The challenger's moves: what can be asked for.
abstract contract ChallengeQuestions is ChallengeMoney {
    using Dissection for Position;
    using TensorTypes for TensorType;

    /// @inheritdoc IChallengeQuestions
    function ask(uint256 challenge, Position calldata position, Pick calldata pick, Question calldata question)
        external
    {
        (Challenge storage c, Position memory p) = _toAsk(challenge, position);
        _checkPick(p, pick);
        // INVARIANT: below the last row there is nothing.
        if (p.isBottom()) revert WrongSubject(p.subject);
        p.index = (p.index << p.levels) + pick.child;
        (p.height, p.node) = (p.height - p.levels, pick.digest);
        _asks(challenge, c, p, question);
    }

    /// @inheritdoc IChallengeQuestions
    function askTree(
        uint256 challenge,
        Position calldata position,
        Facts calldata facts,
        Subject subject,
        Question calldata question
    ) external {
        (Challenge storage c, Position memory p) = _toAsk(challenge, position);
        Facts memory f = _factsOf(position, facts);
        (bytes32 root, uint256 count) = (f.trace, f.operatorCount);
        if (subject == Subject.Steps) (root, count) = (f.steps, _stepsOf(c));
        else if (subject == Subject.State) (root, count) = (f.postState, f.stateCount);
        else if (subject != Subject.Trace) revert WrongSubject(subject);
        _restart(c);
        bytes32 known = p.facts;
        p = _tree(subject, root, count);
        p.facts = known;
        _asks(challenge, c, p, question);
    }

    /// @inheritdoc IChallengeQuestions
    function askStatement(
        uint256 challenge,
        Position calldata position,
        Facts calldata facts,
        Claim calldata claim,
        Pick calldata pick,
        bytes32 preState,
        bytes32[] calldata preSiblings,
        Question calldata question
    ) external {
        (Challenge storage c, Position memory p) = _toAsk(challenge, position);
        _checkRow(p, Subject.Steps, pick);
        _checkClaim(c, claim);
        Facts memory f = _factsOf(position, facts);
        uint256 local = p.leafOf(pick);
        // INVARIANT: the step starts where the one before ended, as the worker has said.
        bool follows = local == 0
            ? preState == claim.parentState && preSiblings.length == 0
            : Merkle.isMember(f.steps, preState, local - 1, p.count, preSiblings);
        if (!follows) revert WrongState();

        // SAFETY: a job has no more steps than 32 bits count (P-18).
        // forge-lint: disable-next-line(unsafe-typecast)
        f.step = uint32(uint256(claim.interval) * p.count + local);
        (f.preState, f.postState) = (preState, pick.digest);
        Position memory next;
        next.subject = Subject.Statement;
        _establish(challenge, next, f);
        _asks(challenge, c, next, question);
    }

    /// @inheritdoc IChallengeQuestions
    function askOutput(
        uint256 challenge,
        Position calldata position,
        Facts calldata facts,
        Pick calldata pick,
        Operator calldata operator,
        bytes32[] calldata operatorMembership,
        Question calldata question
    ) external {
        (Challenge storage c, Position memory p) = _toAsk(challenge, position);
        _checkRow(p, Subject.Trace, pick);
        Facts memory f = _factsOf(position, facts);
        bytes32 hash = keccak256(abi.encode(operator));
        // INVARIANT: a worker is asked for tensors of its program, under their types.
        if (!Merkle.isMember(f.operators, hash, p.leafOf(pick), p.count, operatorMembership)) revert WrongOperator();
        if (!operator.output.isValid()) revert WrongOperator();

        f.tensorType = operator.output;
        p = _tree(Subject.Output, pick.digest, operator.output.leafCount());
        _establish(challenge, p, f);
        _asks(challenge, c, p, question);
    }

    /// @inheritdoc IChallengeQuestions
    function askLogs(uint256 challenge, Position calldata position) external {
        (Challenge storage c, Position memory p) = _toAsk(challenge, position);
        _restart(c);
        Position memory next;
        (next.subject, next.facts) = (Subject.Logs, p.facts);
        _asked(challenge, c, next, msg.data[:0]);
    }

    /// @inheritdoc IChallengeQuestions
    function askLog(
        uint256 challenge,
        Position calldata position,
        Facts calldata facts,
        Claim calldata claim,
        BoundaryLogs calldata logs,
        uint8 edge,
        Question calldata question
    ) external {
        (Challenge storage c, Position memory p) = _toAsk(challenge, position);
        Facts memory f = _factsOf(position, facts);
        _checkClaim(c, claim);
        _checkLogs(claim, logs);
        _restart(c);
        bytes32 root;
        if (edge == 0) root = logs.fromPrevious;
        else if (edge == 1) root = logs.toPrevious;
        else if (edge == 2) root = logs.fromNext;
        else if (edge == 3) root = logs.toNext;
        bytes32 known = p.facts;
        p = _tree(Subject.Log, root, _stepsOf(c) * f.microBatches);
        p.facts = known;
        _asks(challenge, c, p, question);
    }

    /// @dev Of a question that does not go on from the last answer.
    function _restart(Challenge storage c) private {
        // INVARIANT: a search goes down, and begins anew only so often as an honest one can need.
        if (++c.restarts > ParameterBounds.MAX_RESTARTS) revert TooManyRestarts();
    }

    function _checkPick(Position memory p, Pick calldata pick) private pure {
        // INVARIANT: one goes on from what was answered.
        if (!p.holds(pick)) revert WrongPick();
    }

    /// @dev An entry of the last row of a list.
    function _checkRow(Position memory p, Subject subject, Pick calldata pick) private pure {
        if (p.subject != subject || !p.isBottom()) revert WrongSubject(p.subject);
        _checkPick(p, pick);
    }

    /// @dev A challenge that waits for its challenger, who is the caller.
    function _toAsk(uint256 challenge, Position calldata position)
        private
        view
        returns (Challenge storage c, Position memory p)
    {
        c = _waiting(challenge, State.Asking);
        // INVARIANT: nobody leads another's challenge astray.
        if (msg.sender != c.challenger) revert NotChallenger(msg.sender);
        p = _known(c, position);
    }

    function _asks(uint256 challenge, Challenge storage c, Position memory p, Question calldata question) private {
        // INVARIANT: a tree that is asked for is there.
        if (p.node == 0 && p.subject != Subject.Statement) revert WrongSubject(p.subject);
        _question(p, question);
        _asked(challenge, c, p, question.hints);
    }

    function _asked(uint256 challenge, Challenge storage c, Position memory p, bytes calldata hints) internal {
        // INVARIANT: every challenge ends.
        if (++c.asks > ParameterBounds.MAX_ASKS) revert TooManyAsks();
        _takeOn(c, AnswerCost.bytesOf(p, hints.length));
        uint256 left = _leftOf(c, c.challengerLeft);
        // SAFETY: no more than it was.
        // forge-lint: disable-next-line(unsafe-typecast)
        c.challengerLeft = uint32(left);
        uint40 deadline = _turn(c, State.Answering, c.workerLeft, p);
        emit Asked(challenge, deadline, p, hints);
    }

    /// @dev Writes into the position how much of what is there is asked for.
    function _question(Position memory p, Question calldata question) internal pure {
        p.levels = question.levels;
        bool formed;
        (formed, p.guided) = Dissection.levelsOf(question.hints);
        if (!formed) revert WrongHints();
        p.hints = p.guided > 0 ? keccak256(question.hints) : bytes32(0);
        // INVARIANT: the worker can answer: a tree is so high; of a trace that is not, which is not known yet, it gives
        // the last row.
        bool right = p.subject == Subject.Statement ? p.levels > 0 && p.levels <= Dissection.MAX_LEVELS : p.canAsk();
        if (!right) revert WrongLevels(p.levels);
    }
}
