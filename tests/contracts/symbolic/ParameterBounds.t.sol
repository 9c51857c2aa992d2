// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {ParameterBounds} from "../../../contracts/libraries/terms/ParameterBounds.sol";
import {Parameters} from "../../../contracts/types/Parameters.sol";
import {Test} from "forge-std/Test.sol";

contract ParameterBoundsHarness {
    function check(Parameters memory p) external pure {
        ParameterBounds.check(p);
    }
}

/// @notice Parameters can be deployed exactly if they keep the table at the end of `contracts/SPEC.md`.
contract ParameterBoundsSymbolic is Test {
    ParameterBoundsHarness private harness = new ParameterBoundsHarness();

    function check_exactlyTheTable(Parameters memory p) public view {
        // The dispute period of P-10.
        uint256 disputes = 2 * uint256(p.disputeClock) + 64 * uint256(p.moveGrace);
        bool times = p.unbondingDelay >= 2 * uint256(p.maxChallengeWindow) + disputes && p.unbondingDelay <= 180 days;
        bool moves = p.moveGrace > 0 && p.disputeClock >= p.moveGrace && disputes <= 90 days && p.moveBlocks > 0
            && p.moveBlocks <= 7200;
        bool windows = p.minChallengeWindow > 0 && p.maxChallengeWindow >= p.minChallengeWindow
            && p.maxChallengeWindow <= 90 days && p.sealWindow > 0 && p.sealWindow <= 7 days;
        bool money =
            p.validatorCollateral > 0 && p.disputeBond > 0 && uint256(p.bountyBps) + uint256(p.harmBps) < 10_000;
        bool audits = p.auditsPerClaimBps <= 100_000 && p.auditPenaltyBps <= 10_000 && p.beaconPeriod > 0
            && 8 * uint256(p.beaconPeriod) <= p.maxChallengeWindow;
        (bool accepted,) = address(harness).staticcall(abi.encodeCall(ParameterBoundsHarness.check, (p)));
        assert(accepted == (times && moves && windows && money && audits));
    }

    function testFuzz_exactlyTheTable(Parameters memory p) public view {
        check_exactlyTheTable(p);
        p.unbondingDelay = uint40(bound(p.unbondingDelay, 0, 200 days));
        p.disputeClock = uint32(bound(p.disputeClock, 0, 46 days));
        p.moveGrace = uint32(bound(p.moveGrace, 0, 1 days));
        p.moveBlocks = uint32(bound(p.moveBlocks, 0, 7300));
        p.maxChallengeWindow = uint32(bound(p.maxChallengeWindow, 0, 91 days));
        p.sealWindow = uint32(bound(p.sealWindow, 0, 8 days));
        p.minChallengeWindow = uint32(bound(p.minChallengeWindow, 0, p.maxChallengeWindow));
        p.auditsPerClaimBps = uint32(bound(p.auditsPerClaimBps, 0, 110_000));
        p.auditPenaltyBps = uint16(bound(p.auditPenaltyBps, 0, 11_000));
        p.beaconPeriod = uint32(bound(p.beaconPeriod, 0, 12 days));
        (p.bountyBps, p.harmBps) = (p.bountyBps % 5002, p.harmBps % 5002);
        check_exactlyTheTable(p);
    }
}
