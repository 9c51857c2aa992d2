// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Facts, LogsAnswer, Pick, Position, Question, StepAnswer, Subject, Way} from "../types/Challenge.sol";
import {BoundaryLogs, Claim, Operator} from "../types/Types.sol";

/// @title Challenges: what a silent worker is made to say
/// @notice Who holds a worker's signed answers and data proves its fault at once (`IDisputes`). From a worker that gives none, a
/// challenge forces them out, one question after another, each in time or the worker is convicted of silence: the states after
/// each step, from which the challenger picks the first that is wrong; a signed statement about that step; nodes of its trace down to
/// the first wrong output; nodes and leaves of that output. Hints of what the challenger would find itself lead there in few moves (P-39). Then the challenger has all that a proof needs, and sends it.
///
/// | state | move | next |
/// |---|---|---|
/// | – | open (anyone, bond; asks the first question) | Answering |
/// | Answering | answer… (the worker, by the deadline) | Asking |
/// | Answering | timeout (anyone, past the deadline) | Won: the worker is convicted of silence, bond back |
/// | Asking | ask… (the challenger, by the deadline) | Answering |
/// | Asking | timeout (anyone, past the deadline) | Lost: bond to the worker; the claim stays open to others |
/// | Answering, Asking | timeout (anyone, once the claim is void) | Won: bond back |
///
/// Any number of challenges on a claim run side by side; none is in another's way. Each side has a chess clock, and never less than
/// `moveGrace` seconds and `moveBlocks` blocks for a move, so that neither a late move of the other side nor an outage of the chain
/// takes its time away. A challenge has at most 32 questions, so it ends.
///
/// @dev Every question can be answered by whoever made the claim from what it computed: it is about the claim itself or about what the
/// worker has answered before (P-22). Moves pass the position and the facts that the last events told; the chain keeps their hashes.
interface IChallenges {
    /// @dev 0 is a challenge that does not exist. Asking: the challenger's turn. Answering: the worker's.
    enum State {
        None,
        Asking,
        Answering,
        Won,
        Lost
    }

    /// @dev What changes with a move is one word, but for `position`. `deadline` is the last time of the next move; `challengerLeft` and `workerLeft` are what the clocks showed when the turn began,
    /// in seconds; `turnBlock` is the block in which it began; `position` is the hash of `Position`.
    struct Challenge {
        address challenger;
        uint64 job;
        uint16 stage;
        uint16 replica;
        address worker;
        uint96 bond;
        uint32 interval;
        State state;
        uint40 deadline;
        uint16 asks;
        uint32 challengerLeft;
        uint32 workerLeft;
        uint32 turnBlock;
        bytes32 claimId;
        bytes32 position;
    }

    event ChallengeOpened(
        uint256 indexed challenge, bytes32 indexed claimId, address indexed challenger, address worker, Claim claim
    );
    /// @dev The worker is asked, and has until `deadline`.
    event Asked(uint256 indexed challenge, uint40 deadline, Position position, bytes hints);
    /// @dev The challenger has until `deadline`. `siblings`: of the way that hints led, from the position's node up. `data`: the nodes, entries or
    /// leaves asked for, one after another.
    event Answered(uint256 indexed challenge, uint40 deadline, Position position, bytes32[] siblings, bytes data);
    /// @dev The facts have changed.
    event Established(uint256 indexed challenge, Facts facts);
    /// @dev The worker's signature of the statement that the facts hold, with the challenger as auditor.
    event Stated(uint256 indexed challenge, bytes signature);
    /// @dev With the signatures of the neighbours' workers, each of its `EdgeLog` of what was received; empty where nothing was.
    event LogsGiven(uint256 indexed challenge, BoundaryLogs logs, bytes previousSignature, bytes nextSignature);
    event ChallengeWon(uint256 indexed challenge, bytes32 indexed claimId, bool silence);
    event ChallengeLost(uint256 indexed challenge, bytes32 indexed claimId);

    error UnknownChallenge(uint256 challenge);
    /// @dev It is over, or the other side's turn, or the other side's move.
    error NotYourTurn(uint256 challenge);
    error NotChallenger(address caller);
    error NotWorker(address caller);
    error DeadlineNotReached(uint40 deadline, uint256 lastBlock);
    error DeadlinePassed(uint40 deadline);
    /// @dev Not the position, facts or claim that the last events told.
    error WrongPosition();
    /// @dev Not what is asked for, or nothing that can be asked for here.
    error WrongSubject(Subject subject);
    /// @dev Too many levels, or none, or more than there are.
    error WrongLevels(uint8 levels);
    /// @dev Not as long as any hints.
    error WrongHints();
    /// @dev What was picked was not answered, or is padding.
    error WrongPick();
    /// @dev The answer does not hash to what the worker is committed to, is not as long as asked for, or not where the hints lead.
    error WrongAnswer();
    error WrongState();
    error WrongProgram();
    error WrongOperator();
    error WrongLogs();
    error BadSignature();
    error TooManyAsks();

    /// @notice Challenges a claim on record, and asks for the states after its steps; of a claim of one step for its statement.
    /// Effects: takes the bond in SNO, for which an allowance is needed; holds back the claim's finality.
    /// Requirements: the claim is live, and was committed less than two windows of its job ago.
    function open(Claim calldata claim, uint64 committedAt, Question calldata question)
        external
        returns (uint256 challenge);

    /// @notice Answers `Steps`: the root of the list of states after each step, the siblings of its last entry, which is the claim's new
    /// state, and the nodes asked for.
    function answerSteps(
        uint256 challenge,
        Position calldata position,
        Claim calldata claim,
        bytes32 steps,
        bytes32[] calldata siblings,
        Way calldata way,
        bytes calldata data
    ) external;

    /// @notice Answers `Statement`, and gives nodes of the trace.
    function answerStatement(
        uint256 challenge,
        Position calldata position,
        Facts calldata facts,
        StepAnswer calldata said,
        Way calldata way,
        bytes calldata data
    ) external;

    /// @notice Answers `Output`: its data root, and nodes or leaves below.
    function answerOutput(
        uint256 challenge,
        Position calldata position,
        Facts calldata facts,
        bytes32 dataRoot,
        Way calldata way,
        bytes calldata data
    ) external;

    /// @notice Answers `Logs`: the roots behind the claim's `io`, one for each neighbour and direction that the program has, and the
    /// neighbours' signatures of what was received. Who logged what nobody sent it cannot answer, and so is convicted of silence.
    function answerLogs(
        uint256 challenge,
        Position calldata position,
        Facts calldata facts,
        Claim calldata claim,
        LogsAnswer calldata said
    ) external;

    /// @notice Answers with nodes below a node that is known, or below where hints lead from there: entries of a list or leaves of a tensor in the last row.
    function answer(uint256 challenge, Position calldata position, Way calldata way, bytes calldata data) external;

    /// @notice Asks for what lies below one of the nodes that were answered last.
    function ask(uint256 challenge, Position calldata position, Pick calldata pick, Question calldata question) external;

    /// @notice Asks once more from the root of a tree: `Steps`, `Trace` or `State`.
    function askTree(
        uint256 challenge,
        Position calldata position,
        Facts calldata facts,
        Subject subject,
        Question calldata question
    ) external;

    /// @notice Asks for the statement on the step that led to the state picked from the last row of `Steps`. `preState` with
    /// `preSiblings` is the entry before it; of the claim's first step it is the claim's parent state, without siblings.
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

    /// @notice Asks for the output that was picked from the last row of `Trace`; `operator` is the one that gives it, at its place in the
    /// program.
    function askOutput(
        uint256 challenge,
        Position calldata position,
        Facts calldata facts,
        Pick calldata pick,
        Operator calldata operator,
        bytes32[] calldata operatorMembership,
        Question calldata question
    ) external;

    /// @notice Asks for the roots of the boundary logs.
    function askLogs(uint256 challenge, Position calldata position) external;

    /// @notice Asks for a boundary log, `edge` counted as in `BoundaryLogs`. After a statement or the logs, which name the program.
    function askLog(
        uint256 challenge,
        Position calldata position,
        Facts calldata facts,
        Claim calldata claim,
        BoundaryLogs calldata logs,
        uint8 edge,
        Question calldata question
    ) external;

    /// @notice Ends a challenge and pays out its bond, by the table above.
    function timeout(uint256 challenge) external;

    function challengeOf(uint256 challenge) external view returns (Challenge memory);

    /// @notice Challenges ever opened; ids run from 1 to it.
    function challengeCount() external view returns (uint256);
}
