// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Facts, LogsAnswer, Pick, Position, Question, StepAnswer, Subject, Way} from "../types/Challenge.sol";
import {BoundaryLogs, Claim, Operator} from "../types/Types.sol";

/// @title Challenges: what a silent worker is made to say
/// @notice Whoever holds a worker's signed answers and data proves its fault at once (`IDisputes`). A worker that gives
/// none is challenged: it has to answer one question after another, each in time, or it is convicted of silence. First
/// come the states after each step, from which the challenger picks the first that is wrong; then a signed statement
/// about that step; then nodes of its trace, down to the first wrong output; then nodes and leaves of that output.
/// Hints of what the challenger computed itself shorten the way (P-39). In the end the challenger has all that a proof
/// needs, and sends it.
///
/// | state | move | next |
/// |---|---|---|
/// | – | open (anyone, for a bond and a deposit; asks the first question) | Answering |
/// | Answering | answer… (the worker, by the deadline) | Asking; Spent, if the deposit does not cover it |
/// | Answering | timeout (anyone, past the deadline) | Won: the worker is convicted of silence |
/// | Asking | ask… (the challenger, by the deadline) | Answering |
/// | Asking | timeout (anyone, past the deadline) | Lost; others can still challenge |
/// | Spent | timeout (anyone) | Lost; others can still challenge |
/// | Answering, Asking, Spent | timeout (anyone, once the claim is void) | Won |
///
/// The bond, in SNO, stands for the delay; it is dearer the more challenges of the claim there were (P-44). The
/// deposit, in ETH, stands for the worker's gas: what each answer costs it at the block's base fee is noted as owed to
/// it (P-42). If the challenge is won, bond and deposit go back to the challenger. If it is lost, the worker gets the
/// bond and what it is owed, and the challenger the rest of the deposit. ETH is collected, SNO is sent.
///
/// Any number of challenges of a claim run side by side; none is in another's way. Each side has a chess clock, but for
/// each move it has at least `moveGrace` seconds and `moveBlocks` blocks. So neither a late move of the other side nor
/// an outage of the chain takes its time away. A challenge has at most 32 questions, so it ends; 6 of them begin anew
/// at a root, and together they ask for at most 48 KiB (P-43).
///
/// @dev Whoever made the claim can answer every question from what it computed: each is about the claim itself or about
/// what the worker has answered before (P-22). The chain keeps only hashes of the position and the facts, so every move
/// passes both as the last events told them.
interface IChallenges {
    /// @dev `None` is a challenge that does not exist. `Asking`: the challenger's turn. `Answering`: the worker's.
    /// `Spent`: the deposit did not cover an answer.
    enum State {
        None,
        Asking,
        Answering,
        Spent,
        Won,
        Lost
    }

    /// @dev A challenge. Besides `position`, a move changes one storage word only.
    struct Challenge {
        /// Opened it, asks, and gets the bounty.
        address challenger;
        /// Id of the claim's job.
        uint64 job;
        /// Stage of the claim's lane.
        uint16 stage;
        /// Replica of the claim's lane.
        uint16 replica;
        /// The lane's worker, which answers.
        address worker;
        /// What the challenger put up, in wei of SNO.
        uint96 bond;
        /// The claim's interval.
        uint32 interval;
        /// Whose turn it is, or how it ended.
        State state;
        /// Unix timestamp before which the next move is in time; it stays so until `moveBlocks` blocks have passed,
        /// too.
        uint40 deadline;
        /// Questions asked so far.
        uint16 asks;
        /// What the challenger's clock showed when the turn began, in seconds.
        uint32 challengerLeft;
        /// What the worker's clock showed when the turn began, in seconds.
        uint32 workerLeft;
        /// Number of the block in which the turn began.
        uint32 turnBlock;
        /// Bytes that the answer to the last question takes at most (`AnswerCost`).
        uint16 lastBytes;
        /// Bytes that were asked for so far.
        uint16 bytesAsked;
        /// Questions so far that did not go on from the last answer.
        uint8 restarts;
        /// What was put up for the worker's gas, in wei of ETH.
        uint128 deposit;
        /// How much of it the worker's answers have cost, in wei of ETH.
        uint128 owed;
        /// EIP-712 digest of the claim (C-9).
        bytes32 claimId;
        /// Hash of the `Position`.
        bytes32 position;
    }

    /// @notice A claim is challenged.
    /// @param challenge id of the challenge
    /// @param claimId EIP-712 digest of the claim (C-9)
    /// @param challenger who opened the challenge
    /// @param worker the lane's worker, which has to answer
    /// @param claim the claim
    event ChallengeOpened(
        uint256 indexed challenge, bytes32 indexed claimId, address indexed challenger, address worker, Claim claim
    );

    /// @notice ETH was put up for the worker's gas.
    /// @param challenge id of the challenge
    /// @param from who paid
    /// @param amount in wei
    event Funded(uint256 indexed challenge, address indexed from, uint256 amount);

    /// @notice What an answer costs its worker was noted.
    /// @param challenge id of the challenge
    /// @param gasUsed gas of the answer's transaction, as metered
    /// @param owed what all answers so far have cost, in wei of ETH; no more than the deposit
    /// @param spent whether the deposit does not cover it, so that the challenge is lost
    event Charged(uint256 indexed challenge, uint256 gasUsed, uint256 owed, bool spent);

    /// @notice An account has collected its credit.
    /// @param account whose it was
    /// @param amount in wei of ETH
    event Collected(address indexed account, uint256 amount);

    /// @notice The worker is asked.
    /// @param challenge id of the challenge
    /// @param deadline until when the worker has time, as a Unix timestamp
    /// @param position what is asked for
    /// @param hints the challenger's hints (P-39); empty if there are none
    event Asked(uint256 indexed challenge, uint40 deadline, Position position, bytes hints);

    /// @notice The worker has answered.
    /// @param challenge id of the challenge
    /// @param deadline until when the challenger has time, as a Unix timestamp
    /// @param position what was answered
    /// @param siblings siblings along the way that the hints led, from the position's node up
    /// @param data the nodes, entries or leaves asked for, one after another
    event Answered(uint256 indexed challenge, uint40 deadline, Position position, bytes32[] siblings, bytes data);

    /// @notice The facts have changed.
    /// @param challenge id of the challenge
    /// @param facts what the worker is committed to from now on
    event Established(uint256 indexed challenge, Facts facts);

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

    /// @notice A challenge is over; bond and deposit went back to the challenger.
    /// @param challenge id of the challenge
    /// @param claimId EIP-712 digest of the claim (C-9)
    /// @param silence whether the worker is convicted of silence; if not, the claim was void already
    event ChallengeWon(uint256 indexed challenge, bytes32 indexed claimId, bool silence);

    /// @notice A challenge is over; the bond and what it is owed for gas went to the worker.
    /// @param challenge id of the challenge
    /// @param claimId EIP-712 digest of the claim (C-9)
    event ChallengeLost(uint256 indexed challenge, bytes32 indexed claimId);

    /// @notice There is no challenge of this id.
    /// @param challenge the id
    error UnknownChallenge(uint256 challenge);

    /// @notice The challenge is over, or it is the other side's turn.
    /// @param challenge id of the challenge
    error NotYourTurn(uint256 challenge);

    /// @notice Only the challenger asks.
    /// @param caller who called
    error NotChallenger(address caller);

    /// @notice Only the worker answers.
    /// @param caller who called
    error NotWorker(address caller);

    /// @notice The side whose turn it is still has time.
    /// @param deadline first timestamp at which its time can be over
    /// @param lastBlock first block in which its time can be over
    error DeadlineNotReached(uint40 deadline, uint256 lastBlock);

    /// @notice The time for the move, or for opening a challenge, is over.
    /// @param deadline when it ended, as a Unix timestamp
    error DeadlinePassed(uint40 deadline);

    /// @notice Not the position, the facts or the claim that the last events told.
    error WrongPosition();

    /// @notice The answer or question does not fit what is asked for, or there is nothing of the kind to ask for.
    /// @param subject what is asked for
    error WrongSubject(Subject subject);

    /// @notice The question asks for too many levels, for none, or for more than the tree has.
    /// @param levels the question's levels
    error WrongLevels(uint8 levels);

    /// @notice No hints have this length.
    error WrongHints();

    /// @notice What was picked was not answered, or is padding.
    error WrongPick();

    /// @notice The answer does not hash to what the worker is committed to, has not the length asked for, or is not
    /// where the hints lead.
    error WrongAnswer();

    /// @notice The list of states does not end in the claim's new state, or the step does not start where the one
    /// before it ended.
    error WrongState();

    /// @notice The program is not the one registered for the stage.
    error WrongProgram();

    /// @notice The operator is not the program's at the place of the output picked, or its output type is not valid.
    error WrongOperator();

    /// @notice The logs are not the claim's, or not just those that the program has.
    error WrongLogs();

    /// @notice The statement is not signed by the worker, or a received log not by its sender's worker.
    error BadSignature();

    /// @notice A challenge has at most 32 questions.
    error TooManyAsks();

    /// @notice A challenge has at most 6 questions that do not go on from the last answer.
    error TooManyRestarts();

    /// @notice A challenge asks for at most 48 KiB.
    /// @param bytesAsked what it would have asked for, in bytes
    error TooManyBytes(uint256 bytesAsked);

    /// @notice The deposit does not cover the answer to this question at the block's base fee; fund the challenge.
    /// @param needed what must be left of it, in wei of ETH
    error DepositTooSmall(uint256 needed);

    /// @notice The account has no credit.
    error NothingToCollect();

    /// @notice The account did not take its ETH.
    error TransferFailed();

    /// @notice Challenges a claim on record. Asks for the states after its steps, or, if the claim is of one step, for
    /// a statement about it. Anyone may call.
    /// Effects: takes the bond (`bondFor`) in SNO, which needs an allowance, and the ETH sent as deposit; holds back
    /// the claim's finality.
    /// Requirements: the claim is live, and was committed less than two challenge windows of its job ago; the deposit
    /// covers the first answer at the block's base fee.
    /// @param claim the claim
    /// @param committedAt when it was committed, as a Unix timestamp
    /// @param question how many levels of the tree are asked for, and hints
    /// @return challenge id of the challenge
    function open(Claim calldata claim, uint64 committedAt, Question calldata question)
        external
        payable
        returns (uint256 challenge);

    /// @notice Adds the ETH sent to a challenge's deposit; it is the challenger's if the challenge is won, or if it is
    /// not used up. Anyone may call.
    /// Requirements: the challenge is open, and its deposit has covered all answers.
    /// @param challenge id of the challenge
    function fund(uint256 challenge) external payable;

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

    /// @notice Ends a challenge, pays out its bond and credits its deposit, by the table above. Anyone may call.
    /// Requirements: the time of the side whose turn it is has run out, the deposit did not cover an answer, or the
    /// claim is void.
    /// @param challenge id of the challenge
    function timeout(uint256 challenge) external;

    /// @notice Pays the caller its whole credit.
    /// @return amount in wei of ETH
    function collect() external returns (uint256 amount);

    /// @notice What an account can collect.
    /// @param account whose credit
    /// @return in wei of ETH
    function creditOf(address account) external view returns (uint256);

    /// @notice Bond of the next challenge of a claim: it doubles with each, up to the finder's half of the bounty
    /// of the lane's stake (P-45), and is never below `disputeBond`.
    /// @param job the claim's job
    /// @param claimId EIP-712 digest of the claim (C-9)
    /// @return in wei of SNO
    function bondFor(uint64 job, bytes32 claimId) external view returns (uint96);

    /// @notice A challenge.
    /// @param challenge its id
    /// @return the challenge; all zero if there is none of this id
    function challengeOf(uint256 challenge) external view returns (Challenge memory);

    /// @notice Number of challenges ever opened; their ids run from 1 to it.
    /// @return the number
    function challengeCount() external view returns (uint256);
}
