// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Claim, ClaimLink} from "../types/Types.sol";

/// @title Checkpoints: claims, challenge window, finalisation
/// @notice A lane's claims form a chain: claim n starts from the state claim n − 1 ended in, and claim 0 from the state
/// registered with the job. Of a claim the chain stores one hash, `keccak256(abi.encode(claim, committedAt))`; all else is
/// in the event. A claim is final, and paid, when its window has passed unchallenged; finality is in order.
interface ICheckpoints {
    /// @dev Claims `[0, finalized)` are final. Claims `>= voidFrom` are void (`type(uint32).max`: none).
    struct LaneState {
        address worker;
        uint32 finalized;
        uint32 voidFrom;
    }

    event LaneOpened(uint64 indexed job, uint16 stage, uint16 replica, address indexed worker);
    /// @dev `committedAt` is the block's timestamp. `claimId` is the EIP-712 digest.
    event ClaimCommitted(bytes32 indexed claimId, uint64 indexed job, Claim claim);
    event ClaimsFinalized(uint64 indexed job, uint16 stage, uint16 replica, uint32 from, uint32 to);
    event ClaimsVoided(uint64 indexed job, uint16 stage, uint16 replica, uint32 from);

    error NotWorker(address caller);
    error JobNotOpen(uint64 job);
    error DeadlinePassed(uint40 deadline);
    error IntervalOutOfRange(uint32 interval);
    error AlreadyCommitted(uint32 interval);
    error NotTheNextClaim(uint32 interval);
    error WrongParentState();
    error UnknownClaim();
    error WindowOpen(uint40 until);
    error Challenged(bytes32 claimId);
    error ClaimIsFinal();
    error ClaimIsVoid();
    error Unauthorized(address caller);

    /// @notice Commits the next claim of a lane. Only the lane's worker, while the job runs, up to and including its deadline.
    /// Requirements: `claim.parentState` is the previous claim's new state, or the registered state for interval 0.
    function commit(Claim calldata claim, ClaimLink calldata previous) external;

    /// @notice Finalises the lane's next claims, in order, and credits their payment. Anyone. `committedAt[i]` belongs to `claims[i]`.
    /// Requirements: of each claim the window has passed, no challenge is open, and it is not void. All of one lane.
    function finalize(Claim[] calldata claims, uint64[] calldata committedAt) external;

    /// @notice Opens the lanes of a job. Only `Jobs`. `workers` in lane order, `initialStates` by stage.
    function open(
        uint64 job,
        uint32 intervals,
        uint32 window,
        uint40 deadline,
        address[] calldata workers,
        bytes32[] calldata initialStates
    ) external;

    /// @notice Refuses further claims of a job. Only `Jobs`.
    function close(uint64 job) external;

    /// @notice Holds back finality of a claim while a challenge is open. Counted: every hold needs a release. Only `Challenges`.
    // In a declaration the function of the same name is nothing that could be meant.
    // slither-disable-next-line shadowing-local
    function hold(bytes32 claimId) external;

    /// @notice Takes back one hold. Only `Challenges`.
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
    /// @notice Record of a claim (rule C-11); zero if there is none.
    function recordOf(uint64 job, uint16 stage, uint16 replica, uint32 interval) external view returns (bytes32);
    /// @notice A lane; all zero if there is none.
    function laneOf(uint64 job, uint16 stage, uint16 replica) external view returns (LaneState memory);
    /// @notice Whether the lane has a committed claim that is neither final nor void.
    function hasPending(uint64 job, uint16 stage, uint16 replica) external view returns (bool);
}
