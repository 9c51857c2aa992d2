// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {ICustody} from "../../../../contracts/interfaces/ICustody.sol";
import {Delivery, Demand, DemandKind} from "../../../../contracts/types/Custody.sol";
import {BoundaryLogs, EdgeLog} from "../../../../contracts/types/Types.sol";
import {SentTest} from "../../protocol/SentTest.sol";

/// @dev `deliverSent`: who sent it, or could have, shows it with its attestation of the log, and nothing else passes
/// for that.
contract CustodySentDeliveriesTest is SentTest {
    // What is shown

    /// @dev Whatever part of whatever entry in whichever direction: it can be shown, and the bond is the holder's.
    /// forge-config: default.fuzz.runs = 64
    function testFuzz_anyPart(bool toNext, uint32 tensor, uint32 firstLeaf, uint32 leaves) public {
        (tensor, leaves) = (tensor % ENTRIES, uint32(bound(leaves, 1, 64)));
        (uint256 id, Demand memory demand) = _demandSent(toNext, _part(tensor, firstLeaf, leaves));
        uint256 first = firstLeaf % _leavesOf(tensor);
        uint256 count = _leavesOf(tensor) - first;
        if (count > leaves) count = leaves;

        Delivery memory shown = _shownSent(toNext, tensor, first, count);
        vm.expectEmit(address(custody));
        emit ICustody.WordGiven(id, _edgeLog(toNext).root, _attestation(toNext));
        vm.expectEmit(address(custody));
        emit ICustody.Delivered(id, uint32(first), shown.range.leaves);
        _deliverSent(id, demand, shown);
        assertEq(custody.demandOf(id), 0);
        assertEq(sno.balanceOf(demand.holder), BOND);
        assertEq(sno.balanceOf(address(custody)), 0);
        skip(2 * WINDOW);
        _finalizeBy(claim, committedAt, _nobody());
        assertEq(_staked(demand.holder).bonded, STAKE);
    }

    /// @dev However late, as long as nobody has let it expire; also about what is void by then.
    function testFuzz_late(uint256 time, bool void) public {
        (uint256 id, Demand memory demand) = _demandSent(true, _part(4, 0, 5));
        if (void) _refute(claim, committedAt);
        skip(time % 1000 days);
        vm.roll(block.number + time % 10_000);
        _deliverSent(id, demand, _shownSent(true, 4, 0, 5));
        assertEq(sno.balanceOf(demand.holder), BOND);
    }

    function test_onlyTheHolder() public {
        (uint256 id, Demand memory demand) = _demandSent(true, _part(0, 0, 1));
        (Delivery memory shown, BoundaryLogs memory logs, bytes memory attestation) =
            (_shownSent(true, 0, 0, 1), _logs(STAGE, 0), _attestation(true));
        address[4] memory others = [stranger, auditor, workers[KEEPER].addr, user];
        for (uint256 i = 0; i < others.length; ++i) {
            vm.expectRevert(abi.encodeWithSelector(ICustody.NotHolder.selector, others[i]));
            vm.prank(others[i]);
            custody.deliverSent(id, demand, shown, logs, attestation);
        }
        _deliverSent(id, demand, shown);
    }

    function test_once() public {
        (uint256 id, Demand memory demand) = _demandSent(true, _part(0, 0, 1));
        _deliverSent(id, demand, _shownSent(true, 0, 0, 1));
        _unknown(id, demand);
        (id, demand) = _demandSent(true, _part(0, 0, 1));
        _default(id, demand);
        _unknown(id, demand);
    }

    /// @dev No field of a demand can be made up: neither its direction nor where it counts to.
    function testFuzz_forged(uint256 field, uint256 value) public {
        (uint256 id, Demand memory demand) = _demandSent(true, _part(7, 2, 3));
        bytes32 right = keccak256(abi.encode(demand));
        field %= 5;
        if (field == 0) demand.kind = DemandKind(value % 5);
        if (field == 1) demand.list = bytes32(value);
        if (field == 2) demand.tensors = uint32(value);
        if (field == 3) demand.part.tensor = uint32(value);
        if (field == 4) demand.interval = uint32(value);
        vm.assume(keccak256(abi.encode(demand)) != right);
        _unknown(id, demand);
    }

    function _unknown(uint256 id, Demand memory demand) private {
        (Delivery memory shown, BoundaryLogs memory logs, bytes memory attestation) =
            (_shownSent(true, 0, 0, 1), _logs(STAGE, 0), _attestation(true));
        vm.expectRevert(abi.encodeWithSelector(ICustody.UnknownDemand.selector, id));
        _deliverWith(id, demand, shown, logs, attestation);
    }

    // What is not what was demanded

    /// @dev Each kind of demand has its own way to be met: a log's root alone is no claim's, and a list's no log's.
    function test_byTheOtherFunction() public {
        (uint256 sent, Demand memory sentDemand) = _demandSent(true, _part(1, 3, 1));
        (uint256 state, Demand memory stateDemand) = _demandOwn();
        Delivery memory shown = _shownSent(true, 1, 3, 1);
        vm.expectRevert(ICustody.WrongDelivery.selector);
        _deliver(sent, sentDemand, shown);
        _wrong(state, stateDemand, _shownOwn(), _logs(STAGE, 0), _attestation(true));
        _deliverSent(sent, sentDemand, shown);
    }

    /// @dev The logs are the four that the claim commits to, each of them.
    function testFuzz_otherLogs(uint256 which, uint256 mask) public {
        vm.assume(mask != 0);
        (uint256 id, Demand memory demand) = _demandSent(true, _part(1, 3, 1));
        BoundaryLogs memory logs = _logs(STAGE, 0);
        which %= 5;
        if (which == 0) logs.fromPrevious ^= bytes32(mask);
        if (which == 1) logs.toPrevious ^= bytes32(mask);
        if (which == 2) logs.fromNext ^= bytes32(mask);
        if (which == 3) logs.toNext ^= bytes32(mask);
        if (which == 4) (logs.toPrevious, logs.toNext) = (logs.toNext, logs.toPrevious);
        _wrong(id, demand, _shownSent(true, 1, 3, 1), logs, _attestation(true));
        BoundaryLogs memory none;
        _wrong(id, demand, _shownSent(true, 1, 3, 1), none, _attestation(true));
        _wrong(id, demand, _shownSent(true, 1, 3, 1), _logs(KEEPER, 0), _attestation(true));
        _wrong(id, demand, _shownSent(true, 1, 3, 1), _logs(STAGE, 1), _attestation(true));
    }

    /// @dev The attestation is the worker's, about just this job, replica, pair of stages, interval and root.
    function testFuzz_otherWords(uint256 flaw, uint256 value, bool toNext) public {
        (uint256 id, Demand memory demand) = _demandSent(toNext, _part(1, 3, 1));
        EdgeLog memory log = _edgeLog(toNext);
        bytes32 right = _edgeLogDigest(log);
        flaw %= 8;
        if (flaw == 0) log.job = uint64(value);
        if (flaw == 1) log.replica = uint16(value);
        if (flaw == 2) log.fromStage = uint16(value);
        if (flaw == 3) log.toStage = uint16(value);
        if (flaw == 4) log.interval = uint32(value);
        if (flaw == 5) log.root = bytes32(value);
        if (flaw == 6) log = _edgeLog(!toNext);
        uint256 key = flaw == 7 ? boundPrivateKey(value) : workers[STAGE].key;
        vm.assume(_edgeLogDigest(log) != right || key != workers[STAGE].key);
        bytes memory attestation = _sign(key, _edgeLogDigest(log));
        _wrong(id, demand, _shownSent(toNext, 1, 3, 1), _logs(STAGE, 0), attestation);
        _wrong(id, demand, _shownSent(toNext, 1, 3, 1), _logs(STAGE, 0), "");
        _wrong(id, demand, _shownSent(toNext, 1, 3, 1), _logs(STAGE, 0), new bytes(65));
        _deliverSent(id, demand, _shownSent(toNext, 1, 3, 1));
    }

    /// @dev Not another entry, of this log or of the other direction's, nor the same one of another interval or stage.
    function test_otherTensors() public {
        (uint256 id, Demand memory demand) = _demandSent(true, _part(1, 3, 1));
        _wrongTensor(id, demand, _shownSent(true, 4, 3, 1));
        _wrongTensor(id, demand, _shownSent(false, 1, 3, 1));
        _wrongTensor(id, demand, _shown(_sent(STAGE, 1, true), ENTRIES, 1, 3, 1));
        _wrongTensor(id, demand, _shown(_sent(KEEPER, 0, false), ENTRIES, 1, 3, 1));
        _wrongTensor(id, demand, _shownOwn());
        Delivery memory none;
        _wrongTensor(id, demand, none);
        // Under the right place's name.
        Delivery memory other = _shownSent(true, 4, 3, 1);
        other.membership = _shownSent(true, 1, 3, 1).membership;
        _wrongTensor(id, demand, other);
        _deliverSent(id, demand, _shownSent(true, 1, 3, 1));
    }

    /// @dev Of every node and byte that is shown each counts.
    function testFuzz_wrongProofs(uint256 which, uint256 mask, uint8 kind) public {
        vm.assume(mask & 0xff != 0);
        (uint256 id, Demand memory demand) = _demandSent(true, _part(5, 30, 4));
        Delivery memory shown = _shownSent(true, 5, 30, 4);
        kind %= 5;
        if (kind == 0) shown.membership[which % shown.membership.length] ^= bytes32(mask);
        if (kind == 1) shown.dataRoot ^= bytes32(mask);
        if (kind == 2) shown.range.siblings[which % shown.range.siblings.length] ^= bytes32(mask);
        if (kind == 3) shown.range.leaves[which % 1024] ^= bytes1(uint8(mask));
        if (kind == 4) shown.range.firstLeaf = uint32(which % 67 == 30 ? 31 : which % 67);
        _wrongTensor(id, demand, shown);
    }

    /// @dev A log's nodes are no entries of it: lists are as long as the program says.
    function test_nodesAreNoEntries() public {
        (uint256 id, Demand memory demand) = _demandSent(true, _part(0, 0, 1));
        Delivery memory shown = _shownSent(true, 0, 0, 1);
        bytes32[] memory path = shown.membership;
        shown.membership = new bytes32[](path.length - 1);
        for (uint256 i = 0; i < shown.membership.length; ++i) {
            shown.membership[i] = path[i + 1];
        }
        _wrongTensor(id, demand, shown);
        shown.membership = new bytes32[](path.length + 1);
        _wrongTensor(id, demand, shown);
    }

    function _wrongTensor(uint256 id, Demand memory demand, Delivery memory shown) private {
        _wrong(id, demand, shown, _logs(STAGE, 0), _attestation(demand.kind == DemandKind.SentToNext));
    }

    function _wrong(
        uint256 id,
        Demand memory demand,
        Delivery memory shown,
        BoundaryLogs memory logs,
        bytes memory attestation
    ) private {
        vm.expectRevert(ICustody.WrongDelivery.selector);
        _deliverWith(id, demand, shown, logs, attestation);
    }
}
