// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Challenges} from "../Challenges.sol";
import {Channels} from "../Channels.sol";
import {Checkpoints} from "../Checkpoints.sol";
import {Custody} from "../Custody.sol";
import {Disputes} from "../Disputes.sol";
import {Jobs} from "../Jobs.sol";
import {Staking} from "../Staking.sol";

/// @title The circle of a deployment
/// @notice The contracts know each other for good, and most are told of some that come later. Whoever comes last looks
/// on chain whether all of them know the same.
library Circle {
    /// @notice A contract knows another one than the rest do.
    /// @param who the contract
    /// @param known whom it knows
    /// @param needed whom it should know
    error Broken(address who, address known, address needed);

    /// @dev The contracts of a deployment that others are told of.
    struct Contracts {
        /// Where stake is; its token is that of all.
        Staking staking;
        /// Where jobs are.
        Jobs jobs;
        /// Where claims are.
        Checkpoints checkpoints;
        /// Where vouchers are redeemed.
        Channels channels;
        /// Who convicts; its challenges and custody are those of all.
        Disputes disputes;
        /// Who comes last.
        address audits;
    }

    /// @notice Reverts unless every contract knows the others.
    /// @param c the contracts
    function check(Contracts memory c) internal view {
        _same(address(c.staking), c.staking.JOBS(), address(c.jobs));
        _same(address(c.staking), c.staking.DISPUTES(), address(c.disputes));
        _same(address(c.staking), c.staking.AUDITS(), c.audits);

        _same(address(c.jobs), address(c.jobs.SNO()), address(c.staking.SNO()));
        _same(address(c.jobs), address(c.jobs.STAKING()), address(c.staking));
        _same(address(c.jobs), address(c.jobs.CHECKPOINTS()), address(c.checkpoints));
        _same(address(c.jobs), address(c.jobs.CHANNELS()), address(c.channels));
        _same(address(c.jobs), c.jobs.DISPUTES(), address(c.disputes));
        _same(address(c.jobs), c.jobs.AUDITS(), c.audits);

        _same(address(c.checkpoints), address(c.checkpoints.JOBS()), address(c.jobs));
        _same(address(c.checkpoints), c.checkpoints.DISPUTES(), address(c.disputes));
        _same(address(c.checkpoints), c.checkpoints.CHALLENGES(), c.disputes.CHALLENGES());
        _same(address(c.checkpoints), address(c.checkpoints.CUSTODY()), c.disputes.CUSTODY());

        _same(address(c.channels), address(c.channels.JOBS()), address(c.jobs));

        _same(address(c.disputes), address(c.disputes.STAKING()), address(c.staking));
        _same(address(c.disputes), address(c.disputes.JOBS()), address(c.jobs));
        _same(address(c.disputes), address(c.disputes.CHECKPOINTS()), address(c.checkpoints));
        _same(address(c.disputes), address(c.disputes.AUDITS()), c.audits);

        Challenges challenges = Challenges(c.disputes.CHALLENGES());
        _same(address(challenges), address(challenges.SNO()), address(c.staking.SNO()));
        _same(address(challenges), address(challenges.JOBS()), address(c.jobs));
        _same(address(challenges), address(challenges.CHECKPOINTS()), address(c.checkpoints));
        _same(address(challenges), address(challenges.DISPUTES()), address(c.disputes));

        Custody custody = Custody(c.disputes.CUSTODY());
        _same(address(custody), address(custody.SNO()), address(c.staking.SNO()));
        _same(address(custody), address(custody.JOBS()), address(c.jobs));
        _same(address(custody), address(custody.CHECKPOINTS()), address(c.checkpoints));
        _same(address(custody), address(custody.DISPUTES()), address(c.disputes));
    }

    function _same(address who, address known, address needed) private pure {
        // INVARIANT: money and verdicts move between these contracts only.
        if (known != needed) revert Broken(who, known, needed);
    }
}
