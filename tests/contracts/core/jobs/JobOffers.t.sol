// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IJobs} from "../../../../contracts/interfaces/IJobs.sol";
import {IStaking} from "../../../../contracts/interfaces/IStaking.sol";
import {IJobOffers} from "../../../../contracts/interfaces/jobs/IJobOffers.sol";
import {JobTerms, Offer} from "../../../../contracts/types/Types.sol";
import {ProtocolTest} from "../../protocol/ProtocolTest.sol";
import {Signatures} from "../../protocol/Signatures.sol";

/// @dev `accept`: what offers have to say, and what the escrow and the workers have to hold.
contract JobOffersTest is ProtocolTest {
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
}
