// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IJobs} from "../../../../contracts/interfaces/IJobs.sol";
import {IStaking} from "../../../../contracts/interfaces/IStaking.sol";
import {IJobOffers} from "../../../../contracts/interfaces/jobs/IJobOffers.sol";
import {Parameters} from "../../../../contracts/types/Parameters.sol";
import {JobTerms, Offer} from "../../../../contracts/types/Types.sol";
import {ProtocolTest} from "../../protocol/ProtocolTest.sol";

/// @dev What audits cost a job (P-29), and what a lane must have at stake (P-30).
contract AuditBudgetTest is ProtocolTest {
    uint32 private constant MIN_STAKE_INTERVALS = 10;
    /// @dev The parts of `Parameters` that a budget comes from: a tenth of an audit, at 1.25 times the price.
    uint256 private constant AUDITS_BPS = 1000;
    uint256 private constant FEE_BPS = 12_500;

    function _parameters() internal pure override returns (Parameters memory p) {
        p = super._parameters();
        (p.auditsPerClaimBps, p.auditFeeBps) = (uint32(AUDITS_BPS), uint16(FEE_BPS));
        p.minStakeIntervals = MIN_STAKE_INTERVALS;
    }

    /// @dev Terms of two lanes for `count` intervals, or tokens in texts of up to `LONGEST`.
    function _termsOf(bool serving, address token, uint32 count) private view returns (JobTerms memory) {
        return serving ? _servingTerms(token, 2, 1, count) : _terms(token, 2, 1, count);
    }

    function _postWith(JobTerms memory terms, uint256 deposit) private returns (uint64) {
        vm.prank(user);
        return jobs.post{value: terms.token == ETH ? deposit : 0}(terms, deposit);
    }

    /// @dev The lanes' workers offer at these prices, and the user accepts.
    function _acceptAt(uint64 job, uint128[2] memory prices, bytes memory reason) private {
        (Offer[] memory offers, bytes[] memory signatures) = _offers(job);
        for (uint256 i = 0; i < 2; ++i) {
            offers[i].pricePerInterval = prices[i];
            signatures[i] = _sign(workers[i].key, _offerDigest(offers[i]));
        }
        if (reason.length > 0) vm.expectRevert(reason);
        vm.prank(user);
        jobs.accept(job, offers, signatures);
    }

    /// @dev Of each lane so many audits that they are twice the mean, and one, each of its dearest claim.
    function _audits(bool serving, uint32 count) private pure returns (uint256 number) {
        while (number * _units(serving) * 10_000 < 2 * count * AUDITS_BPS) ++number;
        ++number;
    }

    function _units(bool serving) private pure returns (uint256) {
        return serving ? LONGEST : 1;
    }

    function _budget(bool serving, uint32 count, uint256 perInterval) private pure returns (uint256) {
        return _audits(serving, count) * (perInterval * _units(serving) * FEE_BPS / 10_000);
    }

    // Escrow

    /// @dev To the wei: one less is refused, and whatever is more is the user's.
    function testFuzz_escrowCoversWorkAndAudits(bool serving, uint32 count, uint128[2] memory prices) public {
        count = uint32(bound(count, 1, 200));
        uint256 most = STAKE / MIN_STAKE_INTERVALS / (serving ? LONGEST : 1);
        (prices[0], prices[1]) = (uint128(bound(prices[0], 1, most)), uint128(bound(prices[1], 0, most)));
        uint256 perInterval = uint256(prices[0]) + prices[1];
        uint256 budget = _budget(serving, count, perInterval);
        uint256 needed = perInterval * count + budget;
        JobTerms memory terms = _termsOf(serving, address(sno), count);

        uint64 job = _postWith(terms, needed - 1);
        _acceptAt(job, prices, abi.encodeWithSelector(IJobOffers.EscrowTooSmall.selector, needed - 1, needed));
        job = _postWith(terms, needed);
        assertEq(jobs.jobOf(job).auditBudget, 0);
        _acceptAt(job, prices, "");
        assertEq(jobs.jobOf(job).auditBudget, budget);
        assertEq(jobs.jobOf(job).escrow, needed);
        // Twice the mean and one, but for a wei of each fee; and less than an audit of each lane more.
        uint256 least = perInterval * (2 * count * AUDITS_BPS + _units(serving) * 10_000) * FEE_BPS;
        assertGe((budget + _audits(serving, count)) * 1e8, least);
        assertLt(budget * 1e8, least + perInterval * _units(serving) * 1e4 * FEE_BPS);
    }

    /// @dev Whole fees: of each lane so many of its dearest claim are paid, in any order, whatever the others' prices;
    /// then hardly another.
    function testFuzz_soManyWholeFeesArePaid(bool serving, uint32 count, uint128[2] memory prices, bool laneFirst)
        public
    {
        count = uint32(bound(count, 1, 60));
        uint256 most = STAKE / MIN_STAKE_INTERVALS / _units(serving);
        (prices[0], prices[1]) = (uint128(bound(prices[0], 1, most)), uint128(bound(prices[1], 1, most)));
        uint64 job = _postWith(_termsOf(serving, address(sno), count), 3000 ether);
        _acceptAt(job, prices, "");
        uint256 number = _audits(serving, count);
        for (uint256 i = 0; i < 2 * number; ++i) {
            uint16 lane = uint16(laneFirst ? i / number : i % 2);
            uint256 fee = uint256(prices[lane]) * _units(serving) * FEE_BPS / 10_000;
            assertEq(_payAudit(job, lane, uint32(_units(serving))), fee);
        }
        // A wei of each pair of fees that were rounded down apart.
        assertLe(jobs.jobOf(job).auditBudget, number);
    }

    function test_refundReturnsWhatAuditsDidNotTake() public {
        JobTerms memory terms = _terms(address(sno), 2, 1, 10);
        uint64 job = _run(terms);
        uint256 deposit = 60 ether + _budget(false, 10, 6 ether);
        assertEq(deposit, _cover(terms));
        uint256 fee = _payAudit(job, 0, 1);
        assertEq(fee, 3.75 ether);
        assertEq(jobs.jobOf(job).auditBudget, deposit - 60 ether - fee);
        vm.startPrank(user);
        jobs.cancel(job);
        jobs.settle(job);
        assertEq(jobs.creditOf(user, address(sno)), deposit - fee);
        assertEq(jobs.jobOf(job).escrow, 0);
        assertEq(jobs.jobOf(job).auditBudget, 0);
    }

    /// @dev Before the start nothing was earned, and the budget goes back with the rest.
    function test_refundBeforeTheStart() public {
        JobTerms memory terms = _terms(address(sno), 2, 1, 10);
        uint64 job = _post(terms);
        _accept(job);
        vm.prank(user);
        jobs.cancel(job);
        assertEq(jobs.creditOf(user, address(sno)), _cover(terms));
        assertEq(jobs.jobOf(job).auditBudget, 0);
        assertEq(_payAudit(job, 0, 1), 0);
    }

    /// @dev P-3: whatever audits take, in whatever order, every claim is paid; and not a wei stays.
    function testFuzz_auditsTakeNothingOfWhatWorkEarns(uint256 seed) public {
        uint64 job = _run(2, 1, 3);
        uint256 budget = _budget(false, 3, 6 ether);
        assertEq(jobs.jobOf(job).escrow, 18 ether + budget);
        uint64 when = uint64(block.timestamp);
        _commitAll(job, 0, 0);
        _commitAll(job, 1, 0);
        skip(WINDOW);
        (uint256 paid, uint32[2] memory done) = (0, [uint32(0), uint32(0)]);
        for (uint256 i = 0; i < 30; ++i) {
            uint256 noise = uint256(keccak256(abi.encode(seed, i)));
            uint16 lane = uint16(noise >> 8 & 1);
            if (noise % 4 == 0 && done[lane] < 3) {
                _finalize(job, lane, 0, done[lane], ++done[lane], when);
                continue;
            }
            uint256 fee = _payAudit(job, lane, 1);
            // As much as it holds, and nothing of an audit that it does not hold.
            assertEq(fee, budget - paid >= 3.75 ether ? 3.75 ether : 0);
            paid += fee;
        }
        for (uint16 lane = 0; lane < 2; ++lane) {
            if (done[lane] < 3) _finalize(job, lane, 0, done[lane], 3, when);
            assertEq(jobs.creditOf(workers[lane].addr, address(sno)), 9 ether);
        }
        jobs.settle(job);
        assertEq(jobs.creditOf(auditor, address(sno)), paid);
        assertEq(jobs.creditOf(user, address(sno)), budget - paid);
        assertEq(_payAudit(job, 0, 1), 0, "nothing of a settled job");
    }

    /// @dev A fee that is all the budget holds is paid; one wei less, and nothing is.
    function test_theBudgetIsSpentToTheLastWei() public {
        JobTerms memory terms = _servingTerms(address(sno), 1, 1, 20);
        terms.workerStake = PRICE * LONGEST * MIN_STAKE_INTERVALS;
        _stake(workers[0].addr, IStaking.Role.Worker, terms.workerStake);
        uint64 job = _run(terms);
        // Two of the longest text.
        assertEq(jobs.jobOf(job).auditBudget, 37.5 ether);
        assertEq(_payAudit(job, 0, 4), 15 ether);
        assertEq(_payAudit(job, 0, 1), 3.75 ether);
        assertEq(_payAudit(job, 0, 1), 3.75 ether);
        assertEq(_payAudit(job, 0, 5), 0);
        assertEq(_payAudit(job, 0, 4), 15 ether);
        assertEq(jobs.jobOf(job).auditBudget, 0);
        assertEq(jobs.jobOf(job).escrow, 60 ether);
        assertEq(_payAudit(job, 0, 1), 0);
    }

    /// @dev A lane's own price, of as many tokens; in the job's token.
    function testFuzz_feeIsAShareOfTheLanesPrice(uint128[2] memory prices, uint32 units, bool inEth) public {
        uint128 most = STAKE / MIN_STAKE_INTERVALS / LONGEST;
        (prices[0], prices[1]) = (prices[0] % most, prices[1] % most);
        units %= LONGEST + 1;
        address token = inEth ? ETH : address(sno);
        uint64 job = _postWith(_servingTerms(token, 2, 1, 30), 500 ether);
        _acceptAt(job, prices, "");
        _start(job);
        for (uint16 lane = 0; lane < 2; ++lane) {
            uint256 before = jobs.creditOf(auditor, token);
            uint256 fee = _payAudit(job, lane, units);
            assertEq(fee, uint256(prices[lane]) * units * FEE_BPS / 10_000);
            assertEq(jobs.creditOf(auditor, token) - before, fee);
        }
    }

    function _payAudit(uint64 job, uint16 lane, uint32 units) private returns (uint256) {
        vm.prank(address(audits));
        return jobs.payAudit(job, lane, 0, units, auditor);
    }

    function testFuzz_onlyAuditsPays(address caller) public {
        vm.assume(caller != address(audits));
        uint64 job = _run(1, 1, 1);
        vm.expectRevert(abi.encodeWithSelector(IJobs.Unauthorized.selector, caller));
        vm.prank(caller);
        jobs.payAudit(job, 0, 0, 1, caller);
    }

    // Stake

    /// @dev P-30: of each lane as many intervals' price as the parameter says; of a serving lane an interval is its
    /// longest text.
    function testFuzz_stakeIsWorthSoManyIntervals(bool serving, uint128 price, uint8 lane) public {
        lane %= 2;
        uint256 most = STAKE / MIN_STAKE_INTERVALS / (serving ? LONGEST : 1);
        uint128[2] memory prices;
        prices[lane] = uint128(bound(price, most + 1, 1000 ether));
        uint256 needed = uint256(prices[lane]) * MIN_STAKE_INTERVALS * (serving ? LONGEST : 1);
        uint64 job = _postWith(_termsOf(serving, address(sno), 1), 1 ether);
        _acceptAt(job, prices, abi.encodeWithSelector(IJobOffers.StakeTooSmall.selector, lane, needed));
        // Just so much is enough.
        prices[lane] = uint128(most);
        job = _postWith(_termsOf(serving, address(sno), 1), 100 ether);
        _acceptAt(job, prices, "");
        assertEq(jobs.priceOf(job, lane, 0), most);
    }

    /// @dev What ETH is worth in SNO, no contract knows; but no lane risks less than a challenge of it costs.
    function testFuzz_stakeOfAJobInEthIsAtLeastTheBond(bool serving, uint128 price) public {
        price = uint128(bound(price, 1, 50 ether));
        JobTerms memory terms = _termsOf(serving, ETH, 1);
        terms.workerStake = parameters.disputeBond - 1;
        vm.deal(user, 1000 ether);
        vm.expectRevert(abi.encodeWithSelector(IJobs.InvalidTerms.selector, "workerStake"));
        vm.prank(user);
        jobs.post{value: 1000 ether}(terms, 1000 ether);

        terms.workerStake = parameters.disputeBond;
        uint64 job = _postWith(terms, 1000 ether);
        _acceptAt(job, [price, 0], "");
        assertEq(_staked(workers[0].addr).locked, parameters.disputeBond);
    }
}

/// @dev Where nothing is audited, no budget is kept.
contract NoAuditsTest is ProtocolTest {
    function test_noBudget() public {
        uint64 job = _run(2, 1, 3);
        assertEq(jobs.jobOf(job).auditBudget, 0);
        assertEq(jobs.jobOf(job).escrow, 18 ether);
        vm.prank(address(audits));
        assertEq(jobs.payAudit(job, 0, 0, 1, auditor), 0);
    }
}
