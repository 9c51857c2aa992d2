// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {RLP} from "@openzeppelin/contracts/utils/RLP.sol";

/// @dev What the beacon reads of a block's header.
struct Header {
    bytes32 parent;
    uint256 number;
    uint256 timestamp;
    bytes32 prevRandao;
}

/// @title Headers as the chain hashes them: the yellow paper's fields (4.4) in order, and those of later forks
library Headers {
    /// @dev Of a block since Prague.
    uint256 internal constant FIELDS = 21;

    function encode(Header memory h) internal pure returns (bytes memory) {
        return encode(h, FIELDS);
    }

    /// @dev Its first `count` fields; beyond `FIELDS` those of forks to come.
    function encode(Header memory h, uint256 count) internal pure returns (bytes memory) {
        bytes[] memory list = new bytes[](count);
        for (uint256 i = 0; i < count; ++i) {
            list[i] = _field(h, i);
        }
        return RLP.encode(list);
    }

    function _field(Header memory h, uint256 i) private pure returns (bytes memory) {
        if (i == 0) return RLP.encode(h.parent);
        if (i == 2) return RLP.encode(address(0xc01bA5e));
        if (i == 6) return RLP.encode(new bytes(256)); // bloom
        if (i == 7) return RLP.encode(uint256(0)); // difficulty
        if (i == 8) return RLP.encode(h.number);
        if (i == 9) return RLP.encode(uint256(60_000_000));
        if (i == 10) return RLP.encode(uint256(29_123_456));
        if (i == 11) return RLP.encode(h.timestamp);
        if (i == 12) return RLP.encode(bytes("a builder's name, 31 bytes long"));
        if (i == 13) return RLP.encode(h.prevRandao);
        if (i == 14) return RLP.encode(new bytes(8)); // nonce
        if (i == 15) return RLP.encode(uint256(1_234_567_890));
        if (i == 17 || i == 18) return RLP.encode(uint256(786_432)); // blobs
        return RLP.encode(keccak256(abi.encode("root", i)));
    }
}
