// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IChallenges} from "../../../contracts/interfaces/IChallenges.sol";
import {IChannels} from "../../../contracts/interfaces/IChannels.sol";
import {ICheckpoints} from "../../../contracts/interfaces/ICheckpoints.sol";
import {IJobs} from "../../../contracts/interfaces/IJobs.sol";
import {IStaking} from "../../../contracts/interfaces/IStaking.sol";
import {Position, Subject} from "../../../contracts/types/Challenge.sol";
import {
    Claim,
    ClaimLink,
    ContradictionProof,
    JobKind,
    JobTerms,
    Offer,
    StepStatement,
    Voucher
} from "../../../contracts/types/Types.sol";
import {Deployment} from "../../../script/Deployer.sol";
import {SlowTree} from "../verifier/SlowTree.sol";
import {Ledger} from "./Ledger.sol";

/// @title Everybody doing anything, in any order
/// @notice The moves of the invariant tests. A move that is not open to anyone at the moment does nothing, so no call reverts
/// and every revert is a finding. What the contracts are checked against is counted here, apart from them.
contract Economy is Ledger {
    using SlowTree for bytes32[][];

    uint256 public constant MAX_JOBS = 40;

    /// @dev What a lane's claims were committed at, and by whom.
    mapping(uint64 job => mapping(uint256 lane => uint64[] times)) private _times;
    mapping(uint64 job => uint256 deposit) public depositOf;
    mapping(uint64 job => uint256 time) private _closedAt;
    /// @dev Tokens of the vouchers that a lane has redeemed.
    mapping(uint64 job => mapping(uint256 lane => uint32 tokens)) public tokensOf;
    mapping(uint64 job => mapping(uint256 lane => bool convicted)) public convictedOn;
    mapping(uint256 challenge => Claim claim) private _claims;
    /// @dev What replicas did: how many claims a lane has sealed, and from which on they are wrong, counted from 1; of a round, its seals,
    /// when the first was made, when the first claim was revealed and what it was, and whether another was another.
    mapping(uint64 job => mapping(uint256 lane => uint32 count)) private _sealedOf;
    mapping(uint64 job => mapping(uint256 lane => uint32 interval)) private _wrongFrom;
    mapping(uint64 job => mapping(uint16 stage => mapping(uint32 interval => Seen))) private _seen;
    uint256 public seals;
    uint256 public reveals;
    uint256 public refusedSeals;
    uint256 public refusedReveals;
    uint256 public differences;
    uint256 public burned;
    uint256 public convictions;
    uint256 public receiptConvictions;
    uint256 public finalized;
    uint256 public redemptions;
    uint256 public settled;
    uint256 public withdrawn;
    uint256 public challengesWon;
    uint256 public challengesLost;
    uint256 public silences;
    uint256 public answers;
    uint256 public asks;

    struct Seen {
        uint256 seals;
        uint256 sealedAt;
        uint256 revealedAt;
        bytes32 newState;
        bool differ;
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
        (d.disputes, d.challenges) = (disputes, challenges);
    }

    function people() external view returns (address[] memory list) {
        list = new address[](workers.length + 2);
        for (uint256 i = 0; i < workers.length; ++i) {
            list[i] = workers[i].addr;
        }
        (list[workers.length], list[workers.length + 1]) = (user, auditor);
    }

    /// @dev The first job from `seed` on that is not settled, or any, or 0 if there is none.
    function _job(uint256 seed) private view returns (uint64 job) {
        uint64 count = jobs.jobCount();
        for (uint64 i = 0; i < count; ++i) {
            job = (uint64(seed % count) + i) % count + 1;
            if (_stateOfJob(job) != IJobs.State.Settled) return job;
        }
    }

    /// @dev The first serving job from `seed` on that runs or closes, or 0 if there is none.
    function _servingJob(uint256 seed) private view returns (uint64 job) {
        uint64 count = jobs.jobCount();
        for (uint64 i = 0; i < count; ++i) {
            job = (uint64(seed % count) + i) % count + 1;
            IJobs.Job memory record = jobs.jobOf(job);
            if (record.kind != JobKind.Serving) continue;
            if (record.state == IJobs.State.Running || record.state == IJobs.State.Closing) return job;
        }
        return 0;
    }

    function _lane(uint64 job, uint256 seed) private view returns (uint256 lane, uint16 stage, uint16 replica) {
        IJobs.Job memory record = jobs.jobOf(job);
        lane = seed % (uint256(record.stages) * record.replicas);
        return (lane, uint16(lane % record.stages), uint16(lane / record.stages));
    }

    // Stake

    function stake(uint256 who, bool asWorker, uint256 amount) external {
        address account = worker(who % workers.length);
        _stake(account, asWorker ? IStaking.Role.Worker : IStaking.Role.Validator, bound(amount, 1, 100 ether));
    }

    function requestUnstake(uint256 who, bool asWorker, uint256 amount) external {
        address account = worker(who % workers.length);
        IStaking.Role role = asWorker ? IStaking.Role.Worker : IStaking.Role.Validator;
        uint256 bonded = staking.accountOf(account, role).bonded;
        if (bonded == 0) return;
        vm.prank(account);
        staking.requestUnstake(role, bound(amount, 1, bonded));
    }

    function withdraw(uint256 who, bool asWorker) public {
        address account = worker(who % workers.length);
        IStaking.Role role = asWorker ? IStaking.Role.Worker : IStaking.Role.Validator;
        IStaking.Account memory a = staking.accountOf(account, role);
        uint256 needed = a.locked > a.bonded ? a.locked - a.bonded : 0;
        if (a.unbonding <= needed || block.timestamp < a.releaseAt) return;
        vm.prank(account);
        assertEq(staking.withdraw(role), a.unbonding - needed);
        ++withdrawn;
    }

    // Jobs

    /// @param progress how far the job gets at once: posted, accepted or started. Else few would get that far in a walk.
    function post(bool inEth, uint256 shape, uint256 extra, uint256 progress) external {
        if (jobs.jobCount() >= MAX_JOBS) return;
        (uint16 stages, uint16 replicas) = (uint16(shape % 2) + 1, uint16(shape / 2 % 2) + 1);
        (address token, uint32 count) = (inEth ? ETH : address(sno), uint32(shape / 4 % 3) + 1);
        JobTerms memory terms = shape / 12 % 4 == 0
            ? _servingTerms(token, stages, replicas, 20 * count)
            : _terms(token, stages, replicas, count);
        (terms.acceptBy, terms.duration) = (uint40(block.timestamp + 10 days), 20 days);
        uint256 deposit = _cover(terms) + extra % 1 ether;
        if (inEth) {
            vm.deal(user, user.balance + deposit);
            _given(user, ETH, deposit);
        } else {
            _fund(user, address(jobs), deposit);
        }
        vm.prank(user);
        uint64 job = jobs.post{value: inEth ? deposit : 0}(terms, deposit);
        depositOf[job] = deposit;
        if (progress % 4 > 0) accept(job - 1, extra);
        if (progress % 4 > 1) start(job - 1);
    }

    function accept(uint256 seed, uint256 first) public {
        uint64 job = _job(seed);
        IJobs.Job memory record = jobs.jobOf(job);
        if (record.state != IJobs.State.Posted || block.timestamp > record.acceptBy) return;
        uint256 lanes = uint256(record.stages) * record.replicas;
        (Offer[] memory offers, bytes[] memory signatures) = (new Offer[](lanes), new bytes[](lanes));
        for (uint256 i = 0; i < lanes; ++i) {
            Account memory who = workers[(first % 100 + i) % workers.length];
            IStaking.Account memory has = _staked(who.addr);
            uint256 needed = uint256(has.locked) + STAKE;
            if (has.bonded < needed) _stake(who.addr, IStaking.Role.Worker, needed - has.bonded);
            offers[i] = _offer(job, uint16(i % record.stages), uint16(i / record.stages), who.addr);
            signatures[i] = _sign(who.key, _offerDigest(offers[i]));
        }
        vm.prank(user);
        jobs.accept(job, offers, signatures);
    }

    function start(uint256 seed) public {
        uint64 job = _job(seed);
        IJobs.Job memory record = jobs.jobOf(job);
        if (record.state == IJobs.State.Accepted && block.timestamp <= record.acceptBy) _start(job);
    }

    function cancel(uint256 seed, bool byStranger) public {
        uint64 job = _job(seed);
        IJobs.Job memory record = jobs.jobOf(job);
        if (record.state == IJobs.State.None || record.state >= IJobs.State.Closing) return;
        uint40 limit = record.state == IJobs.State.Running ? record.deadline : record.acceptBy;
        // The user seldom does: most jobs shall get somewhere.
        if (byStranger ? block.timestamp <= limit : seed % 8 != 0) return;
        vm.prank(byStranger ? stranger : user);
        jobs.cancel(job);
        _closedAt[job] = block.timestamp;
    }

    function settle(uint256 seed) public {
        uint64 job = _job(seed);
        IJobs.Job memory record = jobs.jobOf(job);
        if (record.state != IJobs.State.Running && record.state != IJobs.State.Closing) return;
        bool ready = record.kind == JobKind.Serving
            ? record.state == IJobs.State.Closing && block.timestamp >= record.deadline
            : _noClaimIsPending(job, record);
        if (!ready) return;
        jobs.settle(job);
        ++settled;
    }

    function _noClaimIsPending(uint64 job, IJobs.Job memory record) private view returns (bool) {
        for (uint256 lane = 0; lane < uint256(record.stages) * record.replicas; ++lane) {
            (uint16 stage, uint16 replica) = (uint16(lane % record.stages), uint16(lane / record.stages));
            if (checkpoints.hasPending(job, stage, replica)) return false;
            uint32 done = checkpoints.laneOf(job, stage, replica).finalized;
            bool late = _sealedOf[job][lane] == done && block.timestamp >= _sealsEnd(job, stage, done);
            if (record.state == IJobs.State.Running && done != record.intervals && !late) return false;
        }
        return true;
    }

    function collect(uint256 who, bool inEth) public {
        address account = who % 7 == 6 ? user : worker(who % 7 % workers.length);
        address token = inEth ? ETH : address(sno);
        if (jobs.creditOf(account, token) == 0) return;
        vm.prank(account);
        jobs.collect(token);
    }

    // Claims

    /// @dev Now and then somebody challenges the claim at once; in a walk few of them would be met in their window.
    function commit(uint256 seed, uint256 laneSeed, uint256 chance) external {
        uint64 job = _job(seed);
        IJobs.Job memory record = jobs.jobOf(job);
        if (record.state != IJobs.State.Running || block.timestamp > record.deadline) return;
        if (record.kind != JobKind.Training || record.replicas > 1) return;
        (uint256 lane, uint16 stage, uint16 replica) = _lane(job, laneSeed);
        uint64[] storage times = _times[job][lane];
        if (times.length == record.intervals) return;
        (Claim memory claim, uint64 when) =
            _commit(job, stage, replica, uint32(times.length), times.length == 0 ? 0 : times[times.length - 1]);
        times.push(when);
        if (chance % 4 == 0) _open(claim, when);
    }

    // Claims of replicas

    /// @dev The claim of a lane: from some interval on it may have gone wrong.
    function _made(uint64 job, uint16 stage, uint16 replica, uint32 interval)
        private
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
    function _sealsEnd(uint64 job, uint16 stage, uint32 interval) private view returns (uint256) {
        uint256 sealedAt = _seen[job][stage][interval].sealedAt;
        uint256 before = interval == 0 ? sealedAt : _seen[job][stage][interval - 1].revealedAt;
        if (sealedAt == 0 || before == 0) return type(uint256).max;
        return (before > sealedAt ? before : sealedAt) + SEALING;
    }

    /// @dev The first running or closing job of several replicas from `seed` on, or 0 if there is none.
    function _replicatedJob(uint256 seed) private view returns (uint64 job) {
        uint64 count = jobs.jobCount();
        for (uint64 i = 0; i < count; ++i) {
            job = (uint64(seed % count) + i) % count + 1;
            IJobs.Job memory record = jobs.jobOf(job);
            if (record.kind != JobKind.Training || record.replicas == 1) continue;
            if (record.state == IJobs.State.Running || record.state == IJobs.State.Closing) return job;
        }
        return 0;
    }

    /// @dev A lane seals its next claim, now and then the first wrong one. Who is too late is refused.
    function seal(uint256 seed, uint256 laneSeed, uint256 chance) external {
        uint64 job = _replicatedJob(seed);
        if (job == 0) return;
        IJobs.Job memory record = jobs.jobOf(job);
        if (record.state != IJobs.State.Running || block.timestamp > record.deadline) return;
        (uint256 lane, uint16 stage, uint16 replica) = _lane(job, laneSeed);
        uint32 next = _sealedOf[job][lane];
        if (next == record.intervals) return;
        if (chance % 8 == 0 && _wrongFrom[job][lane] == 0) _wrongFrom[job][lane] = next + 1;
        if (block.timestamp >= _sealsEnd(job, stage, next)) {
            Claim memory late = _made(job, stage, replica, next);
            vm.expectRevert(abi.encodeWithSelector(ICheckpoints.SealingOver.selector, next));
            this.sealAsWorker(late);
            ++refusedSeals;
            return;
        }
        Seen storage seen = _seen[job][stage][next];
        assertEq(seen.revealedAt, 0, "nothing is sealed after a reveal");
        _seal(_made(job, stage, replica, next));
        if (seen.seals++ == 0) seen.sealedAt = block.timestamp;
        ++_sealedOf[job][lane];
        ++seals;
    }

    /// @dev In one call, for a revert that is expected.
    function sealAsWorker(Claim memory claim) external {
        _seal(claim);
    }

    /// @dev The same.
    function revealAsWorker(Claim memory claim, ClaimLink memory link) external {
        _reveal(claim, link);
    }

    /// @dev A lane reveals what it sealed next, or is refused while others can still seal.
    function reveal(uint256 seed, uint256 laneSeed, uint256 chance) public {
        uint64 job = _replicatedJob(seed);
        if (job == 0) return;
        (uint256 lane, uint16 stage, uint16 replica) = _lane(job, laneSeed);
        uint32 next = uint32(_times[job][lane].length);
        bool void = next >= checkpoints.laneOf(job, stage, replica).voidFrom;
        if (next == _sealedOf[job][lane] || void) return;
        Claim memory claim = _made(job, stage, replica, next);
        ClaimLink memory link;
        if (next > 0) link = _link(_made(job, stage, replica, next - 1), _times[job][lane][next - 1]);
        if (!_sealsAreIn(job, stage, next)) {
            vm.expectRevert();
            this.revealAsWorker(claim, link);
            ++refusedReveals;
            return;
        }
        _reveal(claim, link);
        _revealedNow(job, lane, claim);
        if (chance % 4 == 0) _open(claim, uint64(block.timestamp));
    }

    function _sealsAreIn(uint64 job, uint16 stage, uint32 interval) private view returns (bool) {
        IJobs.Job memory record = jobs.jobOf(job);
        if (record.state == IJobs.State.Closing) return block.timestamp <= _closedAt[job] + SEALING;
        if (block.timestamp > record.deadline || block.timestamp >= _sealsEnd(job, stage, interval)) return true;
        uint256 all = interval == 0 ? record.replicas : _seen[job][stage][interval - 1].seals;
        return _seen[job][stage][interval].seals == all;
    }

    function _revealedNow(uint64 job, uint256 lane, Claim memory claim) private {
        _times[job][lane].push(uint64(block.timestamp));
        ++reveals;
        Seen storage seen = _seen[job][claim.stage][claim.interval];
        if (seen.revealedAt == 0) {
            (seen.revealedAt, seen.newState) = (block.timestamp, claim.newState);
        } else if (seen.newState != claim.newState) {
            seen.differ = true;
            ++differences;
        }
        assertEq(checkpoints.windowOf(job, claim.stage, claim.interval), _windowOf(claim));
    }

    function _windowOf(Claim memory claim) private view returns (uint256) {
        return _seen[claim.job][claim.stage][claim.interval].differ ? 2 * WINDOW : WINDOW;
    }

    /// @dev Finalises what can be of a lane's next claim.
    function finalize(uint256 seed, uint256 laneSeed) public {
        uint64 job = _job(seed);
        if (jobs.jobOf(job).state < IJobs.State.Running) return;
        (uint256 lane, uint16 stage, uint16 replica) = _lane(job, laneSeed);
        uint32 next = checkpoints.laneOf(job, stage, replica).finalized;
        uint64[] storage times = _times[job][lane];
        if (next >= times.length || next >= checkpoints.laneOf(job, stage, replica).voidFrom) return;
        (Claim[] memory claims, uint64[] memory when) = (new Claim[](1), new uint64[](1));
        (claims[0], when[0]) = (_made(job, stage, replica, next), times[next]);
        if (block.timestamp < when[0] + _windowOf(claims[0]) || _isChallenged(claims[0])) return;
        checkpoints.finalize(claims, when);
        _earned(job, stage, replica, 1);
        ++finalized;
    }

    /// @dev A lane is paid for intervals or tokens.
    function _earned(uint64 job, uint16 stage, uint16 replica, uint256 units) private {
        _paid(user, jobs.workerOf(job, stage, replica), jobs.jobOf(job).token, units * PRICE);
    }

    // Vouchers

    /// @dev A lane redeems more than it has, of this epoch or of a later one, and then tries the same again.
    function redeem(uint256 seed, uint256 laneSeed, uint256 amount, uint256 epochs) external {
        uint64 job = _servingJob(seed);
        if (job == 0) return;
        (uint256 lane, uint16 stage, uint16 replica) = _lane(job, laneSeed);
        (uint32 paid, uint32 most) = (tokensOf[job][lane], jobs.jobOf(job).intervals);
        if (paid == most) return;
        uint32 epoch = channels.redeemedOf(job, stage, replica).epoch + 1 + uint32(epochs % 3);
        Voucher memory voucher = _voucher(job, stage, replica, epoch, uint32(bound(amount, paid + 1, most)));
        bytes memory signature = _sign(userKey, _voucherDigest(voucher));

        vm.startPrank(jobs.workerOf(job, stage, replica));
        if (convictedOn[job][lane]) {
            vm.expectRevert(abi.encodeWithSelector(IJobs.LaneConvicted.selector, stage, replica));
            channels.redeem(voucher, signature);
        } else {
            channels.redeem(voucher, signature);
            tokensOf[job][lane] = voucher.tokens;
            _earned(job, stage, replica, voucher.tokens - paid);
            ++redemptions;
            vm.expectRevert(abi.encodeWithSelector(IChannels.EpochOver.selector, epoch));
            channels.redeem(voucher, signature);
        }
        vm.stopPrank();
    }

    /// @dev The worker signs about a text that its states are not those of a receipt. A lane may be convicted twice.
    function convictReceipt(uint256 seed, uint256 laneSeed, uint256 chance) external {
        uint64 job = _servingJob(seed);
        if (job == 0 || chance % 8 != 0) return;
        (, uint16 stage, uint16 replica) = _lane(job, laneSeed);
        if (jobs.workerOf(job, stage, replica) == honest()) return;
        Claim memory receipt;
        (receipt.job, receipt.stage, receipt.replica, receipt.interval) = (job, stage, replica, uint32(chance >> 8));
        _convictOver(receipt, 0, 1 + uint32(seed % LONGEST));
        ++receiptConvictions;
    }

    // Challenges

    function openChallenge(uint256 seed, uint256 laneSeed) public {
        (bool live, Claim memory claim, uint64 when) = _liveClaim(seed, laneSeed, true);
        if (live) _open(claim, when);
    }

    function _open(Claim memory claim, uint64 when) private {
        if (block.timestamp >= when + _windowOf(claim)) return;
        _fund(auditor, address(challenges), parameters.disputeBond);
        vm.prank(auditor);
        uint256 id = challenges.open(claim, when, 2);
        _claims[id] = claim;
        _follow();
        _answerIfHonest(id);
    }

    /// @dev The first challenge from `seed` on in which it is this side's turn, and not too late; 0 if there is none.
    function _toMove(uint256 seed, IChallenges.State state) private view returns (uint256 id) {
        uint256 count = challenges.challengeCount();
        for (uint256 i = 0; i < count; ++i) {
            id = (seed % count + i) % count + 1;
            IChallenges.Challenge memory c = challenges.challengeOf(id);
            if (c.state == state && block.timestamp < c.deadline) return id;
        }
        return 0;
    }

    /// @dev The worker tells the states of its claim, or what it has told before. Statements it does not sign here.
    function answer(uint256 seed) external {
        uint256 id = _toMove(seed, IChallenges.State.Answering);
        if (id != 0 && positions[id].subject == Subject.Steps) _answer(id);
    }

    function _answerIfHonest(uint256 id) private {
        if (challenges.challengeOf(id).worker == honest()) _answer(id);
    }

    function _answer(uint256 id) private {
        Position memory p = positions[id];
        (Claim memory claim, bytes32[] memory states) = (_claims[id], new bytes32[](STEPS));
        for (uint32 i = 0; i + 1 < STEPS; ++i) {
            states[i] = keccak256(abi.encode(id, i));
        }
        states[STEPS - 1] = claim.newState;
        bytes32[][] memory tree = SlowTree.ofDigests(states);
        address who = challenges.challengeOf(id).worker;
        vm.prank(who);
        if (p.node == 0) {
            challenges.answerSteps(id, p, claim, tree.rootOf(), tree.path(STEPS - 1), abi.encodePacked(states));
        } else {
            challenges.answer(id, p, abi.encodePacked(states));
        }
        ++answers;
        _follow();
    }

    /// @dev The challenger asks for the same once more, until it may not.
    function ask(uint256 seed) external {
        uint256 id = _toMove(seed, IChallenges.State.Asking);
        if (id == 0 || seed % 4 == 0 || challenges.challengeOf(id).asks == 32) return;
        vm.prank(auditor);
        challenges.askTree(id, positions[id], factsOf[id], Subject.Steps, 2);
        ++asks;
        _follow();
        _answerIfHonest(id);
    }

    /// @dev Ends the first challenge from `seed` on that can be ended.
    function timeout(uint256 seed) public {
        uint256 count = challenges.challengeCount();
        for (uint256 i = 0; i < count; ++i) {
            uint256 id = (seed % count + i) % count + 1;
            IChallenges.Challenge memory c = challenges.challengeOf(id);
            if (c.state != IChallenges.State.Asking && c.state != IChallenges.State.Answering) continue;
            bool void = disputes.isConvicted(c.job, c.stage, c.replica, c.interval);
            if (!void && block.timestamp < c.deadline) continue;
            vm.roll(block.number + parameters.moveBlocks);
            _end(id, c, void);
            return;
        }
    }

    function _end(uint256 id, IChallenges.Challenge memory c, bool void) private {
        (uint256 supply, uint256 bondOfWorker) = (sno.totalSupply(), sno.balanceOf(c.worker));
        challenges.timeout(id);
        if (void || c.state == IChallenges.State.Answering) {
            ++challengesWon;
            if (!void) _convictedNow(c.job, c.stage, c.replica, supply);
            if (!void) ++silences;
        } else {
            ++challengesLost;
            assertEq(sno.balanceOf(c.worker) - bondOfWorker, c.bond);
            _paid(c.challenger, c.worker, address(sno), c.bond);
        }
    }

    /// @dev P-6: a lane's stake is taken once.
    function _convictedNow(uint64 job, uint16 stage, uint16 replica, uint256 supply) private {
        uint256 lane = uint256(replica) * jobs.jobOf(job).stages + stage;
        address liar = jobs.workerOf(job, stage, replica);
        assertNotEq(liar, honest(), "an honest worker is never convicted");
        assertEq(supply - sno.totalSupply(), convictedOn[job][lane] ? 0 : _slashed(liar));
        convictedOn[job][lane] = true;
        if (_closedAt[job] == 0) _closedAt[job] = block.timestamp;
        burned += supply - sno.totalSupply();
    }

    // Proofs

    /// @dev The worker contradicts itself in what it signs, now and then after somebody has challenged it.
    function convict(uint256 seed, uint256 laneSeed, uint256 chance) external {
        (bool live, Claim memory claim, uint64 when) = _liveClaim(seed, laneSeed, chance / 4 % 2 == 0);
        if (!live || chance % 2 == 0 || jobs.workerOf(claim.job, claim.stage, claim.replica) == honest()) return;
        if (chance / 2 % 2 == 0) _open(claim, when);
        _convictOver(claim, when, claim.interval * STEPS);
        ++convictions;
    }

    /// @dev By a statement about `step` that starts from no state that anybody knows.
    function _convictOver(Claim memory claim, uint64 when, uint32 step) private {
        StepStatement memory lie = StepStatement({
            claimId: checkpoints.claimId(claim),
            auditor: auditor,
            step: step,
            preState: keccak256("a lie"),
            postState: 0,
            trace: 0
        });
        address liar = jobs.workerOf(claim.job, claim.stage, claim.replica);
        ContradictionProof memory proof;
        (proof.claim, proof.committedAt, proof.first) = (claim, when, lie);
        proof.firstSignature = _sign(_keyOf(liar), _statementDigest(lie));
        uint256 supply = sno.totalSupply();
        disputes.proveSignedContradiction(proof);
        _convictedNow(claim.job, claim.stage, claim.replica, supply);
    }

    function _keyOf(address account) private view returns (uint256 key) {
        for (uint256 i = 0; i < workers.length; ++i) {
            if (workers[i].addr == account) key = workers[i].key;
        }
    }

    /// @dev The last claim or the next to be final of the first lane, by job from `seed` on, that has one. `inWindow`: one that can
    /// still be challenged.
    function _liveClaim(uint256 seed, uint256 laneSeed, bool inWindow)
        private
        view
        returns (bool, Claim memory claim, uint64)
    {
        uint64 count = jobs.jobCount();
        for (uint64 i = 0; i < count; ++i) {
            uint64 job = (uint64(seed % count) + i) % count + 1;
            (uint256 lane, uint16 stage, uint16 replica) = _lane(job, laneSeed);
            uint64[] storage times = _times[job][lane];
            uint256 interval = checkpoints.laneOf(job, stage, replica).finalized;
            // What is sealed is not a claim yet.
            if (!checkpoints.hasPending(job, stage, replica) || interval == times.length) continue;
            if (seed % 2 == 0 && checkpoints.laneOf(job, stage, replica).voidFrom >= times.length) {
                interval = times.length - 1;
            }
            claim = _made(job, stage, replica, uint32(interval));
            if (inWindow && block.timestamp >= times[interval] + _windowOf(claim)) continue;
            return (true, claim, times[interval]);
        }
        return (false, claim, 0);
    }

    function _isChallenged(Claim memory claim) private view returns (bool) {
        bytes32 id = checkpoints.claimId(claim);
        for (uint256 i = 1; i <= challenges.challengeCount(); ++i) {
            IChallenges.Challenge memory c = challenges.challengeOf(i);
            bool open = c.state == IChallenges.State.Asking || c.state == IChallenges.State.Answering;
            if (c.claimId == id && open) return true;
        }
        return false;
    }

    // Time

    function pass(uint256 time) external {
        skip(bound(time, 1, 3 hours));
    }

    function passLong(uint256 time) external {
        skip(bound(time, 1, 48) * 1 hours);
    }

    /// @dev P-10: everything ends, with nobody's help but the clock's: strangers cancel, time out, finalise and settle.
    function everythingEnds() external {
        skip(21 days);
        for (uint64 job = 1; job <= jobs.jobCount(); ++job) {
            cancel(job - 1, true);
        }
        for (uint256 i = 0; i < challenges.challengeCount(); ++i) {
            timeout(i);
        }
        for (uint256 id = 1; id <= challenges.challengeCount(); ++id) {
            IChallenges.State state = challenges.challengeOf(id).state;
            assertTrue(state == IChallenges.State.Won || state == IChallenges.State.Lost, "every game ends");
        }
        // Some reveal what they sealed, others never do.
        for (uint64 job = 1; job <= jobs.jobCount(); job += 2) {
            for (uint256 k = 0; k < 12; ++k) {
                if (_stateOfJob(job) == IJobs.State.Closing) reveal(job - 1, k, 1);
            }
        }
        skip(SEALING + 1);
        for (uint64 job = 1; job <= jobs.jobCount(); ++job) {
            for (uint256 k = 0; k < 12; ++k) {
                finalize(job - 1, k);
            }
            settle(job - 1);
            assertEq(uint8(_stateOfJob(job)), uint8(IJobs.State.Settled));
        }
        for (uint256 i = 0; i < 7; ++i) {
            collect(i, true);
            collect(i, false);
        }
        for (uint256 i = 0; i < workers.length; ++i) {
            _unstakeAll(worker(i), IStaking.Role.Worker);
            _unstakeAll(worker(i), IStaking.Role.Validator);
        }
        skip(parameters.unbondingDelay);
        for (uint256 i = 0; i < workers.length; ++i) {
            withdraw(i, true);
            withdraw(i, false);
        }
    }

    function _unstakeAll(address account, IStaking.Role role) private {
        uint256 bonded = staking.accountOf(account, role).bonded;
        if (bonded == 0) return;
        vm.prank(account);
        staking.requestUnstake(role, bonded);
    }
}
