// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IChallenges} from "../../../../contracts/interfaces/IChallenges.sol";
import {IChallengeMoney} from "../../../../contracts/interfaces/challenges/IChallengeMoney.sol";
import {AnswerCost} from "../../../../contracts/libraries/challenges/AnswerCost.sol";
import {Subject} from "../../../../contracts/types/Challenge.sol";
import {Parameters} from "../../../../contracts/types/Parameters.sol";
import {ChallengeTest} from "../../protocol/ChallengeTest.sol";

/// @title What a challenge costs whom: deposits for the worker's gas, and bonds that grow
contract ChallengeDepositsTest is ChallengeTest {
    uint256 private constant ID = 1;
    uint256 private constant FEE = 1 gwei;

    address private answerer;

    /// @dev A bond below the bounty, so that it can grow.
    function _parameters() internal pure override returns (Parameters memory p) {
        p = super._parameters();
        p.disputeBond = 10 ether;
    }

    function setUp() public override {
        super.setUp();
        claim = _commitTraining(0);
        answerer = workers[STAGE].addr;
        vm.fee(FEE);
        vm.deal(auditor, 10 ether);
        deposit = 1 ether;
    }

    /// @dev The deposit must cover the answer at the fee of the question's block, whoever has put it up.
    function test_questionsNeedADeposit() public {
        levels = 2;
        uint256 needed = AnswerCost.mostGas(4 * 32) * FEE;
        vm.prank(auditor);
        vm.expectRevert(abi.encodeWithSelector(IChallengeMoney.DepositTooSmall.selector, needed));
        challenges.open{value: needed - 1}(claim, committedAt, _plain(2));

        deposit = needed;
        _challenge();
        _answer(ID);
        uint256 left = needed - challenges.challengeOf(ID).owed;
        bytes memory tooSmall = abi.encodeWithSelector(IChallengeMoney.DepositTooSmall.selector, needed);
        vm.prank(auditor);
        vm.expectRevert(tooSmall);
        challenges.askTree(ID, positions[ID], factsOf[ID], Subject.Steps, _plain(2));

        vm.deal(stranger, 1 ether);
        vm.prank(stranger);
        vm.expectEmit(address(challenges));
        emit IChallengeMoney.Funded(ID, stranger, needed - left);
        challenges.fund{value: needed - left}(ID);
        vm.prank(auditor);
        challenges.askTree(ID, positions[ID], factsOf[ID], Subject.Steps, _plain(2));
    }

    // Who gets it

    function test_lost_paysTheWorker() public {
        levels = 2;
        _challenge();
        _answer(ID);
        uint256 owed = challenges.challengeOf(ID).owed;
        assertEq(owed, charged * FEE, "at the block's base fee");
        _expire(ID);
        challenges.timeout(ID);
        assertEq(challenges.creditOf(answerer), owed);
        assertEq(challenges.creditOf(auditor), 1 ether - owed);
        assertEq(sno.balanceOf(answerer), 10 ether);
        _collects(answerer, owed);
        _collects(auditor, 1 ether - owed);
        assertEq(address(challenges).balance, 0);
        vm.prank(auditor);
        vm.expectRevert(IChallengeMoney.NothingToCollect.selector);
        challenges.collect();
    }

    function _collects(address account, uint256 amount) private {
        uint256 before = account.balance;
        vm.expectEmit(address(challenges));
        emit IChallengeMoney.Collected(account, amount);
        vm.prank(account);
        assertEq(challenges.collect(), amount);
        assertEq(account.balance - before, amount);
        assertEq(challenges.creditOf(account), 0);
    }

    /// @dev A worker that falls silent is owed nothing for what it answered before.
    function test_won_returnsTheDeposit() public {
        levels = 2;
        _challenge();
        _answer(ID);
        _askStatement(ID, 0);
        _expire(ID);
        challenges.timeout(ID);
        assertEq(challenges.creditOf(auditor), 1 ether);
        assertEq(challenges.creditOf(answerer), 0);
    }

    function test_void_returnsTheDeposit() public {
        levels = 2;
        _challenge();
        _answer(ID);
        _lie(claim, 0);
        challenges.timeout(ID);
        assertEq(challenges.creditOf(auditor), 1 ether);
        assertEq(challenges.creditOf(answerer), 0);
    }

    /// @dev Gas becomes dearer between question and answer: the worker answers, and has won.
    function test_spent() public {
        levels = 2;
        deposit = AnswerCost.mostGas(4 * 32) * FEE;
        _challenge();
        vm.fee(3 * FEE);
        _answer(ID);
        IChallenges.Challenge memory c = challenges.challengeOf(ID);
        assertEq(uint8(c.state), uint8(IChallenges.State.Spent));
        assertEq(c.owed, deposit);
        bytes memory notYours = abi.encodeWithSelector(IChallenges.NotYourTurn.selector, ID);
        vm.startPrank(auditor);
        vm.expectRevert(notYours);
        challenges.fund{value: 1 ether}(ID);
        vm.expectRevert(notYours);
        challenges.askLogs(ID, positions[ID]);
        vm.stopPrank();

        challenges.timeout(ID);
        assertEq(uint8(challenges.challengeOf(ID).state), uint8(IChallenges.State.Lost));
        assertEq(challenges.creditOf(answerer), deposit);
        assertEq(sno.balanceOf(answerer), 10 ether);
    }

    /// @dev Whoever sees gas become dearer can pay more in time, while the worker is asked, too.
    function test_fund_whileTheWorkerIsAsked() public {
        levels = 2;
        deposit = AnswerCost.mostGas(4 * 32) * FEE;
        _challenge();
        vm.fee(3 * FEE);
        vm.prank(auditor);
        challenges.fund{value: 2 * deposit}(ID);
        _answer(ID);
        assertEq(uint8(challenges.challengeOf(ID).state), uint8(IChallenges.State.Asking));
        assertEq(challenges.challengeOf(ID).deposit, 3 * deposit);
    }

    function test_fund_openChallengesOnly() public {
        vm.deal(address(this), 1 ether);
        vm.expectRevert(abi.encodeWithSelector(IChallenges.NotYourTurn.selector, ID));
        challenges.fund{value: 1}(ID);
        _challenge();
        _expire(ID);
        challenges.timeout(ID);
        vm.expectRevert(abi.encodeWithSelector(IChallenges.NotYourTurn.selector, ID));
        challenges.fund{value: 1}(ID);
    }

    /// @dev P-5: who does not take its ETH holds up nobody, and is still owed it.
    function test_refusingChallenger() public {
        levels = 2;
        _challenge();
        _answer(ID);
        vm.etch(auditor, hex"5f5ffd");
        _expire(ID);
        challenges.timeout(ID);
        uint256 rest = 1 ether - challenges.challengeOf(ID).owed;
        vm.prank(auditor);
        vm.expectRevert(IChallengeMoney.TransferFailed.selector);
        challenges.collect();
        assertEq(challenges.creditOf(auditor), rest);
        _collects(answerer, challenges.challengeOf(ID).owed);
    }

    // Bonds

    /// @dev P-44: five at once cost 17 times the bond and not five, and what they ask for is paid for.
    function test_fiveAtOnce() public {
        levels = 2;
        uint256[5] memory bonds = [uint256(10 ether), 20 ether, 25 ether, 25 ether, 25 ether];
        bytes32 id = checkpoints.claimId(claim);
        for (uint256 i = 0; i < 5; ++i) {
            assertEq(challenges.bondFor(job, id), bonds[i]);
            assertEq(challenges.challengeOf(_challenge()).bond, bonds[i]);
        }
        uint256 owed = 0;
        for (uint256 i = 1; i <= 5; ++i) {
            _answer(i);
            owed += challenges.challengeOf(i).owed;
        }
        _expire(5);
        for (uint256 i = 1; i <= 5; ++i) {
            challenges.timeout(i);
        }
        assertEq(sno.balanceOf(answerer), 105 ether);
        assertEq(challenges.creditOf(answerer), owed);
        // A claim remembers: what was lost once is not cheap again.
        assertEq(challenges.bondFor(job, id), 25 ether);
    }

    /// @dev Nobody can make it dearer than the half of the bounty that a right challenge brings; another claim is
    /// not concerned.
    function test_bondFor_endsAtTheBounty() public {
        deposit = 0.5 ether;
        for (uint256 i = 0; i < 18; ++i) {
            _challenge();
        }
        assertEq(challenges.bondFor(job, checkpoints.claimId(claim)), STAKE / 4);
        assertEq(challenges.bondFor(job, checkpoints.claimId(_commitTraining(1))), 10 ether);
    }
}
