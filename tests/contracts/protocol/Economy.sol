// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IDisputes} from "../../../contracts/interfaces/IDisputes.sol";
import {IJobs} from "../../../contracts/interfaces/IJobs.sol";
import {IStaking} from "../../../contracts/interfaces/IStaking.sol";
import {Claim, ContradictionProof, JobTerms, Offer, StepStatement} from "../../../contracts/types/Types.sol";
import {ProtocolTest} from "./ProtocolTest.sol";

/// @title Everybody doing anything, in any order
/// @notice The moves of the invariant tests. A move that is not open to anyone at the moment does nothing, so no call reverts
/// and every revert is a finding. What the contracts are checked against is counted here, apart from them.
contract Economy is ProtocolTest {
    uint256 public constant MAX_JOBS = 30;

    /// @dev What a lane's claims were committed at, and by whom.
    mapping(uint64 job => mapping(uint256 lane => uint64[] times)) private _times;
    mapping(uint64 job => uint256 deposit) public depositOf;
    uint256 public burned;
    uint256 public convictions;
    uint256 public finalized;
    uint256 public settled;
    uint256 public withdrawn;
    uint256 public disputesWon;
    uint256 public disputesLost;

    // Who and what

    function worker(uint256 i) public view returns (address) {
        return workers[i].addr;
    }

    function contracts() external view returns (address, address, address, address, address) {
        return (address(sno), address(staking), address(jobs), address(checkpoints), address(disputes));
    }

    function people() external view returns (address[] memory list) {
        list = new address[](workers.length + 2);
        for (uint256 i = 0; i < workers.length; ++i) {
            list[i] = workers[i].addr;
        }
        (list[workers.length], list[workers.length + 1]) = (user, auditor);
    }

    /// @dev The first job from `seed` on that is not settled, or any, or 0 if there is none.
    function _job(uint256 seed) private view returns (uint64 job) {
        uint64 count = jobs.jobCount();
        for (uint64 i = 0; i < count; ++i) {
            job = (uint64(seed % count) + i) % count + 1;
            if (_stateOfJob(job) != IJobs.State.Settled) return job;
        }
    }

    function _lane(uint64 job, uint256 seed) private view returns (uint256 lane, uint16 stage, uint16 replica) {
        IJobs.Job memory record = jobs.jobOf(job);
        lane = seed % (uint256(record.stages) * record.replicas);
        return (lane, uint16(lane % record.stages), uint16(lane / record.stages));
    }

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
        vm.prank(account);
        staking.requestUnstake(role, bound(amount, 1, bonded));
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

    // Jobs

    /// @param progress how far the job gets at once: posted, accepted or started. Else few would get that far in a walk.
    function post(bool inEth, uint256 shape, uint256 extra, uint256 progress) external {
        if (jobs.jobCount() >= MAX_JOBS) return;
        (uint16 stages, uint16 replicas) = (uint16(shape % 2) + 1, uint16(shape / 2 % 2) + 1);
        JobTerms memory terms = _terms(inEth ? ETH : address(sno), stages, replicas, uint32(shape / 4 % 3) + 1);
        (terms.acceptBy, terms.duration) = (uint40(block.timestamp + 10 days), 20 days);
        uint256 deposit = _cover(terms) + extra % 1 ether;
        if (inEth) vm.deal(user, deposit);
        else _fund(user, address(jobs), deposit);
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
    }

    function settle(uint256 seed) public {
        uint64 job = _job(seed);
        IJobs.Job memory record = jobs.jobOf(job);
        if (record.state != IJobs.State.Running && record.state != IJobs.State.Closing) return;
        for (uint256 lane = 0; lane < uint256(record.stages) * record.replicas; ++lane) {
            (uint16 stage, uint16 replica) = (uint16(lane % record.stages), uint16(lane / record.stages));
            if (checkpoints.hasPending(job, stage, replica)) return;
            bool done = checkpoints.laneOf(job, stage, replica).finalized == record.intervals;
            if (record.state == IJobs.State.Running && !done) return;
        }
        jobs.settle(job);
        ++settled;
    }

    function collect(uint256 who, bool inEth) public {
        address account = who % 7 == 6 ? user : worker(who % 7 % workers.length);
        address token = inEth ? ETH : address(sno);
        if (jobs.creditOf(account, token) == 0) return;
        vm.prank(account);
        jobs.collect(token);
    }

    // Claims

    function commit(uint256 seed, uint256 laneSeed) external {
        uint64 job = _job(seed);
        IJobs.Job memory record = jobs.jobOf(job);
        if (record.state != IJobs.State.Running || block.timestamp > record.deadline) return;
        (uint256 lane, uint16 stage, uint16 replica) = _lane(job, laneSeed);
        uint64[] storage times = _times[job][lane];
        if (times.length == record.intervals) return;
        _commit(job, stage, replica, uint32(times.length), times.length == 0 ? 0 : times[times.length - 1]);
        times.push(uint64(block.timestamp));
    }

    /// @dev Finalises what can be of a lane's next claim.
    function finalize(uint256 seed, uint256 laneSeed) public {
        uint64 job = _job(seed);
        if (jobs.jobOf(job).state < IJobs.State.Running) return;
        (uint256 lane, uint16 stage, uint16 replica) = _lane(job, laneSeed);
        uint32 next = checkpoints.laneOf(job, stage, replica).finalized;
        uint64[] storage times = _times[job][lane];
        if (next >= times.length || next >= checkpoints.laneOf(job, stage, replica).voidFrom) return;
        if (block.timestamp < times[next] + WINDOW || _isDisputed(_claim(job, stage, replica, next))) return;
        _finalize(job, stage, replica, next, next + 1, times[next]);
        ++finalized;
    }

    // Disputes

    function openDispute(uint256 seed, uint256 laneSeed) public {
        (bool live, Claim memory claim, uint64 when) = _liveClaim(seed, laneSeed);
        if (!live || block.timestamp >= when + WINDOW) return;
        _fund(auditor, address(disputes), parameters.disputeBond);
        vm.prank(auditor);
        disputes.open(claim, when);
    }

    /// @dev Ends the first dispute from `seed` on that can be ended.
    function timeout(uint256 seed) public {
        uint256 count = disputes.disputeCount();
        for (uint256 i = 0; i < count; ++i) {
            uint256 dispute = (seed % count + i) % count + 1;
            IDisputes.Dispute memory d = disputes.disputeOf(dispute);
            bool won = checkpoints.laneOf(d.job, d.stage, d.replica).voidFrom <= d.interval;
            if (d.state != IDisputes.State.Open || (!won && block.timestamp < d.deadline)) continue;
            disputes.timeout(dispute);
            if (won) ++disputesWon;
            else ++disputesLost;
            return;
        }
    }

    /// @dev The worker contradicts itself in what it signs, now and then after somebody has opened a dispute.
    function convict(uint256 seed, uint256 laneSeed, uint256 chance) external {
        (bool live, Claim memory claim, uint64 when) = _liveClaim(seed, laneSeed);
        if (!live || chance % 2 == 0) return;
        if (chance / 2 % 2 == 0) openDispute(seed, laneSeed);
        StepStatement memory lie = StepStatement({
            claimId: checkpoints.claimId(claim),
            auditor: auditor,
            step: claim.interval * STEPS,
            preState: 0,
            postState: 0,
            trace: 0
        });
        address liar = jobs.workerOf(claim.job, claim.stage, claim.replica);
        ContradictionProof memory proof;
        (proof.claim, proof.committedAt, proof.first) = (claim, when, lie);
        for (uint256 i = 0; i < workers.length; ++i) {
            if (workers[i].addr == liar) proof.firstSignature = _sign(workers[i].key, _statementDigest(lie));
        }
        uint256 supply = sno.totalSupply();
        disputes.proveSignedContradiction(proof);
        burned += supply - sno.totalSupply();
        ++convictions;
    }

    /// @dev The lane's last claim or its next to be final.
    function _liveClaim(uint256 seed, uint256 laneSeed) private view returns (bool, Claim memory claim, uint64) {
        uint64 job = _job(seed);
        if (jobs.jobOf(job).state < IJobs.State.Running) return (false, claim, 0);
        (uint256 lane, uint16 stage, uint16 replica) = _lane(job, laneSeed);
        uint256 count = _times[job][lane].length;
        if (!checkpoints.hasPending(job, stage, replica)) return (false, claim, 0);
        uint256 interval = checkpoints.laneOf(job, stage, replica).finalized;
        if (seed % 2 == 0 && checkpoints.laneOf(job, stage, replica).voidFrom >= count) interval = count - 1;
        return (true, _claim(job, stage, replica, uint32(interval)), _times[job][lane][interval]);
    }

    function _isDisputed(Claim memory claim) private view returns (bool) {
        bytes32 id = checkpoints.claimId(claim);
        for (uint256 i = 1; i <= disputes.disputeCount(); ++i) {
            IDisputes.Dispute memory d = disputes.disputeOf(i);
            if (d.claimId == id && d.state == IDisputes.State.Open) return true;
        }
        return false;
    }

    // Time

    function pass(uint256 time) external {
        skip(bound(time, 1, 3 hours));
    }

    function passLong(uint256 time) external {
        skip(bound(time, 1, 48) * 1 hours);
    }

    /// @dev P-10: everything ends, with nobody's help but the clock's: strangers cancel, time out, finalise and settle.
    function everythingEnds() external {
        skip(21 days);
        for (uint64 job = 1; job <= jobs.jobCount(); ++job) {
            cancel(job - 1, true);
        }
        for (uint256 i = 0; i < disputes.disputeCount(); ++i) {
            timeout(i);
        }
        for (uint64 job = 1; job <= jobs.jobCount(); ++job) {
            for (uint256 k = 0; k < 12; ++k) {
                finalize(job - 1, k);
            }
            settle(job - 1);
            assertEq(uint8(_stateOfJob(job)), uint8(IJobs.State.Settled));
        }
        for (uint256 i = 0; i < 7; ++i) {
            collect(i, true);
            collect(i, false);
        }
        for (uint256 i = 0; i < workers.length; ++i) {
            _unstakeAll(worker(i), IStaking.Role.Worker);
            _unstakeAll(worker(i), IStaking.Role.Validator);
        }
        skip(parameters.unbondingDelay);
        for (uint256 i = 0; i < workers.length; ++i) {
            withdraw(i, true);
            withdraw(i, false);
        }
    }

    function _unstakeAll(address account, IStaking.Role role) private {
        uint256 bonded = staking.accountOf(account, role).bonded;
        if (bonded == 0) return;
        vm.prank(account);
        staking.requestUnstake(role, bonded);
    }
}
