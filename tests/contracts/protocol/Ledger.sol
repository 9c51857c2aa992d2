// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IStaking} from "../../../contracts/interfaces/IStaking.sol";
import {ChallengeFeed} from "./ChallengeFeed.sol";

/// @title What is whose, counted apart from the contracts
/// @notice Given from outside, and then earned and lost by the rules alone. Whatever lies in a wallet, in stake, in an
/// escrow, in a bond or to be collected is in here, to the wei.
abstract contract Ledger is ChallengeFeed {
    mapping(address account => mapping(address token => uint256 amount)) public dueTo;
    /// @dev Of that, what came from outside.
    mapping(address account => mapping(address token => uint256 amount)) public givenTo;

    function setUp() public virtual override {
        super.setUp();
        _given(user, ETH, user.balance);
    }

    function _fund(address account, address spender, uint256 amount) internal virtual override {
        super._fund(account, spender, amount);
        _given(account, address(sno), amount);
    }

    function _given(address account, address token, uint256 amount) internal {
        dueTo[account][token] += amount;
        givenTo[account][token] += amount;
    }

    function _paid(address from, address to, address token, uint256 amount) internal {
        dueTo[from][token] -= amount;
        dueTo[to][token] += amount;
    }

    /// @dev P-6: the shares of a conviction. `harmBps` are the user's, half of `bountyBps` the auditor's; `shared` is
    /// set aside for the lane's auditors (P-45); the rest is nobody's any more.
    function _slashed(address liar, uint256 shared) internal returns (uint256 burned) {
        uint256 bounty = _bounty() - _bounty() / 2;
        uint256 harm = STAKE * parameters.harmBps / 10_000;
        burned = STAKE - bounty - shared - harm;
        dueTo[liar][address(sno)] -= shared;
        _paid(liar, auditor, address(sno), bounty);
        _paid(liar, user, address(sno), harm);
        dueTo[liar][address(sno)] -= burned;
    }

    function _bounty() internal view returns (uint256) {
        return STAKE * parameters.bountyBps / 10_000;
    }

    /// @dev What an auditor pays, as much of it as it has: `bountyBps` are its accuser's; the rest is nobody's
    /// any more.
    function _penalised(address validator, uint256 amount) internal returns (uint256 burned) {
        uint256 bounty = amount * parameters.bountyBps / 10_000;
        burned = amount - bounty;
        _paid(validator, auditor, address(sno), bounty);
        dueTo[validator][address(sno)] -= burned;
    }

    /// @notice What an account has of a token, but for what escrows and bonds hold.
    function holdingOf(address account, address token) external view returns (uint256 amount) {
        amount = jobs.creditOf(account, token);
        if (token == ETH) return amount + challenges.creditOf(account) + account.balance;
        IStaking.Account memory asWorker = staking.accountOf(account, IStaking.Role.Worker);
        IStaking.Account memory asValidator = staking.accountOf(account, IStaking.Role.Validator);
        amount += uint256(asWorker.bonded) + asWorker.unbonding + asValidator.bonded + asValidator.unbonding;
        return amount + sno.balanceOf(account);
    }
}
