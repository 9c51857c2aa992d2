// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {stdToml} from "forge-std/StdToml.sol";
import {Test} from "forge-std/Test.sol";

import {Audits} from "../../../contracts/core/Audits.sol";
import {Channels} from "../../../contracts/core/Channels.sol";
import {SNO} from "../../../contracts/core/SNO.sol";
import {Staking} from "../../../contracts/core/Staking.sol";
import {Circle} from "../../../contracts/core/audits/Circle.sol";
import {ParameterBounds} from "../../../contracts/libraries/terms/ParameterBounds.sol";
import {Parameters} from "../../../contracts/types/Parameters.sol";
import {Deploy} from "../../../script/Deploy.s.sol";
import {Deployer, Deployment} from "../../../script/Deployer.sol";
import {ParametersFile} from "../../../script/ParametersFile.sol";

/// @dev Parameters, and how the contracts find each other.
contract DeploymentTest is Test, Deployer {
    using stdToml for string;

    Deploy private script;

    function setUp() public {
        script = new Deploy();
    }

    function test_parametersFileIsTheSpecs() public view {
        Parameters memory p = script.parse(vm.readFile("deploy/parameters.toml"));
        assertEq(p.unbondingDelay, 21 days);
        assertEq(p.validatorCollateral, 10_000 ether);
        assertEq(p.disputeClock, 12 hours);
        assertEq(p.moveGrace, 20 minutes);
        assertEq(p.moveBlocks, 50);
        assertLe(ParameterBounds.disputePeriod(p), 48 hours);
        assertEq(p.disputeBond, 100 ether);
        assertEq(p.minChallengeWindow, 1 hours);
        assertEq(p.maxChallengeWindow, 7 days);
        assertEq(p.sealWindow, 6 hours);
        assertEq(p.bountyBps, 5000);
        assertEq(p.harmBps, 3000);
        assertEq(p.minStakeIntervals, 100);
        assertEq(p.auditsPerClaimBps, 1000);
        assertEq(p.auditFeeBps, 12_500);
        assertEq(p.auditPenaltyBps, 5000);
        assertEq(p.beaconPeriod, 5 minutes);
    }

    /// @dev Of what the recipients of the genesis get, a hundred validators bond a third, so that twice as much is left
    /// for workers' stakes and users' escrows; and a validator keeps half of its collateral after a penalty.
    function test_aHundredValidatorsFitTheSupply() public {
        Parameters memory p = script.parse(vm.readFile("deploy/parameters.toml"));
        address[] memory recipients = new address[](3);
        (recipients[0], recipients[1], recipients[2]) = (address(this), address(this), address(this));
        assertLe(3 * 100 * uint256(p.validatorCollateral), new SNO(recipients).totalSupply());
        assertLe(uint256(p.auditPenaltyBps) * 2, ParameterBounds.WHOLE_BPS);
    }

    /// @dev Whoever deploys by another tool than the script gets no contracts that do not know each other.
    function test_aBrokenCircleDoesNotDeploy() public {
        Deployment memory d = _deployFrom("deploy/parameters.toml");
        Channels other = new Channels(d.jobs);
        vm.expectRevert(abi.encodeWithSelector(Circle.Broken.selector, address(d.staking), address(d.audits), _next()));
        new Audits(d.staking, d.jobs, d.checkpoints, other, d.disputes, d.beacon);
    }

    /// @dev Where this contract's next creation will be.
    function _next() private view returns (address) {
        return vm.computeCreateAddress(address(this), vm.getNonce(address(this)));
    }

    function test_bothFilesDeploy() public {
        _deployFrom("deploy/parameters.toml");
        Deployment memory d = _deployFrom("deploy/local-parameters.toml");
        string memory toml = script.describe(d);
        assertEq(toml.readUint(".chain_id"), block.chainid);
        assertEq(toml.readUint(".block"), block.number);
        assertEq(toml.readAddress(".sno"), address(d.sno));
        assertEq(toml.readAddress(".staking"), address(d.staking));
        assertEq(toml.readAddress(".jobs"), address(d.jobs));
        assertEq(toml.readAddress(".checkpoints"), address(d.checkpoints));
        assertEq(toml.readAddress(".channels"), address(d.channels));
        assertEq(toml.readAddress(".disputes"), address(d.disputes));
        assertEq(toml.readAddress(".challenges"), address(d.challenges));
        assertEq(toml.readAddress(".audits"), address(d.audits));
        assertEq(toml.readAddress(".beacon"), address(d.beacon));
        assertEq(toml.readAddress(".step_verifier"), address(d.stepVerifier));
    }

    function _deployFrom(string memory file) private returns (Deployment memory d) {
        address[] memory genesis = new address[](1);
        genesis[0] = address(this);
        d = _deploy(address(this), script.parse(vm.readFile(file)), genesis);
        assertEq(d.staking.JOBS(), address(d.jobs));
        assertEq(d.staking.DISPUTES(), address(d.disputes));
        assertEq(d.staking.AUDITS(), address(d.audits));
        assertEq(d.jobs.AUDITS(), address(d.audits));
        assertEq(address(d.jobs.CHECKPOINTS()), address(d.checkpoints));
        assertEq(address(d.jobs.CHANNELS()), address(d.channels));
        assertEq(d.jobs.DISPUTES(), address(d.disputes));
        assertEq(address(d.channels.JOBS()), address(d.jobs));
        assertEq(address(d.checkpoints.JOBS()), address(d.jobs));
        assertEq(d.checkpoints.DISPUTES(), address(d.disputes));
        assertEq(d.checkpoints.CHALLENGES(), address(d.challenges));
        assertEq(d.disputes.CHALLENGES(), address(d.challenges));
        assertEq(address(d.disputes.VERIFIER()), address(d.stepVerifier));
        assertEq(address(d.challenges.DISPUTES()), address(d.disputes));
        assertEq(address(d.challenges.CHECKPOINTS()), address(d.checkpoints));
        assertEq(address(d.challenges.JOBS()), address(d.jobs));
        assertEq(address(d.challenges.SNO()), address(d.sno));
        assertEq(address(d.audits.STAKING()), address(d.staking));
        assertEq(address(d.audits.JOBS()), address(d.jobs));
        assertEq(address(d.audits.CHECKPOINTS()), address(d.checkpoints));
        assertEq(address(d.audits.CHANNELS()), address(d.channels));
        assertEq(address(d.audits.DISPUTES()), address(d.disputes));
        assertEq(address(d.audits.BEACON()), address(d.beacon));
        assertEq(d.beacon.PERIOD(), d.staking.parameters().beaconPeriod);
    }

    function test_valuesThatDoNotFitAreRefused() public {
        string memory toml =
            vm.replace(vm.readFile("deploy/parameters.toml"), "bounty_bps = 5_000", "bounty_bps = 70_000");
        vm.expectRevert(abi.encodeWithSelector(ParametersFile.ParameterTooLarge.selector, ".bounty_bps", 70_000));
        script.parse(toml);
    }

    function test_bounds() public {
        Parameters memory p = _good();
        p.minChallengeWindow = 0;
        _refused(p, "minChallengeWindow");
        p = _good();
        p.maxChallengeWindow = p.minChallengeWindow - 1;
        _refused(p, "maxChallengeWindow");
        p.maxChallengeWindow = 90 days + 1;
        _refused(p, "maxChallengeWindow");
        p = _good();
        p.sealWindow = 0;
        _refused(p, "sealWindow");
        p.sealWindow = 7 days + 1;
        _refused(p, "sealWindow");
        p = _good();
        p.moveGrace = 0;
        _refused(p, "moveGrace");
        p.moveGrace = p.disputeClock + 1;
        _refused(p, "moveGrace");
        p = _good();
        p.moveBlocks = 0;
        _refused(p, "moveBlocks");
        p.moveBlocks = 7201;
        _refused(p, "moveBlocks");
        p = _good();
        p.disputeClock = 45 days;
        _refused(p, "disputeClock");
        p = _good();
        p.unbondingDelay = uint40(2 * p.maxChallengeWindow + ParameterBounds.disputePeriod(p)) - 1;
        _refused(p, "unbondingDelay");
        p.unbondingDelay = 180 days + 1;
        _refused(p, "unbondingDelay");
        p = _good();
        p.disputeBond = 0;
        _refused(p, "disputeBond");
        p = _good();
        p.validatorCollateral = 0;
        _refused(p, "validatorCollateral");
        p = _good();
        p.auditsPerClaimBps = 100_001;
        _refused(p, "auditsPerClaimBps");
        p = _good();
        p.auditPenaltyBps = 10_001;
        _refused(p, "auditPenaltyBps");
        p = _good();
        p.beaconPeriod = 0;
        _refused(p, "beaconPeriod");
        p.beaconPeriod = p.maxChallengeWindow / 8 + 1;
        _refused(p, "beaconPeriod");
        p = _good();
        (p.bountyBps, p.harmBps) = (5000, 5000);
        _refused(p, "bountyBps");
    }

    function _good() private view returns (Parameters memory) {
        return script.parse(vm.readFile("deploy/parameters.toml"));
    }

    function _refused(Parameters memory p, string memory parameter) private {
        vm.expectRevert(abi.encodeWithSelector(ParameterBounds.ParameterOutOfBounds.selector, parameter));
        new Staking(IERC20(address(1)), address(2), address(3), address(4), p);
    }
}
