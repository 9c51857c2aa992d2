// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {ReentrancyGuardTransient} from "@openzeppelin/contracts/utils/ReentrancyGuardTransient.sol";
import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";
import {SafeCast} from "@openzeppelin/contracts/utils/math/SafeCast.sol";

import {IAudits} from "../interfaces/IAudits.sol";
import {IBeacon} from "../interfaces/IBeacon.sol";
import {IChannels} from "../interfaces/IChannels.sol";
import {ICheckpoints} from "../interfaces/ICheckpoints.sol";
import {IDisputes} from "../interfaces/IDisputes.sol";
import {IJobs} from "../interfaces/IJobs.sol";
import {IStaking} from "../interfaces/IStaking.sol";
import {LaneId, Lanes} from "../libraries/claims/Lanes.sol";
import {Merkle} from "../libraries/proofs/Merkle.sol";
import {Bounties} from "../libraries/terms/Bounties.sol";
import {ParameterBounds} from "../libraries/terms/ParameterBounds.sol";
import {AuditAnswer, AuditedClaim} from "../types/Audit.sol";
import {Parameters} from "../types/Parameters.sol";
import {Claim, JobKind, StepStatement} from "../types/Types.sol";
import {Channels} from "./Channels.sol";
import {Checkpoints} from "./Checkpoints.sol";
import {Disputes} from "./Disputes.sol";
import {Jobs} from "./Jobs.sol";
import {Staking} from "./Staking.sol";
import {Circle} from "./audits/Circle.sol";

/// @title Audits
/// @notice See `IAudits`.
contract Audits is IAudits, ReentrancyGuardTransient {
    using SafeCast for uint256;
    using SafeERC20 for IERC20;

    /// @dev `word`: of what was sealed, then of the answer: the upper 26 bytes of the hash, so that it shares a slot
    /// with the rest. `sealedAt`: when, if that can bring a share; 0 once it is paid.
    struct Audit {
        bytes26 word;
        uint40 sealedAt;
        State state;
        address accuser;
    }

    /// @dev How many answers were sealed about a lane lately: in the running span, which is as long as the challenge
    /// window and began at `since`, and in the one before. Whoever has sealed about a claim that is neither final nor
    /// void is among them. Once the lane is convicted it is closed: `running` has all, and `since` is when the earlier
    /// of the spans began.
    struct Seals {
        uint40 since;
        uint40 before;
        uint40 running;
        bool closed;
    }

    /// @dev How many answers an auditor has ever sealed and shown. Two counts, so that the slot is written anew only
    /// once.
    struct Answers {
        uint128 committed;
        uint128 shown;
    }

    /// @notice The token of shares.
    IERC20 public immutable SNO;
    /// @notice Where validators' collateral is.
    IStaking public immutable STAKING;
    /// @notice Where terms and workers stand, and what pays.
    IJobs public immutable JOBS;
    /// @notice Where claims stand.
    ICheckpoints public immutable CHECKPOINTS;
    /// @notice Where redeemed epochs of receipts stand.
    IChannels public immutable CHANNELS;
    /// @notice What tells that an answer is wrong.
    IDisputes public immutable DISPUTES;
    /// @notice What draws.
    IBeacon public immutable BEACON;

    uint256 private immutable _AUDITS_PER_CLAIM_BPS;
    uint256 private immutable _PENALTY;
    uint256 private immutable _DISPUTE_CLOCK;
    uint256 private immutable _BOUNTY_BPS;

    mapping(LaneId lane => Seals seals) private _seals;
    mapping(address auditor => Answers answers) private _answers;
    mapping(bytes32 claimId => mapping(address auditor => Audit audit)) private _audits;

    /// @dev The last contract of a deployment: it looks whether the circle is closed.
    constructor(
        IStaking staking,
        IJobs jobs,
        ICheckpoints checkpoints,
        IChannels channels,
        IDisputes disputes,
        IBeacon beacon
    ) {
        STAKING = staking;
        JOBS = jobs;
        CHECKPOINTS = checkpoints;
        CHANNELS = channels;
        DISPUTES = disputes;
        BEACON = beacon;
        Parameters memory p = staking.parameters();
        _AUDITS_PER_CLAIM_BPS = p.auditsPerClaimBps;
        _PENALTY = uint256(p.validatorCollateral) * p.auditPenaltyBps / ParameterBounds.WHOLE_BPS;
        _DISPUTE_CLOCK = p.disputeClock;
        _BOUNTY_BPS = p.bountyBps;
        SNO = Staking(address(staking)).SNO();
        Circle.check(
            Circle.Contracts({
                staking: Staking(address(staking)),
                jobs: Jobs(address(jobs)),
                checkpoints: Checkpoints(address(checkpoints)),
                channels: Channels(address(channels)),
                disputes: Disputes(address(disputes)),
                audits: address(this)
            })
        );
    }

    /// @inheritdoc IAudits
    function commit(AuditedClaim calldata audited, bytes32 sealedAnswer) external {
        (bytes32 claimId, IJobs.Audited memory job) = _known(audited);
        // INVARIANT: nobody answers once an answer can have been seen.
        _checkTime(audited, job, 0, 1);
        // INVARIANT: nobody is paid for what is decided.
        _checkNotVoid(audited.claim, job);
        // INVARIANT: nobody chooses what it audits.
        if (!isDrawn(claimId, audited.fixedAt, msg.sender)) revert NotDrawn(msg.sender);
        Audit storage audit = _audits[claimId][msg.sender];
        // INVARIANT: one answer.
        if (audit.state != State.None) revert WrongState(audit.state);

        (audit.word, audit.state) = (_cut(sealedAnswer), State.Sealed);
        ++_answers[msg.sender].committed;
        LaneId lane = _laneOf(audited.claim);
        Seals memory seals = _runningSeals(lane, job.challengeWindow);
        // INVARIANT: nobody joins those who share (P-45).
        if (!seals.closed) {
            ++seals.running;
            _seals[lane] = seals;
            audit.sealedAt = block.timestamp.toUint40();
        }
        emit AuditSealed(claimId, msg.sender);
    }

    /// @dev The lane's seals, in the spans as they are now. Once it is closed, as it was closed.
    function _runningSeals(LaneId lane, uint256 window) private view returns (Seals memory seals) {
        seals = _seals[lane];
        uint256 spans = (block.timestamp - seals.since) / window;
        if (seals.closed || spans == 0) return seals;
        (seals.before, seals.running) = (spans == 1 ? seals.running : 0, 0);
        seals.since = (seals.since + spans * window).toUint40();
    }

    /// @inheritdoc IAudits
    function closeSeals(uint64 job, uint16 stage, uint16 replica) external returns (bool any) {
        // INVARIANT: what is shared is what a conviction has set aside.
        if (msg.sender != address(DISPUTES)) revert Unauthorized(msg.sender);
        LaneId lane = Lanes.id(job, stage, replica);
        // So it is for most lanes: a conviction without auditors costs little more.
        if (_seals[lane].since == 0) return false;
        uint32 window = JOBS.auditedOf(job).challengeWindow;
        Seals memory seals = _runningSeals(lane, window);
        seals.running += seals.before;
        any = seals.running > 0;
        if (!any) return false;
        (seals.since, seals.before, seals.closed) = (seals.since - window, 0, true);
        _seals[lane] = seals;
    }

    /// @inheritdoc IAudits
    function reveal(AuditedClaim calldata audited, AuditAnswer calldata answer, bytes32 salt) external {
        (bytes32 claimId, IJobs.Audited memory job) = _known(audited);
        // INVARIANT: an answer that nobody can be accused for agrees with the worker's (P-32).
        if (job.kind == JobKind.Serving) revert WrongStatement();
        _reveal(audited, claimId, job, answer, salt);
    }

    /// @inheritdoc IAudits
    function revealConfirmed(
        AuditedClaim calldata audited,
        StepStatement calldata statement,
        bytes calldata signature,
        bytes32 salt
    ) external {
        (bytes32 claimId, IJobs.Audited memory job) = _known(audited);
        _checkStatement(claimId, audited.claim, job, statement, signature);
        _reveal(audited, claimId, job, _answerOf(statement), salt);
    }

    // `Jobs` is our own contract and calls nobody.
    // slither-disable-next-line reentrancy-events
    function _reveal(
        AuditedClaim calldata audited,
        bytes32 claimId,
        IJobs.Audited memory job,
        AuditAnswer memory answer,
        bytes32 salt
    ) private {
        // INVARIANT: no answer is shown while another can be made.
        _checkTime(audited, job, 1, 2);
        _show(claimId, answer, salt);
        Claim calldata claim = audited.claim;
        uint32 units = job.kind == JobKind.Serving ? answer.step : 1;
        uint256 fee = JOBS.payAudit(claim.job, claim.stage, claim.replica, units, msg.sender);
        emit AuditRevealed(claimId, msg.sender, claim.job, answer, fee);
    }

    function _show(bytes32 claimId, AuditAnswer memory answer, bytes32 salt) private {
        Audit storage audit = _audits[claimId][msg.sender];
        if (audit.state != State.Sealed) revert WrongState(audit.state);
        // INVARIANT: the answer is the auditor's own, from before any was shown.
        bytes32 sealedAnswer = keccak256(abi.encode(claimId, answer, msg.sender, salt));
        if (audit.word != _cut(sealedAnswer)) revert WrongAnswer();

        (audit.word, audit.state) = (_wordOf(answer), State.Revealed);
        ++_answers[msg.sender].shown;
    }

    /// @inheritdoc IAudits
    function revealUnpaid(Claim calldata claim, AuditAnswer calldata answer, bytes32 salt) external {
        // At any time, and over a receipt without its worker's word: it costs nobody anything, and shows no more than
        // the auditor could tell anyway.
        bytes32 claimId = CHECKPOINTS.claimId(claim);
        _show(claimId, answer, salt);
        emit AuditRevealed(claimId, msg.sender, claim.job, answer, 0);
    }

    /// @inheritdoc IAudits
    function forfeit(Claim calldata claim) external nonReentrant {
        bytes32 claimId = CHECKPOINTS.claimId(claim);
        Audit storage audit = _audits[claimId][msg.sender];
        if (audit.state != State.Sealed) revert WrongState(audit.state);
        ++_answers[msg.sender].shown;
        _penalise(claimId, msg.sender, audit, address(0), JOBS.stakeOf(claim.job));
    }

    /// @inheritdoc IAudits
    function payShare(Claim calldata claim, address auditor) external nonReentrant {
        bytes32 claimId = CHECKPOINTS.claimId(claim);
        uint256 amount = shareOf(claim, auditor);
        if (amount == 0) revert NothingToShare();
        // INVARIANT: one share for each answer.
        _audits[claimId][auditor].sealedAt = 0;
        emit AuditorShared(claimId, auditor, claim.job, amount);
        SNO.safeTransfer(auditor, amount);
    }

    /// @inheritdoc IAudits
    function shareOf(Claim calldata claim, address auditor) public view returns (uint256) {
        Audit storage audit = _audits[CHECKPOINTS.claimId(claim)][auditor];
        Seals memory seals = _seals[_laneOf(claim)];
        // INVARIANT: who shares had sealed before the conviction …
        if (!seals.closed || audit.sealedAt < seals.since) return 0;
        // INVARIANT: … and has shown its answer, which nobody can be penalised for any more by the worker's word.
        bool shown = audit.state == State.Revealed
            || (audit.state == State.Accused
                && DISPUTES.isConvicted(claim.job, claim.stage, claim.replica, claim.interval));
        if (!shown) return 0;
        // Left out is the finder's half.
        // slither-disable-next-line unused-return
        (, uint256 auditors) = Bounties.halves(JOBS.stakeOf(claim.job), _BOUNTY_BPS);
        // Rounded down; what is left over, and what nobody claims, stays here for good.
        return auditors / seals.running;
    }

    /// @inheritdoc IAudits
    function sealedBy(address auditor) external view returns (uint256) {
        Answers memory answers = _answers[auditor];
        return answers.committed - answers.shown;
    }

    /// @inheritdoc IAudits
    function accuse(
        AuditedClaim calldata audited,
        address auditor,
        StepStatement calldata statement,
        bytes calldata signature
    ) external {
        (bytes32 claimId, IJobs.Audited memory job) = _known(audited);
        // INVARIANT: a worker that can be made to say nothing more accuses nobody (P-32).
        if (job.kind == JobKind.Serving) revert WrongStatement();
        _checkTime(audited, job, 1, 3);
        _checkNotVoid(audited.claim, job);
        // INVARIANT: who accuses has something to lose (P-32): a convicted lane has not.
        if (JOBS.isConvicted(audited.claim.job, audited.claim.stage, audited.claim.replica)) revert ClaimIsVoid();
        Audit storage audit = _audits[claimId][auditor];
        if (audit.state != State.Revealed) revert WrongState(audit.state);
        _checkStatement(claimId, audited.claim, job, statement, signature);
        // INVARIANT: what the worker says, too, accuses nobody.
        if (_wordOf(_answerOf(statement)) == audit.word) revert WrongStatement();

        (audit.state, audit.accuser) = (State.Accused, statement.auditor);
        emit AuditorAccused(claimId, auditor, statement, signature);
    }

    /// @dev What the claim's worker says about its last step; of a receipt, about a text of any length.
    function _checkStatement(
        bytes32 claimId,
        Claim calldata claim,
        IJobs.Audited memory job,
        StepStatement calldata statement,
        bytes calldata signature
    ) private view {
        bool last = job.kind == JobKind.Serving
            ? statement.step > 0 && statement.step <= job.stepsPerInterval
            : statement.step == (uint256(claim.interval) + 1) * job.stepsPerInterval - 1;
        // INVARIANT: answers are compared about the same step of the same claim.
        if (statement.claimId != claimId || !last) revert WrongStatement();
        bytes32 digest = DISPUTES.statementDigest(statement);
        // Left out is what else there is to say about a failure.
        // slither-disable-next-line unused-return
        (address signer, ECDSA.RecoverError failure,) = ECDSA.tryRecoverCalldata(digest, signature);
        // INVARIANT: what counts against or for an auditor is a word that convicts who gave it, if it is wrong.
        bool signed =
            failure == ECDSA.RecoverError.NoError && signer == JOBS.workerOf(claim.job, claim.stage, claim.replica);
        if (!signed) revert WrongStatement();
    }

    /// @inheritdoc IAudits
    function penalise(Claim calldata claim, address auditor) external nonReentrant {
        // It need not be on record any more: nobody is accused over a claim that was not.
        bytes32 claimId = CHECKPOINTS.claimId(claim);
        Audit storage audit = _audits[claimId][auditor];
        if (audit.state != State.Accused) revert WrongState(audit.state);
        // INVARIANT: who was right has had the time to show it (P-32).
        if (CHECKPOINTS.laneOf(claim.job, claim.stage, claim.replica).finalized <= claim.interval) revert NotFinal();

        _penalise(claimId, auditor, audit, audit.accuser, JOBS.stakeOf(claim.job));
    }

    /// @inheritdoc IAudits
    function penaliseCopy(bytes calldata proof, address auditor) external nonReentrant {
        (uint64 job, StepStatement memory wrong) = DISPUTES.refutes(proof);
        Audit storage audit = _audits[wrong.claimId][auditor];
        if (audit.state != State.Revealed && audit.state != State.Accused) revert WrongState(audit.state);
        // INVARIANT: one's own answer, and nothing else, convicts an auditor (P-32).
        if (_wordOf(_answerOf(wrong)) != audit.word) revert WrongAnswer();

        _penalise(wrong.claimId, auditor, audit, wrong.auditor, JOBS.stakeOf(job));
    }

    // The amount is what is left to be taken; `Staking` is our own contract, and both callers are guarded.
    // slither-disable-next-line reentrancy-events
    function _penalise(bytes32 claimId, address auditor, Audit storage audit, address accuser, uint256 stake) private {
        audit.state = State.Penalised;
        // INVARIANT: who frames an auditor risks as much as it could win (P-32).
        uint256 amount = STAKING.penalise(auditor, _PENALTY < stake ? _PENALTY : stake, accuser);
        emit AuditorPenalised(claimId, auditor, accuser, amount);
    }

    /// @inheritdoc IAudits
    function isDrawn(bytes32 claimId, uint256 fixedAt, address auditor) public view returns (bool) {
        uint256 since = STAKING.validatorSince(auditor);
        // INVARIANT: nobody becomes a validator because it would be drawn.
        if (since == 0 || since >= fixedAt) return false;
        uint64 period = BEACON.periodAfter(fixedAt);
        bytes32 seed = BEACON.seedOf(period);
        if (seed == 0) revert NoSeed(period);
        // A share of 2^128.
        uint256 ticket = uint256(keccak256(abi.encode(seed, claimId, auditor))) >> 128;
        // INVARIANT: who makes and unmakes validators once the claim is fixed draws nobody anew, and pushes nobody out:
        // they share the draw with those who were validators before it.
        uint256 count = STAKING.validatorCountBefore(fixedAt);
        return ticket * ParameterBounds.WHOLE_BPS * count < _AUDITS_PER_CLAIM_BPS << 128;
    }

    /// @inheritdoc IAudits
    function stateOf(bytes32 claimId, address auditor) external view returns (State) {
        return _audits[claimId][auditor].state;
    }

    /// @dev Id of a claim that is fixed, and its job.
    function _known(AuditedClaim calldata audited) private view returns (bytes32 claimId, IJobs.Audited memory job) {
        Claim calldata claim = audited.claim;
        job = JOBS.auditedOf(claim.job);
        claimId = CHECKPOINTS.claimId(claim);
        bool known;
        if (job.kind == JobKind.Serving) {
            bytes32 epoch = CHANNELS.epochOf(claim.job, claim.stage, claim.replica, audited.epoch);
            // The list's length needs no check: nothing but a claim's id is a leaf that a claim has (C-4).
            uint256 count = 1 << (audited.siblings.length & 31);
            // INVARIANT: no proof is refused for the form of the receipt (C-12), so that what is confirmed falsely
            // convicts (P-32).
            known = claim.parentState == 0 && claim.newState == 0
                && epoch == keccak256(abi.encode(audited.receipts, audited.fixedAt))
                && Merkle.isMember(audited.receipts, claimId, audited.index, count, audited.siblings);
        } else {
            known = CHECKPOINTS.isRecorded(claim, audited.fixedAt);
        }
        // INVARIANT: what is audited is on chain, since when it says.
        if (!known) revert UnknownClaim();
    }

    /// @dev Seconds from when a claim is fixed until the `n`-th quarter is over. None is longer than the clock of a
    /// challenge: so long a worker that is challenged at once need not say anything.
    function _after(IJobs.Audited memory job, uint256 n) private view returns (uint256) {
        uint256 longest = 4 * _DISPUTE_CLOCK;
        return n * (job.challengeWindow < longest ? job.challengeWindow : longest) / 4;
    }

    /// @dev INVARIANT: moves are made in their quarters of the window, after the `from`-th and until the `to`-th
    /// is over.
    function _checkTime(AuditedClaim calldata audited, IJobs.Audited memory job, uint256 from, uint256 to)
        private
        view
    {
        (uint256 start, uint256 end) = (audited.fixedAt + _after(job, from), audited.fixedAt + _after(job, to));
        if (block.timestamp < start || block.timestamp >= end) revert OutOfTime(start, end);
    }

    function _checkNotVoid(Claim calldata claim, IJobs.Audited memory job) private view {
        bool void = job.kind == JobKind.Serving
            ? job.state == IJobs.State.Settled || JOBS.isConvicted(claim.job, claim.stage, claim.replica)
            : DISPUTES.isConvicted(claim.job, claim.stage, claim.replica, claim.interval);
        if (void) revert ClaimIsVoid();
    }

    function _answerOf(StepStatement memory statement) private pure returns (AuditAnswer memory) {
        return AuditAnswer({step: statement.step, preState: statement.preState, trace: statement.trace});
    }

    function _laneOf(Claim calldata claim) private pure returns (LaneId) {
        return Lanes.id(claim.job, claim.stage, claim.replica);
    }

    function _wordOf(AuditAnswer memory answer) private pure returns (bytes26) {
        return _cut(keccak256(abi.encode(answer)));
    }

    function _cut(bytes32 hash) private pure returns (bytes26) {
        // SAFETY: nobody finds two of 26 bytes that are alike either.
        // forge-lint: disable-next-line(unsafe-typecast)
        return bytes26(hash);
    }
}
