// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Challenges} from "../core/Challenges.sol";
import {Channels} from "../core/Channels.sol";
import {Checkpoints} from "../core/Checkpoints.sol";
import {Custody} from "../core/Custody.sol";
import {Disputes} from "../core/Disputes.sol";
import {Jobs} from "../core/Jobs.sol";
import {Staking} from "../core/Staking.sol";

/// @title The circle of a deployment
/// @notice The contracts know each other for good, and most are told of some that come later. Whoever comes last looks
/// on chain whether all of them know the same.
library Circle {
    /// @notice A contract knows another one than the rest do.
    /// @param who the contract
    /// @param known whom it knows
    /// @param needed whom it should know
    error Broken(address who, address known, address needed);

    /// @notice Reverts unless every contract knows the others.
    /// @param staking where stake is; its token is that of all
    /// @param disputes who convicts; its challenges and custody are those of all
    /// @param audits who comes last
    function check(
        Staking staking,
        Jobs jobs,
        Checkpoints checkpoints,
        Channels channels,
        Disputes disputes,
        address audits
    ) internal view {
        (Challenges challenges, Custody custody) = (Challenges(disputes.CHALLENGES()), Custody(disputes.CUSTODY()));
        _same(address(staking), staking.JOBS(), address(jobs));
        _same(address(staking), staking.DISPUTES(), address(disputes));
        _same(address(staking), staking.AUDITS(), audits);
        _checkJobs(staking, jobs, checkpoints, channels, disputes, audits);
        _same(address(checkpoints), address(checkpoints.JOBS()), address(jobs));
        _same(address(checkpoints), checkpoints.DISPUTES(), address(disputes));
        _same(address(checkpoints), checkpoints.CHALLENGES(), address(challenges));
        _same(address(checkpoints), address(checkpoints.CUSTODY()), address(custody));
        _same(address(channels), address(channels.JOBS()), address(jobs));
        _same(address(disputes), address(disputes.STAKING()), address(staking));
        _same(address(disputes), address(disputes.JOBS()), address(jobs));
        _same(address(disputes), address(disputes.CHECKPOINTS()), address(checkpoints));
        _same(address(challenges), address(challenges.SNO()), address(staking.SNO()));
        _same(address(challenges), address(challenges.JOBS()), address(jobs));
        _same(address(challenges), address(challenges.CHECKPOINTS()), address(checkpoints));
        _same(address(challenges), address(challenges.DISPUTES()), address(disputes));
        _same(address(custody), address(custody.SNO()), address(staking.SNO()));
        _same(address(custody), address(custody.JOBS()), address(jobs));
        _same(address(custody), address(custody.CHECKPOINTS()), address(checkpoints));
        _same(address(custody), address(custody.DISPUTES()), address(disputes));
    }

    function _checkJobs(
        Staking staking,
        Jobs jobs,
        Checkpoints checkpoints,
        Channels channels,
        Disputes disputes,
        address audits
    ) private view {
        _same(address(jobs), address(jobs.SNO()), address(staking.SNO()));
        _same(address(jobs), address(jobs.STAKING()), address(staking));
        _same(address(jobs), address(jobs.CHECKPOINTS()), address(checkpoints));
        _same(address(jobs), address(jobs.CHANNELS()), address(channels));
        _same(address(jobs), jobs.DISPUTES(), address(disputes));
        _same(address(jobs), jobs.AUDITS(), audits);
    }

    function _same(address who, address known, address needed) private pure {
        // INVARIANT: money and verdicts move between these contracts only.
        if (known != needed) revert Broken(who, known, needed);
    }
}
