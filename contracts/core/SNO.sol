// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {ERC20} from "@openzeppelin/contracts/token/ERC20/ERC20.sol";
import {ERC20Burnable} from "@openzeppelin/contracts/token/ERC20/extensions/ERC20Burnable.sol";
import {ERC20Permit} from "@openzeppelin/contracts/token/ERC20/extensions/ERC20Permit.sol";
import {ERC20Votes} from "@openzeppelin/contracts/token/ERC20/extensions/ERC20Votes.sol";
import {Nonces} from "@openzeppelin/contracts/utils/Nonces.sol";

/// @title SNO, the token of stake and payment
/// @notice Minted once, at genesis, in equal parts. Nobody can mint more; anybody can burn their own. Its EIP-712
/// domain (permits, delegations) has its own name, so no signature for the protocol's contracts is one for the token.
contract SNO is ERC20, ERC20Permit, ERC20Votes, ERC20Burnable {
    /// @notice What each genesis recipient receives, wei of SNO.
    uint256 public constant GENESIS_SHARE = 1_000_000 ether;

    error NoRecipients();

    /// @param recipients who receives the genesis supply, `GENESIS_SHARE` for each entry.
    constructor(address[] memory recipients) ERC20("Smartnodes", "SNO") ERC20Permit("Smartnodes") {
        // INVARIANT: there is a supply.
        if (recipients.length == 0) revert NoRecipients();
        for (uint256 i = 0; i < recipients.length; ++i) {
            _mint(recipients[i], GENESIS_SHARE);
        }
    }

    /// @inheritdoc ERC20Permit
    function nonces(address owner) public view override(ERC20Permit, Nonces) returns (uint256) {
        return super.nonces(owner);
    }

    /// @dev ERC20 moves the balance, ERC20Votes the votes that go with it.
    function _update(address from, address to, uint256 value) internal override(ERC20, ERC20Votes) {
        super._update(from, to, value);
    }
}
