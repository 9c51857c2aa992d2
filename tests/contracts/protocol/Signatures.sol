// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Holding} from "../../../contracts/types/Custody.sol";
import {Claim, EdgeLog, Offer, StepStatement, Voucher} from "../../../contracts/types/Types.sol";

/// @title EIP-712 digests and claim records, written from the standard and rule C-11 and independent of the contracts
library Signatures {
    function digest(uint256 chainId, address verifyingContract, bytes32 structHash) internal pure returns (bytes32) {
        bytes32 domain = keccak256(
            abi.encode(
                keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"),
                keccak256("Tensorlink"),
                keccak256("1"),
                chainId,
                verifyingContract
            )
        );
        return keccak256(abi.encodePacked(hex"1901", domain, structHash));
    }

    function hash(Offer memory o) internal pure returns (bytes32) {
        bytes32 typeHash = keccak256(
            "Offer(uint64 job,bytes32 terms,uint16 stage,uint16 replica,address worker,uint128 pricePerInterval,uint40 expires)"
        );
        return
            keccak256(abi.encode(typeHash, o.job, o.terms, o.stage, o.replica, o.worker, o.pricePerInterval, o.expires));
    }

    function hash(Claim memory c) internal pure returns (bytes32) {
        bytes32 typeHash = keccak256(
            "Claim(uint64 job,uint16 stage,uint16 replica,uint32 interval,bytes32 parentState,bytes32 newState,bytes32 io)"
        );
        return keccak256(abi.encode(typeHash, c.job, c.stage, c.replica, c.interval, c.parentState, c.newState, c.io));
    }

    function record(Claim memory c, uint256 committedAt) internal pure returns (bytes32) {
        // The last 28 bytes of the hash after the interval.
        uint256 rest = uint256(keccak256(abi.encode(c, committedAt))) % 2 ** 224;
        return bytes32(abi.encodePacked(c.interval, uint224(rest)));
    }

    function hash(Voucher memory v) internal pure returns (bytes32) {
        bytes32 typeHash = keccak256(
            "Voucher(uint64 job,uint16 stage,uint16 replica,uint32 epoch,uint32 before,uint32 tokens,bytes32 receipts)"
        );
        return keccak256(abi.encode(typeHash, v.job, v.stage, v.replica, v.epoch, v.before, v.tokens, v.receipts));
    }

    function hash(Holding memory h) internal pure returns (bytes32) {
        return keccak256(abi.encode(keccak256("Holding(bytes32 claimId)"), h.claimId));
    }

    function hash(EdgeLog memory l) internal pure returns (bytes32) {
        bytes32 typeHash = keccak256(
            "EdgeLog(uint64 job,uint16 replica,uint16 fromStage,uint16 toStage,uint32 interval,bytes32 root)"
        );
        return keccak256(abi.encode(typeHash, l.job, l.replica, l.fromStage, l.toStage, l.interval, l.root));
    }

    function hash(StepStatement memory s) internal pure returns (bytes32) {
        bytes32 typeHash = keccak256(
            "StepStatement(bytes32 claimId,address auditor,uint32 step,bytes32 preState,bytes32 postState,bytes32 trace)"
        );
        return keccak256(abi.encode(typeHash, s.claimId, s.auditor, s.step, s.preState, s.postState, s.trace));
    }
}
