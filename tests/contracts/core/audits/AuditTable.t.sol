// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IAudits} from "../../../../contracts/interfaces/IAudits.sol";
import {IJobs} from "../../../../contracts/interfaces/IJobs.sol";
import {IStaking} from "../../../../contracts/interfaces/IStaking.sol";
import {AuditAnswer} from "../../../../contracts/types/Audit.sol";
import {Parameters} from "../../../../contracts/types/Parameters.sol";
import {StepStatement} from "../../../../contracts/types/Types.sol";
import {AuditTest} from "../../protocol/AuditTest.sol";
import {AuditedServing} from "../../protocol/AuditedServing.sol";
import {AuditedTraining} from "../../protocol/AuditedTraining.sol";
import {ElementProof} from "../../protocol/ElementProof.sol";

/// @dev The tables of `IAudits`, every row and everything that no row has: from anywhere that the first validator's
/// audit can stand, every move by everybody. The other one has sealed nothing. An answer is what is right, or copied
/// from what the worker says when it is wrong.
abstract contract AuditTableTest is AuditTest {
    enum Move {
        Commit,
        Reveal,
        RevealConfirmed,
        RevealUnpaid,
        Forfeit,
        Accuse,
        Penalise,
        PenaliseCopy
    }

    AuditAnswer private right;
    AuditAnswer private copied;
    /// @dev The call that shows what is copied to be wrong.
    bytes private refuting;

    IAudits.State private state;
    bool private isCopy;
    bool private hasSeed;
    bool private hasLeft;
    /// @dev The worker is convicted over the claim; its lane over anything; the claim is final; the job is over.
    bool private isVoid;
    bool private isConvicted;
    bool private isFinal;
    bool private isSettled;

    function _prepare(AuditAnswer memory what, ElementProof memory proof) internal {
        (right, copied) = (what, _answerOf(proof.statement));
        refuting = abi.encodeCall(IAudits.penaliseCopy, (proof.pack(), first));
    }

    function _everyMoveFromEverywhere(uint256 seed) internal {
        // Fuzzers like small numbers, which leave high bits zero.
        _goSomewhere(uint256(keccak256(abi.encode(seed))));
        address[4] memory anybody = [first, second, stranger, workers[audited.claim.stage].addr];
        for (uint8 move = 0; move <= uint8(Move.PenaliseCopy); ++move) {
            for (uint256 i = 0; i < 2 * anybody.length; ++i) {
                uint256 snapshot = vm.snapshotState();
                _move(Move(move), anybody[i / 2], i % 2 == 0);
                vm.revertToState(snapshot);
            }
        }
    }

    // Where an audit can stand

    function _goSomewhere(uint256 seed) private {
        isCopy = seed % 2 == 0;
        IAudits.State goal = IAudits.State((seed >> 8) % 5);
        hasSeed = goal > IAudits.State.None || (seed >> 16) % 2 == 0;
        if (hasSeed) _toSeed();
        if (goal > IAudits.State.None) _goOn(Move.Commit, isCopy);
        if (goal > IAudits.State.Sealed) {
            _to(1);
            _goOn(serving ? Move.RevealConfirmed : Move.Reveal, isCopy);
        }
        // Who copies is not accused on its way to be penalised for that.
        if (goal > IAudits.State.Revealed && !serving && (seed >> 24) % 4 != 0) _goOn(Move.Accuse, !isCopy);
        // Who has sealed and not shown cannot.
        hasLeft = (seed >> 32) % 4 == 0 && state != IAudits.State.Sealed;
        if (hasLeft) _unstake(first, COLLATERAL);
        _decide(seed >> 40);
        if (goal == IAudits.State.Penalised) {
            if (isFinal && state == IAudits.State.Accused) _goOn(Move.Penalise, isCopy);
            else if (isCopy) _goOn(Move.PenaliseCopy, isCopy);
        }
        _goToSomeTime(seed >> 64);
    }

    /// @dev Where it is, where the next quarter begins, or anywhere later.
    function _goToSomeTime(uint256 noise) private {
        if (noise % 3 == 0) return;
        uint256 next = _quarter((block.timestamp - audited.fixedAt) / (WINDOW / 4) + 1);
        uint256 time = noise % 3 == 1 ? next : _someTime(noise >> 8);
        if (time > block.timestamp) vm.warp(time);
    }

    function _goOn(Move move, bool copy) private {
        assertEq(_refusal(move, first, copy), bytes4(0));
        _make(move, first, copy);
        state = _next(move);
    }

    /// @dev What comes of the claim meanwhile: nothing, or the worker is convicted over it, or its lane otherwise, or
    /// it stands.
    function _decide(uint256 noise) private {
        uint256 what = noise % 8;
        if (what < 3) {
            _convict();
            (isVoid, isConvicted) = (true, true);
        }
        if (what == 3) {
            // As `Disputes` does when it has proof of something else.
            vm.prank(address(disputes));
            jobs.convict(auditedJob, audited.claim.stage, 0);
            isConvicted = true;
        }
        isFinal = what == 4 || (what == 3 && (noise >> 8) % 2 == 0);
        if (isFinal) _stand();
        isSettled = serving ? isFinal : (isVoid || isFinal) && (noise >> 16) % 4 != 0;
        if (!isSettled || serving) return;
        if (_stateOfJob(auditedJob) == IJobs.State.Running) {
            vm.prank(user);
            jobs.cancel(auditedJob);
        }
        jobs.settle(auditedJob);
    }

    // Moves

    function _move(Move move, address who, bool copy) private {
        bytes32 before = _seen(who);
        uint256[5] memory money = _money(who);
        bytes4 refusal = _refusal(move, who, copy);
        (bool done, bytes memory reason) = _make(move, who, copy);
        assertEq(bytes4(reason), refusal);
        assertEq(done, refusal == 0);
        if (!done) {
            assertEq(_seen(who), before);
            return;
        }
        _assertState(move < Move.Accuse ? who : first, _next(move));
        if (move == Move.Reveal || move == Move.RevealConfirmed) {
            uint256 fee = isSettled ? 0 : uint256(PRICE) * 5 / 4 * (serving ? TOKENS : 1);
            (money[0], money[1]) = (money[0] + fee, money[1] - fee);
        } else if (move == Move.Forfeit) {
            (money[2], money[4]) = (money[2] - _penalty(), money[4] - _penalty());
        } else if (move >= Move.Penalise) {
            (money[2], money[3], money[4]) =
            (money[2] - _penalty(), money[3] + _penalty() / 2, money[4] - _penalty() / 2);
        }
        assertEq(keccak256(abi.encode(_money(who))), keccak256(abi.encode(money)));
    }

    function _next(Move move) private pure returns (IAudits.State) {
        if (move == Move.Commit) return IAudits.State.Sealed;
        if (move <= Move.RevealUnpaid) return IAudits.State.Revealed;
        return move == Move.Accuse ? IAudits.State.Accused : IAudits.State.Penalised;
    }

    /// @dev What the caller can collect, what pays for it, the validator's collateral, what the worker's auditor has,
    /// and all that there is.
    function _money(address who) private view returns (uint256[5] memory) {
        IStaking.Account memory account = staking.accountOf(first, IStaking.Role.Validator);
        uint256 collateral = uint256(account.bonded) + account.unbonding;
        uint256 credit = jobs.creditOf(who, address(sno));
        return [credit, jobs.jobOf(auditedJob).escrow, collateral, sno.balanceOf(auditor), _supply()];
    }

    /// @dev All that a move could change.
    function _seen(address who) private view returns (bytes32) {
        return
            keccak256(
                abi.encode(audits.stateOf(id, first), audits.stateOf(id, who), _money(who), jobs.jobOf(auditedJob))
            );
    }

    /// @dev Why the tables do not have this move; zero if they have.
    function _refusal(Move move, address who, bool copy) private view returns (bytes4) {
        IAudits.State its = who == first || move >= Move.Accuse ? state : IAudits.State.None;
        if (move == Move.Commit) {
            if (!_isWithin(0, 1)) return IAudits.OutOfTime.selector;
            if (_isDecided()) return IAudits.ClaimIsVoid.selector;
            if (who != second && (who != first || hasLeft)) return IAudits.NotDrawn.selector;
            if (!hasSeed) return IAudits.NoSeed.selector;
            return its == IAudits.State.None ? bytes4(0) : IAudits.WrongState.selector;
        }
        if (move <= Move.RevealConfirmed) {
            if (serving && move == Move.Reveal) return IAudits.WrongStatement.selector;
            if (!_isWithin(1, 2)) return IAudits.OutOfTime.selector;
            if (its != IAudits.State.Sealed) return IAudits.WrongState.selector;
            return copy == isCopy ? bytes4(0) : IAudits.WrongAnswer.selector;
        }
        if (move <= Move.Forfeit) {
            if (its != IAudits.State.Sealed) return IAudits.WrongState.selector;
            return move == Move.Forfeit || copy == isCopy ? bytes4(0) : IAudits.WrongAnswer.selector;
        }
        if (move == Move.Accuse) {
            if (serving) return IAudits.WrongStatement.selector;
            if (!_isWithin(1, 3)) return IAudits.OutOfTime.selector;
            if (_isDecided() || isConvicted) return IAudits.ClaimIsVoid.selector;
            if (its != IAudits.State.Revealed) return IAudits.WrongState.selector;
            return copy != isCopy ? bytes4(0) : IAudits.WrongStatement.selector;
        }
        bool accused = its == IAudits.State.Accused;
        if (move == Move.Penalise) {
            if (!accused) return IAudits.WrongState.selector;
            return isFinal ? bytes4(0) : IAudits.NotFinal.selector;
        }
        if (!accused && its != IAudits.State.Revealed) return IAudits.WrongState.selector;
        return isCopy ? bytes4(0) : IAudits.WrongAnswer.selector;
    }

    function _isWithin(uint256 from, uint256 to) private view returns (bool) {
        return block.timestamp >= _quarter(from) && block.timestamp < _quarter(to);
    }

    /// @dev Whether no answer is wanted any more. Receipts of a lane stand until it is convicted, or the job is over.
    function _isDecided() private view returns (bool) {
        return serving ? isConvicted || isSettled : isVoid;
    }

    /// @dev `copy`: whether it is about what the worker says when it is wrong.
    function _make(Move move, address who, bool copy) private returns (bool done, bytes memory reason) {
        bytes memory call = _callOf(move, who, copy);
        vm.prank(who);
        return address(audits).call(call);
    }

    function _callOf(Move move, address who, bool copy) private view returns (bytes memory) {
        AuditAnswer memory answer = copy ? copied : right;
        if (move == Move.Commit) return abi.encodeCall(IAudits.commit, (audited, _sealOf(who, answer)));
        if (move == Move.Reveal) return abi.encodeCall(IAudits.reveal, (audited, answer, SALT));
        if (move == Move.RevealUnpaid) return abi.encodeCall(IAudits.revealUnpaid, (audited.claim, answer, SALT));
        if (move == Move.Forfeit) return abi.encodeCall(IAudits.forfeit, (audited.claim));
        if (move == Move.Penalise) return abi.encodeCall(IAudits.penalise, (audited.claim, first));
        if (move == Move.PenaliseCopy) return refuting;
        StepStatement memory said = _said(answer);
        bytes memory signature = _byWorker(said);
        if (move == Move.Accuse) return abi.encodeCall(IAudits.accuse, (audited, first, said, signature));
        return abi.encodeCall(IAudits.revealConfirmed, (audited, said, signature, SALT));
    }
}

contract ClaimAuditTableTest is AuditTableTest, AuditedTraining {
    function _parameters() internal pure override(AuditTest, AuditedTraining) returns (Parameters memory) {
        return AuditedTraining._parameters();
    }

    function setUp() public override(AuditTest, AuditedTraining) {
        super.setUp();
        _fixTraining();
        _prepare(_said(), _wrongProof());
    }

    /// forge-config: default.fuzz.runs = 384
    function testFuzz_everyMoveFromEverywhere(uint256 seed) public {
        _everyMoveFromEverywhere(seed);
    }

    function _stand() internal override(AuditTest, AuditedTraining) {
        AuditedTraining._stand();
    }
}

contract ReceiptAuditTableTest is AuditTableTest, AuditedServing {
    function _parameters() internal pure override(AuditTest, AuditedServing) returns (Parameters memory) {
        return AuditedServing._parameters();
    }

    function setUp() public override(AuditTest, AuditedServing) {
        super.setUp();
        _fixServing();
        _prepare(_said(), _wrongProof());
    }

    /// forge-config: default.fuzz.runs = 384
    function testFuzz_everyMoveFromEverywhere(uint256 seed) public {
        _everyMoveFromEverywhere(seed);
    }
}
