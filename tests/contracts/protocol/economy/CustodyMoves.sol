// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {ICustody} from "../../../../contracts/interfaces/ICustody.sol";
import {IJobs} from "../../../../contracts/interfaces/IJobs.sol";
import {Delivery, Demand, DemandKind, Holder, Part} from "../../../../contracts/types/Custody.sol";
import {BoundaryLogs, Claim, EdgeLog, JobKind, ProgramHeader} from "../../../../contracts/types/Types.sol";
import {GameMoves} from "./GameMoves.sol";

/// @title Demands for states and files
/// @notice The auditor demands. The honest worker shows everything at once, and signs for nothing that it has not got;
/// the first worker shows nothing, nor does anybody what is wrong, which nobody has; the others do as it comes.
abstract contract CustodyMoves is GameMoves {
    /// @dev By id, from 1.
    mapping(uint256 id => Demand demand) private _demandOf;

    function demandState(uint256 seed, uint256 laneSeed, uint256 noise) external {
        (bool live, Claim memory claim, uint64 when) = _liveClaim(seed, laneSeed, true);
        if (live) _demand(claim, when, noise);
    }

    /// @dev From the claim's own worker, or from another that has signed for it.
    function _demand(Claim memory claim, uint64 when, uint256 noise) internal {
        Holder memory holder = noise % 2 == 0 ? _nobody() : _keeperOf(claim, noise >> 8);
        if (holder.signature.length == 0) (holder.stage, holder.replica) = (claim.stage, claim.replica);
        ProgramHeader memory program = _programAt(claim.stage);
        Part memory part = _somePart(noise);
        Demand memory demand = _demandNow(claim.job, holder.stage, holder.replica, part);
        _about(demand, claim);
        (demand.kind, demand.list, demand.tensors) = (DemandKind.State, claim.newState, 1);

        _fund(auditor, address(custody), parameters.disputeBond);
        vm.prank(auditor);
        _demanded(custody.demandState(claim, when, program, holder, part), demand);
        ++_demandsFor[demand.claimId];
        _deliverIfHonest(demands);
    }

    function demandSent(uint256 seed, uint256 laneSeed, uint256 noise) external {
        (bool live, Claim memory claim, uint64 when) = _liveClaim(seed, laneSeed, true);
        if (!live) return;
        ProgramHeader memory program = _programAt(claim.stage);
        Part memory part = _somePart(noise);
        part.tensor = uint32(noise >> 40) % STEPS;
        Demand memory demand = _demandNow(claim.job, claim.stage, claim.replica, part);
        _about(demand, claim);
        bool toNext = noise % 2 == 0;
        demand.kind = toNext ? DemandKind.SentToNext : DemandKind.SentToPrevious;
        (demand.list, demand.tensors) = (claim.io, STEPS);

        _fund(auditor, address(custody), parameters.disputeBond);
        vm.prank(auditor);
        _demanded(custody.demandSent(claim, when, program, toNext, part), demand);
        ++_demandsFor[demand.claimId];
        _deliverIfHonest(demands);
    }

    function _about(Demand memory demand, Claim memory claim) private view {
        (demand.claimId, demand.interval) = (checkpoints.claimId(claim), claim.interval);
        (demand.stage, demand.replica) = (claim.stage, claim.replica);
    }

    /// @dev Another worker's attestation of the claim's state, if there is one that would give it, and has a stake.
    function _keeperOf(Claim memory claim, uint256 seed) internal view returns (Holder memory holder) {
        (uint256 lane, uint16 stage, uint16 replica) = _lane(claim.job, seed);
        if (convictedOn[claim.job][lane] || stage == claim.stage && replica == claim.replica) return _nobody();
        address who = jobs.workerOf(claim.job, stage, replica);
        bool right = claim.newState == _stateAt(claim.stage, claim.interval + 1);
        if (who == honest() && !right) return _nobody();
        return Holder({stage: stage, replica: replica, signature: _holding(_keyOf(who), claim)});
    }

    function demandFiles(uint256 seed, uint256 laneSeed, uint256 noise) external {
        uint64 job = _job(seed);
        IJobs.State state = _stateOfJob(job);
        if (state != IJobs.State.Running && state != IJobs.State.Closing) return;
        if (jobs.jobOf(job).kind != JobKind.Training) return;
        (uint256 lane, uint16 stage, uint16 replica) = _lane(job, laneSeed);
        Demand memory demand = _demandNow(job, stage, replica, _somePart(noise));
        bool constants = noise % 2 == 0;
        (demand.kind, demand.stage, demand.replica, demand.tensors) = (DemandKind.Files, stage, replica, 1);
        demand.list = constants ? _programAt(stage).constants : _stateAt(stage, 0);
        _demandFiles(demand, constants, convictedOn[job][lane]);
    }

    function _demandFiles(Demand memory demand, bool constants, bool refused) private {
        ProgramHeader memory program = _programAt(demand.stage);
        _fund(auditor, address(custody), parameters.disputeBond);
        if (refused) vm.expectRevert(abi.encodeWithSelector(ICustody.WrongHolder.selector, demand.holder));
        vm.prank(auditor);
        uint256 id = custody.demandFiles(demand.job, demand.stage, demand.replica, program, constants, demand.part);
        if (refused) return;
        _demanded(id, demand);
        _deliverIfHonest(id);
    }

    function _somePart(uint256 noise) private pure returns (Part memory) {
        return Part({tensor: 0, firstLeaf: uint32(noise >> 8), leaves: uint32(1 + noise % 64)});
    }

    function _demandNow(uint64 job, uint16 stage, uint16 replica, Part memory part)
        private
        view
        returns (Demand memory demand)
    {
        (demand.job, demand.holderStage, demand.holderReplica) = (job, stage, replica);
        (demand.holder, demand.demander) = (jobs.workerOf(job, stage, replica), auditor);
        demand.part = part;
        demand.deadline = uint40(block.timestamp + parameters.disputeClock);
        demand.untilBlock = uint40(block.number + parameters.moveBlocks);
    }

    function _demanded(uint256 id, Demand memory demand) private {
        assertEq(id, ++demands);
        assertEq(custody.demandOf(id), keccak256(abi.encode(demand)));
        _demandOf[id] = demand;
    }

    /// @dev Shows what the first demand from `seed` on that is open asks for, if its holder has it and cares.
    function deliver(uint256 seed) external {
        for (uint256 i = 0; i < demands; ++i) {
            uint256 id = (seed % demands + i) % demands + 1;
            if (custody.demandOf(id) == 0 || _demandOf[id].holder == worker(0) || _leafOf(id).length == 0) continue;
            _deliver(id);
            return;
        }
    }

    function _deliverIfHonest(uint256 id) private {
        if (_demandOf[id].holder == honest()) _deliver(id);
    }

    function _deliver(uint256 id) private {
        Demand memory demand = _demandOf[id];
        uint256 before = sno.balanceOf(demand.holder);
        if (_isSent(demand)) {
            _deliverSent(id, demand);
        } else {
            vm.prank(demand.holder);
            custody.deliver(id, demand, _plainDelivery(_leafOf(id)));
        }
        assertEq(sno.balanceOf(demand.holder) - before, parameters.disputeBond);
        _paid(auditor, demand.holder, address(sno), parameters.disputeBond);
        if (demand.claimId != 0) --_demandsFor[demand.claimId];
        ++deliveries;
    }

    function _deliverSent(uint256 id, Demand memory demand) private {
        bool toNext = demand.kind == DemandKind.SentToNext;
        BoundaryLogs memory logs = _plainLogs(demand.stage, demand.interval);
        EdgeLog memory log = EdgeLog({
            job: demand.job,
            replica: demand.replica,
            fromStage: demand.stage,
            toStage: toNext ? demand.stage + 1 : demand.stage == 0 ? type(uint16).max : demand.stage - 1,
            interval: demand.interval,
            root: toNext ? logs.toNext : logs.toPrevious
        });
        bytes memory attestation = _sign(_keyOf(demand.holder), _edgeLogDigest(log));
        Delivery memory delivery = _plainSent(demand.stage, demand.interval, toNext, demand.part.tensor);
        vm.prank(demand.holder);
        custody.deliverSent(id, demand, delivery, logs, attestation);
        ++sentDeliveries;
    }

    function _isSent(Demand memory demand) private pure returns (bool) {
        return demand.kind == DemandKind.SentToNext || demand.kind == DemandKind.SentToPrevious;
    }

    /// @dev The only leaf of the tensor, the only one where it is not of what was sent; none if nobody knows it.
    function _leafOf(uint256 id) private view returns (bytes memory) {
        Demand storage d = _demandOf[id];
        if (_isSent(d)) return _sentLeaf(d.stage, d.interval, d.kind == DemandKind.SentToNext, d.part.tensor);
        if (d.list == _programAt(d.stage).constants) return _constantLeaf(d.stage);
        uint32 interval = d.claimId == 0 ? 0 : d.interval + 1;
        return d.list == _stateAt(d.stage, interval) ? _stateLeaf(d.stage, interval) : bytes("");
    }

    /// @dev Ends the first demand from `seed` on that can be ended so.
    function expire(uint256 seed) public {
        for (uint256 i = 0; i < demands; ++i) {
            uint256 id = (seed % demands + i) % demands + 1;
            if (custody.demandOf(id) == 0) continue;
            bool owed = _isOwed(_demandOf[id]);
            if (owed && block.timestamp <= _demandOf[id].deadline) continue;
            vm.roll(block.number + parameters.moveBlocks);
            _expire(id, _demandOf[id], owed);
            return;
        }
    }

    /// @dev A live claim's state by its worker, anything else by who has a stake.
    function _isOwed(Demand memory d) private view returns (bool) {
        bool own = d.claimId != 0 && d.holderStage == d.stage && d.holderReplica == d.replica;
        bool hasStake = !convictedOn[d.job][uint256(d.holderReplica) * jobs.jobOf(d.job).stages + d.holderStage];
        if (d.claimId == 0) return hasStake && _stateOfJob(d.job) != IJobs.State.Settled;
        return !disputes.isConvicted(d.job, d.stage, d.replica, d.interval) && (own || hasStake);
    }

    function _expire(uint256 id, Demand memory demand, bool owed) private {
        (uint256 supply, uint256 before) = (_supply(), sno.balanceOf(auditor));
        custody.expire(id, demand);
        assertGe(sno.balanceOf(auditor) - before, parameters.disputeBond);
        if (demand.claimId != 0) --_demandsFor[demand.claimId];
        if (!owed) {
            assertEq(_supply(), supply, "nobody is slashed");
            ++lifted;
            return;
        }
        _convictedNow(demand.job, demand.holderStage, demand.holderReplica, supply);
        ++defaults;
    }
}
