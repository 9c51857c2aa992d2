// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {StepVerifier} from "../../../../contracts/core/StepVerifier.sol";
import {ICheckpoints} from "../../../../contracts/interfaces/ICheckpoints.sol";
import {IDisputes} from "../../../../contracts/interfaces/IDisputes.sol";
import {IJobs} from "../../../../contracts/interfaces/IJobs.sol";
import {IStaking} from "../../../../contracts/interfaces/IStaking.sol";
import {Claim, ContradictionProof, JobKind, WiringProof} from "../../../../contracts/types/Types.sol";
import {Cases} from "../../Cases.sol";

/// @notice Every proof that the Rust prover built (`tests/vectors/README.md`) convicts on chain of just what it says.
/// What the chain knows is mocked from the case; `Disputes`, the trees and `StepVerifier` are the real ones.
contract ProofVectorsTest is Cases {
    /// @dev What a case says of its conviction, and its claim does not.
    struct Found {
        address worker;
        address auditor;
        uint32 step;
        uint32 operatorIndex;
        uint64 element;
        int256 claimed;
        int256 recomputed;
    }

    IJobs private constant JOBS = IJobs(address(uint160(0x1001)));
    IStaking private constant STAKING = IStaking(address(uint160(0x1002)));

    /// @dev Of a proof of a wrong element, the first byte of the auditor: behind the claim and the time.
    uint256 private constant AUDITOR_AT = 120;

    ICheckpoints private checkpoints;
    IDisputes private disputes;

    function setUp() public {
        _open("proofs.json");
    }

    function _open(string memory file) private {
        _load(file);
        string memory c = _at("element", 0);
        vm.chainId(_uint(c, ".chainId"));
        checkpoints = ICheckpoints(_address(c, ".checkpoints"));
        disputes = IDisputes(_address(c, ".disputes"));
        address none = address(0);
        bytes memory arguments = abi.encode(STAKING, JOBS, checkpoints, new StepVerifier(), none, none, none);
        deployCodeTo("Disputes.sol:Disputes", arguments, address(disputes));
    }

    /// @dev Makes the chain know what the case says, and the conviction be expected.
    function _expect(string memory c, Claim memory claim, IDisputes.Fault fault) private {
        assertEq(block.chainid, _uint(c, ".chainId"), c);
        assertEq(address(checkpoints), _address(c, ".checkpoints"), c);
        assertEq(address(disputes), _address(c, ".disputes"), c);
        vm.clearMockedCalls();
        _mockJob(c, claim);
        bytes32 claimId = _word(c, ".claimId");
        _mockClaim(claimId, claim, _kindOf(c));

        _expectConvicted(claim, claimId, fault, _foundIn(c));
    }

    function _foundIn(string memory c) private view returns (Found memory) {
        return Found({
            worker: _address(c, ".worker"),
            auditor: _address(c, ".auditor"),
            step: uint32(_uint(c, ".step")),
            operatorIndex: uint32(_uint(c, ".operator")),
            element: uint64(_uint(c, ".element")),
            claimed: _int(c, ".claimed"),
            recomputed: _int(c, ".recomputed")
        });
    }

    function _expectConvicted(Claim memory claim, bytes32 claimId, IDisputes.Fault fault, Found memory f) private {
        vm.expectEmit(address(disputes));
        emit IDisputes.Convicted(
            claim.job,
            f.worker,
            f.auditor,
            claim.stage,
            claim.replica,
            claimId,
            fault,
            f.step,
            f.operatorIndex,
            f.element,
            f.claimed,
            f.recomputed
        );
    }

    function _kindOf(string memory c) private view returns (JobKind) {
        return JobKind(_uint(c, ".kind"));
    }

    /// @dev A receipt has an id, and no record: who asks for one, or voids it, fails.
    function _mockClaim(bytes32 claimId, Claim memory claim, JobKind kind) private {
        bytes memory id = abi.encode(claimId);
        bytes memory live = abi.encodeWithSelector(ICheckpoints.requireLive.selector);
        bytes memory void =
            abi.encodeCall(ICheckpoints.voidFrom, (claim.job, claim.stage, claim.replica, claim.interval));
        if (kind == JobKind.Serving) {
            vm.mockCall(address(checkpoints), abi.encodeCall(ICheckpoints.claimId, (claim)), id);
            vm.mockCallRevert(address(checkpoints), live, "no record");
            vm.mockCallRevert(address(checkpoints), void, "no record");
        } else {
            vm.mockCall(address(checkpoints), live, id);
            vm.mockCall(address(checkpoints), void, "");
        }
    }

    function _mockJob(string memory c, Claim memory claim) private {
        IJobs.Duty memory duty = IJobs.Duty({
            state: IJobs.State.Running,
            kind: _kindOf(c),
            stepsPerInterval: uint32(_uint(c, ".stepsPerInterval")),
            firstStep: 0,
            jobKey: _word(c, ".jobKey"),
            program: _word(c, ".program"),
            worker: _address(c, ".worker")
        });
        bytes memory convicted = abi.encode(duty.worker, uint256(0), address(0));
        vm.mockCall(
            address(JOBS), abi.encodeCall(IJobs.dutyOf, (claim.job, claim.stage, claim.replica)), abi.encode(duty)
        );
        vm.mockCall(address(JOBS), abi.encodeCall(IJobs.convict, (claim.job, claim.stage, claim.replica)), convicted);
    }

    /// @dev Each case in a call of its own, which gives back the memory that reading the file takes.
    function test_wrongElements() public {
        uint256 i = 0;
        while (vm.keyExistsJson(json, _at("element", i))) this.proveElement(i++);
        assertGe(i, 14);
    }

    function test_wrongElementsOfTraining() public {
        _open("training-proofs.json");
        uint256 i = 0;
        while (vm.keyExistsJson(json, _at("element", i))) this.proveElement(i++);
        assertGe(i, 11);
    }

    function proveElement(uint256 i) external {
        string memory c = _at("element", i);
        bytes memory proof = _bytes(c, ".proof");
        _expect(c, this.claimOf(proof), IDisputes.Fault.Element);
        disputes.proveSigned(proof);

        // Addressed to another auditor, it is not the worker's word any more.
        proof[AUDITOR_AT] ^= 0x01;
        vm.expectRevert(IDisputes.BadSignature.selector);
        disputes.proveSigned(proof);
    }

    /// @dev What a proof begins with (C-17).
    function claimOf(bytes calldata proof) external pure returns (Claim memory) {
        return Claim({
            job: uint64(bytes8(proof[:8])),
            stage: uint16(bytes2(proof[8:10])),
            replica: uint16(bytes2(proof[10:12])),
            interval: uint32(bytes4(proof[12:16])),
            parentState: bytes32(proof[16:48]),
            newState: bytes32(proof[48:80]),
            io: bytes32(proof[80:112])
        });
    }

    function test_wrongSinks() public {
        uint256 i = 0;
        for (string memory c = _at("wiring", 0); vm.keyExistsJson(json, c); c = _at("wiring", ++i)) {
            WiringProof memory proof = abi.decode(_bytes(c, ".proof"), (WiringProof));
            _expect(c, proof.claim, IDisputes.Fault.Wiring);
            disputes.proveSignedWiring(proof);
        }
        assertGe(i, 3);
    }

    function test_contradictions() public {
        uint256 i = 0;
        for (string memory c = _at("contradiction", 0); vm.keyExistsJson(json, c); c = _at("contradiction", ++i)) {
            ContradictionProof memory proof = abi.decode(_bytes(c, ".proof"), (ContradictionProof));
            _expect(c, proof.claim, IDisputes.Fault.Contradiction);
            disputes.proveSignedContradiction(proof);
        }
        assertGe(i, 6);
    }
}
