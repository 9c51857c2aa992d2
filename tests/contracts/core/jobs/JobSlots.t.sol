// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {SafeCast} from "@openzeppelin/contracts/utils/math/SafeCast.sol";

import {IJobs} from "../../../../contracts/interfaces/IJobs.sol";
import {IStaking} from "../../../../contracts/interfaces/IStaking.sol";
import {JobTerms, Offer} from "../../../../contracts/types/Types.sol";
import {ProtocolTest} from "../../protocol/ProtocolTest.sol";

/// @dev What is kept in one slot for a lane, and read in few of a job.
contract JobSlotsTest is ProtocolTest {
    function test_accept_priceFitsBesideItsWorker() public {
        (uint64 job, Offer[] memory offers, bytes[] memory signatures) = _offered(type(uint88).max);
        vm.prank(user);
        jobs.accept(job, offers, signatures);
        assertEq(jobs.workerOf(job, 0, 0), workers[0].addr);
        assertEq(jobs.priceOf(job, 0, 0), type(uint88).max);
        assertFalse(jobs.isConvicted(job, 0, 0));

        (job, offers, signatures) = _offered(1 << 88);
        vm.expectRevert(abi.encodeWithSelector(SafeCast.SafeCastOverflowedUintDowncast.selector, 88, 1 << 88));
        vm.prank(user);
        jobs.accept(job, offers, signatures);
    }

    /// @dev A job with the largest escrow, and an offer of that price for its only lane, by a worker of its own.
    function _offered(uint128 price) private returns (uint64 job, Offer[] memory offers, bytes[] memory signatures) {
        JobTerms memory terms = _terms(ETH, 1, 1, 1);
        vm.deal(user, type(uint128).max);
        vm.prank(user);
        job = jobs.post{value: type(uint128).max}(terms, type(uint128).max);
        (offers, signatures) = _offers(job);
        offers[0].pricePerInterval = price;
        signatures[0] = _sign(workers[0].key, _offerDigest(offers[0]));
    }

    function test_viewsAgreeWithTheWholeJob() public {
        _agree(_run(2, 1, 3), false);
        for (uint256 i = 0; i < 2; ++i) {
            _stake(workers[i].addr, IStaking.Role.Worker, STAKE);
        }
        _agree(_run(_servingTerms(ETH, 2, 1, 50)), true);
        _agree(jobs.jobCount() + 1, false);
    }

    function _agree(uint64 job, bool serving) private view {
        IJobs.Job memory whole = jobs.jobOf(job);
        assertEq(uint8(jobs.stateOf(job)), uint8(whole.state));
        assertEq(jobs.stakeOf(job), whole.workerStake);
        (uint32 steps, uint32 window) = jobs.termsOf(job);
        assertEq(steps, whole.stepsPerInterval);
        assertEq(window, whole.challengeWindow);
        IJobs.Audited memory audited = jobs.auditedOf(job);
        assertEq(uint8(audited.state), uint8(whole.state));
        assertEq(uint8(audited.kind), uint8(whole.kind));
        assertEq(audited.stepsPerInterval, whole.stepsPerInterval);
        assertEq(audited.challengeWindow, whole.challengeWindow);
        (address payer, IJobs.State state, uint40 deadline, uint32 most) = jobs.servingOf(job);
        assertEq(payer, serving ? whole.user : address(0));
        assertEq(uint8(state), serving ? uint8(whole.state) : uint8(IJobs.State.None));
        assertEq(deadline, serving ? whole.deadline : 0);
        assertEq(most, serving ? whole.intervals : 0);
    }
}
