// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IAudits} from "../../../../contracts/interfaces/IAudits.sol";
import {IJobs} from "../../../../contracts/interfaces/IJobs.sol";
import {IStaking} from "../../../../contracts/interfaces/IStaking.sol";
import {Merkle} from "../../../../contracts/libraries/proofs/Merkle.sol";
import {AuditAnswer, AuditedClaim} from "../../../../contracts/types/Audit.sol";
import {Claim, ContradictionProof, JobKind, StepStatement} from "../../../../contracts/types/Types.sol";
import {CustodyMoves} from "./CustodyMoves.sol";

/// @title Validators: who is drawn, answers, is accused and pays
/// @notice The workers are validators, too. The honest one answers what is right, and convicts at once who accuses it;
/// the others do as it comes, and defend nothing. Over receipts nobody is accused: workers sign what is right about
/// them, which confirms no guess.
abstract contract AuditMoves is CustodyMoves {
    bytes32 private constant SALT = keccak256("salt of an auditor");

    /// @dev An audit, and how far it has come; `None` once nothing more comes of it. `shares`: whether its lane was
    /// convicted later, and the share of each.
    struct Drawn {
        AuditedClaim audited;
        address who;
        bool right;
        IAudits.State state;
        uint256 sealedAt;
        uint256 share;
    }

    Drawn[] private _drawn;

    function join(uint256 who) public {
        address account = worker(who % workers.length);
        uint256 bonded = staking.accountOf(account, IStaking.Role.Validator).bonded;
        uint256 needed = parameters.validatorCollateral;
        if (bonded < needed) _stake(account, IStaking.Role.Validator, needed - bonded);
    }

    /// @dev Whoever is drawn to what was fixed just now commits, as soon as the seed is there; nobody else can.
    function _audit(Claim memory claim, uint256 noise) internal {
        AuditedClaim memory audited;
        (audited.claim, audited.fixedAt) = (claim, uint64(block.timestamp));
        bytes32 id = checkpoints.claimId(claim);
        // An epoch has one receipt, of its own number.
        if (_isServing(claim)) (audited.epoch, audited.receipts) = (claim.interval, Merkle.itemNode(id));
        uint64 period = beacon.periodAfter(audited.fixedAt);
        if (beacon.seedOf(period) == 0) _recordSeed(period, keccak256(abi.encode(noise)));
        for (uint256 i = 0; i < workers.length; ++i) {
            address who = workers[i].addr;
            if (audits.isDrawn(id, audited.fixedAt, who)) {
                _commitAnswer(audited, id, who, who == honest() || noise >> i & 1 == 1);
            } else {
                vm.expectRevert(abi.encodeWithSelector(IAudits.NotDrawn.selector, who));
                vm.prank(who);
                audits.commit(audited, id);
            }
        }
    }

    function _isServing(Claim memory claim) private view returns (bool) {
        return jobs.jobOf(claim.job).kind == JobKind.Serving;
    }

    function _commitAnswer(AuditedClaim memory audited, bytes32 id, address who, bool right) private {
        uint256 since = staking.validatorSince(who);
        assertTrue(since > 0 && since < audited.fixedAt, "nobody is drawn that was no validator before");
        bytes32 sealedAnswer = keccak256(abi.encode(id, _answerOf(audited.claim, right), who, SALT));
        vm.prank(who);
        audits.commit(audited, sealedAnswer);
        Drawn storage drawn = _drawn.push();
        (drawn.audited, drawn.who, drawn.right, drawn.state) = (audited, who, right, IAudits.State.Sealed);
        drawn.sealedAt = block.timestamp;
        ++answersSealed;
        ++sealedBy[who];
    }

    /// @dev P-45: of all that was sealed about the lane in this span of a window or in the one before.
    function _closeSeals(uint64 job, uint16 stage, uint16 replica) internal override returns (bool) {
        uint256 count = 0;
        for (uint256 i = 0; i < _drawn.length; ++i) {
            if (_isAbout(_drawn[i], job, stage, replica)) ++count;
        }
        for (uint256 i = 0; i < _drawn.length; ++i) {
            if (_isAbout(_drawn[i], job, stage, replica)) _drawn[i].share = _bounty() / 2 / count;
        }
        return count > 0;
    }

    function _isAbout(Drawn storage drawn, uint64 job, uint16 stage, uint16 replica) private view returns (bool) {
        Claim storage claim = drawn.audited.claim;
        if (claim.job != job || claim.stage != stage || claim.replica != replica) return false;
        return drawn.sealedAt / WINDOW + 1 >= block.timestamp / WINDOW;
    }

    /// @dev Each in its turn, those from `seed` on: is paid its share once, if it has one and has shown its answer.
    function payShare(uint256 seed) public {
        for (uint256 i = 0; i < _drawn.length; ++i) {
            if (_payShare(_drawn[(seed % _drawn.length + i) % _drawn.length])) return;
        }
    }

    function _payAllShares() internal {
        for (uint256 i = 0; i < _drawn.length; ++i) {
            _payShare(_drawn[i]);
        }
    }

    function _payShare(Drawn storage drawn) private returns (bool) {
        if (drawn.share == 0) return false;
        Claim memory claim = drawn.audited.claim;
        IAudits.State state = audits.stateOf(checkpoints.claimId(claim), drawn.who);
        bool void = disputes.isConvicted(claim.job, claim.stage, claim.replica, claim.interval);
        if (state == IAudits.State.Revealed || (state == IAudits.State.Accused && void)) {
            uint256 before = sno.balanceOf(drawn.who);
            audits.payShare(claim, drawn.who);
            assertEq(sno.balanceOf(drawn.who) - before, drawn.share);
            dueTo[drawn.who][address(sno)] += drawn.share;
            (sharesPaid, drawn.share) = (sharesPaid + drawn.share, 0);
            ++shares;
            return true;
        }
        vm.expectRevert(IAudits.NothingToShare.selector);
        audits.payShare(claim, drawn.who);
        return false;
    }

    /// @dev Whoever has missed its quarter, or has no worker's word, shows its answer for nothing, or gives it up.
    function _showLate(Drawn storage drawn, bool forfeits) private {
        Claim memory claim = drawn.audited.claim;
        --sealedBy[drawn.who];
        if (!forfeits || drawn.who == honest()) {
            AuditAnswer memory answer = _answerOf(claim, drawn.right);
            vm.prank(drawn.who);
            audits.revealUnpaid(claim, answer, SALT);
            drawn.state = IAudits.State.Revealed;
            ++answersUnpaid;
            return;
        }
        uint256 amount = _penaltyOf(drawn);
        uint256 supply = _supply();
        vm.prank(drawn.who);
        audits.forfeit(claim);
        assertEq(supply - _supply(), amount, "all of it is burned");
        dueTo[drawn.who][address(sno)] -= amount;
        slashedAway += amount;
        drawn.state = IAudits.State.Penalised;
        ++answersForfeited;
    }

    /// @dev So that everybody can unstake.
    function _showAll() internal {
        for (uint256 i = 0; i < _drawn.length; ++i) {
            if (_drawn[i].state == IAudits.State.Sealed) _showLate(_drawn[i], i % 2 == 0);
        }
    }

    /// @dev What is right follows from the claim's place; everybody guesses the same.
    function _answerOf(Claim memory claim, bool right) private view returns (AuditAnswer memory) {
        bool serving = _isServing(claim);
        bytes32 truth = keccak256(abi.encode("truth", claim.job, claim.stage, claim.interval));
        return AuditAnswer({
            step: serving ? 1 + claim.interval % LONGEST : (claim.interval + 1) * STEPS - 1,
            preState: serving ? bytes32(0) : ~truth,
            trace: right ? truth : keccak256("a guess")
        });
    }

    /// @dev Who has sealed waits for its quarter and reveals, or is too late. It is paid once, while the budget and the
    /// job last. Over a receipt it needs the worker's word, which a guess has not. Now and then the worker accuses it
    /// at once; in a walk few of them would be met before the last quarter.
    function answerAudits(uint256 noise) external {
        for (uint256 i = 0; i < _drawn.length; ++i) {
            if (_drawn[i].state != IAudits.State.Sealed) continue;
            if (!_answerAudit(_drawn[i])) {
                // Most come to it later, or never.
                if (noise >> (i + 7) % 256 & 7 == 0) _showLate(_drawn[i], noise >> (i + 11) % 256 & 1 == 1);
                continue;
            }
            bool accused = noise >> i % 256 & 1 == 1;
            if (accused && _drawn[i].state == IAudits.State.Revealed) _accuse(_drawn[i]);
        }
    }

    /// @dev Whether it has.
    function _answerAudit(Drawn storage drawn) private returns (bool) {
        AuditedClaim memory audited = drawn.audited;
        AuditAnswer memory answer = _answerOf(audited.claim, drawn.right);
        (uint256 from, uint256 until) = (audited.fixedAt + WINDOW / 4, audited.fixedAt + WINDOW / 2);
        if (block.timestamp < from) vm.warp(from);
        if (block.timestamp >= until) {
            _revealAnswer(drawn, abi.encodeWithSelector(IAudits.OutOfTime.selector, from, until));
            ++answersLate;
            return false;
        }
        if (_isServing(audited.claim)) {
            vm.expectRevert(IAudits.WrongStatement.selector);
            vm.prank(drawn.who);
            audits.reveal(audited, answer, SALT);
            if (!drawn.right) {
                _revealAnswer(drawn, abi.encodeWithSelector(IAudits.WrongAnswer.selector));
                ++answersUnconfirmed;
                return false;
            }
            ++answersConfirmed;
        }
        IJobs.Job memory job = jobs.jobOf(audited.claim.job);
        uint256 before = jobs.creditOf(drawn.who, job.token);
        _revealAnswer(drawn, "");
        uint256 fee = _feeOf(audited.claim, job, answer);
        assertEq(jobs.creditOf(drawn.who, job.token) - before, fee);
        _paid(user, drawn.who, job.token, fee);
        drawn.state = IAudits.State.Revealed;
        --sealedBy[drawn.who];
        ++answersRevealed;
        return true;
    }

    /// @dev Over a receipt together with what its worker says, which is right.
    function _revealAnswer(Drawn storage drawn, bytes memory refusal) private {
        AuditedClaim memory audited = drawn.audited;
        Claim memory claim = audited.claim;
        if (_isServing(claim)) {
            StepStatement memory statement = _statementOf(claim, false);
            bytes memory signature = _byWorker(claim, statement);
            if (refusal.length > 0) vm.expectRevert(refusal);
            vm.prank(drawn.who);
            audits.revealConfirmed(audited, statement, signature, SALT);
        } else {
            AuditAnswer memory answer = _answerOf(claim, drawn.right);
            if (refusal.length > 0) vm.expectRevert(refusal);
            vm.prank(drawn.who);
            audits.reveal(audited, answer, SALT);
        }
    }

    function _byWorker(Claim memory claim, StepStatement memory statement) private view returns (bytes memory) {
        address who = jobs.workerOf(claim.job, claim.stage, claim.replica);
        return _sign(_keyOf(who), _statementDigest(statement));
    }

    function _feeOf(Claim memory claim, IJobs.Job memory job, AuditAnswer memory answer) private returns (uint256 fee) {
        fee = (job.kind == JobKind.Serving ? answer.step : 1) * PRICE * parameters.auditFeeBps / 10_000;
        if (job.state == IJobs.State.Settled || fee > budgetOf[claim.job]) return 0;
        budgetOf[claim.job] -= fee;
        feesOf[claim.job] += fee;
    }

    /// @dev Workers sign what is right, which accuses who was wrong, or lies about who was right; about some auditors
    /// they say nothing.
    function accuse(uint256 noise) external {
        for (uint256 i = 0; i < _drawn.length; ++i) {
            if (_drawn[i].state == IAudits.State.Revealed && noise >> i % 256 & 1 == 1) _accuse(_drawn[i]);
        }
    }

    function _accuse(Drawn storage drawn) private {
        AuditedClaim memory audited = drawn.audited;
        address who = jobs.workerOf(audited.claim.job, audited.claim.stage, audited.claim.replica);
        bool lie = drawn.right && who != honest();
        StepStatement memory statement = _statementOf(audited.claim, lie);
        bytes memory signature = _byWorker(audited.claim, statement);
        bytes memory refusal = _refusalOf(audited);
        if (refusal.length > 0) drawn.state = IAudits.State.None;
        else if (drawn.right && !lie) refusal = abi.encodeWithSelector(IAudits.WrongStatement.selector);
        if (refusal.length > 0) vm.expectRevert(refusal);
        audits.accuse(audited, drawn.who, statement, signature);
        if (refusal.length > 0) return;
        drawn.state = IAudits.State.Accused;
        ++accusations;
        if (lie && drawn.who == honest()) _defend(audited, statement, signature);
    }

    function _statementOf(Claim memory claim, bool lie) private view returns (StepStatement memory) {
        AuditAnswer memory answer = _answerOf(claim, !lie);
        return StepStatement({
            claimId: checkpoints.claimId(claim),
            auditor: auditor,
            step: answer.step,
            preState: answer.preState,
            postState: lie ? keccak256("a lie") : claim.newState,
            trace: answer.trace
        });
    }

    /// @dev Why nobody is accused, or not any more.
    function _refusalOf(AuditedClaim memory audited) private view returns (bytes memory) {
        Claim memory claim = audited.claim;
        if (_isServing(claim)) return abi.encodeWithSelector(IAudits.WrongStatement.selector);
        (uint256 from, uint256 until) = (audited.fixedAt + WINDOW / 4, audited.fixedAt + WINDOW * 3 / 4);
        if (block.timestamp >= until) return abi.encodeWithSelector(IAudits.OutOfTime.selector, from, until);
        // Of a later claim, of its own files: who has no stake any more accuses nobody.
        bool void = disputes.isConvicted(claim.job, claim.stage, claim.replica, claim.interval)
            || jobs.isConvicted(claim.job, claim.stage, claim.replica);
        return void ? abi.encodeWithSelector(IAudits.ClaimIsVoid.selector) : bytes("");
    }

    /// @dev By the very word that accused it.
    function _defend(AuditedClaim memory audited, StepStatement memory lie, bytes memory signature) private {
        Claim memory claim = audited.claim;
        ContradictionProof memory proof;
        (proof.claim, proof.committedAt) = (claim, audited.fixedAt);
        (proof.first, proof.firstSignature) = (lie, signature);
        uint256 supply = _supply();
        disputes.proveSignedContradiction(proof);
        _convictedNow(claim.job, claim.stage, claim.replica, supply);
        ++falseAccusations;
    }

    /// @dev Of the accused auditors from `seed` on: is refused while the claim does not stand for good, and penalises
    /// the first whose does.
    function penaliseAuditor(uint256 seed) public {
        for (uint256 i = 0; i < _drawn.length; ++i) {
            Drawn storage drawn = _drawn[(seed % _drawn.length + i) % _drawn.length];
            if (drawn.state != IAudits.State.Accused) continue;
            if (_stands(drawn.audited.claim)) {
                _penalise(drawn);
                return;
            }
            vm.expectRevert(IAudits.NotFinal.selector);
            audits.penalise(drawn.audited.claim, drawn.who);
        }
    }

    function _stands(Claim memory claim) private view returns (bool) {
        return checkpoints.laneOf(claim.job, claim.stage, claim.replica).finalized > claim.interval;
    }

    function _penalise(Drawn storage drawn) private {
        assertNotEq(drawn.who, honest(), "an honest validator is never penalised");
        assertFalse(_isServing(drawn.audited.claim), "nobody is penalised over a receipt that no proof is about");
        uint256 amount = _penaltyOf(drawn);
        uint256 supply = _supply();
        audits.penalise(drawn.audited.claim, drawn.who);
        assertEq(supply - _supply(), _penalised(drawn.who, amount));
        slashedAway += supply - _supply();
        drawn.state = IAudits.State.Penalised;
        ++penalties;
    }

    function _penaltyOf(Drawn storage drawn) private view returns (uint256 amount) {
        IStaking.Account memory has = staking.accountOf(drawn.who, IStaking.Role.Validator);
        amount = uint256(parameters.validatorCollateral) * parameters.auditPenaltyBps / 10_000;
        uint128 stake = jobs.jobOf(drawn.audited.claim.job).workerStake;
        if (amount > stake) amount = stake;
        if (amount > uint256(has.bonded) + has.unbonding) amount = uint256(has.bonded) + has.unbonding;
    }

    /// @dev Of all that can be penalised.
    function _penaliseAll() internal {
        for (uint256 i = 0; i < _drawn.length; ++i) {
            Drawn storage drawn = _drawn[i];
            if (drawn.state == IAudits.State.Accused && _stands(drawn.audited.claim)) _penalise(drawn);
        }
    }
}
