// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IChallenges} from "../../../../contracts/interfaces/IChallenges.sol";
import {IJobs} from "../../../../contracts/interfaces/IJobs.sol";
import {Parameters} from "../../../../contracts/types/Parameters.sol";
import {Claim, JobKind} from "../../../../contracts/types/Types.sol";
import {Deployment} from "../../../../script/Deployer.sol";
import {BeaconTest} from "../BeaconTest.sol";
import {Ledger} from "../Ledger.sol";
import {ProtocolTest} from "../ProtocolTest.sol";

/// @title What has happened, counted apart from the contracts, and who is who
abstract contract State is Ledger, BeaconTest {
    uint256 public constant MAX_JOBS = 100;

    /// @dev What a lane's claims were committed at, and by whom.
    mapping(uint64 job => mapping(uint256 lane => uint64[] times)) internal _times;
    mapping(uint64 job => uint256 deposit) public depositOf;
    mapping(uint64 job => uint256 time) internal _closedAt;
    /// @dev Tokens of the vouchers that a lane has redeemed.
    mapping(uint64 job => mapping(uint256 lane => uint32 tokens)) public tokensOf;
    mapping(uint64 job => mapping(uint256 lane => uint256 time)) public redeemedAtOf;
    mapping(uint64 job => mapping(uint256 lane => bool convicted)) public convictedOn;
    mapping(uint256 challenge => Claim claim) internal _claims;
    /// @dev What replicas did: how many claims a lane has sealed, and from which on they are wrong, counted from 1; of
    /// a round, its seals, when the first was made, when the first claim was revealed and what it was, and whether
    /// another was another.
    mapping(uint64 job => mapping(uint256 lane => uint32 count)) internal _sealedOf;
    mapping(uint64 job => mapping(uint256 lane => uint32 interval)) internal _wrongFrom;
    mapping(uint64 job => mapping(uint16 stage => mapping(uint32 interval => Seen))) internal _seen;
    uint256 public seals;
    uint256 public reveals;
    uint256 public refusedSeals;
    uint256 public refusedReveals;
    uint256 public differences;
    /// @dev Of slashes and penalties, what nobody got.
    uint256 public slashedAway;
    uint256 public burns;
    uint256 public convictions;
    uint256 public receiptConvictions;
    uint256 public finalized;
    uint256 public redemptions;
    uint256 public lateRedemptions;
    uint256 public heldUpByRedemptions;
    uint256 public settled;
    uint256 public withdrawn;
    uint256 public challengesWon;
    uint256 public challengesLost;
    uint256 public silences;
    uint256 public answers;
    uint256 public asks;
    /// @dev Wei for a unit of gas.
    uint256 public baseFee = 1 gwei;
    /// @dev What was put up for the gas of a challenge's worker.
    mapping(uint256 challenge => uint256 amount) public putUpFor;
    uint256 public fundings;
    /// @dev Answers that were dearer than what was left.
    uint256 public spent;
    // Audits
    uint256 public answersSealed;
    uint256 public answersRevealed;
    uint256 public answersLate;
    /// @dev Over receipts: by the worker's word, or not, for it said something else.
    uint256 public answersConfirmed;
    uint256 public answersUnconfirmed;
    uint256 public accusations;
    uint256 public falseAccusations;
    uint256 public penalties;
    /// @dev Answers that were shown without a fee, and given up.
    uint256 public answersUnpaid;
    uint256 public answersForfeited;
    /// @dev Of requests to unstake, those that answers held back.
    uint256 public heldBackByAnswers;
    /// @dev What convictions have set aside for auditors, and shares that were paid of it.
    uint256 public sharedOf;
    uint256 public shares;
    uint256 public sharesPaid;
    /// @dev Answers that are sealed and not shown.
    mapping(address who => uint256 count) public sealedBy;
    /// @dev Fees of audits that a job has paid, and what else its budget for them holds.
    mapping(uint64 job => uint256 amount) public feesOf;
    mapping(uint64 job => uint256 amount) public budgetOf;
    // Custody
    uint256 public demands;
    uint256 public deliveries;
    /// @dev Those of what a claim says was sent.
    uint256 public sentDeliveries;
    uint256 public defaults;
    /// @dev Demands that ended because nothing was owed any more.
    uint256 public lifted;
    /// @dev Claims that were final by a lane's attestation, and without any.
    uint256 public finalizedByWorkers;
    uint256 public finalizedByNobody;
    /// @dev Demands that are open.
    mapping(bytes32 claimId => uint256 count) internal _demandsFor;

    struct Seen {
        uint256 seals;
        uint256 sealedAt;
        uint256 revealedAt;
        bytes32 newState;
        bool differ;
    }

    /// @dev Two audits of each claim, by validators whose collateral the workers can have.
    function _parameters() internal pure override returns (Parameters memory p) {
        p = super._parameters();
        (p.validatorCollateral, p.auditsPerClaimBps) = (100 ether, 20_000);
    }

    function setUp() public virtual override(Ledger, ProtocolTest) {
        super.setUp();
    }

    function _fund(address account, address spender, uint256 amount) internal override(Ledger, ProtocolTest) {
        super._fund(account, spender, amount);
    }

    /// @dev Everybody knows what crossed every boundary.
    function _ioAt(uint16 stage, uint32 interval) internal pure override returns (bytes32) {
        return keccak256(abi.encode(_plainLogs(stage, interval)));
    }

    // Who and what

    function worker(uint256 i) public view returns (address) {
        return workers[i].addr;
    }

    /// @notice The worker that never lies and answers at once, whoever asks.
    function honest() public view returns (address) {
        return workers[workers.length - 1].addr;
    }

    function deployment() external view returns (Deployment memory d) {
        (d.sno, d.staking, d.jobs, d.checkpoints, d.channels) = (sno, staking, jobs, checkpoints, channels);
        (d.disputes, d.challenges, d.custody, d.audits) = (disputes, challenges, custody, audits);
    }

    function people() public view returns (address[] memory list) {
        list = new address[](workers.length + 2);
        for (uint256 i = 0; i < workers.length; ++i) {
            list[i] = workers[i].addr;
        }
        (list[workers.length], list[workers.length + 1]) = (user, auditor);
    }

    /// @dev The first job from `seed` on that is not settled, or any, or 0 if there is none.
    function _job(uint256 seed) internal view returns (uint64 job) {
        uint64 count = jobs.jobCount();
        for (uint64 i = 0; i < count; ++i) {
            job = (uint64(seed % count) + i) % count + 1;
            if (_stateOfJob(job) != IJobs.State.Settled) return job;
        }
    }

    /// @dev The first serving job from `seed` on that runs or closes, or 0 if there is none.
    function _servingJob(uint256 seed) internal view returns (uint64 job) {
        uint64 count = jobs.jobCount();
        for (uint64 i = 0; i < count; ++i) {
            job = (uint64(seed % count) + i) % count + 1;
            IJobs.Job memory record = jobs.jobOf(job);
            if (record.kind != JobKind.Serving) continue;
            if (record.state == IJobs.State.Running || record.state == IJobs.State.Closing) return job;
        }
        return 0;
    }

    function _lane(uint64 job, uint256 seed) internal view returns (uint256 lane, uint16 stage, uint16 replica) {
        IJobs.Job memory record = jobs.jobOf(job);
        lane = seed % (uint256(record.stages) * record.replicas);
        return (lane, uint16(lane % record.stages), uint16(lane / record.stages));
    }

    // Claims and lanes

    /// @dev The claim of a lane: from some interval on it may have gone wrong.
    function _made(uint64 job, uint16 stage, uint16 replica, uint32 interval)
        internal
        view
        returns (Claim memory claim)
    {
        claim = _claim(job, stage, replica, interval);
        uint32 wrong = _wrongFrom[job][uint256(replica) * jobs.jobOf(job).stages + stage];
        if (wrong == 0) return claim;
        if (interval + 1 > wrong) claim.parentState = keccak256(abi.encode("wrong", replica, interval));
        if (interval + 1 >= wrong) claim.newState = keccak256(abi.encode("wrong", replica, interval + 1));
    }

    /// @dev From when on a round takes no more seals.
    function _sealsEnd(uint64 job, uint16 stage, uint32 interval) internal view returns (uint256) {
        uint256 sealedAt = _seen[job][stage][interval].sealedAt;
        uint256 before = interval == 0 ? sealedAt : _seen[job][stage][interval - 1].revealedAt;
        if (sealedAt == 0 || before == 0) return type(uint256).max;
        return (before > sealedAt ? before : sealedAt) + SEALING;
    }

    /// @dev The first running or closing job of several replicas from `seed` on, or 0 if there is none.
    function _replicatedJob(uint256 seed) internal view returns (uint64 job) {
        uint64 count = jobs.jobCount();
        for (uint64 i = 0; i < count; ++i) {
            job = (uint64(seed % count) + i) % count + 1;
            IJobs.Job memory record = jobs.jobOf(job);
            if (record.kind != JobKind.Training || record.replicas == 1) continue;
            if (record.state == IJobs.State.Running || record.state == IJobs.State.Closing) return job;
        }
        return 0;
    }

    function _windowOf(Claim memory claim) internal view returns (uint256) {
        return _seen[claim.job][claim.stage][claim.interval].differ ? 2 * WINDOW : WINDOW;
    }

    /// @dev A lane is paid for intervals or tokens.
    function _earned(uint64 job, uint16 stage, uint16 replica, uint256 units) internal {
        _paid(user, jobs.workerOf(job, stage, replica), jobs.jobOf(job).token, units * PRICE);
    }

    function _keyOf(address account) internal view returns (uint256 key) {
        for (uint256 i = 0; i < workers.length; ++i) {
            if (workers[i].addr == account) key = workers[i].key;
        }
    }

    /// @dev By a challenge or a demand.
    function _isHeldBack(Claim memory claim) internal view returns (bool) {
        bytes32 id = checkpoints.claimId(claim);
        if (_demandsFor[id] > 0) return true;
        for (uint256 i = 1; i <= challenges.challengeCount(); ++i) {
            IChallenges.Challenge memory c = challenges.challengeOf(i);
            if (c.claimId == id && _isOpen(c.state)) return true;
        }
        return false;
    }

    function _isOpen(IChallenges.State state) internal pure returns (bool) {
        return state != IChallenges.State.None && state < IChallenges.State.Won;
    }

    /// @dev Whether anybody shares the bounty of a lane that is convicted now.
    function _closeSeals(uint64 job, uint16 stage, uint16 replica) internal virtual returns (bool);

    /// @dev P-6: a lane's stake is taken once.
    function _convictedNow(uint64 job, uint16 stage, uint16 replica, uint256 supply) internal {
        uint256 lane = uint256(replica) * jobs.jobOf(job).stages + stage;
        address liar = jobs.workerOf(job, stage, replica);
        assertNotEq(liar, honest(), "an honest worker is never convicted");
        if (!convictedOn[job][lane]) {
            uint256 shared = _closeSeals(job, stage, replica) ? _bounty() / 2 : 0;
            sharedOf += shared;
            assertEq(supply - _supply(), _slashed(liar, shared));
        } else {
            assertEq(supply, _supply());
        }
        convictedOn[job][lane] = true;
        if (_closedAt[job] == 0) _closedAt[job] = block.timestamp;
        slashedAway += supply - _supply();
    }
}
