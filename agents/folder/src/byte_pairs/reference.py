"""What the Python tokenizers of transformers make of texts, with a small vocabulary: vocab.json, merges.txt and due.json for tests.rs.

pip install transformers==4.57.1; python reference.py
"""

import json
import pathlib
import tempfile

import tokenizers
import transformers

HERE = pathlib.Path(__file__).parent
SEEN = [
    *(HERE / "reference.py").read_text().splitlines(),
    "The cat sat on the mat, and the dog sat by the cat.",
    "The dog that sat on the mat saw the cat that sat there.",
    "There they were, the cats and the dogs; it's what they'd do, and we'll see.",
]
TEXTS = [
    "The cat sat on the mat.",
    " the  dog   sat\tthere ",
    "caf\u00e9 cafe\u0301 \u65e5\u672c \U0001f600",
    "one\ntwo\n\nthree  \n",
    "it's what THEY'D do in 1999, isn't it?",
    "",
    "    def f(x):  return x",
    "the<mask>cat<|endoftext|>sat</s>",
]
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", "<|endoftext|>"]
KINDS = {
    "gpt2": transformers.GPT2Tokenizer,
    "roberta": transformers.RobertaTokenizer,
    "qwen2": transformers.Qwen2Tokenizer,
}


def main() -> None:
    pairs = tokenizers.ByteLevelBPETokenizer()
    pairs.train_from_iterator(SEEN, vocab_size=340, min_frequency=2, special_tokens=SPECIAL, show_progress=False)
    pairs.save_model(str(HERE))
    due = {}
    for name, kind in KINDS.items():
        with tempfile.TemporaryDirectory() as folder:
            for file in ("vocab.json", "merges.txt"):
                (pathlib.Path(folder) / file).write_bytes((HERE / file).read_bytes())
            tokenizer = kind.from_pretrained(folder)
            due[name] = [tokenizer(text)["input_ids"] for text in TEXTS]
    (HERE / "due.json").write_text(json.dumps({"texts": TEXTS, "due": due}) + "\n")


main()
