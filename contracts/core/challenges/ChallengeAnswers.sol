// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IAnswerChecker} from "../../interfaces/IAnswerChecker.sol";
import {IChallengeAnswers} from "../../interfaces/challenges/IChallengeAnswers.sol";
import {Dissection} from "../../libraries/challenges/Dissection.sol";
import {Merkle} from "../../libraries/proofs/Merkle.sol";
import {Places} from "../../libraries/proofs/Places.sol";
import {Facts, LogsAnswer, Position, StepAnswer, Subject, Way} from "../../types/Challenge.sol";
import {Claim, EdgeLog, ProgramHeader, StepStatement} from "../../types/Types.sol";
import {AnswerChecker} from "../AnswerChecker.sol";
import {ChallengeMoney} from "./ChallengeMoney.sol";

/// @title ChallengeAnswers
/// @notice The worker's moves: what counts for an answer.
abstract contract ChallengeAnswers is ChallengeMoney {
    using Dissection for Position;

    /// @notice What nodes hash up to. Made with this contract, so neither is ever without the other.
    IAnswerChecker public immutable CHECKER = new AnswerChecker();

    /// @inheritdoc IChallengeAnswers
    function answerSteps(
        uint256 challenge,
        Position calldata position,
        Claim calldata claim,
        bytes32 steps,
        bytes32[] calldata siblings,
        Way calldata way,
        bytes calldata data
    ) external {
        (Challenge storage c, Position memory p) = _toAnswer(challenge, position, Subject.Steps);
        // INVARIANT: later nodes of the list are answered with `answer`.
        if (p.node != 0) revert WrongSubject(p.subject);
        _checkClaim(c, claim);
        // INVARIANT: the states lead to the one that was claimed.
        if (!Merkle.isMember(steps, claim.newState, p.count - 1, p.count, siblings)) revert WrongState();

        p.node = steps;
        _checkNodes(p, way, data);
        Facts memory facts;
        facts.steps = steps;
        _establish(challenge, p, facts);
        _answered(challenge, c, p, way.siblings, data);
    }

    /// @inheritdoc IChallengeAnswers
    function answerStatement(
        uint256 challenge,
        Position calldata position,
        Facts calldata facts,
        StepAnswer calldata said,
        Way calldata way,
        bytes calldata data
    ) external {
        (Challenge storage c, Position memory p) = _toAnswer(challenge, position, Subject.Statement);
        Facts memory f = _factsOf(position, facts);
        _takeProgram(c, f, said.program);
        f.trace = said.trace;
        _checkStatement(c, f, said.signature);

        p = _traceOf(f, p);
        _checkNodes(p, way, data);
        _establish(challenge, p, f);
        emit Stated(challenge, said.signature);
        _answered(challenge, c, p, way.siblings, data);
    }

    /// @dev The trace, of which so much is asked for as the question about the statement says: who asked it did not
    /// know yet how high the tree is.
    function _traceOf(Facts memory f, Position memory asked) private pure returns (Position memory p) {
        p = _tree(Subject.Trace, f.trace, f.operatorCount);
        p.guided = asked.guided < p.height ? asked.guided : p.height;
        if (p.guided > 0) p.hints = asked.hints;
        uint8 below = p.height - p.guided;
        p.levels = asked.levels < below ? asked.levels : below;
    }

    function _takeProgram(Challenge storage c, Facts memory f, ProgramHeader calldata program) private view {
        // INVARIANT: the program is the stage's.
        if (keccak256(abi.encode(program)) != JOBS.programOf(c.job, c.stage)) revert WrongProgram();
        (f.operators, f.operatorCount) = (program.operators, program.operatorCount);
        (f.stateCount, f.microBatches) = (program.stateCount, program.microBatches);
    }

    /// @dev INVARIANT: what is answered here stands as if it had been said off chain: proofs refer to it (P-14).
    function _checkStatement(Challenge storage c, Facts memory f, bytes calldata signature) private view {
        StepStatement memory statement = StepStatement({
            claimId: c.claimId,
            auditor: c.challenger,
            step: f.step,
            preState: f.preState,
            postState: f.postState,
            trace: f.trace
        });
        _checkSigner(DISPUTES.statementDigest(statement), signature, c.worker);
    }

    /// @inheritdoc IChallengeAnswers
    function answerOutput(
        uint256 challenge,
        Position calldata position,
        Facts calldata facts,
        bytes32 dataRoot,
        Way calldata way,
        bytes calldata data
    ) external {
        (Challenge storage c, Position memory p) = _toAnswer(challenge, position, Subject.Output);
        // INVARIANT: a data root is given once, for the tensor and not for a node below it.
        if (!p.isRoot()) revert WrongSubject(p.subject);
        Facts memory f = _factsOf(position, facts);
        // INVARIANT: the trace holds a tensor of the type that the program gives the output (C-2).
        if (Merkle.tensorRoot(f.tensorType, dataRoot) != p.node) revert WrongAnswer();
        p.node = dataRoot;
        _checkNodes(p, way, data);
        _answered(challenge, c, p, way.siblings, data);
    }

    /// @inheritdoc IChallengeAnswers
    function answerLogs(
        uint256 challenge,
        Position calldata position,
        Facts calldata facts,
        Claim calldata claim,
        LogsAnswer calldata said
    ) external {
        (Challenge storage c, Position memory p) = _toAnswer(challenge, position, Subject.Logs);
        Facts memory f = _factsOf(position, facts);
        _checkClaim(c, claim);
        _checkLogs(claim, said.logs);
        _takeProgram(c, f, said.program);
        // INVARIANT: no neighbour that the program has is left out of what a worker computes from, or sends.
        if (Places.edgesOf(said.logs) != said.program.edges) revert WrongLogs();
        if (said.logs.fromPrevious != 0) _checkSent(claim, false, said.logs.fromPrevious, said.previousSignature);
        if (said.logs.fromNext != 0) _checkSent(claim, true, said.logs.fromNext, said.nextSignature);

        _establish(challenge, p, f);
        emit LogsGiven(challenge, said.logs, said.previousSignature, said.nextSignature);
        _answered(challenge, c, p, _none(), msg.data[:0]);
    }

    /// @dev INVARIANT: nothing enters a log as received but by its sender's attestation.
    function _checkSent(Claim calldata claim, bool byNext, bytes32 root, bytes calldata signature) private view {
        uint16 sender = Places.neighbourOf(claim.stage, byNext);
        EdgeLog memory log = EdgeLog({
            job: claim.job,
            replica: claim.replica,
            fromStage: sender,
            toStage: claim.stage,
            interval: claim.interval,
            root: root
        });
        _checkSigner(DISPUTES.edgeLogDigest(log), signature, JOBS.workerOf(claim.job, sender, claim.replica));
    }

    /// @inheritdoc IChallengeAnswers
    function answer(uint256 challenge, Position calldata position, Way calldata way, bytes calldata data) external {
        (Challenge storage c, Position memory p) = _toAnswer(challenge, position, position.subject);
        // INVARIANT: what the trace holds for an output is a tensor's root, which binds its type; nodes lie under its
        // data root only.
        if (p.subject == Subject.Output && p.isRoot()) revert WrongSubject(p.subject);
        _checkNodes(p, way, data);
        _answered(challenge, c, p, way.siblings, data);
    }

    /// @dev Nodes count where they hash up to what the worker is committed to. Takes the position to where its
    /// hints lead.
    function _checkNodes(Position memory p, Way calldata way, bytes calldata data) private view {
        (p.node, p.index, p.height) = CHECKER.check(p, way, data);
        (p.guided, p.hints) = (0, 0);
    }

    /// @dev A challenge that waits for its worker, who is the caller, with an answer about `subject`.
    function _toAnswer(uint256 challenge, Position calldata position, Subject subject)
        private
        returns (Challenge storage c, Position memory p)
    {
        _meter();
        c = _waiting(challenge, State.Answering);
        // INVARIANT: nobody commits another to anything.
        if (msg.sender != c.worker) revert NotWorker(msg.sender);
        p = _known(c, position);
        if (p.subject != subject) revert WrongSubject(p.subject);
    }

    function _answered(
        uint256 challenge,
        Challenge storage c,
        Position memory p,
        bytes32[] calldata siblings,
        bytes calldata data
    ) private {
        // SAFETY: no more than it was.
        // forge-lint: disable-next-line(unsafe-typecast)
        c.workerLeft = uint32(_leftOf(c, c.workerLeft));
        uint40 deadline = _turn(c, State.Asking, c.challengerLeft, p);
        emit Answered(challenge, deadline, p, siblings, data);
        _charge(challenge, c);
    }

    function _none() private pure returns (bytes32[] calldata none) {
        // SAFETY: an empty array, wherever it stands.
        assembly ("memory-safe") {
            none.offset := 0
            none.length := 0
        }
    }
}
