// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Claim, ClaimLink} from "../../../contracts/types/Types.sol";
import {ProtocolTest} from "./ProtocolTest.sol";

/// @title A stage that several replicas compute, which seal and reveal its claims
abstract contract ReplicaTest is ProtocolTest {
    uint16 internal constant REPLICAS = 3;
    uint32 internal constant INTERVALS = 4;

    uint64 internal job;
    /// @dev When the claims were revealed.
    mapping(uint16 replica => mapping(uint32 interval => uint64 time)) internal revealTimes;

    function setUp() public virtual override {
        super.setUp();
        job = _run(1, REPLICAS, INTERVALS);
    }

    function _own(uint16 replica, uint32 interval) internal view virtual returns (Claim memory) {
        return _claim(job, 0, replica, interval);
    }

    function _linkOf(uint16 replica, uint32 interval) internal view returns (ClaimLink memory link) {
        if (interval > 0) link = _link(_own(replica, interval - 1), revealTimes[replica][interval - 1]);
    }

    function _open(uint16 replica, uint32 interval) internal {
        _reveal(_own(replica, interval), _linkOf(replica, interval));
        revealTimes[replica][interval] = uint64(block.timestamp);
    }

    function _sealAll(uint32 interval) internal {
        for (uint16 replica = 0; replica < REPLICAS; ++replica) {
            _seal(_own(replica, interval));
        }
    }

    /// @dev Finalises a lane's claims, each with its time.
    function _finalizeOf(uint16 replica, uint32 from, uint32 to) internal {
        (Claim[] memory claims, uint64[] memory times) = (new Claim[](to - from), new uint64[](to - from));
        for (uint32 i = from; i < to; ++i) {
            (claims[i - from], times[i - from]) = (_own(replica, i), revealTimes[replica][i]);
        }
        checkpoints.finalize(claims, times, _heldByUser(claims));
    }

    function _outcomeOf(Claim memory claim) internal pure returns (bytes32) {
        return keccak256(abi.encode(claim.parentState, claim.newState, claim.io));
    }
}
