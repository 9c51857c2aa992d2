// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Checkpoints} from "../../../../contracts/core/Checkpoints.sol";
import {ICustody} from "../../../../contracts/interfaces/ICustody.sol";
import {IJobs} from "../../../../contracts/interfaces/IJobs.sol";
import {TensorTypes} from "../../../../contracts/libraries/encoding/TensorTypes.sol";
import {Merkle} from "../../../../contracts/libraries/proofs/Merkle.sol";
import {Holding} from "../../../../contracts/types/Custody.sol";
import {
    BoundaryLogs,
    Claim,
    EdgeLog,
    Offer,
    Operator,
    ProgramHeader,
    StepStatement,
    TensorType,
    Voucher
} from "../../../../contracts/types/Types.sol";
import {Cases} from "../../Cases.sol";
import {Signatures} from "../../protocol/Signatures.sol";
import {SlowTree} from "../../verifier/SlowTree.sol";
import {MerkleHarness} from "./Merkle.t.sol";

/// @notice What the Rust side commits to and signs (`tests/vectors/README.md`) is what the contracts check.
contract CommitmentVectorsTest is Cases {
    using SlowTree for bytes32[][];
    using TensorTypes for TensorType;

    bytes32 private constant EDGE_LOG_TYPEHASH =
        keccak256("EdgeLog(uint64 job,uint16 replica,uint16 fromStage,uint16 toStage,uint32 interval,bytes32 root)");

    MerkleHarness private harness = new MerkleHarness();

    function setUp() public {
        _load("commitments.json");
    }

    /// @dev Canonical bytes as leaves, the last one padded with zeros (C-1).
    function _leavesOf(bytes memory data) private pure returns (bytes[] memory leaves) {
        leaves = new bytes[]((data.length + 255) / 256);
        for (uint256 i = 0; i < data.length; ++i) {
            if (i % 256 == 0) leaves[i / 256] = new bytes(256);
            leaves[i / 256][i % 256] = data[i];
        }
    }

    function test_tensors() public view {
        uint256 i = 0;
        for (string memory c = _at("tensors", 0); vm.keyExistsJson(json, c); c = _at("tensors", ++i)) {
            TensorType tensorType = TensorType.wrap(uint256(_word(c, ".tensorType")));
            bytes memory data = _bytes(c, ".bytes");
            assertTrue(tensorType.isValid(), c);
            assertEq(tensorType.byteLength(), data.length, c);
            assertEq(tensorType.leafCount(), _uint(c, ".leafCount"), c);
            bytes32 dataRoot = SlowTree.ofLeaves(_leavesOf(data)).rootOf();
            assertEq(dataRoot, _word(c, ".dataRoot"), c);
            assertEq(Merkle.tensorRoot(tensorType, dataRoot), _word(c, ".root"), c);
        }
        assertGt(i, 0);
    }

    function test_ranges() public view {
        uint256 i = 0;
        for (string memory c = _at("ranges", 0); vm.keyExistsJson(json, c); c = _at("ranges", ++i)) {
            bytes32 dataRoot = _word(c, ".dataRoot");
            (uint256 count, uint256 first) = (_uint(c, ".leafCount"), _uint(c, ".firstLeaf"));
            (bytes memory leaves, bytes32[] memory siblings) = (_bytes(c, ".leaves"), _words(c, ".siblings"));
            assertTrue(harness.isRange(dataRoot, count, first, leaves, siblings), c);
            assertFalse(harness.isRange(dataRoot, count, first + 1, leaves, siblings), c);
            leaves[leaves.length - 1] ^= 0x01;
            assertFalse(harness.isRange(dataRoot, count, first, leaves, siblings), c);
        }
        assertGt(i, 0);
    }

    function test_lists() public view {
        uint256 i = 0;
        for (string memory c = _at("lists", 0); vm.keyExistsJson(json, c); c = _at("lists", ++i)) {
            bytes32[] memory items = _words(c, ".items");
            bytes32[] memory siblings = _words(c, ".siblings");
            (bytes32 root, uint256 index) = (_word(c, ".root"), _uint(c, ".index"));
            if (items.length == 0) {
                assertEq(root, 0, c);
                assertFalse(harness.isMember(root, 0, index, 0, siblings), c);
                continue;
            }
            assertEq(SlowTree.ofDigests(items).rootOf(), root, c);
            assertTrue(harness.isMember(root, items[index], index, items.length, siblings), c);
            assertFalse(harness.isMember(root, items[index], index + 1, items.length, siblings), c);
            assertFalse(harness.isMember(root, ~items[index], index, items.length, siblings), c);
        }
        assertGt(i, 0);
    }

    function test_programs() public view {
        uint256 i = 0;
        for (string memory c = _at("programs", 0); vm.keyExistsJson(json, c); c = _at("programs", ++i)) {
            ProgramHeader memory header = abi.decode(_bytes(c, ".header"), (ProgramHeader));
            assertEq(keccak256(abi.encode(header)), _word(c, ".root"), c);
            uint256[] memory wired = vm.parseJsonUintArray(json, string.concat(c, ".wiring"));
            bytes32[] memory wiring = new bytes32[](wired.length);
            for (uint256 j = 0; j < wired.length; ++j) {
                wiring[j] = bytes32(wired[j]);
            }
            assertEq(SlowTree.ofDigests(wiring).rootOf(), header.wiring, c);

            bytes32[] memory constants = _words(c, ".constants");
            assertEq(constants.length, header.constantCount, c);
            assertEq(constants.length == 0 ? bytes32(0) : SlowTree.ofDigests(constants).rootOf(), header.constants, c);

            bytes[] memory encoded = vm.parseJsonBytesArray(json, string.concat(c, ".operators"));
            assertEq(encoded.length, header.operatorCount, c);
            bytes32[] memory operators = new bytes32[](encoded.length);
            for (uint256 j = 0; j < encoded.length; ++j) {
                Operator memory operator = abi.decode(encoded[j], (Operator));
                assertTrue(operator.output.isValid(), c);
                operators[j] = keccak256(abi.encode(operator));
            }
            assertEq(SlowTree.ofDigests(operators).rootOf(), header.operators, c);
            uint256 index = _uint(c, ".operatorIndex");
            bytes32[] memory siblings = _words(c, ".operatorSiblings");
            assertTrue(harness.isMember(header.operators, operators[index], index, operators.length, siblings), c);
        }
        assertGt(i, 0);
    }

    function test_logs() public view {
        uint256 i = 0;
        for (string memory c = _at("logs", 0); vm.keyExistsJson(json, c); c = _at("logs", ++i)) {
            BoundaryLogs memory logs = abi.decode(_bytes(c, ".logs"), (BoundaryLogs));
            assertEq(keccak256(abi.encode(logs)), _word(c, ".io"), c);
        }
        assertGt(i, 0);
    }

    /// @dev Root of a log of one entry; zero where nothing crossed.
    function _logOfOne(bytes32 root) private pure returns (bytes32) {
        if (root == 0) return 0;
        bytes32[] memory items = new bytes32[](1);
        items[0] = root;
        return SlowTree.ofDigests(items).rootOf();
    }

    function test_receipts() public view {
        uint256 i = 0;
        for (string memory c = _at("receipts", 0); vm.keyExistsJson(json, c); c = _at("receipts", ++i)) {
            BoundaryLogs memory logs = abi.decode(_bytes(c, ".logs"), (BoundaryLogs));
            assertEq(logs.fromPrevious, _logOfOne(_word(c, ".fromPrevious")), c);
            assertEq(logs.fromNext, _logOfOne(_word(c, ".fromNext")), c);
            assertEq(logs.toNext, _logOfOne(_word(c, ".toNext")), c);
            assertEq(logs.toPrevious, 0, c);

            Claim memory claim = abi.decode(_bytes(c, ".claim"), (Claim));
            assertEq(claim.io, keccak256(abi.encode(logs)), c);
            assertEq(claim.parentState, 0, c);
            assertEq(claim.newState, 0, c);
        }
        assertGt(i, 0);
    }

    function _structHash(bytes32 kind, bytes memory encoded) private pure returns (bytes32) {
        if (kind == "Offer") return Signatures.hash(abi.decode(encoded, (Offer)));
        if (kind == "Claim") return Signatures.hash(abi.decode(encoded, (Claim)));
        if (kind == "StepStatement") return Signatures.hash(abi.decode(encoded, (StepStatement)));
        if (kind == "Voucher") return Signatures.hash(abi.decode(encoded, (Voucher)));
        if (kind == "Holding") return Signatures.hash(abi.decode(encoded, (Holding)));
        if (kind == "EdgeLog") return keccak256(abi.encode(EDGE_LOG_TYPEHASH, abi.decode(encoded, (EdgeLog))));
        revert("unknown kind");
    }

    function test_digests() public view {
        uint256 i = 0;
        for (string memory c = _at("digests", 0); vm.keyExistsJson(json, c); c = _at("digests", ++i)) {
            bytes32 kind = bytes32(bytes(vm.parseJsonString(json, string.concat(c, ".kind"))));
            address verifyingContract = _address(c, ".contract");
            bytes32 structHash = _structHash(kind, _bytes(c, ".encoded"));
            bytes32 digest = Signatures.digest(_uint(c, ".chainId"), verifyingContract, structHash);
            assertEq(digest, _word(c, ".digest"), c);

            address signer = _address(c, ".signer");
            assertEq(vm.addr(uint256(_word(c, ".key"))), signer, c);
            (uint8 v, bytes32 r, bytes32 s) = vm.sign(uint256(_word(c, ".key")), digest);
            assertEq(abi.encodePacked(r, s, v), _bytes(c, ".signature"), c);
            assertEq(ecrecover(digest, v, r, s), signer, c);
        }
        assertGt(i, 0);
    }

    /// @notice A claim's id in Rust is the one that `Checkpoints` gives it.
    function test_claimIds() public {
        bytes memory code =
            address(new Checkpoints(IJobs(address(0)), address(0), address(0), ICustody(address(0)), 1)).code;
        uint256 claims = 0;
        uint256 i = 0;
        for (string memory c = _at("digests", 0); vm.keyExistsJson(json, c); c = _at("digests", ++i)) {
            if (bytes32(bytes(vm.parseJsonString(json, string.concat(c, ".kind")))) != "Claim") continue;
            address checkpoints = _address(c, ".contract");
            vm.etch(checkpoints, code);
            vm.chainId(_uint(c, ".chainId"));
            Claim memory claim = abi.decode(_bytes(c, ".encoded"), (Claim));
            assertEq(Checkpoints(checkpoints).claimId(claim), _word(c, ".digest"), c);
            ++claims;
        }
        assertGt(claims, 0);
    }

    function test_jobKeys() public view {
        uint256 i = 0;
        for (string memory c = _at("jobKeys", 0); vm.keyExistsJson(json, c); c = _at("jobKeys", ++i)) {
            bytes32 key = keccak256(abi.encode(uint256(_word(c, ".prevrandao")), uint64(_uint(c, ".job"))));
            assertEq(key, _word(c, ".key"), c);
        }
        assertGt(i, 0);
    }

    function test_records() public view {
        uint256 i = 0;
        for (string memory c = _at("records", 0); vm.keyExistsJson(json, c); c = _at("records", ++i)) {
            Claim memory claim = abi.decode(_bytes(c, ".claim"), (Claim));
            bytes32 record = Signatures.record(claim, _uint(c, ".committedAt"));
            assertEq(record, _word(c, ".record"), c);
        }
        assertGt(i, 0);
    }

    function test_seals() public view {
        uint256 i = 0;
        for (string memory c = _at("seals", 0); vm.keyExistsJson(json, c); c = _at("seals", ++i)) {
            bytes32 sealedClaim = keccak256(abi.encode(_word(c, ".claimId"), _word(c, ".salt")));
            assertEq(sealedClaim, _word(c, ".seal"), c);
        }
        assertGt(i, 0);
    }
}
