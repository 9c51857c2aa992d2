"""Hugging Face's transformers on folders that are written here: they load, and give the logits that our float reference gives.

Started by agents/cli/tests/it/transformers.rs, which says in the environment where the folders are: each has a `due.json` with a text, its
tokens and their logits.
"""

import json
import os
import pathlib
import unittest

import flax.traverse_util
import numpy
import safetensors.numpy
import transformers

FOLDERS = pathlib.Path(os.environ["FOLDERS"])
# Sums of 32-bit floats in another order.
TOLERANCE = 2e-5


class Folders(unittest.TestCase):
    def check(self, name: str, model: type[transformers.FlaxPreTrainedModel]) -> None:
        folder = FOLDERS / name
        due = json.loads((folder / "due.json").read_text())
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        ids = tokenizer(due["text"])["input_ids"]
        self.assertEqual(ids, due["ids"])
        self.assertEqual(tokenizer.decode(ids), due["text"])
        loaded = model.from_pretrained(folder)
        self.assertEqual(type(loaded).__name__.removeprefix("Flax"), loaded.config.architectures[0])
        self.assertIsNone(loaded.config.eos_token_id)
        self.compare(loaded, ids, due["logits"])

    def check_adapters(self, name: str, model: type[transformers.FlaxPreTrainedModel]) -> None:
        """Adds adapters to the weights by the definitions of PEFT's files. PEFT itself needs PyTorch, of which there is no small wheel."""
        folder = FOLDERS / f"{name}-adapters"
        config = json.loads((folder / "adapter_config.json").read_text())
        tensors = safetensors.numpy.load_file(folder / "adapter_model.safetensors")
        due = json.loads((FOLDERS / name / "due.json").read_text())
        loaded = model.from_pretrained(config["base_model_name_or_path"])
        weights = flax.traverse_util.flatten_dict(loaded.params, sep=".")
        for key in [key for key in weights if key.endswith(".kernel")]:
            module = key.removesuffix(".kernel")
            if not any(module.endswith(f".{target}") for target in config["target_modules"]):
                continue
            down, up = (tensors.pop(f"base_model.model.{module}.lora_{part}.weight") for part in "AB")
            change = config["lora_alpha"] / config["r"] * up @ down
            # A kernel of Flax's Llama is inputs × outputs, one of its GPT-2 as PyTorch's linear layers.
            weights[key] = weights[key] + (change if config["fan_in_fan_out"] else change.T)
        self.assertEqual(tensors, {})
        loaded.params = flax.traverse_util.unflatten_dict(weights, sep=".")
        self.compare(loaded, due["ids"], due["adapted"])
        self.assertGreater(numpy.abs(numpy.array(due["adapted"]) - due["logits"]).max(), 0.01)

    def check_classifier(self, name: str, model: type[transformers.FlaxPreTrainedModel]) -> None:
        folder = FOLDERS / name
        due = json.loads((folder / "due.json").read_text())
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        self.assertEqual(tokenizer(due["text"])["input_ids"], due["ids"])
        loaded = model.from_pretrained(folder)
        self.assertEqual(type(loaded).__name__.removeprefix("Flax"), loaded.config.architectures[0])
        self.assertEqual(list(loaded.config.id2label.values()), due["classes"])
        self.assertEqual(loaded.config.num_labels, len(due["classes"]))
        self.compare(loaded, due["ids"], due["logits"])
        # Padding changes nothing.
        padded = tokenizer(due["text"], padding="max_length", max_length=len(due["ids"]) + 5, return_tensors="np")
        logits = loaded(**padded).logits[0]
        self.assertLess(numpy.abs(logits - numpy.array(due["logits"])).max(), 1e-4)

    def compare(self, loaded: transformers.FlaxPreTrainedModel, ids: list[int], due: list[float]) -> None:
        logits = numpy.asarray(loaded(numpy.array([ids])).logits[0], dtype=numpy.float64)
        expected = numpy.array(due).reshape(logits.shape)
        largest = numpy.abs(expected).max()
        self.assertGreater(largest, 0.1)
        self.assertLess(numpy.abs(logits - expected).max(), TOLERANCE * largest)

    def test_reranker(self) -> None:
        """Pairs of texts: read, cut and scored as by the official tokenizer and model."""
        folder = FOLDERS / "reranker"
        due = json.loads((folder / "due.json").read_text())
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        loaded = transformers.FlaxBertForSequenceClassification.from_pretrained(folder)
        self.assertGreater(numpy.ptp(due["scores"]), 0.1)
        for pair, ids, types, score in zip(due["pairs"], due["ids"], due["types"], due["scores"], strict=True):
            # In lists, as cross encoders ask: an empty text by itself would count as none.
            read = tokenizer(*([text] for text in pair), truncation=True, return_tensors="np")
            self.assertEqual(read["input_ids"][0].tolist(), ids)
            self.assertEqual(read["token_type_ids"][0].tolist(), types)
            self.assertLess(abs(loaded(**read).logits[0, 0] - score), TOLERANCE * max(1, abs(score)))

    def test_llama(self) -> None:
        self.check("llama", transformers.FlaxLlamaForCausalLM)

    def test_gpt2(self) -> None:
        self.check("gpt2", transformers.FlaxGPT2LMHeadModel)

    def test_bert(self) -> None:
        self.check_classifier("bert", transformers.FlaxBertForSequenceClassification)

    def test_roberta(self) -> None:
        self.check_classifier("roberta", transformers.FlaxRobertaForSequenceClassification)

    def test_llama_adapters(self) -> None:
        self.check_adapters("llama", transformers.FlaxLlamaForCausalLM)

    def test_gpt2_adapters(self) -> None:
        self.check_adapters("gpt2", transformers.FlaxGPT2LMHeadModel)


if __name__ == "__main__":
    unittest.main()
