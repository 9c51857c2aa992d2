// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {ReentrancyGuardTransient} from "@openzeppelin/contracts/utils/ReentrancyGuardTransient.sol";
import {SafeCast} from "@openzeppelin/contracts/utils/math/SafeCast.sol";

import {IJobPayments} from "../../interfaces/jobs/IJobPayments.sol";
import {Lanes} from "../../libraries/claims/Lanes.sol";
import {ParameterBounds} from "../../libraries/terms/ParameterBounds.sol";
import {JobKind} from "../../types/Types.sol";
import {JobDeployment} from "./JobDeployment.sol";
import {JobRecords} from "./JobRecords.sol";

/// @title JobPayments
/// @notice What work and audits take of a job's escrow, and how it is collected.
abstract contract JobPayments is JobRecords, JobDeployment, ReentrancyGuardTransient {
    using SafeCast for uint256;
    using SafeERC20 for IERC20;

    /// @inheritdoc IJobPayments
    function pay(uint64 job, uint16 stage, uint16 replica, uint32 units) external {
        Job storage record = _jobs[job];
        bool serving = record.kind == JobKind.Serving;
        // INVARIANT: money is earned by final claims (P-2), or by tokens that the user signed for (P-19).
        if (msg.sender != (serving ? address(CHANNELS) : address(CHECKPOINTS))) revert Unauthorized(msg.sender);
        Assignment storage lane = _assignments[Lanes.id(job, stage, replica)];
        // INVARIANT: a convicted lane redeems nothing (P-19). Of a training lane the claims before the convicted one
        // stay good (P-13).
        if (serving && lane.convicted) revert LaneConvicted(stage, replica);
        (address worker, uint256 amount) = (lane.worker, uint256(lane.price) * units);

        // The escrow covers it: `accept` saw to that (P-3); a claim is finalised once, a token paid once.
        record.escrow -= amount.toUint128();
        record.activeAt = block.timestamp.toUint40();
        _credits[worker][record.token] += amount;
        emit Paid(job, worker, stage, replica, units, amount);
    }

    /// @inheritdoc IJobPayments
    function payAudit(uint64 job, uint16 stage, uint16 replica, uint32 units, address auditor)
        external
        returns (uint256 fee)
    {
        // INVARIANT: audits are paid when they are done.
        if (msg.sender != AUDITS) revert Unauthorized(msg.sender);
        Job storage record = _jobs[job];
        uint256 price = _assignments[Lanes.id(job, stage, replica)].price;
        fee = price * units * _AUDIT_FEE_BPS / ParameterBounds.WHOLE_BPS;
        // INVARIANT: audits take nothing of what work earns (P-3).
        if (fee > record.auditBudget) return 0;

        record.auditBudget -= fee.toUint128();
        record.escrow -= fee.toUint128();
        _credits[auditor][record.token] += fee;
        emit AuditPaid(job, auditor, stage, replica, fee);
    }

    /// @inheritdoc IJobPayments
    function collect(address token) external nonReentrant returns (uint256 amount) {
        amount = _credits[msg.sender][token];
        // INVARIANT: no empty events.
        if (amount == 0) revert NothingToCollect();

        delete _credits[msg.sender][token];
        emit Collected(msg.sender, token, amount);

        if (token == address(0)) {
            // Whoever collects may be a contract that needs more gas than `transfer` leaves; the guard is against its
            // coming back.
            // slither-disable-next-line low-level-calls
            (bool done,) = msg.sender.call{value: amount}("");
            // INVARIANT: what was not received is still owed (P-5).
            if (!done) revert TransferFailed();
        } else {
            // Credits are in ETH and SNO only: `token` is SNO.
            SNO.safeTransfer(msg.sender, amount);
        }
    }

    /// @inheritdoc IJobPayments
    function creditOf(address account, address token) external view returns (uint256) {
        return _credits[account][token];
    }
}
