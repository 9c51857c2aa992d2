// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {ICheckpoints} from "../../../../contracts/interfaces/ICheckpoints.sol";
import {IDisputes} from "../../../../contracts/interfaces/IDisputes.sol";
import {IJobs} from "../../../../contracts/interfaces/IJobs.sol";
import {IStaking} from "../../../../contracts/interfaces/IStaking.sol";
import {IStepVerifier} from "../../../../contracts/interfaces/IStepVerifier.sol";
import {Claim, LeafRange, TensorType} from "../../../../contracts/types/Types.sol";
import {ElementProof, TensorOpening} from "../../protocol/ElementProof.sol";
import {Signatures} from "../../protocol/Signatures.sol";
import {TrainingTest} from "../../protocol/TrainingTest.sol";

/// @dev `proveSigned`: a wrong element convicts, nothing else does.
contract ConvictionTest is TrainingTest {
    Claim private claim;

    function setUp() public override {
        super.setUp();
        claim = _commitTraining(0);
    }

    /// @dev P-15, and that there is a proof against every operator of the program (all five sources of operands).
    function test_everyOperator() public {
        for (uint32 operator = 0; operator < OPERATORS; ++operator) {
            uint256 snapshot = vm.snapshotState();
            uint64 element = operator == 2 ? 300 : 3;
            _refused(_elementProof(claim, 1, operator, element), abi.encodeWithSelector(IDisputes.NoFault.selector));
            (wrongOperator, wrongByte) = (operator, element);
            disputes.proveSigned(_elementProof(claim, 1, operator, element).pack());
            assertEq(_staked(workers[STAGE].addr).bonded, 0);
            vm.revertToState(snapshot);
        }
    }

    /// forge-config: default.fuzz.runs = 32
    function testFuzz_honestWorkerIsNeverConvicted(uint32 step, uint32 operator, uint64 element) public {
        step = uint32(bound(step, 0, STEPS - 1));
        operator = uint32(bound(operator, 0, OPERATORS - 1));
        element = uint64(bound(element, 0, operator == 2 ? 511 : 255));
        _refused(_elementProof(claim, step, operator, element), abi.encodeWithSelector(IDisputes.NoFault.selector));
    }

    function test_moneyOfAConviction() public {
        wrongOperator = 0;
        ElementProof memory proof = _elementProof(claim, 2, 0, 0);
        (uint256 supply, uint256 auditorHas, uint256 userHas) = (_supply(), sno.balanceOf(auditor), sno.balanceOf(user));
        bytes32 id = checkpoints.claimId(claim);

        int256 claimed = int8(uint8(_output(0, 2)[0]));
        wrongOperator = NOTHING;
        int256 recomputed = int8(uint8(_output(0, 2)[0]));
        vm.expectEmit(address(disputes));
        emit IDisputes.Convicted(
            job, workers[STAGE].addr, auditor, STAGE, 0, id, IDisputes.Fault.Element, 2, 0, 0, claimed, recomputed
        );
        vm.expectEmit(address(checkpoints));
        emit ICheckpoints.ClaimsVoided(job, STAGE, 0, 0);
        vm.expectEmit(address(jobs));
        emit IJobs.JobClosing(job, true);
        vm.expectEmit(address(staking));
        emit IStaking.Slashed(workers[STAGE].addr, STAKE, STAKE / 4, 0, STAKE * 3 / 10, STAKE * 9 / 20);
        // P-17: whoever sends it, and has copied it from the mempool, gains nothing.
        vm.prank(stranger);
        disputes.proveSigned(proof.pack());

        assertEq(sno.balanceOf(auditor) - auditorHas, STAKE / 4);
        assertEq(sno.balanceOf(user) - userHas, STAKE * 3 / 10);
        // P-45: the other half of the bounty is for auditors, of which there are none.
        assertEq(supply - _supply(), STAKE * 9 / 20);
        assertEq(sno.balanceOf(stranger), 0);

        // Another lane is as it was, and the whole escrow goes back.
        assertEq(_staked(workers[0].addr).locked, STAKE);
        jobs.settle(job);
        assertEq(_staked(workers[0].addr).locked, 0);
        assertEq(_staked(workers[0].addr).bonded, STAKE);
        assertEq(jobs.creditOf(user, address(sno)), 9 * PRICE);
    }

    /// @dev Slashing a whole provider for one node's fault: the other jobs of the same worker keep their locks.
    function test_slashTakesOneLanesStake() public {
        _stake(workers[STAGE].addr, IStaking.Role.Worker, 3 * uint256(STAKE));
        _stake(workers[0].addr, IStaking.Role.Worker, STAKE);
        uint64 other = _run(2, 1, 1);
        wrongOperator = 0;
        disputes.proveSigned(_elementProof(claim, 0, 0, 0).pack());
        assertEq(_staked(workers[STAGE].addr).bonded, 3 * STAKE);
        assertEq(_staked(workers[STAGE].addr).locked, STAKE);
        assertEq(uint8(_stateOfJob(other)), uint8(IJobs.State.Running));
    }

    /// @dev P-13: later claims of the lane are void; earlier ones stand and are paid.
    function test_convictionVoidsWhatFollows() public {
        uint64 when = uint64(block.timestamp);
        Claim memory second = _commitTraining(1);
        Claim memory third = _commitTraining(2);
        wrongOperator = 1;
        wrongByte = 9;
        disputes.proveSigned(_elementProof(second, 5, 1, 9).pack());

        ElementProof memory again = _elementProof(second, 6, 1, 9);
        _refused(again, abi.encodeWithSelector(ICheckpoints.ClaimIsVoid.selector));
        _refused(_elementProof(third, 8, 1, 9), abi.encodeWithSelector(ICheckpoints.ClaimIsVoid.selector));
        skip(WINDOW);
        _finalizeTraining(when);
        assertEq(jobs.creditOf(workers[STAGE].addr, address(sno)), PRICE);
        jobs.settle(job);
        assertEq(jobs.creditOf(user, address(sno)), 8 * PRICE);
    }

    /// @dev P-6: a lane's stake is taken once, though an earlier claim of it is convicted afterwards.
    function test_secondConvictionOfALane() public {
        _stake(workers[STAGE].addr, IStaking.Role.Worker, STAKE);
        Claim memory second = _commitTraining(1);
        wrongOperator = 1;
        disputes.proveSigned(_elementProof(second, 5, 1, 0).pack());
        assertEq(_staked(workers[STAGE].addr).bonded, STAKE);
        disputes.proveSigned(_elementProof(claim, 0, 1, 0).pack());
        assertEq(_staked(workers[STAGE].addr).bonded, STAKE, "not again");
        assertEq(checkpoints.laneOf(job, STAGE, 0).voidFrom, 0);
        jobs.settle(job);
        assertEq(jobs.creditOf(user, address(sno)), 9 * PRICE);
        vm.prank(workers[STAGE].addr);
        staking.requestUnstake(IStaking.Role.Worker, STAKE);
    }

    function test_finalClaimsStay() public {
        uint64 when = uint64(block.timestamp);
        wrongOperator = 1;
        ElementProof memory proof = _elementProof(claim, 0, 1, 0);
        skip(WINDOW);
        _finalizeTraining(when);
        _refused(proof, abi.encodeWithSelector(ICheckpoints.ClaimIsFinal.selector));
    }

    /// @dev After the window a claim is provable until somebody finalises it.
    function test_lateProofCounts() public {
        wrongOperator = 1;
        ElementProof memory proof = _elementProof(claim, 0, 1, 0);
        skip(30 days);
        disputes.proveSigned(proof.pack());
    }

    /// @dev N-1: −128 is no mantissa of eight bits.
    function test_mantissaBeyondItsLimit() public {
        wrongMask = bytes1(0x80) ^ _output(3, 0)[2];
        (wrongOperator, wrongByte) = (3, 2);
        ElementProof memory proof = _elementProof(claim, 0, 3, 2);
        assertEq(proof.output.ranges[0].leaves[2], bytes1(0x80));
        disputes.proveSigned(proof.pack());
    }

    /// @dev C-1: what is not an element is zero. Without this a worker could spoil a root at will.
    function test_paddingIsZero() public {
        _refused(_elementProof(claim, 0, 3, 4), abi.encodeWithSelector(IDisputes.NoFault.selector));
        _refused(_elementProof(claim, 0, 3, 255), abi.encodeWithSelector(IDisputes.NoFault.selector));
        ElementProof memory beyond = _elementProof(claim, 0, 3, 255);
        beyond.element = 256;
        _refused(beyond, abi.encodeWithSelector(IDisputes.ElementOutOfRange.selector, 256));
        (wrongOperator, wrongByte) = (3, 255);
        disputes.proveSigned(_elementProof(claim, 0, 3, 255).pack());
    }

    // What is not a proof

    function test_refusesUnknownClaims() public {
        ElementProof memory p = _wrong();
        p.claim.newState = 0;
        _refused(p, abi.encodeWithSelector(ICheckpoints.UnknownClaim.selector));
        p = _wrong();
        p.committedAt += 1;
        _refused(p, abi.encodeWithSelector(ICheckpoints.UnknownClaim.selector));
    }

    /// @dev Replay across claims, intervals and jobs: the statement names the claim by its digest.
    function test_refusesStatementsAboutOtherClaims() public {
        Claim memory second = _commitTraining(1);
        ElementProof memory p = _wrong();
        p.claim = second;
        _refused(p, abi.encodeWithSelector(IDisputes.StatementMismatch.selector));
        // A step of the interval, but what is signed names the claim before.
        p = _elementProof(second, STEPS, 0, 0);
        p.statement.claimId = checkpoints.claimId(claim);
        p.signature = _signed(p.statement);
        _refused(p, abi.encodeWithSelector(IDisputes.BadSignature.selector));

        // Signed, but about a step of another interval.
        wrongOperator = 0;
        p = _elementProof(claim, STEPS, 0, 0);
        _refused(p, abi.encodeWithSelector(IDisputes.StatementMismatch.selector));
    }

    /// @dev Replay across signers, chains, deployments and contracts.
    function test_refusesOtherSignatures() public {
        ElementProof memory p = _wrong();
        bytes memory refused = abi.encodeWithSelector(IDisputes.BadSignature.selector);
        bytes32 hash = Signatures.hash(p.statement);
        p.signature = _sign(workers[0].key, _statementDigest(p.statement));
        _refused(p, refused);
        p.signature = _sign(workers[STAGE].key, Signatures.digest(block.chainid + 1, address(disputes), hash));
        _refused(p, refused);
        p.signature = _sign(workers[STAGE].key, Signatures.digest(block.chainid, makeAddr("other deployment"), hash));
        _refused(p, refused);
        p.signature = _sign(workers[STAGE].key, Signatures.digest(block.chainid, address(checkpoints), hash));
        _refused(p, refused);
        p.signature = new bytes(65);
        _refused(p, refused);
        // P-17: the auditor is part of what is signed.
        p = _wrong();
        p.statement.auditor = stranger;
        _refused(p, refused);
    }

    function test_refusesOtherPrograms() public {
        ElementProof memory p = _wrong();
        p.program.stateCount += 1;
        _refused(p, abi.encodeWithSelector(IDisputes.WrongProgram.selector));
        // The program of a training job is in no list.
        p = _wrong();
        p.programMembership = new bytes32[](1);
        _refused(p, abi.encodeWithSelector(IDisputes.WrongProgram.selector));
        // An operator that it has not got, or not there.
        p = _wrong();
        p.operator.attributes[0] = 5;
        _refused(p, abi.encodeWithSelector(IDisputes.WrongProgram.selector));
        p = _wrong();
        p.operatorIndex = 1;
        _refused(p, abi.encodeWithSelector(IDisputes.WrongProgram.selector));
        p = _wrong();
        p.operatorIndex = OPERATORS;
        _refused(p, abi.encodeWithSelector(IDisputes.WrongOperator.selector));
        p = _wrong();
        p.operatorMembership = new bytes32[](0);
        _refused(p, abi.encodeWithSelector(IDisputes.WrongOperator.selector));
    }

    function test_refusesOtherOutputs() public {
        // Such a trace the worker has not signed.
        ElementProof memory p = _wrong();
        p.output.membership[0] = 0;
        _refused(p, abi.encodeWithSelector(IDisputes.BadSignature.selector));
        p = _wrong();
        p.output.ranges[0].leaves[5] ^= 0x01;
        _refused(p, abi.encodeWithSelector(IDisputes.BadSignature.selector));
        // There is none.
        p = _wrong();
        p.output.membership = new bytes32[](0);
        _refused(p, abi.encodeWithSelector(IDisputes.WrongMembership.selector, type(uint256).max));
        bytes memory refused = abi.encodeWithSelector(IDisputes.WrongOpening.selector, type(uint256).max, 0);
        p = _wrong();
        p.output.ranges[0].firstLeaf = 1;
        _refused(p, refused);
        // A true leaf, but not the one that holds the element.
        wrongOperator = 2;
        p = _elementProof(claim, 0, 2, 0);
        p.element = 256;
        _refused(p, refused);
    }

    function test_refusesOtherOperands() public {
        ElementProof memory p = _wrong();
        for (uint256 i = 0; i < 2; ++i) {
            p = _wrong();
            p.operands[i].ranges[0].leaves[7] ^= 0x01;
            _refused(p, abi.encodeWithSelector(IDisputes.WrongMembership.selector, i));
            p = _wrong();
            p.operands[i].ranges[0].firstLeaf = 1;
            _refused(p, abi.encodeWithSelector(IDisputes.WrongOpening.selector, i, 0));
            // The tensor, and as a second range of it another.
            p = _wrong();
            p.operands[i].ranges = new LeafRange[](2);
            p.operands[i].ranges[0] = _wrong().operands[i].ranges[0];
            p.operands[i].ranges[1] = _wrong().operands[i].ranges[0];
            p.operands[i].ranges[1].leaves[7] ^= 0x01;
            _refused(p, abi.encodeWithSelector(IDisputes.WrongOpening.selector, i, 1));
            // What is left out is not known.
            p = _wrong();
            p.operands[i].ranges = new LeafRange[](0);
            bytes memory proof = p.pack();
            vm.expectPartialRevert(IStepVerifier.MissingElement.selector);
            disputes.proveSigned(proof);
        }
        // Data of another step's state, true as such.
        p = _wrong();
        p.operands[1] = _elementProof(claim, 1, 0, 0).operands[1];
        _refused(p, abi.encodeWithSelector(IDisputes.WrongMembership.selector, 1));
        p = _wrong();
        p.operands = new TensorOpening[](0);
        _refused(p, abi.encodeWithSelector(IDisputes.WrongMembership.selector, 0));
    }

    function test_refusesOtherLogs() public {
        wrongOperator = 4;
        ElementProof memory p = _elementProof(claim, 3, 4, 0);
        p.logs.toNext = 0;
        _refused(p, abi.encodeWithSelector(IDisputes.WrongLogs.selector));
        // What arrived in another step or another micro-batch.
        p = _elementProof(claim, 3, 4, 0);
        p.operands[0] = _elementProof(claim, 2, 4, 0).operands[0];
        _refused(p, abi.encodeWithSelector(IDisputes.WrongMembership.selector, 0));
        p.operands[0] = _elementProof(claim, 3, 3, 0).operands[0];
        _refused(p, abi.encodeWithSelector(IDisputes.WrongMembership.selector, 0));
    }

    /// @dev A user that registers a program which reads what is not there convicts nobody with it.
    function test_refusesMalformedPrograms() public {
        // An operator that reads itself; a micro-batch of the next step; a source that does not exist.
        for (uint32 i = 0; i < 3; ++i) {
            if (i == 0) program[1].operands[0].index = 1;
            if (i == 1) program[3].operands[0].index = MICRO_BATCHES;
            if (i == 2) program[5].operands[0].source = 6;
            for (uint256 k = 0; k < 3; ++k) {
                _stake(workers[k].addr, IStaking.Role.Worker, STAKE);
            }
            _postTraining();
            claim = _commitTraining(0);
            uint32 operator = 1 + 2 * i;
            wrongOperator = operator;
            ElementProof memory p = _elementProof(claim, 0, operator, 0);
            if (i == 1) {
                // What really stands at that place of the log.
                bytes32[] memory path = p.operands[0].membership;
                p.operands[0] = _open(_arrival(4, 1, 0), 0, 1);
                p.operands[0].membership = path;
            }
            _refused(p, abi.encodeWithSelector(IDisputes.WrongMembership.selector, 0));
        }
    }

    /// @dev A type that is none (a stray bit) convicts nobody by the padding of its tensor, which no recomputation
    /// looks at.
    function test_refusesMalformedTypes() public {
        program[7].output = TensorType.wrap(TensorType.unwrap(program[7].output) | 1 << 128);
        for (uint256 k = 0; k < 3; ++k) {
            _stake(workers[k].addr, IStaking.Role.Worker, STAKE);
        }
        _postTraining();
        claim = _commitTraining(0);
        (wrongOperator, wrongByte) = (7, 100);
        _refused(_elementProof(claim, 0, 7, 100), abi.encodeWithSelector(IDisputes.WrongOperator.selector));
    }

    /// @dev A proof against operator 0, element 0 of step 0, to be spoiled.
    function _wrong() private returns (ElementProof memory) {
        wrongOperator = 0;
        return _elementProof(claim, 0, 0, 0);
    }

    function _refused(ElementProof memory proof, bytes memory reason) private {
        vm.expectRevert(reason);
        disputes.proveSigned(proof.pack());
    }

    function _finalizeTraining(uint64 when) private {
        (Claim[] memory claims, uint64[] memory times) = (new Claim[](1), new uint64[](1));
        (claims[0], times[0]) = (claim, when);
        checkpoints.finalize(claims, times, _heldByUser(claims));
    }
}
