// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {ICheckpoints} from "../../../../contracts/interfaces/ICheckpoints.sol";
import {Claim} from "../../../../contracts/types/Types.sol";
import {ReplicaTest} from "../../protocol/ReplicaTest.sol";
import {Signatures} from "../../protocol/Signatures.sol";

/// @dev The table of `ICheckpoints`, every row and everything that no row has: wherever the rounds of a stage have come
/// to, every seal and every reveal by everybody.
contract CheckpointTableTest is ReplicaTest {
    uint256 private constant NEVER = type(uint256).max;

    enum Move {
        Seal,
        Reveal,
        RevealUnsealed
    }

    uint256 private deadline;
    /// @dev Until when a job that is closed takes reveals; 0: it is not closed.
    uint256 private closing;
    /// @dev A convicted lane, and its first interval that is void.
    uint16 private convicted = REPLICAS;
    uint32 private voidFrom;
    /// @dev Who claims what the others do not.
    uint256 private differing;
    /// @dev How far each lane has come.
    uint32[REPLICAS] private sealedBy;
    uint32[REPLICAS] private revealedBy;
    ICheckpoints.Round[INTERVALS] private rounds;

    function _own(uint16 replica, uint32 interval) internal view override returns (Claim memory claim) {
        claim = super._own(replica, interval);
        if (differing >> (replica * INTERVALS + interval) & 1 == 1) claim.io = keccak256("what nobody else claims");
    }

    /// forge-config: default.fuzz.runs = 160
    function testFuzz_everyMoveFromEverywhere(uint256 seed) public {
        deadline = jobs.jobOf(job).deadline;
        // Fuzzers like small numbers, which leave high bits zero.
        _goSomewhere(uint256(keccak256(abi.encode(seed))));
        for (uint16 replica = 0; replica < REPLICAS; ++replica) {
            address[3] memory anybody = [workers[replica].addr, workers[(replica + 1) % REPLICAS].addr, stranger];
            for (uint256 i = 0; i < uint256(INTERVALS + 1) * 9; ++i) {
                uint256 snapshot = vm.snapshotState();
                _move(Move(i % 3), replica, uint32(i / 9), anybody[i / 3 % 3]);
                vm.revertToState(snapshot);
            }
        }
    }

    // Where rounds can stand

    /// @dev Replicas that seal and reveal what is next for them, as it comes, and are refused what is not their turn.
    function _goSomewhere(uint256 seed) private {
        differing = seed >> 192 & seed >> 208;
        // Some begin so late that the job's time is over before a round's.
        if (seed >> 64 & 3 == 0) vm.warp(deadline - (seed >> 72) % SEALING);
        for (uint256 moves = seed % 40; moves > 0; --moves) {
            seed = uint256(keccak256(abi.encode(seed)));
            uint16 replica = uint16((seed >> 8) % REPLICAS);
            address worker = workers[replica].addr;
            uint256 what = seed % 16;
            if (what < 3) _wait(seed >> 16);
            else if (what < 9) _move(Move.Seal, replica, sealedBy[replica], worker);
            else _move(Move.Reveal, replica, revealedBy[replica], worker);
        }
        uint256 end = (seed >> 64) % 8;
        if (end == 0) _goBeyond(deadline, seed >> 72);
        if (end < 4) return;
        _close(seed >> 80);
        if (end == 4) _goBeyond(closing, seed >> 72);
    }

    /// @dev To where a round takes no more seals, to the second; or anywhere.
    function _wait(uint256 noise) private {
        uint256 limit = _sealsEnd(uint32(noise % INTERVALS));
        if (limit == NEVER || limit <= block.timestamp) skip((noise >> 8) % SEALING);
        else vm.warp(limit + noise % 3 - 1);
    }

    function _goBeyond(uint256 limit, uint256 noise) private {
        if (limit > block.timestamp) vm.warp(limit + noise % 2);
    }

    /// @dev By the user, or because a lane was convicted.
    function _close(uint256 noise) private {
        if (noise % 2 == 0) {
            vm.prank(user);
            jobs.cancel(job);
        } else {
            (convicted, voidFrom) = (uint16(noise / 2 % REPLICAS), uint32(noise / 8 % INTERVALS));
            vm.startPrank(address(disputes));
            checkpoints.voidFrom(job, 0, convicted, voidFrom);
            jobs.convict(job, 0, convicted);
            vm.stopPrank();
        }
        closing = block.timestamp + SEALING;
    }

    // Moves

    function _move(Move move, uint16 replica, uint32 interval, address who) private {
        bytes32 before = _seen(replica, interval);
        bytes4 refusal = move == Move.Seal
            ? _refusalOfSeal(replica, interval, who)
            : _refusalOfReveal(move == Move.Reveal, replica, interval, who);
        bytes memory call = _callOf(move, replica, interval);
        vm.prank(who);
        (bool done, bytes memory reason) = address(checkpoints).call(call);
        assertEq(bytes4(reason), refusal);
        assertEq(done, refusal == 0);
        if (!done) {
            assertEq(_seen(replica, interval), before);
            return;
        }
        if (move == Move.Seal) _sealed(replica, interval);
        else _revealed(replica, interval);
        bytes32 round = keccak256(abi.encode(checkpoints.roundOf(job, 0, interval)));
        assertEq(round, keccak256(abi.encode(rounds[interval])));
    }

    function _sealed(uint16 replica, uint32 interval) private {
        ICheckpoints.Round storage round = rounds[interval];
        if (round.sealedAt == 0) round.sealedAt = uint40(block.timestamp);
        ++round.seals;
        sealedBy[replica] = interval + 1;
        assertEq(checkpoints.sealOf(job, 0, replica, interval), _sealedClaim(_own(replica, interval)));
    }

    function _revealed(uint16 replica, uint32 interval) private {
        ICheckpoints.Round storage round = rounds[interval];
        Claim memory claim = _own(replica, interval);
        if (round.revealedAt == 0) (round.revealedAt, round.outcome) = (uint40(block.timestamp), _outcomeOf(claim));
        else if (round.outcome != _outcomeOf(claim)) round.differ = true;
        (revealedBy[replica], revealTimes[replica][interval]) = (interval + 1, uint64(block.timestamp));
        assertEq(checkpoints.recordOf(job, 0, replica, interval), Signatures.record(claim, block.timestamp));
        assertEq(checkpoints.windowOf(job, 0, interval), round.differ ? 2 * WINDOW : WINDOW);
    }

    /// @dev All that a move could change.
    function _seen(uint16 replica, uint32 interval) private view returns (bytes32) {
        bytes32 sealedClaim = checkpoints.sealOf(job, 0, replica, interval);
        bytes32 record = checkpoints.recordOf(job, 0, replica, interval);
        ICheckpoints.LaneState memory lane = checkpoints.laneOf(job, 0, replica);
        return keccak256(abi.encode(sealedClaim, record, lane, checkpoints.roundOf(job, 0, interval)));
    }

    /// @dev Why the table does not have this seal; zero if it has.
    function _refusalOfSeal(uint16 replica, uint32 interval, address who) private view returns (bytes4) {
        if (closing != 0) return ICheckpoints.JobNotOpen.selector;
        if (block.timestamp > deadline) return ICheckpoints.DeadlinePassed.selector;
        if (who != workers[replica].addr) return ICheckpoints.NotWorker.selector;
        if (interval >= INTERVALS) return ICheckpoints.IntervalOutOfRange.selector;
        if (interval < sealedBy[replica]) return ICheckpoints.AlreadySealed.selector;
        if (interval > sealedBy[replica]) return ICheckpoints.NotTheNextClaim.selector;
        return block.timestamp >= _sealsEnd(interval) ? ICheckpoints.SealingOver.selector : bytes4(0);
    }

    function _refusalOfReveal(bool ofWhatWasSealed, uint16 replica, uint32 interval, address who)
        private
        view
        returns (bytes4)
    {
        if (who != workers[replica].addr) return ICheckpoints.NotWorker.selector;
        if (interval >= INTERVALS) return ICheckpoints.IntervalOutOfRange.selector;
        if (replica == convicted && interval >= voidFrom) return ICheckpoints.ClaimIsVoid.selector;
        if (interval >= sealedBy[replica] || !ofWhatWasSealed) return ICheckpoints.WrongSeal.selector;
        if (closing != 0) {
            if (block.timestamp > closing) return ICheckpoints.DeadlinePassed.selector;
        } else if (block.timestamp <= deadline && block.timestamp < _sealsEnd(interval) && !_allHaveSealed(interval)) {
            return ICheckpoints.SealingOpen.selector;
        }
        if (interval < revealedBy[replica]) return ICheckpoints.AlreadyCommitted.selector;
        return interval > revealedBy[replica] ? ICheckpoints.NotTheNextClaim.selector : bytes4(0);
    }

    /// @dev Whether nobody is left who could seal an interval: all have that sealed the one before.
    function _allHaveSealed(uint32 interval) private view returns (bool) {
        for (uint16 replica = 0; replica < REPLICAS; ++replica) {
            if (sealedBy[replica] == interval) return false;
        }
        return true;
    }

    /// @dev A seal window after the later of a round's first seal and the first reveal of the one before; never, while
    /// either is missing.
    function _sealsEnd(uint32 interval) private view returns (uint256) {
        uint256 first = rounds[interval].sealedAt;
        uint256 before = interval == 0 ? first : rounds[interval - 1].revealedAt;
        if (first == 0 || before == 0) return NEVER;
        return (first > before ? first : before) + SEALING;
    }

    function _callOf(Move move, uint16 replica, uint32 interval) private view returns (bytes memory) {
        Claim memory claim = _own(replica, interval);
        bytes32 sealedClaim = _sealedClaim(claim);
        if (move == Move.Seal) return abi.encodeCall(ICheckpoints.seal, (job, 0, replica, interval, sealedClaim));
        bytes32 salt = move == Move.Reveal ? _salt(claim) : keccak256("a salt that seals nothing");
        return abi.encodeCall(ICheckpoints.reveal, (claim, _linkOf(replica, interval), salt));
    }
}
