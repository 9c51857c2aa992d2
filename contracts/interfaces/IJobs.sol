// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {JobKind, JobTerms} from "../types/Types.sol";
import {IJobOffers} from "./jobs/IJobOffers.sol";
import {IJobPayments} from "./jobs/IJobPayments.sol";

/// @title Jobs: terms, escrow, assignments
/// @notice A job is posted with its escrow, given to workers by their signed offers, started, and in the end settled. A
/// lane is a pair (stage, replica). The worker of a lane is paid for each final claim or, in a serving job, for each
/// token of a redeemed voucher. All payouts are pulled with `collect`.
///
/// | state | move | next |
/// |---|---|---|
/// | Posted | accept (user, all lanes in one call) | Accepted |
/// | Posted, Accepted | cancel (user; anyone after `acceptBy`) | Settled |
/// | Accepted | start (user) | Running |
/// | Running | cancel (user; anyone after the deadline), endIdle (a worker; P-41), conviction of a lane | Closing |
/// | Running | settle (training: anyone, all claims of all lanes final) | Settled |
/// | Closing | settle (training: anyone, no claim pending; serving: anyone, from `deadline` on, once each lane's last redemption is a challenge window old) | Settled |
///
/// A serving job has no claims on chain. It runs until it is closed, which sets `deadline` one challenge window ahead.
/// Vouchers are redeemed while it runs and before that `deadline`, so it can be settled at the latest two windows after
/// it was closed. Receipts convict until it is settled.
///
/// Here is how a job begins and ends, and what is on record of it. How its lanes get their workers is in `IJobOffers`,
/// what they are paid is in `IJobPayments`.
interface IJobs is IJobOffers, IJobPayments {
    /// @dev `None` is a job that does not exist.
    enum State {
        None,
        Posted,
        Accepted,
        Running,
        Closing,
        Settled
    }

    /// @dev A job: what its terms say, and where it stands.
    struct Job {
        /// Posted the job, and pays for it.
        address user;
        /// Where the job stands (table above).
        State state;
        /// Training or serving.
        JobKind kind;
        /// When it last paid a lane, or started, as a Unix timestamp; 0 before (P-41).
        uint40 activeAt;
        /// Last timestamp at which a claim can be committed. Of a serving job: after it anyone may close the job; once
        /// the job is closing, the first timestamp at which nothing is redeemed any more. 0 before the start.
        uint40 deadline;
        /// What is left of the deposit, in wei of `token`.
        uint128 escrow;
        /// How much of the escrow audits can still take, in wei of `token`.
        uint128 auditBudget;
        /// What the job pays in: SNO, or 0 for ETH.
        address token;
        /// Number of stages.
        uint16 stages;
        /// Number of replicas of each stage.
        uint16 replicas;
        /// Number of intervals; of a serving job, the most tokens that a lane is paid for.
        uint32 intervals;
        /// Steps of an interval; of a serving job, the most tokens of a text.
        uint32 stepsPerInterval;
        /// Last timestamp at which the job can be accepted and started.
        uint40 acceptBy;
        /// Seconds from the start to the deadline.
        uint40 duration;
        /// The challenge window, in seconds: of claims (P-8), or of redemptions (P-20).
        uint32 challengeWindow;
        /// What a worker locks for each lane, in wei of SNO.
        uint128 workerStake;
        /// Steps that came before the job's own, in the jobs that it continues (P-38).
        uint32 firstStep;
        /// When it started, as a Unix timestamp; 0 before.
        uint40 startedAt;
        /// Key of random draws (C-10). Zero until the job starts, unless it continues another (P-38).
        bytes32 jobKey;
        /// Hash of its user and its terms, which offers name (P-40).
        bytes32 terms;
    }

    /// @dev What moves of audits depend on.
    struct Audited {
        /// Where the job stands.
        State state;
        /// Training or serving.
        JobKind kind;
        /// As in `JobTerms`.
        uint32 stepsPerInterval;
        /// As in `JobTerms`.
        uint32 challengeWindow;
    }

    /// @dev What a lane has to compute, and who answers for it.
    struct Duty {
        /// Where the job stands.
        State state;
        /// Training or serving.
        JobKind kind;
        /// As in `JobTerms`.
        uint32 stepsPerInterval;
        /// As in `JobTerms`.
        uint32 firstStep;
        /// Key of random draws (C-10).
        bytes32 jobKey;
        /// As `programOf` gives it.
        bytes32 program;
        /// Holds the lane.
        address worker;
    }

    /// @notice A job was posted, and its deposit is in escrow.
    /// @param job id of the job
    /// @param user who posted it
    /// @param deposit wei of the job's token
    /// @param terms the job's terms
    event JobPosted(uint64 indexed job, address indexed user, uint256 deposit, JobTerms terms);

    /// @notice A job runs.
    /// @param job id of the job
    /// @param jobKey key of random draws (C-10)
    /// @param deadline as in `Job`
    event JobStarted(uint64 indexed job, bytes32 jobKey, uint40 deadline);

    /// @notice A job takes no more claims; a serving job's lanes have one challenge window to redeem.
    /// @param job id of the job
    /// @param convicted whether a conviction closed it
    event JobClosing(uint64 indexed job, bool convicted);

    /// @notice A job is over.
    /// @param job id of the job
    /// @param refund credited to the user, in wei of the job's token
    event JobSettled(uint64 indexed job, uint256 refund);

    /// @notice The job's state does not allow the move.
    /// @param job id of the job
    /// @param state its state
    error WrongState(uint64 job, State state);

    /// @notice Only the job's user may do this, or only the user may do it yet.
    /// @param caller who called
    error NotUser(address caller);

    /// @notice A term is out of bounds.
    /// @param field name of the first such field
    error InvalidTerms(string field);

    /// @notice `msg.value` is wrong.
    /// @param sent `msg.value`
    /// @param declared what it has to be: the deposit for ETH, 0 for SNO
    error WrongDeposit(uint256 sent, uint256 declared);

    /// @notice The time to accept and start the job is over.
    /// @param acceptBy last timestamp of it
    error AcceptPeriodOver(uint40 acceptBy);

    /// @notice A lane has claims that are not decided.
    /// @param stage the lane's stage
    /// @param replica the lane's replica
    error ClaimsPending(uint16 stage, uint16 replica);

    /// @notice A serving job that is closing cannot be settled yet.
    /// @param from first timestamp at which it can, if nothing more is redeemed
    error WindowOpen(uint40 from);

    /// @notice The job has not been idle for long enough.
    /// @param from first timestamp at which a worker may end it, if nothing more is paid
    error NotIdle(uint40 from);

    /// @notice Only who holds the lane may do this.
    /// @param caller who called
    error NotWorker(address caller);

    /// @notice Only another contract of the deployment may call this.
    /// @param caller who called
    error Unauthorized(address caller);

    /// @notice Registers a job and takes its deposit into escrow. Anyone may call, and becomes the job's user.
    /// Requirements: terms within the bounds of `TermsBounds`; for SNO an allowance; a job that is continued is a
    /// training job of the caller that was started (P-38).
    /// @param terms the job's terms
    /// @param deposit wei of `terms.token`; for ETH it has to be `msg.value`
    /// @return job id of the job
    function post(JobTerms calldata terms, uint256 deposit) external payable returns (uint64 job);

    /// @notice Starts an accepted job: fixes the job key (C-10), unless the job takes over another's, and the deadline,
    /// and opens the lanes for claims. Only the user, by `acceptBy`.
    /// @param job id of the job
    function start(uint64 job) external;

    /// @notice Ends a job. The user may call; anyone may after `acceptBy`, or, if the job runs, after its deadline.
    /// Effects: before the start, returns the whole escrow and releases the stakes. While the job runs, closes it to
    /// new claims; committed claims, and in a serving job signed vouchers, stay payable.
    /// @param job id of the job
    function cancel(uint64 job) external;

    /// @notice Closes a running job that has paid no lane for two challenge windows and `maxChallengeWindow` more, as
    /// `cancel` does: nobody's stake waits for a user that has nothing to do (P-41). Only a worker of the job.
    /// @param job id of the job
    /// @param stage stage of the caller's lane
    /// @param replica replica of the caller's lane
    function endIdle(uint64 job, uint16 stage, uint16 replica) external;

    /// @notice Returns the unearned rest of the escrow to the user and unlocks the workers' stake. Anyone may call.
    /// Requirements: no claim is pending; a serving job is closing, has reached its `deadline`, and a challenge window
    /// has passed since the last redemption.
    /// @param job id of the job
    function settle(uint64 job) external;

    /// @notice Closes the job because a lane was convicted, and uses up that lane's lock. A serving job that runs is
    /// closed as by `cancel`. Only `Disputes`.
    /// @param job id of the job
    /// @param stage the lane's stage
    /// @param replica the lane's replica
    /// @return worker the lane's worker
    /// @return stake what the lane had locked, in wei of SNO; 0 if it was convicted before
    /// @return user the job's user
    function convict(uint64 job, uint16 stage, uint16 replica)
        external
        returns (address worker, uint256 stake, address user);

    /// @notice A job.
    /// @param job id of the job
    /// @return the job; all zero if there is none of this id
    function jobOf(uint64 job) external view returns (Job memory);

    /// @notice Who posted a job.
    /// @param job id of the job
    /// @return its user; zero if there is no such job
    function userOf(uint64 job) external view returns (address);

    // The next six read what they return of a job and no more: `jobOf` reads eight slots, for 20,000 gas.

    /// @notice What a lane has to compute, and who has to.
    /// @param job id of the job
    /// @param stage the lane's stage
    /// @param replica the lane's replica
    /// @return the duty; before the job is accepted, all zero but for what its terms and state say
    function dutyOf(uint64 job, uint16 stage, uint16 replica) external view returns (Duty memory);

    /// @notice What moves of audits depend on.
    /// @param job id of the job
    /// @return of the job; all zero if there is none of this id
    function auditedOf(uint64 job) external view returns (Audited memory);

    /// @notice Where a job stands.
    /// @param job id of the job
    /// @return its state; `None` if there is no such job
    function stateOf(uint64 job) external view returns (State);

    /// @notice Two of a job's terms.
    /// @param job id of the job
    /// @return stepsPerInterval steps of an interval; of a serving job, the most tokens of a text
    /// @return challengeWindow the challenge window, in seconds
    function termsOf(uint64 job) external view returns (uint32 stepsPerInterval, uint32 challengeWindow);

    /// @notice What payment of a serving job depends on; all zero if the job is none.
    /// @param job id of the job
    /// @return user who pays
    /// @return state where the job stands
    /// @return deadline as in `Job`
    /// @return intervals the most tokens that a lane is paid for
    function servingOf(uint64 job) external view returns (address user, State state, uint40 deadline, uint32 intervals);

    /// @notice What a worker locks for each lane of a job.
    /// @param job id of the job
    /// @return wei of SNO; zero if there is no such job
    function stakeOf(uint64 job) external view returns (uint128);

    /// @notice Program of a stage.
    /// @param job id of the job
    /// @param stage the stage
    /// @return its program root (C-5); of a serving job, the list root of its program roots (C-13); zero if there is
    /// none
    function programOf(uint64 job, uint16 stage) external view returns (bytes32);

    /// @notice State that a stage starts from.
    /// @param job id of the job
    /// @param stage the stage
    /// @return its state root (C-6); zero if there is none
    function initialStateOf(uint64 job, uint16 stage) external view returns (bytes32);

    /// @notice Who holds a lane.
    /// @param job id of the job
    /// @param stage the lane's stage
    /// @param replica the lane's replica
    /// @return the worker; zero before the job is accepted
    function workerOf(uint64 job, uint16 stage, uint16 replica) external view returns (address);

    /// @notice What a lane earns.
    /// @param job id of the job
    /// @param stage the lane's stage
    /// @param replica the lane's replica
    /// @return price of a claim, or of a token of a serving job, in wei of the job's token
    function priceOf(uint64 job, uint16 stage, uint16 replica) external view returns (uint128);

    /// @notice Whether a lane was ever convicted.
    /// @param job id of the job
    /// @param stage the lane's stage
    /// @param replica the lane's replica
    /// @return whether it was
    function isConvicted(uint64 job, uint16 stage, uint16 replica) external view returns (bool);

    /// @notice Number of jobs ever posted; their ids run from 1 to it.
    /// @return the number
    function jobCount() external view returns (uint64);
}
