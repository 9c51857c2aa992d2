// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {ParameterBounds} from "../../../contracts/libraries/ParameterBounds.sol";
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
        bool times = p.unbondingDelay >= uint256(p.maxChallengeWindow) + p.disputePeriod && p.unbondingDelay <= 180 days;
        bool windows = p.minChallengeWindow > 0 && p.maxChallengeWindow >= p.minChallengeWindow
            && p.maxChallengeWindow <= 90 days && p.disputePeriod >= 1 && p.disputePeriod <= 90 days;
        bool money =
            p.validatorCollateral > 0 && p.disputeBond > 0 && uint256(p.bountyBps) + uint256(p.harmBps) < 10_000;
        (bool accepted,) = address(harness).staticcall(abi.encodeCall(ParameterBoundsHarness.check, (p)));
        assert(accepted == (times && windows && money));
    }

    function testFuzz_exactlyTheTable(Parameters memory p) public view {
        check_exactlyTheTable(p);
        p.unbondingDelay = uint40(bound(p.unbondingDelay, 0, 200 days));
        p.disputePeriod = uint40(bound(p.disputePeriod, 0, 91 days));
        p.maxChallengeWindow = uint32(bound(p.maxChallengeWindow, 0, 91 days));
        p.minChallengeWindow = uint32(bound(p.minChallengeWindow, 0, p.maxChallengeWindow));
        (p.bountyBps, p.harmBps) = (p.bountyBps % 5002, p.harmBps % 5002);
        check_exactlyTheTable(p);
    }
}
