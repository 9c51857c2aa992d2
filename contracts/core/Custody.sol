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
import {Merkle} from "../libraries/Merkle.sol";
import {TensorTypes} from "../libraries/TensorTypes.sol";
import {Delivery, Demand, Holder, Part} from "../types/Custody.sol";
import {Claim, JobKind, ProgramHeader, TensorType} from "../types/Types.sol";

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
    uint256 private immutable _BOND;

    uint256 private _demandCount;
    mapping(uint256 id => bytes32 hash) private _demands;

    constructor(IERC20 sno, IJobs jobs, ICheckpoints checkpoints, IDisputes disputes, uint256 clock, uint256 bond)
        EIP712("Tensorlink", "1")
    {
        SNO = sno;
        JOBS = jobs;
        CHECKPOINTS = checkpoints;
        DISPUTES = disputes;
        _CLOCK = clock;
        _BOND = bond;
    }

    /// @inheritdoc ICustody
    function demandState(
        Claim calldata claim,
        uint64 committedAt,
        ProgramHeader calldata program,
        Holder calldata holder,
        Part calldata part
    ) external nonReentrant returns (uint256 id) {
        bytes32 claimId = CHECKPOINTS.requireLive(claim, committedAt);
        uint256 until = uint256(committedAt) + 2 * uint256(JOBS.jobOf(claim.job).challengeWindow);
        // INVARIANT: nothing delays a claim without end (P-10).
        if (block.timestamp >= until) revert DeadlinePassed(until.toUint40());
        // INVARIANT: nobody answers for another's word.
        if (holder.stage != claim.stage || holder.replica != claim.replica) {
            address signer = _signerOf(claimId, holder.signature);
            if (signer != JOBS.workerOf(claim.job, holder.stage, holder.replica)) revert WrongHolder(signer);
        }

        Demand memory demand = _from(claim.job, holder.stage, holder.replica, program, claim.stage, part);
        (demand.claimId, demand.stage, demand.replica, demand.interval) =
        (claimId, claim.stage, claim.replica, claim.interval);
        (demand.list, demand.tensors) = (claim.newState, program.stateCount);
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

        Demand memory demand = _from(job, stage, replica, program, stage, part);
        (demand.stage, demand.replica) = (stage, replica);
        (demand.list, demand.tensors) = constants
            ? (program.constants, program.constantCount)
            : (JOBS.initialStateOf(job, stage), program.stateCount);
        id = _open(demand);
        SNO.safeTransferFrom(msg.sender, address(this), _BOND);
    }

    /// @dev A demand on the worker of a lane that is not convicted: who is has nothing left to lose.
    function _from(
        uint64 job,
        uint16 holderStage,
        uint16 holderReplica,
        ProgramHeader calldata program,
        uint16 programStage,
        Part calldata part
    ) private view returns (Demand memory demand) {
        address worker = JOBS.workerOf(job, holderStage, holderReplica);
        if (worker == address(0) || JOBS.isConvicted(job, holderStage, holderReplica)) revert WrongHolder(worker);
        // INVARIANT: what is counted of the list is the registered program's.
        if (keccak256(abi.encode(program)) != JOBS.programOf(job, programStage)) revert WrongProgram();

        (demand.job, demand.holderStage, demand.holderReplica) = (job, holderStage, holderReplica);
        (demand.holder, demand.demander, demand.part) = (worker, msg.sender, part);
        demand.deadline = (block.timestamp + _CLOCK).toUint40();
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
        _end(id, demand);
        // INVARIANT: the bond pays for the gas of who delivers.
        if (msg.sender != demand.holder) revert NotHolder(msg.sender);
        _checkDelivery(demand, delivery);

        emit Delivered(id, delivery.range.firstLeaf, delivery.range.leaves);
        if (demand.claimId != 0) CHECKPOINTS.release(demand.claimId);
        SNO.safeTransfer(demand.holder, _BOND);
    }

    function _checkDelivery(Demand calldata demand, Delivery calldata delivery) private pure {
        TensorType tensorType = delivery.tensorType;
        Part calldata part = demand.part;
        if (!tensorType.isValid()) revert WrongDelivery();
        bytes32 root = Merkle.tensorRoot(tensorType, delivery.dataRoot);
        // INVARIANT: it is the tensor of the list, under its type.
        if (!Merkle.isMember(demand.list, root, part.tensor, demand.tensors, delivery.membership)) {
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
        // INVARIANT: nobody is convicted before its time to answer is over.
        if (matters && block.timestamp <= demand.deadline) revert StillOpen(demand.deadline);

        emit DemandExpired(id, matters);
        if (demand.claimId != 0) CHECKPOINTS.release(demand.claimId);
        if (matters) _convict(demand);
        SNO.safeTransfer(demand.demander, _BOND);
    }

    /// @dev Whether data is still owed: the claim stands, or the job goes on, and the holder has a stake that answers for it.
    function _matters(Demand calldata demand) private view returns (bool) {
        if (JOBS.isConvicted(demand.job, demand.holderStage, demand.holderReplica)) return false;
        if (demand.claimId == 0) return _isOpen(JOBS.jobOf(demand.job).state);
        return !DISPUTES.isConvicted(demand.job, demand.stage, demand.replica, demand.interval);
    }

    function _convict(Demand calldata demand) private {
        bool own = demand.holderStage == demand.stage && demand.holderReplica == demand.replica;
        if (own && demand.claimId != 0) {
            DISPUTES.convictSilent(
                demand.job, demand.stage, demand.replica, demand.interval, demand.claimId, demand.demander
            );
        } else {
            DISPUTES.convictHolder(
                demand.job, demand.holderStage, demand.holderReplica, demand.claimId, demand.demander
            );
        }
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
        // INVARIANT: a second holder is another party, and answers for its word with a stake (P-34).
        bool same = stage == claim.stage && replica == claim.replica;
        if (same || signer != JOBS.workerOf(job, stage, replica) || JOBS.isConvicted(job, stage, replica)) {
            revert WrongHolder(signer);
        }
    }

    function _signerOf(bytes32 claimId, bytes calldata signature) private view returns (address signer) {
        ECDSA.RecoverError failure;
        // Left out is what else there is to say about a failure.
        // slither-disable-next-line unused-return
        (signer, failure,) = ECDSA.tryRecoverCalldata(holdingDigest(claimId), signature);
        // INVARIANT: nobody's word is not the word of the zero address, which lanes without a worker have.
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
