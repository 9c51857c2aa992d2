// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {ReentrancyGuardTransient} from "@openzeppelin/contracts/utils/ReentrancyGuardTransient.sol";
import {SafeCast} from "@openzeppelin/contracts/utils/math/SafeCast.sol";

import {IAudits} from "../../interfaces/IAudits.sol";
import {LaneId, Lanes} from "../../libraries/claims/Lanes.sol";
import {Bounties} from "../../libraries/terms/Bounties.sol";
import {Claim} from "../../types/Types.sol";
import {AuditRecords} from "./AuditRecords.sol";
import {AuditedClaims} from "./AuditedClaims.sol";

/// @title AuditShares
/// @notice How many answers were sealed about a lane when it was convicted, and what each brings (P-45).
abstract contract AuditShares is AuditRecords, AuditedClaims, ReentrancyGuardTransient {
    using SafeCast for uint256;
    using SafeERC20 for IERC20;

    /// @dev The lane's seals, in the spans as they are now. Once it is closed, as it was closed.
    function _runningSeals(LaneId lane, uint256 window) internal view returns (Seals memory seals) {
        seals = _seals[lane];
        uint256 spans = (block.timestamp - seals.since) / window;
        if (seals.closed || spans == 0) return seals;
        (seals.before, seals.running) = (spans == 1 ? seals.running : 0, 0);
        seals.since = (seals.since + spans * window).toUint40();
    }

    /// @inheritdoc IAudits
    function closeSeals(uint64 job, uint16 stage, uint16 replica) external returns (bool any) {
        // INVARIANT: what is shared is what a conviction has set aside.
        if (msg.sender != address(DISPUTES)) revert Unauthorized(msg.sender);
        LaneId lane = Lanes.id(job, stage, replica);
        // So it is for most lanes: a conviction without auditors costs little more.
        if (_seals[lane].since == 0) return false;
        uint32 window = JOBS.auditedOf(job).challengeWindow;
        Seals memory seals = _runningSeals(lane, window);
        seals.running += seals.before;
        any = seals.running > 0;
        if (!any) return false;
        (seals.since, seals.before, seals.closed) = (seals.since - window, 0, true);
        _seals[lane] = seals;
    }

    /// @inheritdoc IAudits
    function payShare(Claim calldata claim, address auditor) external nonReentrant {
        bytes32 claimId = CHECKPOINTS.claimId(claim);
        uint256 amount = shareOf(claim, auditor);
        if (amount == 0) revert NothingToShare();
        // INVARIANT: one share for each answer.
        _audits[claimId][auditor].sealedAt = 0;
        emit AuditorShared(claimId, auditor, claim.job, amount);
        SNO.safeTransfer(auditor, amount);
    }

    /// @inheritdoc IAudits
    function shareOf(Claim calldata claim, address auditor) public view returns (uint256) {
        Audit storage audit = _audits[CHECKPOINTS.claimId(claim)][auditor];
        Seals memory seals = _seals[_laneOf(claim)];
        // INVARIANT: who shares had sealed before the conviction …
        if (!seals.closed || audit.sealedAt < seals.since) return 0;
        // INVARIANT: … and has shown its answer, which nobody can be penalised for any more by the worker's word.
        bool shown = audit.state == State.Revealed
            || (audit.state == State.Accused
                && DISPUTES.isConvicted(claim.job, claim.stage, claim.replica, claim.interval));
        if (!shown) return 0;
        // Left out is the finder's half.
        // slither-disable-next-line unused-return
        (, uint256 auditors) = Bounties.halves(JOBS.stakeOf(claim.job), _BOUNTY_BPS);
        // Rounded down; what is left over, and what nobody claims, stays here for good.
        return auditors / seals.running;
    }
}
