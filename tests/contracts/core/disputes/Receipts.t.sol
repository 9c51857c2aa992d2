// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {ICheckpoints} from "../../../../contracts/interfaces/ICheckpoints.sol";
import {IDisputes} from "../../../../contracts/interfaces/IDisputes.sol";
import {IJobs} from "../../../../contracts/interfaces/IJobs.sol";
import {IStaking} from "../../../../contracts/interfaces/IStaking.sol";
import {Claim, ClaimLink} from "../../../../contracts/types/Types.sol";
import {ElementProof} from "../../protocol/ElementProof.sol";
import {ServingTest} from "../../protocol/ServingTest.sol";
import {Signatures} from "../../protocol/Signatures.sol";
import {SlowTree} from "../../verifier/SlowTree.sol";

/// @dev `proveSigned` over receipts: a wrong element of a text convicts, nothing else does (P-20, P-21).
contract ReceiptsTest is ServingTest {
    using SlowTree for bytes32[][];

    uint32 private constant TEXT = 7;

    bytes private constant UNKNOWN = abi.encodeWithSelector(ICheckpoints.UnknownClaim.selector);
    bytes private constant MISMATCH = abi.encodeWithSelector(IDisputes.StatementMismatch.selector);
    bytes private constant BAD_SIGNATURE = abi.encodeWithSelector(IDisputes.BadSignature.selector);
    bytes private constant WRONG_PROGRAM = abi.encodeWithSelector(IDisputes.WrongProgram.selector);

    /// @dev P-15, and that there is a proof against every operator at every length.
    function test_everyOperatorAtEveryLength() public {
        for (uint32 tokens = 1; tokens <= LONGEST; ++tokens) {
            for (uint32 operator = 0; operator < OPERATORS; ++operator) {
                uint256 snapshot = vm.snapshotState();
                uint64 element = tokens * 8 - 1;
                _refused(_elementProof(TEXT, tokens, operator, element), _noFault());
                (wrongOperator, wrongByte) = (operator, element);
                disputes.proveSigned(_elementProof(TEXT, tokens, operator, element).pack());
                assertEq(_staked(workers[0].addr).bonded, 0);
                vm.revertToState(snapshot);
            }
        }
    }

    /// forge-config: default.fuzz.runs = 32
    function testFuzz_honestWorkerIsNeverConvicted(uint32 text, uint32 tokens, uint32 operator, uint64 element) public {
        tokens = uint32(bound(tokens, 1, LONGEST));
        operator = uint32(bound(operator, 0, OPERATORS - 1));
        _refused(_elementProof(text, tokens, operator, element % 256), _noFault());
    }

    function test_moneyOfAConviction() public {
        ElementProof memory proof = _wrong(3);
        (uint256 supply, uint256 auditorHas, uint256 userHas) = (_supply(), sno.balanceOf(auditor), sno.balanceOf(user));
        int256 claimed = int8(uint8(_output(0, TEXT, 3)[0]));
        int256 recomputed = int8(uint8(_honest(0, TEXT, 3)[0]));
        vm.expectEmit(address(disputes));
        emit IDisputes.Convicted(
            job,
            workers[0].addr,
            auditor,
            0,
            0,
            proof.statement.claimId,
            IDisputes.Fault.Element,
            3,
            0,
            0,
            claimed,
            recomputed
        );
        vm.expectEmit(address(jobs));
        emit IJobs.JobClosing(job, true);
        vm.expectEmit(address(staking));
        emit IStaking.Slashed(workers[0].addr, STAKE, STAKE / 4, 0, STAKE * 3 / 10, STAKE * 9 / 20);
        // P-17: whoever sends it, and has copied it from the mempool, gains nothing.
        vm.prank(stranger);
        disputes.proveSigned(proof.pack());

        assertEq(sno.balanceOf(auditor) - auditorHas, STAKE / 4);
        assertEq(sno.balanceOf(user) - userHas, STAKE * 3 / 10);
        // P-45: the other half of the bounty is for auditors, of which there are none.
        assertEq(supply - _supply(), STAKE * 9 / 20);
        assertEq(sno.balanceOf(stranger), 0);
        assertEq(uint8(_stateOfJob(job)), uint8(IJobs.State.Closing));
        assertEq(jobs.jobOf(job).deadline, block.timestamp + WINDOW);
    }

    /// @dev P-21: the other lane is as it was, and redeems what it is owed; the rest of the escrow goes back.
    function test_convictionLeavesOtherLanes() public {
        _redeem(_voucher(job, 0, 0, 1, 10));
        disputes.proveSigned(_wrong(2).pack());
        assertEq(_staked(workers[1].addr).locked, STAKE);
        _redeem(_voucher(job, 0, 1, 1, 30));
        skip(WINDOW);
        jobs.settle(job);
        assertEq(_staked(workers[0].addr).locked, 0);
        assertEq(_staked(workers[0].addr).bonded, 0);
        assertEq(_staked(workers[1].addr).locked, 0);
        assertEq(_staked(workers[1].addr).bonded, STAKE);
        assertEq(jobs.creditOf(workers[0].addr, address(sno)), 10 * PRICE);
        assertEq(jobs.creditOf(workers[1].addr, address(sno)), 30 * PRICE);
        assertEq(jobs.creditOf(user, address(sno)), (200 - 40) * PRICE);
        assertEq(sno.balanceOf(address(jobs)), 200 * PRICE);
    }

    /// @dev P-6: a lane's stake is taken once, however many of its receipts are wrong.
    function test_secondConvictionTakesNothing() public {
        _stake(workers[0].addr, IStaking.Role.Worker, STAKE);
        disputes.proveSigned(_wrong(2).pack());
        uint40 deadline = jobs.jobOf(job).deadline;
        assertEq(_staked(workers[0].addr).bonded, STAKE);
        skip(10 minutes);
        // Another text, and the same again.
        disputes.proveSigned(_elementProof(TEXT + 1, 4, 0, 0).pack());
        disputes.proveSigned(_wrong(2).pack());
        assertEq(_staked(workers[0].addr).bonded, STAKE, "not again");
        assertEq(_staked(workers[0].addr).locked, 0);
        assertEq(jobs.jobOf(job).deadline, deadline, "closed once");
    }

    /// @dev P-20: from the start until it is settled, a receipt convicts.
    function test_liveUntilItIsSettled() public {
        ElementProof memory proof = _wrong(1);
        vm.prank(user);
        jobs.cancel(job);
        for (uint256 i = 0; i < 3; ++i) {
            uint256 snapshot = vm.snapshotState();
            // At once; in the last second of the window; after it, when nobody has settled yet.
            if (i == 1) skip(WINDOW - 1);
            if (i == 2) skip(30 days);
            disputes.proveSigned(proof.pack());
            assertEq(_staked(workers[0].addr).bonded, 0);
            vm.revertToState(snapshot);
        }
        skip(WINDOW);
        jobs.settle(job);
        _refused(proof, UNKNOWN);
    }

    function test_refusesJobsThatDoNotRunYet() public {
        for (uint256 i = 0; i < 2; ++i) {
            _stake(workers[i].addr, IStaking.Role.Worker, STAKE);
        }
        job = _post(_servingTerms(address(sno), 1, 2, 10));
        _refused(_wrong(1), UNKNOWN);
        _accept(job);
        _refused(_wrong(1), UNKNOWN);
        job = 77;
        _refused(_wrong(1), UNKNOWN);
    }

    /// @dev C-12: a receipt has no time and no states, whatever the worker signs.
    function test_refusesOtherForms() public {
        ElementProof memory p = _wrong(2);
        p.committedAt = uint64(block.timestamp);
        _refused(p, UNKNOWN);
        for (uint256 i = 0; i < 2; ++i) {
            p = _wrong(2);
            if (i == 0) p.claim.parentState = bytes32(uint256(1));
            else p.claim.newState = bytes32(uint256(1));
            p.statement.claimId = checkpoints.claimId(p.claim);
            p.signature = _signed(p.statement);
            _refused(p, UNKNOWN);
        }
    }

    /// @dev No records: nothing to commit, to hold back or to finalise.
    function test_receiptsHaveNoRecord() public {
        Claim memory receipt = _receipt(0, 2);
        ClaimLink memory none;
        vm.prank(workers[0].addr);
        vm.expectRevert(abi.encodeWithSelector(ICheckpoints.JobNotOpen.selector, job));
        checkpoints.commit(receipt, none);
        for (uint64 i = 0; i < 2; ++i) {
            uint64 when = i * uint64(block.timestamp);
            vm.prank(auditor);
            vm.expectRevert(UNKNOWN);
            challenges.open(receipt, when, _plain(1));
            (Claim[] memory claims, uint64[] memory times) = (new Claim[](1), new uint64[](1));
            (claims[0], times[0]) = (receipt, when);
            vm.expectRevert(UNKNOWN);
            checkpoints.finalize(claims, times, _heldByUser(claims));
        }
        assertEq(checkpoints.recordOf(job, 0, 0, 0), 0);
        assertFalse(checkpoints.hasPending(job, 0, 0));
    }

    // Programs by length (C-13)

    /// @dev A worker is judged by the program for the length it signed, not by that for another.
    function test_refusesProgramsOfOtherLengths() public {
        for (uint32 tokens = 1; tokens <= LONGEST; ++tokens) {
            for (uint32 other = 1; other <= LONGEST; ++other) {
                if (other == tokens) continue;
                ElementProof memory p = _wrong(tokens);
                // Its place in the list is right …
                (p.program, p.programMembership) = (_header(other), _programPath(other));
                _refused(p, WRONG_PROGRAM);
                // … or the program is.
                p.program = _header(tokens);
                _refused(p, WRONG_PROGRAM);
                // The same with all that is said of it signed for.
                p = _wrong(tokens);
                p.statement.step = other;
                p.signature = _signed(p.statement);
                _refused(p, WRONG_PROGRAM);
            }
        }
    }

    function test_refusesOtherMemberships() public {
        ElementProof memory p = _wrong(3);
        p.programMembership = new bytes32[](0);
        _refused(p, WRONG_PROGRAM);
        p.programMembership = new bytes32[](4);
        _refused(p, WRONG_PROGRAM);
        p = _wrong(3);
        p.programMembership[2] ^= bytes32(uint256(1));
        _refused(p, WRONG_PROGRAM);
        p = _wrong(3);
        p.program.constantCount += 1;
        _refused(p, WRONG_PROGRAM);
    }

    /// @dev No text has no tokens, or more than the longest: not even where the list has padding for it.
    function test_refusesLengthsThatNoTextHas() public {
        uint32[4] memory steps = [0, LONGEST + 1, 8, type(uint32).max];
        for (uint256 i = 0; i < 4; ++i) {
            ElementProof memory p = _wrong(3);
            p.statement.step = steps[i];
            p.signature = _signed(p.statement);
            _refused(p, MISMATCH);
        }
    }

    /// @dev Texts of one token: the list has one leaf, which is not the program itself.
    function test_listOfOneProgram() public {
        _stakeAgain();
        job = _postServing(1);
        assertEq(_wrong(1).programMembership.length, 0);
        disputes.proveSigned(_wrong(1).pack());
        _refused(_wrong2(), MISMATCH);
    }

    /// @dev A user that registers a program where a list belongs convicts nobody with it.
    function test_refusesAProgramThatIsNotInAList() public {
        _stakeAgain();
        wrongOperator = 0;
        ElementProof memory p = _elementProof(TEXT, 1, 0, 0);
        job = _postServing(1, keccak256(abi.encode(_header(1))));
        p.claim = _receipt(TEXT, 1);
        p.statement = _statement(TEXT, 1);
        p.signature = _signed(p.statement);
        p.programMembership = new bytes32[](0);
        _refused(p, WRONG_PROGRAM);
    }

    // What is not a proof

    /// @dev Replay across texts, lanes, jobs and deployments: the statement names the receipt by its digest.
    function test_refusesStatementsAboutOtherReceipts() public {
        _stakeAgain();
        uint64 other = _postServing(LONGEST);
        for (uint256 i = 0; i < 4; ++i) {
            ElementProof memory p = _wrong(2);
            if (i == 0) p.claim.interval = TEXT + 1;
            if (i == 1) p.claim.replica = 1;
            if (i == 2) p.claim.job = other;
            if (i == 3) p.claim.io = 0;
            _refused(p, BAD_SIGNATURE);
        }
        // The receipt of another deployment.
        ElementProof memory q = _wrong(2);
        q.statement.claimId = Signatures.digest(block.chainid, makeAddr("other deployment"), Signatures.hash(q.claim));
        q.signature = _signed(q.statement);
        _refused(q, BAD_SIGNATURE);
    }

    function test_refusesOtherSignatures() public {
        ElementProof memory p = _wrong(2);
        bytes32 hash = Signatures.hash(p.statement);
        p.signature = _sign(workers[1].key, _statementDigest(p.statement));
        _refused(p, BAD_SIGNATURE);
        p.signature = _sign(workers[0].key, Signatures.digest(block.chainid + 1, address(disputes), hash));
        _refused(p, BAD_SIGNATURE);
        p.signature = _sign(workers[0].key, Signatures.digest(block.chainid, makeAddr("other deployment"), hash));
        _refused(p, BAD_SIGNATURE);
        // A worker's word about another's lane, and about one that the job has not got, nor a program for it.
        for (uint16 i = 0; i < 2; ++i) {
            p = _wrong(2);
            (p.claim.stage, p.claim.replica) = (i, 1 - i);
            p.statement.claimId = checkpoints.claimId(p.claim);
            p.signature = _signed(p.statement);
            _refused(p, i == 0 ? BAD_SIGNATURE : WRONG_PROGRAM);
        }
    }

    function test_refusesOtherLogs() public {
        ElementProof memory p = _wrong(2);
        p.logs.toNext = 0;
        _refused(p, abi.encodeWithSelector(IDisputes.WrongLogs.selector));
        // What arrived in another micro-batch; what arrived in this, without its path.
        p = _wrong(2);
        p.operands[0] = _elementProof(TEXT, 2, 2, 0).operands[0];
        _refused(p, abi.encodeWithSelector(IDisputes.WrongMembership.selector, 0));
        p = _wrong(2);
        p.operands[0].membership = new bytes32[](0);
        _refused(p, abi.encodeWithSelector(IDisputes.WrongMembership.selector, 0));
    }

    /// @dev A proof against operator 0, element 0 of a text of so many tokens, to be spoiled.
    function _wrong(uint32 tokens) private returns (ElementProof memory) {
        wrongOperator = 0;
        return _elementProof(TEXT, tokens, 0, 0);
    }

    /// @dev A proof over two tokens where a text has one at most.
    function _wrong2() private returns (ElementProof memory p) {
        p = _wrong(1);
        p.statement.step = 2;
        p.signature = _signed(p.statement);
    }

    function _stakeAgain() private {
        for (uint256 i = 0; i < 2; ++i) {
            _stake(workers[i].addr, IStaking.Role.Worker, STAKE);
        }
    }

    function _noFault() private pure returns (bytes memory) {
        return abi.encodeWithSelector(IDisputes.NoFault.selector);
    }

    function _refused(ElementProof memory proof, bytes memory reason) private {
        vm.expectRevert(reason);
        disputes.proveSigned(proof.pack());
    }
}
