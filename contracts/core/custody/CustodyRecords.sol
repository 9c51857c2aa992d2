// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";

import {ICheckpoints} from "../../interfaces/ICheckpoints.sol";
import {ICustody} from "../../interfaces/ICustody.sol";
import {IDisputes} from "../../interfaces/IDisputes.sol";
import {IJobs} from "../../interfaces/IJobs.sol";
import {Demand} from "../../types/Custody.sol";

/// @title CustodyRecords
/// @notice Which demands are on the books, each as a hash, and whom they concern.
abstract contract CustodyRecords is ICustody {
    /// @notice The token of bonds.
    IERC20 public immutable SNO;
    /// @notice Where programs, workers and users stand.
    IJobs public immutable JOBS;
    /// @notice Where claims stand and are held.
    ICheckpoints public immutable CHECKPOINTS;
    /// @notice Who convicts.
    IDisputes public immutable DISPUTES;

    uint256 internal immutable _BOND;

    uint256 internal _demandCount;
    mapping(uint256 id => bytes32 hash) internal _demands;

    constructor(IERC20 sno, IJobs jobs, ICheckpoints checkpoints, IDisputes disputes, uint256 bond) {
        (SNO, JOBS, CHECKPOINTS, DISPUTES, _BOND) = (sno, jobs, checkpoints, disputes, bond);
    }

    /// @dev Takes a demand off the books; the last that happens to it.
    function _end(uint256 id, Demand calldata demand) internal {
        if (_demands[id] == 0 || _demands[id] != _hash(demand)) revert UnknownDemand(id);
        delete _demands[id];
    }

    function _hash(Demand memory demand) internal pure returns (bytes32) {
        return keccak256(abi.encode(demand));
    }

    function _isOpen(IJobs.State state) internal pure returns (bool) {
        return state == IJobs.State.Running || state == IJobs.State.Closing;
    }

    /// @inheritdoc ICustody
    function demandOf(uint256 id) external view returns (bytes32) {
        return _demands[id];
    }
}
