// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Test} from "forge-std/Test.sol";

import {SNO} from "../../../contracts/core/SNO.sol";

contract SNOTest is Test {
    SNO private sno;
    address private alice = makeAddr("alice");
    address private bob = makeAddr("bob");

    function setUp() public {
        address[] memory recipients = new address[](3);
        (recipients[0], recipients[1], recipients[2]) = (alice, bob, address(this));
        sno = new SNO(recipients);
    }

    function test_genesis() public {
        assertEq(sno.name(), "Smartnodes");
        assertEq(sno.symbol(), "SNO");
        assertEq(sno.decimals(), 18);
        assertEq(sno.totalSupply(), 3_000_000 ether);
        assertEq(sno.balanceOf(alice), 1_000_000 ether);
        assertEq(sno.balanceOf(bob), 1_000_000 ether);
        vm.expectRevert(SNO.NoRecipients.selector);
        new SNO(new address[](0));
    }

    function testFuzz_burnLowersTheSupply(uint256 amount) public {
        amount = bound(amount, 0, 1_000_000 ether);
        vm.prank(alice);
        sno.burn(amount);
        assertEq(sno.totalSupply(), 3_000_000 ether - amount);
        assertEq(sno.balanceOf(alice), 1_000_000 ether - amount);
    }

    function test_votesFollowTheBalance() public {
        vm.prank(alice);
        sno.delegate(bob);
        assertEq(sno.getVotes(bob), 1_000_000 ether);
        vm.prank(alice);
        sno.transfer(address(this), 1 ether);
        assertEq(sno.getVotes(bob), 1_000_000 ether - 1 ether);
        vm.prank(alice);
        sno.burn(1 ether);
        assertEq(sno.getVotes(bob), 1_000_000 ether - 2 ether);
    }

    function test_permit() public {
        (address owner, uint256 key) = makeAddrAndKey("owner");
        bytes32 structHash = keccak256(
            abi.encode(
                keccak256("Permit(address owner,address spender,uint256 value,uint256 nonce,uint256 deadline)"),
                owner,
                bob,
                5,
                0,
                block.timestamp
            )
        );
        bytes32 digest = keccak256(abi.encodePacked(hex"1901", sno.DOMAIN_SEPARATOR(), structHash));
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(key, digest);
        sno.permit(owner, bob, 5, block.timestamp, v, r, s);
        assertEq(sno.allowance(owner, bob), 5);
        assertEq(sno.nonces(owner), 1);
    }
}
