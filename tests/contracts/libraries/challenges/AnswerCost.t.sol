// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IChallengeAnswers} from "../../../../contracts/interfaces/challenges/IChallengeAnswers.sol";
import {AnswerCost} from "../../../../contracts/libraries/challenges/AnswerCost.sol";
import {Dissection} from "../../../../contracts/libraries/challenges/Dissection.sol";
import {Position, Subject} from "../../../../contracts/types/Challenge.sol";
import {ChallengeTest} from "../../protocol/ChallengeTest.sol";

/// @title P-42: what the contract takes an answer to cost, and what it costs
/// @notice Each call here is a transaction of its own (`isolate`), with its calldata and the floor of EIP-7623.
/// `ChallengeGas.t.sol` does the same with the largest answers.
/// forge-config: default.isolate = true
contract AnswerCostTest is ChallengeTest {
    using Dissection for Position;

    uint256 private constant ID = 1;

    uint256 private used;
    string private kind;

    function setUp() public override {
        super.setUp();
        claim = _commitTraining(0);
        levels = 2;
        kind = "answer, 4 states";
        _challenge();
    }

    function _onAnswer() internal override {
        used = vm.snapshotGasLastCall("challenge", kind);
    }

    function test_everyAnswerIsPaidFor() public {
        _paidAnswer("answerSteps, 4 states");
        _askStatement(ID, 1);
        _paidAnswer("answerStatement, 4 nodes");
        while (!positions[ID].isBottom()) {
            _ask(ID, _childFor(ID, 3));
            _paidAnswer("answer, 2 entries");
        }
        _askOutput(ID, _childFor(ID, 3));
        _paidAnswer("answerOutput, a leaf");
        vm.prank(auditor);
        challenges.askLogs(ID, positions[ID]);
        _follow();
        _paidAnswer("answerLogs");
        vm.prank(auditor);
        challenges.askLog(ID, positions[ID], factsOf[ID], claim, _logsOf(0), 3, _plain(3));
        _follow();
        _paidAnswer("answer, 8 entries");
        vm.prank(auditor);
        challenges.askTree(ID, positions[ID], factsOf[ID], Subject.State, _plain(0));
        _follow();
        _paidAnswer("answer, a state of one tensor");
    }

    function _paidAnswer(string memory name) private {
        kind = name;
        _answer(ID);
        _isPaidFor(ID, used);
    }

    /// @dev A worker that sends more than it was asked for uses up no deposit by it.
    function test_padding() public {
        _answer(ID);
        vm.prank(auditor);
        challenges.askTree(ID, positions[ID], factsOf[ID], Subject.Steps, _plain(2));
        _follow();
        Position memory p = positions[ID];
        bytes memory call = abi.encodeCall(IChallengeAnswers.answer, (ID, p, _noWay(), _dataOf(ID, p)));
        vm.prank(workers[STAGE].addr);
        (bool done,) = address(challenges).call(bytes.concat(call, new bytes(60_000)));
        assertTrue(done, "padding is no fault");
        _follow();
        assertLe(charged, AnswerCost.mostGas(challenges.challengeOf(ID).lastBytes));
    }

    function test_bytesOf() public pure {
        Position memory p;
        (p.subject, p.levels, p.height) = (Subject.Output, 3, 3);
        assertEq(AnswerCost.bytesOf(p, 0), 8 * 256, "leaves");
        (p.guided, p.height) = (2, 6);
        assertEq(AnswerCost.bytesOf(p, 14), 8 * 32 + 2 * 32 + 14, "nodes, siblings, hints");
        p.height = 5;
        assertEq(AnswerCost.bytesOf(p, 14), 8 * 256 + 2 * 32 + 14, "leaves below hints");
        p.subject = Subject.Trace;
        assertEq(AnswerCost.bytesOf(p, 14), 8 * 32 + 2 * 32 + 14, "entries below hints");
        p.subject = Subject.Logs;
        assertEq(AnswerCost.bytesOf(p, 0), 0, "nothing of variable length");
    }
}
