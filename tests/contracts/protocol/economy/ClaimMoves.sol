// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IChannels} from "../../../../contracts/interfaces/IChannels.sol";
import {ICheckpoints} from "../../../../contracts/interfaces/ICheckpoints.sol";
import {IJobs} from "../../../../contracts/interfaces/IJobs.sol";
import {IJobPayments} from "../../../../contracts/interfaces/jobs/IJobPayments.sol";
import {Merkle} from "../../../../contracts/libraries/proofs/Merkle.sol";
import {Holder} from "../../../../contracts/types/Custody.sol";
import {Claim, ClaimLink, JobKind, Voucher} from "../../../../contracts/types/Types.sol";
import {AuditMoves} from "./AuditMoves.sol";

/// @title Claims, of one replica and of several, and vouchers
abstract contract ClaimMoves is AuditMoves {
    // Claims

    /// @dev What is done about a claim is mostly done at once; in a walk few of them would be met in their window.
    function commit(uint256 seed, uint256 laneSeed, uint256 chance) external {
        uint64 job = _job(seed);
        IJobs.Job memory record = jobs.jobOf(job);
        if (record.state != IJobs.State.Running || block.timestamp > record.deadline) return;
        if (record.kind != JobKind.Training || record.replicas > 1) return;
        (uint256 lane, uint16 stage, uint16 replica) = _lane(job, laneSeed);
        uint64[] storage times = _times[job][lane];
        if (times.length == record.intervals) return;
        (Claim memory claim, uint64 when) =
            _commit(job, stage, replica, uint32(times.length), times.length == 0 ? 0 : times[times.length - 1]);
        times.push(when);
        _lookAt(claim, chance);
    }

    /// @dev Now and then somebody challenges a new claim, or demands its state, and more often audits it.
    function _lookAt(Claim memory claim, uint256 chance) private {
        if (chance % 4 == 0) _open(claim, uint64(block.timestamp));
        if (chance % 4 == 2) _demand(claim, uint64(block.timestamp), chance >> 8);
        if (chance % 2 == 1) _audit(claim, chance >> 8);
    }

    // Claims of replicas

    /// @dev A lane seals its next claim, now and then the first wrong one. Who is too late is refused.
    function seal(uint256 seed, uint256 laneSeed, uint256 chance) external {
        uint64 job = _replicatedJob(seed);
        if (job == 0) return;
        IJobs.Job memory record = jobs.jobOf(job);
        if (record.state != IJobs.State.Running || block.timestamp > record.deadline) return;
        (uint256 lane, uint16 stage, uint16 replica) = _lane(job, laneSeed);
        uint32 next = _sealedOf[job][lane];
        if (next == record.intervals) return;
        bool wrong = chance % 4 == 0 && jobs.workerOf(job, stage, replica) != honest();
        if (wrong && _wrongFrom[job][lane] == 0) _wrongFrom[job][lane] = next + 1;
        if (block.timestamp >= _sealsEnd(job, stage, next)) {
            Claim memory late = _made(job, stage, replica, next);
            vm.expectRevert(abi.encodeWithSelector(ICheckpoints.SealingOver.selector, next));
            this.sealAsWorker(late);
            ++refusedSeals;
            return;
        }
        Seen storage seen = _seen[job][stage][next];
        assertEq(seen.revealedAt, 0, "nothing is sealed after a reveal");
        _seal(_made(job, stage, replica, next));
        if (seen.seals++ == 0) seen.sealedAt = block.timestamp;
        ++_sealedOf[job][lane];
        ++seals;
    }

    /// @dev In one call, for a revert that is expected.
    function sealAsWorker(Claim memory claim) external {
        _seal(claim);
    }

    /// @dev The same.
    function revealAsWorker(Claim memory claim, ClaimLink memory link) external {
        _reveal(claim, link);
    }

    /// @dev A lane reveals what it sealed next, or is refused while others can still seal.
    function reveal(uint256 seed, uint256 laneSeed, uint256 chance) public {
        uint64 job = _replicatedJob(seed);
        if (job == 0) return;
        (uint256 lane, uint16 stage, uint16 replica) = _lane(job, laneSeed);
        uint32 next = uint32(_times[job][lane].length);
        bool void = next >= checkpoints.laneOf(job, stage, replica).voidFrom;
        if (next == _sealedOf[job][lane] || void) return;
        Claim memory claim = _made(job, stage, replica, next);
        ClaimLink memory link;
        if (next > 0) link = _link(_made(job, stage, replica, next - 1), _times[job][lane][next - 1]);
        if (!_sealsAreIn(job, stage, next)) {
            vm.expectRevert();
            this.revealAsWorker(claim, link);
            ++refusedReveals;
            return;
        }
        _reveal(claim, link);
        _revealedNow(job, lane, claim);
        _lookAt(claim, chance);
    }

    function _sealsAreIn(uint64 job, uint16 stage, uint32 interval) internal view returns (bool) {
        IJobs.Job memory record = jobs.jobOf(job);
        if (record.state == IJobs.State.Closing) return block.timestamp <= _closedAt[job] + SEALING;
        if (block.timestamp > record.deadline || block.timestamp >= _sealsEnd(job, stage, interval)) return true;
        uint256 all = interval == 0 ? record.replicas : _seen[job][stage][interval - 1].seals;
        return _seen[job][stage][interval].seals == all;
    }

    function _revealedNow(uint64 job, uint256 lane, Claim memory claim) internal {
        _times[job][lane].push(uint64(block.timestamp));
        ++reveals;
        Seen storage seen = _seen[job][claim.stage][claim.interval];
        if (seen.revealedAt == 0) {
            (seen.revealedAt, seen.newState) = (block.timestamp, claim.newState);
        } else if (seen.newState != claim.newState) {
            seen.differ = true;
            ++differences;
        }
        assertEq(checkpoints.windowOf(job, claim.stage, claim.interval), _windowOf(claim));
    }

    /// @dev Finalises what can be of a lane's next claim, by somebody's attestation or nobody's.
    function finalize(uint256 seed, uint256 laneSeed, uint256 who) public {
        uint64 job = _job(seed);
        if (jobs.jobOf(job).state < IJobs.State.Running) return;
        (uint256 lane, uint16 stage, uint16 replica) = _lane(job, laneSeed);
        uint32 next = checkpoints.laneOf(job, stage, replica).finalized;
        uint64[] storage times = _times[job][lane];
        if (next >= times.length || next >= checkpoints.laneOf(job, stage, replica).voidFrom) return;
        (Claim[] memory claims, uint64[] memory when) = (new Claim[](1), new uint64[](1));
        (claims[0], when[0]) = (_made(job, stage, replica, next), times[next]);
        Holder memory holder =
            who % 4 == 0 ? _nobody() : who % 4 == 1 ? _heldByUser(claims) : _keeperOf(claims[0], who >> 8);
        bool held = holder.signature.length > 0;
        uint256 window = held ? _windowOf(claims[0]) : 2 * WINDOW;
        if (block.timestamp < when[0] + window || _isHeldBack(claims[0])) return;
        checkpoints.finalize(claims, when, holder);
        _earned(job, stage, replica, 1);
        ++finalized;
        if (!held) ++finalizedByNobody;
        else if (who % 4 > 1) ++finalizedByWorkers;
    }

    // Vouchers

    /// @dev A lane redeems no less than it has, of the next epoch, and then tries the same again. It tries to leave an
    /// epoch out, or tokens, first; and once nothing can be redeemed any more. Now and then the user closes the job
    /// before. Of one that is closing it redeems in the last moment, half of the time, and cannot settle it then.
    function redeem(uint256 seed, uint256 laneSeed, uint256 amount, uint256 epochs) external {
        uint64 job = _servingJob(seed);
        if (job == 0) return;
        (uint256 lane, uint16 stage, uint16 replica) = _lane(job, laneSeed);
        (uint32 paid, uint32 most) = (tokensOf[job][lane], jobs.jobOf(job).intervals);
        uint32 epoch = channels.redeemedOf(job, stage, replica).epoch + 1;
        Voucher memory voucher = _voucher(job, stage, replica, epoch, uint32(bound(amount, paid, most)));
        Claim memory receipt;
        (receipt.job, receipt.stage, receipt.replica, receipt.interval) = (job, stage, replica, epoch);
        voucher.receipts = Merkle.itemNode(checkpoints.claimId(receipt));
        if (_stateOfJob(job) == IJobs.State.Running && epochs >> 16 & 7 == 0) {
            vm.prank(user);
            jobs.cancel(job);
            _closedAt[job] = block.timestamp;
        }
        uint40 deadline = jobs.jobOf(job).deadline;
        bool last = _stateOfJob(job) == IJobs.State.Closing && block.timestamp < deadline && laneSeed >> 8 & 1 == 1;
        if (last) vm.warp(deadline - 1);
        bytes memory reason = _notRedeemed(job, lane, stage, replica);
        if (reason.length == 0) {
            Voucher memory other = abi.decode(abi.encode(voucher), (Voucher));
            other.epoch += 1 + uint32(epochs % 3);
            _redeems(other, abi.encodeWithSelector(IChannels.NotTheNextEpoch.selector, other.epoch));
            (other.epoch, other.before) = (epoch, paid + 1);
            _redeems(other, abi.encodeWithSelector(IChannels.NotPaidBefore.selector, other.before));
        }
        _redeems(voucher, reason);
        if (reason.length > 0) return;
        tokensOf[job][lane] = voucher.tokens;
        redeemedAtOf[job][lane] = block.timestamp;
        _earned(job, stage, replica, voucher.tokens - paid);
        ++redemptions;
        _redeems(voucher, abi.encodeWithSelector(IChannels.NotTheNextEpoch.selector, epoch));
        if (epochs / 3 % 2 == 0) _audit(receipt, epochs >> 8);
        if (!last) return;
        vm.warp(deadline);
        settle(job - 1);
    }

    /// @dev Why a lane redeems nothing any more, if it does not.
    function _notRedeemed(uint64 job, uint256 lane, uint16 stage, uint16 replica) private returns (bytes memory) {
        IJobs.Job memory record = jobs.jobOf(job);
        if (record.state == IJobs.State.Closing && block.timestamp >= record.deadline) {
            ++lateRedemptions;
            return abi.encodeWithSelector(IChannels.RedemptionOver.selector, record.deadline);
        }
        if (convictedOn[job][lane]) return abi.encodeWithSelector(IJobPayments.LaneConvicted.selector, stage, replica);
        return "";
    }

    function _redeems(Voucher memory voucher, bytes memory reason) private {
        bytes memory signature = _sign(userKey, _voucherDigest(voucher));
        address who = jobs.workerOf(voucher.job, voucher.stage, voucher.replica);
        if (reason.length > 0) vm.expectRevert(reason);
        vm.prank(who);
        channels.redeem(voucher, signature);
    }

    /// @dev The worker signs about a text that its states are not those of a receipt. A lane may be convicted twice.
    function convictReceipt(uint256 seed, uint256 laneSeed, uint256 chance) external {
        uint64 job = _servingJob(seed);
        if (job == 0 || chance % 8 != 0) return;
        (, uint16 stage, uint16 replica) = _lane(job, laneSeed);
        if (jobs.workerOf(job, stage, replica) == honest()) return;
        Claim memory receipt;
        (receipt.job, receipt.stage, receipt.replica, receipt.interval) = (job, stage, replica, uint32(chance >> 8));
        _convictOver(receipt, 0, 1 + uint32(seed % LONGEST));
        ++receiptConvictions;
    }
}
