// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IAudits} from "../../../../contracts/interfaces/IAudits.sol";
import {IStaking} from "../../../../contracts/interfaces/IStaking.sol";
import {AuditAnswer} from "../../../../contracts/types/Audit.sol";
import {JobKind} from "../../../../contracts/types/Types.sol";
import {AuditTest} from "../../protocol/AuditTest.sol";

/// @dev What audits of receipts do not hold, each as it is now. Whoever mends one turns its test round.
contract AuditWeaknessesTest is AuditTest {
    function setUp() public override {
        super.setUp();
        _fix(JobKind.Serving);
    }

    /// @dev A worker that signs nothing about a receipt, or a trace of nothing, leaves an auditor that was right
    /// without its fee; it loses no more.
    function test_whatIsNotConfirmedIsNotPaid() public {
        _toSeed();
        _commitAnswer(first, _right());
        _to(1);
        AuditAnswer memory junk = _right();
        junk.trace = keccak256("nothing");
        vm.expectRevert(IAudits.WrongAnswer.selector);
        _revealAnswer(first, junk);
        vm.expectRevert(IAudits.WrongStatement.selector);
        vm.prank(first);
        audits.reveal(audited, _right(), SALT);
        _stand();
        assertEq(jobs.creditOf(first, address(sno)), 0);
        assertFalse(jobs.isConvicted(auditedJob, AUDITED, 0));
        assertEq(staking.accountOf(first, IStaking.Role.Validator).bonded, COLLATERAL);
    }

    /// @dev A receipt that stands in the lists of two epochs has two windows: in the second, who is drawn seals what
    /// was revealed in the first.
    function test_aReceiptOfTwoEpochsShowsItsAnswer() public {
        _toSeed();
        _commitAnswer(first, _right());
        _to(1);
        _revealAnswer(first, _right());
        audited = _redeemReceipts(2, 0);
        assertEq(checkpoints.claimId(audited.claim), id);
        _toSeed();
        // What stands in the event of the first.
        _commitAnswer(second, _right());
        _to(1);
        _revealAnswer(second, _right());
        assertEq(jobs.creditOf(second, address(sno)), jobs.creditOf(first, address(sno)));
        // One answer for each, whatever the epoch.
        vm.expectRevert(_wrongState(IAudits.State.Revealed));
        _revealAnswer(first, _right());
    }
}
