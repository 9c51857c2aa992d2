// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";

import {IChannels} from "../../interfaces/IChannels.sol";
import {ICheckpoints} from "../../interfaces/ICheckpoints.sol";
import {IStaking} from "../../interfaces/IStaking.sol";
import {Parameters} from "../../types/Parameters.sol";

/// @title JobDeployment
/// @notice What `Jobs` is told when it is deployed: the other contracts, and the parameters.
abstract contract JobDeployment {
    /// @notice The token of stake, and of payment where it is not ETH.
    IERC20 public immutable SNO;
    /// @notice Where workers' stake is locked.
    IStaking public immutable STAKING;
    /// @notice Where claims of training jobs are made, and who says how many are final.
    ICheckpoints public immutable CHECKPOINTS;
    /// @notice Who says how many tokens of a serving job are owed.
    IChannels public immutable CHANNELS;
    /// @notice Who convicts.
    address public immutable DISPUTES;
    /// @notice Who says what audits have been done.
    address public immutable AUDITS;

    uint32 internal immutable _MIN_CHALLENGE_WINDOW;
    uint32 internal immutable _MAX_CHALLENGE_WINDOW;
    uint128 internal immutable _MIN_STAKE;
    uint32 internal immutable _MIN_STAKE_INTERVALS;
    uint32 internal immutable _AUDITS_PER_CLAIM_BPS;
    uint16 internal immutable _AUDIT_FEE_BPS;

    // Zero addresses would only make a deployment that does nothing; `script/Deployer.sol` gives real ones.
    // slither-disable-start missing-zero-check
    constructor(
        IERC20 sno,
        IStaking staking,
        ICheckpoints checkpoints,
        IChannels channels,
        address disputes,
        address audits
    ) {
        SNO = sno;
        STAKING = staking;
        CHECKPOINTS = checkpoints;
        CHANNELS = channels;
        DISPUTES = disputes;
        AUDITS = audits;
        Parameters memory p = staking.parameters();
        _MIN_CHALLENGE_WINDOW = p.minChallengeWindow;
        _MAX_CHALLENGE_WINDOW = p.maxChallengeWindow;
        _MIN_STAKE = p.disputeBond;
        _MIN_STAKE_INTERVALS = p.minStakeIntervals;
        _AUDITS_PER_CLAIM_BPS = p.auditsPerClaimBps;
        _AUDIT_FEE_BPS = p.auditFeeBps;
    }

    // slither-disable-end missing-zero-check
}
