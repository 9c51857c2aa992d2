// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {ReentrancyGuardTransient} from "@openzeppelin/contracts/utils/ReentrancyGuardTransient.sol";
import {SafeCast} from "@openzeppelin/contracts/utils/math/SafeCast.sol";

import {ICustody} from "../../interfaces/ICustody.sol";
import {IJobs} from "../../interfaces/IJobs.sol";
import {Places} from "../../libraries/proofs/Places.sol";
import {Demand, DemandKind, Holder, Part} from "../../types/Custody.sol";
import {Claim, JobKind, ProgramHeader} from "../../types/Types.sol";
import {CustodyHolders} from "./CustodyHolders.sol";

/// @title CustodyDemands
/// @notice What can be demanded, and of whom.
abstract contract CustodyDemands is CustodyHolders, ReentrancyGuardTransient {
    using SafeCast for uint256;
    using SafeERC20 for IERC20;

    /// @dev Most leaves of a part: what fits a transaction of common mempools many times.
    uint256 private constant _MOST_LEAVES = 64;

    uint256 private immutable _CLOCK;
    uint256 private immutable _BLOCKS;

    constructor(uint256 clock, uint256 blocks) {
        (_CLOCK, _BLOCKS) = (clock, blocks);
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
}
