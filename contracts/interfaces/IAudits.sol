// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {AuditAnswer, AuditedClaim} from "../types/Audit.sol";
import {Claim, StepStatement} from "../types/Types.sol";

/// @title Audits: validators that are drawn, answer, and answer for it
/// @notice Once a claim is fixed a seed (`IBeacon`) draws each validator on its own. Who is drawn computes the claim again and answers with what
/// nobody can know without: the last step's state and trace. No verdict is given: an answer is right or wrong, and whoever knows
/// the right one sees which. The worker knows it, so every claim shows who does not look. All times are shares of the job's challenge window,
/// at most of four `disputeClock`s, from when the claim was fixed:
///
/// | of the window | move | by |
/// |---|---|---|
/// | first quarter, once the seed is recorded | commit: a sealed answer | a validator that is drawn |
/// | second quarter | reveal: the answer; paid for it by the job's escrow | who committed |
/// | until the third is over | accuse: by a statement that the claim's worker signed, with another answer | anyone |
///
/// | state of an audit | move | next |
/// |---|---|---|
/// | None | commit | Sealed |
/// | Sealed | reveal | Revealed |
/// | Revealed | accuse | Accused |
/// | Accused | penalise (anyone, once the claim stands for good) | Penalised |
/// | Revealed, Accused | penaliseCopy (anyone, by a proof that this very answer is wrong) | Penalised |
///
/// Nobody is accused over a receipt: its worker cannot be made to answer on chain, and could frame an auditor. There an answer is paid for
/// if the worker's own statement confirms it (`revealConfirmed`); a worker that signs another one is convicted of it, if it is wrong.
///
/// An accused auditor that was right convicts the worker of the statement or of the claim in the last quarter; then the accusation is void,
/// since the claim is. So an honest auditor is never penalised, whatever a worker signs.
///
/// @dev Weakness: who does not answer loses nothing but the fee. Who answers from what a worker told it, and not from work of its own, is
/// found where that was wrong. Weakness: an auditor has a quarter of the window to convict a worker that accuses it falsely.
interface IAudits {
    /// @dev 0 is an audit that does not exist.
    enum State {
        None,
        Sealed,
        Revealed,
        Accused,
        Penalised
    }

    event AuditSealed(bytes32 indexed claimId, address indexed auditor);
    /// @dev `fee`: wei of the job's token; 0 where its budget for audits is spent, or it is settled.
    event AuditRevealed(
        bytes32 indexed claimId, address indexed auditor, uint64 indexed job, AuditAnswer answer, uint256 fee
    );
    /// @dev What the claim's worker signed; the accuser is the statement's auditor.
    event AuditorAccused(bytes32 indexed claimId, address indexed auditor, StepStatement statement, bytes signature);
    event AuditorPenalised(bytes32 indexed claimId, address indexed auditor, address indexed accuser, uint256 amount);

    /// @dev Not on record, or not in the list of that epoch as it was redeemed then.
    error UnknownClaim();
    /// @dev Or its lane was convicted, and so can accuse nobody.
    error ClaimIsVoid();
    /// @dev Too early or too late: the move can be made from `from` until before `until`.
    error OutOfTime(uint256 from, uint256 until);
    /// @dev The seed that draws is not recorded yet (`IBeacon.record`).
    error NoSeed(uint64 period);
    error NotDrawn(address auditor);
    error WrongState(State state);
    /// @dev Not what was sealed.
    error WrongAnswer();
    /// @dev Not about the claim's last step, or not by its worker, or not with another answer.
    error WrongStatement();
    /// @dev The claim is not final.
    error NotFinal();

    /// @notice Commits the caller to an answer: `sealedAnswer` is `keccak256(abi.encode(claimId, answer, auditor, salt))`.
    /// Requirements: the caller is drawn; the claim is fixed, and not void; in the first quarter.
    function commit(AuditedClaim calldata audited, bytes32 sealedAnswer) external;

    /// @notice Reveals the caller's answer, and pays its fee from the job's escrow, whatever the answer is.
    /// Requirements: what was sealed; in the second quarter; not of a receipt.
    function reveal(AuditedClaim calldata audited, AuditAnswer calldata answer, bytes32 salt) external;

    /// @notice Reveals the caller's answer about a receipt, together with the claim's worker's statement that confirms it. Of a claim on record
    /// it is as `reveal`.
    /// Requirements: as for `reveal`; the answer that was sealed is that of the statement, which the worker signed.
    function revealConfirmed(
        AuditedClaim calldata audited,
        StepStatement calldata statement,
        bytes calldata signature,
        bytes32 salt
    ) external;

    /// @notice Accuses an auditor by what the claim's worker signed. The jackpot will be the statement's auditor's, whoever sends it.
    /// Requirements: not over a receipt; the answer is revealed; the statement is about the claim's last step, signed by the worker, and
    /// differs from the answer; the claim is not void; before the last quarter.
    function accuse(
        AuditedClaim calldata audited,
        address auditor,
        StepStatement calldata statement,
        bytes calldata signature
    ) external;

    /// @notice Takes `auditPenaltyBps` of the collateral, and no more than the lane's stake, from an accused auditor whose claim stands for good:
    /// the worker was right.
    /// Requirements: the claim is final.
    function penalise(Claim calldata claim, address auditor) external;

    /// @notice Takes the same from an auditor that answered just what `proof` shows to be wrong. The jackpot is the statement's auditor's.
    /// Requirements: the proof holds (`IDisputes.refutes`), whether or not it has convicted the worker.
    /// @param proof an `ElementProof` as bytes (C-17)
    function penaliseCopy(bytes calldata proof, address auditor) external;

    /// @notice Whether the seed of a claim, fixed at `fixedAt`, draws a validator. Reverts while the seed is not recorded.
    function isDrawn(bytes32 claimId, uint256 fixedAt, address auditor) external view returns (bool);

    /// @notice State of an audit.
    function stateOf(bytes32 claimId, address auditor) external view returns (State);
}
