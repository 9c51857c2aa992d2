// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IChannels} from "../../../../contracts/interfaces/IChannels.sol";
import {IJobs} from "../../../../contracts/interfaces/IJobs.sol";
import {IStaking} from "../../../../contracts/interfaces/IStaking.sol";
import {IJobPayments} from "../../../../contracts/interfaces/jobs/IJobPayments.sol";
import {Voucher} from "../../../../contracts/types/Types.sol";
import {ProtocolTest} from "../../protocol/ProtocolTest.sol";

/// @dev The code of a worker's account (EIP-7702): while it is being paid, it redeems again what it has redeemed, and
/// then more.
contract Reentrant {
    IChannels private immutable _CHANNELS;
    Voucher private _again;
    Voucher private _more;
    bytes private _againSignature;
    bytes private _moreSignature;
    bytes public refusal;

    constructor(IChannels channels) {
        _CHANNELS = channels;
    }

    function prepare(Voucher calldata again, bytes calldata againSignature, Voucher calldata more, bytes calldata rest)
        external
    {
        (_again, _againSignature, _more, _moreSignature) = (again, againSignature, more, rest);
    }

    receive() external payable {
        try _CHANNELS.redeem(_again, _againSignature) {}
        catch (bytes memory reason) {
            refusal = reason;
        }
        _CHANNELS.redeem(_more, _moreSignature);
    }
}

/// @dev `redeem`: a lane is paid what its user signed for, once (P-19). Whose word that takes:
/// `VoucherSignatures.t.sol`.
contract ChannelsTest is ProtocolTest {
    uint32 private constant TOKENS = 100;

    uint64 private job;

    function setUp() public override {
        super.setUp();
        job = _run(_servingTerms(address(sno), 2, 2, TOKENS));
    }

    function test_redeem_paysAndRecords() public {
        Voucher memory voucher = _voucher(job, 1, 0, 1, 7);
        vm.expectEmit(address(channels));
        emit IChannels.VoucherRedeemed(job, 1, 0, 1, 7, voucher.receipts, uint64(block.timestamp));
        vm.expectEmit(address(jobs));
        emit IJobPayments.Paid(job, workers[1].addr, 1, 0, 7, 7 * PRICE);
        _redeem(voucher);

        assertEq(jobs.creditOf(workers[1].addr, address(sno)), 7 * PRICE);
        assertEq(jobs.jobOf(job).escrow, (4 * TOKENS - 7) * PRICE);
        _redeemed(1, 0, 1, 7);
        assertEq(channels.epochOf(job, 1, 0, 1), _record(voucher.receipts));
        assertEq(channels.epochOf(job, 1, 0, 2), 0);
        vm.prank(workers[1].addr);
        assertEq(jobs.collect(address(sno)), 7 * PRICE);
    }

    /// @dev Of an epoch redeemed now.
    function _record(bytes32 receipts) private view returns (bytes32) {
        return keccak256(abi.encode(receipts, uint64(block.timestamp)));
    }

    /// @dev A voucher owes all tokens since the job began; what was paid is not paid again. An epoch whose texts came
    /// to nothing is on chain, too.
    function test_redeem_isCumulative() public {
        uint32[4] memory tokens = [uint32(10), 11, 11, TOKENS];
        for (uint32 i = 0; i < 4; ++i) {
            _redeem(_voucher(job, 0, 0, i + 1, tokens[i]));
            assertEq(jobs.creditOf(workers[0].addr, address(sno)), tokens[i] * PRICE);
            _redeemed(0, 0, i + 1, tokens[i]);
        }
        for (uint32 epoch = 0; epoch < 7; ++epoch) {
            bool redeemed = epoch > 0 && epoch < 5;
            bytes32 receipts = _voucher(job, 0, 0, epoch, 0).receipts;
            assertEq(channels.epochOf(job, 0, 0, epoch), redeemed ? _record(receipts) : bytes32(0));
        }
    }

    /// @dev P-19: an epoch has one list of receipts, however many tokens a second voucher of it owes, and none is
    /// left out.
    function test_redeem_refusesAllButTheNextEpoch() public {
        for (uint32 next = 1; next < 4; ++next) {
            for (uint32 epoch = 0; epoch < 7; ++epoch) {
                if (epoch == next) continue;
                _refused(
                    _voucher(job, 0, 0, epoch, 11), abi.encodeWithSelector(IChannels.NotTheNextEpoch.selector, epoch)
                );
            }
            _redeem(_voucher(job, 0, 0, next, 10 + next));
        }
        Voucher memory last = _voucher(job, 0, 0, type(uint32).max, 50);
        _refused(last, abi.encodeWithSelector(IChannels.NotTheNextEpoch.selector, type(uint32).max));
    }

    /// @dev P-19: who redeems less for an epoch than the user has signed for it is not paid the rest by the next one's
    /// voucher, which lists nothing of it.
    function testFuzz_redeem_refusesOtherBeginnings(uint32 paid, uint32 before, uint32 tokens) public {
        paid = uint32(bound(paid, 0, TOKENS));
        tokens = uint32(bound(tokens, paid, TOKENS));
        vm.assume(before != paid);
        _redeem(_voucher(job, 0, 0, 1, paid));
        Voucher memory next = _voucher(job, 0, 0, 2, tokens);
        next.before = before;
        _refused(next, abi.encodeWithSelector(IChannels.NotPaidBefore.selector, before));
        next.before = paid;
        _redeem(next);
        _redeemed(0, 0, 2, tokens);
    }

    function test_redeem_refusesTokensOutOfRange() public {
        _refused(
            _voucher(job, 0, 0, 1, TOKENS + 1), abi.encodeWithSelector(IChannels.TokensOutOfRange.selector, TOKENS + 1)
        );
        _redeem(_voucher(job, 0, 0, 1, 10));
        for (uint32 tokens = 0; tokens < 10; tokens += 9) {
            bytes memory reason = abi.encodeWithSelector(IChannels.TokensOutOfRange.selector, tokens);
            _refused(_voucher(job, 0, 0, 2, tokens), reason);
        }
        _redeem(_voucher(job, 0, 0, 2, TOKENS));
        _refused(
            _voucher(job, 0, 0, 3, TOKENS + 1), abi.encodeWithSelector(IChannels.TokensOutOfRange.selector, TOKENS + 1)
        );
    }

    /// @dev What one lane redeems is nothing to the others.
    function test_redeem_lanesArePaidApart() public {
        for (uint32 lane = 0; lane < 4; ++lane) {
            _redeem(_voucher(job, uint16(lane % 2), uint16(lane / 2), 1, lane + 1));
        }
        for (uint32 lane = 0; lane < 4; ++lane) {
            assertEq(jobs.creditOf(workers[lane].addr, address(sno)), (lane + 1) * PRICE);
            _redeemed(uint16(lane % 2), uint16(lane / 2), 1, lane + 1);
        }
    }

    function test_redeem_servingJobsOnly() public {
        _stake(workers[0].addr, IStaking.Role.Worker, STAKE);
        uint64 training = _run(1, 1, 5);
        bytes memory reason = abi.encodeWithSelector(IChannels.JobNotOpen.selector, training);
        _refused(_voucher(training, 0, 0, 1, 1), reason);
        _refused(_voucher(77, 0, 0, 1, 1), abi.encodeWithSelector(IChannels.JobNotOpen.selector, 77));
    }

    function test_redeem_notBeforeTheStart() public {
        _stake(workers[0].addr, IStaking.Role.Worker, STAKE);
        uint64 other = _post(_servingTerms(address(sno), 1, 1, TOKENS));
        bytes memory reason = abi.encodeWithSelector(IChannels.JobNotOpen.selector, other);
        _refused(_voucher(other, 0, 0, 1, 1), reason);
        _accept(other);
        _refused(_voucher(other, 0, 0, 1, 1), reason);
        _start(other);
        _redeem(_voucher(other, 0, 0, 1, 1));
    }

    /// @dev A user that closes its job without a word pays for what it has signed all the same, if it is redeemed
    /// within a window: so that settlement waits for the audits of the last redemption for a bounded time (P-10, P-20).
    function test_redeem_forAWindowAfterTheJobIsClosed() public {
        vm.prank(user);
        jobs.cancel(job);
        uint40 deadline = jobs.jobOf(job).deadline;
        assertEq(deadline, block.timestamp + WINDOW);
        _redeem(_voucher(job, 0, 0, 1, 10));
        vm.warp(deadline - 1);
        _redeem(_voucher(job, 0, 0, 2, 20));
        for (uint256 i = 0; i < 2; ++i) {
            vm.warp(deadline + i * 30 days);
            _refused(_voucher(job, 0, 0, 3, 30), abi.encodeWithSelector(IChannels.RedemptionOver.selector, deadline));
        }
        jobs.settle(job);
        _refused(_voucher(job, 0, 0, 3, 30), abi.encodeWithSelector(IChannels.JobNotOpen.selector, job));
        assertEq(jobs.creditOf(workers[0].addr, address(sno)), 20 * PRICE);
        assertEq(jobs.creditOf(user, address(sno)), (4 * TOKENS - 20) * PRICE);
    }

    /// @dev While it runs its deadline is no bound on anything but on who closes it.
    function test_redeem_pastTheDeadlineOfAJobThatRuns() public {
        skip(400 days);
        _redeem(_voucher(job, 0, 0, 1, 10));
        _redeemed(0, 0, 1, 10);
    }

    /// @dev P-19: a convicted lane keeps what it has redeemed and redeems no more; the others go on.
    function test_redeem_notOfAConvictedLane() public {
        _redeem(_voucher(job, 0, 0, 1, 10));
        vm.prank(address(disputes));
        jobs.convict(job, 0, 0);
        _refused(_voucher(job, 0, 0, 2, 20), abi.encodeWithSelector(IJobPayments.LaneConvicted.selector, 0, 0));
        _redeemed(0, 0, 1, 10);
        assertEq(channels.epochOf(job, 0, 0, 2), 0);
        _redeem(_voucher(job, 1, 0, 1, 20));
        _redeem(_voucher(job, 0, 1, 1, TOKENS));
        assertEq(jobs.creditOf(workers[0].addr, address(sno)), 10 * PRICE);
    }

    /// @dev Being paid is the only moment in which a worker's code runs; what is redeemed then is paid once, like at
    /// any other.
    function test_redeem_whileBeingPaid() public {
        for (uint256 i = 0; i < 2; ++i) {
            _stake(workers[i].addr, IStaking.Role.Worker, STAKE);
        }
        job = _run(_servingTerms(ETH, 2, 1, TOKENS));
        address worker = workers[0].addr;
        Voucher memory first = _voucher(job, 0, 0, 1, 10);
        _redeem(first);
        Voucher memory second = _voucher(job, 0, 0, 2, 15);
        vm.etch(worker, address(new Reentrant(channels)).code);
        bytes memory again = _sign(userKey, _voucherDigest(first));
        Reentrant(payable(worker)).prepare(first, again, second, _sign(userKey, _voucherDigest(second)));

        vm.prank(worker);
        assertEq(jobs.collect(ETH), 10 * PRICE);
        assertEq(worker.balance, 10 * PRICE);
        assertEq(Reentrant(payable(worker)).refusal(), abi.encodeWithSelector(IChannels.NotTheNextEpoch.selector, 1));
        assertEq(jobs.creditOf(worker, ETH), 5 * PRICE);
        assertEq(address(jobs).balance, (2 * TOKENS - 10) * PRICE);
        _redeemed(0, 0, 2, 15);
    }

    // Against a model

    struct Lane {
        uint32 epoch;
        uint32 tokens;
    }

    mapping(uint256 lane => Lane state) private _model;
    mapping(uint256 lane => mapping(uint32 epoch => bytes32 record)) private _modelRecords;

    /// @dev Vouchers in any order, by any caller, signed by anyone, while the job runs, closes and ends.
    /// forge-config: default.fuzz.runs = 64
    function testFuzz_sequences(uint256 seed) public {
        bool settled = false;
        for (uint256 i = 0; i < 40; ++i) {
            uint256 noise = uint256(keccak256(abi.encode(seed, i)));
            uint256 end = noise % 64;
            if (end == 0 && _stateOfJob(job) == IJobs.State.Running) {
                vm.prank(user);
                jobs.cancel(job);
            } else if (end == 1 && _stateOfJob(job) == IJobs.State.Closing) {
                skip(2 * WINDOW);
                jobs.settle(job);
                settled = true;
            } else if (end == 2) {
                skip(WINDOW / 3);
            } else {
                _step(noise >> 8, settled);
            }
        }
        uint256 paid = 0;
        for (uint256 lane = 0; lane < 4; ++lane) {
            Lane memory state = _model[lane];
            (uint16 stage, uint16 replica) = (uint16(lane % 2), uint16(lane / 2));
            _redeemed(stage, replica, state.epoch, state.tokens);
            for (uint32 epoch = 0; epoch < 16; ++epoch) {
                assertEq(channels.epochOf(job, stage, replica, epoch), _modelRecords[lane][epoch]);
            }
            assertEq(jobs.creditOf(workers[lane].addr, address(sno)), state.tokens * PRICE);
            paid += state.tokens;
        }
        assertEq(jobs.jobOf(job).escrow, settled ? 0 : (4 * TOKENS - paid) * PRICE);
        assertEq(jobs.creditOf(user, address(sno)), settled ? (4 * TOKENS - paid) * PRICE : 0);
    }

    function _step(uint256 noise, bool settled) private {
        uint256 lane = noise % 4;
        Lane storage state = _model[lane];
        // Mostly a little ahead of what was redeemed, now and then anything.
        uint32 epoch = noise >> 8 & 7 == 0 ? uint32(noise >> 16) % 16 : state.epoch + 1;
        uint32 tokens = noise >> 40 & 7 == 0 ? uint32(noise >> 48) % 110 : state.tokens + uint32(noise >> 48) % 20;
        Voucher memory voucher = _voucher(job, uint16(lane % 2), uint16(lane / 2), epoch, tokens);
        if (noise >> 88 & 7 == 0) voucher.before = uint32(noise >> 96) % 110;
        voucher.receipts = keccak256(abi.encode(noise));
        address caller = noise >> 72 & 15 == 0 ? workers[(lane + 1) % 4].addr : workers[lane].addr;
        bool signed = noise >> 80 & 15 != 0;
        bytes memory signature = _sign(signed ? userKey : workers[lane].key, _voucherDigest(voucher));

        bytes memory reason;
        if (settled) {
            reason = abi.encodeWithSelector(IChannels.JobNotOpen.selector, job);
        } else if (_stateOfJob(job) == IJobs.State.Closing && block.timestamp >= jobs.jobOf(job).deadline) {
            reason = abi.encodeWithSelector(IChannels.RedemptionOver.selector, jobs.jobOf(job).deadline);
        } else if (caller != workers[lane].addr) {
            reason = abi.encodeWithSelector(IChannels.NotWorker.selector, caller);
        } else if (!signed) {
            reason = abi.encodeWithSelector(IChannels.BadSignature.selector);
        } else if (epoch != state.epoch + 1) {
            reason = abi.encodeWithSelector(IChannels.NotTheNextEpoch.selector, epoch);
        } else if (voucher.before != state.tokens) {
            reason = abi.encodeWithSelector(IChannels.NotPaidBefore.selector, voucher.before);
        } else if (tokens < state.tokens || tokens > TOKENS) {
            reason = abi.encodeWithSelector(IChannels.TokensOutOfRange.selector, tokens);
        }
        if (reason.length > 0) vm.expectRevert(reason);
        vm.prank(caller);
        channels.redeem(voucher, signature);
        if (reason.length > 0) return;
        (state.epoch, state.tokens) = (epoch, tokens);
        _modelRecords[lane][epoch] = _record(voucher.receipts);
    }

    function _redeemed(uint16 stage, uint16 replica, uint32 epoch, uint32 tokens) private view {
        IChannels.Redeemed memory state = channels.redeemedOf(job, stage, replica);
        assertEq(state.epoch, epoch);
        assertEq(state.tokens, tokens);
    }

    /// @dev As `_redeem`, but it is refused. A lane that nobody holds is asked for by worker 0.
    function _refused(Voucher memory voucher, bytes memory reason) private {
        bytes memory signature = _sign(userKey, _voucherDigest(voucher));
        address worker = jobs.workerOf(voucher.job, voucher.stage, voucher.replica);
        vm.expectRevert(reason);
        vm.prank(worker == address(0) ? workers[0].addr : worker);
        channels.redeem(voucher, signature);
    }
}
