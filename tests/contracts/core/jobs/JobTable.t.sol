// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IJobs} from "../../../../contracts/interfaces/IJobs.sol";
import {IJobOffers} from "../../../../contracts/interfaces/jobs/IJobOffers.sol";
import {IJobPayments} from "../../../../contracts/interfaces/jobs/IJobPayments.sol";
import {JobTerms, Offer} from "../../../../contracts/types/Types.sol";
import {ProtocolTest} from "../../protocol/ProtocolTest.sol";

/// @dev The table of `IJobs`, every row and everything that no row has: from anywhere that a job can stand, every move
/// by everybody.
contract JobTableTest is ProtocolTest {
    enum Move {
        Accept,
        Start,
        Cancel,
        Settle,
        Pay,
        PayAudit,
        Convict
    }

    /// @dev Claims of the job's only lane.
    enum Claims {
        None,
        Pending,
        Final
    }

    uint64 private job;
    bool private serving;
    Claims private claims;

    /// forge-config: default.fuzz.runs = 512
    function testFuzz_everyMoveFromEverywhere(uint256 seed) public {
        job = 1;
        // Fuzzers like small numbers, which leave high bits zero.
        _goSomewhere(uint256(keccak256(abi.encode(seed))));
        address[4] memory anybody = [user, workers[0].addr, workers[1].addr, stranger];
        for (uint8 move = 0; move <= uint8(Move.Convict); ++move) {
            for (uint256 i = 0; i < anybody.length; ++i) {
                uint256 snapshot = vm.snapshotState();
                _move(Move(move), anybody[i]);
                vm.revertToState(snapshot);
            }
        }
        _convict();
    }

    // Where a job can stand

    function _goSomewhere(uint256 seed) private {
        IJobs.State state = IJobs.State(seed % 6);
        serving = (seed >> 8) % 2 == 0;
        if (state == IJobs.State.None) return;
        JobTerms memory terms = serving ? _servingTerms(address(sno), 1, 1, 9) : _terms(address(sno), 1, 1, 1);
        job = _post(terms);
        if (state >= IJobs.State.Accepted) _accept(job);
        if (state >= IJobs.State.Running) _start(job);
        if (state >= IJobs.State.Running && !serving) _claimSomething(Claims((seed >> 16) % 3));
        if (state >= IJobs.State.Closing) _cancel();
        if (state == IJobs.State.Settled) {
            if (claims == Claims.Pending) _makeFinal();
            skip(WINDOW);
            jobs.settle(job);
        }
        assertEq(uint8(jobs.stateOf(job)), uint8(state));
        // Up to a limit, to the second, and beyond it.
        uint256 limit = state >= IJobs.State.Running ? jobs.jobOf(job).deadline : terms.acceptBy;
        uint256 time = (seed >> 24) % 4;
        if (time == 0 || block.timestamp > limit) return;
        vm.warp(time == 1 ? block.timestamp + (seed >> 32) % (limit - block.timestamp + 1) : limit + time - 2);
    }

    function _claimSomething(Claims what) private {
        claims = what;
        if (what == Claims.None) return;
        _commitAll(job, 0, 0);
        if (what == Claims.Final) _makeFinal();
    }

    function _makeFinal() private {
        uint64 when = uint64(block.timestamp);
        skip(WINDOW);
        _finalize(job, 0, 0, 0, 1, when);
    }

    function _cancel() private {
        vm.prank(user);
        jobs.cancel(job);
    }

    // Moves

    function _move(Move move, address who) private {
        IJobs.Job memory before = jobs.jobOf(job);
        uint256 credit = jobs.creditOf(user, address(sno));
        bytes4 refusal = _refusal(before, move, who);
        bytes memory call = _callOf(move);
        vm.prank(who);
        (bool done, bytes memory reason) = address(jobs).call(call);
        assertEq(bytes4(reason), refusal);
        assertEq(done, refusal == 0);
        IJobs.Job memory record = jobs.jobOf(job);
        if (!done) {
            assertEq(keccak256(abi.encode(record)), keccak256(abi.encode(before)));
            return;
        }
        IJobs.State next = _next(before.state, move);
        assertEq(uint8(record.state), uint8(next));
        // What is left of the escrow is the user's once the job is over, and the worker's stake free.
        bool over = next == IJobs.State.Settled;
        assertEq(jobs.creditOf(user, address(sno)) - credit, over ? before.escrow : 0);
        assertEq(record.escrow, over ? 0 : before.escrow);
        bool locked = next >= IJobs.State.Accepted && !over;
        assertEq(_staked(workers[0].addr).locked, locked ? STAKE : 0);
    }

    /// @dev As `Disputes` does when it has proof: a job that runs is over, another one stands where it stood.
    function _convict() private {
        IJobs.State state = jobs.stateOf(job);
        vm.prank(address(disputes));
        jobs.convict(job, 0, 0);
        assertEq(uint8(jobs.stateOf(job)), uint8(state == IJobs.State.Running ? IJobs.State.Closing : state));
    }

    function _next(IJobs.State state, Move move) private pure returns (IJobs.State) {
        if (move == Move.Accept) return IJobs.State.Accepted;
        if (move == Move.Start) return IJobs.State.Running;
        bool closes = move == Move.Cancel && state == IJobs.State.Running;
        return closes ? IJobs.State.Closing : IJobs.State.Settled;
    }

    /// @dev Why the table does not have this move; zero if it has.
    function _refusal(IJobs.Job memory j, Move move, address who) private view returns (bytes4) {
        if (move >= Move.Pay) return IJobs.Unauthorized.selector;
        if (move == Move.Settle) return _refusalToSettle(j);
        if (move == Move.Cancel) {
            if (j.state < IJobs.State.Posted || j.state > IJobs.State.Running) return IJobs.WrongState.selector;
            uint256 limit = j.state == IJobs.State.Running ? j.deadline : j.acceptBy;
            return who != user && block.timestamp <= limit ? IJobs.NotUser.selector : bytes4(0);
        }
        IJobs.State needed = move == Move.Accept ? IJobs.State.Posted : IJobs.State.Accepted;
        if (j.state != needed) return IJobs.WrongState.selector;
        if (who != user) return IJobs.NotUser.selector;
        return block.timestamp > j.acceptBy ? IJobs.AcceptPeriodOver.selector : bytes4(0);
    }

    function _refusalToSettle(IJobs.Job memory j) private view returns (bytes4) {
        bool running = j.state == IJobs.State.Running;
        if ((!running && j.state != IJobs.State.Closing) || (running && serving)) return IJobs.WrongState.selector;
        if (serving) return block.timestamp < j.deadline ? IJobs.WindowOpen.selector : bytes4(0);
        bool pending = running ? claims != Claims.Final : claims == Claims.Pending;
        return pending ? IJobs.ClaimsPending.selector : bytes4(0);
    }

    function _callOf(Move move) private view returns (bytes memory) {
        if (move == Move.Accept) {
            (Offer[] memory offers, bytes[] memory signatures) = _offers(job);
            return abi.encodeCall(IJobOffers.accept, (job, offers, signatures));
        }
        if (move == Move.Start) return abi.encodeCall(IJobs.start, (job));
        if (move == Move.Cancel) return abi.encodeCall(IJobs.cancel, (job));
        if (move == Move.Settle) return abi.encodeCall(IJobs.settle, (job));
        if (move == Move.Pay) return abi.encodeCall(IJobPayments.pay, (job, 0, 0, 1));
        if (move == Move.PayAudit) return abi.encodeCall(IJobPayments.payAudit, (job, 0, 0, 1, stranger));
        return abi.encodeCall(IJobs.convict, (job, 0, 0));
    }
}
