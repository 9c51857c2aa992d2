// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Claim} from "./Types.sol";

/// @dev What is audited: a claim on record, fixed when it was committed; or a receipt in the list of an epoch, fixed
/// when the epoch was redeemed.
struct AuditedClaim {
    /// The claim, or the receipt.
    Claim claim;
    /// When it was fixed, as a Unix timestamp.
    uint64 fixedAt;
    /// Of a receipt: its epoch; otherwise 0.
    uint32 epoch;
    /// Of a receipt: list root (C-4) of the epoch's receipts; otherwise zero.
    bytes32 receipts;
    /// Of a receipt: its place in the list; otherwise 0.
    uint32 index;
    /// Of a receipt: siblings from its place to the list root; otherwise empty.
    bytes32[] siblings;
}

/// @dev What an auditor computed of a claim's last step, as a `StepStatement` of an honest worker has it.
struct AuditAnswer {
    /// The step: absolute, from 0; of a receipt, the text's number of tokens.
    uint32 step;
    /// State root (C-6) before the step.
    bytes32 preState;
    /// Trace root (C-7) of the step.
    bytes32 trace;
}
