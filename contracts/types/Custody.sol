// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {LeafRange, TensorType} from "./Types.sol";

/// @dev What a holder signs: it has the state which a claim ends in, and gives it to whoever asks, until that claim is
/// final or void. EIP-712, domain of `Custody`.
struct Holding {
    /// EIP-712 digest of the claim (C-9).
    bytes32 claimId;
}

/// @dev Who signed a `Holding` (C-16): the worker of another lane of the claim's job, named by that lane, or the job's
/// user, whatever lane is named.
struct Holder {
    /// Stage of the holder's lane.
    uint16 stage;
    /// Replica of the holder's lane.
    uint16 replica;
    /// Its signature, 65 bytes; empty for nobody.
    bytes signature;
}

/// @dev What data is demanded. `None` is invalid.
enum DemandKind {
    None,
    /// The state that a claim ends in.
    State,
    /// A stage's constants or initial state.
    Files,
    /// What a claim says its worker sent to the previous stage.
    SentToPrevious,
    /// What a claim says its worker sent to the next stage.
    SentToNext
}

/// @dev Leaves of a tensor of a list. Whoever demands them need not know the tensor's type, and cannot ask for what is
/// not there: the first leaf is taken modulo the tensor's leaves, and the part is cut at the tensor's end.
struct Part {
    /// The tensor's place in the list, from 0.
    uint32 tensor;
    /// The first leaf, from 0.
    uint32 firstLeaf;
    /// How many leaves, 1 to 64.
    uint32 leaves;
}

/// @dev A demand: what has to be shown, by whom, until when. It is open up to and including `deadline`, and before
/// block `untilBlock`: on a chain that makes no blocks nobody loses time.
struct Demand {
    /// What data.
    DemandKind kind;
    /// EIP-712 digest of the claim (C-9); zero for a stage's files.
    bytes32 claimId;
    /// Id of the job.
    uint64 job;
    /// Stage of the claim's lane, or whose files they are.
    uint16 stage;
    /// Replica of the claim's lane; for files, of the holder's.
    uint16 replica;
    /// The claim's interval; 0 for files.
    uint32 interval;
    /// Stage of the holder's lane.
    uint16 holderStage;
    /// Replica of the holder's lane.
    uint16 holderReplica;
    /// Who has to show it.
    address holder;
    /// Who demanded it, and put up the bond.
    address demander;
    /// List root (C-4) of tensor roots. Of what was sent, whose list only the neighbours know, the claim's `io`: the
    /// hash of its logs (C-8).
    bytes32 list;
    /// Number of tensors in the list.
    uint32 tensors;
    /// What has to be shown of it.
    Part part;
    /// Last timestamp at which it is open.
    uint40 deadline;
    /// Block before which it is open in any case.
    uint40 untilBlock;
}

/// @dev What a demand asked for.
struct Delivery {
    /// The tensor's type.
    TensorType tensorType;
    /// The tensor's data root (C-2).
    bytes32 dataRoot;
    /// Siblings from the tensor's place to the list root.
    bytes32[] membership;
    /// The leaves.
    LeafRange range;
}
