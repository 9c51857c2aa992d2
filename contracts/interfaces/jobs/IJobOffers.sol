// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Offer} from "../../types/Types.sol";

/// @title Jobs: workers' offers
/// @notice How the lanes of a job are given to the workers that offered for them. See `IJobs`.
interface IJobOffers {
    /// @notice Every lane has a worker.
    /// @param job id of the job
    /// @param offers the workers' offers, in lane order
    event JobAccepted(uint64 indexed job, Offer[] offers);

    /// @notice An offer has expired.
    /// @param index index of the offer
    error OfferExpired(uint256 index);

    /// @notice An offer is for another job, other terms or another lane, or there are not as many offers and signatures
    /// as lanes.
    /// @param index index of the offer; in the second case, the number of offers
    error OfferMismatch(uint256 index);

    /// @notice An offer is not signed by its worker.
    /// @param index index of the offer
    error BadOfferSignature(uint256 index);

    /// @notice A key offers for two lanes.
    /// @param worker the key's account
    error DuplicateWorker(address worker);

    /// @notice The escrow does not cover the lanes' prices for all intervals and the budget for audits.
    /// @param escrow what there is, in wei of the job's token
    /// @param needed what there has to be, in wei of the job's token
    error EscrowTooSmall(uint256 escrow, uint256 needed);

    /// @notice The terms' stake is less than the lane's price asks for (P-30).
    /// @param lane index of the lane
    /// @param needed least stake, in wei of SNO
    error StakeTooSmall(uint256 lane, uint256 needed);

    /// @notice Assigns every lane by its worker's signed offer and locks the workers' stake. A key may hold only one
    /// lane of a job. (Two keys may still belong to one party.) Only the user, by `acceptBy`.
    /// Requirements: every offer has not expired, is for its lane of this job and its terms, and is signed by its
    /// worker; the worker
    /// has `workerStake` available, which is enough for its price (P-30); every price is below 2^88 wei, which is more
    /// than there are of either token; the escrow covers all prices for all intervals, and the budget for audits
    /// (P-29).
    /// @param job id of the job
    /// @param offers one for each lane, in lane order: replica-major (`replica * stages + stage`)
    /// @param signatures the workers' signatures of the offers (EIP-712, domain of `Jobs`), 65 bytes each
    function accept(uint64 job, Offer[] calldata offers, bytes[] calldata signatures) external;
}
