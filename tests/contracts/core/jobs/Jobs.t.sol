// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IERC20Errors} from "@openzeppelin/contracts/interfaces/draft-IERC6093.sol";

import {IJobs} from "../../../../contracts/interfaces/IJobs.sol";
import {IStaking} from "../../../../contracts/interfaces/IStaking.sol";
import {IJobOffers} from "../../../../contracts/interfaces/jobs/IJobOffers.sol";
import {JobKind, JobTerms, Offer} from "../../../../contracts/types/Types.sol";
import {ProtocolTest} from "../../protocol/ProtocolTest.sol";
import {Signatures} from "../../protocol/Signatures.sol";

/// @dev From `post` to `start`. The end of jobs: `Settlement.t.sol`.
contract JobsTest is ProtocolTest {
    function test_post_takesSNO(uint96 deposit) public {
        deposit = uint96(bound(deposit, 1, 10_000 ether));
        JobTerms memory terms = _terms(address(sno), 3, 2, 5);
        vm.expectEmit(address(jobs));
        emit IJobs.JobPosted(1, user, deposit, terms);
        vm.prank(user);
        uint64 job = jobs.post(terms, deposit);

        assertEq(job, 1);
        assertEq(jobs.jobCount(), 1);
        assertEq(sno.balanceOf(address(jobs)), deposit);
        IJobs.Job memory record = jobs.jobOf(job);
        assertEq(record.user, user);
        assertEq(uint8(record.state), uint8(IJobs.State.Posted));
        assertEq(uint8(record.kind), uint8(JobKind.Training));
        assertEq(record.escrow, deposit);
        assertEq(jobs.programOf(job, 2), terms.programs[2]);
        assertEq(jobs.initialStateOf(job, 2), terms.initialStates[2]);
        assertEq(jobs.programOf(job, 3), 0);
        assertEq(jobs.initialStateOf(job, 3), 0);
    }

    function test_post_takesETH(uint96 deposit) public {
        deposit = uint96(bound(deposit, 1, 1000 ether));
        vm.prank(user);
        uint64 job = jobs.post{value: deposit}(_terms(ETH, 1, 1, 1), deposit);
        assertEq(address(jobs).balance, deposit);
        assertEq(jobs.jobOf(job).escrow, deposit);
    }

    function test_post_refusesOtherSums() public {
        JobTerms memory inEth = _terms(ETH, 1, 1, 1);
        JobTerms memory inSno = _terms(address(sno), 1, 1, 1);
        vm.startPrank(user);
        vm.expectRevert(abi.encodeWithSelector(IJobs.WrongDeposit.selector, 4, 5));
        jobs.post{value: 4}(inEth, 5);
        vm.expectRevert(abi.encodeWithSelector(IJobs.WrongDeposit.selector, 5, 0));
        jobs.post{value: 5}(inSno, 5);
        vm.expectRevert(
            abi.encodeWithSelector(
                IERC20Errors.ERC20InsufficientBalance.selector, user, sno.balanceOf(user), 1_000_000 ether
            )
        );
        jobs.post(inSno, 1_000_000 ether);
    }

    /// @dev Payments truncated to a smaller integer: nothing is.
    function test_post_refusesWhatDoesNotFit() public {
        _refused("deposit", _terms(ETH, 1, 1, 1), uint256(type(uint128).max) + 1);
        _refused("deposit", _terms(ETH, 1, 1, 1), 0);
    }

    function test_post_refusesTermsOutOfBounds() public {
        _refused("token", _terms(makeAddr("another token"), 1, 1, 1), 1);
        _refused("stages", _terms(ETH, 0, 1, 1), 1);
        _refused("stages", _terms(ETH, 65, 1, 1), 1);
        _refused("replicas", _terms(ETH, 1, 0, 1), 1);
        _refused("replicas", _terms(ETH, 1, 17, 1), 1);
        _refused("replicas", _terms(ETH, 43, 3, 1), 1);
        _refused("intervals", _terms(ETH, 1, 1, 0), 1);
        _refused("intervals", _terms(ETH, 1, 1, 1_000_001), 1);
    }

    function test_post_refusesStepsThatNoStatementCanName() public {
        JobTerms memory t = _terms(ETH, 1, 1, 1);
        t.stepsPerInterval = 0;
        _refused("stepsPerInterval", t, 1);
        (t.intervals, t.stepsPerInterval) = (65_536, 65_536);
        _refused("stepsPerInterval", t, 1);
        t.intervals = 65_535;
        _accepted(t);
    }

    function test_post_refusesTimesOutOfBounds() public {
        JobTerms memory t = _terms(ETH, 1, 1, 1);
        t.acceptBy = uint40(block.timestamp - 1);
        _refused("acceptBy", t, 1);
        t.acceptBy = uint40(block.timestamp + 30 days + 1);
        _refused("acceptBy", t, 1);
        t.acceptBy = uint40(block.timestamp + 30 days);
        _accepted(t);
        t.duration = 0;
        _refused("duration", t, 1);
        t.duration = 365 days + 1;
        _refused("duration", t, 1);
        t.duration = 365 days;
        _accepted(t);
        t.challengeWindow = 1 hours - 1;
        _refused("challengeWindow", t, 1);
        t.challengeWindow = 7 days + 1;
        _refused("challengeWindow", t, 1);
        t.challengeWindow = 7 days;
        _accepted(t);
    }

    function test_post_refusesMissingRoots() public {
        JobTerms memory t = _terms(ETH, 2, 1, 1);
        t.workerStake = 0;
        _refused("workerStake", t, 1);
        t = _terms(ETH, 2, 1, 1);
        t.programs = new bytes32[](1);
        _refused("programs", t, 1);
        t = _terms(ETH, 2, 1, 1);
        t.programs[1] = 0;
        _refused("programs", t, 1);
        t = _terms(ETH, 2, 1, 1);
        t.initialStates = new bytes32[](3);
        _refused("initialStates", t, 1);
        t = _terms(ETH, 2, 1, 1);
        t.initialStates[0] = 0;
        _refused("initialStates", t, 1);
        t = _terms(ETH, 2, 1, 1);
        t.manifest = new bytes(129);
        _refused("manifest", t, 1);
    }

    /// @dev Tokens are counted in 32 bits, texts in 2^20 tokens; there is no state to start from.
    function test_post_servingHasBoundsOfItsOwn() public {
        JobTerms memory t = _servingTerms(ETH, 2, 1, type(uint32).max);
        t.stepsPerInterval = 1 << 20;
        _accepted(t);
        IJobs.Job memory record = jobs.jobOf(1);
        assertEq(uint8(record.kind), uint8(JobKind.Serving));
        assertEq(record.intervals, type(uint32).max);
        assertEq(record.stepsPerInterval, 1 << 20);
        assertEq(jobs.programOf(1, 1), t.programs[1]);
        assertEq(jobs.initialStateOf(1, 0), 0);

        t.stepsPerInterval += 1;
        _refused("stepsPerInterval", t, 1);
        t.stepsPerInterval = 0;
        _refused("stepsPerInterval", t, 1);
        _refused("intervals", _servingTerms(ETH, 2, 1, 0), 1);
        t = _servingTerms(ETH, 2, 1, 10);
        t.initialStates = new bytes32[](2);
        _refused("initialStates", t, 1);
        (t.initialStates[0], t.initialStates[1]) = (bytes32(uint256(1)), bytes32(uint256(1)));
        _refused("initialStates", t, 1);
        t = _servingTerms(ETH, 2, 1, 10);
        t.programs[1] = 0;
        _refused("programs", t, 1);
        t = _servingTerms(ETH, 2, 1, 10);
        t.workerStake = 0;
        _refused("workerStake", t, 1);
        t = _servingTerms(ETH, 2, 1, 10);
        t.challengeWindow = 1 hours - 1;
        _refused("challengeWindow", t, 1);
        // A training job keeps its own.
        t.kind = JobKind.Training;
        t.challengeWindow = WINDOW;
        _refused("initialStates", t, 1);
    }

    /// @dev A kind that is none is no call at all.
    function test_post_refusesOtherKinds() public {
        bytes memory call = abi.encodeCall(IJobs.post, (_servingTerms(ETH, 1, 1, 1), 1));
        // Selector, the words of the arguments, and there the terms, whose first word is the kind.
        assertEq(call[4 + 3 * 32 - 1], bytes1(uint8(JobKind.Serving)));
        vm.prank(user);
        (bool done,) = address(jobs).call{value: 1}(call);
        assertTrue(done);
        call[4 + 3 * 32 - 1] = 0x02;
        vm.prank(user);
        (done,) = address(jobs).call{value: 1}(call);
        assertFalse(done);
    }

    function _refused(string memory field, JobTerms memory terms, uint256 deposit) private {
        uint256 value = deposit > 1 ether ? 0 : deposit;
        vm.expectRevert(abi.encodeWithSelector(IJobs.InvalidTerms.selector, field));
        vm.prank(user);
        jobs.post{value: value}(terms, deposit);
    }

    function _accepted(JobTerms memory terms) private {
        vm.prank(user);
        jobs.post{value: 1}(terms, 1);
    }

    function test_accept_assignsEveryLane() public {
        uint64 job = _post(_terms(address(sno), 2, 2, 3));
        (Offer[] memory offers, bytes[] memory signatures) = _offers(job);
        vm.expectEmit(address(jobs));
        emit IJobOffers.JobAccepted(job, offers);
        vm.prank(user);
        jobs.accept(job, offers, signatures);

        assertEq(uint8(_stateOfJob(job)), uint8(IJobs.State.Accepted));
        for (uint16 replica = 0; replica < 2; ++replica) {
            for (uint16 stage = 0; stage < 2; ++stage) {
                address worker = workers[replica * 2 + stage].addr;
                assertEq(jobs.workerOf(job, stage, replica), worker);
                assertEq(jobs.priceOf(job, stage, replica), PRICE);
                assertEq(_staked(worker).locked, STAKE);
            }
        }
    }

    function test_accept_isTheUsers() public {
        uint64 job = _post(_terms(address(sno), 1, 1, 1));
        (Offer[] memory offers, bytes[] memory signatures) = _offers(job);
        vm.expectRevert(abi.encodeWithSelector(IJobs.NotUser.selector, stranger));
        vm.prank(stranger);
        jobs.accept(job, offers, signatures);
    }

    function test_accept_onceAndOnlyWhenPosted() public {
        uint64 job = _post(_terms(address(sno), 1, 1, 1));
        _accept(job);
        (Offer[] memory offers, bytes[] memory signatures) = _offers(job);
        vm.startPrank(user);
        vm.expectRevert(abi.encodeWithSelector(IJobs.WrongState.selector, job, IJobs.State.Accepted));
        jobs.accept(job, offers, signatures);
        vm.expectRevert(abi.encodeWithSelector(IJobs.WrongState.selector, 77, IJobs.State.None));
        jobs.accept(77, offers, signatures);
    }

    function test_accept_refusesAfterAcceptBy() public {
        uint64 job = _post(_terms(address(sno), 1, 1, 1));
        uint40 acceptBy = jobs.jobOf(job).acceptBy;
        vm.warp(acceptBy + 1);
        (Offer[] memory offers, bytes[] memory signatures) = _offers(job);
        vm.expectRevert(abi.encodeWithSelector(IJobs.AcceptPeriodOver.selector, acceptBy));
        vm.prank(user);
        jobs.accept(job, offers, signatures);
    }

    function test_accept_refusesExpiredOffers() public {
        uint64 job = _post(_terms(address(sno), 2, 1, 1));
        (Offer[] memory offers, bytes[] memory signatures) = _offers(job);
        offers[1].expires = uint40(block.timestamp + 1);
        signatures[1] = _sign(workers[1].key, _offerDigest(offers[1]));
        skip(2);
        _refuseAccept(job, offers, signatures, abi.encodeWithSelector(IJobOffers.OfferExpired.selector, 1));
    }

    function test_accept_refusesOtherLanes() public {
        uint64 job = _post(_terms(address(sno), 2, 2, 1));
        for (uint256 i = 0; i < 4; ++i) {
            (Offer[] memory offers, bytes[] memory signatures) = _offers(job);
            if (i == 0) offers[0].job = job + 1;
            if (i == 1) offers[1].stage = 0;
            if (i == 2) offers[2].replica = 0;
            // The lane's number is right, but there is no such stage.
            if (i == 3) (offers[3].stage, offers[3].replica) = (3, 0);
            _refuseAccept(job, offers, signatures, abi.encodeWithSelector(IJobOffers.OfferMismatch.selector, i));
        }
    }

    function test_accept_refusesMissingOffers() public {
        uint64 job = _post(_terms(address(sno), 2, 1, 1));
        (, bytes[] memory signatures) = _offers(job);
        _refuseAccept(job, new Offer[](1), signatures, abi.encodeWithSelector(IJobOffers.OfferMismatch.selector, 1));
        (Offer[] memory offers,) = _offers(job);
        _refuseAccept(job, offers, new bytes[](1), abi.encodeWithSelector(IJobOffers.OfferMismatch.selector, 2));
    }

    function test_accept_refusesBadSignatures(uint256 position, uint8 flip) public {
        vm.assume(flip != 0);
        uint64 job = _post(_terms(address(sno), 1, 1, 1));
        (Offer[] memory offers, bytes[] memory signatures) = _offers(job);
        position = bound(position, 0, 64);
        signatures[0][position] ^= bytes1(flip);
        _refuseAccept(job, offers, signatures, abi.encodeWithSelector(IJobOffers.BadOfferSignature.selector, 0));
        signatures[0] = "";
        _refuseAccept(job, offers, signatures, abi.encodeWithSelector(IJobOffers.BadOfferSignature.selector, 0));
        // An unset signer is nobody's word for the zero address.
        offers[0].worker = address(0);
        _refuseAccept(job, offers, signatures, abi.encodeWithSelector(IJobOffers.BadOfferSignature.selector, 0));
    }

    function test_accept_refusesAChangedPrice() public {
        uint64 job = _post(_terms(address(sno), 1, 1, 1));
        (Offer[] memory offers, bytes[] memory signatures) = _offers(job);
        offers[0].pricePerInterval -= 1;
        _refuseAccept(job, offers, signatures, abi.encodeWithSelector(IJobOffers.BadOfferSignature.selector, 0));
    }

    /// @dev The same words signed for another job, another chain, another deployment or another contract of this one.
    function test_accept_refusesReplayedSignatures() public {
        uint64 first = _post(_terms(address(sno), 1, 1, 1));
        uint64 second = _post(_terms(address(sno), 1, 1, 1));
        (Offer[] memory offers, bytes[] memory signatures) = _offers(first);
        _refuseAccept(second, offers, signatures, abi.encodeWithSelector(IJobOffers.OfferMismatch.selector, 0));

        (offers, signatures) = _offers(second);
        Offer memory offer = offers[0];
        bytes memory badSignature = abi.encodeWithSelector(IJobOffers.BadOfferSignature.selector, 0);
        bytes32 hash = Signatures.hash(offer);
        signatures[0] = _sign(workers[0].key, Signatures.digest(block.chainid + 1, address(jobs), hash));
        _refuseAccept(second, offers, signatures, badSignature);
        signatures[0] = _sign(workers[0].key, Signatures.digest(block.chainid, makeAddr("other deployment"), hash));
        _refuseAccept(second, offers, signatures, badSignature);
        signatures[0] = _sign(workers[0].key, Signatures.digest(block.chainid, address(disputes), hash));
        _refuseAccept(second, offers, signatures, badSignature);

        // And signed for this chain, it is worth nothing once the chain has forked off under another id.
        (offers, signatures) = _offers(second);
        vm.chainId(block.chainid + 1);
        _refuseAccept(second, offers, signatures, badSignature);
    }

    /// @dev P-40: the block that posted the job is orphaned, and its number is given to other terms, or to somebody
    /// else. What a worker agreed to before binds it to nothing.
    function testFuzz_accept_refusesOffersForAnotherPosting(uint8 change) public {
        JobTerms memory agreed = _terms(address(sno), 1, 1, 1);
        uint256 before = vm.snapshotState();
        uint64 job = _post(agreed);
        (Offer[] memory offers, bytes[] memory signatures) = _offers(job);
        assertEq(offers[0].terms, keccak256(abi.encode(user, agreed)));
        vm.revertToState(before);

        JobTerms memory other = _terms(address(sno), 1, 1, 1);
        address poster = user;
        if (change % 6 == 0) other.workerStake += 1;
        else if (change % 6 == 1) other.programs[0] = keccak256("nobody has it");
        else if (change % 6 == 2) other.manifest = "nobody has it";
        else if (change % 6 == 3) other.duration = 365 days;
        else if (change % 6 == 4) other.token = ETH;
        else poster = stranger;
        uint256 deposit = _cover(other);
        if (other.token == ETH) vm.deal(poster, deposit);
        else _fund(poster, address(jobs), deposit);
        vm.startPrank(poster);
        assertEq(jobs.post{value: other.token == ETH ? deposit : 0}(other, deposit), job);
        vm.expectRevert(abi.encodeWithSelector(IJobOffers.OfferMismatch.selector, 0));
        jobs.accept(job, offers, signatures);
        vm.stopPrank();
    }

    function test_accept_refusesOneWorkerTwice() public {
        uint64 job = _post(_terms(address(sno), 1, 2, 1));
        _stake(workers[0].addr, IStaking.Role.Worker, STAKE);
        (Offer[] memory offers, bytes[] memory signatures) = _offers(job);
        offers[1] = _offer(job, 0, 1, workers[0].addr);
        signatures[1] = _sign(workers[0].key, _offerDigest(offers[1]));
        _refuseAccept(
            job, offers, signatures, abi.encodeWithSelector(IJobOffers.DuplicateWorker.selector, workers[0].addr)
        );
    }

    function test_accept_refusesMoreThanTheEscrow() public {
        JobTerms memory terms = _terms(address(sno), 2, 1, 3);
        uint256 deposit = _cover(terms) - 1;
        vm.prank(user);
        uint64 job = jobs.post(terms, deposit);
        (Offer[] memory offers, bytes[] memory signatures) = _offers(job);
        _refuseAccept(
            job, offers, signatures, abi.encodeWithSelector(IJobOffers.EscrowTooSmall.selector, deposit, deposit + 1)
        );
    }

    /// @dev P-3: of a serving job the price of every token.
    function test_accept_servingNeedsThePriceOfEveryToken() public {
        JobTerms memory terms = _servingTerms(address(sno), 2, 1, 100);
        uint256 deposit = _cover(terms) - 1;
        assertEq(deposit, 2 * 100 * PRICE - 1);
        vm.prank(user);
        uint64 job = jobs.post(terms, deposit);
        (Offer[] memory offers, bytes[] memory signatures) = _offers(job);
        _refuseAccept(
            job, offers, signatures, abi.encodeWithSelector(IJobOffers.EscrowTooSmall.selector, deposit, deposit + 1)
        );
    }

    function test_accept_refusesWorkersWithoutStake() public {
        uint64 job = _post(_terms(address(sno), 1, 1, 1));
        (Offer[] memory offers, bytes[] memory signatures) = _offers(job);
        vm.prank(workers[0].addr);
        staking.requestUnstake(IStaking.Role.Worker, 1);
        _refuseAccept(
            job, offers, signatures, abi.encodeWithSelector(IStaking.InsufficientStake.selector, STAKE - 1, STAKE)
        );
    }

    /// @dev The same stake does not stand for two jobs.
    function test_accept_refusesStakeThatIsLocked() public {
        _accept(_post(_terms(address(sno), 1, 1, 1)));
        uint64 job = _post(_terms(address(sno), 1, 1, 1));
        (Offer[] memory offers, bytes[] memory signatures) = _offers(job);
        _refuseAccept(job, offers, signatures, abi.encodeWithSelector(IStaking.InsufficientStake.selector, 0, STAKE));
    }

    function _refuseAccept(uint64 job, Offer[] memory offers, bytes[] memory signatures, bytes memory reason) private {
        vm.expectRevert(reason);
        vm.prank(user);
        jobs.accept(job, offers, signatures);
    }

    function test_start_fixesKeyAndDeadline() public {
        uint64 job = _post(_terms(address(sno), 2, 1, 1));
        _accept(job);
        vm.prevrandao(keccak256("beacon"));
        bytes32 jobKey = keccak256(abi.encode(keccak256("beacon"), uint256(job)));
        uint40 deadline = uint40(block.timestamp + 2 days);
        vm.expectEmit(address(jobs));
        emit IJobs.JobStarted(job, jobKey, deadline);
        _start(job);

        IJobs.Job memory record = jobs.jobOf(job);
        assertEq(record.jobKey, jobKey);
        assertEq(record.deadline, deadline);
        assertEq(record.startedAt, block.timestamp);
        for (uint16 stage = 0; stage < 2; ++stage) {
            assertEq(checkpoints.laneOf(job, stage, 0).worker, workers[stage].addr);
            assertEq(checkpoints.laneOf(job, stage, 0).voidFrom, type(uint32).max);
        }
    }

    /// @dev P-20: a serving job has no claims on record, so it opens no lane for them.
    function test_start_servingOpensNoLane() public {
        uint64 job = _post(_servingTerms(address(sno), 2, 1, 10));
        _accept(job);
        vm.prevrandao(keccak256("beacon"));
        _start(job);
        IJobs.Job memory record = jobs.jobOf(job);
        assertEq(uint8(record.state), uint8(IJobs.State.Running));
        assertEq(record.jobKey, keccak256(abi.encode(keccak256("beacon"), uint256(job))));
        assertEq(record.deadline, block.timestamp + 2 days);
        for (uint16 stage = 0; stage < 2; ++stage) {
            assertEq(jobs.workerOf(job, stage, 0), workers[stage].addr);
            assertEq(checkpoints.laneOf(job, stage, 0).worker, address(0));
        }
    }

    function test_start_refuses() public {
        uint64 job = _post(_terms(address(sno), 1, 1, 1));
        vm.expectRevert(abi.encodeWithSelector(IJobs.WrongState.selector, job, IJobs.State.Posted));
        _start(job);
        _accept(job);
        vm.expectRevert(abi.encodeWithSelector(IJobs.NotUser.selector, stranger));
        vm.prank(stranger);
        jobs.start(job);
        uint40 acceptBy = jobs.jobOf(job).acceptBy;
        vm.warp(acceptBy + 1);
        vm.expectRevert(abi.encodeWithSelector(IJobs.AcceptPeriodOver.selector, acceptBy));
        _start(job);
        vm.warp(acceptBy);
        _start(job);
        vm.expectRevert(abi.encodeWithSelector(IJobs.WrongState.selector, job, IJobs.State.Running));
        _start(job);
    }

    /// @dev Setters open to anyone: none.
    function test_onlyTheContracts(address caller) public {
        vm.assume(caller != address(checkpoints) && caller != address(channels) && caller != address(disputes));
        uint64 job = _run(1, 1, 1);
        vm.startPrank(caller);
        vm.expectRevert(abi.encodeWithSelector(IJobs.Unauthorized.selector, caller));
        jobs.pay(job, 0, 0, 1);
        vm.expectRevert(abi.encodeWithSelector(IJobs.Unauthorized.selector, caller));
        jobs.convict(job, 0, 0);
        vm.stopPrank();
    }
}
