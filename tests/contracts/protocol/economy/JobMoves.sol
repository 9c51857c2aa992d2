// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IJobs} from "../../../../contracts/interfaces/IJobs.sol";
import {IStaking} from "../../../../contracts/interfaces/IStaking.sol";
import {JobKind, JobTerms, Offer} from "../../../../contracts/types/Types.sol";
import {State} from "./State.sol";

/// @title Stake and jobs, from post to settlement
abstract contract JobMoves is State {
    // Stake

    function stake(uint256 who, bool asWorker, uint256 amount) external {
        address account = worker(who % workers.length);
        _stake(account, asWorker ? IStaking.Role.Worker : IStaking.Role.Validator, bound(amount, 1, 100 ether));
    }

    function requestUnstake(uint256 who, bool asWorker, uint256 amount) external {
        address account = worker(who % workers.length);
        IStaking.Role role = asWorker ? IStaking.Role.Worker : IStaking.Role.Validator;
        uint256 bonded = staking.accountOf(account, role).bonded;
        if (bonded == 0) return;
        amount = bound(amount, 1, bonded);
        bool leaves = !asWorker && bonded - amount < parameters.validatorCollateral;
        if (leaves && sealedBy[account] > 0) {
            vm.expectRevert(abi.encodeWithSelector(IStaking.AnswersSealed.selector, sealedBy[account]));
            ++heldBackByAnswers;
        }
        vm.prank(account);
        staking.requestUnstake(role, amount);
    }

    function withdraw(uint256 who, bool asWorker) public {
        address account = worker(who % workers.length);
        IStaking.Role role = asWorker ? IStaking.Role.Worker : IStaking.Role.Validator;
        IStaking.Account memory a = staking.accountOf(account, role);
        uint256 needed = a.locked > a.bonded ? a.locked - a.bonded : 0;
        if (a.unbonding <= needed || block.timestamp < a.releaseAt) return;
        vm.prank(account);
        assertEq(staking.withdraw(role), a.unbonding - needed);
        ++withdrawn;
    }

    /// @dev By anybody: it is nobody's.
    function burn() public {
        (uint256 amount, uint256 supply) = (staking.toBurn(), sno.totalSupply());
        if (amount == 0) return;
        assertEq(staking.burn(), amount);
        assertEq(supply - sno.totalSupply(), amount);
        ++burns;
    }

    // Jobs

    /// @param progress how far the job gets at once: posted, accepted or started. Else few would get that far in
    /// a walk.
    function post(bool inEth, uint256 shape, uint256 extra, uint256 progress) external {
        if (jobs.jobCount() >= MAX_JOBS) return;
        (uint16 stages, uint16 replicas) = (uint16(shape % 2) + 1, uint16(shape / 2 % 2) + 1);
        (address token, uint32 count) = (inEth ? ETH : address(sno), uint32(shape / 4 % 3) + 1);
        JobTerms memory terms = shape / 12 % 4 == 0
            ? _servingTerms(token, stages, replicas, 20 * count)
            : _terms(token, stages, replicas, count);
        (terms.acceptBy, terms.duration) = (uint40(block.timestamp + 10 days), 20 days);
        uint256 deposit = _cover(terms) + extra % 1 ether;
        if (inEth) {
            vm.deal(user, user.balance + deposit);
            _given(user, ETH, deposit);
        } else {
            _fund(user, address(jobs), deposit);
        }
        vm.prank(user);
        uint64 job = jobs.post{value: inEth ? deposit : 0}(terms, deposit);
        depositOf[job] = deposit;
        if (progress % 4 > 0) accept(job - 1, extra);
        if (progress % 4 > 1) start(job - 1);
    }

    function accept(uint256 seed, uint256 first) public {
        uint64 job = _job(seed);
        IJobs.Job memory record = jobs.jobOf(job);
        if (record.state != IJobs.State.Posted || block.timestamp > record.acceptBy) return;
        uint256 lanes = uint256(record.stages) * record.replicas;
        (Offer[] memory offers, bytes[] memory signatures) = (new Offer[](lanes), new bytes[](lanes));
        for (uint256 i = 0; i < lanes; ++i) {
            Account memory who = workers[(first % 100 + i) % workers.length];
            IStaking.Account memory has = _staked(who.addr);
            uint256 needed = uint256(has.locked) + STAKE;
            if (has.bonded < needed) _stake(who.addr, IStaking.Role.Worker, needed - has.bonded);
            offers[i] = _offer(job, uint16(i % record.stages), uint16(i / record.stages), who.addr);
            signatures[i] = _sign(who.key, _offerDigest(offers[i]));
        }
        vm.prank(user);
        jobs.accept(job, offers, signatures);
        uint32 units = record.kind == JobKind.Serving ? record.stepsPerInterval : 1;
        budgetOf[job] = _auditBudget(lanes * PRICE, record.intervals, units);
    }

    function start(uint256 seed) public {
        uint64 job = _job(seed);
        IJobs.Job memory record = jobs.jobOf(job);
        if (record.state == IJobs.State.Accepted && block.timestamp <= record.acceptBy) _start(job);
    }

    function cancel(uint256 seed, bool byStranger) public {
        uint64 job = _job(seed);
        IJobs.Job memory record = jobs.jobOf(job);
        if (record.state == IJobs.State.None || record.state >= IJobs.State.Closing) return;
        uint40 limit = record.state == IJobs.State.Running ? record.deadline : record.acceptBy;
        // The user seldom does: most jobs shall get somewhere.
        if (byStranger ? block.timestamp <= limit : seed % 8 != 0) return;
        vm.prank(byStranger ? stranger : user);
        jobs.cancel(job);
        _closedAt[job] = block.timestamp;
    }

    function settle(uint256 seed) public {
        uint64 job = _job(seed);
        IJobs.Job memory record = jobs.jobOf(job);
        if (record.state != IJobs.State.Running && record.state != IJobs.State.Closing) return;
        if (record.kind == JobKind.Serving) {
            if (record.state != IJobs.State.Closing || block.timestamp < record.deadline) return;
            if (!_isAudited(job, record)) return;
        } else if (!_noClaimIsPending(job, record)) {
            return;
        }
        jobs.settle(job);
        ++settled;
    }

    /// @dev Whether every lane's last redemption is a window old; if not, settlement is refused, though nothing can be
    /// redeemed any more. It never takes longer than another window.
    function _isAudited(uint64 job, IJobs.Job memory record) private returns (bool) {
        uint256 from = record.deadline;
        for (uint256 lane = 0; lane < uint256(record.stages) * record.replicas; ++lane) {
            uint256 redeemedAt = redeemedAtOf[job][lane];
            if (redeemedAt > 0 && redeemedAt + record.challengeWindow > from) {
                from = redeemedAt + record.challengeWindow;
            }
        }
        assertLt(from, uint256(record.deadline) + record.challengeWindow, "settlement is bounded");
        if (block.timestamp >= from) return true;
        vm.expectRevert(abi.encodeWithSelector(IJobs.WindowOpen.selector, from));
        jobs.settle(job);
        ++heldUpByRedemptions;
        return false;
    }

    function _noClaimIsPending(uint64 job, IJobs.Job memory record) internal view returns (bool) {
        for (uint256 lane = 0; lane < uint256(record.stages) * record.replicas; ++lane) {
            (uint16 stage, uint16 replica) = (uint16(lane % record.stages), uint16(lane / record.stages));
            if (checkpoints.hasPending(job, stage, replica)) return false;
            uint32 done = checkpoints.laneOf(job, stage, replica).finalized;
            bool late = _sealedOf[job][lane] == done && block.timestamp >= _sealsEnd(job, stage, done);
            if (record.state == IJobs.State.Running && done != record.intervals && !late) return false;
        }
        return true;
    }

    function collect(uint256 who, bool inEth) public {
        address account = who % 7 == 6 ? user : worker(who % 7 % workers.length);
        address token = inEth ? ETH : address(sno);
        if (jobs.creditOf(account, token) == 0) return;
        vm.prank(account);
        jobs.collect(token);
    }
}
