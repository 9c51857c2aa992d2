// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Parameters} from "../types/Parameters.sol";

/// @title Stake of workers and collateral of validators
/// @notice Amounts are in wei of SNO. Each account has one balance per role. A balance is bonded, or unbonding until a
/// time. Locks reserve part of a worker's balance for the jobs it has accepted. Slashing takes from the bonded part
/// first, and then from the unbonding part.
/// @dev Assumes that SNO moves exactly the amounts asked for. There is no owner; parameters are fixed at deployment.
interface IStaking {
    /// @dev `None` is invalid.
    enum Role {
        None,
        Worker,
        Validator
    }

    /// @dev Balance of an account in a role. The contract holds `bonded + unbonding` for it, and
    /// `locked <= bonded + unbonding`.
    struct Account {
        /// Stake that is not unbonding, in wei of SNO.
        uint128 bonded;
        /// Stake that can be withdrawn from `releaseAt` on, in wei of SNO, less what locks need.
        uint128 unbonding;
        /// Reserved for jobs, in wei of SNO.
        uint128 locked;
        /// When unbonding ends, as a Unix timestamp.
        uint40 releaseAt;
        /// Since when a validator has had the collateral without a break, as a Unix timestamp; 0 without it.
        uint40 validatorSince;
    }

    /// @notice Stake was bonded.
    /// @param account whose
    /// @param role in which role
    /// @param amount wei of SNO
    event Staked(address indexed account, Role indexed role, uint256 amount);

    /// @notice Stake started to unbond.
    /// @param account whose
    /// @param role in which role
    /// @param amount wei of SNO that were added to what unbonds
    /// @param releaseAt when all that unbonds is released, as a Unix timestamp
    event UnstakeRequested(address indexed account, Role indexed role, uint256 amount, uint40 releaseAt);

    /// @notice Stake was paid out.
    /// @param account whose
    /// @param role in which role
    /// @param amount wei of SNO
    event Withdrawn(address indexed account, Role indexed role, uint256 amount);

    /// @notice A worker's stake was reserved for a lane.
    /// @param account the worker
    /// @param amount wei of SNO
    event Locked(address indexed account, uint256 amount);

    /// @notice A reservation was released.
    /// @param account the worker
    /// @param amount wei of SNO
    event Unlocked(address indexed account, uint256 amount);

    /// @notice An account became a validator, or is one no more.
    /// @param account the account
    /// @param joined whether it became one
    /// @param validators number of validators from now on
    event ValidatorsChanged(address indexed account, bool joined, uint256 validators);

    /// @notice A validator lost collateral.
    /// @param account the validator
    /// @param amount taken, in wei of SNO
    /// @param bounty paid to the accuser, in wei of SNO
    /// @param burned left for `burn`, in wei of SNO
    event Penalised(address indexed account, uint256 amount, uint256 bounty, uint256 burned);

    /// @notice A worker lost stake.
    /// @param account the worker
    /// @param amount taken, in wei of SNO
    /// @param bounty paid to the challenger, in wei of SNO
    /// @param shared left with `Audits` for the lane's auditors, in wei of SNO
    /// @param harm paid to the job's user, in wei of SNO
    /// @param burned left for `burn`, in wei of SNO
    event Slashed(
        address indexed account, uint256 amount, uint256 bounty, uint256 shared, uint256 harm, uint256 burned
    );

    /// @notice The amount, or what there is to burn, is zero.
    error ZeroAmount();

    /// @notice `None` is no role.
    error InvalidRole();

    /// @notice There is not as much stake as that.
    /// @param available bonded stake, for a lock the unlocked part of it, in wei of SNO
    /// @param needed what was asked for, in wei of SNO
    error InsufficientStake(uint256 available, uint256 needed);

    /// @notice The unbonding delay is not over.
    /// @param releaseAt when it is, as a Unix timestamp
    error StillUnbonding(uint40 releaseAt);

    /// @notice The caller has sealed answers that it has not revealed, and would be no validator any more.
    /// @param answers how many: `IAudits.revealUnpaid` shows one, `IAudits.forfeit` gives one up
    error AnswersSealed(uint256 answers);

    /// @notice Nothing has unbonded, or locks need all of it.
    error NothingToWithdraw();

    /// @notice Only another contract of the deployment may call this.
    /// @param caller who called
    error Unauthorized(address caller);

    /// @notice Moves SNO from the caller into its bonded balance. Anyone may call; needs an allowance.
    /// @param role in which role
    /// @param amount wei of SNO, not 0
    function stake(Role role, uint256 amount) external;

    /// @notice As `stake`, with an EIP-2612 permit in place of an allowance. It does no harm if somebody else has used
    /// the permit first.
    /// @param role in which role
    /// @param amount wei of SNO, not 0; also what the permit allows
    /// @param deadline until when the permit holds, as a Unix timestamp
    /// @param v of the permit's signature
    /// @param r of the permit's signature
    /// @param s of the permit's signature
    function stakeWithPermit(Role role, uint256 amount, uint256 deadline, uint8 v, bytes32 r, bytes32 s) external;

    /// @notice Starts unbonding part of what the caller has bonded, locked or not. A second request joins the first and
    /// restarts its delay. A validator that falls below the collateral by it must have revealed all its answers (P-46).
    /// @param role in which role
    /// @param amount wei of SNO, not 0, at most what is bonded
    function requestUnstake(Role role, uint256 amount) external;

    /// @notice Pays out what the caller has unbonded, less what locks need.
    /// Requirements: the delay of the last request is over; there is something to pay out.
    /// @param role in which role
    /// @return amount wei of SNO
    function withdraw(Role role) external returns (uint256 amount);

    /// @notice Reserves part of a worker's bonded, unlocked balance. Only `Jobs`.
    /// @param worker the worker
    /// @param amount wei of SNO
    function lock(address worker, uint256 amount) external;

    /// @notice Releases a reservation. Only `Jobs`.
    /// @param worker the worker
    /// @param amount wei of SNO
    function unlock(address worker, uint256 amount) external;

    /// @notice Takes locked stake from a worker: of `bountyBps` one half goes to `challenger`, the other to `auditors`
    /// (P-45); `harmBps` go to `harmed`; the rest is left for `burn`, as is the share of a zero address. Only
    /// `Disputes`.
    /// @param worker the worker
    /// @param amount wei of SNO
    /// @param challenger who receives half of the bounty; may be zero
    /// @param auditors who receives the other half; may be zero
    /// @param harmed who is compensated; may be zero
    function slash(address worker, uint256 amount, address challenger, address auditors, address harmed) external;

    /// @notice Takes collateral from a validator, bonded first: `bountyBps` go to `accuser`; the rest is left for
    /// `burn`, as is the share of a zero address. Only `Audits`.
    /// @param validator the validator
    /// @param amount wei of SNO; where there is less, all there is, bonded or unbonding, is taken
    /// @param accuser who receives the bounty; may be zero
    /// @return taken wei of SNO
    function penalise(address validator, uint256 amount, address accuser) external returns (uint256 taken);

    /// @notice Burns what slashes and penalties left to burn. Anyone may call: it has belonged to nobody since it was
    /// taken.
    /// @dev A function of its own, since a burn writes down the new supply for votes (ERC-20 with ERC-5805). That takes
    /// 41,000 gas, which whoever proves a fault would pay.
    /// @return amount wei of SNO
    function burn() external returns (uint256 amount);

    /// @notice The balance of an account in a role.
    /// @param account the account
    /// @param role the role
    /// @return the balance; all zero if it never staked in that role
    function accountOf(address account, Role role) external view returns (Account memory);

    /// @notice Bonded stake of a worker that is not locked by jobs.
    /// @param worker the worker
    /// @return wei of SNO
    function available(address worker) external view returns (uint256);

    /// @notice Whether an account holds the collateral that a validator needs.
    /// @param account the account
    /// @return whether it does
    function isValidator(address account) external view returns (bool);

    /// @notice Since when an account has held the collateral without a break.
    /// @param account the account
    /// @return Unix timestamp; 0 if it does not hold it
    function validatorSince(address account) external view returns (uint40);

    /// @notice How many accounts hold the collateral.
    /// @return number of validators
    function validatorCount() external view returns (uint256);

    /// @notice How many accounts held the collateral before a time.
    /// @param timestamp Unix timestamp, at most the current one
    /// @return number of validators after the last block whose timestamp is below it
    function validatorCountBefore(uint256 timestamp) external view returns (uint256);

    /// @notice What `burn` would burn.
    /// @return wei of SNO
    function toBurn() external view returns (uint256);

    /// @notice The parameters of the whole deployment; the other contracts copied theirs from here.
    /// @return the parameters
    function parameters() external view returns (Parameters memory);
}
