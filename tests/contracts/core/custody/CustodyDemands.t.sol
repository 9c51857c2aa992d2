// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IERC20Errors} from "@openzeppelin/contracts/interfaces/draft-IERC6093.sol";

import {ICheckpoints} from "../../../../contracts/interfaces/ICheckpoints.sol";
import {ICustody} from "../../../../contracts/interfaces/ICustody.sol";
import {IJobs} from "../../../../contracts/interfaces/IJobs.sol";
import {IStaking} from "../../../../contracts/interfaces/IStaking.sol";
import {Demand, Holder, Part} from "../../../../contracts/types/Custody.sol";
import {Claim, ProgramHeader} from "../../../../contracts/types/Types.sol";
import {CustodyTest} from "../../protocol/CustodyTest.sol";

/// @dev `demandState` and `demandFiles`: what can be demanded, of whom, until when, and what that does.
contract CustodyDemandsTest is CustodyTest {
    // What a demand does

    /// @dev It is on the books, and the claim is held back, for a bond. A claim's own worker need not have
    /// signed anything.
    function testFuzz_theStateFromItsWorker(bytes calldata noise) public {
        Part memory part = _part(2, 5, 64);
        Holder memory holder = Holder(STAGE, 0, noise);
        Demand memory expected = _stateDemand(claim, holder, part);
        vm.expectEmit(address(custody));
        emit ICustody.Demanded(1, job, workers[STAGE].addr, expected);
        (uint256 id, Demand memory demand) = _demandState(holder, part);
        assertEq(id, 1);
        assertEq(keccak256(abi.encode(demand)), keccak256(abi.encode(expected)));
        assertEq(custody.demandOf(1), keccak256(abi.encode(demand)));
        assertEq(demand.deadline, block.timestamp + CLOCK);
        assertEq(sno.balanceOf(auditor), 1000 ether - BOND);
        assertEq(sno.balanceOf(address(custody)), BOND);
        skip(2 * WINDOW);
        _isHeldBack(claim, committedAt);
        assertEq(custody.demandOf(2), 0);
    }

    function test_theStateFromWhoSignedForIt() public {
        Holder memory holder = _keeper();
        Demand memory expected = _stateDemand(claim, holder, _part(1, 3, 1));
        assertEq(expected.holder, workers[KEEPER].addr);
        vm.expectEmit(address(custody));
        emit ICustody.Demanded(1, job, workers[KEEPER].addr, expected);
        _demandKept();
        skip(WINDOW);
        vm.expectRevert(_challenged(claim));
        _finalizeBy(claim, committedAt, holder);
    }

    /// @dev A replica of the claim's stage that signed for it.
    function test_theStateFromAnotherReplica() public {
        vm.prank(user);
        jobs.cancel(job);
        _refute(claim, committedAt);
        jobs.settle(job);
        _stakeAgain(STAGE);
        uint64 replicated = _run(1, 2, 1);
        (Claim memory about, uint64 when) = _commit(replicated, 0, 0, 0, 0);
        Holder memory holder = Holder(0, 1, _holding(workers[1].key, about));
        (, Demand memory demand) = _demandStateOf(about, when, holder, _part(0, 0, 1));
        assertEq(demand.holder, workers[1].addr);
        assertEq(custody.demandOf(1), keccak256(abi.encode(demand)));
    }

    /// @dev No claim waits for files.
    function testFuzz_filesFromAnyLane(uint16 stage, bool constants) public {
        stage = uint16(bound(stage, 0, 2));
        Demand memory expected = _filesDemand(stage, constants, _part(1, 2, 3));
        assertEq(expected.claimId, 0);
        vm.expectEmit(address(custody));
        emit ICustody.Demanded(1, job, workers[stage].addr, expected);
        _demandFiles(stage, constants, _part(1, 2, 3));
        assertEq(custody.demandOf(1), keccak256(abi.encode(expected)));
        assertEq(sno.balanceOf(address(custody)), BOND);
        skip(WINDOW);
        _finalizeBy(claim, committedAt, _keeper());
    }

    function test_severalAtOnce() public {
        (uint256 first,) = _demandOwn();
        (uint256 second,) = _demandOwn();
        (uint256 third,) = _demandKept();
        (uint256 fourth,) = _demandFiles(0, true, _part(0, 0, 1));
        assertEq(first + second * 10 + third * 100 + fourth * 1000, 4321);
        assertEq(sno.balanceOf(address(custody)), 4 * BOND);
    }

    /// @dev Nothing is held back for nothing.
    function test_withoutTheBond() public {
        ProgramHeader memory program = _programAt(STAGE);
        vm.startPrank(stranger);
        sno.approve(address(custody), BOND);
        bytes memory poor = abi.encodeWithSelector(IERC20Errors.ERC20InsufficientBalance.selector, stranger, 0, BOND);
        vm.expectRevert(poor);
        custody.demandState(claim, committedAt, program, _own(), _part(0, 0, 1));
        vm.expectRevert(poor);
        custody.demandFiles(job, STAGE, 0, program, true, _part(0, 0, 1));
        vm.stopPrank();
        assertEq(custody.demandOf(1), 0);
        skip(2 * WINDOW);
        _finalizeBy(claim, committedAt, _nobody());
    }

    // Of whom

    /// @dev Nobody answers for what another has said, or for what nobody has.
    function testFuzz_notFromWhoDidNotSign(uint256 key, uint16 stage) public {
        key = boundPrivateKey(key);
        stage = uint16(bound(stage, 3, type(uint16).max));
        address signer = vm.addr(key);
        vm.assume(signer != workers[KEEPER].addr);
        _refuseState(Holder(KEEPER, 0, ""), _wrongHolder(address(0)));
        _refuseState(Holder(KEEPER, 0, _holding(key, claim)), _wrongHolder(signer));
        // A lane without a worker, by whatever signature.
        _refuseState(Holder(stage, 0, _holding(key, claim)), _wrongHolder(signer));
        _refuseState(Holder(stage, 0, ""), _wrongHolder(address(0)));
        _refuseState(Holder(stage, 0, new bytes(65)), _wrongHolder(address(0)));
        // The user has nothing to lose; the claim's worker is asked as such.
        _refuseState(Holder(KEEPER, 0, _holding(userKey, claim)), _wrongHolder(user));
        _refuseState(Holder(0, 0, _holding(workers[STAGE].key, claim)), _wrongHolder(workers[STAGE].addr));
        _refuseFiles(stage, 0, _wrongHolder(address(0)));
        _refuseFiles(STAGE, 1, _wrongHolder(address(0)));
    }

    /// @dev Who has no stake any more is asked for nothing but the states of its own claims.
    function test_notFromAConvictedLane() public {
        (uint256 id, Demand memory demand) = _demandFiles(KEEPER, false, _part(0, 0, 1));
        (Claim memory kept, uint64 when) = _lateClaim();
        _default(id, demand);
        bytes memory refused = _wrongHolder(workers[KEEPER].addr);
        _refuseFiles(KEEPER, 0, refused);
        ProgramHeader memory program = _programAt(STAGE);
        Holder memory holder = _keeperOf(kept);
        vm.expectRevert(refused);
        vm.prank(auditor);
        custody.demandState(kept, when, program, holder, _part(0, 0, 1));
    }

    /// @dev A claim that is made shortly before the demand of now can be let expire.
    function _lateClaim() private returns (Claim memory late, uint64 when) {
        skip(CLOCK - 1 hours);
        return _commit(job, STAGE, 0, 1, committedAt);
    }

    // What

    function testFuzz_theRegisteredProgram(uint256 field, uint256 value) public {
        ProgramHeader memory other = _programAt(STAGE);
        field %= 8;
        if (field == 0) other.operatorCount = uint32(value);
        if (field == 1) other.constantCount = uint32(value);
        if (field == 2) other.stateCount = uint32(value);
        if (field == 3) other.microBatches = uint32(value);
        if (field == 4) other.edges = uint8(value);
        if (field == 5) other.operators = bytes32(value);
        if (field == 6) other.constants = bytes32(value);
        if (field == 7) other.wiring = bytes32(value);
        vm.assume(keccak256(abi.encode(other)) != keccak256(abi.encode(_programAt(STAGE))));
        _refuseProgram(other);
    }

    /// @dev Of the claim's stage, not of the holder's.
    function test_theProgramOfTheStage() public {
        _refuseProgram(_programAt(KEEPER));
        ProgramHeader memory program = _programAt(KEEPER);
        Holder memory holder = _keeper();
        vm.expectRevert(ICustody.WrongProgram.selector);
        vm.prank(auditor);
        custody.demandState(claim, committedAt, program, holder, _part(0, 0, 1));
    }

    /// @dev 1 to 64 leaves of a tensor that the list has, wherever they are said to begin.
    function testFuzz_parts(uint8 kind, uint32 tensor, uint32 firstLeaf, uint32 leaves) public {
        if (kind & 8 == 0) tensor %= 5;
        if (kind & 16 == 0) leaves %= 67;
        kind %= 3;
        bool right = tensor < (kind == 2 ? 2 : 3) && leaves > 0 && leaves < 65;
        ProgramHeader memory program = _programAt(STAGE);
        Part memory part = _part(tensor, firstLeaf, leaves);
        if (!right) vm.expectRevert(ICustody.WrongPart.selector);
        vm.prank(auditor);
        if (kind == 0) custody.demandState(claim, committedAt, program, _own(), part);
        else custody.demandFiles(job, STAGE, 0, program, kind == 2, part);
        assertEq(custody.demandOf(1) != 0, right);
    }

    function test_leastAndMost() public {
        _demandState(_own(), _part(2, type(uint32).max, 1));
        _demandState(_own(), _part(2, 0, 64));
        _refusePart(_part(2, 0, 0));
        _refusePart(_part(2, 0, 65));
        _refusePart(_part(3, 0, 1));
    }

    // When

    /// @dev P-10: for two windows from the commitment, to the second.
    function testFuzz_untilTwoWindows(uint256 time, bool near) public {
        time = near ? 2 * WINDOW + time % 3 - 1 : time % (4 * WINDOW);
        vm.warp(committedAt + time);
        if (time < 2 * WINDOW) {
            _demandOwn();
            _demandKept();
        } else {
            bytes memory late = abi.encodeWithSelector(ICustody.DeadlinePassed.selector, committedAt + 2 * WINDOW);
            _refuseState(_own(), late);
            _refuseState(_keeper(), late);
        }
    }

    function test_onlyLiveClaims() public {
        (claim, committedAt) = (_claim(job, STAGE, 0, 1), uint64(block.timestamp));
        _refuseState(_own(), abi.encodePacked(ICheckpoints.UnknownClaim.selector));
        _commit(job, STAGE, 0, 1, committedAt);
        uint64 when = committedAt;
        committedAt = when + 1;
        _refuseState(_own(), abi.encodePacked(ICheckpoints.UnknownClaim.selector));
        committedAt = when;

        skip(WINDOW);
        Claim memory first = _claim(job, STAGE, 0, 0);
        _finalizeBy(first, when, _keeperOf(first));
        Claim memory second = claim;
        claim = first;
        _refuseState(_own(), abi.encodePacked(ICheckpoints.ClaimIsFinal.selector));
        claim = second;
        _demandOwn();
        _refute(claim, when);
        _refuseState(_own(), abi.encodePacked(ICheckpoints.ClaimIsVoid.selector));
    }

    /// @dev P-14: receipts have no record, and texts no states.
    function test_notInServingJobs() public {
        for (uint256 i = 0; i < 2; ++i) {
            _stakeAgain(uint16(i));
        }
        job = _run(_servingTerms(address(sno), 2, 1, 100));
        Claim memory receipt;
        (receipt.job, receipt.stage) = (job, STAGE);
        (claim, committedAt) = (receipt, uint64(block.timestamp));
        _refuseState(_own(), abi.encodePacked(ICheckpoints.UnknownClaim.selector));
        committedAt = 0;
        _refuseState(_own(), abi.encodePacked(ICheckpoints.UnknownClaim.selector));
        _refuseFiles(STAGE, 0, _with(ICustody.JobNotOpen.selector, job));
    }

    /// @dev While the job runs or is closing.
    function test_filesWhileTheJobIsOpen() public {
        uint64 first = job;
        vm.prank(user);
        jobs.cancel(job);
        _demandFiles(STAGE, true, _part(0, 0, 1));
        _refute(claim, committedAt);
        jobs.settle(job);
        _refuseFiles(0, 0, _with(ICustody.JobNotOpen.selector, job));

        _stakeAgain(STAGE);
        job = _post(_terms(address(sno), 3, 1, 1));
        _refuseFiles(0, 0, _with(ICustody.JobNotOpen.selector, job));
        _accept(job);
        _refuseFiles(0, 0, _with(ICustody.JobNotOpen.selector, job));
        _start(job);
        _demandFiles(0, true, _part(0, 0, 1));
        vm.warp(jobs.jobOf(job).deadline + 30 days);
        _demandFiles(0, true, _part(0, 0, 1));
        assertEq(uint8(_stateOfJob(first)), uint8(IJobs.State.Settled));
        job = 99;
        _refuseFiles(0, 0, _with(ICustody.JobNotOpen.selector, 99));
    }

    // Shorthands

    function _stakeAgain(uint16 lane) private {
        _stake(workers[lane].addr, IStaking.Role.Worker, STAKE);
    }

    function _with(bytes4 selector, uint256 value) private pure returns (bytes memory) {
        return abi.encodeWithSelector(selector, value);
    }

    function _wrongHolder(address signer) private pure returns (bytes memory) {
        return abi.encodeWithSelector(ICustody.WrongHolder.selector, signer);
    }

    function _refuseState(Holder memory holder, bytes memory reason) private {
        ProgramHeader memory program = _programAt(STAGE);
        vm.expectRevert(reason);
        vm.prank(auditor);
        custody.demandState(claim, committedAt, program, holder, _part(0, 0, 1));
    }

    function _refuseFiles(uint16 stage, uint16 replica, bytes memory reason) private {
        ProgramHeader memory program = _programAt(stage);
        vm.expectRevert(reason);
        vm.prank(auditor);
        custody.demandFiles(job, stage, replica, program, true, _part(0, 0, 1));
    }

    function _refuseProgram(ProgramHeader memory program) private {
        vm.startPrank(auditor);
        vm.expectRevert(ICustody.WrongProgram.selector);
        custody.demandState(claim, committedAt, program, _own(), _part(0, 0, 1));
        vm.expectRevert(ICustody.WrongProgram.selector);
        custody.demandFiles(job, STAGE, 0, program, true, _part(0, 0, 1));
        vm.expectRevert(ICustody.WrongProgram.selector);
        custody.demandFiles(job, STAGE, 0, program, false, _part(0, 0, 1));
        vm.stopPrank();
    }

    function _refusePart(Part memory part) private {
        ProgramHeader memory program = _programAt(STAGE);
        vm.expectRevert(ICustody.WrongPart.selector);
        vm.prank(auditor);
        custody.demandState(claim, committedAt, program, _own(), part);
    }
}
