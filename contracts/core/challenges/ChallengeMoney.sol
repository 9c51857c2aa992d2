// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {ReentrancyGuardTransient} from "@openzeppelin/contracts/utils/ReentrancyGuardTransient.sol";
import {SafeCast} from "@openzeppelin/contracts/utils/math/SafeCast.sol";
import {FixedPointMathLib} from "solady/utils/FixedPointMathLib.sol";

import {IChallenges} from "../../interfaces/IChallenges.sol";
import {IChallengeMoney} from "../../interfaces/challenges/IChallengeMoney.sol";
import {AnswerCost} from "../../libraries/challenges/AnswerCost.sol";
import {Bounties} from "../../libraries/terms/Bounties.sol";
import {ChallengeClocks} from "./ChallengeClocks.sol";

/// @title ChallengeMoney
/// @notice Bonds in SNO for the delay, deposits in ETH for the worker's gas, and who gets them in the end.
abstract contract ChallengeMoney is ChallengeClocks, ReentrancyGuardTransient {
    using SafeCast for uint256;
    using SafeERC20 for IERC20;

    /// @dev As many challenges of a claim as make their bonds grow; far beyond any bounty.
    uint256 private constant _MAX_DOUBLINGS = 16;

    /// @notice The token of bonds.
    IERC20 public immutable SNO;

    uint256 private immutable _BOND;
    uint256 private immutable _BOUNTY_BPS;

    /// @dev Challenges that were ever opened on a claim.
    mapping(bytes32 claimId => uint256 count) private _opened;
    mapping(address account => uint256 amount) private _credits;
    /// @dev What gas was left when an answer began.
    uint256 private transient _gasAtStart;

    constructor(IERC20 sno, uint256 bond, uint256 bountyBps) {
        (SNO, _BOND, _BOUNTY_BPS) = (sno, bond.toUint96(), bountyBps);
    }

    // Bonds

    /// @inheritdoc IChallengeMoney
    function bondFor(uint64 job, bytes32 claimId) public view returns (uint96) {
        uint256 bond = _BOND << FixedPointMathLib.min(_opened[claimId], _MAX_DOUBLINGS);
        // INVARIANT: friends of a worker that open one challenge after another do not make the next dearer than what
        // it brings to who is right (P-44).
        // Left out is the auditors' half.
        // slither-disable-next-line unused-return
        (uint256 bounty,) = Bounties.halves(JOBS.stakeOf(job), _BOUNTY_BPS);
        // SAFETY: no more than the first bond or a part of a stake, and there is less SNO than 96 bits count.
        // forge-lint: disable-next-line(unsafe-typecast)
        return uint96(FixedPointMathLib.max(_BOND, FixedPointMathLib.min(bond, bounty)));
    }

    /// @dev That of a challenge that is opened now.
    function _nextBond(uint64 job, bytes32 claimId) internal returns (uint96 bond) {
        bond = bondFor(job, claimId);
        ++_opened[claimId];
    }

    // Deposits

    /// @inheritdoc IChallengeMoney
    function fund(uint256 challenge) external payable {
        Challenge storage c = _challenges[challenge];
        // INVARIANT: what is taken in is given back, when the game ends.
        if (c.state != State.Asking && c.state != State.Answering) revert NotYourTurn(challenge);
        _deposit(challenge, c);
    }

    function _deposit(uint256 challenge, Challenge storage c) internal {
        // SAFETY: there is less ETH than 128 bits count.
        // forge-lint: disable-next-line(unsafe-typecast)
        c.deposit += uint128(msg.value);
        emit Funded(challenge, msg.sender, msg.value);
    }

    /// @dev Notes how much is asked for.
    function _takeOn(Challenge storage c, uint256 asked) internal {
        uint256 sum = c.bytesAsked + asked;
        // INVARIANT: a challenger makes a worker send so much and no more (P-43).
        if (sum > AnswerCost.MAX_BYTES) revert TooManyBytes(sum);
        // SAFETY: both are below 2^16.
        // forge-lint: disable-next-line(unsafe-typecast)
        (c.lastBytes, c.bytesAsked) = (uint16(asked), uint16(sum));
        uint256 needed = AnswerCost.mostGas(asked) * block.basefee;
        // INVARIANT: who asks can pay for the answer, unless gas becomes dearer meanwhile (P-42).
        if (c.deposit - c.owed < needed) revert DepositTooSmall(needed);
    }

    /// @dev At the beginning of an answer.
    function _meter() internal {
        _gasAtStart = gasleft();
    }

    /// @dev Adds to what the worker is owed what its answer costs it. If the deposit does not cover that, the
    /// challenger has lost: a clock of the game waits for nobody's money.
    function _charge(uint256 challenge, Challenge storage c) internal {
        (uint256 deposit, uint256 owed) = (c.deposit, c.owed);
        uint256 used = AnswerCost.gasOf(_gasAtStart - gasleft(), c.lastBytes);
        owed += used * block.basefee;
        if (owed > deposit) {
            owed = deposit;
            c.state = State.Spent;
        }
        // SAFETY: no more than the deposit.
        // forge-lint: disable-next-line(unsafe-typecast)
        c.owed = uint128(owed);
        emit Charged(challenge, used, owed, c.state == State.Spent);
    }

    /// @inheritdoc IChallengeMoney
    function collect() external nonReentrant returns (uint256 amount) {
        amount = _credits[msg.sender];
        // INVARIANT: no empty events.
        if (amount == 0) revert NothingToCollect();

        delete _credits[msg.sender];
        emit Collected(msg.sender, amount);

        // Whoever collects may be a contract that needs more gas than `transfer` leaves; the guard is against its
        // coming back.
        // slither-disable-next-line low-level-calls
        (bool done,) = msg.sender.call{value: amount}("");
        // INVARIANT: what was not received is still owed (P-5).
        if (!done) revert TransferFailed();
    }

    /// @inheritdoc IChallengeMoney
    function creditOf(address account) external view returns (uint256) {
        return _credits[account];
    }

    // The end

    /// @inheritdoc IChallenges
    function timeout(uint256 challenge) external nonReentrant {
        Challenge storage c = _challenges[challenge];
        State state = c.state;
        if (state == State.None) revert UnknownChallenge(challenge);
        // INVARIANT: a bond is paid out once.
        if (state >= State.Won) revert NotYourTurn(challenge);
        (uint64 job, bytes32 claimId) = (c.job, c.claimId);
        bool settled = DISPUTES.isConvicted(job, c.stage, c.replica, c.interval);
        // INVARIANT: each side has its whole time.
        bool over = state == State.Spent || _isOver(c);
        if (!settled && !over) revert DeadlineNotReached(c.deadline, uint256(c.turnBlock) + _MOVE_BLOCKS);
        bool silence = !settled && state == State.Answering;
        bool won = settled || silence;

        c.state = won ? State.Won : State.Lost;
        if (won) emit ChallengeWon(challenge, claimId, silence);
        else emit ChallengeLost(challenge, claimId);

        uint256 owed = won ? 0 : c.owed;
        _credits[c.worker] += owed;
        _credits[c.challenger] += c.deposit - owed;
        CHECKPOINTS.release(claimId);
        if (silence) DISPUTES.convictSilent(job, c.stage, c.replica, c.interval, claimId, c.challenger);
        SNO.safeTransfer(won ? c.challenger : c.worker, c.bond);
    }
}
