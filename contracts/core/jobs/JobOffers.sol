// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";
import {EIP712} from "@openzeppelin/contracts/utils/cryptography/EIP712.sol";
import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {SafeCast} from "@openzeppelin/contracts/utils/math/SafeCast.sol";

import {IJobOffers} from "../../interfaces/jobs/IJobOffers.sol";
import {Lanes} from "../../libraries/claims/Lanes.sol";
import {ParameterBounds} from "../../libraries/terms/ParameterBounds.sol";
import {JobKind, Offer} from "../../types/Types.sol";
import {JobDeployment} from "./JobDeployment.sol";
import {JobRecords} from "./JobRecords.sol";

/// @title JobOffers
/// @notice Workers' signed offers: how they take the lanes of a job, and what the escrow has to hold for them.
abstract contract JobOffers is JobRecords, JobDeployment, EIP712 {
    using Math for uint256;
    using SafeCast for uint256;

    bytes32 private constant _OFFER_TYPEHASH = keccak256(
        "Offer(uint64 job,bytes32 terms,uint16 stage,uint16 replica,address worker,uint128 pricePerInterval,uint40 expires)"
    );

    constructor() EIP712("Tensorlink", "1") {}

    /// @inheritdoc IJobOffers
    function accept(uint64 job, Offer[] calldata offers, bytes[] calldata signatures) external {
        Job storage record = _userMoves(job, State.Posted);
        uint256 lanes = uint256(record.stages) * record.replicas;
        // INVARIANT: every lane gets a worker.
        if (offers.length != lanes || signatures.length != lanes) revert OfferMismatch(offers.length);

        record.state = State.Accepted;
        address[] memory workers = new address[](lanes);
        uint256 perInterval = 0;
        for (uint256 i = 0; i < lanes; ++i) {
            _checkOffer(job, record, i, offers[i], signatures[i]);
            _checkStake(record, i, offers[i].pricePerInterval);
            address worker = offers[i].worker;
            // INVARIANT: replicas are held by different keys.
            for (uint256 k = 0; k < i; ++k) {
                if (workers[k] == worker) revert DuplicateWorker(worker);
            }
            workers[i] = worker;
            perInterval += offers[i].pricePerInterval;
            // INVARIANT: a price fits beside its worker; no escrow could cover one that does not.
            _assignments[Lanes.id(job, offers[i].stage, offers[i].replica)] =
                Assignment({worker: worker, convicted: false, price: uint256(offers[i].pricePerInterval).toUint88()});
        }
        uint256 forWork = perInterval * record.intervals;
        uint256 forAudits = _budget(record, perInterval);
        uint256 needed = forWork + forAudits;
        // INVARIANT: whatever becomes final can be paid (P-3).
        if (needed > record.escrow) revert EscrowTooSmall(record.escrow, needed);
        record.auditBudget = forAudits.toUint128();
        emit JobAccepted(job, offers);

        uint256 stake = record.workerStake;
        for (uint256 i = 0; i < lanes; ++i) {
            // Our own contract, which calls nobody; the lanes of a job are few (P-18).
            // slither-disable-next-line calls-loop
            STAKING.lock(workers[i], stake);
        }
    }

    /// @dev Most that audits can take of the escrow: of each lane twice as many as are drawn on the mean, and one, each
    /// of the dearest claim (P-29).
    function _budget(Job storage record, uint256 perInterval) private view returns (uint256) {
        if (_AUDITS_PER_CLAIM_BPS == 0) return 0;
        uint256 units = _unitsOfClaim(record);
        uint256 mean = uint256(record.intervals) * _AUDITS_PER_CLAIM_BPS;
        uint256 audits = (2 * mean).ceilDiv(units * ParameterBounds.WHOLE_BPS) + 1;
        return audits * (perInterval * units * _AUDIT_FEE_BPS / ParameterBounds.WHOLE_BPS);
    }

    /// @dev Most units of work that a claim can be about: an interval, or a text of the greatest length.
    function _unitsOfClaim(Job storage record) private view returns (uint256) {
        return record.kind == JobKind.Serving ? record.stepsPerInterval : 1;
    }

    function _checkStake(Job storage record, uint256 lane, uint256 price) private view {
        // There is no price of ETH here to compare with.
        if (record.token == address(0)) return;
        uint256 needed = price * _unitsOfClaim(record) * _MIN_STAKE_INTERVALS;
        // INVARIANT: no run of false claims is worth its stake (P-30).
        if (record.workerStake < needed) revert StakeTooSmall(lane, needed);
    }

    function _checkOffer(uint64 job, Job storage record, uint256 lane, Offer calldata offer, bytes calldata signature)
        private
        view
    {
        uint256 stages = record.stages;
        bool itsLane = uint256(offer.replica) * stages + offer.stage == lane && offer.stage < stages;
        // INVARIANT: the worker gets the lane it offered for, at its price, while the offer stands; and it works for
        // whom and for what it agreed to, whatever job a reorganisation gave the number to (P-40).
        if (offer.job != job || offer.terms != record.terms || !itsLane) revert OfferMismatch(lane);
        if (block.timestamp > offer.expires) revert OfferExpired(lane);
        // Left out is what else there is to say about a failure.
        // slither-disable-next-line unused-return
        (address signer, ECDSA.RecoverError failure,) =
            ECDSA.tryRecoverCalldata(_hashTypedDataV4(keccak256(abi.encode(_OFFER_TYPEHASH, offer))), signature);
        if (failure != ECDSA.RecoverError.NoError || signer != offer.worker) revert BadOfferSignature(lane);
    }

    /// @dev The job, if the caller is its user, it is in `state` and can still go on towards its start.
    function _userMoves(uint64 job, State state) internal view returns (Job storage record) {
        record = _jobs[job];
        // INVARIANT: the transition table of the interface.
        if (record.state != state) revert WrongState(job, record.state);
        // INVARIANT: only the user spends the escrow.
        if (msg.sender != record.user) revert NotUser(msg.sender);
        // INVARIANT: workers know how long their stake waits for a start (P-10).
        if (block.timestamp > record.acceptBy) revert AcceptPeriodOver(record.acceptBy);
    }
}
