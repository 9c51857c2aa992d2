// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IAudits} from "../../interfaces/IAudits.sol";
import {LaneId} from "../../libraries/claims/Lanes.sol";
import {AuditAnswer} from "../../types/Audit.sol";
import {StepStatement} from "../../types/Types.sol";

/// @title AuditRecords
/// @notice What is on record of answers, and which word of 26 bytes stands for one.
abstract contract AuditRecords is IAudits {
    /// @dev `word`: of what was sealed, then of the answer: the upper 26 bytes of the hash, so that it shares a slot
    /// with the rest. `sealedAt`: when, if that can bring a share; 0 once it is paid.
    struct Audit {
        bytes26 word;
        uint40 sealedAt;
        State state;
        address accuser;
    }

    /// @dev How many answers were sealed about a lane lately: in the running span, which is as long as the challenge
    /// window and began at `since`, and in the one before. Whoever has sealed about a claim that is neither final nor
    /// void is among them. Once the lane is convicted it is closed: `running` has all, and `since` is when the earlier
    /// of the spans began.
    struct Seals {
        uint40 since;
        uint40 before;
        uint40 running;
        bool closed;
    }

    /// @dev How many answers an auditor has ever sealed and shown. Two counts, so that the slot is written anew only
    /// once.
    struct Answers {
        uint128 committed;
        uint128 shown;
    }

    mapping(LaneId lane => Seals seals) internal _seals;
    mapping(address auditor => Answers answers) internal _answers;
    mapping(bytes32 claimId => mapping(address auditor => Audit audit)) internal _audits;

    /// @inheritdoc IAudits
    function sealedBy(address auditor) external view returns (uint256) {
        Answers memory answers = _answers[auditor];
        return answers.committed - answers.shown;
    }

    /// @inheritdoc IAudits
    function stateOf(bytes32 claimId, address auditor) external view returns (State) {
        return _audits[claimId][auditor].state;
    }

    function _answerOf(StepStatement memory statement) internal pure returns (AuditAnswer memory) {
        return AuditAnswer({step: statement.step, preState: statement.preState, trace: statement.trace});
    }

    function _wordOf(AuditAnswer memory answer) internal pure returns (bytes26) {
        return _cut(keccak256(abi.encode(answer)));
    }

    function _cut(bytes32 hash) internal pure returns (bytes26) {
        // SAFETY: nobody finds two of 26 bytes that are alike either.
        // forge-lint: disable-next-line(unsafe-typecast)
        return bytes26(hash);
    }
}
