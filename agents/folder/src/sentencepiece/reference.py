"""What SentencePiece makes of texts, with small tokenizers of its own making: *.model and due.json for tests.rs.

pip install sentencepiece==0.2.3; python reference.py
"""

import io
import json
import pathlib

import sentencepiece

HERE = pathlib.Path(__file__).parent
SEEN = (HERE / "reference.py").read_text().splitlines() + [
    "The cat sat on the mat, and the dog sat by the cat.",
    "The dog that sat on the mat saw the cat that sat there.",
    "There they were, the cats and the dogs, on their mats.",
    "Naïve cafés are where the cats of the town are seen.",
]
TEXTS = [
    "The cat sat on the mat.",
    " the  dog   sat\tthere ",
    "caf\u00e9 na\u00efve \u65e5\u672c \U0001f600",
    "\uff34\uff48\uff45 \ufb01sh",
    "one\ntwo\n\nthree",
    "they \u2581were",
    "",
    "    def f(x):  return x",
    "tool<call>the cat",
]
# Full width becomes ASCII, a ligature two letters, and a tab a space; which SentencePiece otherwise knows a book of.
RULES = {0xFF34: "T", 0xFF48: "h", 0xFF45: "e", 0xFB01: "fi", 0x9: " "}
COMMON = {"vocab_size": 400, "hard_vocab_limit": False, "character_coverage": 1.0, "minloglevel": 2, "num_threads": 1}
LLAMA = {"model_type": "bpe", "byte_fallback": True, "normalization_rule_name": "identity", "split_digits": True}
# As the tokenizers of Llama 2, Gemma 3 and XLM-RoBERTa were trained, and one of SentencePiece's own ways.
KINDS = {
    "llama": LLAMA | {"remove_extra_whitespaces": False},
    "gemma": LLAMA
    | {
        "remove_extra_whitespaces": False,
        "add_dummy_prefix": False,
        "user_defined_symbols": ["<call>", "\n", *("\u2581" * spaces for spaces in (2, 3, 4))],
        "pad_id": 0,
        "eos_id": 1,
        "bos_id": 2,
        "unk_id": 3,
    },
    "xlmr": {"model_type": "unigram", "normalization_rule_tsv": "rules.tsv"},
    "unigram": {"model_type": "unigram", "byte_fallback": True, "normalization_rule_tsv": "rules.tsv"},
}


def main() -> None:
    rules = HERE / "rules.tsv"
    lines = (f"{code:X}\t{' '.join(f'{ord(c):X}' for c in text)}\n" for code, text in RULES.items())
    rules.write_text("".join(lines))
    due = {}
    for name, kind in KINDS.items():
        kind = {key: str(rules) if value == "rules.tsv" else value for key, value in kind.items()}
        model = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(SEEN), model_writer=model, **COMMON, **kind
        )
        (HERE / f"{name}.model").write_bytes(model.getvalue())
        processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
        read = [processor.encode(text) for text in TEXTS]
        due[name] = {"pieces": processor.get_piece_size(), "ids": read, "texts": [processor.decode(ids) for ids in read]}
    rules.unlink()
    (HERE / "due.json").write_text(json.dumps({"texts": TEXTS, "due": due}) + "\n")


main()
