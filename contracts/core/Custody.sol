// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";

import {ICheckpoints} from "../interfaces/ICheckpoints.sol";
import {ICustody} from "../interfaces/ICustody.sol";
import {IDisputes} from "../interfaces/IDisputes.sol";
import {IJobs} from "../interfaces/IJobs.sol";
import {Demand} from "../types/Custody.sol";
import {Parameters} from "../types/Parameters.sol";
import {CustodyDeliveries} from "./custody/CustodyDeliveries.sol";
import {CustodyDemands} from "./custody/CustodyDemands.sol";
import {CustodyRecords} from "./custody/CustodyRecords.sol";

/// @title Custody
/// @notice See `ICustody`. Here is what becomes of a demand that is not met. What can be demanded is in
/// `CustodyDemands`, what meets it in `CustodyDeliveries`, who attests that it has data in `CustodyHolders`.
contract Custody is CustodyDemands, CustodyDeliveries {
    using SafeERC20 for IERC20;

    constructor(IERC20 sno, IJobs jobs, ICheckpoints checkpoints, IDisputes disputes, Parameters memory p)
        CustodyRecords(sno, jobs, checkpoints, disputes, p.disputeBond)
        CustodyDemands(p.disputeClock, p.moveBlocks)
    {}

    /// @inheritdoc ICustody
    // Our own contracts, which call nobody that could come back.
    // slither-disable-next-line reentrancy-events
    function expire(uint256 id, Demand calldata demand) external nonReentrant {
        _end(id, demand);
        bool matters = _matters(demand);
        // INVARIANT: nobody is convicted before its time to answer is over, which passes only where blocks are
        // made (P-10).
        if (matters && (block.timestamp <= demand.deadline || block.number < demand.untilBlock)) {
            revert StillOpen(demand.deadline, demand.untilBlock);
        }

        emit DemandExpired(id, matters);
        if (demand.claimId != 0) CHECKPOINTS.release(demand.claimId);
        if (matters) _convict(demand);
        SNO.safeTransfer(demand.demander, _BOND);
    }

    /// @dev Whether data is still owed: the claim stands, or the job goes on; and who owes it has that claim or a stake
    /// to lose.
    function _matters(Demand calldata demand) private view returns (bool) {
        bool stands = demand.claimId == 0
            ? _isOpen(JOBS.stateOf(demand.job))
            : !DISPUTES.isConvicted(demand.job, demand.stage, demand.replica, demand.interval);
        if (!stands || _isOwnClaim(demand)) return stands;
        return !JOBS.isConvicted(demand.job, demand.holderStage, demand.holderReplica);
    }

    function _convict(Demand calldata demand) private {
        if (_isOwnClaim(demand)) {
            DISPUTES.convictSilent(
                demand.job, demand.stage, demand.replica, demand.interval, demand.claimId, demand.demander
            );
        } else {
            DISPUTES.convictHolder(
                demand.job, demand.holderStage, demand.holderReplica, demand.claimId, demand.demander
            );
        }
    }

    function _isOwnClaim(Demand calldata demand) private pure returns (bool) {
        return demand.claimId != 0 && demand.holderStage == demand.stage && demand.holderReplica == demand.replica;
    }
}
