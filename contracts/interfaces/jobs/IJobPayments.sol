// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

/// @title Jobs: what is paid
/// @notice What work and audits take of a job's escrow, and how credit is collected. See `IJobs`.
interface IJobPayments {
    /// @notice A worker was credited for its lane's work.
    /// @param job id of the job
    /// @param worker who was credited
    /// @param stage the lane's stage
    /// @param replica the lane's replica
    /// @param units claims, or tokens of a serving job
    /// @param amount wei of the job's token
    event Paid(uint64 indexed job, address indexed worker, uint16 stage, uint16 replica, uint32 units, uint256 amount);

    /// @notice An auditor was credited for an audit.
    /// @param job id of the job
    /// @param auditor who was credited
    /// @param stage stage of the audited lane
    /// @param replica replica of the audited lane
    /// @param amount wei of the job's token
    event AuditPaid(uint64 indexed job, address indexed auditor, uint16 stage, uint16 replica, uint256 amount);

    /// @notice An account took out what was credited to it.
    /// @param account whose
    /// @param token SNO, or 0 for ETH
    /// @param amount wei of the token
    event Collected(address indexed account, address indexed token, uint256 amount);

    /// @notice The lane, of a serving job, is convicted and earns nothing any more.
    /// @param stage the lane's stage
    /// @param replica the lane's replica
    error LaneConvicted(uint16 stage, uint16 replica);

    /// @notice Nothing is credited to the caller in this token.
    error NothingToCollect();

    /// @notice The caller did not take the ETH.
    error TransferFailed();

    /// @notice Pays out everything credited to the caller in a token.
    /// @param token SNO, or 0 for ETH
    /// @return amount wei of the token
    function collect(address token) external returns (uint256 amount);

    /// @notice Credits a lane's worker with units of work at the offered price. Only `Checkpoints` in a training job,
    /// only `Channels` in a serving job.
    /// @dev Not guarded against re-entry: it calls nobody.
    /// @param job id of the job
    /// @param stage the lane's stage
    /// @param replica the lane's replica
    /// @param units claims that became final, or tokens of a serving job
    function pay(uint64 job, uint16 stage, uint16 replica, uint32 units) external;

    /// @notice Credits an auditor with the fee for an audit: `auditFeeBps` of the price of what was audited, and
    /// nothing if the budget for audits does not hold that much. Only `Audits`.
    /// @param job id of the job
    /// @param stage stage of the audited lane
    /// @param replica replica of the audited lane
    /// @param units what was audited: 1 interval, or the tokens of a text
    /// @param auditor who is credited
    /// @return fee wei of the job's token
    function payAudit(uint64 job, uint16 stage, uint16 replica, uint32 units, address auditor)
        external
        returns (uint256 fee);

    /// @notice What an account can collect.
    /// @param account the account
    /// @param token SNO, or 0 for ETH
    /// @return wei of the token
    function creditOf(address account, address token) external view returns (uint256);
}
