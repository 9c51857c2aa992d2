// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {ParameterBounds} from "./ParameterBounds.sol";

/// @title Bounty of a slashed stake
/// @notice Whoever convicts can be a friend of the convicted. So half of the bounty is out of its reach: it is for the
/// auditors that had sealed an answer about the lane before (P-45).
library Bounties {
    /// @notice The two halves of the bounty. The finder's takes the remainder.
    /// @param stake what is slashed, in wei of SNO
    /// @param bountyBps the bounty's share of it, in 1/10,000
    /// @return finders of whoever convicts, in wei of SNO
    /// @return auditors of the lane's auditors together, in wei of SNO
    function halves(uint256 stake, uint256 bountyBps) internal pure returns (uint256 finders, uint256 auditors) {
        uint256 bounty = stake * bountyBps / ParameterBounds.WHOLE_BPS;
        auditors = bounty / 2;
        finders = bounty - auditors;
    }
}
