// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Holder} from "../types/Custody.sol";
import {Claim, ClaimLink} from "../types/Types.sol";

/// @title Checkpoints: claims, challenge window, finalisation
/// @notice A lane's claims form a chain: claim n starts from the state claim n − 1 ended in, and claim 0 from the state
/// registered with the job. Of a claim the chain stores one word, its record (C-11), until a later claim of the lane takes its place, never
/// before it is final; all else is in the event. A claim is final, and paid, when its window has passed unchallenged, and twice that time where nobody but its worker
/// has the state that it ends in (`ICustody`); finality is in order.
///
/// In a job of one replica a claim is made by `commit`. In a job of several it is sealed first and revealed later, so that no replica
/// can copy another's. The seals of a stage and interval are a round. A round takes seals or reveals, never both:
///
/// | the round of interval n | `seal`, by who sealed n − 1 | `reveal`, by who revealed n − 1 |
/// |---|---|---|
/// | has no seals, or n − 1 is not revealed by anybody | taken | – |
/// | before the later of its first seal and the first reveal of n − 1 is `sealWindow` ago | taken | if all have sealed that sealed n − 1 |
/// | from then on | too late, for this interval and all that follow | taken |
/// | the job is past its deadline | too late | taken |
/// | the job is closed | too late | taken for another `sealWindow` |
interface ICheckpoints {
    /// @dev Claims `[0, finalized)` are final. Claims `>= voidFrom` are void (`type(uint32).max`: none).
    struct LaneState {
        address worker;
        uint32 finalized;
        uint32 voidFrom;
    }

    /// @dev What the replicas of a stage have sealed and revealed of an interval. Times of the first seal and the first reveal, 0: none.
    /// `seals`: how many. `outcome`: `keccak256(abi.encode(parentState, newState, io))` of the claim revealed first. `differ`: whether
    /// another had another.
    struct Round {
        uint40 sealedAt;
        uint40 revealedAt;
        uint16 seals;
        bool differ;
        bytes32 outcome;
    }

    event LaneOpened(uint64 indexed job, uint16 stage, uint16 replica, address indexed worker);
    /// @dev `committedAt` is the block's timestamp. `claimId` is the EIP-712 digest.
    event ClaimCommitted(bytes32 indexed claimId, uint64 indexed job, Claim claim);
    event ClaimSealed(uint64 indexed job, uint16 stage, uint16 replica, uint32 interval, bytes32 sealedClaim);
    /// @dev The claim's outcome is not that of the claim which was revealed first for the same stage and interval: at least one is wrong,
    /// or continues or received what is. From now on the challenge window of all claims of that stage and interval is twice as long.
    event ReplicasDiffer(bytes32 indexed claimId, uint64 indexed job, uint16 stage, uint32 interval);
    event ClaimsFinalized(uint64 indexed job, uint16 stage, uint16 replica, uint32 from, uint32 to);
    event ClaimsVoided(uint64 indexed job, uint16 stage, uint16 replica, uint32 from);

    error NotWorker(address caller);
    error JobNotOpen(uint64 job);
    error JobIsReplicated(uint64 job);
    error JobIsNotReplicated(uint64 job);
    error DeadlinePassed(uint40 deadline);
    error IntervalOutOfRange(uint32 interval);
    error AlreadyCommitted(uint32 interval);
    error NotTheNextClaim(uint32 interval);
    error WrongParentState();
    error AlreadySealed(uint32 interval);
    error WrongSeal(uint32 interval);
    error SealingOver(uint32 interval);
    error SealingOpen(uint32 interval);
    error UnknownClaim();
    error WindowOpen(uint40 until);
    error Challenged(bytes32 claimId);
    error ClaimIsFinal();
    error ClaimIsVoid();
    error Unauthorized(address caller);

    /// @notice Commits the next claim of a lane. Only the lane's worker, in a job of one replica, while it runs, up to and including its
    /// deadline.
    /// Requirements: `claim.parentState` is the previous claim's new state, or the registered state for interval 0.
    function commit(Claim calldata claim, ClaimLink calldata previous) external;

    /// @notice Seals the next claim of a lane: `sealedClaim` is `keccak256(abi.encode(claimId, salt))`, which binds chain, deployment, lane
    /// and interval, and is not zero. Only the lane's worker, in a job of several replicas, while it runs, up to and including its
    /// deadline. One per interval, in order, however far ahead of what is revealed; not changed any more.
    /// Requirements: the round takes seals (table above).
    /// Weakness: a seal says nothing about when its claim is revealed, or whether.
    function seal(uint64 job, uint16 stage, uint16 replica, uint32 interval, bytes32 sealedClaim) external;

    /// @notice Makes the next claim of a lane, which was sealed with `salt`. Only the lane's worker.
    /// Effects: as `commit`; the first reveal of a round fixes its outcome, and each later one that has another emits `ReplicasDiffer`.
    /// Requirements: the round takes reveals (table above); `claim.parentState` as in `commit`.
    function reveal(Claim calldata claim, ClaimLink calldata previous, bytes32 salt) external;

    /// @notice Finalises the lane's next claims, in order, and credits their payment. Anyone. `committedAt[i]` belongs to `claims[i]`, and
    /// `holder` to the last of them: the states before it are superseded.
    /// Requirements: of each claim the window has passed, twice if `holder` has no signature; no challenge or demand is open, and it is
    /// not void. All of one lane.
    function finalize(Claim[] calldata claims, uint64[] calldata committedAt, Holder calldata holder) external;

    /// @notice Opens the lanes of a job. Only `Jobs`. `workers` in lane order, `initialStates` by stage.
    function open(
        uint64 job,
        uint32 intervals,
        uint32 window,
        uint40 deadline,
        address[] calldata workers,
        bytes32[] calldata initialStates
    ) external;

    /// @notice Refuses further claims of a job; what was sealed can be revealed for another `sealWindow`. Only `Jobs`.
    function close(uint64 job) external;

    /// @notice Holds back finality of a claim while a challenge or a demand is open. Counted: every hold needs a release. Only `Challenges` and
    /// `Custody`.
    // In a declaration the function of the same name is nothing that could be meant.
    // slither-disable-next-line shadowing-local
    function hold(bytes32 claimId) external;

    /// @notice Takes back one hold. Only `Challenges` and `Custody`.
    // In a declaration the function of the same name is nothing that could be meant.
    // slither-disable-next-line shadowing-local
    function release(bytes32 claimId) external;

    /// @notice Voids the claims of a lane from `interval` on. Only `Disputes`.
    function voidFrom(uint64 job, uint16 stage, uint16 replica, uint32 interval) external;

    /// @notice The claim's id, checked to be on record, neither final nor void. Reverts otherwise.
    // In a declaration the function of the same name is nothing that could be meant.
    // slither-disable-next-line shadowing-local
    function requireLive(Claim calldata claim, uint64 committedAt) external view returns (bytes32 claimId);

    /// @notice The EIP-712 digest that names a claim (rule C-9).
    function claimId(Claim calldata claim) external view returns (bytes32);
    /// @notice Whether the claim is on record, committed at that time.
    function isRecorded(Claim calldata claim, uint64 committedAt) external view returns (bool);
    /// @notice Record of a claim (rule C-11); zero if there is none, or if it is final and a later claim has taken its place.
    function recordOf(uint64 job, uint16 stage, uint16 replica, uint32 interval) external view returns (bytes32);
    /// @notice A lane; all zero if there is none.
    function laneOf(uint64 job, uint16 stage, uint16 replica) external view returns (LaneState memory);
    /// @notice Seconds for which claims of that stage and interval are not final after they were committed, whoever holds their state.
    function windowOf(uint64 job, uint16 stage, uint32 interval) external view returns (uint32 window);
    /// @notice What a lane sealed; zero if it did not.
    function sealOf(uint64 job, uint16 stage, uint16 replica, uint32 interval) external view returns (bytes32);
    /// @notice A round; all zero if there is none.
    function roundOf(uint64 job, uint16 stage, uint32 interval) external view returns (Round memory);
    /// @notice Whether the lane has a committed claim that is neither final nor void, or a sealed one that can still become one.
    function hasPending(uint64 job, uint16 stage, uint16 replica) external view returns (bool);
    /// @notice Whether every claim of the lane is final, and it can make no more because it did not seal its next one in time.
    function isTooLate(uint64 job, uint16 stage, uint16 replica) external view returns (bool);
}
