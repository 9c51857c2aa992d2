// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Test} from "forge-std/Test.sol";

/// @title Reads the cases of a vector file
/// @notice A case is named by its path in the file, as `_at` gives it; a field by what follows, with its dot.
abstract contract Cases is Test {
    string internal json;

    function _load(string memory file) internal {
        json = vm.readFile(string.concat("tests/vectors/", file));
    }

    function _at(string memory array, uint256 i) internal pure returns (string memory) {
        return string.concat(".", array, "[", vm.toString(i), "]");
    }

    function _uint(string memory c, string memory field) internal view returns (uint256) {
        return vm.parseJsonUint(json, string.concat(c, field));
    }

    function _int(string memory c, string memory field) internal view returns (int256) {
        return vm.parseJsonInt(json, string.concat(c, field));
    }

    function _word(string memory c, string memory field) internal view returns (bytes32) {
        return vm.parseJsonBytes32(json, string.concat(c, field));
    }

    function _words(string memory c, string memory field) internal view returns (bytes32[] memory) {
        return vm.parseJsonBytes32Array(json, string.concat(c, field));
    }

    function _bytes(string memory c, string memory field) internal view returns (bytes memory) {
        return vm.parseJsonBytes(json, string.concat(c, field));
    }

    function _address(string memory c, string memory field) internal view returns (address) {
        return vm.parseJsonAddress(json, string.concat(c, field));
    }
}
