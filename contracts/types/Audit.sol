// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Claim} from "./Types.sol";

/// @dev What is audited: a claim on record, fixed when it was committed; or a receipt in the list of an epoch, fixed when that was
/// redeemed. `epoch`, `receipts` (the list's root), `index` and `siblings` (C-4) are of a receipt, and otherwise zero.
struct AuditedClaim {
    Claim claim;
    uint64 fixedAt;
    uint32 epoch;
    bytes32 receipts;
    uint32 index;
    bytes32[] siblings;
}

/// @dev What an auditor computed of a claim's last step (absolute, from 0; of a receipt, the text's number of tokens): the state that the step
/// starts from and the trace, as a `StepStatement` of an honest worker has them.
struct AuditAnswer {
    uint32 step;
    bytes32 preState;
    bytes32 trace;
}
