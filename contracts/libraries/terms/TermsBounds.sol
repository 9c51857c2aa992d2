// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IJobs} from "../../interfaces/IJobs.sol";
import {JobKind, JobTerms} from "../../types/Types.sol";

/// @title Bounds of a job's terms
/// @notice They keep every loop over lanes within one transaction (P-18) and every time within a year or so (P-10).
library TermsBounds {
    uint256 internal constant MAX_STAGES = 64;
    uint256 internal constant MAX_REPLICAS = 16;
    /// @dev `accept`, the dearest loop, takes about 80,000 gas a lane; a transaction has at most 2^24 (EIP-7825).
    uint256 internal constant MAX_LANES = 128;
    /// @dev Of a training job.
    uint256 internal constant MAX_INTERVALS = 1_000_000;
    /// @dev Of a text of a serving job.
    uint256 internal constant MAX_TEXT_TOKENS = 1 << 20;
    uint256 internal constant MAX_ACCEPT_PERIOD = 30 days;
    uint256 internal constant MAX_DURATION = 365 days;
    uint256 internal constant MAX_MANIFEST_BYTES = 128;

    /// @notice Reverts with `InvalidTerms` and the name of the first field that is out of bounds.
    /// @param sno the only token beside ETH that jobs are paid in.
    function check(JobTerms calldata terms, address sno, uint256 minWindow, uint256 maxWindow, uint256 minStake)
        internal
        view
    {
        // INVARIANT: escrow is in a currency that moves exactly what it is asked to.
        if (terms.token != address(0) && terms.token != sno) revert IJobs.InvalidTerms("token");
        // INVARIANT: every lane of the job can be handled in one transaction.
        if (terms.stages == 0 || terms.stages > MAX_STAGES) revert IJobs.InvalidTerms("stages");
        if (terms.replicas == 0 || terms.replicas > MAX_REPLICAS) revert IJobs.InvalidTerms("replicas");
        if (uint256(terms.stages) * terms.replicas > MAX_LANES) revert IJobs.InvalidTerms("replicas");
        _checkWork(terms);
        // INVARIANT: nothing is locked for ever (P-10).
        if (terms.acceptBy < block.timestamp || terms.acceptBy > block.timestamp + MAX_ACCEPT_PERIOD) {
            revert IJobs.InvalidTerms("acceptBy");
        }
        if (terms.duration == 0 || terms.duration > MAX_DURATION) revert IJobs.InvalidTerms("duration");
        // INVARIANT: claims can be challenged, and stake outlasts them (P-9).
        if (terms.challengeWindow < minWindow || terms.challengeWindow > maxWindow) {
            revert IJobs.InvalidTerms("challengeWindow");
        }
        // INVARIANT: every lane has as much to lose as a challenge costs, whatever it is paid in (P-30).
        if (terms.workerStake < minStake) revert IJobs.InvalidTerms("workerStake");
        // INVARIANT: every stage has a program, and in training a state to start from; texts start from none.
        if (!_areRoots(terms.programs, terms.stages)) revert IJobs.InvalidTerms("programs");
        uint256 states = terms.kind == JobKind.Serving ? 0 : terms.stages;
        if (!_areRoots(terms.initialStates, states)) revert IJobs.InvalidTerms("initialStates");
        if (terms.manifest.length > MAX_MANIFEST_BYTES) revert IJobs.InvalidTerms("manifest");
    }

    /// @dev How much there is to do: intervals of steps, or tokens and how long a text can be.
    function _checkWork(JobTerms calldata terms) private pure {
        if (terms.intervals == 0) revert IJobs.InvalidTerms("intervals");
        if (terms.stepsPerInterval == 0) revert IJobs.InvalidTerms("stepsPerInterval");
        if (terms.kind == JobKind.Serving) {
            // INVARIANT: a stage has one program for each length, and a proof that one of them is registered is short.
            if (terms.stepsPerInterval > MAX_TEXT_TOKENS) revert IJobs.InvalidTerms("stepsPerInterval");
            // INVARIANT: texts come from nowhere; only a state is carried on (P-38).
            if (terms.continues != 0) revert IJobs.InvalidTerms("continues");
            if (terms.firstStep != 0) revert IJobs.InvalidTerms("firstStep");
            return;
        }
        if (terms.intervals > MAX_INTERVALS) revert IJobs.InvalidTerms("intervals");
        // INVARIANT: a statement's 32 bits can name every step.
        uint256 steps = uint256(terms.intervals) * terms.stepsPerInterval;
        if (steps > type(uint32).max) revert IJobs.InvalidTerms("stepsPerInterval");
        // INVARIANT: nor do steps counted from the first of several jobs outgrow them, and a job that continues none is
        // the first (P-38).
        if (terms.firstStep > (terms.continues == 0 ? 0 : type(uint32).max - steps)) {
            revert IJobs.InvalidTerms("firstStep");
        }
    }

    function _areRoots(bytes32[] calldata roots, uint256 count) private pure returns (bool) {
        if (roots.length != count) return false;
        for (uint256 i = 0; i < count; ++i) {
            if (roots[i] == 0) return false;
        }
        return true;
    }
}
