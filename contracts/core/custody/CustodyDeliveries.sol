// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {ReentrancyGuardTransient} from "@openzeppelin/contracts/utils/ReentrancyGuardTransient.sol";
import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";

import {ICustody} from "../../interfaces/ICustody.sol";
import {TensorTypes} from "../../libraries/encoding/TensorTypes.sol";
import {Merkle} from "../../libraries/proofs/Merkle.sol";
import {Places} from "../../libraries/proofs/Places.sol";
import {Delivery, Demand, DemandKind, Part} from "../../types/Custody.sol";
import {BoundaryLogs, EdgeLog, TensorType} from "../../types/Types.sol";
import {CustodyRecords} from "./CustodyRecords.sol";

/// @title CustodyDeliveries
/// @notice What meets a demand.
abstract contract CustodyDeliveries is CustodyRecords, ReentrancyGuardTransient {
    using SafeERC20 for IERC20;
    using TensorTypes for TensorType;

    /// @inheritdoc ICustody
    function deliver(uint256 id, Demand calldata demand, Delivery calldata delivery) external nonReentrant {
        _take(id, demand);
        // INVARIANT: of what was sent the sender's attestation is owed, too.
        if (_isSent(demand)) revert WrongDelivery();
        _show(id, demand, demand.list, delivery);
    }

    /// @inheritdoc ICustody
    function deliverSent(
        uint256 id,
        Demand calldata demand,
        Delivery calldata delivery,
        BoundaryLogs calldata logs,
        bytes calldata signature
    ) external nonReentrant {
        _take(id, demand);
        if (!_isSent(demand)) revert WrongDelivery();
        // INVARIANT: the logs are those that the claim commits to.
        if (keccak256(abi.encode(logs)) != demand.list) revert WrongDelivery();
        bool toNext = demand.kind == DemandKind.SentToNext;
        bytes32 log = toNext ? logs.toNext : logs.toPrevious;
        _checkAttestation(demand, toNext, log, signature);
        emit WordGiven(id, log, signature);
        _show(id, demand, log, delivery);
    }

    /// @dev Takes a demand off the books for its holder to meet it.
    function _take(uint256 id, Demand calldata demand) private {
        _end(id, demand);
        // INVARIANT: the bond pays for the gas of who delivers.
        if (msg.sender != demand.holder) revert NotHolder(msg.sender);
    }

    /// @dev INVARIANT: a neighbour gets all that it needs to claim what it computes from this: the sender's signature
    /// of the log, too (P-27).
    function _checkAttestation(Demand calldata demand, bool toNext, bytes32 root, bytes calldata signature)
        private
        view
    {
        EdgeLog memory log = EdgeLog({
            job: demand.job,
            replica: demand.replica,
            fromStage: demand.stage,
            toStage: Places.neighbourOf(demand.stage, toNext),
            interval: demand.interval,
            root: root
        });
        // Left out is what else there is to say about a failure.
        // slither-disable-next-line unused-return
        (address signer, ECDSA.RecoverError failure,) = ECDSA.tryRecoverCalldata(DISPUTES.edgeLogDigest(log), signature);
        if (failure != ECDSA.RecoverError.NoError || signer != demand.holder) revert WrongDelivery();
    }

    function _isSent(Demand calldata demand) private pure returns (bool) {
        return demand.kind == DemandKind.SentToPrevious || demand.kind == DemandKind.SentToNext;
    }

    /// @dev Tells what was demanded of the list `list`, and pays for it.
    function _show(uint256 id, Demand calldata demand, bytes32 list, Delivery calldata delivery) private {
        _checkDelivery(demand, list, delivery);

        emit Delivered(id, delivery.range.firstLeaf, delivery.range.leaves);
        if (demand.claimId != 0) CHECKPOINTS.release(demand.claimId);
        SNO.safeTransfer(demand.holder, _BOND);
    }

    function _checkDelivery(Demand calldata demand, bytes32 list, Delivery calldata delivery) private pure {
        TensorType tensorType = delivery.tensorType;
        Part calldata part = demand.part;
        if (!tensorType.isValid()) revert WrongDelivery();
        bytes32 root = Merkle.tensorRoot(tensorType, delivery.dataRoot);
        // INVARIANT: it is the tensor of the list, under its type.
        if (!Merkle.isMember(list, root, part.tensor, demand.tensors, delivery.membership)) {
            revert WrongDelivery();
        }
        uint256 count = tensorType.leafCount();
        uint256 first = part.firstLeaf % count;
        uint256 leaves = part.leaves < count - first ? part.leaves : count - first;
        // INVARIANT: all that was demanded, and nothing else …
        if (delivery.range.firstLeaf != first) revert WrongDelivery();
        if (delivery.range.leaves.length != leaves * TensorTypes.LEAF_BYTES) revert WrongDelivery();
        // INVARIANT: … as the list commits to it.
        if (!Merkle.isRange(delivery.dataRoot, count, first, delivery.range.leaves, delivery.range.siblings)) {
            revert WrongDelivery();
        }
    }
}
