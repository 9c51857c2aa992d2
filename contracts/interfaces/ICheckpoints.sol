// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Holder} from "../types/Custody.sol";
import {Claim, ClaimLink} from "../types/Types.sol";

/// @title Checkpoints: claims, challenge window, finalisation
/// @notice A lane's claims form a chain: claim n starts from the state that claim n − 1 ended in, and claim 0 from the
/// state registered with the job. For each claim the chain stores one word, its record (C-11); everything else is in
/// the event. A record stays at least until its claim is final (P-37); then a later claim of the lane may take its
/// place. A claim is final, and paid, once its window has passed without a challenge; twice that time if nobody but its
/// worker has the state that it ends in (`ICustody`). Claims become final in order.
///
/// In a job of one replica a claim is made by `commit`. In a job of several it is sealed first and revealed later, so
/// that no replica can copy another's. The seals of one stage and interval are a round. A round takes seals or reveals,
/// never both:
///
/// | the round of interval n | `seal`, by a lane that sealed n − 1 | `reveal`, by a lane that revealed n − 1 |
/// |---|---|---|
/// | has no seals, or nobody has revealed n − 1 | taken | – |
/// | `sealWindow` has not passed since the later of its first seal and the first reveal of n − 1 | taken | if all have sealed that sealed n − 1 |
/// | from then on | too late, for this interval and all that follow | taken |
/// | the job is past its deadline | too late | taken |
/// | the job is closed | too late | taken for another `sealWindow` |
interface ICheckpoints {
    /// @dev A lane.
    struct LaneState {
        /// Holds the lane.
        address worker;
        /// Claims of intervals below this one are final.
        uint32 finalized;
        /// Claims from this interval on are void; `type(uint32).max` if none is.
        uint32 voidFrom;
    }

    /// @dev What the replicas of a stage have sealed and revealed of an interval.
    struct Round {
        /// Timestamp of the first seal; 0 if there is none.
        uint40 sealedAt;
        /// Timestamp of the first reveal; 0 if there is none.
        uint40 revealedAt;
        /// Number of seals.
        uint16 seals;
        /// Whether a claim with another outcome was revealed later.
        bool differ;
        /// `keccak256(abi.encode(parentState, newState, io))` of the claim that was revealed first.
        bytes32 outcome;
    }

    /// @notice A lane can make claims.
    /// @param job id of the job
    /// @param stage the lane's stage
    /// @param replica the lane's replica
    /// @param worker the lane's worker
    event LaneOpened(uint64 indexed job, uint16 stage, uint16 replica, address indexed worker);

    /// @notice A claim is on record; it was committed at the block's timestamp.
    /// @param claimId EIP-712 digest of the claim (C-9)
    /// @param job id of the job
    /// @param claim the claim
    event ClaimCommitted(bytes32 indexed claimId, uint64 indexed job, Claim claim);

    /// @notice A lane has sealed a claim.
    /// @param job id of the job
    /// @param stage the lane's stage
    /// @param replica the lane's replica
    /// @param interval the claim's interval
    /// @param sealedClaim the seal (C-14)
    event ClaimSealed(uint64 indexed job, uint16 stage, uint16 replica, uint32 interval, bytes32 sealedClaim);

    /// @notice The claim's outcome is not that of the claim that was revealed first for the same stage and interval. At
    /// least one of them is wrong, or continues or received something wrong. From now on the challenge window of all
    /// claims of that stage and interval is twice as long.
    /// @param claimId EIP-712 digest of the later claim (C-9)
    /// @param job id of the job
    /// @param stage the stage
    /// @param interval the interval
    event ReplicasDiffer(bytes32 indexed claimId, uint64 indexed job, uint16 stage, uint32 interval);

    /// @notice Claims of a lane are final.
    /// @param job id of the job
    /// @param stage the lane's stage
    /// @param replica the lane's replica
    /// @param from interval of the first of them
    /// @param to interval after the last of them
    event ClaimsFinalized(uint64 indexed job, uint16 stage, uint16 replica, uint32 from, uint32 to);

    /// @notice Claims of a lane are void.
    /// @param job id of the job
    /// @param stage the lane's stage
    /// @param replica the lane's replica
    /// @param from interval of the first of them
    event ClaimsVoided(uint64 indexed job, uint16 stage, uint16 replica, uint32 from);

    /// @notice Only the lane's worker claims.
    /// @param caller who called
    error NotWorker(address caller);

    /// @notice The job does not take claims: it has not started, or is closed.
    /// @param job id of the job
    error JobNotOpen(uint64 job);

    /// @notice The job has several replicas: claims are sealed and revealed.
    /// @param job id of the job
    error JobIsReplicated(uint64 job);

    /// @notice The job has one replica: claims are committed.
    /// @param job id of the job
    error JobIsNotReplicated(uint64 job);

    /// @notice The time for claims, seals or reveals is over.
    /// @param deadline last timestamp at which they were taken
    error DeadlinePassed(uint40 deadline);

    /// @notice The job has no such interval.
    /// @param interval the interval
    error IntervalOutOfRange(uint32 interval);

    /// @notice The lane has made a claim for this interval.
    /// @param interval the interval
    error AlreadyCommitted(uint32 interval);

    /// @notice The lane has not claimed, or sealed, the interval before; or claims are not finalised in order.
    /// @param interval the interval
    error NotTheNextClaim(uint32 interval);

    /// @notice The claim's parent state is not the previous claim's new state, or not the registered one for interval
    /// 0; or `previous` is not the rest of the previous claim's record.
    error WrongParentState();

    /// @notice The lane has sealed a claim for this interval.
    /// @param interval the interval
    error AlreadySealed(uint32 interval);

    /// @notice The seal is zero, or the revealed claim and salt are not what was sealed.
    /// @param interval the interval
    error WrongSeal(uint32 interval);

    /// @notice The round takes no more seals.
    /// @param interval the interval
    error SealingOver(uint32 interval);

    /// @notice The round takes seals, and no reveals yet.
    /// @param interval the interval
    error SealingOpen(uint32 interval);

    /// @notice The claim is not on record since the time given, or the claims are not of one lane, or are none.
    error UnknownClaim();

    /// @notice The claim's window is open.
    /// @param until first timestamp at which the claim can become final
    error WindowOpen(uint40 until);

    /// @notice A challenge or a demand about the claim is open.
    /// @param claimId EIP-712 digest of the claim (C-9)
    error Challenged(bytes32 claimId);

    /// @notice The claim is final.
    error ClaimIsFinal();

    /// @notice The claim is void.
    error ClaimIsVoid();

    /// @notice Only another contract of the deployment may call this.
    /// @param caller who called
    error Unauthorized(address caller);

    /// @notice Commits the next claim of a lane. Only the lane's worker, in a job of one replica, while it runs, up to
    /// and including its deadline.
    /// Requirements: `claim.parentState` is the previous claim's new state, or the registered state for interval 0.
    /// @param claim the claim
    /// @param previous the rest of the previous claim's record; ignored for interval 0
    function commit(Claim calldata claim, ClaimLink calldata previous) external;

    /// @notice Seals the next claim of a lane. Only the lane's worker, in a job of several replicas, while it runs, up
    /// to and including its deadline. A lane seals once for each interval, in order, as far ahead of the reveals as it
    /// likes, and cannot change a seal.
    /// Requirements: the round takes seals (table above).
    /// Weakness: a seal does not tell when its claim is revealed, or whether.
    /// @param job id of the job
    /// @param stage the lane's stage
    /// @param replica the lane's replica
    /// @param interval the claim's interval
    /// @param sealedClaim `keccak256(abi.encode(claimId, salt))`, which binds chain, deployment, lane and interval; not
    /// zero
    function seal(uint64 job, uint16 stage, uint16 replica, uint32 interval, bytes32 sealedClaim) external;

    /// @notice Reveals the next claim of a lane. Only the lane's worker.
    /// Effects: as `commit`. The first reveal of a round fixes its outcome; each later one with another outcome emits
    /// `ReplicasDiffer`.
    /// Requirements: the round takes reveals (table above); the claim was sealed with this salt; `claim.parentState` as
    /// in `commit`.
    /// @param claim the claim
    /// @param previous the rest of the previous claim's record; ignored for interval 0
    /// @param salt the salt that the claim was sealed with
    function reveal(Claim calldata claim, ClaimLink calldata previous, bytes32 salt) external;

    /// @notice Finalises the lane's next claims, in order, and credits their payment. Anyone may call.
    /// Requirements: all claims are of one lane; for each, its window has passed, or two windows if `holder` has no
    /// signature; no challenge or demand about it is open; it is not void.
    /// @param claims the claims, in order
    /// @param committedAt when each of them was committed, as Unix timestamps
    /// @param holder who holds the state that the last of them ends in (the states before it are superseded); without a
    /// signature: nobody
    function finalize(Claim[] calldata claims, uint64[] calldata committedAt, Holder calldata holder) external;

    /// @notice Opens the lanes of a job. Only `Jobs`.
    /// @param job id of the job
    /// @param intervals number of intervals
    /// @param window challenge window, in seconds
    /// @param deadline last timestamp at which claims are taken
    /// @param workers the lanes' workers, in lane order (`replica * stages + stage`)
    /// @param initialStates state roots (C-6) that the stages start from
    function open(
        uint64 job,
        uint32 intervals,
        uint32 window,
        uint40 deadline,
        address[] calldata workers,
        bytes32[] calldata initialStates
    ) external;

    /// @notice Closes a job to further claims. What was sealed can be revealed for another `sealWindow`. Only `Jobs`.
    /// @param job id of the job
    function close(uint64 job) external;

    /// @notice Holds back finality of a claim while a challenge or a demand is open. Holds are counted: each needs a
    /// release. Only `Challenges` and `Custody`.
    /// @param claimId EIP-712 digest of the claim (C-9)
    // In a declaration the function of the same name is nothing that could be meant.
    // slither-disable-next-line shadowing-local
    function hold(bytes32 claimId) external;

    /// @notice Takes back one hold. Only `Challenges` and `Custody`.
    /// @param claimId EIP-712 digest of the claim (C-9)
    // In a declaration the function of the same name is nothing that could be meant.
    // slither-disable-next-line shadowing-local
    function release(bytes32 claimId) external;

    /// @notice Voids the claims of a lane from an interval on. Only `Disputes`.
    /// @param job id of the job
    /// @param stage the lane's stage
    /// @param replica the lane's replica
    /// @param interval interval of the first void claim
    function voidFrom(uint64 job, uint16 stage, uint16 replica, uint32 interval) external;

    /// @notice The id of a claim that is on record and neither final nor void. Reverts if it is not.
    /// @param claim the claim
    /// @param committedAt when it was committed, as a Unix timestamp
    /// @return claimId EIP-712 digest of the claim (C-9)
    // In a declaration the function of the same name is nothing that could be meant.
    // slither-disable-next-line shadowing-local
    function requireLive(Claim calldata claim, uint64 committedAt) external view returns (bytes32 claimId);

    /// @notice The EIP-712 digest that names a claim (C-9).
    /// @param claim the claim
    /// @return the digest
    function claimId(Claim calldata claim) external view returns (bytes32);

    /// @notice Whether a claim is on record.
    /// @param claim the claim
    /// @param committedAt when it was committed, as a Unix timestamp
    /// @return whether it is on record, committed at that time
    function isRecorded(Claim calldata claim, uint64 committedAt) external view returns (bool);

    /// @notice Record of a claim (C-11).
    /// @param job id of the job
    /// @param stage the lane's stage
    /// @param replica the lane's replica
    /// @param interval the claim's interval
    /// @return the record; zero if there is none, or if the claim is final and a later one has taken its place
    function recordOf(uint64 job, uint16 stage, uint16 replica, uint32 interval) external view returns (bytes32);

    /// @notice A lane.
    /// @param job id of the job
    /// @param stage the lane's stage
    /// @param replica the lane's replica
    /// @return the lane; all zero if there is none
    function laneOf(uint64 job, uint16 stage, uint16 replica) external view returns (LaneState memory);

    /// @notice The challenge window of a stage's claims of an interval, whoever holds their states.
    /// @param job id of the job
    /// @param stage the stage
    /// @param interval the interval
    /// @return window seconds after its commitment for which no such claim is final
    function windowOf(uint64 job, uint16 stage, uint32 interval) external view returns (uint32 window);

    /// @notice What a lane sealed.
    /// @param job id of the job
    /// @param stage the lane's stage
    /// @param replica the lane's replica
    /// @param interval the interval
    /// @return the seal (C-14); zero if there is none
    function sealOf(uint64 job, uint16 stage, uint16 replica, uint32 interval) external view returns (bytes32);

    /// @notice A round.
    /// @param job id of the job
    /// @param stage the stage
    /// @param interval the interval
    /// @return the round; all zero if there is none
    function roundOf(uint64 job, uint16 stage, uint32 interval) external view returns (Round memory);

    /// @notice Whether claims of a lane are still to be decided.
    /// @param job id of the job
    /// @param stage the lane's stage
    /// @param replica the lane's replica
    /// @return whether the lane has a committed claim that is neither final nor void, or a sealed one that can still be
    /// revealed
    function hasPending(uint64 job, uint16 stage, uint16 replica) external view returns (bool);

    /// @notice Whether a lane is done because it missed a seal.
    /// @param job id of the job
    /// @param stage the lane's stage
    /// @param replica the lane's replica
    /// @return whether every claim of the lane is final, and it can make no more because it did not seal its next one
    /// in time
    function isTooLate(uint64 job, uint16 stage, uint16 replica) external view returns (bool);
}
