"""Writes blocks.json: one random block of each packing, and the floats that ggml's own Python package makes of it.

usage: python3 blocks.py > blocks.json, with gguf 0.19 and numpy installed.
"""

import json

import gguf
import numpy as np

# Where the 16-bit floats of a block are.
FLOATS = {"Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "Q4_K": [0, 2], "Q5_K": [0, 2],
          "Q6_K": [208]}

draw = np.random.default_rng(7)
packings = {}
for name, places in FLOATS.items():
    kind = gguf.GGMLQuantizationType[name]
    _, size = gguf.GGML_QUANT_SIZES[kind]
    block = draw.integers(0, 256, size=(1, size), dtype=np.uint8)
    for place in places:
        block[0, place:place + 2] = np.frombuffer(np.float16(draw.normal() * 0.02).tobytes(), np.uint8)
    floats = gguf.dequantize(block, kind).astype("<f4")
    packings[name] = {"block": block.tobytes().hex(), "floats": floats.tobytes().hex()}
print(json.dumps(packings, indent=1))
