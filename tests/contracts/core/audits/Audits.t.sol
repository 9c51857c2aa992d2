// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IAudits} from "../../../../contracts/interfaces/IAudits.sol";
import {IStaking} from "../../../../contracts/interfaces/IStaking.sol";
import {IJobPayments} from "../../../../contracts/interfaces/jobs/IJobPayments.sol";
import {AuditAnswer, AuditedClaim} from "../../../../contracts/types/Audit.sol";
import {JobKind, JobTerms, StepStatement} from "../../../../contracts/types/Types.sol";
import {AuditTest} from "../../protocol/AuditTest.sol";

/// @dev `commit` and the reveals: what of `IAudits` holds of claims and of receipts alike. What a worker confirms:
/// `ConfirmedAudits.t.sol`; accusations: `Auditors.t.sol`.
abstract contract AuditsTest is AuditTest {
    function _kind() internal pure virtual returns (JobKind);
    function _fee() internal pure virtual returns (uint256);

    function setUp() public override {
        super.setUp();
        _fix(_kind());
    }

    // commit

    function testFuzz_commit_inTheFirstQuarter(uint256 noise) public {
        _toSeed();
        uint256 time = _someTime(noise);
        if (time > block.timestamp) vm.warp(time);
        bytes32 sealedAnswer = _sealOf(first, _right());
        bool inTime = block.timestamp < _quarter(1);
        if (inTime) {
            vm.expectEmit(address(audits));
            emit IAudits.AuditSealed(id, first);
        }
        _expectInTime(0, 1);
        vm.prank(first);
        audits.commit(audited, sealedAnswer);
        _assertState(first, inTime ? IAudits.State.Sealed : IAudits.State.None);
    }

    function testFuzz_commit_onceTheSeedIsThere(uint256 time) public {
        vm.warp(bound(time, audited.fixedAt, _quarter(1) - 1));
        uint64 period = beacon.periodAfter(audited.fixedAt);
        bytes memory noSeed = abi.encodeWithSelector(IAudits.NoSeed.selector, period);
        vm.expectRevert(noSeed);
        _commitByFirst();
        vm.expectRevert(noSeed);
        audits.isDrawn(id, audited.fixedAt, first);
        // Another period's seed draws nobody.
        for (uint64 i = 0; i < 2; ++i) {
            uint256 state = vm.snapshotState();
            _recordSeed(i == 0 ? period - 1 : period + 1, SEED);
            vm.warp(_quarter(1) - 1);
            vm.expectRevert(noSeed);
            _commitByFirst();
            vm.revertToState(state);
        }
        _toSeed();
        _commitByFirst();
        _assertState(first, IAudits.State.Sealed);
    }

    /// @dev In one call, for a revert that is expected.
    function _commitByFirst() private {
        vm.prank(first);
        audits.commit(audited, SEED);
    }

    function testFuzz_commit_onlyWhoIsDrawn(address who) public {
        vm.assume(who != first && who != second);
        _toSeed();
        assertFalse(audits.isDrawn(id, audited.fixedAt, who));
        vm.expectRevert(abi.encodeWithSelector(IAudits.NotDrawn.selector, who));
        vm.prank(who);
        audits.commit(audited, SEED);
    }

    /// @dev Who leaves before it commits is no validator; and to come back is too late.
    function test_commit_notByWhoHasLeft() public {
        _toSeed();
        _unstake(first, 1);
        vm.expectRevert(abi.encodeWithSelector(IAudits.NotDrawn.selector, first));
        _commitByFirst();
        _stake(first, IStaking.Role.Validator, 1);
        vm.expectRevert(abi.encodeWithSelector(IAudits.NotDrawn.selector, first));
        _commitByFirst();
        _commitAnswer(second, _right());
    }

    function test_commit_once() public {
        _toSeed();
        _commitAnswer(first, _wrong());
        vm.expectRevert(_wrongState(IAudits.State.Sealed));
        _commitByFirst();
        _commitAnswer(second, _wrong());
        _to(1);
        _revealAnswer(first, _wrong());
        vm.warp(_quarter(1) - 1);
        vm.expectRevert(_wrongState(IAudits.State.Revealed));
        _commitByFirst();
    }

    function test_commit_notToWhatIsVoid() public {
        _toSeed();
        _convict();
        vm.expectRevert(IAudits.ClaimIsVoid.selector);
        _commitByFirst();
    }

    // reveal

    function testFuzz_reveal_inTheSecondQuarter(uint256 noise) public {
        _toSeed();
        _commitAnswer(first, _right());
        uint256 time = _someTime(noise);
        if (time > block.timestamp) vm.warp(time);
        bool inTime = _expectInTime(1, 2);
        _revealAnswer(first, _right());
        _assertState(first, inTime ? IAudits.State.Revealed : IAudits.State.Sealed);
        assertEq(jobs.creditOf(first, address(sno)), inTime ? _fee() : 0);
    }

    /// @dev Whatever is answered: what is wrong is for an accusation to show, or a proof about the worker that
    /// confirmed it.
    function testFuzz_reveal_paysOnce(bytes32 preState, bytes32 trace) public {
        AuditAnswer memory answer = _right();
        (answer.preState, answer.trace) = (preState, trace);
        _toSeed();
        _commitAnswer(first, answer);
        _to(1);
        uint256 escrow = jobs.jobOf(auditedJob).escrow;
        vm.expectEmit(address(jobs));
        emit IJobPayments.AuditPaid(auditedJob, first, AUDITED, 0, _fee());
        vm.expectEmit(address(audits));
        emit IAudits.AuditRevealed(id, first, auditedJob, answer, _fee());
        _revealAnswer(first, answer);
        assertEq(jobs.jobOf(auditedJob).escrow, escrow - _fee());
        vm.expectRevert(_wrongState(IAudits.State.Revealed));
        _revealAnswer(first, answer);
        vm.prank(first);
        assertEq(jobs.collect(address(sno)), _fee());
    }

    /// @dev A seal binds the answer, the salt, the claim and the auditor.
    function testFuzz_reveal_onlyWhatWasSealed(uint8 flaw, bytes32 noise) public {
        vm.assume(noise != 0);
        (AuditAnswer memory answer, bytes32 salt) = (_right(), SALT);
        _toSeed();
        _commitAnswer(first, answer);
        _to(1);
        if (flaw % 4 == 0) answer.step = answer.step == 2 ? 1 : 2;
        else if (flaw % 4 == 1) answer.preState ^= noise;
        else if (flaw % 4 == 2) answer.trace ^= noise;
        else salt ^= noise;
        // Confirmed of a claim on record, a step but its last is refused before.
        bool last = serving || !_confirmed() || flaw % 4 != 0;
        vm.expectRevert(last ? IAudits.WrongAnswer.selector : IAudits.WrongStatement.selector);
        _revealAnswer(first, answer, salt);
        _assertState(first, IAudits.State.Sealed);
    }

    /// @dev Who copies a seal has sealed nothing: what opens it names the other.
    function test_reveal_notWhatWasCopied() public {
        _toSeed();
        bytes32 sealedAnswer = _sealOf(first, _right());
        _commitAnswer(first, _right());
        vm.prank(second);
        audits.commit(audited, sealedAnswer);
        _to(1);
        _revealAnswer(first, _right());
        vm.expectRevert(IAudits.WrongAnswer.selector);
        _revealAnswer(second, _right());
        assertEq(jobs.creditOf(second, address(sno)), 0);
    }

    /// @dev One claim's seal, with the same answer and salt, opens no other's.
    function testFuzz_reveal_notAnotherClaims(bytes32 other) public {
        vm.assume(other != id);
        _toSeed();
        bytes32 sealedAnswer = keccak256(abi.encode(other, _right(), first, SALT));
        vm.prank(first);
        audits.commit(audited, sealedAnswer);
        _to(1);
        vm.expectRevert(IAudits.WrongAnswer.selector);
        _revealAnswer(first, _right());
    }

    function test_reveal_onlyWhoCommitted() public {
        _toSeed();
        _commitAnswer(first, _right());
        _to(1);
        vm.expectRevert(_wrongState(IAudits.State.None));
        _revealAnswer(second, _right());
        vm.expectRevert(_wrongState(IAudits.State.None));
        _revealAnswer(stranger, _right());
    }

    /// @dev Who has committed and left, or was penalised since, is paid for its work as well.
    function test_reveal_byWhoHasLeft() public {
        _toSeed();
        _commitAnswer(first, _right());
        // By a penalty: nobody leaves of its own accord who has sealed (P-46).
        vm.prank(address(audits));
        staking.penalise(first, 1, address(0));
        assertFalse(staking.isValidator(first));
        _to(1);
        _revealAnswer(first, _right());
        assertEq(jobs.creditOf(first, address(sno)), _fee());
    }

    /// @dev The work was done: a conviction in between does not take its fee.
    function test_reveal_paysOverWhatIsVoid() public {
        _toSeed();
        _commitAnswer(first, _right());
        _convict();
        _to(1);
        _revealAnswer(first, _right());
        assertEq(jobs.creditOf(first, address(sno)), _fee());
    }

    // What is audited

    /// @dev Another claim, another time, another list: nothing that is on chain.
    function testFuzz_onlyWhatIsOnChain(uint8 flaw, bytes32 noise) public {
        vm.assume(noise != 0);
        _toSeed();
        AuditedClaim memory other = audited;
        uint256 flaws = _kind() == JobKind.Serving ? 13 : 8;
        if (flaw % flaws == 0) other.claim.job += uint64(1) + uint8(noise[0]);
        else if (flaw % flaws == 1) other.claim.stage = 0;
        else if (flaw % flaws == 2) other.claim.replica = 1;
        else if (flaw % flaws == 3) other.claim.interval ^= 1;
        else if (flaw % flaws == 4) other.claim.parentState ^= noise;
        else if (flaw % flaws == 5) other.claim.newState ^= noise;
        else if (flaw % flaws == 6) other.claim.io ^= noise;
        else if (flaw % flaws == 7) other.fixedAt = uint64(uint256(noise)) | 1;
        else if (flaw % flaws == 8) other.epoch += 1;
        else if (flaw % flaws == 9) other.receipts ^= noise;
        else if (flaw % flaws == 10) other.index ^= uint32(1) << (uint8(noise[0]) % 32);
        else if (flaw % flaws == 11) other.siblings[0] ^= noise;
        else other.siblings = new bytes32[](uint8(noise[0]) % 2 == 0 ? 1 : 34);
        vm.assume(other.fixedAt != audited.fixedAt || flaw % flaws != 7);
        _unknown(other);
    }

    function _unknown(AuditedClaim memory other) internal {
        StepStatement memory statement = _said(_right());
        bytes memory signature = _byWorker(statement);
        vm.expectRevert(IAudits.UnknownClaim.selector);
        vm.prank(first);
        audits.commit(other, SEED);
        vm.expectRevert(IAudits.UnknownClaim.selector);
        vm.prank(first);
        audits.reveal(other, _right(), SALT);
        vm.expectRevert(IAudits.UnknownClaim.selector);
        vm.prank(first);
        audits.revealConfirmed(other, statement, signature, SALT);
        vm.expectRevert(IAudits.UnknownClaim.selector);
        audits.accuse(other, first, statement, signature);
    }
}

contract ClaimAuditsTest is AuditsTest {
    function _kind() internal pure override returns (JobKind) {
        return JobKind.Training;
    }

    /// @dev `auditFeeBps` of the price of an interval.
    function _fee() internal pure override returns (uint256) {
        return uint256(PRICE) * 5 / 4;
    }

    /// @dev Windows of any length: quarters are rounded down, and leave no second between them; of a window longer than
    /// four clocks of a challenge they are those of such four.
    function testFuzz_quartersOfOddWindows(uint32 window) public {
        _stake(workers[0].addr, IStaking.Role.Worker, STAKE);
        _stake(workers[1].addr, IStaking.Role.Worker, STAKE);
        JobTerms memory terms = _terms(address(sno), 2, 1, 2);
        terms.challengeWindow = uint32(bound(window, 1 hours, 7 days));
        _fix(JobKind.Training, terms);
        _toSeed();
        uint256 length = terms.challengeWindow < 4 * 12 hours ? terms.challengeWindow : 4 * 12 hours;
        (uint256 start, uint256 end) = (audited.fixedAt, audited.fixedAt + length / 4);
        vm.warp(end);
        bytes32 sealedAnswer = _sealOf(first, _wrong());
        vm.expectRevert(abi.encodeWithSelector(IAudits.OutOfTime.selector, start, end));
        vm.prank(first);
        audits.commit(audited, sealedAnswer);
        vm.warp(end - 1);
        _commitAnswer(first, _wrong());
        (start, end) = (end, audited.fixedAt + length / 2);
        vm.warp(end);
        vm.expectRevert(abi.encodeWithSelector(IAudits.OutOfTime.selector, start, end));
        _revealAnswer(first, _wrong());
        vm.warp(end - 1);
        _revealAnswer(first, _wrong());
        end = audited.fixedAt + length * 3 / 4;
        vm.warp(end);
        vm.expectRevert(abi.encodeWithSelector(IAudits.OutOfTime.selector, start, end));
        _accuse(first, _right());
        vm.warp(end - 1);
        _accuse(first, _right());
        _assertState(first, IAudits.State.Accused);
    }

    /// @dev What is final by then: a reveal is never so late.
    function test_noClaimIsFinalBeforeItsAuditIs() public {
        _answer(first, _wrong());
        vm.warp(_quarter(3) - 1);
        _accuse(first, _right());
        vm.warp(_quarter(4) - 1);
        vm.expectRevert(IAudits.NotFinal.selector);
        audits.penalise(audited.claim, first);
    }
}
