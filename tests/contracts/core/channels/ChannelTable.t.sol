// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IChannels} from "../../../../contracts/interfaces/IChannels.sol";
import {IJobs} from "../../../../contracts/interfaces/IJobs.sol";
import {IJobPayments} from "../../../../contracts/interfaces/jobs/IJobPayments.sol";
import {Voucher} from "../../../../contracts/types/Types.sol";
import {ProtocolTest} from "../../protocol/ProtocolTest.sol";

/// @dev The table of `IChannels`, its row and everything that it has not: from anywhere that a lane can stand, every
/// voucher by everybody.
contract ChannelTableTest is ProtocolTest {
    uint16 private constant STAGE = 1;
    uint32 private constant TOKENS = 40;

    enum Epoch {
        Last,
        Next,
        AfterNext
    }

    /// @dev Where a voucher's epoch begins, or ends, beside what was paid.
    enum Tokens {
        Fewer,
        Same,
        More,
        TooMany
    }

    uint64 private job;
    bool private serving;
    bool private isConvicted;
    /// @dev When a closing job's time to redeem is over.
    uint256 private over;
    /// @dev Where the lane stands.
    uint32 private epoch;
    uint32 private paid;

    /// forge-config: default.fuzz.runs = 160
    function testFuzz_everyMoveFromEverywhere(uint256 seed) public {
        job = 1;
        // Fuzzers like small numbers, which leave high bits zero.
        _goSomewhere(uint256(keccak256(abi.encode(seed))));
        for (uint8 next = 0; next <= uint8(Epoch.AfterNext); ++next) {
            for (uint8 begins = 0; begins <= uint8(Tokens.More); ++begins) {
                for (uint8 ends = 0; ends <= uint8(Tokens.TooMany); ++ends) {
                    Voucher memory voucher = _voucher(job, STAGE, 0, epoch + next, _tokens(Tokens(ends)));
                    voucher.before = _tokens(Tokens(begins));
                    _everybodyRedeems(voucher);
                }
            }
        }
    }

    function _everybodyRedeems(Voucher memory voucher) private {
        address[4] memory anybody = [workers[STAGE].addr, workers[0].addr, user, stranger];
        for (uint256 i = 0; i <= anybody.length; ++i) {
            uint256 snapshot = vm.snapshotState();
            // The worker once with what the user has not signed.
            bool signed = i < anybody.length;
            _move(voucher, signed, anybody[signed ? i : 0]);
            vm.revertToState(snapshot);
        }
    }

    // Where a lane can stand

    function _goSomewhere(uint256 seed) private {
        // More often where something can be redeemed.
        uint256 place = seed % 12;
        IJobs.State state = IJobs.State(place < 6 ? place : place < 8 ? 3 : 4);
        serving = (seed >> 8) % 8 != 0;
        if (state == IJobs.State.None) return;
        job = _post(serving ? _servingTerms(address(sno), 2, 1, TOKENS) : _terms(address(sno), 2, 1, TOKENS));
        if (state >= IJobs.State.Accepted) _accept(job);
        if (state >= IJobs.State.Running) {
            _start(job);
            _redeemSome(seed >> 16);
        }
        if (state >= IJobs.State.Closing) _close(seed >> 64);
        if (state == IJobs.State.Settled) {
            skip(2 * WINDOW);
            jobs.settle(job);
        }
        assertEq(uint8(jobs.stateOf(job)), uint8(state));
        _goToSomeTime(state, seed >> 128);
    }

    /// @dev Up to three epochs, some of them for nothing, and now and then all that there is.
    function _redeemSome(uint256 noise) private {
        if (!serving || isConvicted) return;
        for (uint256 count = noise % 4; count > 0; --count) {
            noise = uint256(keccak256(abi.encode(noise)));
            (epoch, paid) = (epoch + 1, paid + uint32(noise % (TOKENS - paid + 1)));
            _redeem(_voucher(job, STAGE, 0, epoch, paid));
            skip(noise % WINDOW / 8);
        }
    }

    /// @dev By the user, or because a lane was convicted: this one or another.
    function _close(uint256 noise) private {
        isConvicted = noise % 4 == 0;
        vm.prank(noise % 4 < 2 ? address(disputes) : user);
        if (noise % 4 < 2) jobs.convict(job, isConvicted ? STAGE : 0, 0);
        else jobs.cancel(job);
        over = block.timestamp + WINDOW;
        _redeemSome(noise >> 8);
    }

    /// @dev Up to a limit, to the second, and beyond it. While a job runs its deadline is none.
    function _goToSomeTime(IJobs.State state, uint256 noise) private {
        uint256 limit = state == IJobs.State.Running ? jobs.jobOf(job).deadline : over;
        uint256 time = noise % 5;
        if (time == 0 || block.timestamp >= limit) return;
        vm.warp(time == 1 ? block.timestamp + (noise >> 8) % (limit - block.timestamp) : limit + time - 3);
    }

    // Moves

    /// @dev Never below nothing: then it is the same.
    function _tokens(Tokens what) private view returns (uint32) {
        if (what == Tokens.Fewer) return paid == 0 ? 0 : paid - 1;
        if (what == Tokens.Same) return paid;
        return what == Tokens.TooMany ? TOKENS + 1 : paid + (TOKENS - paid + 1) / 2;
    }

    function _move(Voucher memory voucher, bool signed, address who) private {
        bytes32 before = _seen(voucher);
        (uint256 credit, uint256 escrow) = (_credit(), jobs.jobOf(job).escrow);
        bytes4 refusal = _refusal(voucher, signed, who);
        bytes memory signature = _sign(signed ? userKey : workers[STAGE].key, _voucherDigest(voucher));
        vm.prank(who);
        (bool done, bytes memory reason) =
            address(channels).call(abi.encodeCall(IChannels.redeem, (voucher, signature)));
        assertEq(bytes4(reason), refusal);
        assertEq(done, refusal == 0);
        uint256 amount = done ? uint256(voucher.tokens - paid) * PRICE : 0;
        assertEq(_credit() - credit, amount);
        assertEq(escrow - jobs.jobOf(job).escrow, amount);
        if (!done) {
            assertEq(_seen(voucher), before);
            return;
        }
        IChannels.Redeemed memory lane = channels.redeemedOf(job, STAGE, 0);
        assertEq(lane.epoch, epoch + 1);
        assertEq(lane.tokens, voucher.tokens);
        assertEq(lane.redeemedAt, block.timestamp);
        bytes32 record = keccak256(abi.encode(voucher.receipts, uint64(block.timestamp)));
        assertEq(channels.epochOf(job, STAGE, 0, epoch + 1), record);
    }

    function _credit() private view returns (uint256) {
        return jobs.creditOf(workers[STAGE].addr, address(sno));
    }

    /// @dev All that a voucher could change of its lane.
    function _seen(Voucher memory voucher) private view returns (bytes32) {
        bytes32 record = channels.epochOf(job, STAGE, 0, voucher.epoch);
        return keccak256(abi.encode(channels.redeemedOf(job, STAGE, 0), record, jobs.jobOf(job)));
    }

    /// @dev Why the table does not have this move; zero if it has.
    function _refusal(Voucher memory voucher, bool signed, address who) private view returns (bytes4) {
        IJobs.State state = jobs.stateOf(job);
        bool closing = state == IJobs.State.Closing;
        if (!serving || (state != IJobs.State.Running && !closing)) return IChannels.JobNotOpen.selector;
        if (closing && block.timestamp >= over) return IChannels.RedemptionOver.selector;
        if (who != workers[STAGE].addr) return IChannels.NotWorker.selector;
        if (!signed) return IChannels.BadSignature.selector;
        if (voucher.epoch != epoch + 1) return IChannels.NotTheNextEpoch.selector;
        if (voucher.before != paid) return IChannels.NotPaidBefore.selector;
        if (voucher.tokens < paid || voucher.tokens > TOKENS) return IChannels.TokensOutOfRange.selector;
        return isConvicted ? IJobPayments.LaneConvicted.selector : bytes4(0);
    }
}
