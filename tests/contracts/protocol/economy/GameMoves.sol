// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IChallenges} from "../../../../contracts/interfaces/IChallenges.sol";
import {AnswerCost} from "../../../../contracts/libraries/challenges/AnswerCost.sol";
import {ParameterBounds} from "../../../../contracts/libraries/terms/ParameterBounds.sol";
import {Position, Subject} from "../../../../contracts/types/Challenge.sol";
import {Claim, ContradictionProof, StepStatement} from "../../../../contracts/types/Types.sol";
import {SlowTree} from "../../verifier/SlowTree.sol";
import {JobMoves} from "./JobMoves.sol";

/// @title Challenges, what is put up for them, and proofs
abstract contract GameMoves is JobMoves {
    using SlowTree for bytes32[][];

    // Challenges

    function openChallenge(uint256 seed, uint256 laneSeed) public {
        (bool live, Claim memory claim, uint64 when) = _liveClaim(seed, laneSeed, true);
        if (live) _open(claim, when);
    }

    function _open(Claim memory claim, uint64 when) internal {
        if (block.timestamp >= when + 2 * WINDOW) return;
        _fund(auditor, address(challenges), challenges.bondFor(claim.job, checkpoints.claimId(claim)));
        vm.fee(baseFee);
        uint256 amount = _needed() * (1 + when % 3);
        _giveEth(amount);
        vm.prank(auditor);
        uint256 id = challenges.open{value: amount}(claim, when, _plain(2));
        putUpFor[id] = amount;
        _claims[id] = claim;
        _follow();
        _answerIfHonest(id);
    }

    /// @dev What a question for four states needs for its answer.
    function _needed() private view returns (uint256) {
        return AnswerCost.mostGas(4 * 32) * baseFee;
    }

    function _giveEth(uint256 amount) private {
        vm.deal(auditor, auditor.balance + amount);
        _given(auditor, ETH, amount);
    }

    /// @dev Gas becomes dearer and cheaper.
    function changeFee(uint256 seed) external {
        baseFee = seed % 8 == 0 ? 0 : 1 gwei << seed % 8;
    }

    /// @dev The challenger puts up more for the first challenge from `seed` on that is open.
    function fund(uint256 seed, uint256 amount) external {
        uint256 count = challenges.challengeCount();
        for (uint256 i = 0; i < count; ++i) {
            uint256 id = (seed % count + i) % count + 1;
            IChallenges.State state = challenges.challengeOf(id).state;
            if (state != IChallenges.State.Asking && state != IChallenges.State.Answering) continue;
            _fundChallenge(id, bound(amount, 0, 1 ether));
            return;
        }
    }

    function _fundChallenge(uint256 id, uint256 amount) private {
        _giveEth(amount);
        vm.prank(auditor);
        challenges.fund{value: amount}(id);
        putUpFor[id] += amount;
        ++fundings;
    }

    /// @dev One of the people has their credit of challenges.
    function collectFromChallenges(uint256 seed) public {
        address[] memory all = people();
        address who = all[seed % all.length];
        if (challenges.creditOf(who) == 0) return;
        vm.prank(who);
        challenges.collect();
    }

    /// @dev The first challenge from `seed` on in which it is this side's turn, and not too late; 0 if there is none.
    function _toMove(uint256 seed, IChallenges.State state) internal view returns (uint256 id) {
        uint256 count = challenges.challengeCount();
        for (uint256 i = 0; i < count; ++i) {
            id = (seed % count + i) % count + 1;
            IChallenges.Challenge memory c = challenges.challengeOf(id);
            if (c.state == state && block.timestamp < c.deadline) return id;
        }
        return 0;
    }

    /// @dev The worker tells the states of its claim, or what it has told before. Statements it does not sign here.
    function answer(uint256 seed) external {
        uint256 id = _toMove(seed, IChallenges.State.Answering);
        if (id != 0 && positions[id].subject == Subject.Steps) _answer(id);
    }

    function _answerIfHonest(uint256 id) internal {
        if (challenges.challengeOf(id).worker == honest()) _answer(id);
    }

    function _answer(uint256 id) internal {
        Position memory p = positions[id];
        (Claim memory claim, bytes32[] memory states) = (_claims[id], new bytes32[](STEPS));
        for (uint32 i = 0; i + 1 < STEPS; ++i) {
            states[i] = keccak256(abi.encode(id, i));
        }
        states[STEPS - 1] = claim.newState;
        bytes32[][] memory tree = SlowTree.ofDigests(states);
        IChallenges.Challenge memory before = challenges.challengeOf(id);
        vm.fee(baseFee);
        vm.prank(before.worker);
        if (p.node == 0) {
            challenges.answerSteps(
                id, p, claim, tree.rootOf(), tree.path(STEPS - 1), _noWay(), abi.encodePacked(states)
            );
        } else {
            challenges.answer(id, p, _noWay(), abi.encodePacked(states));
        }
        ++answers;
        _follow();
        _isCharged(id, before.owed);
    }

    /// @dev P-42: by what was metered; all that there is where that is not enough, and then the game is lost.
    function _isCharged(uint256 id, uint256 before) private {
        IChallenges.Challenge memory c = challenges.challengeOf(id);
        uint256 owed = before + charged * baseFee;
        bool short = owed > putUpFor[id];
        assertEq(c.owed, short ? putUpFor[id] : owed, "what the answer has cost is owed");
        assertEq(uint8(c.state), uint8(short ? IChallenges.State.Spent : IChallenges.State.Asking));
        if (short) ++spent;
    }

    /// @dev The challenger asks for the same once more, until it may not.
    function ask(uint256 seed) external {
        uint256 id = _toMove(seed, IChallenges.State.Asking);
        if (id == 0 || seed % 4 == 0) return;
        IChallenges.Challenge memory c = challenges.challengeOf(id);
        if (c.restarts == ParameterBounds.MAX_RESTARTS) return;
        vm.fee(baseFee);
        if (c.deposit - c.owed < _needed()) _fundChallenge(id, _needed() - (c.deposit - c.owed));
        vm.prank(auditor);
        challenges.askTree(id, positions[id], factsOf[id], Subject.Steps, _plain(2));
        ++asks;
        _follow();
        _answerIfHonest(id);
    }

    /// @dev Ends the first challenge from `seed` on that can be ended.
    function timeout(uint256 seed) public {
        uint256 count = challenges.challengeCount();
        for (uint256 i = 0; i < count; ++i) {
            uint256 id = (seed % count + i) % count + 1;
            IChallenges.Challenge memory c = challenges.challengeOf(id);
            if (!_isOpen(c.state)) continue;
            bool void = disputes.isConvicted(c.job, c.stage, c.replica, c.interval);
            if (!void && block.timestamp < c.deadline && c.state != IChallenges.State.Spent) continue;
            vm.roll(block.number + parameters.moveBlocks);
            _end(id, c, void);
            return;
        }
    }

    function _end(uint256 id, IChallenges.Challenge memory c, bool void) internal {
        (uint256 supply, uint256 bondOfWorker) = (_supply(), sno.balanceOf(c.worker));
        challenges.timeout(id);
        if (void || c.state == IChallenges.State.Answering) {
            ++challengesWon;
            if (!void) _convictedNow(c.job, c.stage, c.replica, supply);
            if (!void) ++silences;
        } else {
            ++challengesLost;
            assertEq(sno.balanceOf(c.worker) - bondOfWorker, c.bond);
            _paid(c.challenger, c.worker, address(sno), c.bond);
            _paid(c.challenger, c.worker, ETH, c.owed);
        }
    }

    // Proofs

    /// @dev The worker contradicts itself in what it signs, now and then after somebody has challenged it.
    function convict(uint256 seed, uint256 laneSeed, uint256 chance) external {
        (bool live, Claim memory claim, uint64 when) = _liveClaim(seed, laneSeed, chance / 4 % 2 == 0);
        if (!live || chance % 2 == 0 || jobs.workerOf(claim.job, claim.stage, claim.replica) == honest()) return;
        if (chance / 2 % 2 == 0) _open(claim, when);
        _convictOver(claim, when, claim.interval * STEPS);
        ++convictions;
    }

    /// @dev By a statement about `step` that starts from no state that anybody knows.
    function _convictOver(Claim memory claim, uint64 when, uint32 step) internal {
        StepStatement memory lie = StepStatement({
            claimId: checkpoints.claimId(claim),
            auditor: auditor,
            step: step,
            preState: keccak256("a lie"),
            postState: 0,
            trace: 0
        });
        address liar = jobs.workerOf(claim.job, claim.stage, claim.replica);
        ContradictionProof memory proof;
        (proof.claim, proof.committedAt, proof.first) = (claim, when, lie);
        proof.firstSignature = _sign(_keyOf(liar), _statementDigest(lie));
        uint256 supply = _supply();
        disputes.proveSignedContradiction(proof);
        _convictedNow(claim.job, claim.stage, claim.replica, supply);
    }

    /// @dev The last claim or the next to be final of the first lane, by job from `seed` on, that has one. `inTime`:
    /// one that can still be challenged.
    function _liveClaim(uint256 seed, uint256 laneSeed, bool inTime)
        internal
        view
        returns (bool, Claim memory claim, uint64)
    {
        uint64 count = jobs.jobCount();
        for (uint64 i = 0; i < count; ++i) {
            uint64 job = (uint64(seed % count) + i) % count + 1;
            (uint256 lane, uint16 stage, uint16 replica) = _lane(job, laneSeed);
            uint64[] storage times = _times[job][lane];
            uint256 interval = checkpoints.laneOf(job, stage, replica).finalized;
            // What is sealed is not a claim yet.
            if (!checkpoints.hasPending(job, stage, replica) || interval == times.length) continue;
            if (seed % 2 == 0 && checkpoints.laneOf(job, stage, replica).voidFrom >= times.length) {
                interval = times.length - 1;
            }
            claim = _made(job, stage, replica, uint32(interval));
            if (inTime && block.timestamp >= times[interval] + 2 * WINDOW) continue;
            return (true, claim, times[interval]);
        }
        return (false, claim, 0);
    }
}
