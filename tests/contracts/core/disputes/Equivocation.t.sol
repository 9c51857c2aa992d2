// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {ICheckpoints} from "../../../../contracts/interfaces/ICheckpoints.sol";
import {IDisputes} from "../../../../contracts/interfaces/IDisputes.sol";
import {IStaking} from "../../../../contracts/interfaces/IStaking.sol";
import {IChallengeAnswers} from "../../../../contracts/interfaces/challenges/IChallengeAnswers.sol";
import {BoundaryLogs, Claim, ClaimLink, EdgeLog, EquivocationProof} from "../../../../contracts/types/Types.sol";
import {ChallengeTest} from "../../protocol/ChallengeTest.sol";

/// @dev Blame between stages: what a worker signed to its neighbours, and what it claims.
contract EquivocationTest is ChallengeTest {
    bytes32 private constant OTHER = keccak256("another log");

    function setUp() public override {
        super.setUp();
        claim = _commitTraining(0);
    }

    function test_convictsTowardsEitherNeighbour() public {
        for (uint16 side = 0; side < 2; ++side) {
            uint256 snapshot = vm.snapshotState();
            uint16 neighbour = side == 0 ? 0 : 2;
            EquivocationProof memory proof = _proof(side == 1, OTHER);
            vm.expectEmit(address(disputes));
            emit IDisputes.Convicted(
                job,
                workers[STAGE].addr,
                workers[neighbour].addr,
                STAGE,
                0,
                checkpoints.claimId(claim),
                IDisputes.Fault.Equivocation,
                0,
                0,
                0,
                0,
                0
            );
            // Whoever sends it: the bounty is the neighbour's.
            vm.prank(stranger);
            disputes.proveEquivocation(proof);
            assertEq(_staked(workers[STAGE].addr).bonded, 0);
            assertEq(sno.balanceOf(workers[neighbour].addr), STAKE / 4);
            assertEq(sno.balanceOf(stranger), 0);
            assertTrue(disputes.isConvicted(job, STAGE, 0, 0));
            vm.revertToState(snapshot);
        }
    }

    /// @dev P-15: who claims what it signed has nothing to fear, towards neither side.
    function test_notOfTheHonest() public {
        BoundaryLogs memory logs = _logsOf(0);
        _refused(_proof(true, logs.toNext), IDisputes.NoFault.selector);
        _refused(_proof(false, logs.toPrevious), IDisputes.NoFault.selector);
    }

    function testFuzz_onlyItsOwnWordAboutThisIntervalAndEdge(uint8 flaw, bytes32 root) public {
        EdgeLog memory log = EdgeLog(job, 0, STAGE, STAGE + 1, 0, root);
        flaw = flaw % 7;
        if (flaw == 0) log.job += 1;
        else if (flaw == 1) log.replica = 1;
        else if (flaw == 2) log.fromStage = 0;
        else if (flaw == 3) log.toStage = 0;
        else if (flaw == 4) log.interval = 1;
        else if (flaw == 5) log.root = ~root;
        EquivocationProof memory proof = _proof(true, root);
        proof.signature = _sign(workers[flaw == 6 ? 2 : STAGE].key, _edgeLogDigest(log));
        _refused(proof, IDisputes.BadSignature.selector);
    }

    function test_onlyAboutALiveClaimAndItsLogs() public {
        EquivocationProof memory proof = _proof(true, OTHER);
        proof.logs.toNext = OTHER;
        _refused(proof, IDisputes.WrongLogs.selector);
        proof = _proof(true, OTHER);
        proof.committedAt += 1;
        _refused(proof, ICheckpoints.UnknownClaim.selector);
        disputes.proveEquivocation(_proof(true, OTHER));
        _refused(_proof(true, OTHER), ICheckpoints.ClaimIsVoid.selector);
    }

    /// @dev A neighbour may claim when the sender's claim is final: the stake is at risk until the job is settled, and
    /// what is final stays.
    function test_aFinalClaimIsNoRefuge() public {
        uint64 when = committedAt;
        skip(WINDOW);
        (Claim[] memory claims, uint64[] memory times) = (new Claim[](1), new uint64[](1));
        (claims[0], times[0]) = (claim, when);
        checkpoints.finalize(claims, times, _heldByUser(claims));
        uint256 snapshot = vm.snapshotState();
        _addValidator();
        disputes.proveEquivocation(_proof(true, OTHER));
        vm.snapshotGasLastCall("conviction", "proveEquivocation");
        assertEq(_staked(workers[STAGE].addr).bonded, 0);
        assertFalse(disputes.isConvicted(job, STAGE, 0, 0), "what is final stays final");
        assertTrue(disputes.isConvicted(job, STAGE, 0, 1));
        assertEq(jobs.creditOf(workers[STAGE].addr, address(sno)), PRICE);
        _refused(_proof(true, OTHER), ICheckpoints.ClaimIsVoid.selector);
        vm.revertToState(snapshot);
        vm.prank(user);
        jobs.cancel(job);
        jobs.settle(job);
        _refused(_proof(true, OTHER), ICheckpoints.UnknownClaim.selector);
        assertEq(_staked(workers[STAGE].addr).bonded, STAKE, "a stake that is free is nobody's to take");
    }

    /// @dev A receipt binds nobody without its worker's signature, and so no log signed by anyone proves anything
    /// about one.
    function test_notAboutReceipts() public {
        _stake(workers[0].addr, IStaking.Role.Worker, STAKE);
        _stake(workers[STAGE].addr, IStaking.Role.Worker, STAKE);
        uint64 serving = _run(_servingTerms(address(sno), 2, 1, 100));
        EquivocationProof memory proof;
        proof.claim.job = serving;
        proof.claim.io = keccak256(abi.encode(proof.logs));
        (proof.toNext, proof.root) = (true, OTHER);
        proof.signature = _sign(workers[0].key, _edgeLogDigest(EdgeLog(serving, 0, 0, 1, 0, OTHER)));
        _refused(proof, ICheckpoints.UnknownClaim.selector);
    }

    /// @dev A log that leaves a neighbour out of what the program computes from has no answer, and so costs the stake.
    function test_whoLeavesANeighbourOutIsSilenced() public {
        BoundaryLogs memory logs = _logsOf(1);
        logs.fromPrevious = 0;
        Claim memory second = _trainingClaim(1);
        second.io = keccak256(abi.encode(logs));
        ClaimLink memory link = _link(claim, committedAt);
        vm.prank(workers[STAGE].addr);
        checkpoints.commit(second, link);
        claim = second;
        uint256 id = _challenge();
        _answer(id);
        vm.prank(auditor);
        challenges.askLogs(id, positions[id]);
        _follow();
        vm.expectRevert(IChallengeAnswers.WrongLogs.selector);
        vm.prank(workers[STAGE].addr);
        challenges.answerLogs(id, positions[id], factsOf[id], claim, _logsAnswer());
        vm.roll(block.number + 10);
        skip(1 days);
        challenges.timeout(id);
        assertTrue(disputes.isConvicted(job, STAGE, 0, 1));
        assertFalse(disputes.isConvicted(job, STAGE, 0, 0));
    }

    function _proof(bool toNext, bytes32 root) private view returns (EquivocationProof memory proof) {
        (proof.claim, proof.committedAt, proof.logs) = (claim, committedAt, _logsOf(0));
        (proof.toNext, proof.root) = (toNext, root);
        EdgeLog memory log = EdgeLog(job, 0, STAGE, toNext ? STAGE + 1 : STAGE - 1, 0, root);
        proof.signature = _sign(workers[STAGE].key, _edgeLogDigest(log));
    }

    function _refused(EquivocationProof memory proof, bytes4 reason) private {
        vm.expectRevert(reason);
        disputes.proveEquivocation(proof);
    }
}
