// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {AuditAnswer, AuditedClaim} from "../types/Audit.sol";
import {Claim, StepStatement} from "../types/Types.sol";

/// @title Audits: validators that are drawn, answer, and are liable for their answers
/// @notice Once a claim is fixed, a seed (`IBeacon`) draws each validator independently. A drawn validator computes the
/// claim again and answers with what it can only know from that work: the state before the last step, and that step's
/// trace. No verdict is given: an answer is right or wrong, and whoever knows the right one can tell. The worker knows
/// it, so every claim exposes the validators that do not look. The moves are made in quarters of the window, counted
/// from when the claim was fixed. The window is the job's challenge window, but at most four times `disputeClock`:
///
/// | quarter | move | by |
/// |---|---|---|
/// | first, once the seed is recorded | commit: a sealed answer | a validator that is drawn |
/// | second | reveal: the answer, which the job's escrow pays for | whoever committed |
/// | any | revealUnpaid: the answer, which nobody pays for | whoever committed |
/// | any | forfeit: no answer, and the penalty for a wrong one | whoever committed |
/// | second and third | accuse: with a statement that the claim's worker signed and that differs from the answer | anyone |
///
/// | state of an audit | move | next |
/// |---|---|---|
/// | None | commit | Sealed |
/// | Sealed | reveal, revealUnpaid | Revealed |
/// | Sealed | forfeit | Penalised |
/// | Revealed | accuse | Accused |
/// | Accused | penalise (anyone, once the claim is final) | Penalised |
/// | Revealed, Accused | penaliseCopy (anyone, with a proof that this very answer is wrong) | Penalised |
///
/// Nobody is accused over a receipt: its worker cannot be made to answer on chain, and so could frame an auditor. Over
/// a receipt an answer is paid for only if the worker's own statement confirms it (`revealConfirmed`). A worker that
/// signs a wrong statement is convicted by it.
///
/// An accused auditor that was right convicts the worker of its statement or of its claim in the last quarter. The
/// claim is then void, and so is the accusation. So an honest auditor is never penalised, whatever a worker signs.
///
/// Whoever has sealed an answer cannot stop being a validator before it has shown it (P-46). Half of the bounty of a
/// convicted lane is for those that had sealed answers about it (P-45).
///
/// @dev Weakness: a validator that seals no answer loses only the fee. A validator that copies its answer from a worker
/// is found out where that answer was wrong. Weakness: an auditor has one quarter of the window to convict a worker
/// that accuses it falsely.
interface IAudits {
    /// @dev `None` is an audit that does not exist.
    enum State {
        None,
        Sealed,
        Revealed,
        Accused,
        Penalised
    }

    /// @notice A validator has committed to an answer.
    /// @param claimId EIP-712 digest of the audited claim (C-9)
    /// @param auditor the validator
    event AuditSealed(bytes32 indexed claimId, address indexed auditor);

    /// @notice A validator has revealed its answer.
    /// @param claimId EIP-712 digest of the audited claim (C-9)
    /// @param auditor the validator
    /// @param job id of the claim's job
    /// @param answer the answer that was sealed
    /// @param fee credited to the auditor, in wei of the job's token; 0 if the budget for audits does not cover it, or
    /// the job is settled
    event AuditRevealed(
        bytes32 indexed claimId, address indexed auditor, uint64 indexed job, AuditAnswer answer, uint256 fee
    );

    /// @notice An auditor is accused of a wrong answer.
    /// @param claimId EIP-712 digest of the audited claim (C-9)
    /// @param auditor the accused
    /// @param statement what the claim's worker signed; its `auditor` is the accuser
    /// @param signature the worker's signature of the statement, 65 bytes
    event AuditorAccused(bytes32 indexed claimId, address indexed auditor, StepStatement statement, bytes signature);

    /// @notice An auditor has lost collateral for a wrong answer.
    /// @param claimId EIP-712 digest of the audited claim (C-9)
    /// @param auditor the validator that is penalised
    /// @param accuser receives the bounty: the auditor that the statement or the proof names
    /// @param amount taken from the collateral, in wei of SNO, the bounty included
    event AuditorPenalised(bytes32 indexed claimId, address indexed auditor, address indexed accuser, uint256 amount);

    /// @notice An auditor was paid its share of the bounty of a convicted lane (P-45).
    /// @param claimId EIP-712 digest of the audited claim (C-9)
    /// @param auditor the validator
    /// @param job id of the claim's job
    /// @param amount paid, in wei of SNO
    event AuditorShared(bytes32 indexed claimId, address indexed auditor, uint64 indexed job, uint256 amount);

    /// @notice The claim is not on record since the time given, or the receipt is not in the list of the epoch as it
    /// was redeemed then.
    error UnknownClaim();

    /// @notice The claim is void, or its lane is convicted and so can accuse nobody, or the receipt's job is settled.
    error ClaimIsVoid();

    /// @notice The move is too early or too late.
    /// @param from first timestamp at which the move can be made
    /// @param until first timestamp at which it can no longer be made
    error OutOfTime(uint256 from, uint256 until);

    /// @notice The seed that draws is not recorded yet (`IBeacon.record`).
    /// @param period the beacon's period whose seed is needed
    error NoSeed(uint64 period);

    /// @notice The seed does not draw the caller for this claim.
    /// @param auditor the caller
    error NotDrawn(address auditor);

    /// @notice The audit's state does not allow the move.
    /// @param state the audit's state
    error WrongState(State state);

    /// @notice The answer is not the one that was sealed, or not the one that the proof shows to be wrong.
    error WrongAnswer();

    /// @notice The statement is not about the claim's last step, or not signed by its worker, or agrees with the answer
    /// it is to accuse; or a receipt is answered or accused as only a claim on record can be.
    error WrongStatement();

    /// @notice The claim is not final.
    error NotFinal();

    /// @notice The lane is not convicted, or the answer brings no share of its bounty, or the share is paid.
    error NothingToShare();

    /// @notice Only another contract of the deployment may call this.
    /// @param caller who called
    error Unauthorized(address caller);

    /// @notice Commits the caller to an answer.
    /// Requirements: the caller is drawn and has not committed before; the claim is fixed and not void; the window is
    /// in its first quarter.
    /// @param audited the claim or receipt, and when it was fixed
    /// @param sealedAnswer `keccak256(abi.encode(claimId, answer, auditor, salt))`
    function commit(AuditedClaim calldata audited, bytes32 sealedAnswer) external;

    /// @notice Reveals the caller's answer and credits its fee from the job's escrow, whatever the answer is.
    /// Requirements: the caller sealed this answer; the window is in its second quarter; the claim is not a receipt.
    /// @param audited the claim, and when it was fixed
    /// @param answer the answer that was sealed
    /// @param salt the salt that it was sealed with
    function reveal(AuditedClaim calldata audited, AuditAnswer calldata answer, bytes32 salt) external;

    /// @notice Reveals the caller's answer together with a statement of the claim's worker that confirms it. A receipt
    /// can be answered in this way only. For a claim on record the effect is that of `reveal`.
    /// Requirements: as for `reveal`; the sealed answer is that of the statement, which the worker signed.
    /// @param audited the claim or receipt, and when it was fixed
    /// @param statement the worker's statement about the claim's last step, or about the receipt
    /// @param signature the worker's signature of the statement, 65 bytes
    /// @param salt the salt that the answer was sealed with
    function revealConfirmed(
        AuditedClaim calldata audited,
        StepStatement calldata statement,
        bytes calldata signature,
        bytes32 salt
    ) external;

    /// @notice Reveals the caller's answer at any time, without a fee: the caller missed its quarter, or the worker of
    /// a receipt confirms nothing. It is liable for the answer like any other.
    /// Requirements: the caller sealed this answer and has not shown it.
    /// @param claim the claim or receipt; it need not be on record any more
    /// @param answer the answer that was sealed
    /// @param salt the salt that it was sealed with
    function revealUnpaid(Claim calldata claim, AuditAnswer calldata answer, bytes32 salt) external;

    /// @notice Gives up an answer that the caller has sealed and cannot show, so that it can unstake. It costs what a
    /// wrong answer does, and all of that is burned.
    /// Requirements: the caller sealed an answer and has not shown it.
    /// @param claim the claim or receipt; it need not be on record any more
    function forfeit(Claim calldata claim) external;

    /// @notice Accuses an auditor with what the claim's worker signed. Anyone may call. The bounty will go to the
    /// auditor that the statement names, whoever sends it.
    /// Requirements: the claim is not a receipt and not void, and its lane is not convicted; the answer is revealed;
    /// the statement is about the claim's last step, signed by the worker, and differs from the answer; the window is
    /// in its second or third quarter.
    /// @param audited the claim, and when it was fixed
    /// @param auditor the validator to accuse
    /// @param statement the worker's statement about the claim's last step
    /// @param signature the worker's signature of the statement, 65 bytes
    function accuse(
        AuditedClaim calldata audited,
        address auditor,
        StepStatement calldata statement,
        bytes calldata signature
    ) external;

    /// @notice Penalises an accused auditor whose claim has become final: the worker was right. Anyone may call.
    /// Effects: takes `auditPenaltyBps` of the validator collateral, but no more than the lane's stake.
    /// Requirements: the auditor is accused; the claim is final.
    /// @param claim the claim; it need not be on record any more
    /// @param auditor the accused
    function penalise(Claim calldata claim, address auditor) external;

    /// @notice Penalises, by the same amount, an auditor that gave exactly the answer which `proof` shows to be wrong.
    /// Anyone may call. The bounty goes to the auditor that the proof's statement names.
    /// Requirements: the answer is revealed and not yet penalised; the proof holds (`IDisputes.refutes`), whether or
    /// not it has convicted the worker.
    /// @param proof an `ElementProof` as bytes (C-17)
    /// @param auditor the validator that gave the wrong answer
    function penaliseCopy(bytes calldata proof, address auditor) external;

    /// @notice Closes the list of those who share the bounty of a lane that is being convicted. Only `Disputes`.
    /// @param job id of the job
    /// @param stage the lane's stage
    /// @param replica the lane's replica
    /// @return any whether there are any
    function closeSeals(uint64 job, uint16 stage, uint16 replica) external returns (bool any);

    /// @notice Pays an auditor its share of the bounty of a convicted lane (P-45). Anyone may call.
    /// Requirements: `shareOf` is not 0.
    /// @param claim the audited claim or receipt; it need not be on record any more
    /// @param auditor the validator
    function payShare(Claim calldata claim, address auditor) external;

    /// @notice What `payShare` would pay.
    /// @param claim the audited claim or receipt
    /// @param auditor the validator
    /// @return in wei of SNO; 0 if the lane is not convicted, or the auditor sealed its answer later, or has not shown
    /// it, or is penalised for it, or is accused over a claim that stands, or is paid
    function shareOf(Claim calldata claim, address auditor) external view returns (uint256);

    /// @notice How many answers an auditor has sealed and not shown.
    /// @param auditor the validator
    /// @return number of audits in the state `Sealed`
    function sealedBy(address auditor) external view returns (uint256);

    /// @notice Whether the seed of a claim draws a validator. Reverts with `NoSeed` while the seed is not recorded.
    /// @param claimId EIP-712 digest of the claim (C-9)
    /// @param fixedAt when the claim was fixed, as a Unix timestamp
    /// @param auditor the validator
    /// @return whether it is drawn; false for an account that did not hold the collateral before `fixedAt`
    function isDrawn(bytes32 claimId, uint256 fixedAt, address auditor) external view returns (bool);

    /// @notice State of an audit.
    /// @param claimId EIP-712 digest of the audited claim (C-9)
    /// @param auditor the validator
    /// @return the state; `None` if the validator has not committed
    function stateOf(bytes32 claimId, address auditor) external view returns (State);
}
