// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {stdError} from "forge-std/StdError.sol";

import {ICustody} from "../../../../contracts/interfaces/ICustody.sol";
import {IJobs} from "../../../../contracts/interfaces/IJobs.sol";
import {Delivery, Demand, Holder} from "../../../../contracts/types/Custody.sol";
import {Claim, ProgramHeader} from "../../../../contracts/types/Types.sol";
import {CustodyTest} from "../../protocol/CustodyTest.sol";

/// @dev A claim waits for the demands for its state, each of them, and not for ever (P-10, P-12).
contract CustodyHoldsTest is CustodyTest {
    function test_aDeliveryFreesTheClaim() public {
        (uint256 id, Demand memory demand) = _demandOwn();
        skip(2 * WINDOW);
        _isHeldBack(claim, committedAt);
        _deliver(id, demand, _shownOwn());
        _finalizeBy(claim, committedAt, _nobody());
    }

    /// @dev Only the claim whose state is demanded, and those of its lane after it, which come in order.
    function test_otherClaimsGoOn() public {
        (Claim memory before, uint64 when) = (claim, committedAt);
        (claim, committedAt) = _commit(job, STAGE, 0, 1, committedAt);
        (Claim memory other, uint64 otherAt) = _commit(job, KEEPER, 0, 0, 0);
        _demandOwn();
        skip(2 * WINDOW);
        _finalizeBy(before, when, _nobody());
        _finalizeBy(other, otherAt, _nobody());
        _isHeldBack(claim, committedAt);
    }

    /// @dev Demands and a challenge for one claim: each gives back its own hold and no other, in whatever order they
    /// end, and however.
    function testFuzz_countsEachHold(uint256 seed) public {
        uint256 count = 1 + seed % 4;
        Demand[] memory demands = new Demand[](count);
        for (uint256 i = 0; i < count; ++i) {
            (, demands[i]) = seed >> i + 8 & 1 == 0 ? _demandOwn() : _demandKept();
        }
        vm.prank(auditor);
        challenges.open(claim, committedAt, _plain(2));
        Delivery memory shown = _shownOwn();
        skip(2 * WINDOW);
        for (uint256 i = 0; i < count; ++i) {
            _isHeldBack(claim, committedAt);
            uint256 next = (i + seed % count) % count;
            _deliver(1 + next, demands[next], shown);
        }
        _isHeldBack(claim, committedAt);
        // The challenge is over because its worker is silent: the claim is void, and nothing holds it any more.
        skip(CLOCK);
        vm.roll(block.number + parameters.moveBlocks);
        challenges.timeout(1);
        vm.prank(address(challenges));
        vm.expectRevert(stdError.arithmeticError);
        checkpoints.release(demands[0].claimId);
    }

    /// @dev A demand that its holder defaults on gives its hold back as well: the claim stands, for the other demand's
    /// sake held.
    function test_aDefaultOfWhoSignedFreesTheClaim() public {
        (uint256 first, Demand memory firstDemand) = _demandOwn();
        (uint256 second, Demand memory secondDemand) = _demandKept();
        _default(second, secondDemand);
        _isHeldBack(claim, committedAt);
        _deliver(first, firstDemand, _shownOwn());
        _finalizeBy(claim, committedAt, _nobody());
        jobs.settle(job);
        assertEq(jobs.creditOf(workers[STAGE].addr, address(sno)), PRICE);
    }

    /// @dev P-4: while a claim waits, so does the escrow, also of a job that is over.
    function test_noSettlementMeanwhile() public {
        (uint256 id, Demand memory demand) = _demandKept();
        vm.prank(user);
        jobs.cancel(job);
        skip(2 * WINDOW);
        bytes memory pending = abi.encodeWithSelector(IJobs.ClaimsPending.selector, STAGE, 0);
        vm.expectRevert(pending);
        jobs.settle(job);
        _isHeldBack(claim, committedAt);
        _deliver(id, demand, _shownOwn());
        vm.expectRevert(pending);
        jobs.settle(job);
        _finalizeBy(claim, committedAt, _nobody());
        jobs.settle(job);
        assertEq(sno.balanceOf(address(custody)), 0);
    }

    /// @dev P-10: who demands again and again until the last second, of a holder that shows everything at the last
    /// moment, holds a claim for two windows and one clock.
    function testFuzz_noDemandDelaysForEver(uint256 seed) public {
        (uint256 end, bool own) = (committedAt + 2 * WINDOW, seed % 2 == 0);
        Holder memory holder = own ? _own() : _keeper();
        ProgramHeader memory program = _programAt(STAGE);
        Delivery memory shown = _shownOwn();
        _fund(auditor, address(custody), 24 * BOND);
        while (block.timestamp < end) {
            (uint256 id, Demand memory demand) = _demandState(holder, _part(1, 3, 1));
            seed = uint256(keccak256(abi.encode(seed)));
            skip(10 minutes + seed % 2 hours);
            if (block.timestamp >= end) vm.warp(demand.deadline);
            _deliver(id, demand, shown);
        }
        assertLe(block.timestamp, end + CLOCK);
        vm.expectRevert(abi.encodeWithSelector(ICustody.DeadlinePassed.selector, end));
        vm.prank(auditor);
        custody.demandState(claim, committedAt, program, holder, _part(1, 3, 1));
        _finalizeBy(claim, committedAt, _nobody());
    }

    /// @dev The last second of two windows, and nobody shows anything: all is over a clock later.
    function testFuzz_theLastSecond(bool own) public {
        vm.warp(committedAt + 2 * WINDOW - 1);
        (uint256 id, Demand memory demand) = own ? _demandOwn() : _demandKept();
        skip(1);
        _isHeldBack(claim, committedAt);
        _default(id, demand);
        assertEq(block.timestamp, committedAt + 2 * WINDOW + CLOCK);
        if (!own) _finalizeBy(claim, committedAt, _nobody());
        jobs.settle(job);
        assertEq(jobs.creditOf(user, address(sno)), own ? 9 * PRICE : 8 * PRICE);
        assertEq(sno.balanceOf(auditor), 1000 ether + STAKE / 4);
    }
}
