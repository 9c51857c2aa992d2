// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IChannels} from "../../../../contracts/interfaces/IChannels.sol";
import {IStaking} from "../../../../contracts/interfaces/IStaking.sol";
import {Voucher} from "../../../../contracts/types/Types.sol";
import {ProtocolTest} from "../../protocol/ProtocolTest.sol";
import {Signatures} from "../../protocol/Signatures.sol";

/// @dev Who may redeem a voucher, and whose signature of what it takes (P-19).
contract VoucherSignaturesTest is ProtocolTest {
    uint32 private constant TOKENS = 100;

    uint64 private job;

    function setUp() public override {
        super.setUp();
        job = _run(_servingTerms(address(sno), 2, 2, TOKENS));
    }

    /// @dev An old voucher in another's hands would end the epoch for less than is owed.
    function test_redeem_isTheWorkers() public {
        Voucher memory voucher = _voucher(job, 0, 0, 1, 10);
        bytes memory signature = _sign(userKey, _voucherDigest(voucher));
        address[3] memory others = [workers[1].addr, user, stranger];
        for (uint256 i = 0; i < 3; ++i) {
            vm.expectRevert(abi.encodeWithSelector(IChannels.NotWorker.selector, others[i]));
            vm.prank(others[i]);
            channels.redeem(voucher, signature);
        }
        // A lane that the job has not got is nobody's.
        voucher.stage = 2;
        signature = _sign(userKey, _voucherDigest(voucher));
        vm.expectRevert(abi.encodeWithSelector(IChannels.NotWorker.selector, workers[0].addr));
        vm.prank(workers[0].addr);
        channels.redeem(voucher, signature);
    }

    /// @dev Replay across signers, chains, deployments and contracts.
    function test_redeem_refusesOtherSignatures() public {
        Voucher memory voucher = _voucher(job, 0, 0, 1, 10);
        bytes32 hash = Signatures.hash(voucher);
        _refusedSignature(voucher, _sign(workers[0].key, _voucherDigest(voucher)));
        _refusedSignature(voucher, _sign(userKey, Signatures.digest(block.chainid + 1, address(channels), hash)));
        address other = makeAddr("other deployment");
        _refusedSignature(voucher, _sign(userKey, Signatures.digest(block.chainid, other, hash)));
        _refusedSignature(voucher, _sign(userKey, Signatures.digest(block.chainid, address(jobs), hash)));
        _refusedSignature(voucher, "");

        // And signed for this chain, it is worth nothing once the chain has forked off under another id.
        bytes memory signature = _sign(userKey, _voucherDigest(voucher));
        uint256 chain = block.chainid;
        vm.chainId(chain + 1);
        _refusedSignature(voucher, signature);
        vm.chainId(chain);
        _redeem(voucher);
    }

    /// @dev Every field is signed for.
    function test_redeem_refusesChangedVouchers() public {
        Voucher memory signed = _voucher(job, 0, 0, 1, 10);
        bytes memory signature = _sign(userKey, _voucherDigest(signed));
        for (uint256 i = 0; i < 6; ++i) {
            Voucher memory voucher = _voucher(job, 0, 0, 1, 10);
            if (i == 0) voucher.stage = 1;
            if (i == 1) voucher.replica = 1;
            if (i == 2) voucher.epoch = 2;
            if (i == 3) voucher.tokens = 11;
            if (i == 4) voucher.receipts = 0;
            if (i == 5) voucher.before = 1;
            _refusedSignature(voucher, signature);
        }
        // Another job of the same user and the same worker.
        _stake(workers[0].addr, IStaking.Role.Worker, STAKE);
        signed.job = _run(_servingTerms(address(sno), 1, 1, TOKENS));
        _refusedSignature(signed, signature);
    }

    function testFuzz_redeem_refusesBadSignatures(uint256 position, uint8 flip) public {
        vm.assume(flip != 0);
        Voucher memory voucher = _voucher(job, 0, 0, 1, 10);
        bytes memory signature = _sign(userKey, _voucherDigest(voucher));
        signature[position % 65] ^= bytes1(flip);
        _refusedSignature(voucher, signature);
    }

    function _refusedSignature(Voucher memory voucher, bytes memory signature) private {
        address worker = jobs.workerOf(voucher.job, voucher.stage, voucher.replica);
        vm.expectRevert(IChannels.BadSignature.selector);
        vm.prank(worker);
        channels.redeem(voucher, signature);
    }
}
