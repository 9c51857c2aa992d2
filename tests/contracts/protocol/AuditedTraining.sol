// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {AuditAnswer} from "../../../contracts/types/Audit.sol";
import {Parameters} from "../../../contracts/types/Parameters.sol";
import {Claim} from "../../../contracts/types/Types.sol";
import {AuditTest} from "./AuditTest.sol";
import {ElementProof} from "./ElementProof.sol";
import {ProtocolTest} from "./ProtocolTest.sol";
import {TrainingTest} from "./TrainingTest.sol";
import {TrainingWorker} from "./TrainingWorker.sol";

/// @title Auditors of a claim of what a worker really computed
abstract contract AuditedTraining is AuditTest, TrainingTest {
    /// @dev The claim's last step.
    uint32 internal constant LAST = STEPS - 1;

    function _parameters() internal pure virtual override(AuditTest, ProtocolTest) returns (Parameters memory) {
        return AuditTest._parameters();
    }

    function setUp() public virtual override(AuditTest, TrainingWorker) {
        super.setUp();
    }

    /// @dev The worker makes its first claim, once the validators have joined.
    function _fixTraining() internal {
        skip(1);
        (audited.claim, audited.fixedAt) = (_commitTraining(0), uint64(block.timestamp));
        (auditedJob, id) = (job, checkpoints.claimId(audited.claim));
    }

    /// @dev What the worker says of the last step, right or wrong as it is set up now.
    function _said() internal view returns (AuditAnswer memory) {
        return _answerOf(_statement(audited.claim, LAST));
    }

    /// @dev That what the worker says is wrong when operator 3 of it is.
    function _wrongProof() internal returns (ElementProof memory proof) {
        wrongOperator = 3;
        proof = _elementProof(audited.claim, LAST, 3, 0);
        proof.committedAt = audited.fixedAt;
        wrongOperator = NOTHING;
    }

    /// @dev The claim is final; nothing else is claimed.
    function _stand() internal virtual override {
        if (block.timestamp < audited.fixedAt + WINDOW) vm.warp(audited.fixedAt + WINDOW);
        (Claim[] memory claims, uint64[] memory times) = (new Claim[](1), new uint64[](1));
        (claims[0], times[0]) = (audited.claim, audited.fixedAt);
        checkpoints.finalize(claims, times, _heldByUser(claims));
    }
}
