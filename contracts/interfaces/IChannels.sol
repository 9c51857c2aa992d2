// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Voucher} from "../types/Types.sol";

/// @title Channels: payment of serving jobs, token by token
/// @notice The escrow of a serving job is a payment channel to each of its lanes. The user signs what it owes by now, off chain, text
/// after text; the worker redeems the last such voucher of an epoch when it likes, and with it commits to the epoch's receipts. Nobody
/// pays for what was not delivered: the user signs after it has received. Nobody delivers unpaid for long: the worker stops
/// at a credit of its own choice.
///
/// | state of a lane | move | next |
/// |---|---|---|
/// | epoch e, n tokens paid | redeem (its worker; a voucher of a later epoch, for more than n tokens) | that epoch, those tokens |
interface IChannels {
    /// @dev What a lane has redeemed: its last epoch (0: none) and the tokens paid for since the job began.
    struct Redeemed {
        uint32 epoch;
        uint32 tokens;
    }

    /// @dev `tokens` as in the voucher: since the job began. `redeemedAt` is the block's timestamp.
    event VoucherRedeemed(
        uint64 indexed job,
        uint16 stage,
        uint16 replica,
        uint32 epoch,
        uint32 tokens,
        bytes32 receipts,
        uint64 redeemedAt
    );

    error NotWorker(address caller);
    /// @dev Not a serving job, or not running or closing.
    error JobNotOpen(uint64 job);
    /// @dev Not by the job's user, or not for this chain and contract.
    error BadSignature();
    /// @dev The lane has redeemed a voucher of this epoch or of a later one.
    error EpochOver(uint32 epoch);
    /// @dev No more tokens than were paid already, or more than the job pays for.
    error TokensOutOfRange(uint32 tokens);

    /// @notice Pays a lane's worker the tokens of a voucher that were not paid before, and records the epoch's receipts.
    /// Requirements: called by the lane's worker while the serving job is running or closing; the lane was not convicted; signed by the
    /// job's user (65 bytes); an epoch after the last redeemed; more tokens than were paid, at most `intervals` of the job.
    function redeem(Voucher calldata voucher, bytes calldata signature) external;

    /// @notice What a lane has redeemed.
    function redeemedOf(uint64 job, uint16 stage, uint16 replica) external view returns (Redeemed memory);

    /// @notice Record of an epoch: `keccak256(abi.encode(receipts, redeemedAt))` of its event; zero if it was not redeemed. `receipts` is the list
    /// root (C-4) of the claim ids of its receipts.
    function epochOf(uint64 job, uint16 stage, uint16 replica, uint32 epoch) external view returns (bytes32);
}
