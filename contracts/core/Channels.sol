// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";
import {EIP712} from "@openzeppelin/contracts/utils/cryptography/EIP712.sol";

import {IChannels} from "../interfaces/IChannels.sol";
import {IJobs} from "../interfaces/IJobs.sol";
import {LaneId, Lanes} from "../libraries/claims/Lanes.sol";
import {Voucher} from "../types/Types.sol";

/// @title Channels
/// @notice See `IChannels`.
/// @dev Holds no money: the escrow is with `Jobs`, which knows the prices and who was convicted.
contract Channels is IChannels, EIP712 {
    bytes32 private constant _VOUCHER_TYPEHASH = keccak256(
        "Voucher(uint64 job,uint16 stage,uint16 replica,uint32 epoch,uint32 before,uint32 tokens,bytes32 receipts)"
    );

    /// @notice Where users, workers and terms stand, and who is told what to pay.
    IJobs public immutable JOBS;

    mapping(LaneId lane => Redeemed redeemed) private _redeemed;
    mapping(LaneId lane => mapping(uint32 epoch => bytes32 record)) private _epochs;

    constructor(IJobs jobs) EIP712("Tensorlink", "1") {
        JOBS = jobs;
    }

    /// @inheritdoc IChannels
    function redeem(Voucher calldata voucher, bytes calldata signature) external {
        (uint64 job, uint16 stage, uint16 replica) = (voucher.job, voucher.stage, voucher.replica);
        (address user, uint32 most) = _open(job);
        // INVARIANT: nobody ends an epoch in another's name, with a voucher of less than is owed.
        if (msg.sender != JOBS.workerOf(job, stage, replica)) revert NotWorker(msg.sender);
        // INVARIANT: only the user spends the escrow (P-19).
        _checkSignature(voucher, signature, user);

        LaneId lane = Lanes.id(job, stage, replica);
        Redeemed memory before = _redeemed[lane];
        // INVARIANT: every epoch's receipts are fixed, once, so that none is kept from audits; epochs count from
        // 1 (P-19).
        if (voucher.epoch != uint256(before.epoch) + 1) revert NotTheNextEpoch(voucher.epoch);
        // INVARIANT: every token is paid for a receipt of its epoch's list: no voucher makes up for one that its epoch
        // left out (P-19).
        if (voucher.before != before.tokens) revert NotPaidBefore(voucher.before);
        // INVARIANT: a token is paid once, and never more of them than the escrow covers (P-3).
        if (voucher.tokens < before.tokens || voucher.tokens > most) revert TokensOutOfRange(voucher.tokens);

        _fix(voucher, lane);
        JOBS.pay(job, stage, replica, voucher.tokens - before.tokens);
    }

    function _fix(Voucher calldata v, LaneId lane) private {
        uint64 redeemedAt = uint64(block.timestamp);
        _redeemed[lane] = Redeemed({epoch: v.epoch, tokens: v.tokens, redeemedAt: redeemedAt});
        _epochs[lane][v.epoch] = keccak256(abi.encode(v.receipts, redeemedAt));
        emit VoucherRedeemed(v.job, v.stage, v.replica, v.epoch, v.tokens, v.receipts, redeemedAt);
    }

    /// @dev The user of a job that still pays, and the most tokens that it pays a lane.
    function _open(uint64 job) private view returns (address user, uint32 most) {
        IJobs.State state;
        uint40 deadline;
        (user, state, deadline, most) = JOBS.servingOf(job);
        bool closing = state == IJobs.State.Closing;
        // INVARIANT: tokens are paid by escrow that is there, of a serving job.
        if (state != IJobs.State.Running && !closing) revert JobNotOpen(job);
        // INVARIANT: settlement waits for the audits of what is redeemed last, and so for a bounded time (P-10, P-20).
        if (closing && block.timestamp >= deadline) revert RedemptionOver(deadline);
    }

    function _checkSignature(Voucher calldata voucher, bytes calldata signature, address user) private view {
        bytes32 digest = _hashTypedDataV4(keccak256(abi.encode(_VOUCHER_TYPEHASH, voucher)));
        // Left out is what else there is to say about a failure.
        // slither-disable-next-line unused-return
        (address signer, ECDSA.RecoverError failure,) = ECDSA.tryRecoverCalldata(digest, signature);
        if (failure != ECDSA.RecoverError.NoError || signer != user) revert BadSignature();
    }

    /// @inheritdoc IChannels
    function redeemedOf(uint64 job, uint16 stage, uint16 replica) external view returns (Redeemed memory) {
        return _redeemed[Lanes.id(job, stage, replica)];
    }

    /// @inheritdoc IChannels
    function epochOf(uint64 job, uint16 stage, uint16 replica, uint32 epoch) external view returns (bytes32) {
        return _epochs[Lanes.id(job, stage, replica)][epoch];
    }
}
