// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {ReentrancyGuardTransient} from "@openzeppelin/contracts/utils/ReentrancyGuardTransient.sol";
import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";
import {EIP712} from "@openzeppelin/contracts/utils/cryptography/EIP712.sol";
import {SafeCast} from "@openzeppelin/contracts/utils/math/SafeCast.sol";

import {ICheckpoints} from "../interfaces/ICheckpoints.sol";
import {ICustody} from "../interfaces/ICustody.sol";
import {IDisputes} from "../interfaces/IDisputes.sol";
import {IJobs} from "../interfaces/IJobs.sol";
import {TensorTypes} from "../libraries/encoding/TensorTypes.sol";
import {Merkle} from "../libraries/proofs/Merkle.sol";
import {Places} from "../libraries/proofs/Places.sol";
import {Delivery, Demand, DemandKind, Holder, Part} from "../types/Custody.sol";
import {Parameters} from "../types/Parameters.sol";
import {BoundaryLogs, Claim, EdgeLog, JobKind, ProgramHeader, TensorType} from "../types/Types.sol";

/// @title Custody
/// @notice See `ICustody`.
contract Custody is ICustody, EIP712, ReentrancyGuardTransient {
    using SafeCast for uint256;
    using SafeERC20 for IERC20;
    using TensorTypes for TensorType;

    bytes32 private constant _HOLDING_TYPEHASH = keccak256("Holding(bytes32 claimId)");
    /// @dev Most leaves of a part: what fits a transaction of common mempools many times.
    uint256 private constant _MOST_LEAVES = 64;

    /// @notice The token of bonds.
    IERC20 public immutable SNO;
    /// @notice Where programs, workers and users stand.
    IJobs public immutable JOBS;
    /// @notice Where claims stand and are held.
    ICheckpoints public immutable CHECKPOINTS;
    /// @notice Who convicts.
    IDisputes public immutable DISPUTES;

    uint256 private immutable _CLOCK;
    uint256 private immutable _BLOCKS;
    uint256 private immutable _BOND;

    uint256 private _demandCount;
    mapping(uint256 id => bytes32 hash) private _demands;

    constructor(IERC20 sno, IJobs jobs, ICheckpoints checkpoints, IDisputes disputes, Parameters memory p)
        EIP712("Tensorlink", "1")
    {
        SNO = sno;
        JOBS = jobs;
        CHECKPOINTS = checkpoints;
        DISPUTES = disputes;
        _CLOCK = p.disputeClock;
        _BLOCKS = p.moveBlocks;
        _BOND = p.disputeBond;
    }

    /// @inheritdoc ICustody
    function demandState(
        Claim calldata claim,
        uint64 committedAt,
        ProgramHeader calldata program,
        Holder calldata holder,
        Part calldata part
    ) external nonReentrant returns (uint256 id) {
        (bytes32 claimId,) = _liveClaim(claim, committedAt);
        if (!_sameLane(claim, holder)) {
            // INVARIANT: nobody answers for another's attestation.
            address signer = _signerOf(claimId, holder.signature);
            if (signer != JOBS.workerOf(claim.job, holder.stage, holder.replica)) revert WrongHolder(signer);
            _checkStake(claim.job, holder.stage, holder.replica);
        }

        Demand memory demand = _from(claim.job, holder.stage, holder.replica, program, claim.stage, part);
        (demand.kind, demand.list, demand.tensors) = (DemandKind.State, claim.newState, program.stateCount);
        id = _openAbout(claim, claimId, demand);
    }

    /// @inheritdoc ICustody
    function demandSent(
        Claim calldata claim,
        uint64 committedAt,
        ProgramHeader calldata program,
        bool toNext,
        Part calldata part
    ) external nonReentrant returns (uint256 id) {
        (bytes32 claimId, uint256 steps) = _liveClaim(claim, committedAt);
        Demand memory demand = _from(claim.job, claim.stage, claim.replica, program, claim.stage, part);
        // INVARIANT: nobody is asked for a log that its program does not have.
        if (!Places.isSentTo(program.edges, toNext)) revert WrongPart();
        demand.kind = toNext ? DemandKind.SentToNext : DemandKind.SentToPrevious;
        (demand.list, demand.tensors) = (claim.io, (steps * program.microBatches).toUint32());
        id = _openAbout(claim, claimId, demand);
    }

    /// @dev Id of a claim about which something can be demanded, and the steps of its job's intervals.
    function _liveClaim(Claim calldata claim, uint64 committedAt)
        private
        view
        returns (bytes32 claimId, uint256 stepsPerInterval)
    {
        claimId = CHECKPOINTS.requireLive(claim, committedAt);
        uint256 window;
        (stepsPerInterval, window) = JOBS.termsOf(claim.job);
        uint256 until = uint256(committedAt) + 2 * window;
        // INVARIANT: nothing delays a claim without end (P-10).
        if (block.timestamp >= until) revert DeadlinePassed(until.toUint40());
    }

    /// @dev Opens a demand about a claim, which it holds.
    function _openAbout(Claim calldata claim, bytes32 claimId, Demand memory demand) private returns (uint256 id) {
        (demand.claimId, demand.stage, demand.replica, demand.interval) =
        (claimId, claim.stage, claim.replica, claim.interval);
        id = _open(demand);
        CHECKPOINTS.hold(claimId);
        SNO.safeTransferFrom(msg.sender, address(this), _BOND);
    }

    /// @inheritdoc ICustody
    function demandFiles(
        uint64 job,
        uint16 stage,
        uint16 replica,
        ProgramHeader calldata program,
        bool constants,
        Part calldata part
    ) external nonReentrant returns (uint256 id) {
        IJobs.Job memory record = JOBS.jobOf(job);
        // INVARIANT: who is to answer has a stake that answers for it.
        if (!_isOpen(record.state) || record.kind != JobKind.Training) revert JobNotOpen(job);
        _checkStake(job, stage, replica);

        Demand memory demand = _from(job, stage, replica, program, stage, part);
        (demand.kind, demand.stage, demand.replica) = (DemandKind.Files, stage, replica);
        (demand.list, demand.tensors) = constants
            ? (program.constants, program.constantCount)
            : (JOBS.initialStateOf(job, stage), program.stateCount);
        id = _open(demand);
        SNO.safeTransferFrom(msg.sender, address(this), _BOND);
    }

    /// @dev INVARIANT: who is asked has something to lose: a stake, where it is not about its own claim.
    function _checkStake(uint64 job, uint16 stage, uint16 replica) private view {
        address worker = JOBS.workerOf(job, stage, replica);
        if (worker == address(0) || JOBS.isConvicted(job, stage, replica)) revert WrongHolder(worker);
    }

    /// @dev A demand on the worker of a lane.
    function _from(
        uint64 job,
        uint16 holderStage,
        uint16 holderReplica,
        ProgramHeader calldata program,
        uint16 programStage,
        Part calldata part
    ) private view returns (Demand memory demand) {
        // INVARIANT: what is counted of the list is the registered program's.
        if (keccak256(abi.encode(program)) != JOBS.programOf(job, programStage)) revert WrongProgram();

        (demand.job, demand.holderStage, demand.holderReplica) = (job, holderStage, holderReplica);
        (demand.holder, demand.demander, demand.part) =
        (JOBS.workerOf(job, holderStage, holderReplica), msg.sender, part);
        demand.deadline = (block.timestamp + _CLOCK).toUint40();
        demand.untilBlock = (block.number + _BLOCKS).toUint40();
    }

    function _open(Demand memory demand) private returns (uint256 id) {
        Part memory part = demand.part;
        // INVARIANT: whoever has the data can show what is demanded.
        if (part.tensor >= demand.tensors || part.leaves == 0 || part.leaves > _MOST_LEAVES) revert WrongPart();

        id = ++_demandCount;
        _demands[id] = _hash(demand);
        emit Demanded(id, demand.job, demand.holder, demand);
    }

    /// @inheritdoc ICustody
    function deliver(uint256 id, Demand calldata demand, Delivery calldata delivery) external nonReentrant {
        _take(id, demand);
        // INVARIANT: of what was sent the sender's attestation is owed, too.
        if (_isSent(demand)) revert WrongDelivery();
        _show(id, demand, demand.list, delivery);
    }

    /// @inheritdoc ICustody
    function deliverSent(
        uint256 id,
        Demand calldata demand,
        Delivery calldata delivery,
        BoundaryLogs calldata logs,
        bytes calldata signature
    ) external nonReentrant {
        _take(id, demand);
        if (!_isSent(demand)) revert WrongDelivery();
        // INVARIANT: the logs are those that the claim commits to.
        if (keccak256(abi.encode(logs)) != demand.list) revert WrongDelivery();
        bool toNext = demand.kind == DemandKind.SentToNext;
        bytes32 log = toNext ? logs.toNext : logs.toPrevious;
        _checkAttestation(demand, toNext, log, signature);
        emit WordGiven(id, log, signature);
        _show(id, demand, log, delivery);
    }

    /// @dev Takes a demand off the books for its holder to meet it.
    function _take(uint256 id, Demand calldata demand) private {
        _end(id, demand);
        // INVARIANT: the bond pays for the gas of who delivers.
        if (msg.sender != demand.holder) revert NotHolder(msg.sender);
    }

    /// @dev INVARIANT: a neighbour gets all that it needs to claim what it computes from this: the sender's signature
    /// of the log, too (P-27).
    function _checkAttestation(Demand calldata demand, bool toNext, bytes32 root, bytes calldata signature)
        private
        view
    {
        EdgeLog memory log = EdgeLog({
            job: demand.job,
            replica: demand.replica,
            fromStage: demand.stage,
            toStage: Places.neighbourOf(demand.stage, toNext),
            interval: demand.interval,
            root: root
        });
        // Left out is what else there is to say about a failure.
        // slither-disable-next-line unused-return
        (address signer, ECDSA.RecoverError failure,) = ECDSA.tryRecoverCalldata(DISPUTES.edgeLogDigest(log), signature);
        if (failure != ECDSA.RecoverError.NoError || signer != demand.holder) revert WrongDelivery();
    }

    function _isSent(Demand calldata demand) private pure returns (bool) {
        return demand.kind == DemandKind.SentToPrevious || demand.kind == DemandKind.SentToNext;
    }

    /// @dev Tells what was demanded of the list `list`, and pays for it.
    function _show(uint256 id, Demand calldata demand, bytes32 list, Delivery calldata delivery) private {
        _checkDelivery(demand, list, delivery);

        emit Delivered(id, delivery.range.firstLeaf, delivery.range.leaves);
        if (demand.claimId != 0) CHECKPOINTS.release(demand.claimId);
        SNO.safeTransfer(demand.holder, _BOND);
    }

    function _checkDelivery(Demand calldata demand, bytes32 list, Delivery calldata delivery) private pure {
        TensorType tensorType = delivery.tensorType;
        Part calldata part = demand.part;
        if (!tensorType.isValid()) revert WrongDelivery();
        bytes32 root = Merkle.tensorRoot(tensorType, delivery.dataRoot);
        // INVARIANT: it is the tensor of the list, under its type.
        if (!Merkle.isMember(list, root, part.tensor, demand.tensors, delivery.membership)) {
            revert WrongDelivery();
        }
        uint256 count = tensorType.leafCount();
        uint256 first = part.firstLeaf % count;
        uint256 leaves = part.leaves < count - first ? part.leaves : count - first;
        // INVARIANT: all that was demanded, and nothing else …
        if (delivery.range.firstLeaf != first) revert WrongDelivery();
        if (delivery.range.leaves.length != leaves * TensorTypes.LEAF_BYTES) revert WrongDelivery();
        // INVARIANT: … as the list commits to it.
        if (!Merkle.isRange(delivery.dataRoot, count, first, delivery.range.leaves, delivery.range.siblings)) {
            revert WrongDelivery();
        }
    }

    /// @inheritdoc ICustody
    // Our own contracts, which call nobody that could come back.
    // slither-disable-next-line reentrancy-events
    function expire(uint256 id, Demand calldata demand) external nonReentrant {
        _end(id, demand);
        bool matters = _matters(demand);
        // INVARIANT: nobody is convicted before its time to answer is over, which passes only where blocks are
        // made (P-10).
        if (matters && (block.timestamp <= demand.deadline || block.number < demand.untilBlock)) {
            revert StillOpen(demand.deadline, demand.untilBlock);
        }

        emit DemandExpired(id, matters);
        if (demand.claimId != 0) CHECKPOINTS.release(demand.claimId);
        if (matters) _convict(demand);
        SNO.safeTransfer(demand.demander, _BOND);
    }

    /// @dev Whether data is still owed: the claim stands, or the job goes on; and who owes it has that claim or a stake
    /// to lose.
    function _matters(Demand calldata demand) private view returns (bool) {
        bool stands = demand.claimId == 0
            ? _isOpen(JOBS.stateOf(demand.job))
            : !DISPUTES.isConvicted(demand.job, demand.stage, demand.replica, demand.interval);
        if (!stands || _isOwnClaim(demand)) return stands;
        return !JOBS.isConvicted(demand.job, demand.holderStage, demand.holderReplica);
    }

    function _convict(Demand calldata demand) private {
        if (_isOwnClaim(demand)) {
            DISPUTES.convictSilent(
                demand.job, demand.stage, demand.replica, demand.interval, demand.claimId, demand.demander
            );
        } else {
            DISPUTES.convictHolder(
                demand.job, demand.holderStage, demand.holderReplica, demand.claimId, demand.demander
            );
        }
    }

    function _isOwnClaim(Demand calldata demand) private pure returns (bool) {
        return demand.claimId != 0 && demand.holderStage == demand.stage && demand.holderReplica == demand.replica;
    }

    /// @dev Takes a demand off the books; the last that happens to it.
    function _end(uint256 id, Demand calldata demand) private {
        if (_demands[id] == 0 || _demands[id] != _hash(demand)) revert UnknownDemand(id);
        delete _demands[id];
    }

    function _hash(Demand memory demand) private pure returns (bytes32) {
        return keccak256(abi.encode(demand));
    }

    function _isOpen(IJobs.State state) private pure returns (bool) {
        return state == IJobs.State.Running || state == IJobs.State.Closing;
    }

    /// @inheritdoc ICustody
    function requireHolder(Claim calldata claim, bytes32 claimId, Holder calldata holder) external view {
        address signer = _signerOf(claimId, holder.signature);
        (uint64 job, uint16 stage, uint16 replica) = (claim.job, holder.stage, holder.replica);
        // INVARIANT: the user knows whether it has what it pays for.
        if (signer == JOBS.userOf(job)) return;
        // INVARIANT: a second holder is another party, and answers for its attestation with a stake (P-34).
        if (
            _sameLane(claim, holder) || signer != JOBS.workerOf(job, stage, replica)
                || JOBS.isConvicted(job, stage, replica)
        ) revert WrongHolder(signer);
    }

    function _sameLane(Claim calldata claim, Holder calldata holder) private pure returns (bool) {
        return holder.stage == claim.stage && holder.replica == claim.replica;
    }

    function _signerOf(bytes32 claimId, bytes calldata signature) private view returns (address signer) {
        ECDSA.RecoverError failure;
        // Left out is what else there is to say about a failure.
        // slither-disable-next-line unused-return
        (signer, failure,) = ECDSA.tryRecoverCalldata(holdingDigest(claimId), signature);
        // INVARIANT: an invalid signature attests nothing for the zero address, which lanes without a worker have.
        if (failure != ECDSA.RecoverError.NoError) revert WrongHolder(address(0));
    }

    /// @inheritdoc ICustody
    function holdingDigest(bytes32 claimId) public view returns (bytes32) {
        return _hashTypedDataV4(keccak256(abi.encode(_HOLDING_TYPEHASH, claimId)));
    }

    /// @inheritdoc ICustody
    function demandOf(uint256 id) external view returns (bytes32) {
        return _demands[id];
    }
}
