// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Delivery, Demand, Holder, Part} from "../types/Custody.sol";
import {BoundaryLogs, Claim, ProgramHeader} from "../types/Types.sol";

/// @title Custody: who holds the data that claims are about
/// @notice In exact mode, whoever has a job's files can compute every state again; whoever has a recent state need not
/// begin at the first. So files and states have two holders, which give them to whoever asks. A claim whose state a
/// second holder has signed for is final after one window, any other after two. Whoever is refused data demands a part
/// of it on chain, for a bond:
///
/// | data | who has to show it | until |
/// |---|---|---|
/// | the state that a live claim ends in | its worker, or a worker of the job that signed for it | the claim is final or void; a demand holds back its finality |
/// | what a live claim says was sent to a neighbour, with the sender's signature of the whole log | its worker | the same |
/// | a stage's constants or initial state | any worker of the stage, since it offered for it | the job is settled |
///
/// | demand | `deliver` or `deliverSent`, by the holder | `expire`, by anyone |
/// |---|---|---|
/// | open, until its deadline and for `moveBlocks` at least | delivered: the bond goes to the holder | only if nothing is owed any more: the claim is void, the job is settled, or the holder, which owes no claim of its own, is convicted; the bond goes back |
/// | open, later | as before | defaulted: the holder is convicted, the bond goes back |
///
/// A claim's own worker is convicted of silence and the claim is void, even if its stake is gone already. Another
/// holder loses its lane's stake, and its claims stand.
/// @dev A part is at most 64 leaves (16 KiB): enough to tell who has the data from who has not, at little gas for
/// either side. What was sent is no secret between the neighbours: validators ask for it, too, and anyone may demand
/// it.
interface ICustody {
    /// @notice A part of some data is demanded.
    /// @param id id of the demand
    /// @param job id of the job
    /// @param holder who has to show it
    /// @param demand what has to be shown, and until when
    event Demanded(uint256 indexed id, uint64 indexed job, address indexed holder, Demand demand);

    /// @notice The holder has shown what was demanded.
    /// @param id id of the demand
    /// @param firstLeaf index of the first leaf shown, in the tensor's tree
    /// @param leaves the leaves, 256 bytes each
    event Delivered(uint256 indexed id, uint32 firstLeaf, bytes leaves);

    /// @notice The sender has shown its signature of what it sent, which it owes its neighbour besides the tensors.
    /// @param id id of the demand
    /// @param root root of the log (C-8)
    /// @param signature the sender's signature of the log as an `EdgeLog`, 65 bytes
    event WordGiven(uint256 indexed id, bytes32 root, bytes signature);

    /// @notice A demand is over without a delivery; the bond went back.
    /// @param id id of the demand
    /// @param convicted whether the holder is convicted; if not, nothing was owed any more
    event DemandExpired(uint256 indexed id, bool convicted);

    /// @notice No such demand is open.
    /// @param id the id
    error UnknownDemand(uint256 id);

    /// @notice Only the holder delivers.
    /// @param caller who called
    error NotHolder(address caller);

    /// @notice The signer is not the job's user, nor the worker of another, unconvicted lane as named; or the lane
    /// asked has no worker with a stake to lose.
    /// @param signer who signed, or the worker of the lane that was asked; zero if there is none
    error WrongHolder(address signer);

    /// @notice The stage sends nothing to this neighbour, or the list has no such tensor, or no leaves are asked for,
    /// or too many.
    error WrongPart();

    /// @notice The program is not the one registered for the stage.
    error WrongProgram();

    /// @notice The tensor or the leaves are not those demanded, or the logs are not the claim's, or the log is not
    /// signed by the holder, or the other function delivers demands of this kind.
    error WrongDelivery();

    /// @notice The job is neither running nor closing, or does not train.
    /// @param job id of the job
    error JobNotOpen(uint64 job);

    /// @notice Two windows have passed since the claim was committed.
    /// @param deadline when they ended, as a Unix timestamp
    error DeadlinePassed(uint40 deadline);

    /// @notice The holder still has time.
    /// @param until last timestamp at which the demand is open
    /// @param untilBlock first block in which it can be over
    error StillOpen(uint40 until, uint40 untilBlock);

    /// @notice Demands a part of the state that a live claim ends in, from its worker or from a worker of the job that
    /// signed for it. Anyone may call, for two windows after the claim was committed.
    /// Effects: takes the dispute bond in SNO, which needs an allowance; holds back the claim's finality while the
    /// demand is open.
    /// Requirements: the claim is live; the program is the stage's; the other holder's signature is that of the lane's
    /// worker, and the lane is not convicted; the state has the tensor; the part has 1 to 64 leaves.
    /// @param claim the claim
    /// @param committedAt when it was committed, as a Unix timestamp
    /// @param program header of the stage's program
    /// @param holder who is asked: the claim's own lane, without a signature, or another lane whose worker signed
    /// (C-16)
    /// @param part leaves of one tensor of the state
    /// @return id id of the demand
    function demandState(
        Claim calldata claim,
        uint64 committedAt,
        ProgramHeader calldata program,
        Holder calldata holder,
        Part calldata part
    ) external returns (uint256 id);

    /// @notice Demands a part of a boundary tensor that a live claim says was sent to a neighbour, from the claim's
    /// worker. The worker has computed the interval, so it can show the tensor whether or not it sent it. Anyone may
    /// call, for two windows after the claim was committed.
    /// Effects: takes the dispute bond in SNO, which needs an allowance; holds back the claim's finality while the
    /// demand is open.
    /// Requirements: the claim is live; the program is the stage's and sends to this neighbour; the log has the entry;
    /// the part has 1 to 64 leaves.
    /// @param claim the claim
    /// @param committedAt when it was committed, as a Unix timestamp
    /// @param program header of the stage's program
    /// @param toNext true: what was sent to the next stage; false: to the previous one
    /// @param part leaves of one tensor; `part.tensor` is its entry in the log,
    /// `local step · microBatches + micro-batch` (C-8)
    /// @return id id of the demand
    function demandSent(
        Claim calldata claim,
        uint64 committedAt,
        ProgramHeader calldata program,
        bool toNext,
        Part calldata part
    ) external returns (uint256 id);

    /// @notice Demands a part of a stage's constants, or of its initial state, from the worker of a lane of that stage.
    /// Anyone may call.
    /// Effects: takes the dispute bond in SNO, which needs an allowance.
    /// Requirements: the job trains, and runs or is closing; the lane is not convicted; the program is the stage's; the
    /// list has the tensor; the part has 1 to 64 leaves.
    /// @param job id of the job
    /// @param stage the lane's stage
    /// @param replica the lane's replica
    /// @param program header of the stage's program
    /// @param constants true: constants; false: the initial state
    /// @param part leaves of one tensor
    /// @return id id of the demand
    function demandFiles(
        uint64 job,
        uint16 stage,
        uint16 replica,
        ProgramHeader calldata program,
        bool constants,
        Part calldata part
    ) external returns (uint256 id);

    /// @notice Shows what was demanded of a state or of files. Only the holder, however late, until somebody has the
    /// demand expire.
    /// Effects: pays the bond to the holder; releases the claim, if the demand is about one.
    /// @param id id of the demand
    /// @param demand the demand, as `Demanded` told it
    /// @param delivery the tensor's place in the list, and the leaves
    function deliver(uint256 id, Demand calldata demand, Delivery calldata delivery) external;

    /// @notice Shows what was demanded of what was sent. Only the holder, as for `deliver`, and with the same effects.
    /// @param id id of the demand
    /// @param demand the demand, as `Demanded` told it
    /// @param delivery the tensor's place in the log, and the leaves
    /// @param logs preimage of the claim's `io`
    /// @param signature the worker's signature of the log as an `EdgeLog` (P-27), 65 bytes
    function deliverSent(
        uint256 id,
        Demand calldata demand,
        Delivery calldata delivery,
        BoundaryLogs calldata logs,
        bytes calldata signature
    ) external;

    /// @notice Ends a demand that was not met in time, or about which nothing is owed any more (table above). Anyone
    /// may call.
    /// Effects: returns the bond to the demander; releases the claim, if the demand is about one; convicts a holder
    /// that still owed the data.
    /// @param id id of the demand
    /// @param demand the demand, as `Demanded` told it
    function expire(uint256 id, Demand calldata demand) external;

    /// @notice Checks that `holder` has signed for the claim's state and counts as a second holder. Reverts with
    /// `WrongHolder` if not.
    /// @param claim the claim
    /// @param claimId EIP-712 digest of the claim (C-9)
    /// @param holder the job's user, or the worker of another, unconvicted lane of the job
    // In a declaration the function of the same name is nothing that could be meant.
    // slither-disable-next-line shadowing-local
    function requireHolder(Claim calldata claim, bytes32 claimId, Holder calldata holder) external view;

    /// @notice The EIP-712 digest that a holder signs (C-16).
    /// @param claimId EIP-712 digest of the claim (C-9)
    /// @return the digest
    function holdingDigest(bytes32 claimId) external view returns (bytes32);

    /// @notice Hash of an open demand.
    /// @param id id of the demand
    /// @return `keccak256(abi.encode(demand))`; zero if no such demand is open
    function demandOf(uint256 id) external view returns (bytes32);
}
