// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IAudits} from "../../../../contracts/interfaces/IAudits.sol";
import {IStaking} from "../../../../contracts/interfaces/IStaking.sol";
import {Parameters} from "../../../../contracts/types/Parameters.sol";
import {AuditTest} from "../../protocol/AuditTest.sol";

/// @dev `isDrawn`: who audits what. A claim draws one validator on the mean.
contract DrawsTest is AuditTest {
    address[] private _validators;
    uint64 private _fixedAt;

    function _parameters() internal pure override returns (Parameters memory p) {
        p = super._parameters();
        p.auditsPerClaimBps = 10_000;
    }

    function setUp() public override {
        super.setUp();
        _validators.push(first);
        _validators.push(second);
        _more(6);
        skip(1);
        _fixNow(SEED);
    }

    function _more(uint256 count) private {
        for (uint256 i = 0; i < count; ++i) {
            _validators.push(_join(string.concat("validator ", vm.toString(_validators.length))));
        }
    }

    /// @dev Something is fixed now, and then its seed is recorded.
    function _fixNow(bytes32 seed) private {
        _fixedAt = uint64(block.timestamp);
        uint64 period = beacon.periodAfter(_fixedAt);
        if (beacon.seedOf(period) == 0) _recordSeed(period, seed);
    }

    function _isDrawn(uint256 claim, address validator) private view returns (bool) {
        return audits.isDrawn(bytes32(claim), _fixedAt, validator);
    }

    /// @dev Each on its own with the chance of one in so many: counts are within five deviations of the mean.
    function test_asOftenAsTheParameterSays() public view {
        uint256 claims = 1600;
        uint256 all = 0;
        for (uint256 i = 0; i < _validators.length; ++i) {
            uint256 drawn = 0;
            for (uint256 claim = 0; claim < claims; ++claim) {
                if (_isDrawn(claim, _validators[i])) ++drawn;
            }
            // Mean 200; deviation of a binomial of 1/8: 13.2.
            assertApproxEqAbs(drawn, claims / 8, 66, "each alike");
            all += drawn;
        }
        // Mean 1600, deviation 37.4.
        assertApproxEqAbs(all, claims, 187, "one for each claim");
    }

    /// @dev Whether one is drawn says nothing about another: both as often as chance has it.
    function test_eachOnItsOwn() public view {
        uint256 both = 0;
        for (uint256 claim = 0; claim < 3200; ++claim) {
            if (_isDrawn(claim, first) && _isDrawn(claim, second)) ++both;
        }
        // Mean 50, deviation 7.
        assertApproxEqAbs(both, 50, 35);
    }

    /// @dev Other seeds, other claims and other validators are other draws.
    function testFuzz_byTheSeedTheClaimAndTheValidator(bytes32 seed, bytes32 other) public {
        vm.assume(seed != 0 && other != 0 && seed != other);
        uint256 start = vm.snapshotState();
        uint256[3] memory differ;
        bool[64] memory drawn;
        skip(PERIOD);
        _fixNow(seed);
        for (uint256 i = 0; i < 64; ++i) {
            drawn[i] = _isDrawn(i, first);
            if (drawn[i] != _isDrawn(i + 64, first)) ++differ[0];
            if (drawn[i] != _isDrawn(i, second)) ++differ[1];
        }
        vm.revertToState(start);
        skip(PERIOD);
        _fixNow(other);
        for (uint256 i = 0; i < 64; ++i) {
            if (drawn[i] != _isDrawn(i, first)) ++differ[2];
        }
        // Of 64 draws of one in eight, 14 differ on the mean; that none does has the chance of 10^−7.
        for (uint256 i = 0; i < 3; ++i) {
            assertGt(differ[i], 0);
        }
    }

    /// @dev Whoever joins when the claim is fixed or later, or leaves and comes back, is not drawn, whatever the seed.
    function testFuzz_onlyWhoWasThereBefore(bytes32 seed, uint256 wait) public {
        vm.assume(seed != 0);
        _fixedAt = uint64(block.timestamp);
        skip(bound(wait, 0, PERIOD));
        address late = _join("late");
        _unstake(first, 1);
        assertFalse(_isDrawn(0, first), "known before there is a seed");
        _stake(first, IStaking.Role.Validator, 1);
        _recordSeed(beacon.periodAfter(_fixedAt), seed);
        for (uint256 claim = 0; claim < 60; ++claim) {
            assertFalse(_isDrawn(claim, late));
            assertFalse(_isDrawn(claim, first));
            assertFalse(_isDrawn(claim, workers[0].addr));
        }
        // Of what is fixed from the next second on they are.
        vm.warp(staking.validatorSince(late));
        _fixNow(seed);
        for (uint256 claim = 0; claim < 60; ++claim) {
            assertFalse(_isDrawn(claim, late), "not in the same second");
        }
        vm.warp(_fixedAt + 1);
        _fixNow(seed);
        bool found = false;
        for (uint256 claim = 0; claim < 300 && !found; ++claim) {
            found = _isDrawn(claim, late);
        }
        assertTrue(found, "in time");
    }

    /// @dev Who can make and unmake validators once the claim is fixed moves nobody: neither in nor out.
    function testFuzz_laterCountsMoveNobody(bytes32 seed, uint8 joining, uint8 leaving) public {
        vm.assume(seed != 0);
        _fixNow(seed);
        uint256 start = vm.snapshotState();
        bool[64] memory before;
        for (uint256 claim = 0; claim < 64; ++claim) {
            before[claim] = _isDrawn(claim, first);
        }
        _more(joining % 4 + 1);
        for (uint256 claim = 0; claim < 64; ++claim) {
            assertEq(_isDrawn(claim, first), before[claim], "more validators");
        }
        vm.revertToState(start);
        for (uint256 i = 2; i < 3 + leaving % 6; ++i) {
            _unstake(_validators[i], 1);
        }
        for (uint256 claim = 0; claim < 64; ++claim) {
            assertEq(_isDrawn(claim, first), before[claim], "fewer validators");
        }
    }

    /// @dev Where there are no more validators than audits, all are drawn.
    function testFuzz_allOfTooFew(bytes32 seed, bytes32 claimId) public {
        vm.assume(seed != 0);
        for (uint256 i = 1; i < _validators.length; ++i) {
            _unstake(_validators[i], 1);
        }
        skip(PERIOD);
        _fixNow(seed);
        assertTrue(audits.isDrawn(claimId, _fixedAt, first));
        assertEq(staking.validatorCount(), 1);
    }

    function test_notBeforeTheSeed() public {
        skip(PERIOD);
        _fixedAt = uint64(block.timestamp);
        vm.expectRevert(abi.encodeWithSelector(IAudits.NoSeed.selector, beacon.periodAfter(_fixedAt)));
        audits.isDrawn(0, _fixedAt, first);
    }
}
