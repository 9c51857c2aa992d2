// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IChallenges} from "../../../contracts/interfaces/IChallenges.sol";
import {IJobs} from "../../../contracts/interfaces/IJobs.sol";
import {IStaking} from "../../../contracts/interfaces/IStaking.sol";
import {ClaimMoves} from "./economy/ClaimMoves.sol";

/// @title Everybody doing anything, in any order
/// @notice The moves of the invariant tests, by idea in `economy/`. A move that is not open to anyone at the moment
/// does nothing, so no call reverts and every revert is a finding. What the contracts are checked against is counted
/// apart from them.
contract Economy is ClaimMoves {
    /// @dev Half of the workers are validators, the honest one of them.
    function setUp() public override {
        super.setUp();
        for (uint256 i = workers.length / 2; i < workers.length; ++i) {
            join(i);
        }
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
        for (uint256 i = 0; i < challenges.challengeCount(); ++i) {
            timeout(i);
        }
        for (uint256 i = 0; i < demands; ++i) {
            expire(i);
        }
        for (uint256 id = 1; id <= demands; ++id) {
            assertEq(custody.demandOf(id), 0, "every demand ends");
        }
        for (uint256 id = 1; id <= challenges.challengeCount(); ++id) {
            IChallenges.State state = challenges.challengeOf(id).state;
            assertTrue(state == IChallenges.State.Won || state == IChallenges.State.Lost, "every game ends");
        }
        // Some reveal what they sealed, others never do.
        for (uint64 job = 1; job <= jobs.jobCount(); job += 2) {
            for (uint256 k = 0; k < 12; ++k) {
                if (_stateOfJob(job) == IJobs.State.Closing) reveal(job - 1, k, 1);
            }
        }
        skip(SEALING + 1);
        for (uint64 job = 1; job <= jobs.jobCount(); ++job) {
            for (uint256 k = 0; k < 12; ++k) {
                finalize(job - 1, k, job);
            }
            settle(job - 1);
            assertEq(uint8(_stateOfJob(job)), uint8(IJobs.State.Settled));
        }
        _penaliseAll();
        _showAll();
        _payAllShares();
        for (uint256 i = 0; i < 7; ++i) {
            collect(i, true);
            collect(i, false);
        }
        for (uint256 i = 0; i < people().length; ++i) {
            collectFromChallenges(i);
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
        burn();
    }

    function _unstakeAll(address account, IStaking.Role role) private {
        uint256 bonded = staking.accountOf(account, role).bonded;
        if (bonded == 0) return;
        vm.prank(account);
        staking.requestUnstake(role, bonded);
    }
}
