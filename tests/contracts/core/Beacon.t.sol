// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IBeacon} from "../../../contracts/interfaces/IBeacon.sol";
import {BeaconTest} from "../protocol/BeaconTest.sol";
import {Header, Headers} from "../protocol/Headers.sol";

/// @dev Headers are whole ones, made the chain's by `vm.setBlockhash`. Hashes older than 256 blocks are in the history
/// contract of EIP-2935, whose code stands here as the EIP gives it, and is fed as the chain does it.
contract BeaconRecordTest is BeaconTest {
    using Headers for Header;

    address private constant HISTORY = 0x0000F90827F1C53a10cb7A02335B175320002935;
    address private constant SYSTEM = 0xffffFFFfFFffffffffffffffFfFFFfffFFFfFFfE;
    bytes private constant HISTORY_CODE = hex"3373fffffffffffffffffffffffffffffffffffffffe14604657602036036042575f35"
        hex"600143038111604257611fff81430311604257611fff9006545f5260205ff35b5f5ffd5b5f35611fff60014303065500";
    bytes32 private constant SEED = keccak256("seed");

    uint64 private period;
    uint256 private begins;

    function setUp() public override {
        super.setUp();
        vm.roll(20_000);
        period = uint64(block.timestamp / PERIOD) + 3;
        begins = uint256(period) * PERIOD;
        vm.warp(begins + 1 hours);
    }

    /// @dev Whoever sends it.
    function testFuzz_recordsThePrevrandao(address sender, bytes32 seed) public {
        vm.assume(seed != 0);
        (bytes memory before, bytes memory header) = _blocks(begins, seed);
        assertGt(header.length, 600, "a whole header");
        assertEq(beacon.seedOf(period), 0);
        vm.expectEmit(address(beacon));
        emit IBeacon.SeedRecorded(period, seed);
        vm.prank(sender);
        beacon.record(period, before, header);
        assertEq(beacon.seedOf(period), seed);
        assertEq(beacon.seedOf(period + 1), 0);
        assertEq(beacon.seedOf(period - 1), 0);
    }

    /// @dev Also not by another header that would do: there is none, but for a reorganised chain.
    function test_recordsOnce() public {
        (bytes memory before, bytes memory header) = _blocks(begins, SEED);
        beacon.record(period, before, header);
        _refused(before, header, abi.encodeWithSelector(IBeacon.AlreadyRecorded.selector, period));
        (before, header) = _blocks(begins, keccak256("another"));
        _refused(before, header, abi.encodeWithSelector(IBeacon.AlreadyRecorded.selector, period));
        assertEq(beacon.seedOf(period), SEED);
    }

    /// @dev Of a chain of any times, for any period: the one block that is the first, and no other.
    /// forge-config: default.fuzz.runs = 64
    function testFuzz_onlyTheFirstOfItsPeriod(uint16[8] memory gaps) public {
        bytes[9] memory headers;
        uint256[9] memory times;
        uint256 time = begins;
        bytes32 parent = keccak256("parent");
        for (uint256 i = 0; i < 9; ++i) {
            // Blocks at a period's very first second, and the one before it, are as likely as any.
            if (i > 0) time += gaps[i - 1] % 4 == 0 ? PERIOD - time % PERIOD : 1 + gaps[i - 1] % (3 * PERIOD);
            headers[i] = Header(parent, block.number - 9 + i, time, keccak256(abi.encode(i))).encode();
            times[i] = time;
            parent = keccak256(headers[i]);
            vm.setBlockhash(block.number - 9 + i, parent);
        }
        for (uint64 p = period; p <= time / PERIOD + 1; ++p) {
            bytes32 seed = 0;
            for (uint256 i = 1; i < 9; ++i) {
                bool first = times[i - 1] < uint256(p) * PERIOD && times[i] >= uint256(p) * PERIOD;
                if (first) seed = keccak256(abi.encode(i));
                else vm.expectRevert(abi.encodeWithSelector(_otherwise(seed), p));
                beacon.record(p, headers[i - 1], headers[i]);
            }
            assertEq(beacon.seedOf(p), seed);
        }
    }

    function _otherwise(bytes32 seed) private pure returns (bytes4) {
        return seed == 0 ? IBeacon.NotTheFirst.selector : IBeacon.AlreadyRecorded.selector;
    }

    /// @dev After an outage of the chain the first block is the first of every period that had none.
    function test_oneBlockServesEveryPeriodWithoutOne() public {
        (bytes memory before, bytes memory header) = _blocks(begins - 1, begins + 2 * PERIOD, SEED);
        for (uint64 p = period; p <= period + 2; ++p) {
            beacon.record(p, before, header);
            assertEq(beacon.seedOf(p), SEED);
        }
        for (uint64 i = 0; i < 2; ++i) {
            uint64 p = i == 0 ? period - 1 : period + 3;
            vm.expectRevert(abi.encodeWithSelector(IBeacon.NotTheFirst.selector, p));
            beacon.record(p, before, header);
        }
    }

    /// @dev Period 0 begins before any block, and the last of all never will.
    function test_periodsThatNoBlockBegins() public {
        (bytes memory before, bytes memory header) = _blocks(begins, SEED);
        vm.expectRevert(abi.encodeWithSelector(IBeacon.NotTheFirst.selector, 0));
        beacon.record(0, before, header);
        vm.expectRevert(abi.encodeWithSelector(IBeacon.NotTheFirst.selector, type(uint64).max));
        beacon.record(type(uint64).max, before, header);
    }

    function test_refusesBlocksOfAnotherChain() public {
        (bytes memory before, bytes memory header) = _blocks(begins, SEED);
        bytes memory unknown = abi.encodeWithSelector(IBeacon.UnknownBlock.selector);
        Header memory h = Header(keccak256(before), block.number - 1, begins, ~SEED);
        _refused(before, h.encode(), unknown);
        // The same header, said to be of another block; of this one and of blocks to come nobody knows the hash.
        h.prevRandao = SEED;
        uint256[4] memory numbers = [block.number - 2, block.number, block.number + 1, type(uint256).max];
        for (uint256 i = 0; i < 4; ++i) {
            h.number = numbers[i];
            _refused(before, h.encode(), unknown);
        }
        h.number = block.number - 1;
        assertEq(h.encode(), header);
        beacon.record(period, before, header);
    }

    /// @dev Who could name another block before could have any block for the first.
    function test_refusesAnotherBlockBefore() public {
        (bytes memory before, bytes memory header) = _blocks(begins + 1, begins + 2, SEED);
        bytes memory refusal = abi.encodeWithSelector(IBeacon.NotTheFirst.selector, period);
        _refused(before, header, refusal);
        _refused(
            Header(keccak256("parent"), block.number - 2, begins - 1, keccak256("before")).encode(), header, refusal
        );
        _refused(Header(0, block.number - 3, begins - 1, 0).encode(), header, refusal);
        _refused(header, header, refusal);
        _refused("", header, refusal);
    }

    /// @dev Nothing is drawn on a chain without randomness.
    function test_refusesAZeroSeed() public {
        (bytes memory before, bytes memory header) = _blocks(begins, 0);
        _refused(before, header, abi.encodeWithSelector(IBeacon.NoSeed.selector));
        assertEq(beacon.seedOf(period), 0);
    }

    /// @dev Headers grow with every fork: what counts are the first fourteen fields.
    function test_headersOfOtherForks() public {
        for (uint256 count = 0; count <= 30; ++count) {
            uint256 state = vm.snapshotState();
            bytes memory before = Header(0, block.number - 2, begins - 1, 0).encode(count < 12 ? 12 : count);
            bytes memory header = Header(keccak256(before), block.number - 1, begins, SEED).encode(count);
            vm.setBlockhash(block.number - 1, keccak256(header));
            if (count < 14) vm.expectRevert();
            beacon.record(period, before, header);
            assertEq(beacon.seedOf(period), count < 14 ? bytes32(0) : SEED);
            vm.revertToState(state);
        }
    }

    /// @dev Of the block before its time is needed.
    function test_refusesABlockBeforeWithoutATime() public {
        bytes memory before = Header(0, block.number - 2, begins - 1, 0).encode(11);
        bytes memory header = Header(keccak256(before), block.number - 1, begins, SEED).encode();
        vm.setBlockhash(block.number - 1, keccak256(header));
        vm.expectRevert();
        beacon.record(period, before, header);
    }

    function testFuzz_garbageReverts(bytes memory before, bytes memory header) public {
        vm.expectRevert();
        beacon.record(period, before, header);
    }

    /// @dev One byte changed, cut off or added, of either.
    function testFuzz_damageReverts(uint256 position, uint8 flip, uint8 kind) public {
        (bytes memory before, bytes memory header) = _blocks(begins, SEED);
        bytes memory damaged = kind % 2 == 0 ? before : header;
        position %= damaged.length;
        if (kind / 2 % 3 == 0) damaged[position] ^= bytes1(flip == 0 ? 1 : flip);
        if (kind / 2 % 3 == 1) damaged = bytes.concat(damaged, bytes1(flip));
        if (kind / 2 % 3 == 2) {
            assembly ("memory-safe") {
                mstore(damaged, position)
            }
        }
        vm.expectRevert();
        beacon.record(period, kind % 2 == 0 ? damaged : before, kind % 2 == 0 ? header : damaged);
        assertEq(beacon.seedOf(period), 0);
    }

    /// @dev EIP-2935: 8,191 blocks, about 27 hours.
    function test_blocksOfTheHistory() public {
        vm.etch(HISTORY, HISTORY_CODE);
        (bytes memory before, bytes memory header) = _blocks(begins, SEED);
        uint256 number = block.number - 1;
        vm.roll(number + 1);
        vm.prank(SYSTEM);
        (bool done,) = HISTORY.call(abi.encode(keccak256(header)));
        assertTrue(done);
        uint256 state = vm.snapshotState();
        for (uint256 i = 0; i < 4; ++i) {
            uint256 age = i == 0 ? 256 : i == 1 ? 257 : i == 2 ? 8191 : 8192;
            vm.roll(number + age);
            if (age == 8192) vm.expectRevert(IBeacon.UnknownBlock.selector);
            beacon.record(period, before, header);
            assertEq(beacon.seedOf(period), age == 8192 ? bytes32(0) : SEED);
            vm.revertToState(state);
        }
    }

    /// @dev A chain without the history contract: so long as the chain's own memory reaches.
    function test_blocksWithoutTheHistory() public {
        vm.etch(HISTORY, "");
        (bytes memory before, bytes memory header) = _blocks(begins, SEED);
        uint256 number = block.number - 1;
        vm.roll(number + 257);
        _refused(before, header, abi.encodeWithSelector(IBeacon.UnknownBlock.selector));
        vm.roll(number + 256);
        beacon.record(period, before, header);
        assertEq(beacon.seedOf(period), SEED);
    }

    /// @dev The second that begins after it: more than a period lies between, and at most two.
    function testFuzz_periodAfter(uint256 time) public view {
        time = bound(time, 0, uint256(type(uint64).max - 2) * PERIOD);
        uint256 start = uint256(beacon.periodAfter(time)) * PERIOD;
        assertGt(start, time + PERIOD, "nobody knows the seed when it is fixed");
        assertLe(start, time + 2 * PERIOD);
        assertEq(start % PERIOD, 0);
    }

    function _refused(bytes memory before, bytes memory header, bytes memory reason) private {
        vm.expectRevert(reason);
        beacon.record(period, before, header);
    }
}
