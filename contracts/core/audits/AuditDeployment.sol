// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";

import {IBeacon} from "../../interfaces/IBeacon.sol";
import {IChannels} from "../../interfaces/IChannels.sol";
import {ICheckpoints} from "../../interfaces/ICheckpoints.sol";
import {IDisputes} from "../../interfaces/IDisputes.sol";
import {IJobs} from "../../interfaces/IJobs.sol";
import {IStaking} from "../../interfaces/IStaking.sol";
import {ParameterBounds} from "../../libraries/terms/ParameterBounds.sol";
import {Parameters} from "../../types/Parameters.sol";
import {Channels} from "../Channels.sol";
import {Checkpoints} from "../Checkpoints.sol";
import {Disputes} from "../Disputes.sol";
import {Jobs} from "../Jobs.sol";
import {Staking} from "../Staking.sol";
import {Circle} from "./Circle.sol";

/// @title AuditDeployment
/// @notice What `Audits` is told when it is deployed: the other contracts, which it checks, and the parameters.
abstract contract AuditDeployment {
    /// @notice The token of shares.
    IERC20 public immutable SNO;
    /// @notice Where validators' collateral is.
    IStaking public immutable STAKING;
    /// @notice Where terms and workers stand, and what pays.
    IJobs public immutable JOBS;
    /// @notice Where claims stand.
    ICheckpoints public immutable CHECKPOINTS;
    /// @notice Where redeemed epochs of receipts stand.
    IChannels public immutable CHANNELS;
    /// @notice What tells that an answer is wrong.
    IDisputes public immutable DISPUTES;
    /// @notice What draws.
    IBeacon public immutable BEACON;

    uint256 internal immutable _AUDITS_PER_CLAIM_BPS;
    uint256 internal immutable _PENALTY;
    uint256 internal immutable _DISPUTE_CLOCK;
    uint256 internal immutable _BOUNTY_BPS;

    /// @dev The last contract of a deployment: it looks whether the circle is closed.
    constructor(
        IStaking staking,
        IJobs jobs,
        ICheckpoints checkpoints,
        IChannels channels,
        IDisputes disputes,
        IBeacon beacon
    ) {
        STAKING = staking;
        JOBS = jobs;
        CHECKPOINTS = checkpoints;
        CHANNELS = channels;
        DISPUTES = disputes;
        BEACON = beacon;
        Parameters memory p = staking.parameters();
        _AUDITS_PER_CLAIM_BPS = p.auditsPerClaimBps;
        _PENALTY = uint256(p.validatorCollateral) * p.auditPenaltyBps / ParameterBounds.WHOLE_BPS;
        _DISPUTE_CLOCK = p.disputeClock;
        _BOUNTY_BPS = p.bountyBps;
        SNO = Staking(address(staking)).SNO();
        Circle.check(
            Circle.Contracts({
                staking: Staking(address(staking)),
                jobs: Jobs(address(jobs)),
                checkpoints: Checkpoints(address(checkpoints)),
                channels: Channels(address(channels)),
                disputes: Disputes(address(disputes)),
                audits: address(this)
            })
        );
    }
}
