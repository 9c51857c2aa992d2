// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {AuditAnswer} from "../../../contracts/types/Audit.sol";
import {Parameters} from "../../../contracts/types/Parameters.sol";
import {Voucher} from "../../../contracts/types/Types.sol";
import {SlowTree} from "../verifier/SlowTree.sol";
import {AuditTest} from "./AuditTest.sol";
import {ElementProof} from "./ElementProof.sol";
import {ProtocolTest} from "./ProtocolTest.sol";
import {ServingTest} from "./ServingTest.sol";
import {ServingWorker} from "./ServingWorker.sol";

/// @title Auditors of a receipt for what a worker really computed
abstract contract AuditedServing is AuditTest, ServingTest {
    using SlowTree for bytes32[][];

    function _parameters() internal pure virtual override(AuditTest, ProtocolTest) returns (Parameters memory) {
        return AuditTest._parameters();
    }

    function setUp() public virtual override(AuditTest, ServingWorker) {
        super.setUp();
    }

    /// @dev The worker redeems a list of two receipts, once the validators have joined; the first is audited.
    function _fixServing() internal {
        skip(1);
        (auditedJob, serving) = (job, true);
        bytes32[] memory ids = new bytes32[](2);
        (ids[0], ids[1]) = (checkpoints.claimId(_receipt(0, TOKENS)), checkpoints.claimId(_receipt(1, 1)));
        bytes32[][] memory tree = SlowTree.ofDigests(ids);
        Voucher memory voucher = _voucher(job, 0, 0, 1, TOKENS + 1);
        voucher.receipts = tree.rootOf();
        _redeem(voucher);
        (audited.claim, audited.fixedAt, audited.epoch) = (_receipt(0, TOKENS), uint64(block.timestamp), 1);
        (audited.receipts, audited.index, audited.siblings, id) = (tree.rootOf(), 0, tree.path(0), ids[0]);
    }

    /// @dev What the worker says of the text, right or wrong as it is set up now.
    function _said() internal view returns (AuditAnswer memory) {
        return _answerOf(_statement(0, TOKENS));
    }

    /// @dev That what the worker says is wrong when operator 1 of it is.
    function _wrongProof() internal returns (ElementProof memory proof) {
        wrongOperator = 1;
        proof = _elementProof(0, TOKENS, 1, 0);
        wrongOperator = NOTHING;
    }
}
