// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";

import {IAudits} from "../../interfaces/IAudits.sol";
import {IJobs} from "../../interfaces/IJobs.sol";
import {LaneId, Lanes} from "../../libraries/claims/Lanes.sol";
import {Merkle} from "../../libraries/proofs/Merkle.sol";
import {ParameterBounds} from "../../libraries/terms/ParameterBounds.sol";
import {AuditedClaim} from "../../types/Audit.sol";
import {Claim, JobKind, StepStatement} from "../../types/Types.sol";
import {AuditDeployment} from "./AuditDeployment.sol";

/// @title AuditedClaims
/// @notice Which claims are audited, by whom and when, and what their workers say about them.
abstract contract AuditedClaims is IAudits, AuditDeployment {
    /// @inheritdoc IAudits
    function isDrawn(bytes32 claimId, uint256 fixedAt, address auditor) public view returns (bool) {
        uint256 since = STAKING.validatorSince(auditor);
        // INVARIANT: nobody becomes a validator because it would be drawn.
        if (since == 0 || since >= fixedAt) return false;
        uint64 period = BEACON.periodAfter(fixedAt);
        bytes32 seed = BEACON.seedOf(period);
        if (seed == 0) revert NoSeed(period);
        // A share of 2^128.
        uint256 ticket = uint256(keccak256(abi.encode(seed, claimId, auditor))) >> 128;
        // INVARIANT: who makes and unmakes validators once the claim is fixed draws nobody anew, and pushes nobody out:
        // they share the draw with those who were validators before it.
        uint256 count = STAKING.validatorCountBefore(fixedAt);
        return ticket * ParameterBounds.WHOLE_BPS * count < _AUDITS_PER_CLAIM_BPS << 128;
    }

    /// @dev Id of a claim that is fixed, and its job.
    function _known(AuditedClaim calldata audited) internal view returns (bytes32 claimId, IJobs.Audited memory job) {
        Claim calldata claim = audited.claim;
        job = JOBS.auditedOf(claim.job);
        claimId = CHECKPOINTS.claimId(claim);
        bool known;
        if (job.kind == JobKind.Serving) {
            bytes32 epoch = CHANNELS.epochOf(claim.job, claim.stage, claim.replica, audited.epoch);
            // The list's length needs no check: nothing but a claim's id is a leaf that a claim has (C-4).
            uint256 count = 1 << (audited.siblings.length & 31);
            // INVARIANT: no proof is refused for the form of the receipt (C-12), so that what is confirmed falsely
            // convicts (P-32).
            known = claim.parentState == 0 && claim.newState == 0
                && epoch == keccak256(abi.encode(audited.receipts, audited.fixedAt))
                && Merkle.isMember(audited.receipts, claimId, audited.index, count, audited.siblings);
        } else {
            known = CHECKPOINTS.isRecorded(claim, audited.fixedAt);
        }
        // INVARIANT: what is audited is on chain, since when it says.
        if (!known) revert UnknownClaim();
    }

    /// @dev Seconds from when a claim is fixed until the `n`-th quarter is over. None is longer than the clock of a
    /// challenge: so long a worker that is challenged at once need not say anything.
    function _after(IJobs.Audited memory job, uint256 n) private view returns (uint256) {
        uint256 longest = 4 * _DISPUTE_CLOCK;
        return n * (job.challengeWindow < longest ? job.challengeWindow : longest) / 4;
    }

    /// @dev INVARIANT: moves are made in their quarters of the window, after the `from`-th and until the `to`-th
    /// is over.
    function _checkTime(AuditedClaim calldata audited, IJobs.Audited memory job, uint256 from, uint256 to)
        internal
        view
    {
        (uint256 start, uint256 end) = (audited.fixedAt + _after(job, from), audited.fixedAt + _after(job, to));
        if (block.timestamp < start || block.timestamp >= end) revert OutOfTime(start, end);
    }

    function _checkNotVoid(Claim calldata claim, IJobs.Audited memory job) internal view {
        bool void = job.kind == JobKind.Serving
            ? job.state == IJobs.State.Settled || JOBS.isConvicted(claim.job, claim.stage, claim.replica)
            : DISPUTES.isConvicted(claim.job, claim.stage, claim.replica, claim.interval);
        if (void) revert ClaimIsVoid();
    }

    /// @dev What the claim's worker says about its last step; of a receipt, about a text of any length.
    function _checkStatement(
        bytes32 claimId,
        Claim calldata claim,
        IJobs.Audited memory job,
        StepStatement calldata statement,
        bytes calldata signature
    ) internal view {
        bool last = job.kind == JobKind.Serving
            ? statement.step > 0 && statement.step <= job.stepsPerInterval
            : statement.step == (uint256(claim.interval) + 1) * job.stepsPerInterval - 1;
        // INVARIANT: answers are compared about the same step of the same claim.
        if (statement.claimId != claimId || !last) revert WrongStatement();
        bytes32 digest = DISPUTES.statementDigest(statement);
        // Left out is what else there is to say about a failure.
        // slither-disable-next-line unused-return
        (address signer, ECDSA.RecoverError failure,) = ECDSA.tryRecoverCalldata(digest, signature);
        // INVARIANT: what counts against or for an auditor is a word that convicts who gave it, if it is wrong.
        bool signed =
            failure == ECDSA.RecoverError.NoError && signer == JOBS.workerOf(claim.job, claim.stage, claim.replica);
        if (!signed) revert WrongStatement();
    }

    function _laneOf(Claim calldata claim) internal pure returns (LaneId) {
        return Lanes.id(claim.job, claim.stage, claim.replica);
    }
}
