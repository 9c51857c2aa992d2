// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Facts, Pick, Position, Question, Subject} from "../../types/Challenge.sol";
import {BoundaryLogs, Claim, Operator} from "../../types/Types.sol";

/// @title Challenges: the challenger's moves
/// @notice What a challenger can ask for, each time the worker has answered. See `IChallenges`.
interface IChallengeQuestions {
    /// @notice The worker is asked.
    /// @param challenge id of the challenge
    /// @param deadline until when the worker has time, as a Unix timestamp
    /// @param position what is asked for
    /// @param hints the challenger's hints (P-39); empty if there are none
    event Asked(uint256 indexed challenge, uint40 deadline, Position position, bytes hints);

    /// @notice Only the challenger asks.
    /// @param caller who called
    error NotChallenger(address caller);

    /// @notice The question asks for too many levels, for none, or for more than the tree has.
    /// @param levels the question's levels
    error WrongLevels(uint8 levels);

    /// @notice No hints have this length.
    error WrongHints();

    /// @notice What was picked was not answered, or is padding.
    error WrongPick();

    /// @notice The operator is not the program's at the place of the output picked, or its output type is not valid.
    error WrongOperator();

    /// @notice A challenge has at most 32 questions.
    error TooManyAsks();

    /// @notice A challenge has at most 6 questions that do not go on from the last answer.
    error TooManyRestarts();

    /// @notice A challenge asks for at most 48 KiB.
    /// @param bytesAsked what it would have asked for, in bytes
    error TooManyBytes(uint256 bytesAsked);

    /// @notice Asks for what lies below one of the nodes that were answered last. Only the challenger.
    /// @param challenge id of the challenge
    /// @param position as the last `Answered` told it
    /// @param pick one of the nodes answered
    /// @param question how many levels below it are asked for, and hints
    function ask(uint256 challenge, Position calldata position, Pick calldata pick, Question calldata question) external;

    /// @notice Asks again from the root of a tree. Only the challenger.
    /// @param challenge id of the challenge
    /// @param position as the last `Answered` told it
    /// @param facts as the last `Established` told them
    /// @param subject the tree: `Steps`, `Trace` or `State`
    /// @param question how many levels below the root are asked for, and hints
    function askTree(
        uint256 challenge,
        Position calldata position,
        Facts calldata facts,
        Subject subject,
        Question calldata question
    ) external;

    /// @notice Asks for the statement about the step that led to a state picked from the last row of `Steps`. Only the
    /// challenger.
    /// @param challenge id of the challenge
    /// @param position as the last `Answered` told it
    /// @param facts as the last `Established` told them
    /// @param claim the claim
    /// @param pick the state after the step
    /// @param preState the state before the step: the entry before in the list, or, for the claim's first step, the
    /// claim's parent state
    /// @param preSiblings siblings of that entry; empty for the claim's first step
    /// @param question how many levels of the trace are asked for, and hints
    function askStatement(
        uint256 challenge,
        Position calldata position,
        Facts calldata facts,
        Claim calldata claim,
        Pick calldata pick,
        bytes32 preState,
        bytes32[] calldata preSiblings,
        Question calldata question
    ) external;

    /// @notice Asks for an output picked from the last row of `Trace`. Only the challenger.
    /// @param challenge id of the challenge
    /// @param position as the last `Answered` told it
    /// @param facts as the last `Established` told them
    /// @param pick the output's tensor root
    /// @param operator the operator that gives the output
    /// @param operatorMembership siblings of the operator at its place in the program's list (C-5)
    /// @param question how many levels below the data root are asked for, and hints
    function askOutput(
        uint256 challenge,
        Position calldata position,
        Facts calldata facts,
        Pick calldata pick,
        Operator calldata operator,
        bytes32[] calldata operatorMembership,
        Question calldata question
    ) external;

    /// @notice Asks for the roots of the boundary logs. Only the challenger.
    /// @param challenge id of the challenge
    /// @param position as the last `Answered` told it
    function askLogs(uint256 challenge, Position calldata position) external;

    /// @notice Asks for nodes of a boundary log. Only the challenger, once a statement or the logs have named the
    /// program.
    /// @param challenge id of the challenge
    /// @param position as the last `Answered` told it
    /// @param facts as the last `Established` told them
    /// @param claim the claim
    /// @param logs the logs behind the claim's `io`
    /// @param edge which of them, from 0, in the order of `BoundaryLogs`
    /// @param question how many levels below the log's root are asked for, and hints
    function askLog(
        uint256 challenge,
        Position calldata position,
        Facts calldata facts,
        Claim calldata claim,
        BoundaryLogs calldata logs,
        uint8 edge,
        Question calldata question
    ) external;
}
