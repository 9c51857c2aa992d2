// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {CommonBase} from "forge-std/Base.sol";

import {Audits} from "../contracts/core/Audits.sol";
import {Beacon} from "../contracts/core/Beacon.sol";
import {Challenges} from "../contracts/core/Challenges.sol";
import {Channels} from "../contracts/core/Channels.sol";
import {Checkpoints} from "../contracts/core/Checkpoints.sol";
import {Custody} from "../contracts/core/Custody.sol";
import {Disputes} from "../contracts/core/Disputes.sol";
import {Jobs} from "../contracts/core/Jobs.sol";
import {SNO} from "../contracts/core/SNO.sol";
import {Staking} from "../contracts/core/Staking.sol";
import {StepVerifier} from "../contracts/core/StepVerifier.sol";
import {Parameters} from "../contracts/types/Parameters.sol";

/// @dev The contracts of one deployment.
struct Deployment {
    SNO sno;
    Staking staking;
    Jobs jobs;
    Checkpoints checkpoints;
    Channels channels;
    Disputes disputes;
    Challenges challenges;
    Custody custody;
    Audits audits;
    Beacon beacon;
    StepVerifier stepVerifier;
}

/// @title How the contracts are put together
/// @notice For the deploy script and for tests. The contracts know each other for good, in a circle: the addresses of
/// those still to come are computed from the deployer's nonce; the last contract checks them on chain (`Circle`).
abstract contract Deployer is CommonBase {
    /// @param deployer whose nonce the creations take: the broadcaster, or the test contract.
    function _deploy(address deployer, Parameters memory parameters, address[] memory genesis)
        internal
        returns (Deployment memory d)
    {
        uint256 nonce = vm.getNonce(deployer);
        Jobs jobs = Jobs(vm.computeCreateAddress(deployer, nonce + 3));
        Checkpoints checkpoints = Checkpoints(vm.computeCreateAddress(deployer, nonce + 4));
        Channels channels = Channels(vm.computeCreateAddress(deployer, nonce + 5));
        Disputes disputes = Disputes(vm.computeCreateAddress(deployer, nonce + 6));
        Challenges challenges = Challenges(vm.computeCreateAddress(deployer, nonce + 7));
        Custody custody = Custody(vm.computeCreateAddress(deployer, nonce + 8));
        Audits audits = Audits(vm.computeCreateAddress(deployer, nonce + 10));

        d.sno = new SNO(genesis);
        d.stepVerifier = new StepVerifier();
        d.staking = new Staking(d.sno, address(jobs), address(disputes), address(audits), parameters);
        d.jobs = new Jobs(d.sno, d.staking, checkpoints, channels, address(disputes), address(audits));
        d.checkpoints = new Checkpoints(d.jobs, address(disputes), address(challenges), custody, parameters.sealWindow);
        d.channels = new Channels(d.jobs);
        d.disputes = new Disputes(
            d.staking, d.jobs, d.checkpoints, d.stepVerifier, address(challenges), address(custody), audits
        );
        d.challenges = new Challenges(d.sno, d.jobs, d.checkpoints, d.disputes, parameters);
        d.custody = new Custody(d.sno, d.jobs, d.checkpoints, d.disputes, parameters);
        d.beacon = new Beacon(parameters.beaconPeriod);
        d.audits = new Audits(d.staking, d.jobs, d.checkpoints, d.channels, d.disputes, d.beacon);
    }
}
