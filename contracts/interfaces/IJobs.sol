// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {JobKind, JobTerms, Offer} from "../types/Types.sol";

/// @title Jobs: terms, escrow, assignments
/// @notice A job is posted with its escrow, given to workers by their signed offers, started, and ends settled. A lane is
/// (stage, replica). Payment is per final claim, or in a serving job per token of a redeemed voucher, to the worker of the lane. All
/// payouts are pulled with `collect`.
///
/// | state | move | next |
/// |---|---|---|
/// | Posted | accept (user, all lanes in one call) | Accepted |
/// | Posted, Accepted | cancel (user; anyone after `acceptBy`) | Settled |
/// | Accepted | start (user) | Running |
/// | Running | cancel (user; anyone after the deadline), conviction of a lane | Closing |
/// | Running | settle (training: anyone, all claims of all lanes final) | Settled |
/// | Closing | settle (training: anyone, no claim pending; serving: anyone, from `deadline` on, once each lane's last redemption is a challenge window old) | Settled |
///
/// A serving job has no claims on chain. It runs until it is closed, which sets `deadline` one challenge window ahead. Vouchers are redeemed
/// while it runs and before that `deadline`, so that it can be settled two windows after it was closed at the latest. Until it is settled receipts convict.
interface IJobs {
    /// @dev 0 is a job that does not exist.
    enum State {
        None,
        Posted,
        Accepted,
        Running,
        Closing,
        Settled
    }

    /// @dev `escrow` is what is left of the deposit, wei of `token`; `auditBudget`, how much of that audits can still take. `deadline` is the last time a claim can be committed; of a serving
    /// job, when anyone may close it, and once it is closing, from when on nothing is redeemed any more. `jobKey` is zero until the job starts, unless it
    /// continues another (P-38).
    struct Job {
        address user;
        State state;
        JobKind kind;
        uint40 startedAt;
        uint40 deadline;
        uint128 escrow;
        uint128 auditBudget;
        address token;
        uint16 stages;
        uint16 replicas;
        uint32 intervals;
        uint32 stepsPerInterval;
        uint40 acceptBy;
        uint40 duration;
        uint32 challengeWindow;
        uint128 workerStake;
        uint32 firstStep;
        bytes32 jobKey;
    }

    /// @dev What a lane computes and who answers for it: of its job, where it stands, its kind, `JobTerms.stepsPerInterval`, `JobTerms.firstStep`
    /// and the key; `program` as `programOf` has it.
    struct Duty {
        State state;
        JobKind kind;
        uint32 stepsPerInterval;
        uint32 firstStep;
        bytes32 jobKey;
        bytes32 program;
        address worker;
    }

    event JobPosted(uint64 indexed job, address indexed user, uint256 deposit, JobTerms terms);
    event JobAccepted(uint64 indexed job, Offer[] offers);
    event JobStarted(uint64 indexed job, bytes32 jobKey, uint40 deadline);
    event JobClosing(uint64 indexed job, bool convicted);
    event JobSettled(uint64 indexed job, uint256 refund);
    event Paid(uint64 indexed job, address indexed worker, uint16 stage, uint16 replica, uint32 units, uint256 amount);
    event AuditPaid(uint64 indexed job, address indexed auditor, uint16 stage, uint16 replica, uint256 amount);
    event Collected(address indexed account, address indexed token, uint256 amount);

    error WrongState(uint64 job, State state);
    error NotUser(address caller);
    error InvalidTerms(string field);
    /// @dev `declared`: what `msg.value` must be: the deposit for ETH, 0 for SNO.
    error WrongDeposit(uint256 sent, uint256 declared);
    error OfferExpired(uint256 index);
    /// @dev Offer `index` is for another job or lane; or `index` offers were given where the job has another number of lanes.
    error OfferMismatch(uint256 index);
    error BadOfferSignature(uint256 index);
    error DuplicateWorker(address worker);
    error EscrowTooSmall(uint256 escrow, uint256 needed);
    /// @dev The terms' stake is less than `needed`, which the lane's price asks for (P-30).
    error StakeTooSmall(uint256 lane, uint256 needed);
    error AcceptPeriodOver(uint40 acceptBy);
    error ClaimsPending(uint16 stage, uint16 replica);
    /// @dev A serving job that was closed can be settled from `from` on, if nothing is redeemed before its `deadline`.
    error WindowOpen(uint40 from);
    /// @dev The lane, of a serving job, was convicted and earns nothing any more.
    error LaneConvicted(uint16 stage, uint16 replica);
    error NothingToCollect();
    error TransferFailed();
    error Unauthorized(address caller);

    /// @notice Registers a job and takes `deposit` of `terms.token` (as `msg.value` for ETH) into escrow.
    /// Requirements: terms within the bounds of `TermsBounds`; for SNO an allowance; a job that is continued is a training job of the caller
    /// that was started (P-38).
    function post(JobTerms calldata terms, uint256 deposit) external payable returns (uint64 job);

    /// @notice Assigns every lane by its worker's signed offer and locks the workers' stake. Offers in lane order: replica-major
    /// (`replica * stages + stage`). A key may hold one lane of a job only. (Two keys may still belong to one party.)
    /// Requirements: called by the user by `acceptBy`; every offer unexpired, for its lane of this job, signed by its worker
    /// (65 bytes, `Jobs`' domain), who has `workerStake` available, which is enough for its price (P-30); every price below 2^88 wei, which is
    /// more than there are of either token; the escrow covers all prices for all intervals, and the budget for audits (P-29).
    function accept(uint64 job, Offer[] calldata offers, bytes[] calldata signatures) external;

    /// @notice Fixes the job key (rule C-10), if there is none to take over, and the deadline, and opens the lanes for claims. By `acceptBy`.
    function start(uint64 job) external;

    /// @notice Before the start: returns the whole escrow and the locks. After: closes the job to new claims; those committed stay payable,
    /// and in a serving job the vouchers signed.
    function cancel(uint64 job) external;

    /// @notice Returns the unearned rest to the user and unlocks the workers' stake. Anyone, once no claim is pending; a serving job
    /// that is closing from `deadline` on, and a challenge window after the last redemption.
    function settle(uint64 job) external;

    /// @notice Pays out everything credited to the caller in `token` (0 for ETH).
    function collect(address token) external returns (uint256 amount);

    /// @dev Not guarded against re-entry: it calls nobody.
    /// @notice Credits `units` to the lane's worker at the offered price: finalised claims of a training job (only `Checkpoints`), or
    /// tokens of a serving job (only `Channels`).
    function pay(uint64 job, uint16 stage, uint16 replica, uint32 units) external;

    /// @notice Credits an auditor with the fee for an audit of `units` of a lane's work: `auditFeeBps` of their price, and nothing where the
    /// budget for audits does not hold that much. Only `Audits`.
    function payAudit(uint64 job, uint16 stage, uint16 replica, uint32 units, address auditor)
        external
        returns (uint256 fee);

    /// @notice Closes the job because a lane was convicted; consumes that lane's lock, and returns it as `stake`: 0 if that has
    /// been done before. A serving job that runs is closed as by `cancel`. Only `Disputes`.
    function convict(uint64 job, uint16 stage, uint16 replica)
        external
        returns (address worker, uint256 stake, address user);

    /// @notice A job; all zero if there is none of this id.
    function jobOf(uint64 job) external view returns (Job memory);
    /// @notice Who posted the job; zero if there is none.
    function userOf(uint64 job) external view returns (address);
    // The next five read what they return of a job and no more: `jobOf` reads six slots, for 15,500 gas.

    /// @notice What a lane has to compute, and who has to; all zero before it is accepted, but for what its job's terms say.
    function dutyOf(uint64 job, uint16 stage, uint16 replica) external view returns (Duty memory);
    /// @notice Where a job stands; `None` if there is none.
    function stateOf(uint64 job) external view returns (State);
    /// @notice Steps of an interval (of a serving job, the most tokens of a text), and seconds of the challenge window.
    function termsOf(uint64 job) external view returns (uint32 stepsPerInterval, uint32 challengeWindow);
    /// @notice Of a serving job: who pays, where it stands, its deadline, and the most tokens of a lane; all zero if it is none.
    function servingOf(uint64 job) external view returns (address user, State state, uint40 deadline, uint32 intervals);
    /// @notice What a worker locks for each lane, wei of SNO; zero if there is no such job.
    function stakeOf(uint64 job) external view returns (uint128);
    /// @notice Program root of a stage (rule C-5), or the list root of those of a serving job; zero if there is none.
    function programOf(uint64 job, uint16 stage) external view returns (bytes32);
    /// @notice State root that a stage starts from (rule C-6); zero if there is none.
    function initialStateOf(uint64 job, uint16 stage) external view returns (bytes32);
    /// @notice Who holds a lane; zero before it is accepted.
    function workerOf(uint64 job, uint16 stage, uint16 replica) external view returns (address);
    /// @notice Price of a claim (serving: of a token) of a lane, wei of the job's token.
    function priceOf(uint64 job, uint16 stage, uint16 replica) external view returns (uint128);
    /// @notice Whether a lane was ever convicted.
    function isConvicted(uint64 job, uint16 stage, uint16 replica) external view returns (bool);
    /// @notice What `account` can collect, wei of `token` (0 for ETH).
    function creditOf(address account, address token) external view returns (uint256);
    /// @notice Jobs ever posted; ids run from 1 to it.
    function jobCount() external view returns (uint64);
}
