// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IChallenges} from "../../../../contracts/interfaces/IChallenges.sol";
import {ParameterBounds} from "../../../../contracts/libraries/terms/ParameterBounds.sol";
import {ChallengeTest} from "../../protocol/ChallengeTest.sol";
import {SlowTree} from "../../verifier/SlowTree.sol";

/// @dev Whole games: liars are convicted, and the honest can answer.
contract ChallengeGamesTest is ChallengeTest {
    using SlowTree for bytes32[][];

    uint256 private constant ID = 1;

    function setUp() public override {
        super.setUp();
        claim = _commitTraining(0);
    }

    /// forge-config: default.fuzz.runs = 24
    /// @dev A liar that answers everything is led to its wrong output, however many levels are asked for at a time.
    function testFuzz_liarsAreConvicted(uint8 seed, uint32 step, uint32 operator) public {
        levels = seed % 3 + 1;
        wrongOperator = operator % OPERATORS;
        _challenge();
        _playToTheEnd(ID, step % STEPS, uint32(wrongOperator), 0);
        assertEq(_staked(workers[STAGE].addr).bonded, 0);
        challenges.timeout(ID);
        assertEq(sno.balanceOf(auditor), 1000 ether + STAKE / 4);
    }

    /// forge-config: default.fuzz.runs = 24
    /// @dev A state that is wrong from some step on: the list of states shows which step, and its statement starts from
    /// a right one.
    function testFuzz_firstWrongState(uint8 seed, uint32 step) public {
        // In the second interval, which the worker has not committed yet.
        uint32 wrong = step % STEPS;
        (levels, wrongStep) = (seed % 2 + 1, STEPS + wrong);
        claim = _commitTraining(1);
        _challenge();
        _answer(ID);
        _walkTo(ID, wrong);
        bytes32 preState = wrong == 0 ? claim.parentState : _states()[wrong - 1];
        (bytes32 said, uint256 lie) = (_states()[wrong], wrongStep);
        wrongStep = NOTHING;
        assertEq(preState, _stateTree(STEPS + wrong).rootOf(), "right before");
        assertTrue(said != _stateTree(STEPS + wrong + 1).rootOf(), "wrong after");
        wrongStep = lie;
        vm.expectRevert();
        this.proveFrom((wrong + 1) % STEPS);
        this.proveFrom(wrong);
        assertEq(_staked(workers[STAGE].addr).bonded, 0);
    }

    /// @dev From the steps' last row on.
    function proveFrom(uint32 step) external {
        _askStatement(ID, _childFor(ID, step));
        _answer(ID);
        _walkTo(ID, 2);
        _askOutput(ID, _childFor(ID, 2));
        _answer(ID);
        _walkTo(ID, 1);
        _prove(STEPS + step, 2, 300);
    }

    /// forge-config: default.fuzz.runs = 24
    /// @dev P-22: whatever an honest worker is asked, it has an answer that counts.
    function testFuzz_honestWorkersCanAnswer(uint256 seed) public {
        levels = uint8(seed % 8) + 1;
        if (levels > 2) levels = 2;
        _challenge();
        _answer(ID);
        for (uint256 i = 0; i < 12 && challenges.challengeOf(ID).restarts < ParameterBounds.MAX_RESTARTS; ++i) {
            seed = uint256(keccak256(abi.encode(seed)));
            levels = uint8(seed % 8) + 1;
            _askAnything(ID, seed >> 8);
            _answer(ID);
            assertEq(uint8(challenges.challengeOf(ID).state), uint8(IChallenges.State.Asking));
        }
        vm.roll(block.number + 10);
        skip(1 days);
        challenges.timeout(ID);
        assertEq(sno.balanceOf(workers[STAGE].addr), 100 ether);
    }
}
