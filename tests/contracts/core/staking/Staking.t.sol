// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IERC20Errors} from "@openzeppelin/contracts/interfaces/draft-IERC6093.sol";

import {stdError} from "forge-std/StdError.sol";

import {IStaking} from "../../../../contracts/interfaces/IStaking.sol";
import {ProtocolTest} from "../../protocol/ProtocolTest.sol";

contract StakingTest is ProtocolTest {
    IStaking.Role private constant WORKER = IStaking.Role.Worker;
    IStaking.Role private constant VALIDATOR = IStaking.Role.Validator;

    address private account = makeAddr("account");
    address private others = makeAddr("auditors");

    function test_stake_bonds(uint96 amount) public {
        vm.assume(amount > 0 && amount < 1_000_000 ether);
        _fund(account, address(staking), amount);
        vm.expectEmit(address(staking));
        emit IStaking.Staked(account, WORKER, amount);
        vm.prank(account);
        staking.stake(WORKER, amount);

        assertEq(_staked(account).bonded, amount);
        assertEq(staking.available(account), amount);
        assertEq(sno.balanceOf(account), 0);
    }

    function test_stake_keepsRolesApart() public {
        _stake(account, WORKER, 1 ether);
        _stake(account, VALIDATOR, 2 ether);
        assertEq(staking.accountOf(account, WORKER).bonded, 1 ether);
        assertEq(staking.accountOf(account, VALIDATOR).bonded, 2 ether);
    }

    function test_stake_refuses() public {
        vm.expectRevert(IStaking.ZeroAmount.selector);
        staking.stake(WORKER, 0);
        vm.expectRevert(IStaking.InvalidRole.selector);
        staking.stake(IStaking.Role.None, 1);
        vm.expectRevert(
            abi.encodeWithSelector(IERC20Errors.ERC20InsufficientAllowance.selector, address(staking), 0, 1)
        );
        staking.stake(WORKER, 1);
    }

    /// @dev An account with SNO, and its permit for `staking` to take it, until now.
    function _permitted(uint256 amount) private returns (address owner, uint8 v, bytes32 r, bytes32 s) {
        uint256 key;
        (owner, key) = makeAddrAndKey("owner");
        sno.transfer(owner, amount);
        (v, r, s) = vm.sign(key, _permitDigest(owner, amount, block.timestamp));
    }

    function test_stakeWithPermit_needsNoAllowance() public {
        (address owner, uint8 v, bytes32 r, bytes32 s) = _permitted(5 ether);
        vm.prank(owner);
        staking.stakeWithPermit(WORKER, 5 ether, block.timestamp, v, r, s);
        assertEq(_staked(owner).bonded, 5 ether);
    }

    /// @dev Someone takes the permit from the mempool and uses it first.
    function test_stakeWithPermit_survivesFrontRun() public {
        (address owner, uint8 v, bytes32 r, bytes32 s) = _permitted(5 ether);
        sno.permit(owner, address(staking), 5 ether, block.timestamp, v, r, s);
        vm.prank(owner);
        staking.stakeWithPermit(WORKER, 5 ether, block.timestamp, v, r, s);
        assertEq(_staked(owner).bonded, 5 ether);
    }

    function test_stakeWithPermit_refusesAnothersPermit() public {
        (, uint8 v, bytes32 r, bytes32 s) = _permitted(5 ether);
        vm.expectRevert(
            abi.encodeWithSelector(IERC20Errors.ERC20InsufficientAllowance.selector, address(staking), 0, 5 ether)
        );
        vm.prank(stranger);
        staking.stakeWithPermit(WORKER, 5 ether, block.timestamp, v, r, s);
    }

    function test_unbondingTakesItsDelay(uint96 amount) public {
        amount = uint96(bound(amount, 1, 10 ether));
        _stake(account, WORKER, 10 ether);
        uint40 releaseAt = uint40(block.timestamp + parameters.unbondingDelay);
        vm.expectEmit(address(staking));
        emit IStaking.UnstakeRequested(account, WORKER, amount, releaseAt);
        vm.startPrank(account);
        staking.requestUnstake(WORKER, amount);
        assertEq(staking.available(account), 10 ether - amount);

        vm.warp(releaseAt - 1);
        vm.expectRevert(abi.encodeWithSelector(IStaking.StillUnbonding.selector, releaseAt));
        staking.withdraw(WORKER);

        vm.warp(releaseAt);
        vm.expectEmit(address(staking));
        emit IStaking.Withdrawn(account, WORKER, amount);
        assertEq(staking.withdraw(WORKER), amount);
        assertEq(sno.balanceOf(account), amount);
        assertEq(_staked(account).unbonding, 0);
    }

    function test_secondRequestRestartsTheDelay() public {
        _stake(account, WORKER, 10 ether);
        vm.startPrank(account);
        staking.requestUnstake(WORKER, 4 ether);
        skip(20 days);
        staking.requestUnstake(WORKER, 1 ether);
        skip(20 days);
        vm.expectRevert(abi.encodeWithSelector(IStaking.StillUnbonding.selector, uint40(block.timestamp + 1 days)));
        staking.withdraw(WORKER);
        skip(1 days);
        assertEq(staking.withdraw(WORKER), 5 ether);
    }

    function test_requestUnstake_refuses() public {
        _stake(account, WORKER, 1 ether);
        vm.startPrank(account);
        vm.expectRevert(IStaking.ZeroAmount.selector);
        staking.requestUnstake(WORKER, 0);
        vm.expectRevert(IStaking.InvalidRole.selector);
        staking.requestUnstake(IStaking.Role.None, 1);
        vm.expectRevert(abi.encodeWithSelector(IStaking.InsufficientStake.selector, 1 ether, 1 ether + 1));
        staking.requestUnstake(WORKER, 1 ether + 1);
        // The other role's balance is not this one's.
        vm.expectRevert(abi.encodeWithSelector(IStaking.InsufficientStake.selector, 0, 1));
        staking.requestUnstake(VALIDATOR, 1);
    }

    function test_withdraw_refuses() public {
        vm.expectRevert(IStaking.NothingToWithdraw.selector);
        staking.withdraw(WORKER);
        vm.expectRevert(IStaking.InvalidRole.selector);
        staking.withdraw(IStaking.Role.None);
    }

    function test_lockedStakeUnbondsButDoesNotLeave() public {
        _stake(account, WORKER, 10 ether);
        _lock(6 ether);
        vm.prank(account);
        staking.requestUnstake(WORKER, 10 ether);
        skip(21 days);
        vm.prank(account);
        assertEq(staking.withdraw(WORKER), 4 ether);
        vm.expectRevert(IStaking.NothingToWithdraw.selector);
        vm.prank(account);
        staking.withdraw(WORKER);

        vm.expectEmit(address(staking));
        emit IStaking.Unlocked(account, 6 ether);
        vm.prank(address(jobs));
        staking.unlock(account, 6 ether);
        vm.prank(account);
        assertEq(staking.withdraw(WORKER), 6 ether);
    }

    function test_lock_reservesOnce() public {
        _stake(account, WORKER, 10 ether);
        vm.expectEmit(address(staking));
        emit IStaking.Locked(account, 6 ether);
        _lock(6 ether);
        assertEq(staking.available(account), 4 ether);
        vm.expectRevert(abi.encodeWithSelector(IStaking.InsufficientStake.selector, 4 ether, 5 ether));
        _lock(5 ether);
    }

    /// @dev Unbonding stake stands for old locks, never for new ones.
    function test_lock_refusesUnbondingStake() public {
        _stake(account, WORKER, 10 ether);
        vm.prank(account);
        staking.requestUnstake(WORKER, 8 ether);
        vm.expectRevert(abi.encodeWithSelector(IStaking.InsufficientStake.selector, 2 ether, 3 ether));
        _lock(3 ether);
    }

    function test_slash_splits(uint96 amount) public {
        amount = uint96(bound(amount, 0, 10 ether));
        _stake(account, WORKER, 10 ether);
        _lock(10 ether);
        (uint256 supply, uint256 before) = (_supply(), sno.balanceOf(auditor));
        uint256 bounties = uint256(amount) * 5000 / 10_000;
        uint256 harm = uint256(amount) * 3000 / 10_000;
        uint256 burned = amount - bounties - harm;

        vm.expectEmit(address(staking));
        emit IStaking.Slashed(account, amount, bounties - bounties / 2, bounties / 2, harm, burned);
        _slash(amount, auditor, others, stranger);

        assertEq(sno.balanceOf(auditor) - before, bounties - bounties / 2, "the finder's half");
        assertEq(sno.balanceOf(others), bounties / 2, "the auditors' half");
        assertEq(sno.balanceOf(stranger), harm);
        assertEq(supply - _supply(), burned);
        assertGe(burned * 5, amount, "a fifth at least is burned");
        assertEq(_staked(account).bonded, 10 ether - amount);
        assertEq(_staked(account).locked, 10 ether - amount);
    }

    function test_slash_reachesUnbondingStake() public {
        _stake(account, WORKER, 10 ether);
        _lock(7 ether);
        vm.prank(account);
        staking.requestUnstake(WORKER, 8 ether);
        skip(21 days);
        _slash(7 ether, auditor, others, stranger);
        assertEq(_staked(account).bonded, 0);
        assertEq(_staked(account).unbonding, 3 ether);
        assertEq(_staked(account).locked, 0);
    }

    function test_slash_burnsTheShareOfNobody() public {
        _stake(account, WORKER, 10 ether);
        _lock(10 ether);
        uint256 supply = _supply();
        _slash(10 ether, address(0), address(0), address(0));
        assertEq(supply - _supply(), 10 ether);
    }

    function test_slash_takesLockedStakeOnly() public {
        _stake(account, WORKER, 10 ether);
        _lock(2 ether);
        vm.expectRevert(stdError.arithmeticError);
        _slash(3 ether, auditor, others, stranger);
    }

    /// @dev Setters open to anyone; one trusted role that slashes: there is none.
    function test_onlyTheContracts(address caller) public {
        vm.assume(caller != address(jobs) && caller != address(disputes));
        vm.startPrank(caller);
        vm.expectRevert(abi.encodeWithSelector(IStaking.Unauthorized.selector, caller));
        staking.lock(account, 1);
        vm.expectRevert(abi.encodeWithSelector(IStaking.Unauthorized.selector, caller));
        staking.unlock(account, 1);
        vm.expectRevert(abi.encodeWithSelector(IStaking.Unauthorized.selector, caller));
        staking.slash(account, 1, caller, caller, caller);
        vm.stopPrank();
    }

    function test_isValidator_needsBondedCollateral() public {
        _stake(account, WORKER, 1_000_000 ether);
        assertFalse(staking.isValidator(account), "a worker's stake is not a validator's");
        _stake(account, VALIDATOR, 1_000_000 ether - 1);
        assertFalse(staking.isValidator(account));
        _stake(account, VALIDATOR, 1);
        assertTrue(staking.isValidator(account));
        vm.prank(account);
        staking.requestUnstake(VALIDATOR, 1);
        assertFalse(staking.isValidator(account), "who leaves votes no more");
    }

    function test_parameters_areTheDeployments() public view {
        assertEq(abi.encode(staking.parameters()), abi.encode(parameters));
    }

    function _lock(uint256 amount) private {
        vm.prank(address(jobs));
        staking.lock(account, amount);
    }

    function _slash(uint256 amount, address challenger, address auditors, address harmed) private {
        vm.prank(address(disputes));
        staking.slash(account, amount, challenger, auditors, harmed);
    }

    function _permitDigest(address owner, uint256 value, uint256 deadline) private view returns (bytes32) {
        bytes32 typeHash =
            keccak256("Permit(address owner,address spender,uint256 value,uint256 nonce,uint256 deadline)");
        bytes32 structHash =
            keccak256(abi.encode(typeHash, owner, address(staking), value, sno.nonces(owner), deadline));
        return keccak256(abi.encodePacked(hex"1901", sno.DOMAIN_SEPARATOR(), structHash));
    }
}
