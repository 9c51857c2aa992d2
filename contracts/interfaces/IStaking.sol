// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Parameters} from "../types/Parameters.sol";

/// @title Stake of workers and collateral of validators
/// @notice Amounts are wei of SNO. Each account has one balance per role. A balance is bonded, or unbonding until a time.
/// Locks reserve part of a worker's balance for the jobs it has accepted; slashing takes from the bonded part first and
/// reaches the unbonding part.
/// @dev Assumes SNO moves exactly the amounts asked for. No owner; parameters are fixed at deployment.
interface IStaking {
    /// @dev 0 is invalid.
    enum Role {
        None,
        Worker,
        Validator
    }

    /// @dev `bonded + unbonding` is what the contract holds for the account; `locked <= bonded + unbonding`. `validatorSince`: since when it has had
    /// the collateral, without a break; 0 without it.
    struct Account {
        uint128 bonded;
        uint128 unbonding;
        uint128 locked;
        uint40 releaseAt;
        uint40 validatorSince;
    }

    event Staked(address indexed account, Role indexed role, uint256 amount);
    event UnstakeRequested(address indexed account, Role indexed role, uint256 amount, uint40 releaseAt);
    event Withdrawn(address indexed account, Role indexed role, uint256 amount);
    event Locked(address indexed account, uint256 amount);
    event Unlocked(address indexed account, uint256 amount);
    event ValidatorsChanged(address indexed account, bool joined, uint256 validators);
    event Penalised(address indexed account, uint256 amount, uint256 bounty, uint256 burned);
    event Slashed(address indexed account, uint256 amount, uint256 bounty, uint256 harm, uint256 burned);

    error ZeroAmount();
    error InvalidRole();
    error InsufficientStake(uint256 available, uint256 needed);
    error StillUnbonding(uint40 releaseAt);
    error NothingToWithdraw();
    error Unauthorized(address caller);

    /// @notice Moves `amount` of SNO from the caller into its bonded balance. Requires an allowance.
    function stake(Role role, uint256 amount) external;

    /// @notice `stake` with an EIP-2612 permit in place of an allowance. A permit that somebody else has used first does no harm.
    function stakeWithPermit(Role role, uint256 amount, uint256 deadline, uint8 v, bytes32 r, bytes32 s) external;

    /// @notice Starts unbonding `amount` of what is bonded, locked or not. A second request joins the first and restarts its delay.
    function requestUnstake(Role role, uint256 amount) external;

    /// @notice Pays out what has unbonded, less what locks need.
    function withdraw(Role role) external returns (uint256 amount);

    /// @notice Reserves `amount` of a worker's bonded, unlocked balance. Only `Jobs`.
    function lock(address worker, uint256 amount) external;

    /// @notice Releases a reservation. Only `Jobs`.
    function unlock(address worker, uint256 amount) external;

    /// @notice Takes `amount` of locked stake: `bountyBps` to `challenger`, `harmBps` to `harmed`; the rest is for `burn`, as is the
    /// share of a zero address. Only `Disputes`.
    function slash(address worker, uint256 amount, address challenger, address harmed) external;

    /// @notice Takes up to `amount` of a validator's collateral, as much as is there, bonded or unbonding: `bountyBps` to `accuser`; the rest is
    /// for `burn`. Only `Audits`.
    function penalise(address validator, uint256 amount, address accuser) external returns (uint256 taken);

    /// @notice Burns what slashes and penalties left to burn, and returns how much it was. For anybody: it belongs to nobody since it was taken.
    /// @dev Apart, since a burn writes down the new supply for votes (ERC-20 with ERC-5805): 41,000 gas, which whoever proves a
    /// fault would pay.
    function burn() external returns (uint256 amount);

    /// @notice The balance of an account in a role.
    function accountOf(address account, Role role) external view returns (Account memory);

    /// @notice Bonded stake not locked by jobs.
    function available(address worker) external view returns (uint256);

    /// @notice Whether the account holds the collateral a validator needs.
    function isValidator(address account) external view returns (bool);

    /// @notice Since when it has held it, without a break; 0 if it does not.
    function validatorSince(address account) external view returns (uint40);

    /// @notice How many accounts hold it.
    function validatorCount() external view returns (uint256);

    /// @notice What `burn` would burn.
    function toBurn() external view returns (uint256);

    /// @notice The parameters of the whole deployment; the other contracts copied theirs from here.
    function parameters() external view returns (Parameters memory);
}
