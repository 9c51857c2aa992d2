// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {ICheckpoints} from "../../../../contracts/interfaces/ICheckpoints.sol";
import {ICustody} from "../../../../contracts/interfaces/ICustody.sol";
import {IDisputes} from "../../../../contracts/interfaces/IDisputes.sol";
import {IJobs} from "../../../../contracts/interfaces/IJobs.sol";
import {IStaking} from "../../../../contracts/interfaces/IStaking.sol";
import {Demand, Holder} from "../../../../contracts/types/Custody.sol";
import {Claim} from "../../../../contracts/types/Types.sol";
import {CustodyTest} from "../../protocol/CustodyTest.sol";

/// @dev `expire`: who withholds is convicted, whose time is not over is not, and every bond and claim comes free.
contract CustodyEndsTest is CustodyTest {
    // When

    /// @dev To the second and to the block: on a chain that makes no blocks nobody loses time.
    function testFuzz_neverBeforeItsTime(uint256 time, uint256 blocks, bool own) public {
        (uint256 id, Demand memory demand) = own ? _demandOwn() : _demandKept();
        time = time % 2 == 0 ? CLOCK + time / 2 % 3 - 1 : time / 2 % (3 * CLOCK);
        blocks %= 2 * parameters.moveBlocks;
        skip(time);
        vm.roll(block.number + blocks);
        bool over = time > CLOCK && blocks >= parameters.moveBlocks;
        if (!over) {
            vm.expectRevert(abi.encodeWithSelector(ICustody.StillOpen.selector, demand.deadline, demand.untilBlock));
        }
        custody.expire(id, demand);
        assertEq(_staked(demand.holder).bonded, over ? 0 : STAKE);
        assertEq(custody.demandOf(id) == 0, over);
    }

    /// @dev After an outage longer than the clock the holder comes first.
    function test_anOutageConvictsNobody() public {
        (uint256 id, Demand memory demand) = _demandOwn();
        skip(3 days);
        vm.roll(block.number + 1);
        vm.expectRevert(abi.encodeWithSelector(ICustody.StillOpen.selector, demand.deadline, demand.untilBlock));
        custody.expire(id, demand);
        _deliver(id, demand, _shownOwn());
    }

    // Who is convicted of what

    /// @dev The claim and those after it are void, those before stand; the slash is split as any (P-7), and the bond
    /// goes back, whoever ends it.
    function test_theClaimsOwnWorker() public {
        (Claim memory second,) = _commit(job, STAGE, 0, 1, committedAt);
        (Claim memory third,) = _commit(job, STAGE, 0, 2, committedAt);
        (uint256 id, Demand memory demand) = _demandStateOf(second, committedAt, _own(), _part(0, 0, 1));
        _toEnd(demand);
        vm.expectEmit(address(custody));
        emit ICustody.DemandExpired(id, true);
        _expectConvicted(checkpoints.claimId(second), STAGE, IDisputes.Fault.Silence);
        vm.expectEmit(address(checkpoints));
        emit ICheckpoints.ClaimsVoided(job, STAGE, 0, 1);
        _expireAndSplit(id, demand);

        assertTrue(disputes.isConvicted(job, STAGE, 0, 2));
        vm.expectRevert(ICheckpoints.ClaimIsVoid.selector);
        checkpoints.requireLive(third, committedAt);
        _finalizeBy(claim, committedAt, _nobody());
        jobs.settle(job);
        assertEq(jobs.creditOf(workers[STAGE].addr, address(sno)), PRICE);
        assertEq(jobs.creditOf(user, address(sno)), 8 * PRICE);
    }

    /// @dev What it signed for stands, and so do its own claims, which are paid.
    function test_whoSignedForIt() public {
        (Claim memory kept, uint64 when) = _commit(job, KEEPER, 0, 0, 0);
        (uint256 id, Demand memory demand) = _demandKept();
        _toEnd(demand);
        vm.expectEmit(address(custody));
        emit ICustody.DemandExpired(id, true);
        _expectConvicted(checkpoints.claimId(claim), KEEPER, IDisputes.Fault.Withholding);
        _expireAndSplit(id, demand);

        assertEq(checkpoints.laneOf(job, KEEPER, 0).voidFrom, type(uint32).max);
        assertEq(checkpoints.laneOf(job, STAGE, 0).voidFrom, type(uint32).max);
        // Its attestation of another claim does not count any more.
        Holder memory keeper = _keeper();
        vm.expectRevert(abi.encodeWithSelector(ICustody.WrongHolder.selector, workers[KEEPER].addr));
        _finalizeBy(claim, committedAt, keeper);
        _finalizeBy(claim, committedAt, _nobody());
        _finalizeBy(kept, when, _nobody());
        jobs.settle(job);
        assertEq(jobs.creditOf(workers[KEEPER].addr, address(sno)), PRICE);
        assertEq(_staked(workers[STAGE].addr).locked, 0);
        assertEq(_staked(workers[STAGE].addr).bonded, STAKE);
    }

    /// @dev Whether of constants or of the initial state, of a lane with claims or without.
    function testFuzz_whoHasNotTheFiles(uint16 stage, bool constants) public {
        stage = uint16(bound(stage, 0, 2));
        (uint256 id, Demand memory demand) = _demandFiles(stage, constants, _part(0, 0, 1));
        _toEnd(demand);
        vm.expectEmit(address(custody));
        emit ICustody.DemandExpired(id, true);
        _expectConvicted(0, stage, IDisputes.Fault.Withholding);
        _expireAndSplit(id, demand);
        assertEq(checkpoints.laneOf(job, stage, 0).voidFrom, type(uint32).max);
        _finalizeBy(claim, committedAt, _nobody());
        jobs.settle(job);
        assertEq(jobs.creditOf(workers[STAGE].addr, address(sno)), PRICE);
    }

    /// @dev 50 % to the demander, 30 % to the user, 20 % burned; the job closes.
    function _expireAndSplit(uint256 id, Demand memory demand) private {
        (uint256 supply, uint256 users) = (_supply(), sno.balanceOf(user));
        vm.prank(stranger);
        custody.expire(id, demand);
        assertEq(sno.balanceOf(auditor), 1000 ether + STAKE / 4);
        assertEq(sno.balanceOf(user) - users, STAKE * 3 / 10);
        assertEq(supply - _supply(), STAKE * 9 / 20);
        assertEq(sno.balanceOf(stranger), 0);
        assertEq(sno.balanceOf(address(custody)), 0);
        assertEq(_staked(demand.holder).bonded + _staked(demand.holder).locked, 0);
        assertTrue(jobs.isConvicted(job, demand.holderStage, demand.holderReplica));
        assertEq(uint8(_stateOfJob(job)), uint8(IJobs.State.Closing));
    }

    function test_onlyCustodyConvicts() public {
        vm.expectRevert(abi.encodeWithSelector(IDisputes.Unauthorized.selector, address(challenges)));
        vm.prank(address(challenges));
        disputes.convictHolder(job, STAGE, 0, 0, auditor);
        vm.expectRevert(abi.encodeWithSelector(IDisputes.Unauthorized.selector, address(this)));
        disputes.convictSilent(job, STAGE, 0, 0, 0, auditor);
    }

    // What is owed no more

    /// @dev A conviction of the claim, or of an earlier one of its lane, frees the bonds of all demands for it,
    /// at once.
    function testFuzz_theClaimIsVoid(bool earlier, bool kept) public {
        (Claim memory second,) = _commit(job, STAGE, 0, 1, committedAt);
        Holder memory holder = kept ? _keeperOf(second) : _own();
        (uint256 id, Demand memory demand) = _demandStateOf(second, committedAt, holder, _part(0, 0, 1));
        _refute(earlier ? claim : second, committedAt);
        _bondReturns(id, demand);
    }

    /// @dev A conviction of a later claim says nothing about an earlier one: its data is still owed.
    function test_aLaterClaimIsVoid() public {
        (Claim memory second,) = _commit(job, STAGE, 0, 1, committedAt);
        (uint256 id, Demand memory demand) = _demandOwn();
        _refute(second, committedAt);
        vm.expectRevert(abi.encodeWithSelector(ICustody.StillOpen.selector, demand.deadline, demand.untilBlock));
        custody.expire(id, demand);
        _deliver(id, demand, _shownOwn());
        _demandOwn();
    }

    /// @dev Who has lost its stake by another proof owes neither files nor what it signed for; the others do.
    function test_theHolderIsConvictedOtherwise() public {
        (Claim memory own, uint64 when) = _commit(job, KEEPER, 0, 0, 0);
        (uint256 kept, Demand memory keptDemand) = _demandKept();
        (uint256 files, Demand memory filesDemand) = _demandFiles(KEEPER, true, _part(0, 0, 1));
        (uint256 other, Demand memory otherDemand) = _demandFiles(0, true, _part(0, 0, 1));
        _refute(own, when);
        _bondReturns(kept, keptDemand);
        _bondReturns(files, filesDemand);
        vm.expectRevert(
            abi.encodeWithSelector(ICustody.StillOpen.selector, otherDemand.deadline, otherDemand.untilBlock)
        );
        custody.expire(other, otherDemand);
        skip(2 * WINDOW);
        _finalizeBy(claim, committedAt, _nobody());
    }

    /// @dev Of files: the job is settled, and nobody is convicted, however late.
    function testFuzz_theJobIsSettled(uint256 time, bool constants) public {
        skip(WINDOW);
        (uint256 id, Demand memory demand) = _demandFiles(STAGE, constants, _part(0, 0, 1));
        _finalizeBy(claim, committedAt, _keeper());
        vm.prank(user);
        jobs.cancel(job);
        jobs.settle(job);
        skip(time % (3 * CLOCK));
        _bondReturns(id, demand);
        assertEq(_staked(workers[STAGE].addr).bonded, STAKE);
        assertEq(_staked(workers[STAGE].addr).locked, 0);
    }

    /// @dev Of what was signed for: the claim is void, and so the job can be settled before the demand has ended.
    function test_theJobOfAVoidClaimIsSettled() public {
        (uint256 id, Demand memory demand) = _demandKept();
        _refute(claim, committedAt);
        jobs.settle(job);
        skip(CLOCK + 1);
        vm.roll(demand.untilBlock);
        _bondReturns(id, demand);
        assertEq(_staked(workers[KEEPER].addr).bonded, STAKE);
    }

    function _bondReturns(uint256 id, Demand memory demand) private {
        (uint256 before, uint256 supply) = (sno.balanceOf(auditor), _supply());
        vm.expectEmit(address(custody));
        emit ICustody.DemandExpired(id, false);
        custody.expire(id, demand);
        assertEq(sno.balanceOf(auditor) - before, BOND);
        assertEq(_supply(), supply, "nobody is slashed");
        vm.expectRevert(abi.encodeWithSelector(ICustody.UnknownDemand.selector, id));
        custody.expire(id, demand);
    }

    // Once only

    /// @dev P-6: a lane's stake is taken once, though it withholds several things, from several.
    function test_aHolderIsConvictedOnce() public {
        _stake(workers[KEEPER].addr, IStaking.Role.Worker, STAKE);
        (uint256 kept, Demand memory keptDemand) = _demandKept();
        (uint256 again, Demand memory againDemand) = _demandKept();
        (uint256 files, Demand memory filesDemand) = _demandFiles(KEEPER, true, _part(0, 0, 1));
        _default(files, filesDemand);
        _bondReturns(kept, keptDemand);
        _bondReturns(again, againDemand);
        assertEq(sno.balanceOf(auditor), 1000 ether + STAKE / 4);
        assertEq(_staked(workers[KEEPER].addr).bonded, STAKE, "not again");
    }

    function test_aWorkerIsConvictedOnce() public {
        _stake(workers[STAGE].addr, IStaking.Role.Worker, STAKE);
        (uint256 first, Demand memory firstDemand) = _demandOwn();
        (uint256 second, Demand memory secondDemand) = _demandOwn();
        _default(second, secondDemand);
        _bondReturns(first, firstDemand);
        assertEq(sno.balanceOf(auditor), 1000 ether + STAKE / 4);
        assertEq(_staked(workers[STAGE].addr).bonded, STAKE, "not again");
    }

    /// @dev A worker cannot spare itself the loss of claims that it does not show by having lost its stake over
    /// something else: they are void, for no second slash.
    function testFuzz_noStakeIsNoExcuse(uint256 how) public {
        _stake(workers[STAGE].addr, IStaking.Role.Worker, STAKE);
        (Claim memory second,) = _commit(job, STAGE, 0, 1, committedAt);
        (uint256 id, Demand memory demand) = _demandOwn();
        if (how % 3 == 0) {
            _refute(second, committedAt);
        } else if (how % 3 == 1) {
            (uint256 later, Demand memory laterDemand) = _demandStateOf(second, committedAt, _own(), _part(0, 0, 1));
            _default(later, laterDemand);
        } else {
            (uint256 files, Demand memory filesDemand) = _demandFiles(STAGE, true, _part(0, 0, 1));
            _default(files, filesDemand);
        }
        assertTrue(jobs.isConvicted(job, STAGE, 0));
        assertFalse(disputes.isConvicted(job, STAGE, 0, 0));
        uint256 had = sno.balanceOf(auditor);
        _default(id, demand);
        assertTrue(disputes.isConvicted(job, STAGE, 0, 0));
        assertEq(sno.balanceOf(auditor) - had, BOND);
        assertEq(_staked(workers[STAGE].addr).bonded, STAKE, "not again");
        jobs.settle(job);
        assertEq(jobs.creditOf(user, address(sno)), 9 * PRICE);
    }
}
