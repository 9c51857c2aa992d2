// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IDisputes} from "../../../contracts/interfaces/IDisputes.sol";
import {Delivery, Demand, DemandKind, Holder, Part} from "../../../contracts/types/Custody.sol";
import {Claim, ContradictionProof, ProgramHeader, StepStatement, TensorType} from "../../../contracts/types/Types.sol";
import {SlowTree} from "../verifier/SlowTree.sol";
import {ProtocolTest} from "./ProtocolTest.sol";

/// @title A claim whose state somebody has, and demands for it
/// @notice A job of three stages and three intervals; the claim is the middle stage's first. A state is a list of three
/// tensors, of `_leavesOf` leaves; the constants are the first two such tensors of another list. The auditor demands.
abstract contract CustodyTest is ProtocolTest {
    using SlowTree for bytes32[][];

    uint16 internal constant STAGE = 1;
    /// @dev Stage of the lane whose worker signs for the claim's state.
    uint16 internal constant KEEPER = 2;
    uint256 internal constant BOND = 100 ether;
    uint256 internal constant CLOCK = 12 hours;

    uint64 internal job;
    Claim internal claim;
    uint64 internal committedAt;

    function setUp() public virtual override {
        super.setUp();
        job = _run(3, 1, 3);
        (claim, committedAt) = _commit(job, STAGE, 0, 0, 0);
    }

    // Lists

    function _leavesOf(uint256 tensor) internal pure returns (uint256) {
        return tensor % 3 == 0 ? 1 : tensor % 3 == 1 ? 5 : 67;
    }

    /// @dev A vector of int8 that all but fills its last leaf.
    function _typeOf(uint256 tensor) internal pure returns (TensorType) {
        return TensorType.wrap((8 << 248) | (1 << 224) | ((256 * _leavesOf(tensor) - 32) << 96));
    }

    function _leaf(bytes32 list, uint256 tensor, uint256 i) internal pure returns (bytes memory) {
        bytes32 word = keccak256(abi.encode(list, tensor, i));
        bytes32 padding = i + 1 == _leavesOf(tensor) ? bytes32(0) : word;
        return abi.encode(word, ~word, word, ~word, word, ~word, word, padding);
    }

    function _tensorTree(bytes32 list, uint256 tensor) internal pure returns (bytes32[][] memory) {
        bytes[] memory leaves = new bytes[](_leavesOf(tensor));
        for (uint256 i = 0; i < leaves.length; ++i) {
            leaves[i] = _leaf(list, tensor, i);
        }
        return SlowTree.ofLeaves(leaves);
    }

    function _listTree(bytes32 list, uint256 tensors) internal pure returns (bytes32[][] memory) {
        bytes32[] memory roots = new bytes32[](tensors);
        for (uint256 i = 0; i < tensors; ++i) {
            bytes32 dataRoot = _tensorTree(list, i).rootOf();
            roots[i] = keccak256(abi.encodePacked(hex"02", TensorType.unwrap(_typeOf(i)), dataRoot));
        }
        return SlowTree.ofDigests(roots);
    }

    function _state(uint16 stage, uint32 interval) internal pure returns (bytes32) {
        return keccak256(abi.encode("a state", stage, interval));
    }

    function _constants(uint16 stage) internal pure returns (bytes32) {
        return keccak256(abi.encode("constants", stage));
    }

    function _stateAt(uint16 stage, uint32 interval) internal pure override returns (bytes32) {
        return _listTree(_state(stage, interval), 3).rootOf();
    }

    function _programAt(uint16 stage) internal pure virtual override returns (ProgramHeader memory program) {
        program = super._programAt(stage);
        (program.constantCount, program.stateCount) = (2, 3);
        program.constants = _listTree(_constants(stage), 2).rootOf();
    }

    // Holders

    /// @dev The claim's own worker, which needs no signature.
    function _own() internal pure returns (Holder memory) {
        return Holder({stage: STAGE, replica: 0, signature: ""});
    }

    function _keeper() internal view returns (Holder memory) {
        return _keeperOf(claim);
    }

    function _keeperOf(Claim memory about) internal view returns (Holder memory) {
        return Holder({stage: KEEPER, replica: 0, signature: _holding(workers[KEEPER].key, about)});
    }

    /// @dev Finalises one claim by a holder's attestation.
    function _finalizeBy(Claim memory about, uint64 when, Holder memory holder) internal {
        (Claim[] memory claims, uint64[] memory times) = (new Claim[](1), new uint64[](1));
        (claims[0], times[0]) = (about, when);
        checkpoints.finalize(claims, times, holder);
    }

    // Demands

    function _part(uint32 tensor, uint32 firstLeaf, uint32 leaves) internal pure returns (Part memory) {
        return Part({tensor: tensor, firstLeaf: firstLeaf, leaves: leaves});
    }

    function _demandState(Holder memory holder, Part memory part) internal returns (uint256 id, Demand memory demand) {
        return _demandStateOf(claim, committedAt, holder, part);
    }

    function _demandStateOf(Claim memory about, uint64 when, Holder memory holder, Part memory part)
        internal
        returns (uint256 id, Demand memory demand)
    {
        demand = _stateDemand(about, holder, part);
        ProgramHeader memory program = _programAt(about.stage);
        vm.prank(auditor);
        id = custody.demandState(about, when, program, holder, part);
    }

    /// @dev A demand for one leaf from the claim's own worker.
    function _demandOwn() internal returns (uint256 id, Demand memory demand) {
        return _demandState(_own(), _part(1, 3, 1));
    }

    /// @dev The same from the worker that signed for it.
    function _demandKept() internal returns (uint256 id, Demand memory demand) {
        return _demandState(_keeper(), _part(1, 3, 1));
    }

    function _demandFiles(uint16 stage, bool constants, Part memory part)
        internal
        returns (uint256 id, Demand memory demand)
    {
        demand = _filesDemand(stage, constants, part);
        ProgramHeader memory program = _programAt(stage);
        vm.prank(auditor);
        id = custody.demandFiles(job, stage, 0, program, constants, part);
    }

    function _stateDemand(Claim memory about, Holder memory holder, Part memory part)
        internal
        view
        returns (Demand memory demand)
    {
        demand = _demandNow(about.job, holder.stage, holder.replica, part);
        demand.kind = DemandKind.State;
        (demand.claimId, demand.interval) = (checkpoints.claimId(about), about.interval);
        (demand.stage, demand.replica) = (about.stage, about.replica);
        (demand.list, demand.tensors) = (about.newState, 3);
    }

    function _filesDemand(uint16 stage, bool constants, Part memory part) internal view returns (Demand memory demand) {
        demand = _demandNow(job, stage, 0, part);
        demand.kind = DemandKind.Files;
        (demand.list, demand.tensors) =
            constants ? (_programAt(stage).constants, uint32(2)) : (_stateAt(stage, 0), uint32(3));
    }

    function _demandNow(uint64 about, uint16 stage, uint16 replica, Part memory part)
        internal
        view
        returns (Demand memory demand)
    {
        (demand.job, demand.stage, demand.replica) = (about, stage, replica);
        (demand.holderStage, demand.holderReplica) = (stage, replica);
        (demand.holder, demand.demander) = (jobs.workerOf(about, stage, replica), auditor);
        demand.part = part;
        demand.deadline = uint40(block.timestamp + CLOCK);
        demand.untilBlock = uint40(block.number + parameters.moveBlocks);
    }

    // Deliveries

    /// @dev Leaves `[first, first + count)` of a tensor of a list of `tensors`.
    function _shown(bytes32 list, uint32 tensors, uint32 tensor, uint256 first, uint256 count)
        internal
        pure
        returns (Delivery memory delivery)
    {
        bytes32[][] memory tree = _tensorTree(list, tensor);
        (delivery.tensorType, delivery.dataRoot) = (_typeOf(tensor), tree.rootOf());
        delivery.membership = _listTree(list, tensors).path(tensor);
        for (uint256 i = 0; i < count; ++i) {
            delivery.range.leaves = bytes.concat(delivery.range.leaves, _leaf(list, tensor, first + i));
        }
        delivery.range.firstLeaf = uint32(first);
        delivery.range.siblings = tree.rangePath(first, count);
    }

    /// @dev What `_demandOwn` and `_demandKept` ask for.
    function _shownOwn() internal pure returns (Delivery memory) {
        return _shown(_state(STAGE, 1), 3, 1, 3, 1);
    }

    function _deliver(uint256 id, Demand memory demand, Delivery memory delivery) internal {
        vm.prank(demand.holder);
        custody.deliver(id, demand, delivery);
    }

    // The end of a demand

    /// @dev To when it can be let expire.
    function _toEnd(Demand memory demand) internal {
        if (block.timestamp <= demand.deadline) vm.warp(uint256(demand.deadline) + 1);
        if (block.number < demand.untilBlock) vm.roll(demand.untilBlock);
    }

    /// @dev Lets it expire, as anyone.
    function _default(uint256 id, Demand memory demand) internal {
        _toEnd(demand);
        vm.prank(stranger);
        custody.expire(id, demand);
    }

    /// @dev The worker contradicts its claim in what it signs.
    function _refute(Claim memory about, uint64 when) internal {
        ContradictionProof memory proof;
        (proof.claim, proof.committedAt) = (about, when);
        proof.first = StepStatement({
            claimId: checkpoints.claimId(about),
            auditor: address(0),
            step: about.interval * STEPS,
            preState: keccak256("a lie"),
            postState: 0,
            trace: 0
        });
        proof.firstSignature = _sign(workers[about.stage].key, _statementDigest(proof.first));
        disputes.proveSignedContradiction(proof);
    }

    function _isHeldBack(Claim memory about, uint64 when) internal {
        vm.expectRevert(_challenged(about));
        _finalizeBy(about, when, _nobody());
    }

    function _challenged(Claim memory about) internal view returns (bytes memory) {
        return abi.encodeWithSignature("Challenged(bytes32)", checkpoints.claimId(about));
    }

    /// @dev What a conviction is told as.
    function _expectConvicted(bytes32 claimId, uint16 stage, IDisputes.Fault fault) internal {
        vm.expectEmit(address(disputes));
        emit IDisputes.Convicted(job, workers[stage].addr, auditor, stage, 0, claimId, fault, 0, 0, 0, 0, 0);
    }
}
