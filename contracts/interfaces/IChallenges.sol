// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Facts, Question, Subject} from "../types/Challenge.sol";
import {Claim} from "../types/Types.sol";
import {IChallengeAnswers} from "./challenges/IChallengeAnswers.sol";
import {IChallengeMoney} from "./challenges/IChallengeMoney.sol";
import {IChallengeQuestions} from "./challenges/IChallengeQuestions.sol";

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
/// Here is how a challenge begins and ends. The challenger's moves are in `IChallengeQuestions`, the worker's in
/// `IChallengeAnswers`; bonds, deposits and credit are in `IChallengeMoney`.
///
/// @dev Whoever made the claim can answer every question from what it computed: each is about the claim itself or about
/// what the worker has answered before (P-22). The chain keeps only hashes of the position and the facts, so every move
/// passes both as the last events told them.
interface IChallenges is IChallengeAnswers, IChallengeQuestions, IChallengeMoney {
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

    /// @notice The facts have changed.
    /// @param challenge id of the challenge
    /// @param facts what the worker is committed to from now on
    event Established(uint256 indexed challenge, Facts facts);

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

    /// @notice The list of states does not end in the claim's new state, or the step does not start where the one
    /// before it ended.
    error WrongState();

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

    /// @notice Ends a challenge, pays out its bond and credits its deposit, by the table above. Anyone may call.
    /// Requirements: the time of the side whose turn it is has run out, the deposit did not cover an answer, or the
    /// claim is void.
    /// @param challenge id of the challenge
    function timeout(uint256 challenge) external;

    /// @notice A challenge.
    /// @param challenge its id
    /// @return the challenge; all zero if there is none of this id
    function challengeOf(uint256 challenge) external view returns (Challenge memory);

    /// @notice Number of challenges ever opened; their ids run from 1 to it.
    /// @return the number
    function challengeCount() external view returns (uint256);
}
