// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Test} from "forge-std/Test.sol";

import {Audits} from "../../../contracts/core/Audits.sol";
import {Challenges} from "../../../contracts/core/Challenges.sol";
import {Channels} from "../../../contracts/core/Channels.sol";
import {Checkpoints} from "../../../contracts/core/Checkpoints.sol";
import {Custody} from "../../../contracts/core/Custody.sol";
import {Jobs} from "../../../contracts/core/Jobs.sol";
import {SNO} from "../../../contracts/core/SNO.sol";
import {Staking} from "../../../contracts/core/Staking.sol";
import {IChallenges} from "../../../contracts/interfaces/IChallenges.sol";
import {IJobs} from "../../../contracts/interfaces/IJobs.sol";
import {IStaking} from "../../../contracts/interfaces/IStaking.sol";
import {JobKind} from "../../../contracts/types/Types.sol";
import {Deployment} from "../../../script/Deployer.sol";
import {Economy} from "../protocol/Economy.sol";

/// @dev P-1 to P-7, P-10, P-19, P-20, P-24 to P-26, P-29, P-31, P-32, P-34, P-45
/// and P-46, whatever anybody does. One function each
/// would walk anew: they are checked together.
contract InvariantsTest is Test {
    Economy private economy;
    SNO private sno;
    Staking private staking;
    Jobs private jobs;
    Checkpoints private checkpoints;
    Channels private channels;
    Challenges private challenges;
    Custody private custody;
    Audits private audits;

    function setUp() public {
        economy = new Economy();
        economy.setUp();
        Deployment memory d = economy.deployment();
        (sno, staking, jobs, checkpoints) = (d.sno, d.staking, d.jobs, d.checkpoints);
        (channels, challenges, custody, audits) = (d.channels, d.challenges, d.custody, d.audits);
        _target();
    }

    function _target() private {
        targetContract(address(economy));
        targetSelector(FuzzSelector({addr: address(economy), selectors: _moves()}));
    }

    function _moves() private view returns (bytes4[] memory selectors) {
        selectors = new bytes4[](56);
        selectors[0] = economy.stake.selector;
        selectors[1] = economy.requestUnstake.selector;
        selectors[2] = economy.withdraw.selector;
        selectors[3] = economy.post.selector;
        selectors[4] = economy.accept.selector;
        selectors[5] = economy.start.selector;
        selectors[6] = economy.cancel.selector;
        selectors[7] = economy.settle.selector;
        selectors[8] = economy.collect.selector;
        selectors[9] = selectors[36] = selectors[37] = economy.finalize.selector;
        selectors[10] = economy.openChallenge.selector;
        selectors[11] = economy.timeout.selector;
        selectors[12] = economy.convict.selector;
        selectors[13] = economy.pass.selector;
        selectors[14] = economy.passLong.selector;
        // More likely, or most jobs would end without a claim or a voucher.
        selectors[15] = selectors[16] = selectors[17] = economy.commit.selector;
        selectors[18] = selectors[19] = economy.redeem.selector;
        selectors[20] = economy.convictReceipt.selector;
        selectors[21] = selectors[22] = economy.answer.selector;
        selectors[23] = economy.ask.selector;
        selectors[24] = selectors[25] = selectors[26] = economy.seal.selector;
        selectors[27] = selectors[28] = selectors[29] = economy.reveal.selector;
        selectors[30] = economy.join.selector;
        selectors[31] = selectors[32] = selectors[38] = economy.answerAudits.selector;
        selectors[33] = selectors[34] = economy.accuse.selector;
        selectors[35] = economy.penaliseAuditor.selector;
        selectors[39] = economy.demandState.selector;
        selectors[40] = economy.demandSent.selector;
        selectors[41] = economy.demandFiles.selector;
        selectors[42] = selectors[43] = economy.deliver.selector;
        selectors[44] = economy.expire.selector;
        selectors[45] = economy.finalize.selector;
        selectors[46] = selectors[47] = economy.seal.selector;
        selectors[48] = selectors[49] = economy.reveal.selector;
        selectors[50] = economy.burn.selector;
        selectors[51] = economy.changeFee.selector;
        selectors[52] = economy.fund.selector;
        selectors[53] = economy.collectFromChallenges.selector;
        selectors[54] = economy.answer.selector;
        selectors[55] = economy.payShare.selector;
    }

    /// @dev The moves do something: on one long walk each of them has its effect, so the invariants are not of an idle
    /// protocol.
    function test_walkReachesEverything() public {
        bytes4[] memory moves = _moves();
        for (uint256 i = 0; i < 7000; ++i) {
            uint256 noise = uint256(keccak256(abi.encode(i)));
            uint256 move = noise % moves.length;
            // `post` takes a bool first; `stake`, `requestUnstake`, `withdraw`, `cancel` and `collect` take one second.
            uint256 first = move == 3 ? noise >> 8 & 1 : noise >> 8;
            uint256 second = move < 3 || move == 6 || move == 8 ? noise >> 16 & 1 : noise >> 16;
            (bool done, bytes memory reason) =
                address(economy).call(abi.encodePacked(moves[move], first, second, noise >> 24, noise >> 32));
            assertTrue(done, string(reason));
        }
        invariant_everythingAddsUp();
        assertGt(economy.finalized(), 0, "finalized");
        assertGt(economy.convictions(), 0, "convictions");
        assertGt(economy.burns(), 0, "burns");
        assertGt(economy.redemptions(), 0, "redemptions");
        assertGt(economy.lateRedemptions(), 0, "late redemptions");
        assertGt(economy.heldUpByRedemptions(), 0, "settlements that wait for the last redemption");
        assertGt(economy.receiptConvictions(), 0, "convictions over receipts");
        assertGt(economy.settled(), 0, "settled");
        assertGt(economy.withdrawn(), 0, "withdrawn");
        assertGt(economy.challengesWon(), 0, "challenges won");
        assertGt(economy.challengesLost(), 0, "challenges lost");
        assertGt(economy.silences(), 0, "silent workers");
        assertGt(economy.answers(), 0, "answers");
        assertGt(economy.seals(), 0, "seals");
        assertGt(economy.reveals(), 0, "reveals");
        assertGt(economy.refusedSeals(), 0, "late lanes");
        assertGt(economy.refusedReveals(), 0, "hasty lanes");
        assertGt(economy.differences(), 0, "replicas that differ");
        assertGt(economy.asks(), 0, "questions");
        assertGt(economy.fundings(), 0, "deposits that grow");
        assertGt(economy.spent(), 0, "deposits that are used up");
        assertGt(economy.answersSealed(), 0, "answers of auditors");
        assertGt(economy.answersRevealed(), 0, "revealed answers");
        assertGt(economy.answersLate(), 0, "late answers");
        assertGt(economy.answersConfirmed(), 0, "confirmed answers");
        assertGt(economy.answersUnconfirmed(), 0, "answers that no worker confirms");
        assertGt(economy.accusations(), 0, "accusations");
        assertGt(economy.falseAccusations(), 0, "false accusations");
        assertGt(economy.penalties(), 0, "penalties");
        assertGt(economy.answersUnpaid(), 0, "answers for nothing");
        assertGt(economy.answersForfeited(), 0, "answers given up");
        assertGt(economy.heldBackByAnswers(), 0, "validators whom answers hold back");
        assertGt(economy.shares(), 0, "shares of auditors");
        assertGt(economy.deliveries(), 0, "deliveries");
        assertGt(economy.sentDeliveries(), 0, "deliveries of what was sent");
        assertGt(economy.defaults(), 0, "demands that were not met");
        assertGt(economy.lifted(), 0, "demands about nothing any more");
        assertGt(economy.finalizedByWorkers(), 0, "claims that another worker signed for");
        assertGt(economy.finalizedByNobody(), 0, "claims that nobody signed for");
        assertEq(jobs.jobCount(), economy.MAX_JOBS());
    }

    function invariant_everythingAddsUp() public view {
        _everythingAddsUp(false);
    }

    /// @dev Whoever stops here gets out what is theirs, by what anybody may call.
    function afterInvariant() public {
        economy.everythingEnds();
        _everythingAddsUp(true);
        assertEq(sno.balanceOf(address(staking)), 0, "all stake has left");
        assertEq(sno.balanceOf(address(jobs)), 0, "all SNO is collected");
        assertEq(address(jobs).balance, 0, "all ETH is collected");
        assertEq(sno.balanceOf(address(challenges)), 0, "all bonds are paid out");
        assertEq(address(challenges).balance, 0, "all deposits are collected");
        assertEq(sno.balanceOf(address(custody)), 0, "those of demands, too");
        address[] memory people = economy.people();
        for (uint256 i = 0; i < people.length; ++i) {
            assertEq(people[i].balance, economy.dueTo(people[i], address(0)), "everybody has their ETH");
            assertEq(sno.balanceOf(people[i]), economy.dueTo(people[i], address(sno)), "everybody has their SNO");
        }
    }

    /// @param settledToo looks at the lanes of settled jobs, too: nothing of them changes, so at a walk's end is
    /// early enough.
    function _everythingAddsUp(bool settledToo) private view {
        address[] memory people = economy.people();
        (uint256[] memory locks, uint256 inEth, uint256 inSno) = _jobsAddUp(people, settledToo);
        _stakeAddsUp(people, locks);
        _creditsAddUp(people, inEth, inSno);
        (uint256 bonds, uint256 deposits) = _bondsAddUp(people);
        _sharesAddUp(people, address(sno), inSno, bonds);
        _sharesAddUp(people, address(0), inEth, deposits);
        uint256 gone = economy.slashedAway() - staking.toBurn();
        _same(sno.totalSupply(), 3_000_000 ether - gone, "supply falls by burns only");
    }

    function _stakeAddsUp(address[] memory people, uint256[] memory locks) private view {
        (uint256 held, uint256 validators) = (0, 0);
        uint256 collateral = staking.parameters().validatorCollateral;
        for (uint256 i = 0; i < people.length; ++i) {
            IStaking.Account memory a = staking.accountOf(people[i], IStaking.Role.Worker);
            assertLe(a.locked, uint256(a.bonded) + a.unbonding, "locks are covered");
            _same(a.locked, locks[i], "locks are those of open lanes");
            held += uint256(a.bonded) + a.unbonding;
            a = staking.accountOf(people[i], IStaking.Role.Validator);
            _same(a.locked, 0, "a validator locks nothing");
            if (a.bonded >= collateral) ++validators;
            held += uint256(a.bonded) + a.unbonding;
        }
        _same(sno.balanceOf(address(staking)), held + staking.toBurn(), "stake is there, and what is to be burned");
        _same(staking.validatorCount(), validators, "validators are those with the collateral");
        uint256 shared = economy.sharedOf() - economy.sharesPaid();
        _same(sno.balanceOf(address(audits)), shared, "what is set aside for auditors is there");
        for (uint256 i = 0; i < people.length; ++i) {
            _same(audits.sealedBy(people[i]), economy.sealedBy(people[i]), "answers are sealed until they are shown");
        }
    }

    /// @dev Escrows, and what is locked of each of the people: the stakes of lanes of unsettled jobs that they hold and
    /// were not convicted on.
    function _jobsAddUp(address[] memory people, bool settledToo)
        private
        view
        returns (uint256[] memory locks, uint256 inEth, uint256 inSno)
    {
        locks = new uint256[](people.length);
        uint64 count = jobs.jobCount();
        for (uint64 job = 1; job <= count; ++job) {
            IJobs.Job memory record = jobs.jobOf(job);
            bool over = record.state == IJobs.State.Settled;
            if (over) _same(record.escrow, 0, "nothing stays in a settled job");
            if (over && !settledToo) continue;
            uint256 paid = _lanesAddUp(people, locks, job, record);
            if (!over) {
                uint256 fees = economy.feesOf(job);
                _same(record.escrow + paid + fees, economy.depositOf(job), "paid by claims, tokens and audits only");
                _same(record.auditBudget, economy.budgetOf(job), "audits take from their budget only");
            }
            if (record.token == address(0)) inEth += record.escrow;
            else inSno += record.escrow;
        }
    }

    /// @dev What the lanes of a job have been paid; adds to `locks` what they lock.
    function _lanesAddUp(address[] memory people, uint256[] memory locks, uint64 job, IJobs.Job memory record)
        private
        view
        returns (uint256 paid)
    {
        for (uint256 lane = 0; lane < uint256(record.stages) * record.replicas; ++lane) {
            (uint16 stage, uint16 replica) = (uint16(lane % record.stages), uint16(lane / record.stages));
            paid += _unitsOf(job, lane, record) * jobs.priceOf(job, stage, replica);
            if (record.state == IJobs.State.Settled || economy.convictedOn(job, lane)) continue;
            address worker = jobs.workerOf(job, stage, replica);
            for (uint256 i = 0; i < people.length; ++i) {
                if (people[i] == worker) locks[i] += record.workerStake;
            }
        }
    }

    function _creditsAddUp(address[] memory people, uint256 inEth, uint256 inSno) private view {
        for (uint256 i = 0; i < people.length; ++i) {
            inEth += jobs.creditOf(people[i], address(0));
            inSno += jobs.creditOf(people[i], address(sno));
        }
        _same(address(jobs).balance, inEth, "ETH is there");
        _same(sno.balanceOf(address(jobs)), inSno, "SNO is there");
    }

    /// @dev Everybody has what the rules give them of a token; escrows are the user's, bonds and deposits the
    /// auditor's. Who is honest has never less than it was given.
    function _sharesAddUp(address[] memory people, address token, uint256 escrows, uint256 putUp) private view {
        for (uint256 i = 0; i < people.length; ++i) {
            uint256 due = economy.dueTo(people[i], token);
            if (i == people.length - 2) due -= escrows;
            if (i == people.length - 1) due -= putUp;
            _same(economy.holdingOf(people[i], token), due, "everybody has their share");
        }
        address honest = economy.honest();
        assertGe(economy.dueTo(honest, token), economy.givenTo(honest, token), "an honest worker never loses");
    }

    /// @dev What a lane has been paid for: final claims, or tokens.
    function _unitsOf(uint64 job, uint256 lane, IJobs.Job memory record) private view returns (uint256 units) {
        (uint16 stage, uint16 replica) = (uint16(lane % record.stages), uint16(lane / record.stages));
        uint256 claims = checkpoints.laneOf(job, stage, replica).finalized;
        uint256 tokens = channels.redeemedOf(job, stage, replica).tokens;
        _same(tokens, economy.tokensOf(job, lane), "tokens are those of the vouchers");
        if (record.kind == JobKind.Serving) _same(claims, 0, "a serving job has no claims");
        else _same(tokens, 0, "a training job has no tokens");
        units = claims + tokens;
        assertLe(units, record.intervals, "no more than was agreed");
    }

    /// @dev Bonds of challenges and demands, SNO, and deposits of challenges, ETH; all are the auditor's.
    function _bondsAddUp(address[] memory people) private view returns (uint256 bonds, uint256 deposits) {
        uint256 opened = challenges.challengeCount();
        for (uint256 i = 1; i <= opened; ++i) {
            IChallenges.Challenge memory c = challenges.challengeOf(i);
            if (c.state == IChallenges.State.None || c.state >= IChallenges.State.Won) continue;
            bonds += c.bond;
            deposits += c.deposit;
            _same(c.deposit, economy.putUpFor(i), "deposits are what was put up");
        }
        _same(sno.balanceOf(address(challenges)), bonds, "bonds are there");
        uint256 credits = 0;
        for (uint256 i = 0; i < people.length; ++i) {
            credits += challenges.creditOf(people[i]);
        }
        _same(address(challenges).balance, deposits + credits, "deposits are there, and what is to be collected");
        (uint256 still, uint256 demands) = (0, economy.demands());
        for (uint256 id = 1; id <= demands; ++id) {
            if (custody.demandOf(id) != 0) ++still;
        }
        uint256 ended = economy.deliveries() + economy.defaults() + economy.lifted();
        _same(still, demands - ended, "demands are open until they end");
        uint256 demanded = still * staking.parameters().disputeBond;
        _same(sno.balanceOf(address(custody)), demanded, "bonds of demands are there");
        bonds += demanded;
    }

    /// @dev Asserting is a call, of which each look would make seventy.
    function _same(uint256 there, uint256 expected, string memory what) private pure {
        if (there != expected) assertEq(there, expected, what);
    }
}
