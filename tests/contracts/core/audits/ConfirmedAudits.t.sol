// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IAudits} from "../../../../contracts/interfaces/IAudits.sol";
import {IJobs} from "../../../../contracts/interfaces/IJobs.sol";
import {AuditAnswer, AuditedClaim} from "../../../../contracts/types/Audit.sol";
import {Claim, JobKind, StepStatement} from "../../../../contracts/types/Types.sol";
import {AuditsTest} from "./Audits.t.sol";

/// @dev `revealConfirmed`: all that `AuditsTest` says of reveals, and whose word confirms an answer.
abstract contract ConfirmedAuditsTest is AuditsTest {
    function _confirmed() internal pure override returns (bool) {
        return true;
    }

    /// @dev The worker's own word about this claim, for this chain and contract.
    function testFuzz_confirm_onlyByTheWorkersWord(uint8 flaw, bytes32 noise) public {
        vm.assume(noise != 0);
        StepStatement memory statement = _sealedAndSaid();
        bytes memory signature = _notTheWorkersWord(statement, flaw, noise);
        vm.expectRevert(IAudits.WrongStatement.selector);
        _confirm(first, statement, signature, SALT);
        if (flaw % 9 == 0) {
            // Signed as it is: a statement about another claim.
            signature = _byWorker(statement);
            vm.expectRevert(IAudits.WrongStatement.selector);
            _confirm(first, statement, signature, SALT);
        }
        _assertState(first, IAudits.State.Sealed);
        assertEq(jobs.creditOf(first, address(sno)), 0);
    }

    /// @dev An auditor confirms nothing itself.
    function test_confirm_notByTheAuditorsWord() public {
        Account memory validator = makeAccount("first validator");
        assertEq(validator.addr, first);
        StepStatement memory statement = _sealedAndSaid();
        bytes memory signature = _sign(validator.key, _statementDigest(statement));
        vm.expectRevert(IAudits.WrongStatement.selector);
        _confirm(first, statement, signature, SALT);
    }

    /// @dev What the worker says in another way than the auditor sealed it confirms nothing, until it says just that.
    function testFuzz_confirm_notAnotherAnswer(bool state, bytes32 noise) public {
        vm.assume(noise != 0);
        StepStatement memory statement = _sealedAndSaid();
        if (state) statement.preState ^= noise;
        else statement.trace ^= noise;
        bytes memory signature = _byWorker(statement);
        vm.expectRevert(IAudits.WrongAnswer.selector);
        _confirm(first, statement, signature, SALT);
        _assertState(first, IAudits.State.Sealed);
        _revealAnswer(first, _right());
        _assertState(first, IAudits.State.Revealed);
    }

    /// @dev To whomever the worker said it, and whatever state it says to come after.
    function testFuzz_confirm_whateverElseItSays(address to, bytes32 postState) public {
        StepStatement memory statement = _sealedAndSaid();
        (statement.auditor, statement.postState) = (to, postState);
        bytes memory signature = _byWorker(statement);
        vm.expectEmit(address(audits));
        emit IAudits.AuditRevealed(id, first, auditedJob, _right(), _fee());
        _confirm(first, statement, signature, SALT);
        assertEq(jobs.creditOf(first, address(sno)), _fee());
    }

    /// @dev Whose answer it confirms it does not say: that of everybody who has sealed the same.
    function test_confirm_ofEverybodyByOneWord() public {
        StepStatement memory statement = _sealedAndSaid();
        bytes memory signature = _byWorker(statement);
        vm.expectRevert(_wrongState(IAudits.State.None));
        _confirm(stranger, statement, signature, SALT);
        vm.expectRevert(IAudits.WrongAnswer.selector);
        _confirm(second, statement, signature, keccak256("another salt"));
        _confirm(first, statement, signature, SALT);
        _confirm(second, statement, signature, SALT);
        assertEq(jobs.creditOf(second, address(sno)), _fee());
    }

    /// @dev Both validators have sealed what is right, in time to reveal it; and what the worker says.
    function _sealedAndSaid() internal returns (StepStatement memory) {
        _toSeed();
        _commitAnswer(first, _right());
        _commitAnswer(second, _right());
        _to(1);
        return _said(_right());
    }
}

/// @dev Of a claim on record the worker's word changes nothing: an answer is revealed as without.
contract ConfirmedClaimAuditsTest is ConfirmedAuditsTest {
    function _kind() internal pure override returns (JobKind) {
        return JobKind.Training;
    }

    function _fee() internal pure override returns (uint256) {
        return uint256(PRICE) * 5 / 4;
    }

    /// @dev Words about the claim's last step only, even if another was sealed.
    function testFuzz_confirm_onlyAboutTheLastStep(uint32 step) public {
        AuditAnswer memory answer = _right();
        step = step % 3 == 0 ? step : step % (3 * STEPS);
        vm.assume(step != answer.step);
        answer.step = step;
        _toSeed();
        _commitAnswer(first, answer);
        _to(1);
        vm.expectRevert(IAudits.WrongStatement.selector);
        _revealAnswer(first, answer);
        vm.prank(first);
        audits.reveal(audited, answer, SALT);
        _assertState(first, IAudits.State.Revealed);
    }

    /// @dev Who answers what the worker said answers for it as anybody.
    function test_theConfirmedIsAccusedAsWell() public {
        _answer(first, _wrong());
        vm.expectRevert(IAudits.WrongStatement.selector);
        _accuse(first, _wrong());
        _accuse(first, _right());
        _stand();
        audits.penalise(audited.claim, first);
        _assertState(first, IAudits.State.Penalised);
    }

    function test_reveal_onceByEitherWay() public {
        _answer(first, _right());
        vm.expectRevert(_wrongState(IAudits.State.Revealed));
        vm.prank(first);
        audits.reveal(audited, _right(), SALT);
        assertEq(jobs.creditOf(first, address(sno)), _fee());
    }
}

contract ReceiptAuditsTest is ConfirmedAuditsTest {
    function _kind() internal pure override returns (JobKind) {
        return JobKind.Serving;
    }

    /// @dev `auditFeeBps` of the price of the text's tokens.
    function _fee() internal pure override returns (uint256) {
        return uint256(PRICE) * TOKENS * 5 / 4;
    }

    function testFuzz_reveal_notWithoutTheWorkersWord(uint256 noise, bool revealed) public {
        _toSeed();
        _commitAnswer(first, _right());
        if (revealed) {
            _to(1);
            _revealAnswer(first, _right());
        }
        uint256 time = _someTime(noise);
        if (time > block.timestamp) vm.warp(time);
        vm.expectRevert(IAudits.WrongStatement.selector);
        vm.prank(first);
        audits.reveal(audited, _right(), SALT);
        _assertState(first, revealed ? IAudits.State.Revealed : IAudits.State.Sealed);
        assertEq(jobs.creditOf(first, address(sno)), revealed ? _fee() : 0);
    }

    /// @dev Of any length that a text can have: auditor and worker say the same one, and it is paid for.
    function testFuzz_confirm_aboutAnyLength(uint32 tokens) public {
        AuditAnswer memory answer = _right();
        answer.step = tokens % 4 == 0 ? tokens : tokens % (LONGEST + 2);
        _toSeed();
        _commitAnswer(first, answer);
        _to(1);
        bool possible = answer.step > 0 && answer.step <= LONGEST;
        if (!possible) vm.expectRevert(IAudits.WrongStatement.selector);
        _revealAnswer(first, answer);
        _assertState(first, possible ? IAudits.State.Revealed : IAudits.State.Sealed);
        assertEq(jobs.creditOf(first, address(sno)), possible ? uint256(PRICE) * answer.step * 5 / 4 : 0);
    }

    /// @dev What the worker says about another receipt of the same list, with the same answer.
    function test_confirm_notByAWordAboutAnotherReceipt() public {
        _toSeed();
        _commitAnswer(first, _right());
        _to(1);
        StepStatement memory statement = _said(_right());
        statement.claimId = checkpoints.claimId(_receiptOf(1));
        bytes memory signature = _byWorker(statement);
        vm.expectRevert(IAudits.WrongStatement.selector);
        _confirm(first, statement, signature, SALT);
    }

    /// @dev Every receipt of a list of any length, and of another epoch.
    function testFuzz_everyReceiptOfAList(uint8 length, uint8 index) public {
        bytes32[] memory ids = new bytes32[](bound(length, 1, 40));
        index = uint8(index % ids.length);
        for (uint32 i = 0; i < ids.length; ++i) {
            ids[i] = checkpoints.claimId(_receiptOf(100 + i));
        }
        skip(1);
        audited = _redeemList(2, _receiptOf(100 + index), ids, index);
        id = ids[index];
        _toSeed();
        _commitAnswer(first, _right());
        _assertState(first, IAudits.State.Sealed);
        if (ids.length == 1) return;
        audited.index ^= 1;
        _unknown(audited);
    }

    /// @dev An epoch that was redeemed and whose list holds the claim: nothing else. Not one whose voucher was
    /// only signed.
    function test_notBeforeItIsRedeemed() public {
        AuditedClaim memory other = audited;
        (other.epoch, other.fixedAt, other.receipts) = (2, 0, 0);
        _toSeed();
        _unknown(other);
    }

    /// @dev No proof is heard about a receipt of another form (C-12), so nobody answers about one either: a false word
    /// about it convicts nobody.
    function test_onlyReceiptsOfTheRightForm() public {
        for (uint256 i = 0; i < 2; ++i) {
            Claim memory receipt = _receiptOf(50);
            if (i == 0) receipt.parentState = keccak256("a state");
            else receipt.newState = keccak256("a state");
            bytes32[] memory ids = new bytes32[](1);
            ids[0] = checkpoints.claimId(receipt);
            skip(1);
            audited = _redeemList(uint32(2 + i), receipt, ids, 0);
            _toSeed();
            _unknown(audited);
        }
    }

    /// @dev P-20: what is redeemed in the last moment has its whole window: drawn for, answered, paid, and its worker
    /// convictable to the end.
    function test_whatIsRedeemedLastIsAudited() public {
        vm.prank(user);
        jobs.cancel(auditedJob);
        vm.warp(jobs.jobOf(auditedJob).deadline - 1);
        audited = _redeemReceipts(2, 0);
        skip(1);
        uint40 from = uint40(audited.fixedAt + WINDOW);
        vm.expectRevert(abi.encodeWithSelector(IJobs.WindowOpen.selector, from));
        jobs.settle(auditedJob);
        _answer(first, _right());
        assertEq(jobs.creditOf(first, address(sno)), uint256(TOKENS) * PRICE * _parameters().auditFeeBps / 10_000);
        vm.warp(from - 1);
        vm.expectRevert(abi.encodeWithSelector(IJobs.WindowOpen.selector, from));
        jobs.settle(auditedJob);
        _convict();
        assertTrue(jobs.isConvicted(auditedJob, AUDITED, 0));
        assertEq(_staked(workers[AUDITED].addr).locked, 0);
        skip(1);
        jobs.settle(auditedJob);
    }

    /// @dev The job's end takes the budget with it.
    function test_nothingIsAuditedInASettledJob() public {
        _toSeed();
        _commitAnswer(first, _right());
        _stand();
        vm.warp(_quarter(1) - 1);
        bytes32 sealedAnswer = _sealOf(second, _right());
        vm.expectRevert(IAudits.ClaimIsVoid.selector);
        vm.prank(second);
        audits.commit(audited, sealedAnswer);
        _to(1);
        vm.expectEmit(address(audits));
        emit IAudits.AuditRevealed(id, first, auditedJob, _right(), 0);
        _revealAnswer(first, _right());
        assertEq(jobs.creditOf(first, address(sno)), 0);
    }
}
