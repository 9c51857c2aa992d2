// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IERC20Errors} from "@openzeppelin/contracts/interfaces/draft-IERC6093.sol";
import {SafeCast} from "@openzeppelin/contracts/utils/math/SafeCast.sol";

import {ICheckpoints} from "../../../../contracts/interfaces/ICheckpoints.sol";
import {ICustody} from "../../../../contracts/interfaces/ICustody.sol";
import {IDisputes} from "../../../../contracts/interfaces/IDisputes.sol";
import {IJobs} from "../../../../contracts/interfaces/IJobs.sol";
import {IStaking} from "../../../../contracts/interfaces/IStaking.sol";
import {Demand, Part} from "../../../../contracts/types/Custody.sol";
import {Claim, JobTerms, ProgramHeader} from "../../../../contracts/types/Types.sol";
import {SentTest} from "../../protocol/SentTest.sol";

/// @dev `demandSent`, and how it ends where nothing is shown: who claims what it computed, and keeps it from its
/// neighbour, is convicted.
contract CustodySentTest is SentTest {
    // What can be demanded

    /// @dev Of the claim's own worker, whoever demands, in either direction; it is on the books, and the claim is held
    /// back, for a bond.
    function testFuzz_anyPlace(bool toNext, uint32 tensor, uint32 firstLeaf, uint32 leaves) public {
        Part memory part = _part(tensor % ENTRIES, firstLeaf, uint32(bound(leaves, 1, 64)));
        Demand memory expected = _sentDemand(claim, toNext, part);
        assertEq(expected.holder, workers[STAGE].addr);
        vm.expectEmit(address(custody));
        emit ICustody.Demanded(1, job, workers[STAGE].addr, expected);
        (uint256 id,) = _demandSent(toNext, part);
        assertEq(custody.demandOf(id), keccak256(abi.encode(expected)));
        assertEq(sno.balanceOf(auditor), 1000 ether - BOND);
        assertEq(sno.balanceOf(address(custody)), BOND);
        skip(2 * WINDOW);
        _isHeldBack(claim, committedAt);
    }

    /// @dev A place that the log does not have is refused, so that nobody is asked for what nobody can show: an entry
    /// for each step and micro-batch, and 1 to 64 leaves wherever they are said to begin.
    function testFuzz_places(bool toNext, uint32 tensor, uint32 firstLeaf, uint32 leaves, bool near) public {
        if (near) (tensor, leaves) = (tensor % (ENTRIES + 2), leaves % 67);
        bool right = tensor < ENTRIES && leaves > 0 && leaves < 65;
        ProgramHeader memory program = _programAt(STAGE);
        Part memory part = _part(tensor, firstLeaf, leaves);
        if (!right) vm.expectRevert(ICustody.WrongPart.selector);
        vm.prank(auditor);
        custody.demandSent(claim, committedAt, program, toNext, part);
        assertEq(custody.demandOf(1) != 0, right);
    }

    function test_leastAndMost() public {
        _demandSent(true, _part(0, 0, 1));
        _demandSent(false, _part(ENTRIES - 1, type(uint32).max, 64));
        _refuse(_programAt(STAGE), true, _part(ENTRIES, 0, 1), ICustody.WrongPart.selector);
        _refuse(_programAt(STAGE), true, _part(0, 0, 0), ICustody.WrongPart.selector);
        _refuse(_programAt(STAGE), true, _part(0, 0, 65), ICustody.WrongPart.selector);
    }

    /// @dev The first stage sends nothing to a previous one, the last nothing to a next.
    function test_onlyToNeighbours() public {
        (claim, committedAt) = _commit(job, 0, 0, 0, 0);
        _refuse(_programAt(0), false, _part(0, 0, 1), ICustody.WrongPart.selector);
        _demandSent(true, _part(0, 0, 1));
        (claim, committedAt) = _commit(job, KEEPER, 0, 0, 0);
        _refuse(_programAt(KEEPER), true, _part(0, 0, 1), ICustody.WrongPart.selector);
        _demandSent(false, _part(0, 0, 1));
    }

    /// @dev What logs there are, and of how many entries, the registered program says.
    function testFuzz_theRegisteredProgram(uint256 field, uint256 value, bool toNext) public {
        ProgramHeader memory other = _programAt(STAGE);
        field %= 4;
        if (field == 0) other.microBatches = uint32(value);
        if (field == 1) other.edges = uint8(value);
        if (field == 2) other.stateCount = uint32(value);
        if (field == 3) other.wiring = bytes32(value);
        vm.assume(keccak256(abi.encode(other)) != keccak256(abi.encode(_programAt(STAGE))));
        _refuse(other, toNext, _part(0, 0, 1), ICustody.WrongProgram.selector);
        _refuse(_programAt(KEEPER), toNext, _part(0, 0, 1), ICustody.WrongProgram.selector);
    }

    /// @dev P-10: for two windows from the commitment, to the second.
    function testFuzz_untilTwoWindows(uint256 time, bool near) public {
        time = near ? 2 * WINDOW + time % 3 - 1 : time % (4 * WINDOW);
        vm.warp(committedAt + time);
        if (time >= 2 * WINDOW) {
            vm.expectRevert(abi.encodeWithSelector(ICustody.DeadlinePassed.selector, committedAt + 2 * WINDOW));
        }
        ProgramHeader memory program = _programAt(STAGE);
        vm.prank(auditor);
        custody.demandSent(claim, committedAt, program, true, _part(0, 0, 1));
        assertEq(custody.demandOf(1) != 0, time < 2 * WINDOW);
    }

    function test_onlyLiveClaims() public {
        (Claim memory first, uint64 when) = (claim, committedAt);
        claim = _claim(job, STAGE, 0, 1);
        _refuse(_programAt(STAGE), true, _part(0, 0, 1), ICheckpoints.UnknownClaim.selector);
        _commit(job, STAGE, 0, 1, when);
        // Under another time, or another hash of logs.
        committedAt = when + 1;
        _refuse(_programAt(STAGE), true, _part(0, 0, 1), ICheckpoints.UnknownClaim.selector);
        (committedAt, claim.io) = (when, first.io);
        _refuse(_programAt(STAGE), true, _part(0, 0, 1), ICheckpoints.UnknownClaim.selector);

        skip(WINDOW);
        _finalizeBy(first, when, _keeperOf(first));
        claim = first;
        _refuse(_programAt(STAGE), true, _part(0, 0, 1), ICheckpoints.ClaimIsFinal.selector);
        claim = _claim(job, STAGE, 0, 1);
        _demandSent(true, _part(0, 0, 1));
        _refute(claim, when);
        _refuse(_programAt(STAGE), true, _part(0, 0, 1), ICheckpoints.ClaimIsVoid.selector);
    }

    /// @dev Of a replica's claim each has its own sender.
    function test_ofAReplica() public {
        _endJob();
        job = _run(1, 2, 1);
        (claim, committedAt) = _commit(job, 0, 1, 0, 0);
        (, Demand memory demand) = _demandSent(true, _part(3, 0, 1));
        assertEq(demand.holder, workers[1].addr);
        assertEq(custody.demandOf(1), keccak256(abi.encode(demand)));
    }

    function test_withoutTheBond() public {
        ProgramHeader memory program = _programAt(STAGE);
        vm.startPrank(stranger);
        sno.approve(address(custody), BOND);
        vm.expectRevert(abi.encodeWithSelector(IERC20Errors.ERC20InsufficientBalance.selector, stranger, 0, BOND));
        custody.demandSent(claim, committedAt, program, true, _part(0, 0, 1));
        vm.stopPrank();
        assertEq(custody.demandOf(1), 0);
    }

    /// @dev What has more entries than a part can name has no honest claim: agents keep no such log.
    function test_aLogTooLongToName() public {
        _endJob();
        JobTerms memory terms = _terms(address(sno), 3, 1, 1);
        terms.stepsPerInterval = 1 << 31;
        job = _run(terms);
        (claim, committedAt) = _commit(job, STAGE, 0, 0, 0);
        ProgramHeader memory program = _programAt(STAGE);
        vm.expectRevert(abi.encodeWithSelector(SafeCast.SafeCastOverflowedUintDowncast.selector, 32, 3 << 31));
        vm.prank(auditor);
        custody.demandSent(claim, committedAt, program, true, _part(0, 0, 1));
    }

    /// @dev Its lanes are free for another.
    function _endJob() private {
        vm.prank(user);
        jobs.cancel(job);
        _refute(claim, committedAt);
        jobs.settle(job);
        _stake(workers[STAGE].addr, IStaking.Role.Worker, STAKE);
    }

    // What comes of it

    /// @dev P-36: silence within the clock voids the claim and those after it, and those before stand; the slash is
    /// split as any (P-7); the bond goes back.
    function testFuzz_whoKeepsItIsConvicted(bool toNext, uint32 tensor) public {
        (Claim memory first, uint64 when) = (claim, committedAt);
        (claim,) = _commit(job, STAGE, 0, 1, when);
        (uint256 id, Demand memory demand) = _demandSent(toNext, _part(tensor % ENTRIES, 0, 1));
        _toEnd(demand);
        uint256 supply = _supply();
        vm.expectEmit(address(custody));
        emit ICustody.DemandExpired(id, true);
        _expectConvicted(demand.claimId, STAGE, IDisputes.Fault.Silence);
        vm.expectEmit(address(checkpoints));
        emit ICheckpoints.ClaimsVoided(job, STAGE, 0, 1);
        vm.prank(stranger);
        custody.expire(id, demand);
        assertEq(sno.balanceOf(auditor), 1000 ether + STAKE / 4);
        assertEq(supply - _supply(), STAKE * 9 / 20);
        assertEq(sno.balanceOf(address(custody)), 0);
        assertEq(uint8(_stateOfJob(job)), uint8(IJobs.State.Closing));
        _finalizeBy(first, when, _nobody());
    }

    /// @dev To the second and to the block.
    function testFuzz_neverBeforeItsTime(uint256 time, uint256 blocks) public {
        (uint256 id, Demand memory demand) = _demandSent(true, _part(5, 1, 2));
        time = time % 2 == 0 ? CLOCK + time / 2 % 3 - 1 : time / 2 % (3 * CLOCK);
        blocks %= 2 * parameters.moveBlocks;
        skip(time);
        vm.roll(block.number + blocks);
        bool over = time > CLOCK && blocks >= parameters.moveBlocks;
        if (!over) {
            vm.expectRevert(abi.encodeWithSelector(ICustody.StillOpen.selector, demand.deadline, demand.untilBlock));
        }
        custody.expire(id, demand);
        assertEq(_staked(workers[STAGE].addr).bonded, over ? 0 : STAKE);
    }

    /// @dev Once its claim is void nobody owes it any more, and no second stake is taken.
    function testFuzz_theClaimIsVoid(bool toNext) public {
        (uint256 id, Demand memory demand) = _demandSent(toNext, _part(0, 0, 1));
        _refute(claim, committedAt);
        (uint256 had, uint256 supply) = (sno.balanceOf(auditor), _supply());
        vm.expectEmit(address(custody));
        emit ICustody.DemandExpired(id, false);
        custody.expire(id, demand);
        assertEq(sno.balanceOf(auditor) - had, BOND);
        assertEq(_supply(), supply, "nobody is slashed");
    }

    /// @dev Beside a demand for the state, each with its own hold and bond.
    function test_besideOtherDemands() public {
        (uint256 sent, Demand memory sentDemand) = _demandSent(false, _part(1, 3, 1));
        (uint256 state, Demand memory stateDemand) = _demandOwn();
        skip(2 * WINDOW);
        _deliver(state, stateDemand, _shownOwn());
        _isHeldBack(claim, committedAt);
        _deliverSent(sent, sentDemand, _shownSent(false, 1, 3, 1));
        _finalizeBy(claim, committedAt, _nobody());
        assertEq(sno.balanceOf(workers[STAGE].addr), 2 * BOND);
    }

    function _refuse(ProgramHeader memory program, bool toNext, Part memory part, bytes4 reason) private {
        vm.expectRevert(reason);
        vm.prank(auditor);
        custody.demandSent(claim, committedAt, program, toNext, part);
    }
}
