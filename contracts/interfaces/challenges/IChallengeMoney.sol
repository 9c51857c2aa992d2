// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

/// @title Challenges: bonds, deposits and credit
/// @notice What a challenger puts up, what of it the worker's gas takes, and how credit is collected. See
/// `IChallenges`.
interface IChallengeMoney {
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

    /// @notice The deposit does not cover the answer to this question at the block's base fee; fund the challenge.
    /// @param needed what must be left of it, in wei of ETH
    error DepositTooSmall(uint256 needed);

    /// @notice The account has no credit.
    error NothingToCollect();

    /// @notice The account did not take its ETH.
    error TransferFailed();

    /// @notice Adds the ETH sent to a challenge's deposit; it is the challenger's if the challenge is won, or if it is
    /// not used up. Anyone may call.
    /// Requirements: the challenge is open, and its deposit has covered all answers.
    /// @param challenge id of the challenge
    function fund(uint256 challenge) external payable;

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
}
