// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IAudits} from "../../contracts/interfaces/IAudits.sol";
import {IJobs} from "../../contracts/interfaces/IJobs.sol";
import {IStaking} from "../../contracts/interfaces/IStaking.sol";
import {AuditAnswer} from "../../contracts/types/Audit.sol";
import {JobKind, StepStatement} from "../../contracts/types/Types.sol";
import {AuditTest} from "./protocol/AuditTest.sol";
import {Signatures} from "./protocol/Signatures.sol";

/// @dev `accuse` and `penalise`, of claims and of receipts alike: how auditors answer for what they answered.
abstract contract AuditorsTest is AuditTest {
    function _kind() internal pure virtual returns (JobKind);

    function setUp() public override {
        super.setUp();
        _fix(_kind());
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
            emit IAudits.AuditorAccused(id, first, auditor, _statementDigest(statement));
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
        audits.penalise(audited, first);
        vm.warp(_quarter(2));
        // Of a receipt: the job is settled.
        vm.expectRevert(
            serving ? abi.encodeWithSelector(IAudits.ClaimIsVoid.selector) : _wrongState(IAudits.State.Penalised)
        );
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
        bytes memory signature = _byWorker(statement);
        bytes32 hash = Signatures.hash(statement);
        uint256 key = workers[AUDITED].key;
        if (flaw % 9 == 0) statement.claimId ^= noise;
        else if (flaw % 9 == 1) statement.auditor = stranger;
        else if (flaw % 9 == 2) statement.postState ^= noise;
        else if (flaw % 9 == 3) statement.trace ^= noise;
        else if (flaw % 9 == 4) signature = _sign(workers[0].key, _statementDigest(statement));
        else if (flaw % 9 == 5) signature = _sign(userKey, _statementDigest(statement));
        else if (flaw % 9 == 6) signature = _sign(key, Signatures.digest(block.chainid + 1, address(disputes), hash));
        else if (flaw % 9 == 7) signature = _sign(key, Signatures.digest(block.chainid, address(audits), hash));
        else signature = abi.encodePacked(noise);
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
        audits.penalise(audited, first);
        assertEq(sno.balanceOf(auditor) - before, PENALTY / 2);
        assertEq(sno.balanceOf(stranger), 0);
    }

    // penalise

    function test_penalise_onceTheClaimStands() public {
        _toSeed();
        _commitAnswer(second, _right());
        _answer(first, _wrong());
        _revealAnswer(second, _right());
        _accuse(first, _right());
        (uint256 supply, uint256 before) = (sno.totalSupply(), sno.balanceOf(auditor));
        _stand();
        vm.expectEmit(address(staking));
        emit IStaking.Penalised(first, PENALTY, PENALTY / 2, PENALTY / 2);
        vm.expectEmit(address(audits));
        emit IAudits.AuditorPenalised(id, first, auditor, PENALTY);
        audits.penalise(audited, first);

        assertEq(sno.balanceOf(auditor) - before, PENALTY / 2);
        assertEq(supply - sno.totalSupply(), PENALTY / 2);
        assertEq(_collateral(first), COLLATERAL - PENALTY);
        assertEq(_collateral(second), COLLATERAL);
        assertFalse(staking.isValidator(first), "what is left is not enough");
        vm.expectRevert(_wrongState(IAudits.State.Penalised));
        audits.penalise(audited, first);
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
            audits.penalise(audited, i == 0 ? first : i == 1 ? second : stranger);
        }
        assertEq(_collateral(first), COLLATERAL);
    }

    /// @dev P-31: an auditor that was right has convicted the worker, and is out of reach whatever comes.
    function testFuzz_penalise_notOnceTheWorkerIsConvicted(uint256 when) public {
        _answer(first, _right());
        _accuse(first, _wrong());
        vm.warp(bound(when, _quarter(1), _quarter(4) - 1));
        _convict();
        vm.expectRevert(IAudits.NotFinal.selector);
        audits.penalise(audited, first);
        if (serving) {
            _stand();
        } else {
            // The claim before it stands, and the job ends.
            vm.warp(_quarter(4));
            _finalize(auditedJob, AUDITED, 0, 0, 1, audited.fixedAt);
            jobs.settle(auditedJob);
        }
        skip(30 days);
        vm.expectRevert(IAudits.NotFinal.selector);
        audits.penalise(audited, first);
        assertEq(_collateral(first), COLLATERAL);
    }

    /// @dev Whoever leaves once it has answered is reached as long as a claim takes (P-9).
    function testFuzz_penalise_reachesWhatUnbonds(uint256 amount) public {
        _answer(first, _wrong());
        amount = bound(amount, 1, COLLATERAL);
        _unstake(first, amount);
        _accuse(first, _right());
        _stand();
        audits.penalise(audited, first);
        assertEq(_collateral(first), COLLATERAL - PENALTY);
        IStaking.Account memory left = staking.accountOf(first, IStaking.Role.Validator);
        uint256 bonded = COLLATERAL - amount;
        assertEq(left.bonded, bonded > PENALTY ? bonded - PENALTY : 0, "bonded first");
    }

    function _collateral(address who) internal view returns (uint256) {
        IStaking.Account memory account = staking.accountOf(who, IStaking.Role.Validator);
        return uint256(account.bonded) + account.unbonding;
    }
}

contract AuditorsOfClaimsTest is AuditorsTest {
    function _kind() internal pure override returns (JobKind) {
        return JobKind.Training;
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
        audits.penalise(audited, first);
        if (block.timestamp < _quarter(4)) _to(4);
        _finalize(auditedJob, AUDITED, 0, 0, 1, audited.fixedAt);
        vm.expectRevert(IAudits.NotFinal.selector);
        audits.penalise(audited, first);
        _finalize(auditedJob, AUDITED, 0, 1, 2, audited.fixedAt);
        audits.penalise(audited, first);
        _assertState(first, IAudits.State.Penalised);
    }

    /// @dev A lane convicted over a later claim: this one stands, and who was wrong about it is penalised.
    function test_penalise_overAClaimBeforeTheConvicted() public {
        uint64 when = audited.fixedAt;
        audited.claim = _claim(auditedJob, AUDITED, 0, 0);
        id = checkpoints.claimId(audited.claim);
        _answer(first, _wrong());
        _accuse(first, _right());
        (audited.claim, id) =
        (_claim(auditedJob, AUDITED, 0, 1), checkpoints.claimId(_claim(auditedJob, AUDITED, 0, 1)));
        _convict();
        audited.claim = _claim(auditedJob, AUDITED, 0, 0);
        _to(4);
        _finalize(auditedJob, AUDITED, 0, 0, 1, when);
        audits.penalise(audited, first);
        assertEq(_collateral(first), COLLATERAL - PENALTY);
    }
}

contract AuditorsOfReceiptsTest is AuditorsTest {
    function _kind() internal pure override returns (JobKind) {
        return JobKind.Serving;
    }

    /// @dev Of any length that a text can have: the worker's word says which it has.
    function testFuzz_accuse_aboutAnyLength(uint32 step) public {
        _answer(first, _wrong());
        StepStatement memory statement = _said(_right());
        statement.step = step % 4 == 0 ? step : step % (LONGEST + 2);
        bool possible = statement.step > 0 && statement.step <= LONGEST;
        bytes memory signature = _byWorker(statement);
        if (!possible) vm.expectRevert(IAudits.WrongStatement.selector);
        audits.accuse(audited, first, statement, signature);
        _assertState(first, possible ? IAudits.State.Accused : IAudits.State.Revealed);
    }

    /// @dev Once the job closes, who is accused has a quarter of the window until it is settled and nothing can be proved.
    function testFuzz_accuse_aQuarterBeforeSettlement(uint256 redeemed, uint256 noise) public {
        vm.prank(user);
        jobs.cancel(auditedJob);
        uint256 deadline = jobs.jobOf(auditedJob).deadline;
        skip(bound(redeemed, 1, WINDOW * 3 / 4 - 1));
        audited = _redeemReceipts(2, 0);
        _answer(first, _wrong());
        uint256 until = deadline - WINDOW / 4;
        uint256 time = noise % 4 == 0 ? _quarter(1) + noise / 4 % WINDOW : until + noise / 4 % 3 - 1;
        if (time > block.timestamp) vm.warp(time < deadline ? time : deadline - 1);

        StepStatement memory statement = _said(_right());
        bytes memory signature = _byWorker(statement);
        bool inTime = _expectInTime(1, 3);
        if (inTime && block.timestamp >= until) {
            vm.expectRevert(abi.encodeWithSelector(IAudits.OutOfTime.selector, audited.fixedAt, until));
        }
        audits.accuse(audited, first, statement, signature);
    }

    /// @dev Settled, and the lane never convicted over any receipt.
    function test_penalise_onceTheJobIsSettled() public {
        _answer(first, _wrong());
        _accuse(first, _right());
        skip(30 days);
        vm.expectRevert(IAudits.NotFinal.selector);
        audits.penalise(audited, first);
        vm.prank(user);
        jobs.cancel(auditedJob);
        skip(WINDOW);
        vm.expectRevert(IAudits.NotFinal.selector);
        audits.penalise(audited, first);
        jobs.settle(auditedJob);
        audits.penalise(audited, first);
        assertEq(_collateral(first), COLLATERAL - PENALTY);
    }

    /// @dev Whoever was convicted once is believed in nothing.
    function test_penalise_notOfALaneConvictedOverAnotherReceipt() public {
        _answer(first, _wrong());
        _accuse(first, _right());
        bytes32 answered = id;
        audited.claim = _receiptOf(77);
        id = checkpoints.claimId(audited.claim);
        _convict();
        (audited.claim, id) = (_receiptOf(0), answered);
        _stand();
        vm.expectRevert(IAudits.NotFinal.selector);
        audits.penalise(audited, first);
    }
}
