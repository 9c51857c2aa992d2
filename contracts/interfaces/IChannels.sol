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
/// | epoch e, n tokens paid | redeem (its worker, until a closing job's `deadline`; a voucher of epoch e + 1 that begins at n tokens) | epoch e + 1, the voucher's tokens |
///
/// No epoch is left out, and each begins where the one before has ended: whatever is paid is paid for receipts in the list of an epoch that is on
/// chain, for which auditors are drawn (P-31), as far as the user listed all that it paid for.
///
/// @dev Weakness: which receipts a list has is between user and worker; nothing here is compared with them.
interface IChannels {
    /// @dev What a lane has redeemed: its last epoch (0: none), the tokens paid for since the job began, and when.
    struct Redeemed {
        uint32 epoch;
        uint32 tokens;
        uint64 redeemedAt;
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
    /// @dev The job is closing, and its time to redeem was over at `deadline`.
    error RedemptionOver(uint40 deadline);
    /// @dev The lane redeems the epoch after its last next, and no other.
    error NotTheNextEpoch(uint32 epoch);
    /// @dev The voucher's epoch begins at other tokens than were paid.
    error NotPaidBefore(uint32 before);
    /// @dev Fewer tokens than were paid already, or more than the job pays for.
    error TokensOutOfRange(uint32 tokens);

    /// @notice Pays a lane's worker the tokens of a voucher that were not paid before, and records the epoch's receipts.
    /// Requirements: called by the lane's worker while the serving job is running, or closing and before its `deadline`; the lane was not
    /// convicted; signed by the job's user (65 bytes); the epoch after the last redeemed, `before` the tokens paid by then; no fewer tokens, at
    /// most `intervals` of the job. An epoch whose texts all came to nothing pays nothing, and can be redeemed like others.
    function redeem(Voucher calldata voucher, bytes calldata signature) external;

    /// @notice What a lane has redeemed.
    function redeemedOf(uint64 job, uint16 stage, uint16 replica) external view returns (Redeemed memory);

    /// @notice Record of an epoch: `keccak256(abi.encode(receipts, redeemedAt))` of its event; zero if it was not redeemed. `receipts` is the list
    /// root (C-4) of the claim ids of its receipts.
    function epochOf(uint64 job, uint16 stage, uint16 replica, uint32 epoch) external view returns (bytes32);
}
