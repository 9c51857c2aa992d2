// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";

import {IChallenges} from "../../interfaces/IChallenges.sol";
import {ICheckpoints} from "../../interfaces/ICheckpoints.sol";
import {IDisputes} from "../../interfaces/IDisputes.sol";
import {IJobs} from "../../interfaces/IJobs.sol";
import {Merkle} from "../../libraries/proofs/Merkle.sol";
import {Facts, Position, Subject} from "../../types/Challenge.sol";
import {BoundaryLogs, Claim} from "../../types/Types.sol";

/// @title ChallengeRecords
/// @notice What is on record of challenges, and how what players pass is held against it. Each file that builds on
/// this one has one more idea: `ChallengeClocks`, `ChallengeMoney`, `ChallengeAnswers`, and `Challenges`.
abstract contract ChallengeRecords is IChallenges {
    /// @notice Where programs, workers and terms stand.
    IJobs public immutable JOBS;
    /// @notice Where claims stand and are held.
    ICheckpoints public immutable CHECKPOINTS;
    /// @notice Who convicts.
    IDisputes public immutable DISPUTES;

    uint256 internal _challengeCount;
    mapping(uint256 id => Challenge challenge) internal _challenges;

    constructor(IJobs jobs, ICheckpoints checkpoints, IDisputes disputes) {
        JOBS = jobs;
        CHECKPOINTS = checkpoints;
        DISPUTES = disputes;
    }

    /// @dev A tree's root.
    function _tree(Subject subject, bytes32 node, uint256 count) internal pure returns (Position memory p) {
        // INVARIANT: there is something to ask for.
        if (count == 0) revert WrongSubject(subject);
        // SAFETY: leaves of a tensor, entries of a list of 32 bits, or products of two such numbers; a depth is at most
        // 64.
        // forge-lint: disable-next-line(unsafe-typecast)
        (p.subject, p.node, p.count) = (subject, node, uint64(count));
        p.height = uint8(Merkle.depth(count));
    }

    /// @dev Writes new facts into the position, and tells them.
    function _establish(uint256 challenge, Position memory p, Facts memory facts) internal {
        p.facts = _hash(facts);
        emit Established(challenge, facts);
    }

    function _factsOf(Position calldata position, Facts calldata facts) internal pure returns (Facts memory f) {
        f = facts;
        if (_hash(f) != position.facts) revert WrongPosition();
    }

    /// @dev Steps of the claim's interval.
    function _stepsOf(Challenge storage c) internal view returns (uint256 steps) {
        // The window is left out.
        // slither-disable-next-line unused-return
        (steps,) = JOBS.termsOf(c.job);
    }

    function _checkClaim(Challenge storage c, Claim calldata claim) internal view {
        if (CHECKPOINTS.claimId(claim) != c.claimId) revert WrongPosition();
    }

    function _checkLogs(Claim calldata claim, BoundaryLogs calldata logs) internal pure {
        // INVARIANT: the logs are those that the claim commits to.
        if (keccak256(abi.encode(logs)) != claim.io) revert WrongLogs();
    }

    function _checkSigner(bytes32 digest, bytes calldata signature, address signer) internal pure {
        // Left out is what else there is to say about a failure.
        // slither-disable-next-line unused-return
        (address actual, ECDSA.RecoverError failure,) = ECDSA.tryRecoverCalldata(digest, signature);
        if (failure != ECDSA.RecoverError.NoError || actual != signer) revert BadSignature();
    }

    /// @dev `keccak256(abi.encode(p))`: nine words, in memory as in calldata.
    function _hash(Position memory p) internal pure returns (bytes32 hash) {
        // SAFETY: reads the struct.
        assembly ("memory-safe") {
            hash := keccak256(p, 288)
        }
    }

    /// @dev `keccak256(abi.encode(f))`: ten words.
    function _hash(Facts memory f) internal pure returns (bytes32 hash) {
        // SAFETY: reads the struct.
        assembly ("memory-safe") {
            hash := keccak256(f, 320)
        }
    }

    /// @inheritdoc IChallenges
    function challengeOf(uint256 challenge) external view returns (Challenge memory) {
        return _challenges[challenge];
    }

    /// @inheritdoc IChallenges
    function challengeCount() external view returns (uint256) {
        return _challengeCount;
    }
}
