// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

/// @title Numbers of the operators
/// @notice Rule N-(opcode + 10) of `agents/num/SPEC.md`. 0 is invalid.
/// @dev Written by script/bindings from `agents/types/src/operator.rs`.
library Opcodes {
    uint8 internal constant MAT_MUL = 1;
    uint8 internal constant TRANSPOSE = 2;
    uint8 internal constant COMBINE = 3;
    uint8 internal constant SCALE = 4;
    uint8 internal constant MUL = 5;
    uint8 internal constant RELU = 6;
    uint8 internal constant RELU_GRAD = 7;
    uint8 internal constant LOOKUP = 8;
    uint8 internal constant ROW_MAX = 9;
    uint8 internal constant EXP_NEG = 10;
    uint8 internal constant ROW_SUM = 11;
    uint8 internal constant NORMALIZE = 12;
    uint8 internal constant ONE_HOT_SUB = 13;
    uint8 internal constant SAMPLE = 14;
    uint8 internal constant SCALED_MAT_MUL = 15;
    uint8 internal constant HEAD_SCORES = 16;
    uint8 internal constant HEAD_MIX = 17;
    uint8 internal constant NORM = 18;
    uint8 internal constant ROPE = 19;
    uint8 internal constant GATHER = 20;
    uint8 internal constant ROW_ABS_MAX = 21;
    uint8 internal constant ROW_ARG_MAX = 22;
    uint8 internal constant ROW_PICK = 23;
    uint8 internal constant TAIL_SUM = 24;
    uint8 internal constant THRESHOLD = 25;
    uint8 internal constant PERTURB = 26;
    uint8 internal constant CHOOSE = 27;
    uint8 internal constant ROW_COMBINE = 28;
    uint8 internal constant ROW_MUL = 29;
    uint8 internal constant INVERSE_NORM = 30;
    uint8 internal constant GATHER_GRAD = 31;
    uint8 internal constant RATIO = 32;
    uint8 internal constant SHRINK = 33;
    uint8 internal constant AT_STEP = 34;
    uint8 internal constant GROUP_SUM = 35;
    uint8 internal constant DROPOUT = 36;
    uint8 internal constant SLICE = 37;
    uint8 internal constant DITHER = 38;
    uint8 internal constant ROW_SHIFT = 39;
    uint8 internal constant SHIFT_ROWS = 40;
    uint8 internal constant SHIFTED_MAT_MUL = 41;
}
