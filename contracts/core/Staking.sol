// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {ERC20Burnable} from "@openzeppelin/contracts/token/ERC20/extensions/ERC20Burnable.sol";
import {IERC20Permit} from "@openzeppelin/contracts/token/ERC20/extensions/IERC20Permit.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {ReentrancyGuardTransient} from "@openzeppelin/contracts/utils/ReentrancyGuardTransient.sol";
import {SafeCast} from "@openzeppelin/contracts/utils/math/SafeCast.sol";
import {Checkpoints as Traces} from "@openzeppelin/contracts/utils/structs/Checkpoints.sol";

import {IAudits} from "../interfaces/IAudits.sol";
import {IStaking} from "../interfaces/IStaking.sol";
import {Bounties} from "../libraries/terms/Bounties.sol";
import {ParameterBounds} from "../libraries/terms/ParameterBounds.sol";
import {Parameters} from "../types/Parameters.sol";
import {FixedParameters} from "./staking/FixedParameters.sol";

/// @title Staking
/// @notice See `IStaking`.
contract Staking is FixedParameters, ReentrancyGuardTransient {
    using SafeCast for uint256;
    using SafeERC20 for IERC20;
    using Traces for Traces.Trace208;

    /// @notice The token of stake.
    IERC20 public immutable SNO;
    /// @notice Who locks and unlocks.
    address public immutable JOBS;
    /// @notice Who slashes.
    address public immutable DISPUTES;
    /// @notice Who penalises validators.
    address public immutable AUDITS;

    uint128 private _validatorCount;
    /// @dev In the slot of the count, which is not zero where there are validators: no slash pays for a new slot.
    uint128 private _toBurn;
    /// @dev The counts there were, by timestamp.
    Traces.Trace208 private _validatorCounts;
    mapping(address account => mapping(Role role => Account balance)) private _accounts;

    /// @param p checked here, for every contract of the deployment.
    // Zero addresses would only make a deployment that does nothing; `script/Deployer.sol` gives real ones.
    // slither-disable-next-line missing-zero-check
    constructor(IERC20 sno, address jobs, address disputes, address audits, Parameters memory p) FixedParameters(p) {
        ParameterBounds.check(p);
        SNO = sno;
        JOBS = jobs;
        DISPUTES = disputes;
        AUDITS = audits;
    }

    /// @inheritdoc IStaking
    function stake(Role role, uint256 amount) external nonReentrant {
        _stake(role, amount);
    }

    /// @inheritdoc IStaking
    // Guarded; and a permit of SNO calls nobody.
    // slither-disable-next-line reentrancy-benign
    function stakeWithPermit(Role role, uint256 amount, uint256 deadline, uint8 v, bytes32 r, bytes32 s)
        external
        nonReentrant
    {
        // Anyone can submit the permit first. Then this call fails, the allowance is there all the same, and
        // the transfer below decides.
        try IERC20Permit(address(SNO)).permit(msg.sender, address(this), amount, deadline, v, r, s) {} catch {}
        _stake(role, amount);
    }

    function _stake(Role role, uint256 amount) private {
        Account storage account = _account(msg.sender, role);
        // INVARIANT: no empty events.
        if (amount == 0) revert ZeroAmount();

        account.bonded += amount.toUint128();
        emit Staked(msg.sender, role, amount);
        if (role == Role.Validator) _countValidator(msg.sender, account);

        SNO.safeTransferFrom(msg.sender, address(this), amount);
    }

    /// @inheritdoc IStaking
    function requestUnstake(Role role, uint256 amount) external {
        Account storage account = _account(msg.sender, role);
        if (amount == 0) revert ZeroAmount();
        // INVARIANT: only what is bonded starts to unbond. Locks do not matter yet: they hold on to unbonding
        // stake too.
        if (amount > account.bonded) revert InsufficientStake(account.bonded, amount);

        uint128 value = amount.toUint128();
        if (role == Role.Validator && account.bonded - value < _VALIDATOR_COLLATERAL) _checkRevealed(msg.sender);
        uint40 releaseAt = (block.timestamp + _UNBONDING_DELAY).toUint40();
        account.bonded -= value;
        account.unbonding += value;
        account.releaseAt = releaseAt;
        emit UnstakeRequested(msg.sender, role, amount, releaseAt);
        if (role == Role.Validator) _countValidator(msg.sender, account);
    }

    /// @dev INVARIANT: who has sealed an answer shows it before it stops being liable for it (P-46).
    function _checkRevealed(address validator) private view {
        uint256 answers = IAudits(AUDITS).sealedBy(validator);
        if (answers > 0) revert AnswersSealed(answers);
    }

    /// @inheritdoc IStaking
    function withdraw(Role role) external nonReentrant returns (uint256 amount) {
        Account storage account = _account(msg.sender, role);
        (uint128 bonded, uint128 unbonding, uint128 locked) = (account.bonded, account.unbonding, account.locked);
        // INVARIANT: nothing leaves before the delay has passed (P-9).
        if (unbonding > 0 && block.timestamp < account.releaseAt) revert StillUnbonding(account.releaseAt);
        // INVARIANT: locked <= bonded + unbonding.
        uint128 needed = locked > bonded ? locked - bonded : 0;
        if (unbonding <= needed) revert NothingToWithdraw();

        amount = unbonding - needed;
        account.unbonding = needed;
        emit Withdrawn(msg.sender, role, amount);

        SNO.safeTransfer(msg.sender, amount);
    }

    /// @inheritdoc IStaking
    function lock(address worker, uint256 amount) external {
        // INVARIANT: locks follow a worker's signed offers, which Jobs has checked.
        if (msg.sender != JOBS) revert Unauthorized(msg.sender);
        uint256 free = available(worker);
        // INVARIANT: the same stake stands for one lane only.
        if (free < amount) revert InsufficientStake(free, amount);

        _accounts[worker][Role.Worker].locked += amount.toUint128();
        emit Locked(worker, amount);
    }

    /// @inheritdoc IStaking
    function unlock(address worker, uint256 amount) external {
        // INVARIANT: what was locked for a lane stays locked until Jobs has settled it.
        if (msg.sender != JOBS) revert Unauthorized(msg.sender);

        _accounts[worker][Role.Worker].locked -= amount.toUint128();
        emit Unlocked(worker, amount);
    }

    /// @inheritdoc IStaking
    function slash(address worker, uint256 amount, address challenger, address auditors, address harmed)
        external
        nonReentrant
    {
        // INVARIANT: stake is taken by proof only.
        if (msg.sender != DISPUTES) revert Unauthorized(msg.sender);
        Account storage account = _accounts[worker][Role.Worker];

        uint128 value = amount.toUint128();
        account.locked -= value;
        uint128 fromBonded = value < account.bonded ? value : account.bonded;
        account.bonded -= fromBonded;
        account.unbonding -= value - fromBonded;

        // Rounded down; the burned share takes the remainders, and the share of a party that nobody is.
        (uint256 bounty, uint256 shared) = Bounties.halves(amount, _BOUNTY_BPS);
        if (challenger == address(0)) bounty = 0;
        if (auditors == address(0)) shared = 0;
        uint256 harm = harmed == address(0) ? 0 : amount * _HARM_BPS / ParameterBounds.WHOLE_BPS;
        uint256 burned = amount - bounty - shared - harm;
        _toBurn += burned.toUint128();
        emit Slashed(worker, amount, bounty, shared, harm, burned);

        if (bounty > 0) SNO.safeTransfer(challenger, bounty);
        if (shared > 0) SNO.safeTransfer(auditors, shared);
        if (harm > 0) SNO.safeTransfer(harmed, harm);
    }

    /// @inheritdoc IStaking
    function penalise(address validator, uint256 amount, address accuser)
        external
        nonReentrant
        returns (uint256 taken)
    {
        // INVARIANT: collateral is taken by proof only.
        if (msg.sender != AUDITS) revert Unauthorized(msg.sender);
        Account storage account = _accounts[validator][Role.Validator];
        (uint256 bonded, uint256 unbonding) = (account.bonded, account.unbonding);

        taken = amount < bonded + unbonding ? amount : bonded + unbonding;
        uint256 fromBonded = taken < bonded ? taken : bonded;
        account.bonded = (bonded - fromBonded).toUint128();
        account.unbonding = (unbonding + fromBonded - taken).toUint128();
        // Rounded down; the burned share takes the remainder, and the share of a party that nobody is.
        uint256 bounty = accuser == address(0) ? 0 : taken * _BOUNTY_BPS / ParameterBounds.WHOLE_BPS;
        _toBurn += (taken - bounty).toUint128();
        emit Penalised(validator, taken, bounty, taken - bounty);
        _countValidator(validator, account);

        if (bounty > 0) SNO.safeTransfer(accuser, bounty);
    }

    /// @inheritdoc IStaking
    function burn() external nonReentrant returns (uint256 amount) {
        amount = _toBurn;
        // INVARIANT: no empty events.
        if (amount == 0) revert ZeroAmount();
        _toBurn = 0;
        ERC20Burnable(address(SNO)).burn(amount);
    }

    /// @dev INVARIANT: who lacks collateral is not drawn, and who has it is counted once.
    function _countValidator(address validator, Account storage account) private {
        bool counted = account.validatorSince != 0;
        bool joined = account.bonded >= _VALIDATOR_COLLATERAL;
        if (counted == joined) return;
        account.validatorSince = joined ? block.timestamp.toUint40() : 0;
        uint128 count = joined ? _validatorCount + 1 : _validatorCount - 1;
        _validatorCount = count;
        // Left out is what it returns: the count before, and this one.
        // slither-disable-next-line unused-return
        _validatorCounts.push(block.timestamp.toUint48(), count);
        emit ValidatorsChanged(validator, joined, count);
    }

    /// @inheritdoc IStaking
    function accountOf(address account, Role role) external view returns (Account memory) {
        return _accounts[account][role];
    }

    /// @inheritdoc IStaking
    function available(address worker) public view returns (uint256) {
        Account storage account = _accounts[worker][Role.Worker];
        (uint128 bonded, uint128 locked) = (account.bonded, account.locked);
        return bonded > locked ? bonded - locked : 0;
    }

    /// @inheritdoc IStaking
    function isValidator(address account) external view returns (bool) {
        return _accounts[account][Role.Validator].validatorSince != 0;
    }

    /// @inheritdoc IStaking
    function validatorSince(address account) external view returns (uint40) {
        return _accounts[account][Role.Validator].validatorSince;
    }

    /// @inheritdoc IStaking
    function validatorCount() external view returns (uint256) {
        return _validatorCount;
    }

    /// @inheritdoc IStaking
    function validatorCountBefore(uint256 timestamp) external view returns (uint256) {
        return timestamp == 0 ? 0 : _validatorCounts.upperLookupRecent((timestamp - 1).toUint48());
    }

    /// @inheritdoc IStaking
    function toBurn() external view returns (uint256) {
        return _toBurn;
    }

    function _account(address account, Role role) private view returns (Account storage) {
        // INVARIANT: the zero value of the enum holds no money.
        if (role == Role.None) revert InvalidRole();
        return _accounts[account][role];
    }
}
