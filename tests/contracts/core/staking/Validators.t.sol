// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IStaking} from "../../../../contracts/interfaces/IStaking.sol";
import {ProtocolTest} from "../../protocol/ProtocolTest.sol";

/// @dev Who is a validator, since when, and what a penalty takes.
contract ValidatorsTest is ProtocolTest {
    IStaking.Role private constant WORKER = IStaking.Role.Worker;
    IStaking.Role private constant VALIDATOR = IStaking.Role.Validator;
    uint256 private constant COLLATERAL = 1_000_000 ether;

    address private account = makeAddr("account");

    function test_countsWhoHasTheCollateral() public {
        assertEq(staking.validatorCount(), 0);
        _stake(account, VALIDATOR, COLLATERAL - 1);
        _is(account, 0);
        skip(1);
        sno.transfer(account, 1);
        vm.expectEmit(address(staking));
        emit IStaking.ValidatorsChanged(account, true, 1);
        vm.prank(account);
        staking.stake(VALIDATOR, 1);
        uint40 since = uint40(block.timestamp);
        _is(account, since);
        assertEq(staking.validatorCount(), 1);

        // More is not counted again, and less than all of it leaves the rest as it was.
        skip(1);
        _stake(account, VALIDATOR, 7);
        _request(account, 7);
        _is(account, since);
        assertEq(staking.validatorCount(), 1);

        vm.expectEmit(address(staking));
        emit IStaking.ValidatorsChanged(account, false, 0);
        _request(account, 1);
        _is(account, 0);
        assertEq(staking.validatorCount(), 0);
        // Back with a new beginning.
        skip(1);
        _stake(account, VALIDATOR, 1);
        _is(account, uint40(block.timestamp));
    }

    function test_aWorkersStakeIsNotCounted() public {
        _stake(account, WORKER, 2 * COLLATERAL);
        _is(account, 0);
        assertEq(staking.validatorCount(), 0);
        _stake(account, VALIDATOR, 1);
        vm.prank(account);
        staking.requestUnstake(WORKER, COLLATERAL);
        _is(account, 0);
        assertEq(staking.validatorCount(), 0);
    }

    function testFuzz_penaliseSplits(uint128 amount, address accuser) public {
        vm.assume(accuser != account && accuser != address(this) && accuser != address(staking));
        amount = uint128(bound(amount, 0, COLLATERAL));
        _stake(account, VALIDATOR, COLLATERAL);
        (uint256 supply, uint256 before) = (_supply(), sno.balanceOf(accuser));
        uint256 bounty = accuser == address(0) ? 0 : uint256(amount) * 5000 / 10_000;
        vm.expectEmit(address(staking));
        emit IStaking.Penalised(account, amount, bounty, amount - bounty);
        assertEq(_penalise(amount, accuser), amount);
        assertEq(sno.balanceOf(accuser) - before, bounty);
        assertEq(supply - _supply(), amount - bounty);
        assertEq(sno.balanceOf(address(staking)), COLLATERAL - bounty + 6 * uint256(STAKE));
        _is(account, amount == 0 ? uint40(block.timestamp) : 0);
    }

    function test_penaliseBurnsTheShareOfNobody() public {
        _stake(account, VALIDATOR, COLLATERAL);
        uint256 supply = _supply();
        assertEq(_penalise(3 ether, address(0)), 3 ether);
        assertEq(supply - _supply(), 3 ether);
    }

    /// @dev Bonded first, then what unbonds, and no more than is there.
    function testFuzz_penaliseReachesUnbonding(uint256 unbonding, uint256 amount) public {
        unbonding = bound(unbonding, 1, 10 ether);
        amount = bound(amount, 0, 12 ether);
        _stake(account, VALIDATOR, 10 ether);
        _request(account, unbonding);
        uint256 taken = amount < 10 ether ? amount : 10 ether;
        uint256 fromBonded = taken < 10 ether - unbonding ? taken : 10 ether - unbonding;
        assertEq(_penalise(amount, auditor), taken);
        IStaking.Account memory left = staking.accountOf(account, VALIDATOR);
        assertEq(left.bonded, 10 ether - unbonding - fromBonded);
        assertEq(left.unbonding, unbonding - (taken - fromBonded));
        skip(21 days);
        vm.startPrank(account);
        if (left.unbonding == 0) vm.expectRevert(IStaking.NothingToWithdraw.selector);
        staking.withdraw(VALIDATOR);
        vm.stopPrank();
        assertEq(sno.balanceOf(account), left.unbonding);
    }

    /// @dev What has left is gone, and what an account has at stake as a worker stands for its work only.
    function test_penaliseLeavesTheRest() public {
        _stake(account, WORKER, 5 ether);
        assertEq(_penalise(3 ether, auditor), 0);
        assertEq(_staked(account).bonded, 5 ether);
        _stake(account, VALIDATOR, 1 ether);
        assertEq(_penalise(3 ether, auditor), 1 ether);
        assertEq(_staked(account).bonded, 5 ether);
        assertEq(_penalise(3 ether, auditor), 0);
    }

    /// @dev A worker that is an auditor's accuser, and a validator that accuses itself, get what anybody gets.
    function test_penaliseWhoAccusesItself() public {
        _stake(account, VALIDATOR, COLLATERAL);
        _penalise(10 ether, account);
        assertEq(sno.balanceOf(account), 5 ether);
    }

    function testFuzz_onlyAudits(address caller) public {
        vm.assume(caller != address(audits));
        _stake(account, VALIDATOR, 1 ether);
        vm.expectRevert(abi.encodeWithSelector(IStaking.Unauthorized.selector, caller));
        vm.prank(caller);
        staking.penalise(account, 1, caller);
    }

    // Sequences

    /// @dev What the tests say an account has, apart from the contract.
    struct Model {
        uint256 bonded;
        uint256 unbonding;
        uint256 since;
    }

    Model[3] private _model;
    uint256 private _burned;
    uint256 private _bounties;
    uint256 private _asWorkers;

    /// @dev Anything in any order: the count is of those who have the collateral, each since it has had it without a
    /// break.
    /// forge-config: default.fuzz.runs = 128
    function testFuzz_sequences(uint256 seed) public {
        (uint256 supply, uint256 others) = (_supply(), sno.balanceOf(address(staking)));
        uint256 bounties = sno.balanceOf(auditor);
        for (uint256 i = 0; i < 40; ++i) {
            uint256 noise = uint256(keccak256(abi.encode(seed, i)));
            _step(noise % 3, noise / 3 % 5, noise / 15);
            uint256 count = 0;
            for (uint256 k = 0; k < 3; ++k) {
                Model memory m = _model[k];
                IStaking.Account memory a = staking.accountOf(_who(k), VALIDATOR);
                assertEq(a.bonded, m.bonded);
                assertEq(a.unbonding, m.unbonding);
                _is(_who(k), uint40(m.since));
                if (m.bonded >= COLLATERAL) ++count;
            }
            assertEq(staking.validatorCount(), count);
        }
        uint256 held = 0;
        for (uint256 k = 0; k < 3; ++k) {
            held += _model[k].bonded + _model[k].unbonding;
        }
        assertEq(sno.balanceOf(address(staking)), others + _asWorkers + held + staking.toBurn());
        assertEq(supply - _supply(), _burned);
        assertEq(sno.balanceOf(auditor) - bounties, _bounties);
    }

    function _who(uint256 k) private view returns (address) {
        return workers[k].addr;
    }

    function _step(uint256 k, uint256 move, uint256 noise) private {
        Model storage m = _model[k];
        skip(noise % 3);
        noise /= 3;
        // Mostly just what makes a validator, or unmakes it.
        uint256 missing = m.bonded < COLLATERAL ? COLLATERAL - m.bonded : 0;
        if (move == 0) {
            uint256 amount = noise % 2 == 0 && missing > 0 ? missing - noise / 2 % 2 : 1 + noise % 3;
            if (amount == 0 || sno.balanceOf(address(this)) < amount) return;
            _stake(_who(k), VALIDATOR, amount);
            m.bonded += amount;
        } else if (move == 1 && m.bonded > 0) {
            uint256 amount = noise % 3 == 0 ? m.bonded : 1 + noise % (m.bonded < 5 ? m.bonded : 5);
            _request(_who(k), amount);
            (m.bonded, m.unbonding) = (m.bonded - amount, m.unbonding + amount);
        } else if (move == 2) {
            uint256 amount = noise % 4 == 0 ? 2 * COLLATERAL : noise % 7;
            uint256 has = m.bonded + m.unbonding;
            uint256 taken = amount < has ? amount : has;
            vm.prank(address(audits));
            assertEq(staking.penalise(_who(k), amount, auditor), taken);
            (_bounties, _burned) = (_bounties + taken / 2, _burned + taken - taken / 2);
            if (taken > m.bonded) (m.bonded, m.unbonding) = (0, has - taken);
            else m.bonded -= taken;
        } else if (move == 3 && m.unbonding > 0) {
            skip(21 days);
            vm.startPrank(_who(k));
            staking.withdraw(VALIDATOR);
            sno.transfer(address(this), sno.balanceOf(_who(k)));
            vm.stopPrank();
            m.unbonding = 0;
        } else if (move == 4) {
            // As a worker: that counts nowhere.
            _stake(_who(k), WORKER, 2);
            _asWorkers += 2;
            vm.prank(_who(k));
            staking.requestUnstake(WORKER, 1 + noise % 2);
        }
        bool joined = m.bonded >= COLLATERAL;
        if (joined != (m.since != 0)) m.since = joined ? block.timestamp : 0;
    }

    function _is(address who, uint40 since) private view {
        assertEq(staking.validatorSince(who), since);
        assertEq(staking.isValidator(who), since != 0);
    }

    function _request(address who, uint256 amount) private {
        vm.prank(who);
        staking.requestUnstake(VALIDATOR, amount);
    }

    function _penalise(uint256 amount, address accuser) private returns (uint256) {
        vm.prank(address(audits));
        return staking.penalise(account, amount, accuser);
    }
}
