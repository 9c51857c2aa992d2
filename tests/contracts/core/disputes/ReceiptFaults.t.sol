// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {ICheckpoints} from "../../../../contracts/interfaces/ICheckpoints.sol";
import {IDisputes} from "../../../../contracts/interfaces/IDisputes.sol";
import {IJobs} from "../../../../contracts/interfaces/IJobs.sol";
import {ContradictionProof, StepStatement, WiringProof} from "../../../../contracts/types/Types.sol";
import {ServingTest} from "../../protocol/ServingTest.sol";

/// @dev `proveSignedWiring` and `proveSignedContradiction` over receipts.
contract ReceiptFaultsTest is ServingTest {
    uint32 private constant TEXT = 7;

    bytes private constant NO_FAULT = abi.encodeWithSelector(IDisputes.NoFault.selector);
    bytes private constant UNKNOWN = abi.encodeWithSelector(ICheckpoints.UnknownClaim.selector);
    bytes private constant MISMATCH = abi.encodeWithSelector(IDisputes.StatementMismatch.selector);
    bytes private constant WRONG_PROGRAM = abi.encodeWithSelector(IDisputes.WrongProgram.selector);
    bytes private constant WRONG_OPERATOR = abi.encodeWithSelector(IDisputes.WrongOperator.selector);

    // Wiring

    function test_wiring_everyMicroBatchAtEveryLength() public {
        for (uint32 tokens = 1; tokens <= LONGEST; ++tokens) {
            for (uint32 index = 0; index < MICRO_BATCHES; ++index) {
                uint256 snapshot = vm.snapshotState();
                wrongOperator = NOTHING;
                _refused(_wiringProof(TEXT, tokens, index), NO_FAULT);
                wrongOperator = 2 * index + 1;
                WiringProof memory proof = _wiringProof(TEXT, tokens, index);
                vm.expectEmit(address(disputes));
                emit IDisputes.Convicted(
                    job,
                    workers[0].addr,
                    auditor,
                    0,
                    0,
                    proof.statement.claimId,
                    IDisputes.Fault.Wiring,
                    tokens,
                    2 * index + 1,
                    index,
                    0,
                    0
                );
                disputes.proveSignedWiring(proof);
                _isConvicted();
                vm.revertToState(snapshot);
            }
        }
    }

    function test_wiring_refusesOtherPlaces() public {
        WiringProof memory p = _wrongWiring();
        // A text has no state to go to, and nothing goes back.
        for (uint8 sink = 0; sink < 5; ++sink) {
            if (sink == 2) continue;
            p.sink = sink;
            _refused(p, WRONG_OPERATOR);
        }
        p = _wrongWiring();
        p.index = MICRO_BATCHES;
        _refused(p, WRONG_OPERATOR);
        // What the worker computed and what it sent, but not both for this micro-batch.
        WiringProof memory other = _wiringProof(TEXT, 3, 1);
        p = _wrongWiring();
        (p.traceRoot, p.traceMembership) = (other.traceRoot, other.traceMembership);
        _refused(p, abi.encodeWithSelector(IDisputes.WrongMembership.selector, 0));
        p = _wrongWiring();
        (p.sinkRoot, p.sinkMembership) = (other.sinkRoot, other.sinkMembership);
        _refused(p, abi.encodeWithSelector(IDisputes.WrongMembership.selector, 1));
    }

    function test_wiring_refusesOtherCommitments() public {
        WiringProof memory p = _wrongWiring();
        p.programMembership = _programPath(2);
        _refused(p, WRONG_PROGRAM);
        p.program = _header(2);
        _refused(p, WRONG_PROGRAM);
        p = _wrongWiring();
        p.programMembership = new bytes32[](0);
        _refused(p, WRONG_PROGRAM);
        p = _wrongWiring();
        p.operatorIndex = 0;
        _refused(p, WRONG_PROGRAM);
        p = _wrongWiring();
        p.logs.fromNext = bytes32(uint256(1));
        _refused(p, abi.encodeWithSelector(IDisputes.WrongLogs.selector));
        p = _wrongWiring();
        p.statement.claimId = 0;
        _refused(p, MISMATCH);
        p = _wrongWiring();
        p.signature = _sign(workers[1].key, _statementDigest(p.statement));
        _refused(p, abi.encodeWithSelector(IDisputes.BadSignature.selector));
        p = _wrongWiring();
        p.committedAt = 1;
        _refused(p, UNKNOWN);
    }

    /// @dev A proof that would stand, to be spoiled: operator 1 is not what went to the next stage.
    function _wrongWiring() private returns (WiringProof memory) {
        wrongOperator = 1;
        return _wiringProof(TEXT, 3, 0);
    }

    function _refused(WiringProof memory proof, bytes memory reason) private {
        vm.expectRevert(reason);
        disputes.proveSignedWiring(proof);
    }

    // Contradictions

    /// @dev C-12: a text starts from nothing and leaves nothing.
    function test_contradiction_withTheReceipt() public {
        StepStatement memory none;
        for (uint256 i = 0; i < 2; ++i) {
            uint256 snapshot = vm.snapshotState();
            StepStatement memory lie = _statement(TEXT, 3);
            if (i == 0) lie.preState = bytes32(uint256(1));
            else lie.postState = bytes32(uint256(1));
            _convicts(_contradictionProof(TEXT, 3, lie, none));
            vm.revertToState(snapshot);
        }
    }

    function test_contradiction_aboutTheTrace() public {
        (StepStatement memory first, StepStatement memory second) = (_statement(TEXT, 3), _statement(TEXT, 3));
        second.trace = 0;
        _convicts(_contradictionProof(TEXT, 3, first, second));
    }

    /// @dev One text has one length: in either order, near or far.
    function test_contradiction_aboutTheLength() public {
        for (uint32 other = 1; other <= LONGEST; ++other) {
            if (other == 3) continue;
            uint256 snapshot = vm.snapshotState();
            (StepStatement memory first, StepStatement memory second) = (_statement(TEXT, 3), _statement(TEXT, 3));
            if (other % 2 == 0) first.step = other;
            else second.step = other;
            _convicts(_contradictionProof(TEXT, 3, first, second));
            vm.revertToState(snapshot);
        }
    }

    /// @dev P-15: whatever an honest worker has signed, to whomever, no two of its statements convict it.
    function test_contradiction_notOfTheHonest() public {
        for (uint32 tokens = 1; tokens <= LONGEST; ++tokens) {
            (StepStatement memory first, StepStatement memory second) =
                (_statement(TEXT, tokens), _statement(TEXT, tokens));
            second.auditor = stranger;
            _refused(_contradictionProof(TEXT, tokens, first, second), NO_FAULT);
            // About two texts, be they the same but for their numbers.
            second = _statement(TEXT + 1, tokens);
            _refused(_contradictionProof(TEXT, tokens, first, second), MISMATCH);
            _refused(_contradictionProof(TEXT, tokens, second, first), MISMATCH);
        }
    }

    /// @dev A length that no text has is no statement at all.
    function test_contradiction_aboutLengthsThatNoTextHas() public {
        (StepStatement memory first, StepStatement memory second) = (_statement(TEXT, 3), _statement(TEXT, 3));
        uint32[2] memory steps = [0, LONGEST + 1];
        for (uint256 i = 0; i < 2; ++i) {
            second.step = steps[i];
            _refused(_contradictionProof(TEXT, 3, first, second), MISMATCH);
            _refused(_contradictionProof(TEXT, 3, second, first), MISMATCH);
        }
    }

    function test_contradiction_needsBothSignatures() public {
        (StepStatement memory first, StepStatement memory second) = (_statement(TEXT, 3), _statement(TEXT, 3));
        second.trace = 0;
        ContradictionProof memory p = _contradictionProof(TEXT, 3, first, second);
        p.secondSignature = p.firstSignature;
        _refused(p, abi.encodeWithSelector(IDisputes.BadSignature.selector));
        p = _contradictionProof(TEXT, 3, first, second);
        p.firstSignature = _sign(workers[1].key, _statementDigest(first));
        _refused(p, abi.encodeWithSelector(IDisputes.BadSignature.selector));
        p = _contradictionProof(TEXT, 3, first, second);
        p.committedAt = 1;
        _refused(p, UNKNOWN);
        vm.prank(user);
        jobs.cancel(job);
        skip(WINDOW);
        jobs.settle(job);
        _refused(_contradictionProof(TEXT, 3, first, second), UNKNOWN);
    }

    function _convicts(ContradictionProof memory proof) private {
        vm.expectEmit(address(disputes));
        emit IDisputes.Convicted(
            job,
            workers[0].addr,
            auditor,
            0,
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
        _isConvicted();
    }

    function _isConvicted() private view {
        assertEq(_staked(workers[0].addr).bonded, 0);
        assertEq(uint8(_stateOfJob(job)), uint8(IJobs.State.Closing));
        assertEq(jobs.jobOf(job).deadline, block.timestamp + WINDOW);
    }

    function _refused(ContradictionProof memory proof, bytes memory reason) private {
        vm.expectRevert(reason);
        disputes.proveSignedContradiction(proof);
    }
}
