// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {ICheckpoints} from "../../../../contracts/interfaces/ICheckpoints.sol";
import {ICustody} from "../../../../contracts/interfaces/ICustody.sol";
import {IStaking} from "../../../../contracts/interfaces/IStaking.sol";
import {Demand, Holder, Holding} from "../../../../contracts/types/Custody.sol";
import {Claim, ClaimLink} from "../../../../contracts/types/Types.sol";
import {CustodyTest} from "../../protocol/CustodyTest.sol";
import {Signatures} from "../../protocol/Signatures.sol";

/// @dev Who counts as a second holder, and when a claim is final with one and without (P-34).
contract CustodyHoldersTest is CustodyTest {
    // Who

    /// @dev The user needs no lane: whatever is named is not looked at.
    function testFuzz_theUser(uint16 stage, uint16 replica) public view {
        _taken(Holder(stage, replica, _holding(userKey, claim)));
    }

    function test_theWorkerOfAnotherStage() public view {
        _taken(_keeper());
        _taken(Holder(0, 0, _holding(workers[0].key, claim)));
    }

    /// @dev A replica of the same stage is another party just as well.
    function test_theWorkerOfAnotherReplica() public {
        Claim memory about = _replicated();
        _taken(about, Holder(0, 1, _holding(workers[1].key, about)));
        _refused(about, Holder(0, 0, _holding(workers[0].key, about)), workers[0].addr);
    }

    function testFuzz_notTheClaimsOwnWorker(uint16 stage, uint16 replica) public view {
        _refused(Holder(stage, replica, _holding(workers[STAGE].key, claim)), workers[STAGE].addr);
        _refused(Holder(STAGE, 0, _holding(workers[STAGE].key, claim)), workers[STAGE].addr);
    }

    /// @dev An attestation counts for the lane of who gave it.
    function testFuzz_notUnderAnotherLane(uint16 stage, uint16 replica) public view {
        vm.assume(stage != KEEPER || replica != 0);
        _refused(Holder(stage, replica, _holding(workers[KEEPER].key, claim)), workers[KEEPER].addr);
        _refused(Holder(STAGE, 0, _holding(workers[KEEPER].key, claim)), workers[KEEPER].addr);
    }

    function testFuzz_notAStranger(uint256 key, uint16 stage, uint16 replica) public view {
        key = boundPrivateKey(key);
        address signer = vm.addr(key);
        if (signer == user || signer == workers[0].addr || signer == workers[KEEPER].addr) return;
        _refused(Holder(stage, replica, _holding(key, claim)), signer);
        // Workers without a lane of this job are strangers, too.
        _refused(Holder(stage % 3, 0, _holding(workers[4].key, claim)), workers[4].addr);
    }

    /// @dev Who has lost its stake answers for nothing.
    function test_notAConvictedLane() public {
        _taken(_keeper());
        (uint256 id, Demand memory demand) = _demandFiles(KEEPER, true, _part(0, 0, 1));
        _default(id, demand);
        _refused(_keeper(), workers[KEEPER].addr);
        _taken(Holder(0, 0, _holding(workers[0].key, claim)));
    }

    /// @dev The job and the lanes are the claim's: of a job that nobody knows nobody is a party.
    function testFuzz_notAPartyOfAnotherJob(uint64 other, uint16 stage, uint16 replica) public view {
        vm.assume(other != job);
        Claim memory about = claim;
        about.job = other;
        _refused(about, Holder(stage, replica, _holding(userKey, about)), user);
        _refused(about, Holder(stage, replica, _holding(workers[KEEPER].key, about)), workers[KEEPER].addr);
    }

    // What was said

    function testFuzz_digest(bytes32 claimId) public view {
        bytes32 hash = Signatures.hash(Holding({claimId: claimId}));
        assertEq(custody.holdingDigest(claimId), Signatures.digest(block.chainid, address(custody), hash));
    }

    function testFuzz_notAWordAboutAnotherClaim(uint256 field, uint256 value) public {
        Claim memory other = claim;
        field %= 7;
        if (field == 0) other.job = uint64(value);
        if (field == 1) other.stage = uint16(value);
        if (field == 2) other.replica = uint16(value);
        if (field == 3) other.interval = uint32(value);
        if (field == 4) other.parentState = bytes32(value);
        if (field == 5) other.newState = bytes32(value);
        if (field == 6) other.io = bytes32(value);
        vm.assume(checkpoints.claimId(other) != checkpoints.claimId(claim));
        _refusedWhoever(Holder(KEEPER, 0, _holding(workers[KEEPER].key, other)));
        _refusedWhoever(Holder(KEEPER, 0, _holding(userKey, other)));
    }

    function testFuzz_notAWordForAnotherChainOrContract(uint64 chain, address place) public {
        bytes32 hash = Signatures.hash(Holding({claimId: checkpoints.claimId(claim)}));
        bytes32 digest = Signatures.digest(chain, place, hash);
        vm.assume(digest != custody.holdingDigest(checkpoints.claimId(claim)));
        _refusedWhoever(Holder(KEEPER, 0, _sign(workers[KEEPER].key, digest)));
        digest = Signatures.digest(block.chainid, address(checkpoints), hash);
        _refusedWhoever(Holder(KEEPER, 0, _sign(workers[KEEPER].key, digest)));
    }

    /// @dev What is no signature is nobody's, also not that of a lane without a worker.
    function testFuzz_notNobody(bytes calldata noise, uint16 stage) public view {
        vm.assume(noise.length != 65);
        stage = uint16(bound(stage, 3, type(uint16).max));
        _refused(Holder(stage, 0, noise), address(0));
        _refused(Holder(stage, 0, new bytes(65)), address(0));
        bytes memory attestation = _holding(workers[KEEPER].key, claim);
        attestation[64] = 0x1d;
        _refused(Holder(stage, 0, attestation), address(0));
    }

    // When

    /// @dev One window with a holder's attestation, two without, to the second.
    function testFuzz_finality(uint256 time, uint256 who) public {
        time = who % 2 == 0 ? bound(time, 0, 3 * WINDOW) : (1 + time % 2) * WINDOW + time % 3 - 1;
        Holder memory holder = _nobody();
        if (who / 2 % 3 == 1) holder = _keeper();
        if (who / 2 % 3 == 2) holder = Holder(7, 7, _holding(userKey, claim));
        uint256 until = committedAt + (who / 2 % 3 == 0 ? 2 : 1) * WINDOW;
        vm.warp(committedAt + time);
        if (block.timestamp < until) {
            vm.expectRevert(abi.encodeWithSelector(ICheckpoints.WindowOpen.selector, until));
        }
        _finalizeBy(claim, committedAt, holder);
        assertEq(jobs.creditOf(workers[STAGE].addr, address(sno)), block.timestamp < until ? 0 : PRICE);
    }

    /// @dev A wrong attestation is not taken for none, however late.
    function test_aWrongWordIsNotNone() public {
        skip(2 * WINDOW);
        Holder memory wrong = Holder(KEEPER, 0, _holding(workers[0].key, claim));
        vm.expectRevert(_wrongHolder(workers[0].addr));
        _finalizeBy(claim, committedAt, wrong);
        _finalizeBy(claim, committedAt, _nobody());
    }

    /// @dev P-26: where replicas differ it takes two windows, whoever has the state, and no more.
    function testFuzz_replicasThatDiffer(bool held) public {
        Claim memory about = _replicated();
        Claim memory other = _claim(about.job, 0, 1, 0);
        other.newState = keccak256("another state");
        _seal(about);
        _seal(other);
        _seal(_claim(about.job, 0, 2, 0));
        ClaimLink memory none;
        _reveal(about, none);
        _reveal(other, none);
        uint64 when = uint64(block.timestamp);
        Holder memory holder = held ? Holder(0, 2, _holding(workers[2].key, about)) : _nobody();
        skip(2 * WINDOW - 1);
        vm.expectRevert(abi.encodeWithSelector(ICheckpoints.WindowOpen.selector, when + 2 * WINDOW));
        _finalizeBy(about, when, holder);
        skip(1);
        _finalizeBy(about, when, holder);
    }

    /// @dev The attestation of the last claim's state is enough for those before it, and for no longer list; each has
    /// its window.
    function test_oneWordForSeveralClaims() public {
        skip(1 hours);
        (Claim[] memory claims, uint64[] memory times) = (new Claim[](3), new uint64[](3));
        (claims[0], times[0]) = (claim, committedAt);
        for (uint32 i = 1; i < 3; ++i) {
            (claims[i], times[i]) = _commit(job, STAGE, 0, i, times[i - 1]);
        }
        vm.warp(committedAt + WINDOW + 1 hours - 1);
        vm.expectRevert(abi.encodeWithSelector(ICheckpoints.WindowOpen.selector, committedAt + WINDOW + 1 hours));
        checkpoints.finalize(claims, times, _keeperOf(claims[2]));
        skip(1);
        vm.expectPartialRevert(ICustody.WrongHolder.selector);
        checkpoints.finalize(claims, times, _keeperOf(claims[1]));
        vm.expectRevert(abi.encodeWithSelector(ICheckpoints.WindowOpen.selector, committedAt + 2 * WINDOW));
        checkpoints.finalize(claims, times, _nobody());
        checkpoints.finalize(claims, times, _keeperOf(claims[2]));
        assertEq(checkpoints.laneOf(job, STAGE, 0).finalized, 3);
        assertEq(jobs.creditOf(workers[STAGE].addr, address(sno)), 3 * PRICE);
    }

    /// @dev What is final stays so, though who signed for it is convicted later.
    function test_finalByTheWordOfWhoIsConvictedLater() public {
        (uint256 id, Demand memory demand) = _demandFiles(KEEPER, true, _part(0, 0, 1));
        skip(WINDOW);
        _finalizeBy(claim, committedAt, _keeper());
        _default(id, demand);
        assertEq(checkpoints.laneOf(job, STAGE, 0).finalized, 1);
        jobs.settle(job);
        assertEq(jobs.creditOf(workers[STAGE].addr, address(sno)), PRICE);
        assertEq(_staked(workers[STAGE].addr).bonded, STAKE);
    }

    /// @dev A job of three replicas, and the first claim of the first of them.
    function _replicated() private returns (Claim memory about) {
        for (uint256 i = 0; i < 3; ++i) {
            _stake(workers[i].addr, IStaking.Role.Worker, STAKE);
        }
        return _claim(_run(1, 3, 1), 0, 0, 0);
    }

    // Shorthands

    function _taken(Holder memory holder) private view {
        _taken(claim, holder);
    }

    function _taken(Claim memory about, Holder memory holder) private view {
        custody.requireHolder(about, checkpoints.claimId(about), holder);
    }

    function _wrongHolder(address signer) private pure returns (bytes memory) {
        return abi.encodeWithSelector(ICustody.WrongHolder.selector, signer);
    }

    function _refused(Holder memory holder, address signer) private view {
        _refused(claim, holder, signer);
    }

    /// @dev In a view, of which `expectRevert` is none.
    function _refused(Claim memory about, Holder memory holder, address signer) private view {
        bytes32 id = checkpoints.claimId(about);
        try custody.requireHolder(about, id, holder) {
            revert("taken");
        } catch (bytes memory reason) {
            assertEq(reason, _wrongHolder(signer));
        }
    }

    /// @dev What does not belong to the claim is the attestation of whoever it is then.
    function _refusedWhoever(Holder memory holder) private {
        bytes32 id = checkpoints.claimId(claim);
        vm.expectPartialRevert(ICustody.WrongHolder.selector);
        custody.requireHolder(claim, id, holder);
    }
}
