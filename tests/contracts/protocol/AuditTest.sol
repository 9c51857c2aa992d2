// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IAudits} from "../../../contracts/interfaces/IAudits.sol";
import {IJobs} from "../../../contracts/interfaces/IJobs.sol";
import {IStaking} from "../../../contracts/interfaces/IStaking.sol";
import {AuditAnswer, AuditedClaim} from "../../../contracts/types/Audit.sol";
import {Parameters} from "../../../contracts/types/Parameters.sol";
import {Claim, ContradictionProof, JobKind, JobTerms, StepStatement, Voucher} from "../../../contracts/types/Types.sol";
import {SlowTree} from "../verifier/SlowTree.sol";
import {BeaconTest} from "./BeaconTest.sol";
import {ElementProof} from "./ElementProof.sol";
import {Signatures} from "./Signatures.sol";

/// @title Two validators that every claim draws, and a claim to audit
/// @notice The last claim of stage 1 of a training job, or a receipt of stage 1 of a serving job, of states and traces
/// that nothing computed. The worker that is right says `_right`. What is revealed over a receipt its worker confirms.
abstract contract AuditTest is BeaconTest {
    using SlowTree for bytes32[][];

    uint16 internal constant AUDITED = 1;
    uint32 internal constant TOKENS = 3;
    uint128 internal constant COLLATERAL = 1000 ether;
    bytes32 internal constant SALT = keccak256("salt of an auditor");
    bytes32 internal constant SEED = keccak256("seed");

    address internal first;
    address internal second;
    uint64 internal auditedJob;
    AuditedClaim internal audited;
    bytes32 internal id;
    bool internal serving;

    /// @dev Two audits for each claim, and two validators; lanes may have less at risk than a penalty takes.
    function _parameters() internal pure virtual override returns (Parameters memory p) {
        p = super._parameters();
        (p.validatorCollateral, p.auditsPerClaimBps, p.disputeBond) = (COLLATERAL, 20_000, 1);
    }

    /// @dev What an auditor loses: `auditPenaltyBps` of its collateral, which is less than a lane's stake.
    function _penalty() internal pure virtual returns (uint256) {
        return 5 ether;
    }

    function setUp() public virtual override {
        super.setUp();
        (first, second) = (_join("first validator"), _join("second validator"));
        skip(1);
    }

    function _join(string memory name) internal returns (address validator) {
        validator = makeAddr(name);
        _stake(validator, IStaking.Role.Validator, COLLATERAL);
    }

    /// @dev The claim that a proof refutes.
    function _refuted(ElementProof memory proof) internal view returns (bytes32) {
        (uint64 job, StepStatement memory statement) = disputes.refutes(proof.pack());
        assertEq(job, proof.claim.job);
        assertEq(keccak256(abi.encode(statement)), keccak256(abi.encode(proof.statement)));
        return statement.claimId;
    }

    function _unstake(address validator, uint256 amount) internal {
        vm.prank(validator);
        staking.requestUnstake(IStaking.Role.Validator, amount);
    }

    /// @dev Starts a job and fixes the claim now.
    function _fix(JobKind kind) internal {
        _fix(kind, kind == JobKind.Serving ? _servingTerms(address(sno), 2, 1, 100) : _terms(address(sno), 2, 1, 2));
    }

    function _fix(JobKind kind, JobTerms memory terms) internal {
        (auditedJob, serving) = (_run(terms), kind == JobKind.Serving);
        if (serving) {
            audited = _redeemReceipts(1, 0);
        } else {
            (, uint64 parentAt) = _commit(auditedJob, AUDITED, 0, 0, 0);
            (audited.claim, audited.fixedAt) = _commit(auditedJob, AUDITED, 0, 1, parentAt);
        }
        id = checkpoints.claimId(audited.claim);
    }

    /// @dev Receipt `text` of three of an epoch, redeemed now.
    function _redeemReceipts(uint32 epoch, uint32 text) internal returns (AuditedClaim memory a) {
        bytes32[] memory ids = new bytes32[](3);
        for (uint32 i = 0; i < 3; ++i) {
            ids[i] = checkpoints.claimId(_receiptOf(i));
        }
        return _redeemList(epoch, _receiptOf(text), ids, text);
    }

    function _receiptOf(uint32 text) internal view returns (Claim memory receipt) {
        (receipt.job, receipt.stage, receipt.interval) = (auditedJob, AUDITED, text);
        receipt.io = keccak256(abi.encode("logs of a text", text));
    }

    /// @dev Entry `index` of a list of claims' ids, redeemed now.
    function _redeemList(uint32 epoch, Claim memory receipt, bytes32[] memory ids, uint32 index)
        internal
        returns (AuditedClaim memory a)
    {
        bytes32[][] memory tree = SlowTree.ofDigests(ids);
        Voucher memory voucher = _voucher(auditedJob, AUDITED, 0, epoch, epoch * TOKENS);
        voucher.receipts = tree.rootOf();
        _redeem(voucher);
        (a.claim, a.fixedAt, a.epoch) = (receipt, uint64(block.timestamp), epoch);
        (a.receipts, a.index, a.siblings) = (voucher.receipts, index, tree.path(index));
    }

    /// @dev What a validator that looks answers.
    function _right() internal view returns (AuditAnswer memory) {
        return AuditAnswer({
            step: serving ? TOKENS : (audited.claim.interval + 1) * STEPS - 1,
            preState: serving ? bytes32(0) : keccak256("the last step's state"),
            trace: keccak256("the last step's trace")
        });
    }

    function _wrong() internal view returns (AuditAnswer memory answer) {
        answer = _right();
        answer.trace = keccak256("something else");
    }

    /// @dev The answer that a statement agrees with.
    function _answerOf(StepStatement memory statement) internal pure returns (AuditAnswer memory) {
        return AuditAnswer({step: statement.step, preState: statement.preState, trace: statement.trace});
    }

    /// @dev The worker's statement that agrees with an answer, and with its claim, to `auditor`.
    function _said(AuditAnswer memory answer) internal view returns (StepStatement memory) {
        return StepStatement({
            claimId: id,
            auditor: auditor,
            step: answer.step,
            preState: answer.preState,
            postState: audited.claim.newState,
            trace: answer.trace
        });
    }

    function _byWorker(StepStatement memory statement) internal view returns (bytes memory) {
        return _sign(workers[audited.claim.stage].key, _statementDigest(statement));
    }

    /// @dev What does not prove the statement: one of another claim, to another auditor or of other contents, or one
    /// that another key has signed, or for another chain or contract.
    function _notTheWorkersWord(StepStatement memory statement, uint8 flaw, bytes32 noise)
        internal
        view
        returns (bytes memory signature)
    {
        signature = _byWorker(statement);
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
    }

    // Moves

    function _sealOf(address who, AuditAnswer memory answer) internal view returns (bytes32) {
        return keccak256(abi.encode(id, answer, who, SALT));
    }

    function _commitAnswer(address who, AuditAnswer memory answer) internal {
        bytes32 sealedAnswer = _sealOf(who, answer);
        vm.prank(who);
        audits.commit(audited, sealedAnswer);
    }

    /// @dev Whether answers are revealed by the worker's word that confirms them.
    function _confirmed() internal view virtual returns (bool) {
        return serving;
    }

    function _revealAnswer(address who, AuditAnswer memory answer) internal {
        _revealAnswer(who, answer, SALT);
    }

    /// @dev The worker says whatever confirms it.
    function _revealAnswer(address who, AuditAnswer memory answer, bytes32 salt) internal {
        if (_confirmed()) {
            StepStatement memory statement = _said(answer);
            _confirm(who, statement, _byWorker(statement), salt);
        } else {
            vm.prank(who);
            audits.reveal(audited, answer, salt);
        }
    }

    function _confirm(address who, StepStatement memory statement, bytes memory signature, bytes32 salt) internal {
        vm.prank(who);
        audits.revealConfirmed(audited, statement, signature, salt);
    }

    /// @dev From the seed to the second quarter.
    function _answer(address who, AuditAnswer memory answer) internal {
        _toSeed();
        _commitAnswer(who, answer);
        _to(1);
        _revealAnswer(who, answer);
    }

    function _accuse(address who, AuditAnswer memory answer) internal {
        StepStatement memory statement = _said(answer);
        audits.accuse(audited, who, statement, _byWorker(statement));
    }

    /// @dev The worker convicts itself over the claim.
    function _convict() internal {
        StepStatement memory lie = _said(_right());
        lie.postState = keccak256("a lie");
        ContradictionProof memory proof;
        (proof.claim, proof.committedAt) = (audited.claim, serving ? 0 : audited.fixedAt);
        (proof.first, proof.firstSignature) = (lie, _byWorker(lie));
        disputes.proveSignedContradiction(proof);
    }

    /// @dev The claim stands for good.
    function _stand() internal virtual {
        if (serving) {
            if (_stateOfJob(auditedJob) == IJobs.State.Running) {
                vm.prank(user);
                jobs.cancel(auditedJob);
            }
            uint40 deadline = jobs.jobOf(auditedJob).deadline;
            if (block.timestamp < deadline) vm.warp(deadline);
            jobs.settle(auditedJob);
        } else {
            if (block.timestamp < audited.fixedAt + WINDOW) vm.warp(audited.fixedAt + WINDOW);
            _finalize(auditedJob, AUDITED, 0, 0, 2, audited.fixedAt);
        }
    }

    // Times

    /// @dev From when on the `quarter`-th quarter, from 0, runs. None takes longer than the clock of a challenge.
    function _quarter(uint256 quarter) internal view returns (uint256) {
        uint256 window = jobs.jobOf(auditedJob).challengeWindow;
        if (window > 48 hours) window = 48 hours;
        return audited.fixedAt + quarter * window / 4;
    }

    function _to(uint256 quarter) internal {
        vm.warp(_quarter(quarter));
    }

    /// @dev Records the seed that draws, as soon as it is there.
    function _toSeed() internal {
        uint64 period = beacon.periodAfter(audited.fixedAt);
        if (beacon.seedOf(period) == 0) _recordSeed(period, SEED);
    }

    /// @dev A time of the window or after it: mostly near where a quarter begins or ends.
    function _someTime(uint256 noise) internal view returns (uint256) {
        if (noise % 4 == 0) return audited.fixedAt + noise / 4 % (2 * WINDOW);
        return _quarter(1 + noise / 4 % 4) + noise / 16 % 3 - 1;
    }

    /// @dev Expects a refusal if it is not between the quarters `from` and `to`.
    function _expectInTime(uint256 from, uint256 to) internal returns (bool inTime) {
        inTime = block.timestamp >= _quarter(from) && block.timestamp < _quarter(to);
        if (!inTime) {
            vm.expectRevert(abi.encodeWithSelector(IAudits.OutOfTime.selector, _quarter(from), _quarter(to)));
        }
    }

    function _assertState(address who, IAudits.State state) internal view {
        assertEq(uint8(audits.stateOf(id, who)), uint8(state));
    }

    function _wrongState(IAudits.State state) internal pure returns (bytes memory) {
        return abi.encodeWithSelector(IAudits.WrongState.selector, state);
    }
}
