// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Test} from "forge-std/Test.sol";

import {IAudits} from "../../../../contracts/interfaces/IAudits.sol";
import {ICheckpoints} from "../../../../contracts/interfaces/ICheckpoints.sol";
import {Records} from "../../../../contracts/libraries/claims/Records.sol";
import {Claim, ClaimLink} from "../../../../contracts/types/Types.sol";
import {ProtocolTest} from "../../protocol/ProtocolTest.sol";
import {Signatures} from "../../protocol/Signatures.sol";

/// @dev P-37: places of records, against a list of all that were ever made.
contract RecordPlacesTest is Test {
    using Records for mapping(uint256 place => bytes32 record);

    mapping(uint256 place => bytes32 record) private records;
    uint32 private ring;
    uint32 private made;
    uint32 private finalized;

    /// @dev Makes and finalises by turns: what is not final is found, and where fewer than a ring wait no other
    /// is begun.
    function testFuzz_everyRecordIsFoundUntilItIsFinal(uint8[24] calldata claims, uint8[24] calldata finals) public {
        uint32 most = 0;
        for (uint256 i = 0; i < claims.length; ++i) {
            for (uint32 end = made + claims[i] % 100; made < end; ++made) {
                assertEq(records.find(ring, made), 0);
                ring = records.put(ring, finalized, made, _record(made));
            }
            if (made - finalized > most) most = made - finalized;
            _checkAll();
            finalized += uint32(finals[i]) % (made - finalized + 1);
            _checkAll();
        }
        assertLe(ring, most <= 16 ? 0 : most <= 64 ? 1 : most <= 256 ? 2 : most <= 1024 ? 3 : 4);
    }

    function _checkAll() private view {
        uint32 least = 0;
        for (uint32 interval = finalized; interval < made; ++interval) {
            assertEq(records.find(ring, interval), _record(interval));
            // No record is in an earlier ring than the one before it.
            bytes32 there;
            (there, least) = records.findFrom(ring, least, interval);
            assertEq(there, _record(interval));
        }
        assertEq(records.find(ring, made), 0);
        // What is final is found as it was, or not at all.
        for (uint32 interval = 0; interval < finalized; ++interval) {
            bytes32 there = records.find(ring, interval);
            assertTrue(there == 0 || there == _record(interval));
        }
    }

    /// @dev The last ring has a place for each interval.
    function test_put_endsWhateverIsInTheWay() public {
        for (uint256 i = 0; i < 14; ++i) {
            ring = records.put(ring, 0, type(uint32).max >> uint32(2 * i), _record(type(uint32).max >> uint32(2 * i)));
        }
        assertLe(ring, 14);
        ring = records.put(14, 0, type(uint32).max - 1, _record(type(uint32).max - 1));
        assertEq(ring, 14);
    }

    function _record(uint32 interval) private pure returns (bytes32) {
        return bytes32(uint256(interval) << 224 | uint256(keccak256(abi.encode(interval))) >> 32);
    }
}

/// @dev P-37: where a claim has neighbours.
contract RecordsBesideTest is ProtocolTest {
    uint32 private constant RING = 16;

    /// @dev P-28: what a stage sent can be told from what it claims until its neighbour's claim is final, too.
    function testFuzz_aNeighboursClaimKeepsItsPlace(uint256 done, bool first) public {
        uint64 pair = _run(2, 1, 2 * RING);
        (uint16 stage, uint16 beside) = first ? (0, 1) : (1, 0);
        uint32 final_ = uint32(bound(done, 0, RING));
        uint64 when = uint64(block.timestamp);
        for (uint32 interval = 0; interval < RING; ++interval) {
            _commit(pair, stage, 0, interval, when);
            _commit(pair, beside, 0, interval, when);
        }
        skip(WINDOW);
        _finalize(pair, stage, 0, 0, RING, when);
        if (final_ > 0) _finalize(pair, beside, 0, 0, final_, when);
        uint64 then = uint64(block.timestamp);
        for (uint32 interval = RING; interval < 2 * RING; ++interval) {
            _commit(pair, stage, 0, interval, interval == RING ? when : then);
        }
        for (uint32 interval = 0; interval < RING; ++interval) {
            assertEq(checkpoints.isRecorded(_claim(pair, stage, 0, interval), when), interval >= final_);
        }
    }
}

/// @dev P-37: what a claim can be used for before and after another takes its place.
contract RecordsTest is ProtocolTest {
    uint32 private constant RING = 16;
    uint32 private constant INTERVALS = 100;

    uint64 private job;

    function setUp() public override {
        super.setUp();
        job = _run(1, 1, INTERVALS);
    }

    function test_commit_takesAFinalClaimsPlace() public {
        uint64 when = _commitUntil(0, RING);
        Claim memory first = _claim(job, 0, 0, 0);
        skip(WINDOW);
        _finalize(job, 0, 0, 0, 1, when);
        assertTrue(checkpoints.isRecorded(first, when), "nobody has taken its place");
        _commit(job, 0, 0, RING, when);
        assertFalse(checkpoints.isRecorded(first, when));
        assertEq(checkpoints.recordOf(job, 0, 0, 0), 0);

        _refuseCommit(first, 0, abi.encodeWithSelector(ICheckpoints.AlreadyCommitted.selector, 0));
        _refuseCommit(
            _claim(job, 0, 0, RING), when, abi.encodeWithSelector(ICheckpoints.AlreadyCommitted.selector, RING)
        );
        vm.expectRevert(ICheckpoints.UnknownClaim.selector);
        checkpoints.requireLive(first, when);
        vm.expectRevert(abi.encodeWithSelector(IAudits.WrongState.selector, IAudits.State.None));
        audits.penalise(first, stranger);
    }

    /// @dev However many wait: all can be challenged, and are paid in the end.
    function testFuzz_claimsThatWaitKeepTheirPlaces(uint256 count, uint256 done) public {
        uint32 waiting = uint32(bound(count, 1, INTERVALS));
        uint64 when = _commitUntil(0, waiting);
        skip(WINDOW);
        uint32 paid = uint32(bound(done, 0, waiting));
        if (paid > 0) _finalize(job, 0, 0, 0, paid, when);
        uint64 then = uint64(block.timestamp);
        for (uint32 interval = waiting; interval < INTERVALS; ++interval) {
            _commit(job, 0, 0, interval, interval == waiting ? when : then);
        }

        for (uint32 interval = paid; interval < INTERVALS; ++interval) {
            Claim memory claim = _claim(job, 0, 0, interval);
            assertEq(checkpoints.requireLive(claim, interval < waiting ? when : then), checkpoints.claimId(claim));
        }
        skip(WINDOW);
        if (waiting > paid) _finalize(job, 0, 0, paid, waiting, when);
        if (INTERVALS > waiting) _finalize(job, 0, 0, waiting, INTERVALS, then);
        assertEq(checkpoints.laneOf(job, 0, 0).finalized, INTERVALS);
        assertFalse(checkpoints.hasPending(job, 0, 0));
        jobs.settle(job);
        assertEq(jobs.creditOf(workers[0].addr, address(sno)), INTERVALS * PRICE);
    }

    /// @dev A claim in another's place is no link to that one's successor.
    function test_commit_continuesWhatIsOnRecord() public {
        uint64 when = _commitUntil(0, RING);
        skip(WINDOW);
        _finalize(job, 0, 0, 0, RING, when);
        uint64 then = uint64(block.timestamp);
        _refuseCommit(
            _claim(job, 0, 0, RING + 1), when, abi.encodeWithSelector(ICheckpoints.NotTheNextClaim.selector, RING + 1)
        );
        _commit(job, 0, 0, RING, when);
        _refuseCommit(_claim(job, 0, 0, RING + 1), when, abi.encodeWithSelector(ICheckpoints.WrongParentState.selector));
        (Claim memory next,) = _commit(job, 0, 0, RING + 1, then);
        assertEq(checkpoints.recordOf(job, 0, 0, RING + 1), Signatures.record(next, then));
    }

    /// @dev Time of claims `[from, to)`.
    function _commitUntil(uint32 from, uint32 to) private returns (uint64 when) {
        when = uint64(block.timestamp);
        for (uint32 interval = from; interval < to; ++interval) {
            _commit(job, 0, 0, interval, when);
        }
    }

    function _refuseCommit(Claim memory claim, uint64 parentAt, bytes memory reason) private {
        ClaimLink memory link;
        if (claim.interval > 0) link = _link(_claim(job, 0, 0, claim.interval - 1), parentAt);
        vm.expectRevert(reason);
        vm.prank(workers[0].addr);
        checkpoints.commit(claim, link);
    }
}
