// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Delivery, Demand, Holder, Part} from "../types/Custody.sol";
import {BoundaryLogs, Claim, ProgramHeader} from "../types/Types.sol";

/// @title Custody: who holds the data that claims are about
/// @notice In exact mode whoever has a job's files can compute every state again; who has a recent state need not begin at the first. So
/// files and states have two holders, who give them to whoever asks. A claim whose state a second holder has signed for is
/// final after one window, another after two. Whoever is refused data demands a part of it on chain, for a bond:
///
/// | of | who has to show it | until |
/// |---|---|---|
/// | the state that a live claim ends in | its worker, or a worker of the job that signed for it | the claim is final or void; a demand holds it |
/// | what a live claim says was sent to a neighbour, with the word for the whole log | its worker | the same |
/// | a stage's constants or initial state | any worker of the stage, which offered for it | the job is settled |
///
/// | demand is | `deliver` or `deliverSent`, by the holder | `expire`, by anyone |
/// |---|---|---|
/// | open, until its deadline and for `moveBlocks` at least | delivered: the bond is the holder's | only if nothing is owed any more: the claim is void, the job settled, or a holder that owes no claim of its own convicted; the bond goes back |
/// | open, later | as before | defaulted: the holder is convicted, the bond goes back |
///
/// A claim's own worker is convicted of silence, and the claim is void, though its stake be gone already; another holder loses its lane's stake, and its
/// claims stand.
/// @dev A part is at most 64 leaves (16 KiB): enough to tell who has the data from who has not, for either side's gas. What was sent is no secret of the
/// neighbour that it was sent to: validators ask for it, too, and anybody may demand it.
interface ICustody {
    event Demanded(uint256 indexed id, uint64 indexed job, address indexed holder, Demand demand);
    /// @dev `leaves` begin with leaf `firstLeaf` of the tensor.
    event Delivered(uint256 indexed id, uint32 firstLeaf, bytes leaves);
    /// @dev The sender's word for the log with this root, as `EdgeLog`: what it owes the neighbour beside the tensors.
    event WordGiven(uint256 indexed id, bytes32 root, bytes signature);
    /// @dev `convicted`: the holder did not deliver.
    event DemandExpired(uint256 indexed id, bool convicted);

    error UnknownDemand(uint256 id);
    error NotHolder(address caller);
    /// @dev The word is not that of a party of the job which is not the claim's worker, and not convicted; or the lane has no worker with a
    /// stake that could answer.
    error WrongHolder(address signer);
    /// @dev The stage has no such neighbour, or the list no such tensor, or no leaves are asked for, or too many.
    error WrongPart();
    error WrongProgram();
    /// @dev The tensor or its leaves are not those demanded, or the logs not the claim's, or the word is not the holder's; or it is shown by the
    /// function for another kind of demand.
    error WrongDelivery();
    error JobNotOpen(uint64 job);
    error DeadlinePassed(uint40 deadline);
    error StillOpen(uint40 until, uint40 untilBlock);

    /// @notice Demands a part of the state that a live claim ends in, from its worker (whose lane `holder` then names, without a signature) or from a worker
    /// of the job that signed for it. Takes the dispute bond. The claim is not final while the demand is open. For two windows after the claim was committed.
    function demandState(
        Claim calldata claim,
        uint64 committedAt,
        ProgramHeader calldata program,
        Holder calldata holder,
        Part calldata part
    ) external returns (uint256 id);

    /// @notice Demands a part of a boundary tensor that a live claim says was sent to the next stage, or to the previous one, from the claim's worker: it has
    /// computed the interval, and so can show it whether or not it was sent. `part.tensor` is its entry in the log, `local step · microBatches + micro-batch` (C-8).
    /// Takes the dispute bond. The claim is not final while the demand is open. For two windows after the claim was committed.
    function demandSent(
        Claim calldata claim,
        uint64 committedAt,
        ProgramHeader calldata program,
        bool toNext,
        Part calldata part
    ) external returns (uint256 id);

    /// @notice Demands a part of a stage's constants, or of its initial state, from the worker of a lane. Takes the dispute bond. The job runs or is
    /// closing, and trains.
    function demandFiles(
        uint64 job,
        uint16 stage,
        uint16 replica,
        ProgramHeader calldata program,
        bool constants,
        Part calldata part
    ) external returns (uint256 id);

    /// @notice Shows what was demanded of a state or file. Only the holder, however late, as long as nobody has let the demand expire.
    function deliver(uint256 id, Demand calldata demand, Delivery calldata delivery) external;

    /// @notice Shows what was demanded of what was sent: the preimage of the claim's `io`, the tensor's place in the log, and the worker's signature of that log
    /// as `EdgeLog` (P-27). Only the holder, as `deliver`.
    function deliverSent(
        uint256 id,
        Demand calldata demand,
        Delivery calldata delivery,
        BoundaryLogs calldata logs,
        bytes calldata signature
    ) external;

    /// @notice Ends a demand that was not met in time, or is about nothing any more.
    function expire(uint256 id, Demand calldata demand) external;

    /// @notice Checks that `holder` has given its word for the claim's state, and can: reverts with `WrongHolder` otherwise.
    // In a declaration the function of the same name is nothing that could be meant.
    // slither-disable-next-line shadowing-local
    function requireHolder(Claim calldata claim, bytes32 claimId, Holder calldata holder) external view;

    /// @notice The EIP-712 digest that a holder signs (rule C-16).
    function holdingDigest(bytes32 claimId) external view returns (bytes32);
    /// @notice Hash of an open demand; zero if there is none.
    function demandOf(uint256 id) external view returns (bytes32);
}
