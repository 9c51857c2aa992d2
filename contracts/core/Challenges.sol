// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {ReentrancyGuardTransient} from "@openzeppelin/contracts/utils/ReentrancyGuardTransient.sol";
import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";
import {SafeCast} from "@openzeppelin/contracts/utils/math/SafeCast.sol";

import {IChallenges} from "../interfaces/IChallenges.sol";
import {ICheckpoints} from "../interfaces/ICheckpoints.sol";
import {IDisputes} from "../interfaces/IDisputes.sol";
import {IJobs} from "../interfaces/IJobs.sol";
import {Dissection} from "../libraries/Dissection.sol";
import {Merkle} from "../libraries/Merkle.sol";
import {ParameterBounds} from "../libraries/ParameterBounds.sol";
import {Places} from "../libraries/Places.sol";
import {TensorTypes} from "../libraries/TensorTypes.sol";
import {Facts, LogsAnswer, Pick, Position, Question, StepAnswer, Subject, Way} from "../types/Challenge.sol";
import {Parameters} from "../types/Parameters.sol";
import {BoundaryLogs, Claim, EdgeLog, Operator, ProgramHeader, StepStatement, TensorType} from "../types/Types.sol";

/// @title Challenges
/// @notice See `IChallenges`.
contract Challenges is IChallenges, ReentrancyGuardTransient {
    using Dissection for Position;
    using SafeCast for uint256;
    using SafeERC20 for IERC20;
    using TensorTypes for TensorType;

    /// @notice The token of bonds.
    IERC20 public immutable SNO;
    /// @notice Where programs, workers and terms stand.
    IJobs public immutable JOBS;
    /// @notice Where claims stand and are held.
    ICheckpoints public immutable CHECKPOINTS;
    /// @notice Who convicts.
    IDisputes public immutable DISPUTES;

    uint32 private immutable _CLOCK;
    uint32 private immutable _MOVE_GRACE;
    uint32 private immutable _MOVE_BLOCKS;
    uint96 private immutable _BOND;

    uint256 private _challengeCount;
    mapping(uint256 id => Challenge challenge) private _challenges;

    constructor(IERC20 sno, IJobs jobs, ICheckpoints checkpoints, IDisputes disputes, Parameters memory p) {
        SNO = sno;
        JOBS = jobs;
        CHECKPOINTS = checkpoints;
        DISPUTES = disputes;
        _CLOCK = p.disputeClock;
        _MOVE_GRACE = p.moveGrace;
        _MOVE_BLOCKS = p.moveBlocks;
        _BOND = uint256(p.disputeBond).toUint96();
    }

    // The challenger opens

    /// @inheritdoc IChallenges
    function open(Claim calldata claim, uint64 committedAt, Question calldata question)
        external
        nonReentrant
        returns (uint256 challenge)
    {
        bytes32 claimId = CHECKPOINTS.requireLive(claim, committedAt);
        (uint256 steps, uint256 window) = JOBS.termsOf(claim.job);
        uint256 until = uint256(committedAt) + 2 * window;
        // INVARIANT: nothing delays a claim without end (P-10).
        if (block.timestamp >= until) revert DeadlinePassed(until.toUint40());

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
        address worker = JOBS.workerOf(claim.job, claim.stage, claim.replica);
        uint40 deadline = (block.timestamp + _allowed(_CLOCK)).toUint40();
        p.facts = _hash(facts);
        _challenges[challenge] = Challenge({
            challenger: msg.sender,
            state: State.Answering,
            deadline: deadline,
            asks: 1,
            worker: worker,
            challengerLeft: _CLOCK,
            workerLeft: _CLOCK,
            turnBlock: block.number.toUint32(),
            bond: _BOND,
            job: claim.job,
            stage: claim.stage,
            replica: claim.replica,
            interval: claim.interval,
            claimId: claimId,
            position: _hash(p)
        });
        emit ChallengeOpened(challenge, claimId, msg.sender, worker, claim);
        emit Established(challenge, facts);
        emit Asked(challenge, deadline, p, question.hints);

        CHECKPOINTS.hold(claimId);
        SNO.safeTransferFrom(msg.sender, address(this), _BOND);
    }

    // The worker answers

    /// @inheritdoc IChallenges
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

    /// @inheritdoc IChallenges
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

    /// @inheritdoc IChallenges
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

    /// @inheritdoc IChallenges
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

    function _checkLogs(Claim calldata claim, BoundaryLogs calldata logs) private pure {
        // INVARIANT: the logs are those that the claim commits to.
        if (keccak256(abi.encode(logs)) != claim.io) revert WrongLogs();
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

    /// @inheritdoc IChallenges
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
    function _checkNodes(Position memory p, Way calldata way, bytes calldata data) private pure {
        if (!p.canAsk()) revert WrongLevels(p.levels);
        // INVARIANT: nothing passes for an answer but what lies under the node (no node is zero).
        if (p.node == 0 || !p.follow(way) || p.nodeOver(data) != p.node) revert WrongAnswer();
    }

    // The challenger asks

    /// @inheritdoc IChallenges
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

    /// @inheritdoc IChallenges
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
        bytes32 known = p.facts;
        p = _tree(subject, root, count);
        p.facts = known;
        _asks(challenge, c, p, question);
    }

    /// @inheritdoc IChallenges
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

        f.step = (uint256(claim.interval) * p.count + local).toUint32();
        (f.preState, f.postState) = (preState, pick.digest);
        Position memory next;
        next.subject = Subject.Statement;
        _establish(challenge, next, f);
        _asks(challenge, c, next, question);
    }

    /// @inheritdoc IChallenges
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

    /// @inheritdoc IChallenges
    function askLogs(uint256 challenge, Position calldata position) external {
        (Challenge storage c, Position memory p) = _toAsk(challenge, position);
        Position memory next;
        (next.subject, next.facts) = (Subject.Logs, p.facts);
        _asked(challenge, c, next, msg.data[:0]);
    }

    /// @inheritdoc IChallenges
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

    function _checkPick(Position memory p, Pick calldata pick) private pure {
        // INVARIANT: one goes on from what was answered.
        if (!p.holds(pick)) revert WrongPick();
    }

    /// @dev An entry of the last row of a list.
    function _checkRow(Position memory p, Subject subject, Pick calldata pick) private pure {
        if (p.subject != subject || !p.isBottom()) revert WrongSubject(p.subject);
        _checkPick(p, pick);
    }

    // Turns

    /// @dev A challenge that waits for its worker, who is the caller, with an answer about `subject`.
    function _toAnswer(uint256 challenge, Position calldata position, Subject subject)
        private
        view
        returns (Challenge storage c, Position memory p)
    {
        c = _waiting(challenge, State.Answering);
        // INVARIANT: nobody commits another to anything.
        if (msg.sender != c.worker) revert NotWorker(msg.sender);
        p = _known(c, position);
        if (p.subject != subject) revert WrongSubject(p.subject);
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

    function _waiting(uint256 challenge, State state) private view returns (Challenge storage c) {
        c = _challenges[challenge];
        if (c.state == State.None) revert UnknownChallenge(challenge);
        if (c.state != state) revert NotYourTurn(challenge);
    }

    function _known(Challenge storage c, Position calldata position) private view returns (Position memory p) {
        // INVARIANT: who is late has lost, whether or not anyone has said so yet.
        if (_isOver(c)) revert DeadlinePassed(c.deadline);
        p = position;
        if (_hash(p) != c.position) revert WrongPosition();
    }

    function _asks(uint256 challenge, Challenge storage c, Position memory p, Question calldata question) private {
        // INVARIANT: a tree that is asked for is there.
        if (p.node == 0 && p.subject != Subject.Statement) revert WrongSubject(p.subject);
        _question(p, question);
        _asked(challenge, c, p, question.hints);
    }

    function _asked(uint256 challenge, Challenge storage c, Position memory p, bytes calldata hints) private {
        // INVARIANT: every challenge ends.
        if (++c.asks > ParameterBounds.MAX_ASKS) revert TooManyAsks();
        uint256 left = _leftOf(c, c.challengerLeft);
        // SAFETY: no more than it was.
        // forge-lint: disable-next-line(unsafe-typecast)
        c.challengerLeft = uint32(left);
        uint40 deadline = _turn(c, State.Answering, c.workerLeft, p);
        emit Asked(challenge, deadline, p, hints);
    }

    /// @dev Writes into the position how much of what is there is asked for.
    function _question(Position memory p, Question calldata question) private pure {
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
    }

    function _none() private pure returns (bytes32[] calldata none) {
        // SAFETY: an empty array, wherever it stands.
        assembly ("memory-safe") {
            none.offset := 0
            none.length := 0
        }
    }

    function _turn(Challenge storage c, State state, uint256 left, Position memory p)
        private
        returns (uint40 deadline)
    {
        deadline = (block.timestamp + _allowed(left)).toUint40();
        (c.state, c.deadline, c.turnBlock) = (state, deadline, block.number.toUint32());
        c.position = _hash(p);
    }

    /// @dev What a clock that showed `left` when the turn began shows now.
    function _leftOf(Challenge storage c, uint256 left) private view returns (uint256) {
        uint256 began = c.deadline - _allowed(left);
        uint256 taken = block.timestamp - began;
        return taken < left ? left - taken : 0;
    }

    /// @dev Seconds for a move: what the clock shows, and never less than the grace.
    function _allowed(uint256 left) private view returns (uint256) {
        return left > _MOVE_GRACE ? left : _MOVE_GRACE;
    }

    function _isOver(Challenge storage c) private view returns (bool) {
        return block.timestamp >= c.deadline && block.number >= uint256(c.turnBlock) + _MOVE_BLOCKS;
    }

    /// @inheritdoc IChallenges
    function timeout(uint256 challenge) external nonReentrant {
        Challenge storage c = _challenges[challenge];
        State state = c.state;
        if (state == State.None) revert UnknownChallenge(challenge);
        // INVARIANT: a bond is paid out once.
        if (state != State.Asking && state != State.Answering) revert NotYourTurn(challenge);
        (uint64 job, bytes32 claimId) = (c.job, c.claimId);
        bool settled = DISPUTES.isConvicted(job, c.stage, c.replica, c.interval);
        // INVARIANT: each side has its whole time.
        if (!settled && !_isOver(c)) revert DeadlineNotReached(c.deadline, uint256(c.turnBlock) + _MOVE_BLOCKS);
        bool silence = !settled && state == State.Answering;
        bool won = settled || silence;

        c.state = won ? State.Won : State.Lost;
        if (won) emit ChallengeWon(challenge, claimId, silence);
        else emit ChallengeLost(challenge, claimId);

        CHECKPOINTS.release(claimId);
        if (silence) DISPUTES.convictSilent(job, c.stage, c.replica, c.interval, claimId, c.challenger);
        SNO.safeTransfer(won ? c.challenger : c.worker, c.bond);
    }

    // What is known

    /// @dev A tree's root.
    function _tree(Subject subject, bytes32 node, uint256 count) private pure returns (Position memory p) {
        // INVARIANT: there is something to ask for.
        if (count == 0) revert WrongSubject(subject);
        (p.subject, p.node, p.count) = (subject, node, count.toUint64());
        // A depth is at most 64.
        p.height = uint8(Merkle.depth(count));
    }

    /// @dev Writes new facts into the position, and tells them.
    function _establish(uint256 challenge, Position memory p, Facts memory facts) private {
        p.facts = _hash(facts);
        emit Established(challenge, facts);
    }

    function _factsOf(Position calldata position, Facts calldata facts) private pure returns (Facts memory f) {
        f = facts;
        if (_hash(f) != position.facts) revert WrongPosition();
    }

    /// @dev Steps of the claim's interval.
    function _stepsOf(Challenge storage c) private view returns (uint256 steps) {
        // The window is left out.
        // slither-disable-next-line unused-return
        (steps,) = JOBS.termsOf(c.job);
    }

    function _checkClaim(Challenge storage c, Claim calldata claim) private view {
        if (CHECKPOINTS.claimId(claim) != c.claimId) revert WrongPosition();
    }

    function _checkSigner(bytes32 digest, bytes calldata signature, address signer) private pure {
        // Left out is what else there is to say about a failure.
        // slither-disable-next-line unused-return
        (address actual, ECDSA.RecoverError failure,) = ECDSA.tryRecoverCalldata(digest, signature);
        if (failure != ECDSA.RecoverError.NoError || actual != signer) revert BadSignature();
    }

    /// @dev `keccak256(abi.encode(p))`: nine words, in memory as in calldata.
    function _hash(Position memory p) private pure returns (bytes32 hash) {
        // SAFETY: reads the struct.
        assembly ("memory-safe") {
            hash := keccak256(p, 288)
        }
    }

    /// @dev `keccak256(abi.encode(f))`: ten words.
    function _hash(Facts memory f) private pure returns (bytes32 hash) {
        // SAFETY: reads the struct.
        assembly ("memory-safe") {
            hash := keccak256(f, 320)
        }
    }

    /// @inheritdoc IChallenges
    function challengeOf(uint256 challenge) external view returns (Challenge memory) {
        return _challenges[challenge];
    }

    /// @inheritdoc IChallenges
    function challengeCount() external view returns (uint256) {
        return _challengeCount;
    }
}
