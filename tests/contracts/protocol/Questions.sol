// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Question, Way} from "../../../contracts/types/Challenge.sol";

/// @title Questions without hints, and what answers say of the way there
abstract contract Questions {
    function _plain(uint256 levels) internal pure returns (Question memory question) {
        question.levels = uint8(levels);
    }

    function _noWay() internal pure returns (Way memory way) {}
}
