// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IStepVerifier} from "../../../contracts/interfaces/IStepVerifier.sol";
import {FixedPoint} from "../../../contracts/libraries/arithmetic/FixedPoint.sol";
import {Philox} from "../../../contracts/libraries/arithmetic/Philox.sol";
import {TensorTypes} from "../../../contracts/libraries/encoding/TensorTypes.sol";
import {Operand, Operator, StepContext, TensorType, Window} from "../../../contracts/types/Types.sol";
import {GoodOperators} from "../verifier/GoodOperators.sol";

/// @notice The shared vectors (`tests/vectors/README.md`), which the Rust reference wrote, hold on chain; with the
/// windows cut to exactly what each element reads, and refused when cut shorter.
contract VectorsTest is GoodOperators {
    using TensorTypes for TensorType;

    uint256 private constant FIRST_RULE = 11;
    /// @dev Rules of `operators.json`, then those of `sampling.json`, then those of `training.json`.
    uint256 private constant FIRST_RULE_OF_SAMPLING = 32;
    uint256 private constant FIRST_RULE_OF_TRAINING = 38;
    /// @dev A rule has the number of its opcode plus 10.
    uint256 private constant LAST_RULE = uint256(LAST_OPCODE) + 10;

    struct Read {
        uint256 operand;
        uint256 first;
        uint256 count;
    }

    /// @dev What an operand of this type without bytes is.
    struct Table {
        TensorType tensorType;
        bytes data;
    }

    /// @dev A case of `operators.json`, `sampling.json` or `training.json`; `reads` has four entries a row.
    struct Case {
        string name;
        Operator operator;
        StepContext context;
        bytes[] operands;
        uint256[] elements;
        int256[] mantissas;
        uint256[] reads;
    }

    function _load(string memory file) private view returns (string memory) {
        return vm.readFile(string.concat("tests/vectors/", file));
    }

    function _at(string memory array, uint256 i) private pure returns (string memory) {
        return string.concat(".", array, "[", vm.toString(i), "]");
    }

    function _int(string memory json, string memory at_, string memory field) private pure returns (int256) {
        return vm.parseJsonInt(json, string.concat(at_, field));
    }

    function _uint(string memory json, string memory at_, string memory field) private pure returns (uint256) {
        return vm.parseJsonUint(json, string.concat(at_, field));
    }

    // Foundations.

    function test_rescale() public view {
        string memory json = _load("foundations.json");
        uint256 i = 0;
        for (string memory c = _at("rescale", 0); vm.keyExistsJson(json, c); c = _at("rescale", ++i)) {
            int256 y = FixedPoint.rescaleHalfEven(_int(json, c, ".x"), _int(json, c, ".shift"), _uint(json, c, ".bits"));
            assertEq(y, _int(json, c, ".y"), c);
        }
        assertGt(i, 0);
    }

    function test_div() public view {
        string memory json = _load("foundations.json");
        uint256 i = 0;
        for (string memory c = _at("div", 0); vm.keyExistsJson(json, c); c = _at("div", ++i)) {
            assertEq(FixedPoint.divHalfUp(_int(json, c, ".a"), _int(json, c, ".b")), _int(json, c, ".y"), c);
        }
        assertGt(i, 0);
    }

    function test_draw() public view {
        string memory json = _load("foundations.json");
        uint256 i = 0;
        for (string memory c = _at("draw", 0); vm.keyExistsJson(json, c); c = _at("draw", ++i)) {
            uint256 word = Philox.draw(
                vm.parseJsonBytes32(json, string.concat(c, ".jobKey")),
                uint32(_uint(json, c, ".row")),
                uint32(_uint(json, c, ".step")),
                uint32(_uint(json, c, ".stream"))
            );
            assertEq(word, _uint(json, c, ".word"), c);
        }
        assertGt(i, 0);
    }

    // Operators.

    function test_everyRuleOnWholeTensors() public view {
        _checkWhole("operators.json", FIRST_RULE, FIRST_RULE_OF_SAMPLING - 1);
    }

    function test_everyRuleOfSamplingOnWholeTensors() public view {
        _checkWhole("sampling.json", FIRST_RULE_OF_SAMPLING, FIRST_RULE_OF_TRAINING - 1);
    }

    function test_everyRuleOfTrainingOnWholeTensors() public view {
        _checkWhole("training.json", FIRST_RULE_OF_TRAINING, LAST_RULE);
    }

    function test_everyRuleOnWhatItReads() public {
        _checkReads("operators.json");
    }

    function test_everyRuleOfSamplingOnWhatItReads() public {
        _checkReads("sampling.json");
    }

    function test_everyRuleOfTrainingOnWhatItReads() public {
        _checkReads("training.json");
    }

    /// @dev The cases of a file, of every rule from `first` to `last`.
    function _checkWhole(string memory file, uint256 first, uint256 last) private view {
        string memory json = _load(file);
        Table[] memory tables = _tables(json);
        bool[] memory seen = new bool[](LAST_RULE + 1);
        uint256 i = 0;
        for (string memory c = _at("cases", 0); vm.keyExistsJson(json, c); c = _at("cases", ++i)) {
            Case memory v = _case(json, c, tables);
            seen[10 + v.operator.opcode] = true;
            assertEq(vm.parseJsonString(json, string.concat(c, ".rule")), _rule(10 + v.operator.opcode), v.name);
            Window[][] memory windows = new Window[][](v.operands.length);
            for (uint256 j = 0; j < windows.length; ++j) {
                windows[j] = new Window[](1);
                windows[j][0].data = v.operands[j];
            }
            assertGt(v.elements.length, 0, v.name);
            for (uint256 j = 0; j < v.elements.length; ++j) {
                int256 mantissa = verifier.recompute(v.operator, uint64(v.elements[j]), v.context, windows);
                assertEq(mantissa, v.mantissas[j], v.name);
            }
        }
        for (uint256 rule = first; rule <= last; ++rule) {
            assertTrue(seen[rule], string.concat("no case of rule ", _rule(rule)));
        }
    }

    function _checkReads(string memory file) private {
        string memory json = _load(file);
        Table[] memory tables = _tables(json);
        uint256 i = 0;
        for (string memory c = _at("cases", 0); vm.keyExistsJson(json, c); c = _at("cases", ++i)) {
            Case memory v = _case(json, c, tables);
            for (uint256 j = 0; j < v.elements.length; ++j) {
                Read[] memory reads = _readsOf(v, j);
                uint64 element = uint64(v.elements[j]);
                Window[][] memory windows = _windows(v, reads);
                assertEq(verifier.recompute(v.operator, element, v.context, windows), v.mantissas[j], v.name);
                for (uint256 k = 0; k < reads.length; ++k) {
                    _checkCut(v, element, reads, k);
                }
            }
        }
        assertGt(i, 0);
    }

    /// @dev A window one byte shorter than what is read is refused, naming the operand.
    function _checkCut(Case memory v, uint64 element, Read[] memory reads, uint256 k) private {
        Window[][] memory windows = _windows(v, reads);
        Window memory cut = windows[reads[k].operand][_place(reads, k)];
        cut.data = slice(cut.data, 0, cut.data.length - 1);
        vm.expectPartialRevert(IStepVerifier.MissingElement.selector);
        verifier.recompute(v.operator, element, v.context, windows);
    }

    /// @dev One window for each read, of exactly its bytes.
    function _windows(Case memory v, Read[] memory reads) private pure returns (Window[][] memory windows) {
        windows = new Window[][](v.operands.length);
        for (uint256 j = 0; j < windows.length; ++j) {
            uint256 count = 0;
            for (uint256 k = 0; k < reads.length; ++k) {
                if (reads[k].operand == j) ++count;
            }
            windows[j] = new Window[](count);
        }
        for (uint256 k = 0; k < reads.length; ++k) {
            Read memory r = reads[k];
            uint256 width = v.operator.operands[r.operand].tensorType.width();
            windows[r.operand][_place(reads, k)] = Window({
                firstByte: uint64(r.first * width),
                data: slice(v.operands[r.operand], r.first * width, (r.first + r.count) * width)
            });
        }
    }

    /// @dev Which of its operand's reads read `k` is.
    function _place(Read[] memory reads, uint256 k) private pure returns (uint256 place) {
        for (uint256 i = 0; i < k; ++i) {
            if (reads[i].operand == reads[k].operand) ++place;
        }
    }

    function _readsOf(Case memory v, uint256 position) private pure returns (Read[] memory reads) {
        uint256 count = 0;
        for (uint256 i = 0; i < v.reads.length; i += 4) {
            if (v.reads[i] == position) ++count;
        }
        reads = new Read[](count);
        for (uint256 i = v.reads.length; i > 0; i -= 4) {
            if (v.reads[i - 4] == position) reads[--count] = Read(v.reads[i - 3], v.reads[i - 2], v.reads[i - 1]);
        }
    }

    function _tables(string memory json) private view returns (Table[] memory tables) {
        uint256 count = 0;
        while (vm.keyExistsJson(json, _at("tables", count))) ++count;
        tables = new Table[](count);
        for (uint256 i = 0; i < count; ++i) {
            string memory at_ = _at("tables", i);
            tables[i].tensorType = _type(vm.parseJsonBytes32(json, string.concat(at_, ".tensorType")));
            tables[i].data = vm.parseJsonBytes(json, string.concat(at_, ".bytes"));
        }
    }

    /// @dev Operands without bytes become the table of their type.
    function _fillIn(Case memory v, Table[] memory tables) private pure {
        for (uint256 i = 0; i < v.operands.length; ++i) {
            for (uint256 j = 0; j < tables.length && v.operands[i].length == 0; ++j) {
                uint256 word = TensorType.unwrap(v.operator.operands[i].tensorType);
                if (word == TensorType.unwrap(tables[j].tensorType)) v.operands[i] = tables[j].data;
            }
            assertGt(v.operands[i].length, 0, v.name);
        }
    }

    function _case(string memory json, string memory at_, Table[] memory tables) private pure returns (Case memory v) {
        v.name = vm.parseJsonString(json, string.concat(at_, ".name"));
        v.operator.opcode = uint8(_uint(json, at_, ".opcode"));
        v.operator.output = _type(vm.parseJsonBytes32(json, string.concat(at_, ".outputType")));
        bytes32[] memory types = vm.parseJsonBytes32Array(json, string.concat(at_, ".operandTypes"));
        v.operator.operands = new Operand[](types.length);
        for (uint256 i = 0; i < types.length; ++i) {
            v.operator.operands[i] = Operand({source: 2, index: uint32(i), tensorType: _type(types[i])});
        }
        int256[] memory attributes = vm.parseJsonIntArray(json, string.concat(at_, ".attributes"));
        v.operator.attributes = new int64[](attributes.length);
        for (uint256 i = 0; i < attributes.length; ++i) {
            v.operator.attributes[i] = int64(attributes[i]);
        }
        v.context.jobKey = vm.parseJsonBytes32(json, string.concat(at_, ".jobKey"));
        v.context.step = uint32(_uint(json, at_, ".step"));
        v.operands = vm.parseJsonBytesArray(json, string.concat(at_, ".operands"));
        v.elements = vm.parseJsonUintArray(json, string.concat(at_, ".elements"));
        v.mantissas = vm.parseJsonIntArray(json, string.concat(at_, ".mantissas"));
        v.reads = vm.parseJsonUintArray(json, string.concat(at_, ".reads"));
        _fillIn(v, tables);
    }

    function _type(bytes32 word) private pure returns (TensorType) {
        return TensorType.wrap(uint256(word));
    }

    function _rule(uint256 n) private pure returns (string memory) {
        return string.concat("N-", vm.toString(n));
    }
}
