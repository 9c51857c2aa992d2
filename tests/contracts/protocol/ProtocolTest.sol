// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Test} from "forge-std/Test.sol";

import {Audits} from "../../../contracts/core/Audits.sol";
import {Beacon} from "../../../contracts/core/Beacon.sol";
import {Challenges} from "../../../contracts/core/Challenges.sol";
import {Channels} from "../../../contracts/core/Channels.sol";
import {Checkpoints} from "../../../contracts/core/Checkpoints.sol";
import {Custody} from "../../../contracts/core/Custody.sol";
import {Disputes} from "../../../contracts/core/Disputes.sol";
import {Jobs} from "../../../contracts/core/Jobs.sol";
import {SNO} from "../../../contracts/core/SNO.sol";
import {Staking} from "../../../contracts/core/Staking.sol";
import {IJobs} from "../../../contracts/interfaces/IJobs.sol";
import {IStaking} from "../../../contracts/interfaces/IStaking.sol";
import {Holder, Holding} from "../../../contracts/types/Custody.sol";
import {Parameters} from "../../../contracts/types/Parameters.sol";
import {
    Claim,
    ClaimLink,
    EdgeLog,
    JobKind,
    JobTerms,
    Offer,
    StepStatement,
    Voucher
} from "../../../contracts/types/Types.sol";
import {Deployer, Deployment} from "../../../script/Deployer.sol";
import {PlainLists} from "./PlainLists.sol";
import {Questions} from "./Questions.sol";
import {Signatures} from "./Signatures.sol";

/// @title A deployment with a funded user, staked workers and an auditor
/// @notice Claims here are of states that nothing computed: `stateAt`. What convicts them is in `Conviction.t.sol`.
abstract contract ProtocolTest is Test, Deployer, PlainLists, Questions {
    uint128 internal constant PRICE = 3 ether;
    uint128 internal constant STAKE = 100 ether;
    uint32 internal constant WINDOW = 2 hours;
    uint32 internal constant SEALING = 6 hours;
    uint32 internal constant PERIOD = 5 minutes;
    uint32 internal constant STEPS = 4;
    /// @dev Tokens of the longest text of a serving job; no power of two.
    uint32 internal constant LONGEST = 5;
    address internal constant ETH = address(0);

    SNO internal sno;
    Staking internal staking;
    Jobs internal jobs;
    Checkpoints internal checkpoints;
    Channels internal channels;
    Disputes internal disputes;
    Challenges internal challenges;
    Custody internal custody;
    Audits internal audits;
    Beacon internal beacon;
    Parameters internal parameters;

    address internal user;
    uint256 internal userKey;
    address internal auditor = makeAddr("auditor");
    address internal stranger = makeAddr("stranger");
    Account[] internal workers;

    function setUp() public virtual {
        vm.warp(1_800_000_000);
        parameters = _parameters();
        address[] memory genesis = new address[](3);
        (genesis[0], genesis[1], genesis[2]) = (address(this), address(this), address(this));
        Deployment memory d = _deploy(address(this), parameters, genesis);
        (sno, staking, jobs, checkpoints, disputes) = (d.sno, d.staking, d.jobs, d.checkpoints, d.disputes);
        (channels, challenges, custody, audits, beacon) = (d.channels, d.challenges, d.custody, d.audits, d.beacon);
        (user, userKey) = makeAddrAndKey("user");
        for (uint256 i = 0; i < 6; ++i) {
            workers.push(makeAccount(string.concat("worker ", vm.toString(i))));
            _stake(workers[i].addr, IStaking.Role.Worker, STAKE);
        }
        vm.deal(user, 1000 ether);
        _fund(user, address(jobs), 10_000 ether);
        _fund(auditor, address(challenges), 1000 ether);
        vm.prank(auditor);
        sno.approve(address(custody), type(uint256).max);
    }

    /// @dev Without audits, and any stake will do.
    function _parameters() internal pure virtual returns (Parameters memory p) {
        p.unbondingDelay = 21 days;
        p.validatorCollateral = 1_000_000 ether;
        p.disputeClock = 12 hours;
        p.moveGrace = 20 minutes;
        p.moveBlocks = 10;
        p.disputeBond = 100 ether;
        p.minChallengeWindow = 1 hours;
        p.maxChallengeWindow = 7 days;
        p.sealWindow = SEALING;
        p.bountyBps = 5000;
        p.harmBps = 3000;
        p.minStakeIntervals = 0;
        p.auditsPerClaimBps = 0;
        p.auditFeeBps = 12_500;
        p.auditPenaltyBps = 50;
        p.beaconPeriod = PERIOD;
    }

    /// @dev Gives `amount` SNO, with an allowance.
    function _fund(address account, address spender, uint256 amount) internal virtual {
        sno.transfer(account, amount);
        vm.prank(account);
        sno.approve(spender, type(uint256).max);
    }

    function _stake(address account, IStaking.Role role, uint256 amount) internal {
        _fund(account, address(staking), amount);
        vm.prank(account);
        staking.stake(role, amount);
    }

    /// @dev Every network has one; where it is gas that is measured: what slashes leave to burn is in the slot of
    /// their number.
    function _addValidator() internal {
        _stake(makeAddr("a validator"), IStaking.Role.Validator, parameters.validatorCollateral);
    }

    /// @dev What belongs to anybody: all SNO but what is there to be burned.
    function _supply() internal view returns (uint256) {
        return sno.totalSupply() - staking.toBurn();
    }

    function _staked(address account) internal view returns (IStaking.Account memory) {
        return staking.accountOf(account, IStaking.Role.Worker);
    }

    // Jobs

    function _terms(address token, uint16 stages, uint16 replicas, uint32 intervals)
        internal
        view
        returns (JobTerms memory terms)
    {
        terms.token = token;
        (terms.stages, terms.replicas, terms.intervals, terms.stepsPerInterval) = (stages, replicas, intervals, STEPS);
        terms.acceptBy = uint40(block.timestamp + 1 hours);
        terms.duration = 2 days;
        terms.challengeWindow = WINDOW;
        terms.workerStake = STAKE;
        (terms.programs, terms.initialStates) = (new bytes32[](stages), new bytes32[](stages));
        for (uint16 stage = 0; stage < stages; ++stage) {
            terms.programs[stage] = keccak256(abi.encode(_programAt(stage)));
            terms.initialStates[stage] = _stateAt(stage, 0);
        }
        terms.manifest = "manifest";
    }

    /// @dev Terms of a serving job: each lane is paid for `tokens` at most.
    function _servingTerms(address token, uint16 stages, uint16 replicas, uint32 tokens)
        internal
        view
        returns (JobTerms memory terms)
    {
        terms = _terms(token, stages, replicas, tokens);
        (terms.kind, terms.stepsPerInterval) = (JobKind.Serving, LONGEST);
        terms.initialStates = new bytes32[](0);
    }

    /// @dev The deposit that just covers the terms at `PRICE`.
    function _cover(JobTerms memory terms) internal view returns (uint256) {
        uint256 perInterval = uint256(terms.stages) * terms.replicas * PRICE;
        uint32 units = terms.kind == JobKind.Serving ? terms.stepsPerInterval : 1;
        return perInterval * terms.intervals + _auditBudget(perInterval, terms.intervals, units);
    }

    /// @dev P-29: twice the mean of a lane's audits, rounded up, and one, each of a claim of `units`.
    function _auditBudget(uint256 perInterval, uint32 intervals, uint32 units) internal view returns (uint256) {
        if (parameters.auditsPerClaimBps == 0) return 0;
        uint256 whole = uint256(units) * 10_000;
        uint256 count = (2 * uint256(intervals) * parameters.auditsPerClaimBps + whole - 1) / whole + 1;
        return count * (perInterval * units * parameters.auditFeeBps / 10_000);
    }

    function _post(JobTerms memory terms) internal returns (uint64) {
        uint256 deposit = _cover(terms);
        vm.prank(user);
        return jobs.post{value: terms.token == ETH ? deposit : 0}(terms, deposit);
    }

    function _offer(uint64 job, uint16 stage, uint16 replica, address worker) internal view returns (Offer memory) {
        return Offer({
            job: job,
            terms: jobs.jobOf(job).terms,
            stage: stage,
            replica: replica,
            worker: worker,
            pricePerInterval: PRICE,
            expires: uint40(block.timestamp + 10 minutes)
        });
    }

    /// @dev Offers for every lane, worker i for lane i, signed.
    function _offers(uint64 job) internal view returns (Offer[] memory offers, bytes[] memory signatures) {
        IJobs.Job memory record = jobs.jobOf(job);
        uint256 lanes = uint256(record.stages) * record.replicas;
        (offers, signatures) = (new Offer[](lanes), new bytes[](lanes));
        for (uint256 i = 0; i < lanes; ++i) {
            offers[i] = _offer(job, uint16(i % record.stages), uint16(i / record.stages), workers[i].addr);
            signatures[i] = _sign(workers[i].key, _offerDigest(offers[i]));
        }
    }

    function _accept(uint64 job) internal {
        (Offer[] memory offers, bytes[] memory signatures) = _offers(job);
        vm.prank(user);
        jobs.accept(job, offers, signatures);
    }

    function _start(uint64 job) internal {
        vm.prank(user);
        jobs.start(job);
    }

    /// @dev A running job in SNO.
    function _run(uint16 stages, uint16 replicas, uint32 intervals) internal returns (uint64 job) {
        return _run(_terms(address(sno), stages, replicas, intervals));
    }

    function _run(JobTerms memory terms) internal returns (uint64 job) {
        job = _post(terms);
        _accept(job);
        _start(job);
    }

    function _stateOfJob(uint64 job) internal view returns (IJobs.State) {
        return jobs.jobOf(job).state;
    }

    /// @dev `account` collects its credit of `token`, which is `amount`.
    function _collects(address account, address token, uint256 amount) internal {
        uint256 before = token == ETH ? account.balance : sno.balanceOf(account);
        vm.prank(account);
        assertEq(jobs.collect(token), amount);
        uint256 held = token == ETH ? account.balance : sno.balanceOf(account);
        assertEq(held - before, amount);
    }

    // Claims

    function _claim(uint64 job, uint16 stage, uint16 replica, uint32 interval) internal view returns (Claim memory) {
        return Claim({
            job: job,
            stage: stage,
            replica: replica,
            interval: interval,
            parentState: _stateAt(stage, interval),
            newState: _stateAt(stage, interval + 1),
            io: _ioAt(stage, interval)
        });
    }

    /// @dev Hash of a claim's logs, which only tests of what crosses boundaries know.
    function _ioAt(uint16 stage, uint32 interval) internal view virtual returns (bytes32) {
        return keccak256(abi.encode("io", stage, interval));
    }

    function _link(Claim memory parent, uint64 committedAt) internal pure returns (ClaimLink memory) {
        return ClaimLink({parentState: parent.parentState, io: parent.io, committedAt: committedAt});
    }

    /// @dev Makes claim `interval` of a lane, whose parent was committed at `parentAt`, as its worker; where there are
    /// several replicas, all of them seal theirs first.
    function _commit(uint64 job, uint16 stage, uint16 replica, uint32 interval, uint64 parentAt)
        internal
        returns (Claim memory claim, uint64 committedAt)
    {
        claim = _claim(job, stage, replica, interval);
        ClaimLink memory link;
        if (interval > 0) link = _link(_claim(job, stage, replica, interval - 1), parentAt);
        uint16 replicas = jobs.jobOf(job).replicas;
        if (replicas == 1) {
            vm.prank(jobs.workerOf(job, stage, replica));
            checkpoints.commit(claim, link);
        } else {
            for (uint16 i = 0; i < replicas; ++i) {
                if (checkpoints.sealOf(job, stage, i, interval) == 0) _seal(_claim(job, stage, i, interval));
            }
            _reveal(claim, link);
        }
        return (claim, uint64(block.timestamp));
    }

    function _salt(Claim memory claim) internal pure returns (bytes32) {
        return keccak256(abi.encode("salt", claim.stage, claim.replica, claim.interval));
    }

    function _sealedClaim(Claim memory claim) internal view returns (bytes32) {
        return keccak256(abi.encode(checkpoints.claimId(claim), _salt(claim)));
    }

    /// @dev As the lane's worker.
    function _seal(Claim memory claim) internal {
        bytes32 sealedClaim = _sealedClaim(claim);
        vm.prank(jobs.workerOf(claim.job, claim.stage, claim.replica));
        checkpoints.seal(claim.job, claim.stage, claim.replica, claim.interval, sealedClaim);
    }

    /// @dev As the lane's worker.
    function _reveal(Claim memory claim, ClaimLink memory link) internal {
        vm.prank(jobs.workerOf(claim.job, claim.stage, claim.replica));
        checkpoints.reveal(claim, link, _salt(claim));
    }

    /// @dev Commits all claims of a lane, at once.
    function _commitAll(uint64 job, uint16 stage, uint16 replica) internal {
        uint32 intervals = jobs.jobOf(job).intervals;
        for (uint32 interval = 0; interval < intervals; ++interval) {
            _commit(job, stage, replica, interval, uint64(block.timestamp));
        }
    }

    /// @dev Finalises claims `[from, to)` of a lane, all committed at `when`.
    function _finalize(uint64 job, uint16 stage, uint16 replica, uint32 from, uint32 to, uint64 when) internal {
        (Claim[] memory claims, uint64[] memory times) = (new Claim[](to - from), new uint64[](to - from));
        for (uint32 i = from; i < to; ++i) {
            (claims[i - from], times[i - from]) = (_claim(job, stage, replica, i), when);
        }
        checkpoints.finalize(claims, times, _heldByUser(claims));
    }

    // Custody

    /// @dev The user's attestation of the state that the last of the claims ends in.
    function _heldByUser(Claim[] memory claims) internal view returns (Holder memory) {
        if (claims.length == 0) return _nobody();
        return Holder({stage: 0, replica: 0, signature: _holding(userKey, claims[claims.length - 1])});
    }

    function _nobody() internal pure returns (Holder memory) {
        return Holder({stage: 0, replica: 0, signature: ""});
    }

    /// @dev A holder's attestation of the state that a claim ends in.
    function _holding(uint256 key, Claim memory claim) internal view returns (bytes memory) {
        bytes32 claimId = Signatures.digest(block.chainid, address(checkpoints), Signatures.hash(claim));
        bytes32 hash = Signatures.hash(Holding({claimId: claimId}));
        return _sign(key, Signatures.digest(block.chainid, address(custody), hash));
    }

    // Vouchers

    /// @dev Of an epoch that begins where the lane has redeemed to.
    function _voucher(uint64 job, uint16 stage, uint16 replica, uint32 epoch, uint32 tokens)
        internal
        view
        returns (Voucher memory)
    {
        return Voucher({
            job: job,
            stage: stage,
            replica: replica,
            epoch: epoch,
            before: channels.redeemedOf(job, stage, replica).tokens,
            tokens: tokens,
            receipts: keccak256(abi.encode("receipts", stage, replica, epoch))
        });
    }

    /// @dev As the lane's worker, signed by the user.
    function _redeem(Voucher memory voucher) internal {
        bytes memory signature = _sign(userKey, _voucherDigest(voucher));
        address worker = jobs.workerOf(voucher.job, voucher.stage, voucher.replica);
        vm.prank(worker);
        channels.redeem(voucher, signature);
    }

    // Signatures

    function _sign(uint256 key, bytes32 digest) internal pure returns (bytes memory) {
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(key, digest);
        return abi.encodePacked(r, s, v);
    }

    function _offerDigest(Offer memory offer) internal view returns (bytes32) {
        return Signatures.digest(block.chainid, address(jobs), Signatures.hash(offer));
    }

    function _voucherDigest(Voucher memory voucher) internal view returns (bytes32) {
        return Signatures.digest(block.chainid, address(channels), Signatures.hash(voucher));
    }

    function _edgeLogDigest(EdgeLog memory log) internal view returns (bytes32) {
        return Signatures.digest(block.chainid, address(disputes), Signatures.hash(log));
    }

    function _statementDigest(StepStatement memory statement) internal view returns (bytes32) {
        return Signatures.digest(block.chainid, address(disputes), Signatures.hash(statement));
    }
}
