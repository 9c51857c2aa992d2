// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Facts, LogsAnswer, Position, StepAnswer, Way} from "../../types/Challenge.sol";
import {BoundaryLogs, Claim} from "../../types/Types.sol";

/// @title Challenges: the worker's moves
/// @notice What a worker that is challenged has to say, each time it is asked. See `IChallenges`.
interface IChallengeAnswers {
    /// @notice The worker has answered.
    /// @param challenge id of the challenge
    /// @param deadline until when the challenger has time, as a Unix timestamp
    /// @param position what was answered
    /// @param siblings siblings along the way that the hints led, from the position's node up
    /// @param data the nodes, entries or leaves asked for, one after another
    event Answered(uint256 indexed challenge, uint40 deadline, Position position, bytes32[] siblings, bytes data);

    /// @notice The worker has signed the statement that the facts hold, with the challenger as its auditor.
    /// @param challenge id of the challenge
    /// @param signature the worker's signature, 65 bytes
    event Stated(uint256 indexed challenge, bytes signature);

    /// @notice The worker has shown its boundary logs.
    /// @param challenge id of the challenge
    /// @param logs the logs behind the claim's `io`
    /// @param previousSignature what the previous stage's worker signed: the `EdgeLog` of what this lane received from
    /// it; empty if it received nothing
    /// @param nextSignature the same of the next stage's worker
    event LogsGiven(uint256 indexed challenge, BoundaryLogs logs, bytes previousSignature, bytes nextSignature);

    /// @notice Only the worker answers.
    /// @param caller who called
    error NotWorker(address caller);

    /// @notice The answer does not hash to what the worker is committed to, has not the length asked for, or is not
    /// where the hints lead.
    error WrongAnswer();

    /// @notice The program is not the one registered for the stage.
    error WrongProgram();

    /// @notice The logs are not the claim's, or not just those that the program has.
    error WrongLogs();

    /// @notice The statement is not signed by the worker, or a received log not by its sender's worker.
    error BadSignature();

    /// @notice Answers `Steps` for the first time. Only the worker.
    /// Requirements: the claim's new state is the last entry of the list.
    /// @param challenge id of the challenge
    /// @param position as the last `Asked` told it
    /// @param claim the claim
    /// @param steps root of the list (C-4) of the states after each step
    /// @param siblings siblings of the list's last entry, which is the claim's new state
    /// @param way where the hints lead in the list; empty if there are none
    /// @param data the nodes or entries asked for
    function answerSteps(
        uint256 challenge,
        Position calldata position,
        Claim calldata claim,
        bytes32 steps,
        bytes32[] calldata siblings,
        Way calldata way,
        bytes calldata data
    ) external;

    /// @notice Answers `Statement`, and gives nodes of the trace. Only the worker.
    /// Requirements: the program is the stage's; the worker signed the statement that the facts and the trace make,
    /// with the challenger as auditor.
    /// @param challenge id of the challenge
    /// @param position as the last `Asked` told it
    /// @param facts as the last `Established` told them
    /// @param said the trace's root, the signature and the program
    /// @param way where the hints lead in the trace; empty if there are none
    /// @param data nodes or entries of the trace: as many levels as were asked for, or all if the trace has fewer
    function answerStatement(
        uint256 challenge,
        Position calldata position,
        Facts calldata facts,
        StepAnswer calldata said,
        Way calldata way,
        bytes calldata data
    ) external;

    /// @notice Answers `Output` for the first time: gives the data root, and nodes or leaves below it. Only the worker.
    /// Requirements: the trace's entry is the tensor of the operator's output type over that data root.
    /// @param challenge id of the challenge
    /// @param position as the last `Asked` told it
    /// @param facts as the last `Established` told them
    /// @param dataRoot root of the tree over the output's bytes (C-2)
    /// @param way where the hints lead in that tree; empty if there are none
    /// @param data the nodes or leaves asked for
    function answerOutput(
        uint256 challenge,
        Position calldata position,
        Facts calldata facts,
        bytes32 dataRoot,
        Way calldata way,
        bytes calldata data
    ) external;

    /// @notice Answers `Logs`. Only the worker. A worker that logged what nobody sent it cannot answer, and so is
    /// convicted of silence.
    /// Requirements: the logs are the claim's, one for each neighbour and direction that the program has; each log of
    /// what was received is signed by its sender's worker; the program is the stage's.
    /// @param challenge id of the challenge
    /// @param position as the last `Asked` told it
    /// @param facts as the last `Established` told them
    /// @param claim the claim
    /// @param said the logs, the neighbours' signatures and the program
    function answerLogs(
        uint256 challenge,
        Position calldata position,
        Facts calldata facts,
        Claim calldata claim,
        LogsAnswer calldata said
    ) external;

    /// @notice Answers with nodes below a node that is known, or below where hints lead from there. Only the worker.
    /// @param challenge id of the challenge
    /// @param position as the last `Asked` told it
    /// @param way where the hints lead from the position's node; empty if there are none
    /// @param data the nodes asked for; in a tree's last row the entries of a list or the leaves of a tensor
    function answer(uint256 challenge, Position calldata position, Way calldata way, bytes calldata data) external;
}
