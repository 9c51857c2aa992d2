// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IAudits} from "../../../contracts/interfaces/IAudits.sol";
import {IStaking} from "../../../contracts/interfaces/IStaking.sol";
import {Demand} from "../../../contracts/types/Custody.sol";
import {Claim, JobKind, JobTerms, Offer, StepStatement} from "../../../contracts/types/Types.sol";
import {AuditTest} from "../protocol/AuditTest.sol";
import {CustodyTest} from "../protocol/CustodyTest.sol";
import {ProtocolTest} from "../protocol/ProtocolTest.sol";
import {SentTest} from "../protocol/SentTest.sol";

/// @title Gas of whole transactions
/// @notice Each call here is a transaction of its own (`isolate`), so the figures in `snapshots/protocol.json` hold the
/// base cost, the calldata and its floor (EIP-7623), and cold storage. Refunds are not taken off.
/// forge-config: default.isolate = true
contract GasTest is ProtocolTest {
    IStaking.Role private constant WORKER = IStaking.Role.Worker;

    function test_staking() public {
        address account = makeAddr("account");
        _fund(account, address(staking), 10 ether);
        vm.startPrank(account);
        staking.stake(WORKER, 10 ether);
        _snapshot("stake");
        staking.requestUnstake(WORKER, 5 ether);
        _snapshot("requestUnstake");
        skip(21 days);
        staking.withdraw(WORKER);
        _snapshot("withdraw");
    }

    function test_job() public {
        JobTerms memory terms = _terms(ETH, 4, 1, 3);
        uint256 deposit = _cover(terms) + 1;
        vm.prank(user);
        uint64 job = jobs.post{value: deposit}(terms, deposit);
        _snapshot("post, 4 stages");
        (Offer[] memory offers, bytes[] memory signatures) = _offers(job);
        vm.prank(user);
        jobs.accept(job, offers, signatures);
        _snapshot("accept, 4 offers");
        vm.prank(user);
        jobs.start(job);
        _snapshot("start, 4 lanes");

        uint64 when = uint64(block.timestamp);
        assertLe(_commitMeasured(job, 0), 61_000);
        assertLe(_commitMeasured(job, 1), 62_000);
        _commitMeasured(job, 2);
        for (uint16 lane = 1; lane < 4; ++lane) {
            _commitAll(job, lane, 0);
        }

        skip(WINDOW);
        _finalize(job, 0, 0, 0, 1, when);
        _snapshot("finalize, 1 claim");
        _finalize(job, 0, 0, 1, 3, when);
        _snapshot("finalize, 2 claims");
        for (uint16 lane = 1; lane < 4; ++lane) {
            _finalize(job, lane, 0, 0, 3, when);
        }
        jobs.settle(job);
        _snapshot("settle, 4 lanes");
        vm.prank(workers[0].addr);
        jobs.collect(ETH);
        _snapshot("collect, ETH");
    }

    function _commitMeasured(uint64 job, uint32 interval) private returns (uint256) {
        _commit(job, 0, 0, interval, uint64(block.timestamp));
        return vm.snapshotGasLastCall("protocol", interval == 0 ? "commit, first of a lane" : "commit");
    }

    /// @dev Where a final claim's record was; and behind 64 claims that wait, so that places are in the second ring. Of
    /// a stage between two others, whose claims have to be final, too.
    function test_commit_inAPlace() public {
        uint64 job = _run(_terms(ETH, 3, 1, 100));
        uint64 when = uint64(block.timestamp);
        _commitThree(job, 0, 16, when);
        skip(WINDOW);
        _finalizeThree(job, 0, 16, when);
        _commitThree(job, 16, 17, when);
        assertLe(vm.snapshotGasLastCall("protocol", "commit, in a final one's place"), 50_000);
        when = uint64(block.timestamp);
        _commitThree(job, 17, 81, when);
        skip(WINDOW);
        _finalizeThree(job, 16, 81, when);
        uint64 then = uint64(block.timestamp);
        _commitThree(job, 81, 82, when);
        _commitThree(job, 82, 97, then);
        assertLe(vm.snapshotGasLastCall("protocol", "commit, in a final one's place, second ring"), 50_000);
    }

    /// @dev Claims `[from, to)` of three stages, the middle one last.
    function _commitThree(uint64 job, uint32 from, uint32 to, uint64 parentAt) private {
        for (uint32 interval = from; interval < to; ++interval) {
            _commit(job, 0, 0, interval, parentAt);
            _commit(job, 2, 0, interval, parentAt);
            _commit(job, 1, 0, interval, parentAt);
        }
    }

    function _finalizeThree(uint64 job, uint32 from, uint32 to, uint64 when) private {
        for (uint16 stage = 0; stage < 3; ++stage) {
            _finalize(job, stage, 0, from, to, when);
        }
    }

    function test_replicas() public {
        uint64 job = _run(_terms(ETH, 1, 2, 3));
        uint64 when = uint64(block.timestamp);
        _commit(job, 0, 0, 0, 0);
        _commit(job, 0, 1, 0, 0);
        (Claim memory first, Claim memory second) = (_claim(job, 0, 0, 1), _claim(job, 0, 1, 1));
        _seal(first);
        _snapshot("seal, first of a round");
        _seal(second);
        _snapshot("seal");
        _reveal(first, _link(_claim(job, 0, 0, 0), when));
        _snapshot("reveal, first of a round");
        _reveal(second, _link(_claim(job, 0, 1, 0), when));
        _snapshot("reveal");
        skip(WINDOW);
        _finalize(job, 0, 0, 0, 2, when);
        _snapshot("finalize, 2 claims of a replica");
    }

    function test_serving() public {
        uint64 job = _run(_servingTerms(ETH, 2, 2, 50));
        _snapshot("start, 4 lanes, serving");
        _redeem(_voucher(job, 0, 0, 1, 10));
        _snapshot("redeem, first of a lane");
        _redeem(_voucher(job, 0, 0, 2, 20));
        _snapshot("redeem");
        vm.prank(user);
        jobs.cancel(job);
        _snapshot("cancel, serving");
        skip(WINDOW);
        jobs.settle(job);
        _snapshot("settle, 4 lanes, serving");
    }

    function test_challenge() public {
        uint64 job = _run(1, 1, 1);
        (Claim memory claim, uint64 when) = _commit(job, 0, 0, 0, 0);
        vm.deal(auditor, 1 ether);
        vm.prank(auditor);
        challenges.open{value: 0.5 ether}(claim, when, _plain(2));
        _snapshot("open challenge");
        vm.prank(auditor);
        challenges.fund{value: 0.5 ether}(1);
        _snapshot("fund challenge");
        _addValidator();
        skip(1 days);
        vm.roll(block.number + 100);
        challenges.timeout(1);
        _snapshot("timeout challenge, silence");
        vm.prank(auditor);
        challenges.collect();
        _snapshot("collect from challenges");
    }

    /// @dev P-18: a job as large as they come fits in transactions of 2^24 gas (EIP-7825), from post to settlement.
    function test_largestJobFits() public {
        for (uint256 i = workers.length; i < 128; ++i) {
            workers.push(makeAccount(string.concat("worker ", vm.toString(i))));
            _stake(workers[i].addr, WORKER, STAKE);
        }
        uint64 job = _post(_terms(address(sno), 64, 2, 1));
        assertLt(_snapshot("post, 64 stages"), 1 << 24);
        _accept(job);
        assertLt(_snapshot("accept, 128 offers"), 1 << 24);
        _start(job);
        assertLt(_snapshot("start, 128 lanes"), 1 << 24);
        uint64 when = uint64(block.timestamp);
        for (uint16 lane = 0; lane < 128; ++lane) {
            _commit(job, lane % 64, lane / 64, 0, 0);
        }
        skip(WINDOW);
        for (uint16 lane = 0; lane < 128; ++lane) {
            _finalize(job, lane % 64, lane / 64, 0, 1, when);
        }
        jobs.settle(job);
        assertLt(_snapshot("settle, 128 lanes"), 1 << 24);
    }

    function _snapshot(string memory name) private returns (uint256) {
        return vm.snapshotGasLastCall("protocol", name);
    }
}

/// @title Gas of audits
/// @notice As above; headers are whole ones, of more than 600 bytes.
/// forge-config: default.isolate = true
contract AuditGasTest is AuditTest {
    function test_claim() public {
        _fix(JobKind.Training);
        (bytes memory before, bytes memory header, uint64 period) = _headersOf();
        beacon.record(period, before, header);
        vm.snapshotGasLastCall("protocol", "beacon, record");
        _commitAnswer(first, _wrong());
        vm.snapshotGasLastCall("protocol", "audit, commit");
        _commitAnswer(second, _right());
        _to(1);
        _revealAnswer(first, _wrong());
        vm.snapshotGasLastCall("protocol", "audit, reveal");
        StepStatement memory statement = _said(_right());
        _confirm(second, statement, _byWorker(statement), SALT);
        vm.snapshotGasLastCall("protocol", "audit, revealConfirmed");
        _accuse(first, _right());
        vm.snapshotGasLastCall("protocol", "audit, accuse");
        _stand();
        audits.penalise(audited.claim, first);
        vm.snapshotGasLastCall("protocol", "audit, penalise");
        assertEq(uint8(audits.stateOf(id, first)), uint8(IAudits.State.Penalised));
    }

    /// @dev One of a thousand receipts of an epoch.
    function test_receipt() public {
        _fix(JobKind.Serving);
        bytes32[] memory ids = new bytes32[](1000);
        for (uint32 i = 0; i < 1000; ++i) {
            ids[i] = keccak256(abi.encode(i));
        }
        ids[777] = id;
        skip(1);
        audited = _redeemList(2, _receiptOf(0), ids, 777);
        _toSeed();
        _commitAnswer(first, _right());
        vm.snapshotGasLastCall("protocol", "audit, commit, receipt of 1,000");
        _to(1);
        _revealAnswer(first, _right());
        vm.snapshotGasLastCall("protocol", "audit, revealConfirmed, receipt of 1,000");
        assertEq(uint8(audits.stateOf(id, first)), uint8(IAudits.State.Revealed));
    }

    /// @dev Headers of the period that draws, which begins now.
    function _headersOf() private returns (bytes memory before, bytes memory header, uint64 period) {
        period = beacon.periodAfter(audited.fixedAt);
        vm.warp(uint256(period) * PERIOD + 1);
        (before, header) = _blocks(uint256(period) * PERIOD, SEED);
        assertGt(header.length, 600);
    }
}

/// @title Gas of custody
/// @notice As above; parts of a tensor of 67 leaves, the third of a list of three.
/// forge-config: default.isolate = true
contract CustodyGasTest is CustodyTest {
    function test_demanded() public {
        uint256 snapshot = vm.snapshotState();
        _demandOwn();
        _snapshot("custody, demandState, of its worker");
        vm.revertToState(snapshot);
        _demandKept();
        _snapshot("custody, demandState, of who signed for it");
        vm.revertToState(snapshot);
        _demandFiles(STAGE, true, _part(1, 0, 1));
        _snapshot("custody, demandFiles");
    }

    function test_delivered() public {
        (uint256 id, Demand memory demand) = _demandState(_own(), _part(2, 0, 1));
        _deliver(id, demand, _shown(_state(STAGE, 1), 3, 2, 0, 1));
        _snapshot("custody, deliver, 1 leaf");
        (id, demand) = _demandState(_own(), _part(2, 1, 64));
        _deliver(id, demand, _shown(_state(STAGE, 1), 3, 2, 1, 64));
        assertLt(_snapshot("custody, deliver, 64 leaves"), 1 << 24);
    }

    function test_expired() public {
        _addValidator();
        (uint256 first, Demand memory firstDemand) = _demandOwn();
        (uint256 second, Demand memory secondDemand) = _demandKept();
        (uint256 third, Demand memory thirdDemand) = _demandOwn();
        _default(second, secondDemand);
        _snapshot("custody, expire, who signed for it is convicted");
        _default(first, firstDemand);
        _snapshot("custody, expire, the claim's worker is convicted");
        _default(third, thirdDemand);
        _snapshot("custody, expire, nothing is owed");
    }

    /// @dev `finalize, 1 claim` is by the user's attestation.
    function test_finalized() public {
        skip(WINDOW);
        uint256 snapshot = vm.snapshotState();
        _finalizeBy(claim, committedAt, _keeper());
        _snapshot("finalize, 1 claim, by a worker's attestation");
        vm.revertToState(snapshot);
        skip(WINDOW);
        _finalizeBy(claim, committedAt, _nobody());
        _snapshot("finalize, 1 claim, by nobody's attestation");
    }

    function _snapshot(string memory name) private returns (uint256) {
        return vm.snapshotGasLastCall("protocol", name);
    }
}

/// @title Gas of demands for what was sent
/// @notice As above; of a log of twelve entries, a tensor of 67 leaves.
/// forge-config: default.isolate = true
contract SentGasTest is SentTest {
    function test_sent() public {
        (uint256 id, Demand memory demand) = _demandSent(true, _part(2, 0, 1));
        vm.snapshotGasLastCall("protocol", "custody, demandSent");
        _deliverSent(id, demand, _shownSent(true, 2, 0, 1));
        vm.snapshotGasLastCall("protocol", "custody, deliverSent, 1 leaf");
        (id, demand) = _demandSent(true, _part(2, 1, 64));
        _deliverSent(id, demand, _shownSent(true, 2, 1, 64));
        assertLt(vm.snapshotGasLastCall("protocol", "custody, deliverSent, 64 leaves"), 1 << 24);
    }
}
