"""What Hugging Face's own classes compute for the tiny models of tensorlink-model's fixture, into reference.json.

Made by transformers 5.24.0 and torch 2.15.0 in doubles: python reference.py. The configurations in reference.json
are the fixture's; everything else is computed here. Values of tensors follow from their names, as in the fixture.
"""

import copy
import json
import pathlib

import torch
import transformers

FILE = pathlib.Path(__file__).with_name("reference.json")
TOKENS = [0, 4, 5, 7, 9, 4, 11, 2]


def values(name, count):
    state = 2166136261
    for byte in name.encode():
        state = (state ^ byte) * 16777619 % 2**32
    state |= 1
    drawn = []
    for _ in range(count):
        state = (state ^ state << 13) % 2**32
        state ^= state >> 17
        state = (state ^ state << 5) % 2**32
        drawn.append(state % 257 / 256 - 0.5)
    return drawn


def output(fields):
    config = transformers.AutoConfig.for_model(**copy.deepcopy(fields))
    config._attn_implementation = "eager"
    model = getattr(transformers, fields["architectures"][0])(config).double().eval()
    tied = model.get_output_embeddings().weight is model.get_input_embeddings().weight
    with torch.no_grad():
        for name, tensor in model.state_dict().items():
            if not (tied and name.startswith(("lm_head.", "cls.predictions.decoder."))):
                tensor.copy_(torch.tensor(values(name, tensor.numel())).reshape(tensor.shape))
        tokens = torch.tensor([TOKENS])
        if "ForMaskedLM" in fields["architectures"][0]:
            mean = model.base_model(tokens).last_hidden_state[0].mean(0)
            return [(mean / mean.norm()).tolist()]
        return model(tokens).logits[0].tolist()


cases = json.loads(FILE.read_text())["cases"]
cases = [{"config": case["config"], "output": output(case["config"])} for case in cases]
lines = ",\n".join(json.dumps(case) for case in cases)
FILE.write_text(f'{{"tokens": {json.dumps(TOKENS)}, "cases": [\n{lines}\n]}}\n')
