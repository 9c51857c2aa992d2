// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IChallengeQuestions} from "../../../../contracts/interfaces/challenges/IChallengeQuestions.sol";
import {AnswerCost} from "../../../../contracts/libraries/challenges/AnswerCost.sol";
import {ParameterBounds} from "../../../../contracts/libraries/terms/ParameterBounds.sol";
import {StepAnswer, Subject} from "../../../../contracts/types/Challenge.sol";
import {Operator} from "../../../../contracts/types/Types.sol";
import {LargestGame} from "../../protocol/LargestGame.sol";

/// @title Gas of the largest game: by hints, and without them for several numbers k = 2^levels of nodes at a time; and
/// of the worst that a challenger can ask for
/// forge-config: default.isolate = true
contract ChallengeGasTest is LargestGame {
    /// @dev What the proof that ends a game costs (`conviction.json`).
    uint256 private constant PROOF = 480_000;

    function test_k16() public {
        _measure(4);
    }

    function test_k32() public {
        _measure(5);
    }

    function test_k64() public {
        _measure(6);
    }

    function test_k128() public {
        _measure(7);
    }

    function test_k256() public {
        _measure(8);
    }

    /// @dev The agents' way (`agents/proof/src/challenge/position.rs`).
    function test_byHints() public {
        Game memory g;
        g.steps = _walk(LONG, true, _numbers(7, 0), _numbers(7, 0));
        g.trace = _walk(OPERATORS, true, _numbers(7, 0), _numbers(5, 0));
        g.output = _walk(LEAVES, false, _numbers(9, 8), _numbers(4, 0, 2));
        name = "largest game, by hints";
        _play(g);
        _measured();
        _fitsTwice();
        assertLe(answers, 5);
        assertLe(gas + PROOF, 1_700_000);
        vm.warp(challenges.challengeOf(ID).deadline);
        vm.roll(block.number + parameters.moveBlocks);
        challenges.timeout(ID);
        vm.snapshotGasLastCall("challenge", "timeout, lost");
    }

    function _measure(uint8 most) private {
        Game memory g;
        (g.steps, g.trace) = (_plainWalk(LONG, true, most), _plainWalk(OPERATORS, true, most));
        g.output = _plainWalk(LEAVES, false, most);
        name = string.concat("largest game, k = ", vm.toString(1 << most));
        _play(g);
        _fitsTwice();
        _measured();
    }

    /// @dev P-43: 32 questions, 48 KiB: whole rows of 256 nodes while there are bytes, and then one level
    /// after another.
    function test_worst() public {
        Game memory g;
        (uint8[] memory ofTrace, uint8[] memory ofOutput) = (new uint8[](6), new uint8[](21));
        for (uint256 i = 0; i < ofOutput.length; ++i) {
            ofOutput[i] = 1;
            if (i < ofTrace.length) ofTrace[i] = i == 0 ? 7 : 1;
        }
        g.steps = _walk(LONG, true, new uint8[](2), _numbers(8, 6));
        g.trace = _walk(OPERATORS, true, new uint8[](ofTrace.length), ofTrace);
        g.output = _walk(LEAVES, false, new uint8[](ofOutput.length), ofOutput);
        name = "worst game";
        (StepAnswer memory said, Operator memory operator, bytes32[] memory membership) = _begin(g);
        _findStep(g);
        for (uint256 i = 0; i < 4; ++i) {
            _repeat(g.steps, Subject.Steps);
        }
        _descend(g.steps);
        _state(g, said);
        _findOutput(g, operator, membership);
        assertEq(answers, ParameterBounds.MAX_ASKS);
        assertGt(challenges.challengeOf(ID).bytesAsked, AnswerCost.MAX_BYTES - 1024, "all that may be asked for");
        _measured();
    }

    /// @dev The largest game can be played, and once more, in one challenge.
    function _fitsTwice() private view {
        assertLe(2 * uint256(challenges.challengeOf(ID).bytesAsked), AnswerCost.MAX_BYTES);
    }

    /// @dev P-43: six rows of 256 nodes, and not one more.
    function test_bytesEnd() public {
        Game memory g;
        g.steps = _walk(LONG, true, new uint8[](2), _numbers(8, 6));
        g.trace = _plainWalk(OPERATORS, true, 6);
        name = "six rows";
        _begin(g);
        _findStep(g);
        for (uint256 i = 0; i < 5; ++i) {
            _repeat(g.steps, Subject.Steps);
        }
        assertEq(challenges.challengeOf(ID).bytesAsked, AnswerCost.MAX_BYTES);
        vm.prank(auditor);
        vm.expectRevert(
            abi.encodeWithSelector(IChallengeQuestions.TooManyBytes.selector, AnswerCost.MAX_BYTES + 256 * 32)
        );
        challenges.askTree(ID, positions[ID], factsOf[ID], Subject.Steps, _plain(8));
    }

    function _measured() private {
        vm.snapshotValue("challenge", string.concat(name, ", gas without the proof"), gas);
        vm.snapshotValue("challenge", string.concat(name, ", gas of the worker"), answerGas);
        vm.snapshotValue("challenge", string.concat(name, ", bytes asked for"), challenges.challengeOf(ID).bytesAsked);
        vm.snapshotValue("challenge", string.concat(name, ", answers"), answers);
    }
}
