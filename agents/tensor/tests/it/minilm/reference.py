"""Embeddings of all-MiniLM-L6-v2 in double precision, from nothing but numpy: reference.json for tests/it/minilm.rs.

pip install numpy safetensors tokenizers; python reference.py <model folder> > reference.json
For "This is an example sentence" it gives what sentence-transformers gives: 0.0677, 0.0635, 0.0487, 0.0793, 0.0374, ...
"""

import json
import math
import sys

import numpy as np
from safetensors.numpy import load_file
from tokenizers import Tokenizer

TEXTS = [
    "This is an example sentence",
    "Plants use light to make sugar from carbon dioxide and water.",
    "Is this café open on Sundays?",
]
HEADS, LAYERS, EPSILON = 12, 6, 1e-12

folder = sys.argv[1]
weights = {name: w.astype(np.float64) for name, w in load_file(f"{folder}/model.safetensors").items()}
tokenizer = Tokenizer.from_file(f"{folder}/tokenizer.json")
tokenizer.no_padding()
tokenizer.no_truncation()
erf = np.vectorize(math.erf)


def norm(x, name):
    centred = x - x.mean(-1, keepdims=True)
    scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + EPSILON)
    return scaled * weights[f"{name}.weight"] + weights[f"{name}.bias"]


def linear(x, name):
    return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]


def attention(x, layer):
    def heads(part):
        return linear(x, f"{layer}.attention.self.{part}").reshape(len(x), HEADS, -1).transpose(1, 0, 2)

    query, key, value = heads("query"), heads("key"), heads("value")
    scores = query @ key.transpose(0, 2, 1) / math.sqrt(query.shape[-1])
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    mixed = powers / powers.sum(-1, keepdims=True) @ value
    return linear(mixed.transpose(1, 0, 2).reshape(x.shape), f"{layer}.attention.output.dense")


def embedding(ids):
    x = weights["embeddings.word_embeddings.weight"][ids]
    x = x + weights["embeddings.position_embeddings.weight"][: len(ids)]
    x = norm(x + weights["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
    for layer in (f"encoder.layer.{number}" for number in range(LAYERS)):
        x = norm(x + attention(x, layer), f"{layer}.attention.output.LayerNorm")
        inner = linear(x, f"{layer}.intermediate.dense")
        inner = inner * (1 + erf(inner / math.sqrt(2))) / 2
        x = norm(x + linear(inner, f"{layer}.output.dense"), f"{layer}.output.LayerNorm")
    mean = x.mean(0)
    return mean / np.linalg.norm(mean)


cases = []
for text in TEXTS:
    ids = tokenizer.encode(text).ids
    cases.append({"text": text, "ids": ids, "embedding": [round(float(x), 7) for x in embedding(ids)]})
print("[\n" + ",\n".join(json.dumps(case, ensure_ascii=False) for case in cases) + "\n]")
