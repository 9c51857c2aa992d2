// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {ICustody} from "../../../../contracts/interfaces/ICustody.sol";
import {Delivery, Demand, DemandKind, Holder} from "../../../../contracts/types/Custody.sol";
import {TensorType} from "../../../../contracts/types/Types.sol";
import {CustodyTest} from "../../protocol/CustodyTest.sol";
import {SlowTree} from "../../verifier/SlowTree.sol";

/// @dev `deliver`: whoever has the data can show it, and nobody else can.
contract CustodyDeliveriesTest is CustodyTest {
    using SlowTree for bytes32[][];

    bytes private constant WRONG = abi.encodePacked(ICustody.WrongDelivery.selector);

    // What is shown

    /// @dev Whatever part is demanded of whatever list, by whomever it is held: it can be shown, begins within the
    /// tensor, and ends with it at the latest.
    /// forge-config: default.fuzz.runs = 128
    function testFuzz_anyPart(uint8 kind, uint32 tensor, uint32 firstLeaf, uint32 leaves) public {
        kind %= 4;
        uint32 tensors = kind == 3 ? 2 : 3;
        (tensor, leaves) = (tensor % tensors, uint32(bound(leaves, 1, 64)));
        (uint256 id, Demand memory demand, bytes32 list) = _demandAny(kind, tensor, firstLeaf, leaves);

        uint256 first = firstLeaf % _leavesOf(tensor);
        uint256 last = first;
        while (last + 1 < _leavesOf(tensor) && last + 1 - first < leaves) {
            ++last;
        }
        Delivery memory shown = _shown(list, tensors, tensor, first, last + 1 - first);
        vm.expectEmit(address(custody));
        emit ICustody.Delivered(id, uint32(first), shown.range.leaves);
        _deliver(id, demand, shown);
        _assertDelivered(id, demand);
    }

    function _demandAny(uint8 kind, uint32 tensor, uint32 firstLeaf, uint32 leaves)
        private
        returns (uint256 id, Demand memory demand, bytes32 list)
    {
        if (kind < 2) {
            Holder memory holder = kind == 0 ? _own() : _keeper();
            (id, demand) = _demandState(holder, _part(tensor, firstLeaf, leaves));
            return (id, demand, _state(STAGE, 1));
        }
        (id, demand) = _demandFiles(STAGE, kind == 3, _part(tensor, firstLeaf, leaves));
        list = kind == 3 ? _constants(STAGE) : _state(STAGE, 0);
    }

    /// @dev The bond is the holder's, to the wei, and the claim waits for nothing any more.
    function _assertDelivered(uint256 id, Demand memory demand) private {
        assertEq(custody.demandOf(id), 0);
        assertEq(sno.balanceOf(demand.holder), BOND);
        assertEq(sno.balanceOf(auditor), 1000 ether - BOND);
        assertEq(sno.balanceOf(address(custody)), 0);
        skip(2 * WINDOW);
        _finalizeBy(claim, committedAt, _nobody());
        assertEq(_staked(demand.holder).bonded, STAKE);
    }

    /// @dev The part's numbers, written down.
    function test_modulo() public {
        // Of 67 leaves; of one; of five.
        _shownAs(2, 0, 64, 0, 64);
        _shownAs(2, 3, 64, 3, 64);
        _shownAs(2, 4, 64, 4, 63);
        _shownAs(2, 66, 64, 66, 1);
        _shownAs(2, 67, 64, 0, 64);
        _shownAs(2, type(uint32).max, 3, 32, 3);
        _shownAs(0, type(uint32).max, 64, 0, 1);
        _shownAs(1, 9, 2, 4, 1);
    }

    function _shownAs(uint32 tensor, uint32 firstLeaf, uint32 leaves, uint256 first, uint256 count) private {
        (uint256 id, Demand memory demand) = _demandState(_own(), _part(tensor, firstLeaf, leaves));
        _deliver(id, demand, _shown(_state(STAGE, 1), 3, tensor, first, count));
        assertEq(custody.demandOf(id), 0);
    }

    // When and by whom

    /// @dev However late, as long as nobody has let it expire.
    function testFuzz_late(uint256 time, bool own) public {
        (uint256 id, Demand memory demand) = own ? _demandOwn() : _demandKept();
        skip(time % 1000 days);
        vm.roll(block.number + time % 10_000);
        _deliver(id, demand, _shownOwn());
        _assertDelivered(id, demand);
    }

    /// @dev Also about what is void by then: who has it shows it.
    function test_ofAVoidClaim() public {
        (uint256 id, Demand memory demand) = _demandOwn();
        _refute(claim, committedAt);
        _deliver(id, demand, _shownOwn());
        assertEq(sno.balanceOf(workers[STAGE].addr), BOND);
        assertEq(sno.balanceOf(address(custody)), 0);
    }

    function test_onlyTheHolder() public {
        (uint256 id, Demand memory demand) = _demandKept();
        Delivery memory shown = _shownOwn();
        address[4] memory others = [stranger, auditor, workers[STAGE].addr, user];
        for (uint256 i = 0; i < others.length; ++i) {
            vm.expectRevert(abi.encodeWithSelector(ICustody.NotHolder.selector, others[i]));
            vm.prank(others[i]);
            custody.deliver(id, demand, shown);
        }
        _deliver(id, demand, shown);
    }

    function test_once() public {
        (uint256 id, Demand memory demand) = _demandOwn();
        (uint256 other, Demand memory otherDemand) = _demandOwn();
        _deliver(id, demand, _shownOwn());
        _unknown(id, demand);
        _default(other, otherDemand);
        _unknown(other, otherDemand);
    }

    /// @dev A demand is what it was when it was made: no field of it can be made up, nor one sent as another.
    function testFuzz_forged(uint256 field, uint256 value) public {
        (uint256 id, Demand memory demand) = _demandOwn();
        bytes32 right = keccak256(abi.encode(demand));
        Demand memory d = demand;
        field %= 17;
        if (field == 0) d.claimId = bytes32(value);
        if (field == 1) d.job = uint64(value);
        if (field == 2) d.stage = uint16(value);
        if (field == 3) d.replica = uint16(value);
        if (field == 4) d.interval = uint32(value);
        if (field == 5) d.holderStage = uint16(value);
        if (field == 6) d.holderReplica = uint16(value);
        if (field == 7) d.holder = address(uint160(value));
        if (field == 8) d.demander = address(uint160(value));
        if (field == 9) d.list = bytes32(value);
        if (field == 10) d.tensors = uint32(value);
        if (field == 11) d.part.tensor = uint32(value);
        if (field == 12) d.part.firstLeaf = uint32(value);
        if (field == 13) d.part.leaves = uint32(value);
        if (field == 14) d.deadline = uint40(value);
        if (field == 15) d.untilBlock = uint40(value);
        if (field == 16) d.kind = DemandKind(value % 5);
        vm.assume(keccak256(abi.encode(d)) != right);
        _unknown(id, d);
    }

    function testFuzz_noSuchDemand(uint256 id) public {
        (uint256 right, Demand memory demand) = _demandOwn();
        (, Demand memory other) = _demandKept();
        vm.assume(id != right);
        _unknown(id, demand);
        _unknown(right, other);
        Demand memory none;
        _unknown(99, none);
    }

    function _unknown(uint256 id, Demand memory demand) private {
        Delivery memory shown = _shownOwn();
        bytes memory unknown = abi.encodeWithSelector(ICustody.UnknownDemand.selector, id);
        vm.expectRevert(unknown);
        vm.prank(demand.holder);
        custody.deliver(id, demand, shown);
        vm.expectRevert(unknown);
        custody.expire(id, demand);
    }

    // What is not what was demanded

    /// @dev The tensor that is asked for, under the type that it has in the list.
    function test_wrongTypes() public {
        (uint256 id, Demand memory demand) = _demandOwn();
        Delivery memory shown = _shownOwn();
        // Of as many leaves; of fewer; of none; of a form that nothing has.
        uint256[5] memory types = [
            TensorType.unwrap(_typeOf(1)) | (1 << 232),
            (8 << 248) | (1 << 224) | (4 * 256 << 96),
            8 << 248 | 1 << 224,
            TensorType.unwrap(_typeOf(1)) | 1,
            0
        ];
        for (uint256 i = 0; i < types.length; ++i) {
            shown.tensorType = TensorType.wrap(types[i]);
            _wrong(id, demand, shown);
        }
        _deliver(id, demand, _shownOwn());
    }

    /// @dev Another tensor of the list, or the same one of another list.
    function test_otherTensors() public {
        (uint256 id, Demand memory demand) = _demandOwn();
        _wrong(id, demand, _shown(_state(STAGE, 1), 3, 0, 0, 1));
        _wrong(id, demand, _shown(_state(STAGE, 1), 3, 2, 3, 1));
        _wrong(id, demand, _shown(_state(STAGE, 0), 3, 1, 3, 1));
        _wrong(id, demand, _shown(_state(KEEPER, 1), 3, 1, 3, 1));
        _wrong(id, demand, _shown(_constants(STAGE), 2, 1, 3, 1));
        Delivery memory none;
        _wrong(id, demand, none);
        _deliver(id, demand, _shownOwn());
    }

    function testFuzz_wrongMembership(uint256 which, uint256 mask) public {
        vm.assume(mask != 0);
        (uint256 id, Demand memory demand) = _demandOwn();
        Delivery memory shown = _shownOwn();
        shown.membership[which % 2] ^= bytes32(mask);
        _wrong(id, demand, shown);
        shown = _shownOwn();
        shown.dataRoot ^= bytes32(mask);
        _wrong(id, demand, shown);
        shown = _shownOwn();
        shown.membership = _resized(shown.membership, which % 2 == 0 ? 1 : 3);
        _wrong(id, demand, shown);
    }

    /// @dev From four leaves of 67, each byte and each sibling counts.
    function testFuzz_wrongLeaf(uint256 which, uint8 mask, bool sibling) public {
        vm.assume(mask != 0);
        (uint256 id, Demand memory demand) = _demandState(_own(), _part(2, 30, 4));
        Delivery memory shown = _shown(_state(STAGE, 1), 3, 2, 30, 4);
        bytes32[] memory siblings = shown.range.siblings;
        if (sibling) siblings[which % siblings.length] ^= bytes32(uint256(mask) << which % 249);
        else shown.range.leaves[which % 1024] ^= bytes1(mask);
        _wrong(id, demand, shown);
    }

    function test_wrongSiblings() public {
        (uint256 id, Demand memory demand) = _demandState(_own(), _part(2, 30, 4));
        Delivery memory shown = _shown(_state(STAGE, 1), 3, 2, 30, 4);
        uint256 count = shown.range.siblings.length;
        shown.range.siblings = _resized(shown.range.siblings, count + 1);
        _wrong(id, demand, shown);
        shown.range.siblings = _resized(shown.range.siblings, count - 1);
        _wrong(id, demand, shown);
        shown.range.siblings = new bytes32[](0);
        _wrong(id, demand, shown);
    }

    /// @dev All that was demanded and nothing else, though it be in the tensor.
    function testFuzz_anotherRange(uint256 first, uint256 count) public {
        (uint256 id, Demand memory demand) = _demandState(_own(), _part(2, 30, 4));
        if (first % 2 == 0) first = 28 + first % 5;
        (first, count) = (first % 67, 1 + count % 8);
        if (first + count > 67) count = 67 - first;
        vm.assume(first != 30 || count != 4);
        Delivery memory shown = _shown(_state(STAGE, 1), 3, 2, first, count);
        _wrong(id, demand, shown);
        // Nor under the right place's name.
        shown.range.firstLeaf = 30;
        _wrong(id, demand, shown);
    }

    /// @dev At its end a tensor is cut; padding, which lies beyond, is no part of it, and a place is not named modulo
    /// its leaves.
    function test_paddingIsNoPart() public {
        (uint256 id, Demand memory demand) = _demandState(_own(), _part(1, 3, 64));
        Delivery memory shown = _shown(_state(STAGE, 1), 3, 1, 3, 2);
        Delivery memory padded = _shown(_state(STAGE, 1), 3, 1, 3, 2);
        padded.range.leaves = bytes.concat(shown.range.leaves, new bytes(256));
        _wrong(id, demand, padded);
        padded.range.leaves = bytes.concat(shown.range.leaves, new bytes(1));
        _wrong(id, demand, padded);
        padded.range.leaves = "";
        _wrong(id, demand, padded);
        padded = shown;
        padded.range.firstLeaf = 8;
        _wrong(id, demand, padded);
        shown.range.firstLeaf = 3;
        _deliver(id, demand, shown);
    }

    function _wrong(uint256 id, Demand memory demand, Delivery memory delivery) private {
        vm.expectRevert(WRONG);
        _deliver(id, demand, delivery);
    }

    function _resized(bytes32[] memory list, uint256 length) private pure returns (bytes32[] memory resized) {
        resized = new bytes32[](length);
        for (uint256 i = 0; i < length && i < list.length; ++i) {
            resized[i] = list[i];
        }
    }
}
