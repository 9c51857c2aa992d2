// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IAudits} from "../../../../contracts/interfaces/IAudits.sol";
import {IStaking} from "../../../../contracts/interfaces/IStaking.sol";
import {AuditAnswer} from "../../../../contracts/types/Audit.sol";
import {Claim, JobKind} from "../../../../contracts/types/Types.sol";
import {AuditTest} from "../../protocol/AuditTest.sol";

/// @dev P-45: half of the bounty of a convicted lane is for the auditors that had sealed, whoever convicts it. In these
/// tests that is the worker itself, in favour of a friend: `auditor`.
contract AuditSharesTest is AuditTest {
    /// @dev Of 50 % of a stake, half.
    uint256 private constant SHARED = STAKE / 4;

    function _share(address who) private view returns (uint256) {
        return audits.shareOf(audited.claim, who);
    }

    function _shareOf(address who, uint256 amount) private {
        assertEq(_share(who), amount);
        uint256 before = sno.balanceOf(who);
        vm.expectEmit(address(audits));
        emit IAudits.AuditorShared(id, who, auditedJob, amount);
        audits.payShare(audited.claim, who);
        assertEq(sno.balanceOf(who) - before, amount);
        _nothingFor(who);
    }

    function _nothingFor(address who) private {
        assertEq(_share(who), 0);
        vm.expectRevert(IAudits.NothingToShare.selector);
        audits.payShare(audited.claim, who);
    }

    /// @dev The finder's transaction comes too late, and yet it has what the worker's friend has.
    function test_whoConvictsItselfLeavesTheFinderAsMuchAsItsFriend() public {
        _fix(JobKind.Training);
        _toSeed();
        _commitAnswer(first, _right());
        uint256 friend = sno.balanceOf(auditor);
        _convict();
        assertEq(sno.balanceOf(auditor) - friend, STAKE / 2 - SHARED);
        assertEq(sno.balanceOf(address(audits)), SHARED);
        // Not before it has shown its answer.
        _nothingFor(first);
        _to(1);
        _revealAnswer(first, _right());
        _shareOf(first, SHARED);
        _nothingFor(second);
    }

    /// @dev Of a receipt whose worker confirms nothing: shown for nothing, it brings its share all the same.
    function test_ofReceiptsToo() public {
        _fix(JobKind.Serving);
        _toSeed();
        _commitAnswer(first, _right());
        _convict();
        vm.prank(first);
        audits.revealUnpaid(audited.claim, _right(), SALT);
        _shareOf(first, SHARED);
    }

    function test_allShareAlike() public {
        _fix(JobKind.Training);
        _toSeed();
        _commitAnswer(first, _right());
        _commitAnswer(second, _wrong());
        _to(1);
        _revealAnswer(first, _right());
        _revealAnswer(second, _wrong());
        _convict();
        _shareOf(first, SHARED / 2);
        _shareOf(second, SHARED / 2);
        assertEq(sno.balanceOf(address(audits)), 0);
    }

    /// @dev The worker convicts itself over a claim that nobody has looked at.
    function test_aClaimIsAsGoodAsAnother() public {
        _fix(JobKind.Training, _terms(address(sno), 2, 1, 3));
        _toSeed();
        _commitAnswer(first, _right());
        Claim memory seen = audited.claim;
        (audited.claim, audited.fixedAt) = _commit(auditedJob, AUDITED, 0, 2, audited.fixedAt);
        id = checkpoints.claimId(audited.claim);
        _convict();
        (audited.claim, id) = (seen, checkpoints.claimId(seen));
        vm.prank(first);
        audits.revealUnpaid(audited.claim, _right(), SALT);
        _shareOf(first, SHARED);
    }

    /// @dev Who was drawn in time and seals only once the lane is convicted.
    function test_nobodyJoinsAfterwards() public {
        _fix(JobKind.Training, _terms(address(sno), 2, 1, 3));
        _toSeed();
        _commitAnswer(first, _right());
        // Over a later claim, so that this one stands.
        vm.prank(address(disputes));
        jobs.convict(auditedJob, AUDITED, 0);
        vm.prank(address(disputes));
        assertTrue(audits.closeSeals(auditedJob, AUDITED, 0));
        _commitAnswer(second, _right());
        _to(1);
        _revealAnswer(first, _right());
        _revealAnswer(second, _right());
        assertEq(_share(first), SHARED);
        _nothingFor(second);
    }

    /// @dev What nobody is there for is burned: a worker that is quicker than its auditors gains nothing by it.
    function test_whereNobodyHasSealedItIsBurned() public {
        _fix(JobKind.Training);
        uint256 supply = _supply();
        _convict();
        assertEq(supply - _supply(), STAKE / 5 + SHARED);
        assertEq(sno.balanceOf(address(audits)), 0);
        _nothingFor(first);
    }

    /// @dev Auditors of claims that became final long ago share nothing, and do not lessen the shares of others.
    function testFuzz_onlyWhatWasSealedLately(uint256 wait) public {
        wait = bound(wait, 0, 4 * WINDOW);
        _fix(JobKind.Serving);
        _toSeed();
        _commitAnswer(first, _right());
        uint256 sealedAt = block.timestamp;
        skip(wait);
        uint256 supply = _supply();
        _convict();
        bool lately = sealedAt / WINDOW + 1 >= block.timestamp / WINDOW;
        // Whoever is within a window is always among them.
        if (wait < WINDOW) assertTrue(lately);
        assertEq(supply - _supply(), lately ? STAKE / 5 : STAKE / 5 + SHARED);
        vm.prank(first);
        audits.revealUnpaid(audited.claim, _right(), SALT);
        if (lately) _shareOf(first, SHARED);
        else _nothingFor(first);
    }

    /// @dev Who is accused, and was right: the claim is void, and so is the accusation.
    function test_theAccusedShareOnceTheirClaimIsVoid() public {
        _fix(JobKind.Training);
        _answer(first, _right());
        _accuse(first, _wrong());
        _convict();
        _assertState(first, IAudits.State.Accused);
        _shareOf(first, SHARED);
    }

    function test_theAccusedShareNothingOverAClaimThatStands() public {
        _fix(JobKind.Training);
        _answer(first, _wrong());
        _accuse(first, _right());
        vm.prank(address(disputes));
        assertTrue(audits.closeSeals(auditedJob, AUDITED, 0));
        _nothingFor(first);
    }

    function test_onlyDisputesCloses(address caller) public {
        vm.assume(caller != address(disputes));
        vm.expectRevert(abi.encodeWithSelector(IAudits.Unauthorized.selector, caller));
        vm.prank(caller);
        audits.closeSeals(1, 0, 0);
    }
}

/// @dev P-46: who has sealed an answer shows it, or pays for it as for a wrong one, before it is liable no more.
contract SealedAnswersTest is AuditTest {
    function setUp() public override {
        super.setUp();
        _fix(JobKind.Training);
        _toSeed();
        _commitAnswer(first, _wrong());
        assertEq(audits.sealedBy(first), 1);
    }

    function _held(uint256 amount) private {
        vm.expectRevert(abi.encodeWithSelector(IStaking.AnswersSealed.selector, 1));
        _unstake(first, amount);
    }

    /// @dev The weakness there was: it sealed a bought answer, saw the others', and was silent.
    function test_whoIsSilentStays() public {
        _stand();
        skip(365 days);
        _held(1);
        _held(COLLATERAL);
        // What it has beyond the collateral is free.
        _stake(first, IStaking.Role.Validator, 2 ether);
        _unstake(first, 2 ether);
        _held(1);
    }

    /// @dev An outage costs the fee and nothing else.
    function test_whoComesLateIsFree() public {
        _stand();
        vm.expectEmit(address(audits));
        emit IAudits.AuditRevealed(id, first, auditedJob, _wrong(), 0);
        vm.prank(first);
        audits.revealUnpaid(audited.claim, _wrong(), SALT);
        assertEq(jobs.creditOf(first, address(sno)), 0);
        assertEq(audits.sealedBy(first), 0);
        _unstake(first, COLLATERAL);
        vm.expectRevert(_wrongState(IAudits.State.Revealed));
        vm.prank(first);
        audits.revealUnpaid(audited.claim, _wrong(), SALT);
    }

    function test_whoIsInTimeIsFree() public {
        _to(1);
        _held(1);
        _revealAnswer(first, _wrong());
        _unstake(first, COLLATERAL);
    }

    function test_nothingElseIsShown() public {
        AuditAnswer memory other = _right();
        vm.startPrank(first);
        vm.expectRevert(IAudits.WrongAnswer.selector);
        audits.revealUnpaid(audited.claim, other, SALT);
        vm.expectRevert(IAudits.WrongAnswer.selector);
        audits.revealUnpaid(audited.claim, _wrong(), ~SALT);
        vm.stopPrank();
        vm.expectRevert(_wrongState(IAudits.State.None));
        vm.prank(second);
        audits.revealUnpaid(audited.claim, _wrong(), SALT);
    }

    /// @dev Who has lost its answer pays what a wrong one costs; nobody gains by it.
    function test_whoGivesUpPaysAndIsFree() public {
        uint256 supply = _supply();
        vm.expectEmit(address(audits));
        emit IAudits.AuditorPenalised(id, first, address(0), _penalty());
        vm.prank(first);
        audits.forfeit(audited.claim);
        assertEq(supply - _supply(), _penalty());
        _unstake(first, COLLATERAL - _penalty());
        vm.expectRevert(_wrongState(IAudits.State.Penalised));
        vm.prank(first);
        audits.forfeit(audited.claim);
        vm.expectRevert(_wrongState(IAudits.State.None));
        vm.prank(second);
        audits.forfeit(audited.claim);
    }

    /// @dev Who fell below the collateral by a penalty is held back, too.
    function test_whoIsNoValidatorAnyMoreStays() public {
        vm.prank(address(audits));
        staking.penalise(first, 1, address(0));
        assertFalse(staking.isValidator(first));
        _held(1);
    }
}
