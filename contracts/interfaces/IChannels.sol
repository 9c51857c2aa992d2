// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Voucher} from "../types/Types.sol";

/// @title Channels: payment of serving jobs, token by token
/// @notice The escrow of a serving job is a payment channel to each of its lanes. After each text, the user signs off
/// chain what it owes by now. The worker redeems the last voucher of an epoch when it likes, and so commits to the
/// epoch's receipts. Nobody pays for what was not delivered: the user signs after it has received. Nobody delivers
/// unpaid for long: the worker stops at a credit limit of its own choice.
///
/// | state of a lane | move | next |
/// |---|---|---|
/// | epoch e, n tokens paid | redeem (its worker, until a closing job's `deadline`; a voucher of epoch e + 1 that begins at n tokens) | epoch e + 1, the voucher's tokens |
///
/// No epoch is left out, and each begins where the one before ended. So whatever is paid is paid for receipts that are
/// in the list of an epoch on chain, and auditors are drawn for them (P-31), as far as the user listed all that it paid
/// for.
///
/// @dev Weakness: what receipts a list holds is between user and worker; this contract compares nothing with them.
interface IChannels {
    /// @dev What a lane has redeemed.
    struct Redeemed {
        /// The last epoch; 0 if there is none.
        uint32 epoch;
        /// Tokens paid for since the job began.
        uint32 tokens;
        /// When the last epoch was redeemed, as a Unix timestamp; 0 if there is none.
        uint64 redeemedAt;
    }

    /// @notice A lane has redeemed an epoch.
    /// @param job id of the serving job
    /// @param stage the lane's stage
    /// @param replica the lane's replica
    /// @param epoch number of the epoch, counted from 1
    /// @param tokens tokens paid for since the job began, as in the voucher
    /// @param receipts list root (C-4) of the claim ids of the epoch's receipts
    /// @param redeemedAt timestamp of the block
    event VoucherRedeemed(
        uint64 indexed job,
        uint16 stage,
        uint16 replica,
        uint32 epoch,
        uint32 tokens,
        bytes32 receipts,
        uint64 redeemedAt
    );

    /// @notice The caller is not the lane's worker.
    /// @param caller who called
    error NotWorker(address caller);

    /// @notice The job is not a serving job, or neither running nor closing.
    /// @param job id of the job
    error JobNotOpen(uint64 job);

    /// @notice The voucher is not signed by the job's user, or not for this chain and contract.
    error BadSignature();

    /// @notice The job is closing, and its time to redeem is over.
    /// @param deadline first timestamp at which nothing is redeemed any more
    error RedemptionOver(uint40 deadline);

    /// @notice The lane can redeem only the epoch after its last one.
    /// @param epoch the voucher's epoch
    error NotTheNextEpoch(uint32 epoch);

    /// @notice The voucher's epoch does not begin at the tokens that are paid.
    /// @param before the voucher's `before`
    error NotPaidBefore(uint32 before);

    /// @notice The voucher names fewer tokens than are paid already, or more than the job pays for.
    /// @param tokens the voucher's `tokens`
    error TokensOutOfRange(uint32 tokens);

    /// @notice Pays the lane's worker for the tokens of a voucher that are not paid yet, and records the epoch's
    /// receipts. An epoch whose texts all came to nothing pays nothing, and can be redeemed like any other.
    /// Requirements: the caller is the lane's worker; the serving job runs, or is closing and before its `deadline`;
    /// the lane is not convicted; the job's user signed the voucher; its epoch is the one after the last redeemed; its
    /// `before` is the tokens paid so far; its `tokens` are no fewer than those, and at most `intervals` of the job.
    /// @param voucher what the user owes the lane
    /// @param signature the user's signature of the voucher, 65 bytes
    function redeem(Voucher calldata voucher, bytes calldata signature) external;

    /// @notice What a lane has redeemed.
    /// @param job id of the serving job
    /// @param stage the lane's stage
    /// @param replica the lane's replica
    /// @return last epoch, tokens paid and time; all zero if it has redeemed nothing
    function redeemedOf(uint64 job, uint16 stage, uint16 replica) external view returns (Redeemed memory);

    /// @notice Record of a redeemed epoch.
    /// @param job id of the serving job
    /// @param stage the lane's stage
    /// @param replica the lane's replica
    /// @param epoch number of the epoch, counted from 1
    /// @return `keccak256(abi.encode(receipts, redeemedAt))` of its `VoucherRedeemed`; zero if it was not redeemed
    function epochOf(uint64 job, uint16 stage, uint16 replica, uint32 epoch) external view returns (bytes32);
}
