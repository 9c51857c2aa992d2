// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {ICheckpoints} from "../../../../contracts/interfaces/ICheckpoints.sol";
import {IDisputes} from "../../../../contracts/interfaces/IDisputes.sol";
import {Claim, ContradictionProof, StepStatement, WiringProof} from "../../../../contracts/types/Types.sol";
import {TrainingTest} from "../../protocol/TrainingTest.sol";

/// @dev `proveSignedWiring` and `proveSignedContradiction`.
contract SignedFaultsTest is TrainingTest {
    uint8 private constant STATE = 1;
    uint8 private constant NEXT = 2;
    uint8 private constant PREVIOUS = 3;

    Claim private claim;

    function setUp() public override {
        super.setUp();
        claim = _commitTraining(0);
    }

    // Wiring

    function test_wiring_everySink() public {
        for (uint8 sink = STATE; sink <= PREVIOUS; ++sink) {
            for (uint32 index = 0; index < (sink == STATE ? 1 : 2); ++index) {
                uint256 snapshot = vm.snapshotState();
                wrongOperator = NOTHING;
                _refused(_wiringProof(claim, 2, sink, index), abi.encodeWithSelector(IDisputes.NoFault.selector));
                wrongOperator = sink == STATE ? 2 : sink == NEXT ? 3 + index : 5 + index;
                WiringProof memory proof = _wiringProof(claim, 2, sink, index);
                vm.expectEmit(address(disputes));
                emit IDisputes.Convicted(
                    job,
                    workers[STAGE].addr,
                    auditor,
                    STAGE,
                    0,
                    proof.statement.claimId,
                    IDisputes.Fault.Wiring,
                    2,
                    uint32(wrongOperator),
                    index,
                    0,
                    0
                );
                disputes.proveSignedWiring(proof);
                assertEq(_staked(workers[STAGE].addr).bonded, 0);
                vm.revertToState(snapshot);
            }
        }
    }

    function test_wiring_refusesOtherPlaces() public {
        bytes memory notWired = abi.encodeWithSelector(IDisputes.WrongOperator.selector);
        WiringProof memory p = _wrongWiring();
        p.index = 2;
        _refused(p, notWired);
        p = _wrongWiring();
        p.sink = 0;
        _refused(p, notWired);
        p.sink = 4;
        _refused(p, notWired);

        // Another operator's output is not what goes there; another place of the log is not where it goes.
        p = _wrongWiring();
        wrongOperator = NOTHING;
        WiringProof memory other = _wiringProof(claim, 1, NEXT, 1);
        (p.traceRoot, p.traceMembership) = (other.traceRoot, other.traceMembership);
        _refused(p, abi.encodeWithSelector(IDisputes.WrongMembership.selector, 0));
        p = _wrongWiring();
        (p.sinkRoot, p.sinkMembership) = (other.sinkRoot, other.sinkMembership);
        _refused(p, abi.encodeWithSelector(IDisputes.WrongMembership.selector, 1));
        p = _wrongWiring();
        other = _wiringProof(claim, 2, NEXT, 0);
        (p.sinkRoot, p.sinkMembership) = (other.sinkRoot, other.sinkMembership);
        _refused(p, abi.encodeWithSelector(IDisputes.WrongMembership.selector, 1));
    }

    function test_wiring_refusesOtherCommitments() public {
        WiringProof memory p = _wrongWiring();
        p.operatorIndex = 0;
        _refused(p, abi.encodeWithSelector(IDisputes.WrongProgram.selector));
        // What goes to another sink, or to another entry of this one.
        for (uint8 sink = STATE; sink <= PREVIOUS; ++sink) {
            for (uint32 index = sink == NEXT ? 1 : 0; index < (sink == STATE ? 1 : 2); ++index) {
                p = _wrongWiring();
                wrongOperator = NOTHING;
                WiringProof memory other = _wiringProof(claim, 1, sink, index);
                (p.operatorIndex, p.wiringMembership) = (other.operatorIndex, other.wiringMembership);
                _refused(p, abi.encodeWithSelector(IDisputes.WrongProgram.selector));
            }
        }
        p = _wrongWiring();
        p.program.wiring = 0;
        _refused(p, abi.encodeWithSelector(IDisputes.WrongProgram.selector));
        p = _wrongWiring();
        p.programMembership = new bytes32[](1);
        _refused(p, abi.encodeWithSelector(IDisputes.WrongProgram.selector));
        p = _wrongWiring();
        p.logs.fromNext = 0;
        _refused(p, abi.encodeWithSelector(IDisputes.WrongLogs.selector));
        p = _wrongWiring();
        p.statement.claimId = 0;
        _refused(p, abi.encodeWithSelector(IDisputes.StatementMismatch.selector));
        p = _wrongWiring();
        p.signature = _sign(workers[0].key, _statementDigest(p.statement));
        _refused(p, abi.encodeWithSelector(IDisputes.BadSignature.selector));
        p = _wrongWiring();
        p.committedAt += 1;
        _refused(p, abi.encodeWithSelector(ICheckpoints.UnknownClaim.selector));
    }

    /// @dev A proof that would stand, to be spoiled: operator 3 is not what went to the next stage.
    function _wrongWiring() private returns (WiringProof memory) {
        wrongOperator = 3;
        return _wiringProof(claim, 1, NEXT, 0);
    }

    function _refused(WiringProof memory proof, bytes memory reason) private {
        vm.expectRevert(reason);
        disputes.proveSignedWiring(proof);
    }

    // Contradictions

    function test_contradiction_withTheClaimsParent() public {
        StepStatement memory first = _statement(claim, 0);
        first.preState = 0;
        StepStatement memory none;
        _convicts(_contradictionProof(claim, first, none));
    }

    function test_contradiction_withTheClaimsNewState() public {
        StepStatement memory last = _statement(claim, STEPS - 1);
        last.postState = 0;
        StepStatement memory none;
        _convicts(_contradictionProof(claim, last, none));
    }

    function test_contradiction_betweenSteps() public {
        (StepStatement memory first, StepStatement memory second) = (_statement(claim, 1), _statement(claim, 2));
        second.preState = 0;
        _convicts(_contradictionProof(claim, first, second));
    }

    function test_contradiction_aboutOneStep() public {
        for (uint256 i = 0; i < 3; ++i) {
            uint256 snapshot = vm.snapshotState();
            (StepStatement memory first, StepStatement memory second) = (_statement(claim, 1), _statement(claim, 1));
            if (i == 0) second.preState = 0;
            if (i == 1) second.postState = 0;
            if (i == 2) second.trace = 0;
            _convicts(_contradictionProof(claim, first, second));
            vm.revertToState(snapshot);
        }
    }

    /// @dev P-15: whatever an honest worker has signed, to whomever, no two of its statements convict it.
    function test_contradiction_notOfTheHonest() public {
        for (uint32 a = 0; a < STEPS; ++a) {
            for (uint32 b = 0; b < STEPS; ++b) {
                (StepStatement memory first, StepStatement memory second) = (_statement(claim, a), _statement(claim, b));
                second.auditor = stranger;
                _refused(_contradictionProof(claim, first, second), abi.encodeWithSelector(IDisputes.NoFault.selector));
            }
        }
    }

    /// @dev Statements about two intervals follow each other; each is about its own claim, and no pair is a proof.
    function test_contradiction_notAcrossClaims() public {
        Claim memory second = _commitTraining(1);
        ContradictionProof memory p =
            _contradictionProof(claim, _statement(claim, STEPS - 1), _statement(second, STEPS));
        _refused(p, abi.encodeWithSelector(IDisputes.StatementMismatch.selector));
        p = _contradictionProof(claim, _statement(second, STEPS), _statement(claim, 0));
        _refused(p, abi.encodeWithSelector(IDisputes.StatementMismatch.selector));
        // The claim's own id on a step of the next interval.
        p = _contradictionProof(claim, _statement(claim, STEPS), _statement(claim, 0));
        _refused(p, abi.encodeWithSelector(IDisputes.StatementMismatch.selector));
    }

    function test_contradiction_needsBothSignatures() public {
        (StepStatement memory first, StepStatement memory second) = (_statement(claim, 1), _statement(claim, 1));
        second.trace = 0;
        ContradictionProof memory p = _contradictionProof(claim, first, second);
        p.secondSignature = p.firstSignature;
        _refused(p, abi.encodeWithSelector(IDisputes.BadSignature.selector));
        p = _contradictionProof(claim, first, second);
        p.firstSignature = _sign(workers[0].key, _statementDigest(first));
        _refused(p, abi.encodeWithSelector(IDisputes.BadSignature.selector));
        p = _contradictionProof(claim, first, second);
        p.committedAt += 1;
        _refused(p, abi.encodeWithSelector(ICheckpoints.UnknownClaim.selector));
    }

    function _convicts(ContradictionProof memory proof) private {
        vm.expectEmit(address(disputes));
        emit IDisputes.Convicted(
            job,
            workers[STAGE].addr,
            auditor,
            STAGE,
            0,
            proof.first.claimId,
            IDisputes.Fault.Contradiction,
            proof.first.step,
            0,
            0,
            0,
            0
        );
        disputes.proveSignedContradiction(proof);
        assertEq(_staked(workers[STAGE].addr).bonded, 0);
        assertEq(checkpoints.laneOf(job, STAGE, 0).voidFrom, 0);
    }

    function _refused(ContradictionProof memory proof, bytes memory reason) private {
        vm.expectRevert(reason);
        disputes.proveSignedContradiction(proof);
    }
}
