// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";

import {SNO} from "../../../contracts/core/SNO.sol";
import {Staking} from "../../../contracts/core/Staking.sol";
import {IStaking} from "../../../contracts/interfaces/IStaking.sol";
import {Parameters} from "../../../contracts/types/Parameters.sol";
import {Test} from "forge-std/Test.sol";

/// @dev In the place of `Audits`.
contract NothingSealed {
    /// @dev No answer.
    function sealedBy(address) external pure returns (uint256) {
        return 0;
    }
}

/// @notice A slash splits what it takes to the wei, out of every state a worker's stake can be in (P-1, P-6, P-7), and
/// what unbonds stays for its whole delay (P-9). So does a penalty of a validator's collateral.
contract StakingSymbolic is Test {
    IStaking.Role private constant WORKER = IStaking.Role.Worker;
    IStaking.Role private constant VALIDATOR = IStaking.Role.Validator;
    address private constant JOBS = address(0x10b5);
    address private constant DISPUTES = address(0xd15b);
    address private constant CHALLENGER = address(0xc0);
    address private constant AUDITORS = address(0xa0);
    address private constant HARMED = address(0x4a);
    uint40 private constant DELAY = 21 days;
    uint256 private constant SUPPLY = 1_000_000 ether;

    SNO private sno;
    address private audits;

    struct Stake {
        uint128 bonded;
        uint128 unbonding;
        uint128 locked;
    }

    function setUp() public {
        address[] memory genesis = new address[](1);
        genesis[0] = address(this);
        sno = new SNO(genesis);
        audits = address(new NothingSealed());
    }

    function _staking(uint16 bountyBps, uint16 harmBps) private returns (Staking staking) {
        Parameters memory p;
        p.unbondingDelay = DELAY;
        p.validatorCollateral = 1;
        p.disputeClock = 12 hours;
        p.moveGrace = 20 minutes;
        p.moveBlocks = 50;
        p.disputeBond = 1;
        p.minChallengeWindow = 1;
        p.maxChallengeWindow = 7 days;
        p.sealWindow = 6 hours;
        p.bountyBps = bountyBps;
        p.harmBps = harmBps;
        p.minStakeIntervals = 1;
        p.auditsPerClaimBps = 1000;
        p.auditFeeBps = 12_500;
        p.auditPenaltyBps = 50;
        p.beaconPeriod = 300;
        staking = new Staking(IERC20(address(sno)), JOBS, DISPUTES, audits, p);
    }

    /// @dev Any state that a stake can be in: nothing is locked without stake behind it.
    function _stake(Staking staking, Stake memory s) private {
        uint256 whole = uint256(s.bonded) + s.unbonding;
        vm.assume(whole > 0 && whole <= SUPPLY && s.locked <= whole);
        sno.approve(address(staking), whole);
        staking.stake(WORKER, whole);
        vm.prank(JOBS);
        staking.lock(address(this), s.locked);
        if (s.unbonding > 0) staking.requestUnstake(WORKER, s.unbonding);
    }

    /// @notice Whatever is locked can be taken, from wherever it is by now; nothing else moves.
    function check_slashTakesWhatIsLocked(Stake memory s, uint128 amount) public {
        Staking staking = _staking(5000, 3000);
        _stake(staking, s);
        vm.assume(amount <= s.locked);
        assert(_slash(staking, amount, address(0), address(0), address(0)));
        unchecked {
            uint256 whole = uint256(s.bonded) + s.unbonding;
            IStaking.Account memory left = staking.accountOf(address(this), WORKER);
            assert(left.locked == s.locked - amount);
            assert(uint256(left.bonded) + left.unbonding == whole - amount && left.locked <= whole - amount);
            assert(left.unbonding == s.unbonding || left.bonded == 0);
            assert(staking.toBurn() == amount && sno.balanceOf(address(staking)) == whole);
        }
    }

    /// @notice What nobody gets can be burned by anybody, once, and nothing else with it.
    function check_burnTakesWhatIsNobodys(Stake memory s, uint128 amount, address sender) public {
        Staking staking = _staking(5000, 3000);
        _stake(staking, s);
        vm.assume(amount <= s.locked && amount > 0);
        assert(_slash(staking, amount, address(0), address(0), address(0)));
        vm.prank(sender);
        assert(staking.burn() == amount);
        unchecked {
            uint256 left = uint256(s.bonded) + s.unbonding - amount;
            assert(sno.totalSupply() == SUPPLY - amount && sno.balanceOf(address(staking)) == left);
        }
        (bool again,) = address(staking).call(abi.encodeCall(IStaking.burn, ()));
        assert(!again && staking.toBurn() == 0);
    }

    function testFuzz_burnTakesWhatIsNobodys(Stake memory s, uint128 amount, address sender) public {
        _inBounds(s, 0);
        s.locked = uint128(bound(s.locked, 1, s.bonded + s.unbonding));
        check_burnTakesWhatIsNobodys(s, uint128(bound(amount, 1, s.locked)), sender);
    }

    function testFuzz_slashTakesWhatIsLocked(Stake memory s, uint128 amount) public {
        check_slashTakesWhatIsLocked(s, _inBounds(s, amount));
    }

    /// @notice Bounty, compensation and what is burned are the whole slash; the share of nobody is burned.
    /// @dev Under the shares that leave least to burn; other shares are tested, not proven.
    function check_slashSplitsToTheWei(uint128 amount, bool hasChallenger, bool hasAuditors, bool hasHarmed) public {
        _slashSplits(9998, 1, amount, [hasChallenger, hasAuditors, hasHarmed]);
    }

    /// @dev `has`: a challenger, auditors, somebody who is harmed.
    function _slashSplits(uint16 bountyBps, uint16 harmBps, uint128 amount, bool[3] memory has) private {
        Staking staking = _staking(bountyBps, harmBps);
        _stake(staking, Stake({bonded: amount, unbonding: 0, locked: amount}));
        address challenger = has[0] ? CHALLENGER : address(0);
        address auditors = has[1] ? AUDITORS : address(0);
        assert(_slash(staking, amount, challenger, auditors, has[2] ? HARMED : address(0)));
        unchecked {
            uint256 bounty = uint256(amount) * bountyBps / 10_000;
            uint256 shared = has[1] ? bounty / 2 : 0;
            bounty = has[0] ? bounty - bounty / 2 : 0;
            uint256 harm = has[2] ? uint256(amount) * harmBps / 10_000 : 0;
            assert(sno.balanceOf(CHALLENGER) == bounty && sno.balanceOf(HARMED) == harm);
            assert(sno.balanceOf(AUDITORS) == shared);
            uint256 rest = amount - bounty - shared - harm;
            assert(staking.toBurn() == rest && sno.balanceOf(address(staking)) == rest);
        }
    }

    function testFuzz_slashSplitsToTheWei(uint128 amount, bool hasChallenger, bool hasAuditors, bool hasHarmed) public {
        amount = uint128(bound(amount, 1, SUPPLY / 2));
        uint256 state = vm.snapshotState();
        check_slashSplitsToTheWei(amount, hasChallenger, hasAuditors, hasHarmed);
        vm.revertToState(state);
        _slashSplits(5000, 3000, amount, [hasChallenger, hasAuditors, hasHarmed]);
    }

    /// @notice Whatever shares a deployment may have, together they are no more than the slash.
    function check_sharesAreWithinTheSlash(uint128 amount, uint16 bountyBps, uint16 harmBps) public pure {
        vm.assume(uint256(bountyBps) + harmBps < 10_000);
        unchecked {
            uint256 bounty = uint256(amount) * bountyBps / 10_000;
            uint256 harm = uint256(amount) * harmBps / 10_000;
            assert(bounty + harm <= amount);
        }
    }

    function testFuzz_sharesAreWithinTheSlash(uint128 amount, uint16 bountyBps, uint16 harmBps) public pure {
        bountyBps = bountyBps % 10_000;
        check_sharesAreWithinTheSlash(amount, bountyBps, harmBps % (10_000 - bountyBps));
    }

    function _slash(Staking staking, uint256 amount, address challenger, address auditors, address harmed)
        private
        returns (bool done)
    {
        vm.prank(DISPUTES);
        (done,) = address(staking)
            .call(abi.encodeCall(IStaking.slash, (address(this), amount, challenger, auditors, harmed)));
    }

    function _inBounds(Stake memory s, uint128 amount) private pure returns (uint128) {
        s.bonded = uint128(bound(s.bonded, 1, SUPPLY / 2));
        s.unbonding = uint128(bound(s.unbonding, 0, SUPPLY / 2));
        s.locked = uint128(bound(s.locked, 0, s.bonded + s.unbonding));
        return uint128(bound(amount, 0, s.locked));
    }

    /// @notice Nobody but `DISPUTES` slashes, and nobody takes more than is locked.
    function check_slashRefuses(Stake memory s, address sender, uint256 amount) public {
        Staking staking = _staking(5000, 3000);
        _stake(staking, s);
        vm.assume(sender != DISPUTES || amount > s.locked);
        vm.prank(sender);
        (bool done,) =
            address(staking).call(abi.encodeCall(IStaking.slash, (address(this), amount, CHALLENGER, AUDITORS, HARMED)));
        assert(!done);
    }

    function testFuzz_slashRefuses(Stake memory s, address sender, uint256 amount) public {
        _inBounds(s, 0);
        check_slashRefuses(s, sender, bound(amount, uint256(s.locked) + 1, type(uint256).max));
    }

    /// @notice A penalty takes what it is asked for, or all there is, wherever it is by now; nothing else moves.
    function check_penaliseTakesWhatIsThere(uint128 bonded, uint128 unbonding, uint128 amount) public {
        Staking staking = _staking(5000, 3000);
        _collateral(staking, bonded, unbonding);
        vm.prank(audits);
        uint256 taken = staking.penalise(address(this), amount, address(0));
        unchecked {
            uint256 whole = uint256(bonded) + unbonding;
            assert(taken == (amount < whole ? amount : whole));
            IStaking.Account memory left = staking.accountOf(address(this), VALIDATOR);
            assert(uint256(left.bonded) + left.unbonding == whole - taken && left.locked == 0);
            assert(left.unbonding == unbonding || left.bonded == 0);
            assert(staking.toBurn() == taken && sno.balanceOf(address(staking)) == whole);
            assert(staking.validatorCount() == (left.bonded == 0 ? 0 : 1));
        }
    }

    function testFuzz_penaliseTakesWhatIsThere(uint128 bonded, uint128 unbonding, uint128 amount) public {
        (bonded, unbonding) = (uint128(bound(bonded, 1, SUPPLY / 2)), uint128(bound(unbonding, 0, SUPPLY / 2)));
        check_penaliseTakesWhatIsThere(bonded, unbonding, uint128(bound(amount, 0, SUPPLY)));
    }

    /// @notice Bounty and what is burned are the whole penalty; the share of nobody is burned.
    /// @dev Under the share that leaves least to burn, of all that is there.
    function check_penaliseSplitsToTheWei(uint128 amount, bool hasAccuser) public {
        _penaliseSplits(9998, amount, hasAccuser);
    }

    function _penaliseSplits(uint16 bountyBps, uint128 amount, bool hasAccuser) private {
        Staking staking = _staking(bountyBps, 1);
        _collateral(staking, amount, 0);
        vm.prank(audits);
        uint256 taken = staking.penalise(address(this), amount, hasAccuser ? CHALLENGER : address(0));
        unchecked {
            uint256 bounty = hasAccuser ? uint256(amount) * bountyBps / 10_000 : 0;
            assert(taken == amount && sno.balanceOf(CHALLENGER) == bounty);
            assert(staking.toBurn() == amount - bounty && sno.balanceOf(address(staking)) == amount - bounty);
        }
    }

    function testFuzz_penaliseSplitsToTheWei(uint128 amount, bool hasAccuser) public {
        amount = uint128(bound(amount, 1, SUPPLY / 2));
        uint256 state = vm.snapshotState();
        check_penaliseSplitsToTheWei(amount, hasAccuser);
        vm.revertToState(state);
        _penaliseSplits(5000, amount, hasAccuser);
    }

    /// @dev Of one wei, the least, is enough for a validator here.
    function _collateral(Staking staking, uint128 bonded, uint128 unbonding) private {
        uint256 whole = uint256(bonded) + unbonding;
        vm.assume(whole > 0 && whole <= SUPPLY);
        sno.approve(address(staking), whole);
        staking.stake(VALIDATOR, whole);
        if (unbonding > 0) staking.requestUnstake(VALIDATOR, unbonding);
    }

    /// @notice Nobody but `AUDITS` penalises.
    function check_penaliseRefuses(uint128 bonded, uint128 unbonding, address sender, uint256 amount) public {
        Staking staking = _staking(5000, 3000);
        _collateral(staking, bonded, unbonding);
        vm.assume(sender != audits);
        vm.prank(sender);
        (bool done,) = address(staking).call(abi.encodeCall(IStaking.penalise, (address(this), amount, CHALLENGER)));
        assert(!done);
    }

    function testFuzz_penaliseRefuses(uint128 bonded, uint128 unbonding, address sender, uint256 amount) public {
        (bonded, unbonding) = (uint128(bound(bonded, 1, SUPPLY / 2)), uint128(bound(unbonding, 0, SUPPLY / 2)));
        check_penaliseRefuses(bonded, unbonding, sender, amount);
    }

    /// @notice Before its delay is over nothing leaves; after it, all but what locks need.
    function check_withdrawWaits(Stake memory s, uint32 waited) public {
        Staking staking = _staking(5000, 3000);
        vm.warp(1_700_000_000);
        _stake(staking, s);
        uint256 before = sno.balanceOf(address(this));
        vm.warp(1_700_000_000 + uint256(waited));
        (bool done,) = address(staking).call(abi.encodeCall(IStaking.withdraw, (WORKER)));
        uint256 needed = s.locked > s.bonded ? s.locked - s.bonded : 0;
        assert(done == (waited >= DELAY && s.unbonding > needed));
        uint256 paid = done ? s.unbonding - needed : 0;
        assert(sno.balanceOf(address(this)) == before + paid);
    }

    function testFuzz_withdrawWaits(Stake memory s, uint32 waited) public {
        _inBounds(s, 0);
        check_withdrawWaits(s, uint32(bound(waited, DELAY - 2, DELAY + 2)));
    }
}
