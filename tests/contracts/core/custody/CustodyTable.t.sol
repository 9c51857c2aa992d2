// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {ICheckpoints} from "../../../../contracts/interfaces/ICheckpoints.sol";
import {ICustody} from "../../../../contracts/interfaces/ICustody.sol";
import {IJobs} from "../../../../contracts/interfaces/IJobs.sol";
import {Delivery, Demand, Holder, Part} from "../../../../contracts/types/Custody.sol";
import {BoundaryLogs, Claim, ProgramHeader} from "../../../../contracts/types/Types.sol";
import {SentTest} from "../../protocol/SentTest.sol";

/// @dev The tables of `ICustody`, every row and everything that no row has: from anywhere that a demand can stand,
/// every move by everybody.
contract CustodyTableTest is SentTest {
    uint256 private constant ID = 1;

    /// @dev What is demanded: the claim's state of its own worker, or of who signed for it; a stage's constants; what
    /// the claim says was sent.
    enum What {
        Own,
        Kept,
        Files,
        Sent
    }

    enum Move {
        Deliver,
        DeliverSent,
        Expire,
        DemandAgain
    }

    What private what;
    Demand private demand;
    bool private wasDemanded;
    bool private isOpen;
    bool private isVoid;
    bool private isFinal;
    bool private isSettled;
    mapping(uint16 stage => bool convicted) private isConvicted;
    /// @dev What is shown of the claim's state, and of what it says was sent.
    mapping(What demanded => Delivery delivery) private shown;
    BoundaryLogs private sentLogs;
    bytes private sentAttestation;

    function setUp() public override {
        super.setUp();
        // Whoever wants to demand something can pay for it.
        _fund(workers[STAGE].addr, address(custody), BOND);
        _fund(workers[KEEPER].addr, address(custody), BOND);
        _fund(stranger, address(custody), BOND);
        (shown[What.Own], shown[What.Kept]) = (_shownOwn(), _shownOwn());
        shown[What.Sent] = _shownSent(true, 1, 3, 1);
        (sentLogs, sentAttestation) = (_logs(STAGE, 0), _attestation(true));
    }

    /// forge-config: default.fuzz.runs = 512
    function testFuzz_everyMoveFromEverywhere(uint256 seed) public {
        // Fuzzers like small numbers, which leave high bits zero.
        _goSomewhere(uint256(keccak256(abi.encode(seed))));
        address[4] memory anybody = [workers[STAGE].addr, workers[KEEPER].addr, auditor, stranger];
        for (uint8 move = 0; move <= uint8(Move.DemandAgain); ++move) {
            for (uint256 i = 0; i < anybody.length; ++i) {
                uint256 snapshot = vm.snapshotState();
                _move(Move(move), anybody[i]);
                vm.revertToState(snapshot);
            }
        }
    }

    // Where a demand can stand

    function _goSomewhere(uint256 seed) private {
        what = What(seed % 4);
        uint16 stage = what == What.Kept || (what == What.Files && (seed >> 8) % 2 == 0) ? KEEPER : STAGE;
        if (what == What.Files) shown[what] = _shown(_constants(stage), 2, 1, 3, 1);
        demand = _demandOf(stage, auditor);
        wasDemanded = (seed >> 16) % 8 != 0;
        isOpen = wasDemanded;
        if (wasDemanded) _make(Move.DemandAgain, auditor);
        if ((seed >> 24) % 4 == 0) _convictOtherwise(stage);
        if ((seed >> 32) % 4 == 0) {
            _refute(claim, committedAt);
            (isVoid, isConvicted[STAGE]) = (true, true);
        }
        uint256 end = (seed >> 40) % 4;
        if (isOpen && end < 2) _endDemand(end == 0);
        if ((seed >> 48) % 2 == 0) _makeFinal();
        if ((seed >> 56) % 2 == 0) _settle();
        _goToSomeTime(seed >> 64);
    }

    /// @dev A lane loses its stake over another claim than the one that the demand is about.
    function _convictOtherwise(uint16 stage) private {
        (Claim memory other, uint64 when) = _commit(job, stage, 0, stage == STAGE ? 1 : 0, committedAt);
        _refute(other, when);
        isConvicted[stage] = true;
    }

    /// @dev It is met, or nobody has met it.
    function _endDemand(bool delivered) private {
        if (!delivered && _isOwed()) {
            _toEnd(demand);
            isConvicted[demand.holderStage] = true;
            isVoid = isVoid || _isOwn();
        }
        Move move = !delivered ? Move.Expire : what == What.Sent ? Move.DeliverSent : Move.Deliver;
        _make(move, demand.holder);
        isOpen = false;
    }

    function _makeFinal() private {
        if (isVoid || (isOpen && what != What.Files)) return;
        skip(WINDOW);
        _finalizeBy(claim, committedAt, Holder(0, 0, _holding(userKey, claim)));
        isFinal = true;
    }

    function _settle() private {
        if (!isVoid && !isFinal) return;
        if (_stateOfJob(job) == IJobs.State.Running) {
            vm.prank(user);
            jobs.cancel(job);
        }
        jobs.settle(job);
        isSettled = true;
    }

    /// @dev Up to a limit, to the second and to the block, and beyond it: the demand's, or that to when something can
    /// be demanded.
    function _goToSomeTime(uint256 noise) private {
        vm.roll(block.number + noise % (parameters.moveBlocks + 2));
        noise >>= 8;
        uint256 limit = noise % 3 == 0 ? uint256(committedAt) + 2 * WINDOW : demand.deadline;
        uint256 time = (noise >> 8) % 5;
        if (time == 0 || block.timestamp >= limit) return;
        vm.warp(time == 1 ? block.timestamp + (noise >> 16) % (limit - block.timestamp) : limit + time - 3);
    }

    // Moves

    function _move(Move move, address who) private {
        (bytes32 before, bytes32 keepers) = (_seen(), _keepersLane());
        uint256[6] memory money = _money();
        bytes4 refusal = _refusal(move, who);
        (bool done, bytes memory reason) = _make(move, who);
        assertEq(bytes4(reason), refusal);
        assertEq(done, refusal == 0);
        if (!done) {
            assertEq(_seen(), before);
            return;
        }
        bool convicts = move == Move.Expire && _isOwed();
        _pay(money, move, convicts, who);
        if (move == Move.DemandAgain) {
            Demand memory again = _demandOf(demand.holderStage, who);
            assertEq(custody.demandOf(wasDemanded ? ID + 1 : ID), keccak256(abi.encode(again)));
        } else {
            assertEq(custody.demandOf(ID), 0);
            isOpen = false;
        }
        if (convicts) isConvicted[demand.holderStage] = true;
        if (convicts && _isOwn()) isVoid = true;
        assertEq(jobs.isConvicted(job, demand.holderStage, 0), isConvicted[demand.holderStage]);
        assertEq(disputes.isConvicted(job, STAGE, 0, 0), isVoid);
        assertEq(_keepersLane(), keepers, "what is withheld of others' claims voids none");
        if (convicts) assertEq(uint8(_stateOfJob(job)), uint8(IJobs.State.Closing));
        if (!isVoid && !isFinal) _waits(what != What.Files && (isOpen || move == Move.DemandAgain));
    }

    /// @dev Who has what after a move; of who held what before it.
    function _pay(uint256[6] memory money, Move move, bool convicts, address who) private view {
        address to = move == Move.Expire ? demand.demander : who;
        uint256 i = to == workers[STAGE].addr ? 0 : to == workers[KEEPER].addr ? 1 : to == auditor ? 2 : 3;
        if (move == Move.DemandAgain) money[i] -= BOND;
        else money[i] += BOND;
        // A stake is taken once.
        if (convicts && !isConvicted[demand.holderStage]) {
            (money[2], money[4]) = (money[2] + STAKE / 4, money[4] + STAKE * 3 / 10);
            money[5] -= STAKE * 9 / 20;
        }
        assertEq(keccak256(abi.encode(_money())), keccak256(abi.encode(money)));
    }

    /// @dev Of workers, auditor, stranger and user, and all that there is.
    function _money() private view returns (uint256[6] memory money) {
        address[5] memory all = [workers[STAGE].addr, workers[KEEPER].addr, auditor, stranger, user];
        for (uint256 i = 0; i < all.length; ++i) {
            money[i] = sno.balanceOf(all[i]);
        }
        money[5] = _supply();
    }

    /// @dev The claim is final in time if nothing is demanded of it.
    function _waits(bool waits) private {
        if (block.timestamp < committedAt + 2 * WINDOW) vm.warp(committedAt + 2 * WINDOW);
        if (waits) _isHeldBack(claim, committedAt);
        else _finalizeBy(claim, committedAt, _nobody());
    }

    /// @dev All that a move could change.
    function _seen() private view returns (bytes32) {
        bytes32 demands = keccak256(abi.encode(custody.demandOf(ID), custody.demandOf(ID + 1), _money()));
        return keccak256(abi.encode(demands, checkpoints.laneOf(job, STAGE, 0), jobs.jobOf(job)));
    }

    function _keepersLane() private view returns (bytes32) {
        return keccak256(abi.encode(checkpoints.laneOf(job, KEEPER, 0)));
    }

    function _isOwn() private view returns (bool) {
        return what == What.Own || what == What.Sent;
    }

    /// @dev Whether who is asked still owes it.
    function _isOwed() private view returns (bool) {
        if (_isOwn()) return !isVoid;
        return !isConvicted[demand.holderStage] && (what == What.Files ? !isSettled : !isVoid);
    }

    /// @dev Why the tables do not have this move; zero if they have.
    function _refusal(Move move, address who) private view returns (bytes4) {
        if (move == Move.DemandAgain) return _refusalOfDemand();
        if (!isOpen) return ICustody.UnknownDemand.selector;
        if (move == Move.Expire) {
            bool inTime = block.timestamp <= demand.deadline || block.number < demand.untilBlock;
            return inTime && _isOwed() ? ICustody.StillOpen.selector : bytes4(0);
        }
        if (who != demand.holder) return ICustody.NotHolder.selector;
        return (move == Move.DeliverSent) != (what == What.Sent) ? ICustody.WrongDelivery.selector : bytes4(0);
    }

    function _refusalOfDemand() private view returns (bytes4) {
        if (what == What.Files) {
            if (isSettled) return ICustody.JobNotOpen.selector;
        } else {
            if (isFinal) return ICheckpoints.ClaimIsFinal.selector;
            if (isVoid) return ICheckpoints.ClaimIsVoid.selector;
            if (block.timestamp >= committedAt + 2 * WINDOW) return ICustody.DeadlinePassed.selector;
        }
        // Who has no stake to lose is asked for nothing but its own claims.
        return !_isOwn() && isConvicted[demand.holderStage] ? ICustody.WrongHolder.selector : bytes4(0);
    }

    /// @dev What is demanded, now and by `who`, of the lane of a stage.
    function _demandOf(uint16 stage, address who) private view returns (Demand memory made) {
        Part memory part = _part(1, 3, 1);
        if (what == What.Files) made = _filesDemand(stage, true, part);
        else if (what == What.Sent) made = _sentDemand(claim, true, part);
        else made = _stateDemand(claim, _holder(), part);
        made.demander = who;
    }

    function _holder() private view returns (Holder memory) {
        return what == What.Own ? _own() : _keeper();
    }

    function _make(Move move, address who) private returns (bool done, bytes memory reason) {
        bytes memory call = _callOf(move);
        vm.prank(who);
        return address(custody).call(call);
    }

    function _callOf(Move move) private view returns (bytes memory) {
        if (move == Move.Expire) return abi.encodeCall(ICustody.expire, (ID, demand));
        if (move == Move.Deliver) return abi.encodeCall(ICustody.deliver, (ID, demand, shown[what]));
        if (move == Move.DeliverSent) {
            return abi.encodeCall(ICustody.deliverSent, (ID, demand, shown[what], sentLogs, sentAttestation));
        }
        Part memory part = _part(1, 3, 1);
        ProgramHeader memory program = _programAt(what == What.Files ? demand.stage : STAGE);
        if (what == What.Files) {
            return abi.encodeCall(ICustody.demandFiles, (job, demand.stage, 0, program, true, part));
        }
        if (what == What.Sent) {
            return abi.encodeCall(ICustody.demandSent, (claim, committedAt, program, true, part));
        }
        return abi.encodeCall(ICustody.demandState, (claim, committedAt, program, _holder(), part));
    }
}
