// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IAudits} from "../../../../contracts/interfaces/IAudits.sol";
import {IJobs} from "../../../../contracts/interfaces/IJobs.sol";
import {IStaking} from "../../../../contracts/interfaces/IStaking.sol";
import {AuditAnswer} from "../../../../contracts/types/Audit.sol";
import {Claim, JobKind, JobTerms, StepStatement} from "../../../../contracts/types/Types.sol";
import {AuditTest} from "../../protocol/AuditTest.sol";

/// @dev `accuse` and `penalise`: how auditors of claims on record answer for what they answered.
contract AuditorsOfClaimsTest is AuditTest {
    function setUp() public override {
        super.setUp();
        _fix(JobKind.Training);
    }

    // accuse

    function testFuzz_accuse_untilTheLastQuarter(uint256 noise) public {
        _answer(first, _wrong());
        uint256 time = _someTime(noise);
        if (time > block.timestamp) vm.warp(time);
        StepStatement memory statement = _said(_right());
        bytes memory signature = _byWorker(statement);
        bool inTime = block.timestamp < _quarter(3);
        if (inTime) {
            vm.expectEmit(address(audits));
            emit IAudits.AuditorAccused(id, first, statement, signature);
        }
        _expectInTime(1, 3);
        audits.accuse(audited, first, statement, signature);
        _assertState(first, inTime ? IAudits.State.Accused : IAudits.State.Revealed);
    }

    /// @dev Nothing is said before all answers are sealed; who is accused has revealed its own.
    function test_accuse_onlyWhatIsRevealed() public {
        _toSeed();
        _commitAnswer(first, _wrong());
        StepStatement memory statement = _said(_right());
        bytes memory signature = _byWorker(statement);
        vm.warp(_quarter(1) - 1);
        _expectInTime(1, 3);
        audits.accuse(audited, first, statement, signature);
        _to(1);
        vm.expectRevert(_wrongState(IAudits.State.Sealed));
        audits.accuse(audited, first, statement, signature);
        vm.expectRevert(_wrongState(IAudits.State.None));
        audits.accuse(audited, second, statement, signature);
        _revealAnswer(first, _wrong());
        audits.accuse(audited, first, statement, signature);
        vm.expectRevert(_wrongState(IAudits.State.Accused));
        audits.accuse(audited, first, statement, signature);
        _stand();
        audits.penalise(audited.claim, first);
        vm.warp(_quarter(2));
        vm.expectRevert(_wrongState(IAudits.State.Penalised));
        audits.accuse(audited, first, statement, signature);
    }

    function test_accuse_notOverWhatIsVoid() public {
        _answer(first, _wrong());
        _convict();
        StepStatement memory statement = _said(_right());
        bytes memory signature = _byWorker(statement);
        vm.expectRevert(IAudits.ClaimIsVoid.selector);
        audits.accuse(audited, first, statement, signature);
    }

    /// @dev Who answered what the worker signs is accused by nothing that it signs, and so by no honest one.
    function testFuzz_accuse_onlyByAnotherAnswer(uint8 other, bytes32 noise, bytes32 postState) public {
        vm.assume(noise != 0);
        _answer(first, _right());
        StepStatement memory statement = _said(_right());
        // What an auditor does not answer accuses nobody.
        (statement.postState, statement.auditor) = (postState, address(uint160(uint256(noise))));
        bytes memory signature = _byWorker(statement);
        vm.expectRevert(IAudits.WrongStatement.selector);
        audits.accuse(audited, first, statement, signature);

        if (other % 2 == 0) statement.trace ^= noise;
        else statement.preState ^= noise;
        audits.accuse(audited, first, statement, _byWorker(statement));
        _assertState(first, IAudits.State.Accused);
    }

    /// @dev The worker's own word about this claim, for this chain and contract.
    function testFuzz_accuse_onlyByTheWorkersWord(uint8 flaw, bytes32 noise) public {
        vm.assume(noise != 0);
        _answer(first, _wrong());
        StepStatement memory statement = _said(_right());
        bytes memory signature = _notTheWorkersWord(statement, flaw, noise);
        vm.expectRevert(IAudits.WrongStatement.selector);
        audits.accuse(audited, first, statement, signature);
        if (flaw % 9 != 0) return;
        // Signed as it is: a statement about another claim.
        signature = _byWorker(statement);
        vm.expectRevert(IAudits.WrongStatement.selector);
        audits.accuse(audited, first, statement, signature);
    }

    /// @dev The jackpot is the statement's auditor's, whoever sends it; the first accusation counts.
    function testFuzz_accuse_paysWhoTheStatementNames(address sender) public {
        _answer(first, _wrong());
        StepStatement memory statement = _said(_right());
        bytes memory signature = _byWorker(statement);
        vm.prank(sender);
        audits.accuse(audited, first, statement, signature);
        statement.auditor = stranger;
        signature = _byWorker(statement);
        vm.expectRevert(_wrongState(IAudits.State.Accused));
        audits.accuse(audited, first, statement, signature);
        _stand();
        uint256 before = sno.balanceOf(auditor);
        vm.prank(stranger);
        audits.penalise(audited.claim, first);
        assertEq(sno.balanceOf(auditor) - before, _penalty() / 2);
        assertEq(sno.balanceOf(stranger), 0);
    }

    // penalise

    function test_penalise_onceTheClaimStands() public {
        _toSeed();
        _commitAnswer(second, _right());
        _answer(first, _wrong());
        _revealAnswer(second, _right());
        _accuse(first, _right());
        (uint256 supply, uint256 before) = (_supply(), sno.balanceOf(auditor));
        _stand();
        vm.expectEmit(address(staking));
        emit IStaking.Penalised(first, _penalty(), _penalty() / 2, _penalty() / 2);
        vm.expectEmit(address(audits));
        emit IAudits.AuditorPenalised(id, first, auditor, _penalty());
        audits.penalise(audited.claim, first);

        assertEq(sno.balanceOf(auditor) - before, _penalty() / 2);
        assertEq(supply - _supply(), _penalty() / 2);
        assertEq(_collateral(first), COLLATERAL - _penalty());
        assertEq(_collateral(second), COLLATERAL);
        assertFalse(staking.isValidator(first), "what is left is not enough");
        vm.expectRevert(_wrongState(IAudits.State.Penalised));
        audits.penalise(audited.claim, first);
    }

    function test_penalise_onlyTheAccused() public {
        _toSeed();
        _commitAnswer(first, _wrong());
        _commitAnswer(second, _wrong());
        _to(1);
        _revealAnswer(first, _wrong());
        _stand();
        for (uint256 i = 0; i < 3; ++i) {
            IAudits.State state = i == 0 ? IAudits.State.Revealed : i == 1 ? IAudits.State.Sealed : IAudits.State.None;
            vm.expectRevert(_wrongState(state));
            audits.penalise(audited.claim, i == 0 ? first : i == 1 ? second : stranger);
        }
        assertEq(_collateral(first), COLLATERAL);
    }

    /// @dev P-32: an auditor that was right has convicted the worker, and is out of reach whatever comes.
    function testFuzz_penalise_notOnceTheWorkerIsConvicted(uint256 when) public {
        _answer(first, _right());
        _accuse(first, _wrong());
        vm.warp(bound(when, _quarter(1), _quarter(4) - 1));
        _convict();
        vm.expectRevert(IAudits.NotFinal.selector);
        audits.penalise(audited.claim, first);
        // The claim before it stands, and the job ends.
        vm.warp(_quarter(4));
        _finalize(auditedJob, AUDITED, 0, 0, 1, audited.fixedAt);
        jobs.settle(auditedJob);
        skip(30 days);
        vm.expectRevert(IAudits.NotFinal.selector);
        audits.penalise(audited.claim, first);
        assertEq(_collateral(first), COLLATERAL);
    }

    /// @dev Whoever leaves once it has answered is reached as long as a claim takes (P-9).
    function testFuzz_penalise_reachesWhatUnbonds(uint256 amount) public {
        _answer(first, _wrong());
        amount = bound(amount, 1, COLLATERAL);
        _unstake(first, amount);
        _accuse(first, _right());
        _stand();
        audits.penalise(audited.claim, first);
        assertEq(_collateral(first), COLLATERAL - _penalty());
        IStaking.Account memory left = staking.accountOf(first, IStaking.Role.Validator);
        uint256 bonded = COLLATERAL - amount;
        assertEq(left.bonded, bonded > _penalty() ? bonded - _penalty() : 0, "bonded first");
    }

    /// @dev P-32: no more than the worker risks that signed what accuses, be it less than the share of the collateral.
    function testFuzz_penalise_noMoreThanTheLanesStake(uint128 stake) public {
        _stake(workers[0].addr, IStaking.Role.Worker, STAKE);
        _stake(workers[1].addr, IStaking.Role.Worker, STAKE);
        JobTerms memory terms = _terms(address(sno), 2, 1, 2);
        terms.workerStake = uint128(bound(stake, parameters.disputeBond, 2 * _penalty()));
        uint256 penalty = terms.workerStake < _penalty() ? terms.workerStake : _penalty();
        _fix(JobKind.Training, terms);
        _answer(first, _wrong());
        _accuse(first, _right());
        _stand();
        (uint256 supply, uint256 before) = (_supply(), sno.balanceOf(auditor));
        vm.expectEmit(address(audits));
        emit IAudits.AuditorPenalised(id, first, auditor, penalty);
        audits.penalise(audited.claim, first);
        assertEq(_collateral(first), COLLATERAL - penalty);
        assertEq(sno.balanceOf(auditor) - before, penalty / 2);
        assertEq(supply - _supply(), penalty - penalty / 2);
    }

    function _collateral(address who) private view returns (uint256) {
        IStaking.Account memory account = staking.accountOf(who, IStaking.Role.Validator);
        return uint256(account.bonded) + account.unbonding;
    }

    /// @dev Answers are compared about the claim's last step only; no other step accuses, however it was signed.
    function testFuzz_accuse_onlyAboutTheLastStep(uint32 step) public {
        _answer(first, _wrong());
        StepStatement memory statement = _said(_right());
        vm.assume(step != statement.step);
        statement.step = step % 3 == 0 ? step : step % (3 * STEPS);
        if (statement.step == 2 * STEPS - 1) return;
        bytes memory signature = _byWorker(statement);
        vm.expectRevert(IAudits.WrongStatement.selector);
        audits.accuse(audited, first, statement, signature);
    }

    /// @dev Who answers about another step is accused by the worker's word about the last.
    function test_accuse_whoAnswersAboutAnotherStep() public {
        AuditAnswer memory answer = _right();
        answer.step -= 1;
        _answer(first, answer);
        _accuse(first, _right());
        _assertState(first, IAudits.State.Accused);
    }

    /// @dev The window alone does not do: the claim is to be final.
    function testFuzz_penalise_onlyOverFinalClaims(uint256 when) public {
        _answer(first, _wrong());
        _accuse(first, _right());
        vm.warp(bound(when, _quarter(1), _quarter(4) + 1 days));
        vm.expectRevert(IAudits.NotFinal.selector);
        audits.penalise(audited.claim, first);
        if (block.timestamp < _quarter(4)) _to(4);
        _finalize(auditedJob, AUDITED, 0, 0, 1, audited.fixedAt);
        vm.expectRevert(IAudits.NotFinal.selector);
        audits.penalise(audited.claim, first);
        _finalize(auditedJob, AUDITED, 0, 1, 2, audited.fixedAt);
        audits.penalise(audited.claim, first);
        _assertState(first, IAudits.State.Penalised);
    }

    /// @dev A lane convicted over a later claim, before or after this one is final: this one stands, and who was wrong
    /// about it is penalised.
    function testFuzz_penalise_overAClaimBeforeTheConvicted(bool finalFirst) public {
        uint64 when = audited.fixedAt;
        (Claim memory earlier, Claim memory later) = (_claim(auditedJob, AUDITED, 0, 0), audited.claim);
        (audited.claim, id) = (earlier, checkpoints.claimId(earlier));
        _answer(first, _wrong());
        _accuse(first, _right());
        for (uint256 i = 0; i < 2; ++i) {
            if (finalFirst == (i == 0)) {
                _to(4);
                audited.claim = earlier;
                _finalize(auditedJob, AUDITED, 0, 0, 1, when);
            } else {
                (audited.claim, id) = (later, checkpoints.claimId(later));
                _convict();
            }
        }
        assertTrue(disputes.isConvicted(auditedJob, AUDITED, 0, 1));
        (audited.claim, id) = (earlier, checkpoints.claimId(earlier));
        audits.penalise(audited.claim, first);
        assertEq(_collateral(first), COLLATERAL - _penalty());
    }
}

/// @dev Over receipts nobody is accused, and so nobody is penalised but for a copy (`AuditCopies.t.sol`).
contract AuditorsOfReceiptsTest is AuditTest {
    function setUp() public override {
        super.setUp();
        _fix(JobKind.Serving);
    }

    /// @dev Whatever the worker signs, whenever, and how far the auditor has come.
    function testFuzz_accuse_nobody(uint256 noise, uint8 state, StepStatement memory statement) public {
        state %= 3;
        if (noise % 2 == 0) {
            bytes32 trace = statement.trace;
            statement = _said(_right());
            statement.trace = trace;
        }
        if (state > 0) {
            _toSeed();
            _commitAnswer(first, _wrong());
        }
        if (state > 1) {
            _to(1);
            _revealAnswer(first, _wrong());
        }
        uint256 time = _someTime(noise / 2);
        if (time > block.timestamp) vm.warp(time);
        bytes memory signature = _byWorker(statement);
        vm.expectRevert(IAudits.WrongStatement.selector);
        audits.accuse(audited, first, statement, signature);
        _isOutOfReach(IAudits.State(state));
    }

    /// @dev Nor once the lane is convicted, or the job is settled.
    function test_accuse_nobodyOverWhatIsDecided() public {
        _answer(first, _wrong());
        StepStatement memory statement = _said(_right());
        bytes memory signature = _byWorker(statement);
        _convict();
        for (uint256 i = 0; i < 2; ++i) {
            vm.expectRevert(IAudits.WrongStatement.selector);
            audits.accuse(audited, first, statement, signature);
            _isOutOfReach(IAudits.State.Revealed);
            if (i == 0) _stand();
        }
    }

    /// @dev A job that runs, one that is settled, and long after.
    function _isOutOfReach(IAudits.State state) private {
        uint256 start = vm.snapshotState();
        for (uint256 i = 0; i < 3; ++i) {
            if (i == 1 && _stateOfJob(auditedJob) != IJobs.State.Settled) _stand();
            if (i == 2) skip(30 days);
            _assertState(first, state);
            vm.expectRevert(_wrongState(state));
            audits.penalise(audited.claim, first);
        }
        assertEq(staking.accountOf(first, IStaking.Role.Validator).bonded, COLLATERAL);
        vm.revertToState(start);
    }
}
