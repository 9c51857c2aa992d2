// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";
import {EIP712} from "@openzeppelin/contracts/utils/cryptography/EIP712.sol";

import {ICustody} from "../../interfaces/ICustody.sol";
import {Holder} from "../../types/Custody.sol";
import {Claim} from "../../types/Types.sol";
import {CustodyRecords} from "./CustodyRecords.sol";

/// @title CustodyHolders
/// @notice Who attests that it has the data of a claim.
abstract contract CustodyHolders is EIP712, CustodyRecords {
    bytes32 private constant _HOLDING_TYPEHASH = keccak256("Holding(bytes32 claimId)");

    constructor() EIP712("Tensorlink", "1") {}

    /// @inheritdoc ICustody
    function requireHolder(Claim calldata claim, bytes32 claimId, Holder calldata holder) external view {
        address signer = _signerOf(claimId, holder.signature);
        (uint64 job, uint16 stage, uint16 replica) = (claim.job, holder.stage, holder.replica);
        // INVARIANT: the user knows whether it has what it pays for.
        if (signer == JOBS.userOf(job)) return;
        // INVARIANT: a second holder is another party, and answers for its attestation with a stake (P-34).
        if (
            _sameLane(claim, holder) || signer != JOBS.workerOf(job, stage, replica)
                || JOBS.isConvicted(job, stage, replica)
        ) revert WrongHolder(signer);
    }

    function _sameLane(Claim calldata claim, Holder calldata holder) internal pure returns (bool) {
        return holder.stage == claim.stage && holder.replica == claim.replica;
    }

    function _signerOf(bytes32 claimId, bytes calldata signature) internal view returns (address signer) {
        ECDSA.RecoverError failure;
        // Left out is what else there is to say about a failure.
        // slither-disable-next-line unused-return
        (signer, failure,) = ECDSA.tryRecoverCalldata(holdingDigest(claimId), signature);
        // INVARIANT: an invalid signature attests nothing for the zero address, which lanes without a worker have.
        if (failure != ECDSA.RecoverError.NoError) revert WrongHolder(address(0));
    }

    /// @inheritdoc ICustody
    function holdingDigest(bytes32 claimId) public view returns (bytes32) {
        return _hashTypedDataV4(keccak256(abi.encode(_HOLDING_TYPEHASH, claimId)));
    }
}
