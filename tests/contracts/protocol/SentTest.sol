// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Delivery, Demand, DemandKind, Part} from "../../../contracts/types/Custody.sol";
import {BoundaryLogs, Claim, EdgeLog, ProgramHeader} from "../../../contracts/types/Types.sol";
import {SlowTree} from "../verifier/SlowTree.sol";
import {CustodyTest} from "./CustodyTest.sol";

/// @title A claim of which somebody knows what was sent, and demands for it
/// @notice Three micro-batches a step: a log has twelve entries, which are tensors of one, five and 67 leaves in turn.
/// The last stage has no next one, and sends nothing there.
abstract contract SentTest is CustodyTest {
    using SlowTree for bytes32[][];

    uint32 internal constant ENTRIES = 3 * STEPS;

    /// @dev Roots of the logs that cases show again and again, worked out once: each is over 292 leaves.
    mapping(bytes32 log => bytes32 root) private _roots;

    function setUp() public virtual override {
        for (uint16 stage = STAGE; stage <= KEEPER; ++stage) {
            for (uint32 interval = 0; interval < 2; ++interval) {
                _roots[_sent(stage, interval, false)] = _logRoot(stage, interval, false);
                _roots[_sent(stage, interval, true)] = _logRoot(stage, interval, true);
            }
        }
        super.setUp();
    }

    function _programAt(uint16 stage) internal pure override returns (ProgramHeader memory program) {
        program = super._programAt(stage);
        program.microBatches = 3;
        program.edges = stage == 0 ? 12 : stage == KEEPER ? 3 : 15;
    }

    function _ioAt(uint16 stage, uint32 interval) internal view override returns (bytes32) {
        return keccak256(abi.encode(_logs(stage, interval)));
    }

    // Logs

    function _sent(uint16 stage, uint32 interval, bool toNext) internal pure returns (bytes32) {
        return keccak256(abi.encode("sent", stage, interval, toNext));
    }

    function _logs(uint16 stage, uint32 interval) internal view returns (BoundaryLogs memory logs) {
        logs.fromPrevious = keccak256(abi.encode("from the previous", stage, interval));
        logs.toPrevious = _logRoot(stage, interval, false);
        logs.fromNext = keccak256(abi.encode("from the next", stage, interval));
        logs.toNext = _logRoot(stage, interval, true);
    }

    function _logRoot(uint16 stage, uint32 interval, bool toNext) private view returns (bytes32 root) {
        bytes32 log = _sent(stage, interval, toNext);
        root = _roots[log];
        if (root == 0) root = _listTree(log, ENTRIES).rootOf();
    }

    function _edgeLog(bool toNext) internal view returns (EdgeLog memory log) {
        log = EdgeLog({
            job: claim.job,
            replica: 0,
            fromStage: STAGE,
            toStage: toNext ? STAGE + 1 : STAGE - 1,
            interval: claim.interval,
            root: _logRoot(STAGE, claim.interval, toNext)
        });
    }

    /// @dev The worker's attestation of what it sent in the claim's interval.
    function _attestation(bool toNext) internal view returns (bytes memory) {
        return _sign(workers[STAGE].key, _edgeLogDigest(_edgeLog(toNext)));
    }

    // Demands

    function _sentDemand(Claim memory about, bool toNext, Part memory part)
        internal
        view
        returns (Demand memory demand)
    {
        demand = _demandNow(about.job, about.stage, about.replica, part);
        demand.kind = toNext ? DemandKind.SentToNext : DemandKind.SentToPrevious;
        (demand.claimId, demand.interval) = (checkpoints.claimId(about), about.interval);
        (demand.list, demand.tensors) = (about.io, ENTRIES);
    }

    function _demandSent(bool toNext, Part memory part) internal returns (uint256 id, Demand memory demand) {
        demand = _sentDemand(claim, toNext, part);
        ProgramHeader memory program = _programAt(claim.stage);
        vm.prank(auditor);
        id = custody.demandSent(claim, committedAt, program, toNext, part);
    }

    // Deliveries

    function _shownSent(bool toNext, uint32 tensor, uint256 first, uint256 count)
        internal
        view
        returns (Delivery memory)
    {
        return _shown(_sent(STAGE, claim.interval, toNext), ENTRIES, tensor, first, count);
    }

    /// @dev With the logs and the attestation that are the claim's.
    function _deliverSent(uint256 id, Demand memory demand, Delivery memory delivery) internal {
        bool toNext = demand.kind == DemandKind.SentToNext;
        _deliverWith(id, demand, delivery, _logs(STAGE, claim.interval), _attestation(toNext));
    }

    function _deliverWith(
        uint256 id,
        Demand memory demand,
        Delivery memory delivery,
        BoundaryLogs memory logs,
        bytes memory attestation
    ) internal {
        vm.prank(demand.holder);
        custody.deliverSent(id, demand, delivery, logs, attestation);
    }
}
