// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IAudits} from "../../../../contracts/interfaces/IAudits.sol";
import {ICheckpoints} from "../../../../contracts/interfaces/ICheckpoints.sol";
import {IDisputes} from "../../../../contracts/interfaces/IDisputes.sol";
import {IStaking} from "../../../../contracts/interfaces/IStaking.sol";
import {Dissection} from "../../../../contracts/libraries/challenges/Dissection.sol";
import {AuditAnswer} from "../../../../contracts/types/Audit.sol";
import {Pick, Position} from "../../../../contracts/types/Challenge.sol";
import {Parameters} from "../../../../contracts/types/Parameters.sol";
import {ContradictionProof, StepStatement} from "../../../../contracts/types/Types.sol";
import {AuditTest} from "../../protocol/AuditTest.sol";
import {AuditedServing} from "../../protocol/AuditedServing.sol";
import {AuditedTraining} from "../../protocol/AuditedTraining.sol";
import {ChallengeTest} from "../../protocol/ChallengeTest.sol";
import {ElementProof} from "../../protocol/ElementProof.sol";
import {ProtocolTest} from "../../protocol/ProtocolTest.sol";
import {SlowTree} from "../../verifier/SlowTree.sol";

/// @dev Auditors of a claim of what a worker really computed: `first` looks, `second` answers what the worker told it.
contract ClaimCopiesTest is AuditedTraining, ChallengeTest {
    using Dissection for Position;
    using SlowTree for bytes32[][];

    function _parameters() internal pure virtual override(AuditedTraining, ProtocolTest) returns (Parameters memory) {
        return AuditTest._parameters();
    }

    function setUp() public override(AuditedTraining, ChallengeTest) {
        super.setUp();
        _fixTraining();
        (claim, committedAt) = (audited.claim, audited.fixedAt);
        _fund(first, address(challenges), 1000 ether);
    }

    /// @dev `first` answers what is right, `second` what the worker says when operator 3 of it is wrong; and a proof
    /// of that.
    function _bothAnswer() private returns (ElementProof memory proof) {
        AuditAnswer memory right = _said();
        proof = _wrongProof();
        AuditAnswer memory copied = _answerOf(proof.statement);
        _toSeed();
        _commitAnswer(first, right);
        _commitAnswer(second, copied);
        _to(1);
        _revealAnswer(first, right);
        _revealAnswer(second, copied);
    }

    function test_whoAnsweredJustThat() public {
        ElementProof memory proof = _bothAnswer();
        (uint256 supply, uint256 before) = (_supply(), sno.balanceOf(auditor));
        vm.expectRevert(IAudits.WrongAnswer.selector);
        audits.penaliseCopy(proof.pack(), first);
        vm.expectRevert(_wrongState(IAudits.State.None));
        audits.penaliseCopy(proof.pack(), stranger);

        vm.expectEmit(address(audits));
        emit IAudits.AuditorPenalised(id, second, auditor, _penalty());
        vm.prank(stranger);
        audits.penaliseCopy(proof.pack(), second);
        assertEq(sno.balanceOf(auditor) - before, _penalty() / 2);
        assertEq(supply - _supply(), _penalty() / 2);
        assertEq(_collateral(second), COLLATERAL - _penalty());
        assertEq(_collateral(first), COLLATERAL);
        // The worker is for Disputes to convict.
        assertFalse(disputes.isConvicted(job, STAGE, 0, 0));
        vm.expectRevert(_wrongState(IAudits.State.Penalised));
        audits.penaliseCopy(proof.pack(), second);
    }

    /// @dev Also when the claim is void by the proof, or final before anybody had it.
    function test_whenTheClaimIsVoidOrFinal() public {
        ElementProof memory proof = _bothAnswer();
        uint256 state = vm.snapshotState();
        disputes.proveSigned(proof.pack());
        audits.penaliseCopy(proof.pack(), second);
        assertEq(_collateral(second), COLLATERAL - _penalty());
        vm.revertToState(state);

        _stand();
        vm.prank(user);
        jobs.cancel(job);
        jobs.settle(job);
        vm.expectRevert(ICheckpoints.ClaimIsFinal.selector);
        disputes.proveSigned(proof.pack());
        audits.penaliseCopy(proof.pack(), second);
        assertEq(_collateral(second), COLLATERAL - _penalty());
    }

    /// @dev Who is accused as well pays once.
    function test_theAccusedToo() public {
        ElementProof memory proof = _bothAnswer();
        StepStatement memory statement = _statement(claim, LAST);
        audits.accuse(audited, second, statement, _signed(statement));
        audits.penaliseCopy(proof.pack(), second);
        vm.expectRevert(_wrongState(IAudits.State.Penalised));
        audits.penalise(audited.claim, second);
        assertEq(_collateral(second), COLLATERAL - _penalty());
    }

    /// @dev What is sealed is no answer yet.
    function test_notWhatIsOnlySealed() public {
        wrongOperator = 3;
        _toSeed();
        _commitAnswer(second, _said());
        ElementProof memory proof = _elementProof(claim, LAST, 3, 0);
        proof.committedAt = committedAt;
        vm.expectRevert(_wrongState(IAudits.State.Sealed));
        audits.penaliseCopy(proof.pack(), second);
    }

    /// @dev P-32: no statement about what is right refutes it, and none but the very answer. `refutes` hears what
    /// `proveSigned` hears.
    function test_nothingRefutesTheHonest() public {
        _bothAnswer();
        for (uint32 operator = 0; operator < OPERATORS; ++operator) {
            ElementProof memory proof = _elementProof(claim, LAST, operator, 0);
            proof.committedAt = committedAt;
            vm.expectRevert(IDisputes.NoFault.selector);
            audits.penaliseCopy(proof.pack(), first);
            if (operator == 3) continue;
            // Another wrong word of the worker's is not what anybody answered.
            wrongOperator = operator;
            proof = _elementProof(claim, LAST, operator, 0);
            proof.committedAt = committedAt;
            wrongOperator = NOTHING;
            assertEq(_refuted(proof), id);
            for (uint256 i = 0; i < 2; ++i) {
                vm.expectRevert(IAudits.WrongAnswer.selector);
                audits.penaliseCopy(proof.pack(), i == 0 ? first : second);
            }
        }
    }

    /// @dev Of another step, of another claim, of another's signature: nothing is refuted. When it was committed, and
    /// so whether it is still on record, is the same to what was signed.
    function test_refutes_whatProofsAreHeardAbout() public {
        ElementProof memory proof = _bothAnswer();
        assertEq(_refuted(proof), id);
        proof.committedAt += 1;
        assertEq(_refuted(proof), id);
        proof.signature = _sign(workers[0].key, _statementDigest(proof.statement));
        vm.expectRevert(IDisputes.BadSignature.selector);
        audits.penaliseCopy(proof.pack(), second);
        proof.signature = _signed(proof.statement);
        proof.claim.io = 0;
        vm.expectRevert(IDisputes.BadSignature.selector);
        audits.penaliseCopy(proof.pack(), second);
        wrongOperator = 3;
        proof = _elementProof(claim, LAST - 1, 3, 0);
        assertEq(_refuted(proof), id);
        vm.expectRevert(IAudits.WrongAnswer.selector);
        audits.penaliseCopy(proof.pack(), second);
    }

    /// @dev P-32: a worker accuses the honest of a trace that opens to nothing, at the last moment. Who is accused asks
    /// it on chain for the same statement; what the worker signs there, if it is right, contradicts the accusation.
    function test_whoIsAccusedFalselyForcesTheWorkerToSpeak() public {
        StepStatement memory junk = _accusedOfJunk();
        uint256 game = _challengeBy(first);
        _current = game;
        _answer(game);
        _askBy(first, game);
        _answer(game);
        // What the worker has said by now is signed, of this step, to `first`.
        StepStatement memory statement = _statement(claim, LAST);
        statement.auditor = first;
        disputes.proveSignedContradiction(
            ContradictionProof({
                claim: claim,
                committedAt: committedAt,
                first: statement,
                firstSignature: stated,
                second: junk,
                secondSignature: _signed(junk)
            })
        );
        _isOutOfReach();
        assertGt(sno.balanceOf(first), 0, "the bounty is its own");
    }

    /// @dev And one that does not answer is convicted of silence.
    function test_whoIsAccusedFalselyIsNotSilenced() public {
        _accusedOfJunk();
        uint256 game = _challengeBy(first);
        vm.roll(block.number + parameters.moveBlocks);
        skip(parameters.disputeClock + parameters.moveGrace);
        challenges.timeout(game);
        _isOutOfReach();
    }

    function _accusedOfJunk() private returns (StepStatement memory junk) {
        _answer(first, _said());
        junk = _statement(claim, LAST);
        junk.trace = keccak256("nothing");
        vm.warp(_quarter(3) - 1);
        audits.accuse(audited, first, junk, _signed(junk));
        vm.warp(_quarter(4) - 1);
    }

    function _isOutOfReach() private {
        assertTrue(disputes.isConvicted(job, STAGE, 0, 0));
        skip(30 days);
        vm.expectRevert(IAudits.NotFinal.selector);
        audits.penalise(audited.claim, first);
        assertEq(_collateral(first), COLLATERAL);
    }

    /// @dev Asks for the last step's statement, once the steps' states are all out.
    function _askBy(address challenger, uint256 game) private {
        while (!positions[game].isBottom()) {
            _askOn(challenger, game);
            _answer(game);
        }
        Pick memory pick = _pick(game, _childFor(game, LAST));
        bytes32 preState = _states()[LAST - 1];
        bytes32[] memory siblings = _stepsTree().path(LAST - 1);
        vm.prank(challenger);
        challenges.askStatement(game, positions[game], factsOf[game], claim, pick, preState, siblings, _plain(levels));
        _follow();
    }

    function _askOn(address challenger, uint256 game) private {
        Pick memory pick = _pick(game, _childFor(game, LAST));
        vm.prank(challenger);
        challenges.ask(game, positions[game], pick, _plain(_levelsOf(positions[game].height - positions[game].levels)));
        _follow();
    }

    function _collateral(address who) private view returns (uint256) {
        return staking.accountOf(who, IStaking.Role.Validator).bonded;
    }
}

/// @dev A penalty of all the collateral: the lane's stake bounds it, and so of copies, too.
contract ClaimCopiesOfLittleStakeTest is ClaimCopiesTest {
    function _parameters() internal pure override returns (Parameters memory p) {
        p = super._parameters();
        p.auditPenaltyBps = 10_000;
    }

    function _penalty() internal pure override returns (uint256) {
        return STAKE;
    }
}

/// @dev The same of a receipt that a worker really computed, and of one that stands in no list.
contract ReceiptCopiesTest is AuditedServing {
    function setUp() public override {
        super.setUp();
        _fixServing();
    }

    function test_whoAnsweredJustThat() public {
        (AuditAnswer memory right, ElementProof memory proof) = (_said(), _wrongProof());
        AuditAnswer memory copied = _answerOf(proof.statement);
        _toSeed();
        _commitAnswer(first, right);
        _commitAnswer(second, copied);
        _to(1);
        _revealAnswer(first, right);
        // What confirms a copy is the lie itself.
        assertEq(_statementDigest(_said(copied)), _statementDigest(proof.statement));
        vm.expectRevert(IAudits.WrongAnswer.selector);
        _confirm(second, _said(right), _byWorker(_said(right)), SALT);
        _confirm(second, proof.statement, proof.signature, SALT);
        vm.expectRevert(IAudits.WrongAnswer.selector);
        audits.penaliseCopy(proof.pack(), first);

        // While the job runs, once the lane is convicted, and once the job is settled.
        for (uint256 i = 0; i < 3; ++i) {
            uint256 state = vm.snapshotState();
            if (i > 0) disputes.proveSigned(proof.pack());
            if (i > 1) _stand();
            audits.penaliseCopy(proof.pack(), second);
            assertEq(staking.accountOf(second, IStaking.Role.Validator).bonded, COLLATERAL - _penalty());
            vm.revertToState(state);
        }
    }

    /// @dev A worker's word about a receipt in no list refutes that receipt, and so no answer about another.
    function test_notOverAnotherReceipt() public {
        wrongOperator = 1;
        ElementProof memory proof = _elementProof(7, TOKENS, 1, 0);
        AuditAnswer memory copied = _answerOf(proof.statement);
        _answer(second, copied);
        assertEq(_refuted(proof), checkpoints.claimId(_receipt(7, TOKENS)));
        vm.expectRevert(_wrongState(IAudits.State.None));
        audits.penaliseCopy(proof.pack(), second);
    }
}
