// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {ReentrancyGuardTransient} from "@openzeppelin/contracts/utils/ReentrancyGuardTransient.sol";
import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";
import {EIP712} from "@openzeppelin/contracts/utils/cryptography/EIP712.sol";
import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {SafeCast} from "@openzeppelin/contracts/utils/math/SafeCast.sol";

import {IChannels} from "../interfaces/IChannels.sol";
import {ICheckpoints} from "../interfaces/ICheckpoints.sol";
import {IJobs} from "../interfaces/IJobs.sol";
import {IStaking} from "../interfaces/IStaking.sol";
import {Lanes} from "../libraries/claims/Lanes.sol";
import {ParameterBounds} from "../libraries/terms/ParameterBounds.sol";
import {TermsBounds} from "../libraries/terms/TermsBounds.sol";
import {Parameters} from "../types/Parameters.sol";
import {JobKind, JobTerms, Offer} from "../types/Types.sol";
import {JobRecords} from "./jobs/JobRecords.sol";

/// @title Jobs
/// @notice See `IJobs`. Here are the moves; what is on record of jobs, and how it is read, is in `JobRecords`.
contract Jobs is JobRecords, EIP712, ReentrancyGuardTransient {
    using Math for uint256;
    using SafeCast for uint256;
    using SafeERC20 for IERC20;

    bytes32 private constant _OFFER_TYPEHASH = keccak256(
        "Offer(uint64 job,bytes32 terms,uint16 stage,uint16 replica,address worker,uint128 pricePerInterval,uint40 expires)"
    );

    /// @notice The token of stake, and of payment where it is not ETH.
    IERC20 public immutable SNO;
    /// @notice Where workers' stake is locked.
    IStaking public immutable STAKING;
    /// @notice Where claims of training jobs are made, and who says how many are final.
    ICheckpoints public immutable CHECKPOINTS;
    /// @notice Who says how many tokens of a serving job are owed.
    IChannels public immutable CHANNELS;
    /// @notice Who convicts.
    address public immutable DISPUTES;
    /// @notice Who says what audits have been done.
    address public immutable AUDITS;

    uint32 private immutable _MIN_CHALLENGE_WINDOW;
    uint32 private immutable _MAX_CHALLENGE_WINDOW;
    uint128 private immutable _MIN_STAKE;
    uint32 private immutable _MIN_STAKE_INTERVALS;
    uint32 private immutable _AUDITS_PER_CLAIM_BPS;
    uint16 private immutable _AUDIT_FEE_BPS;

    // Zero addresses would only make a deployment that does nothing; `script/Deployer.sol` gives real ones.
    // slither-disable-start missing-zero-check
    constructor(
        IERC20 sno,
        IStaking staking,
        ICheckpoints checkpoints,
        IChannels channels,
        address disputes,
        address audits
    ) EIP712("Tensorlink", "1") {
        SNO = sno;
        STAKING = staking;
        CHECKPOINTS = checkpoints;
        CHANNELS = channels;
        DISPUTES = disputes;
        AUDITS = audits;
        Parameters memory p = staking.parameters();
        _MIN_CHALLENGE_WINDOW = p.minChallengeWindow;
        _MAX_CHALLENGE_WINDOW = p.maxChallengeWindow;
        _MIN_STAKE = p.disputeBond;
        _MIN_STAKE_INTERVALS = p.minStakeIntervals;
        _AUDITS_PER_CLAIM_BPS = p.auditsPerClaimBps;
        _AUDIT_FEE_BPS = p.auditFeeBps;
    }

    // slither-disable-end missing-zero-check

    /// @inheritdoc IJobs
    function post(JobTerms calldata terms, uint256 deposit) external payable nonReentrant returns (uint64 job) {
        TermsBounds.check(terms, address(SNO), _MIN_CHALLENGE_WINDOW, _MAX_CHALLENGE_WINDOW, _MIN_STAKE);
        // INVARIANT: the escrow is what was declared, to the wei (P-1).
        if (deposit == 0 || deposit > type(uint128).max) revert InvalidTerms("deposit");
        uint256 value = terms.token == address(0) ? deposit : 0;
        if (msg.value != value) revert WrongDeposit(msg.value, value);
        bytes32 jobKey = _keyOf(terms.continues);

        job = ++_jobCount;
        _jobs[job] = Job({
            user: msg.sender,
            state: State.Posted,
            kind: terms.kind,
            activeAt: 0,
            deadline: 0,
            escrow: deposit.toUint128(),
            auditBudget: 0,
            token: terms.token,
            stages: terms.stages,
            replicas: terms.replicas,
            intervals: terms.intervals,
            stepsPerInterval: terms.stepsPerInterval,
            acceptBy: terms.acceptBy,
            duration: terms.duration,
            challengeWindow: terms.challengeWindow,
            workerStake: terms.workerStake,
            firstStep: terms.firstStep,
            startedAt: 0,
            jobKey: jobKey,
            terms: keccak256(abi.encode(msg.sender, terms))
        });
        _put(_programs[job], terms.programs);
        _put(_initialStates[job], terms.initialStates);
        emit JobPosted(job, msg.sender, deposit, terms);

        if (terms.token != address(0)) SNO.safeTransferFrom(msg.sender, address(this), deposit);
    }

    function _put(mapping(uint16 stage => bytes32 root) storage place, bytes32[] calldata roots) private {
        for (uint16 stage = 0; stage < roots.length; ++stage) {
            place[stage] = roots[stage];
        }
    }

    /// @dev Key of the job to continue; zero if there is none to.
    function _keyOf(uint64 job) private view returns (bytes32) {
        if (job == 0) return 0;
        Job storage record = _jobs[job];
        // INVARIANT: a training is its user's to go on with, once it began (P-38).
        if (record.user != msg.sender || record.startedAt == 0 || record.kind != JobKind.Training) {
            revert InvalidTerms("continues");
        }
        return record.jobKey;
    }

    /// @inheritdoc IJobs
    function accept(uint64 job, Offer[] calldata offers, bytes[] calldata signatures) external {
        Job storage record = _userMoves(job, State.Posted);
        uint256 lanes = uint256(record.stages) * record.replicas;
        // INVARIANT: every lane gets a worker.
        if (offers.length != lanes || signatures.length != lanes) revert OfferMismatch(offers.length);

        record.state = State.Accepted;
        address[] memory workers = new address[](lanes);
        uint256 perInterval = 0;
        for (uint256 i = 0; i < lanes; ++i) {
            _checkOffer(job, record, i, offers[i], signatures[i]);
            _checkStake(record, i, offers[i].pricePerInterval);
            address worker = offers[i].worker;
            // INVARIANT: replicas are held by different keys.
            for (uint256 k = 0; k < i; ++k) {
                if (workers[k] == worker) revert DuplicateWorker(worker);
            }
            workers[i] = worker;
            perInterval += offers[i].pricePerInterval;
            // INVARIANT: a price fits beside its worker; no escrow could cover one that does not.
            _assignments[Lanes.id(job, offers[i].stage, offers[i].replica)] =
                Assignment({worker: worker, convicted: false, price: uint256(offers[i].pricePerInterval).toUint88()});
        }
        uint256 forWork = perInterval * record.intervals;
        uint256 forAudits = _budget(record, perInterval);
        uint256 needed = forWork + forAudits;
        // INVARIANT: whatever becomes final can be paid (P-3).
        if (needed > record.escrow) revert EscrowTooSmall(record.escrow, needed);
        record.auditBudget = forAudits.toUint128();
        emit JobAccepted(job, offers);

        uint256 stake = record.workerStake;
        for (uint256 i = 0; i < lanes; ++i) {
            // Our own contract, which calls nobody; the lanes of a job are few (P-18).
            // slither-disable-next-line calls-loop
            STAKING.lock(workers[i], stake);
        }
    }

    /// @dev Most that audits can take of the escrow: of each lane twice as many as are drawn on the mean, and one, each
    /// of the dearest claim (P-29).
    function _budget(Job storage record, uint256 perInterval) private view returns (uint256) {
        if (_AUDITS_PER_CLAIM_BPS == 0) return 0;
        uint256 units = _unitsOfClaim(record);
        uint256 mean = uint256(record.intervals) * _AUDITS_PER_CLAIM_BPS;
        uint256 audits = (2 * mean).ceilDiv(units * ParameterBounds.WHOLE_BPS) + 1;
        return audits * (perInterval * units * _AUDIT_FEE_BPS / ParameterBounds.WHOLE_BPS);
    }

    /// @dev Most units of work that a claim can be about: an interval, or a text of the greatest length.
    function _unitsOfClaim(Job storage record) private view returns (uint256) {
        return record.kind == JobKind.Serving ? record.stepsPerInterval : 1;
    }

    function _checkStake(Job storage record, uint256 lane, uint256 price) private view {
        // There is no price of ETH here to compare with.
        if (record.token == address(0)) return;
        uint256 needed = price * _unitsOfClaim(record) * _MIN_STAKE_INTERVALS;
        // INVARIANT: no run of false claims is worth its stake (P-30).
        if (record.workerStake < needed) revert StakeTooSmall(lane, needed);
    }

    function _checkOffer(uint64 job, Job storage record, uint256 lane, Offer calldata offer, bytes calldata signature)
        private
        view
    {
        uint256 stages = record.stages;
        bool itsLane = uint256(offer.replica) * stages + offer.stage == lane && offer.stage < stages;
        // INVARIANT: the worker gets the lane it offered for, at its price, while the offer stands; and it works for
        // whom and for what it agreed to, whatever job a reorganisation gave the number to (P-40).
        if (offer.job != job || offer.terms != record.terms || !itsLane) revert OfferMismatch(lane);
        if (block.timestamp > offer.expires) revert OfferExpired(lane);
        // Left out is what else there is to say about a failure.
        // slither-disable-next-line unused-return
        (address signer, ECDSA.RecoverError failure,) =
            ECDSA.tryRecoverCalldata(_hashTypedDataV4(keccak256(abi.encode(_OFFER_TYPEHASH, offer))), signature);
        if (failure != ECDSA.RecoverError.NoError || signer != offer.worker) revert BadOfferSignature(lane);
    }

    /// @inheritdoc IJobs
    function start(uint64 job) external {
        Job storage record = _userMoves(job, State.Accepted);

        uint40 startedAt = block.timestamp.toUint40();
        uint40 deadline = (block.timestamp + record.duration).toUint40();
        bytes32 jobKey = record.jobKey;
        if (jobKey == 0) jobKey = keccak256(abi.encode(block.prevrandao, job));
        record.state = State.Running;
        (record.startedAt, record.activeAt) = (startedAt, startedAt);
        record.deadline = deadline;
        record.jobKey = jobKey;
        emit JobStarted(job, jobKey, deadline);

        if (record.kind == JobKind.Training) _openLanes(job, record, deadline);
    }

    function _openLanes(uint64 job, Job storage record, uint40 deadline) private {
        (uint16 stages, uint16 replicas) = (record.stages, record.replicas);
        bytes32[] memory initialStates = new bytes32[](stages);
        mapping(uint16 stage => bytes32 root) storage registered = _initialStates[job];
        for (uint16 stage = 0; stage < stages; ++stage) {
            initialStates[stage] = registered[stage];
        }
        address[] memory workers = new address[](uint256(stages) * replicas);
        for (uint16 replica = 0; replica < replicas; ++replica) {
            for (uint16 stage = 0; stage < stages; ++stage) {
                workers[uint256(replica) * stages + stage] = _assignments[Lanes.id(job, stage, replica)].worker;
            }
        }
        CHECKPOINTS.open(job, record.intervals, record.challengeWindow, deadline, workers, initialStates);
    }

    /// @dev The job, if the caller is its user, it is in `state` and can still go on towards its start.
    function _userMoves(uint64 job, State state) private view returns (Job storage record) {
        record = _jobs[job];
        // INVARIANT: the transition table of the interface.
        if (record.state != state) revert WrongState(job, record.state);
        // INVARIANT: only the user spends the escrow.
        if (msg.sender != record.user) revert NotUser(msg.sender);
        // INVARIANT: workers know how long their stake waits for a start (P-10).
        if (block.timestamp > record.acceptBy) revert AcceptPeriodOver(record.acceptBy);
    }

    /// @inheritdoc IJobs
    function cancel(uint64 job) external {
        Job storage record = _jobs[job];
        State state = record.state;
        // INVARIANT: the transition table of the interface.
        if (state != State.Posted && state != State.Accepted && state != State.Running) revert WrongState(job, state);
        uint40 limit = state == State.Running ? record.deadline : record.acceptBy;
        // INVARIANT: until its time is over a job is the user's to end (P-10).
        if (msg.sender != record.user && block.timestamp <= limit) revert NotUser(msg.sender);

        if (state == State.Running) {
            _close(job, record, false);
        } else {
            _end(job, record);
            if (state == State.Accepted) _unlockAll(job, record);
        }
    }

    /// @inheritdoc IJobs
    function endIdle(uint64 job, uint16 stage, uint16 replica) external {
        Job storage record = _jobs[job];
        // INVARIANT: the transition table of the interface.
        if (record.state != State.Running) revert WrongState(job, record.state);
        // INVARIANT: only who has a stake in the job ends it.
        if (msg.sender != workerOf(job, stage, replica)) revert NotWorker(msg.sender);
        // Whatever was claimed within two windows may still become final, and be paid.
        uint256 from = record.activeAt + 2 * uint256(record.challengeWindow) + _MAX_CHALLENGE_WINDOW;
        // INVARIANT: a job that goes on is the user's to end (P-41).
        if (block.timestamp < from) revert NotIdle(from.toUint40());

        _close(job, record, false);
    }

    /// @inheritdoc IJobs
    // `Checkpoints` is our own contract and calls nobody.
    // slither-disable-next-line reentrancy-benign,reentrancy-events
    function settle(uint64 job) external {
        Job storage record = _jobs[job];
        State state = record.state;
        // INVARIANT: the transition table of the interface.
        if (state != State.Running && state != State.Closing) revert WrongState(job, state);
        if (record.kind == JobKind.Serving) _checkWindow(job, record, state);
        else _checkClaims(job, record, state);

        if (state == State.Running) CHECKPOINTS.close(job);
        _end(job, record);
        _unlockAll(job, record);
    }

    function _checkWindow(uint64 job, Job storage record, State state) private view {
        // INVARIANT: a serving job is announced to be over before it is (P-20).
        if (state != State.Closing) revert WrongState(job, state);
        // INVARIANT: what is owed can be redeemed for a whole window, and what is redeemed is audited for a whole
        // window (P-20).
        uint256 from = record.deadline;
        (uint16 stages, uint16 replicas, uint256 window) = (record.stages, record.replicas, record.challengeWindow);
        for (uint16 replica = 0; replica < replicas; ++replica) {
            for (uint16 stage = 0; stage < stages; ++stage) {
                // Our own contract, which calls nobody; the lanes of a job are few (P-18).
                // slither-disable-next-line calls-loop
                from = from.max(CHANNELS.redeemedOf(job, stage, replica).redeemedAt + window);
            }
        }
        if (block.timestamp < from) revert WindowOpen(from.toUint40());
    }

    function _checkClaims(uint64 job, Job storage record, State state) private view {
        (uint16 stages, uint16 replicas, uint32 intervals) = (record.stages, record.replicas, record.intervals);
        for (uint16 replica = 0; replica < replicas; ++replica) {
            for (uint16 stage = 0; stage < stages; ++stage) {
                // Our own contract, which calls nobody; the lanes of a job are few (P-18).
                // slither-disable-start calls-loop
                bool pending = state == State.Running
                    ? CHECKPOINTS.laneOf(job, stage, replica).finalized != intervals
                        && !CHECKPOINTS.isTooLate(job, stage, replica)
                    : CHECKPOINTS.hasPending(job, stage, replica);
                // slither-disable-end calls-loop
                // INVARIANT: the escrow stays until every claim is paid or void (P-4).
                if (pending) revert ClaimsPending(stage, replica);
            }
        }
    }

    /// @inheritdoc IJobs
    function collect(address token) external nonReentrant returns (uint256 amount) {
        amount = _credits[msg.sender][token];
        // INVARIANT: no empty events.
        if (amount == 0) revert NothingToCollect();

        delete _credits[msg.sender][token];
        emit Collected(msg.sender, token, amount);

        if (token == address(0)) {
            // Whoever collects may be a contract that needs more gas than `transfer` leaves; the guard is against its
            // coming back.
            // slither-disable-next-line low-level-calls
            (bool done,) = msg.sender.call{value: amount}("");
            // INVARIANT: what was not received is still owed (P-5).
            if (!done) revert TransferFailed();
        } else {
            // Credits are in ETH and SNO only: `token` is SNO.
            SNO.safeTransfer(msg.sender, amount);
        }
    }

    /// @inheritdoc IJobs
    function pay(uint64 job, uint16 stage, uint16 replica, uint32 units) external {
        Job storage record = _jobs[job];
        bool serving = record.kind == JobKind.Serving;
        // INVARIANT: money is earned by final claims (P-2), or by tokens that the user signed for (P-19).
        if (msg.sender != (serving ? address(CHANNELS) : address(CHECKPOINTS))) revert Unauthorized(msg.sender);
        Assignment storage lane = _assignments[Lanes.id(job, stage, replica)];
        // INVARIANT: a convicted lane redeems nothing (P-19). Of a training lane the claims before the convicted one
        // stay good (P-13).
        if (serving && lane.convicted) revert LaneConvicted(stage, replica);
        (address worker, uint256 amount) = (lane.worker, uint256(lane.price) * units);

        // The escrow covers it: `accept` saw to that (P-3); a claim is finalised once, a token paid once.
        record.escrow -= amount.toUint128();
        record.activeAt = block.timestamp.toUint40();
        _credits[worker][record.token] += amount;
        emit Paid(job, worker, stage, replica, units, amount);
    }

    /// @inheritdoc IJobs
    function payAudit(uint64 job, uint16 stage, uint16 replica, uint32 units, address auditor)
        external
        returns (uint256 fee)
    {
        // INVARIANT: audits are paid when they are done.
        if (msg.sender != AUDITS) revert Unauthorized(msg.sender);
        Job storage record = _jobs[job];
        uint256 price = _assignments[Lanes.id(job, stage, replica)].price;
        fee = price * units * _AUDIT_FEE_BPS / ParameterBounds.WHOLE_BPS;
        // INVARIANT: audits take nothing of what work earns (P-3).
        if (fee > record.auditBudget) return 0;

        record.auditBudget -= fee.toUint128();
        record.escrow -= fee.toUint128();
        _credits[auditor][record.token] += fee;
        emit AuditPaid(job, auditor, stage, replica, fee);
    }

    /// @inheritdoc IJobs
    function convict(uint64 job, uint16 stage, uint16 replica)
        external
        returns (address worker, uint256 stake, address user)
    {
        // INVARIANT: a lane is convicted by proof only.
        if (msg.sender != DISPUTES) revert Unauthorized(msg.sender);
        Job storage record = _jobs[job];
        Assignment storage lane = _assignments[Lanes.id(job, stage, replica)];
        worker = lane.worker;
        user = record.user;
        // A lane's lock is taken once, however many of its claims are proved wrong (P-6).
        if (!lane.convicted) {
            lane.convicted = true;
            stake = record.workerStake;
        }
        if (record.state == State.Running) _close(job, record, true);
    }

    function _close(uint64 job, Job storage record, bool convicted) private {
        record.state = State.Closing;
        // INVARIANT: what is owed can be redeemed for a window, and not for ever (P-20).
        if (record.kind == JobKind.Serving) record.deadline = (block.timestamp + record.challengeWindow).toUint40();
        emit JobClosing(job, convicted);
        if (record.kind == JobKind.Training) CHECKPOINTS.close(job);
    }

    /// @dev Returns what is left of the escrow; the last that happens to it.
    function _end(uint64 job, Job storage record) private {
        uint256 refund = record.escrow;
        record.state = State.Settled;
        (record.escrow, record.auditBudget) = (0, 0);
        _credits[record.user][record.token] += refund;
        emit JobSettled(job, refund);
    }

    function _unlockAll(uint64 job, Job storage record) private {
        (uint16 stages, uint16 replicas, uint256 stake) = (record.stages, record.replicas, record.workerStake);
        for (uint16 replica = 0; replica < replicas; ++replica) {
            for (uint16 stage = 0; stage < stages; ++stage) {
                Assignment storage lane = _assignments[Lanes.id(job, stage, replica)];
                // Our own contract, which calls nobody; the lanes of a job are few (P-18).
                // slither-disable-next-line calls-loop
                if (!lane.convicted) STAKING.unlock(lane.worker, stake);
            }
        }
    }
}
