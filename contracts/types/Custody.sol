// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {LeafRange, TensorType} from "./Types.sol";

/// @dev A holder's word that it has the state which a claim ends in, and gives it to whoever asks, until that claim is final or void.
/// EIP-712, domain of `Custody`.
struct Holding {
    bytes32 claimId;
}

/// @dev Who gave its word (C-16): the worker of another lane of the claim's job, named by that lane, or the job's user, whatever lane is
/// named. No signature: nobody.
struct Holder {
    uint16 stage;
    uint16 replica;
    bytes signature;
}

/// @dev What a list is of: the state that a claim ends in; a stage's constants or initial state; what a claim says its worker sent to a
/// neighbour.
enum DemandKind {
    None,
    State,
    Files,
    SentToPrevious,
    SentToNext
}

/// @dev Leaves of a tensor of a list. What lies beyond the tensor is taken modulo its leaves, and cut at its end: whoever demands
/// need not know its type, and cannot ask for what is not there.
struct Part {
    uint32 tensor;
    uint32 firstLeaf;
    uint32 leaves;
}

/// @dev A demand: what is to be shown, by whom, until when. `list` is the list root (C-4) of `tensors` tensor roots; of what was sent, whose list
/// only the neighbours know, it is the claim's `io`, the hash of the logs (C-8). `claimId` is zero where the list is of a stage's files. It is open up to `deadline`, and before block `untilBlock`: on a chain that makes no blocks nobody loses time.
struct Demand {
    DemandKind kind;
    bytes32 claimId;
    uint64 job;
    uint16 stage;
    uint16 replica;
    uint32 interval;
    uint16 holderStage;
    uint16 holderReplica;
    address holder;
    address demander;
    bytes32 list;
    uint32 tensors;
    Part part;
    uint40 deadline;
    uint40 untilBlock;
}

/// @dev What a demand asked for: the tensor's place in the list, and the leaves.
struct Delivery {
    TensorType tensorType;
    bytes32 dataRoot;
    bytes32[] membership;
    LeafRange range;
}
