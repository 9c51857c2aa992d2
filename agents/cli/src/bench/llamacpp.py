"""llama.cpp as a peer of `tensorlink bench`: an untrained model of given sizes in Q8_0, timed on request.

The bench starts this with the sizes as arguments and writes lines to its input: `prefill N` or `decode N`. Each is answered by a line
with microseconds of processor time: of reading a text of N tokens (logits of the last), or of one more token after N. `ready` comes first.
"""

import sys
import tempfile
import time

import gguf
import llama_cpp
import numpy

vocabulary, width, layers, heads, kv_heads, hidden, context = map(int, sys.argv[1:8])
random = numpy.random.default_rng(1)


def matrix(writer, name, rows, columns):
    weights = (random.standard_normal((rows, columns), dtype=numpy.float32)) / numpy.sqrt(columns)
    kind = gguf.GGMLQuantizationType.Q8_0
    writer.add_tensor(name, gguf.quants.quantize(weights, kind), raw_dtype=kind)


def gain(writer, name):
    writer.add_tensor(name, numpy.ones(width, dtype=numpy.float32))


def write(path):
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(context)
    writer.add_embedding_length(width)
    writer.add_block_count(layers)
    writer.add_feed_forward_length(hidden)
    writer.add_head_count(heads)
    writer.add_head_count_kv(kv_heads)
    writer.add_rope_dimension_count(width // heads)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(vocabulary)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_Q8_0)
    # A vocabulary of bytes and made-up words: llama.cpp wants one, the bench reads token numbers only.
    special = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]
    words = special + [f"w{i}" for i in range(vocabulary - len(special))]
    kinds = [gguf.TokenType.UNKNOWN, gguf.TokenType.CONTROL, gguf.TokenType.CONTROL] + [gguf.TokenType.BYTE] * 256
    kinds += [gguf.TokenType.NORMAL] * (vocabulary - len(special))
    writer.add_tokenizer_model("llama")
    writer.add_token_list(words[:vocabulary])
    writer.add_token_scores([0.0] * vocabulary)
    writer.add_token_types(kinds[:vocabulary])
    matrix(writer, "token_embd.weight", vocabulary, width)
    gain(writer, "output_norm.weight")
    matrix(writer, "output.weight", vocabulary, width)
    keys = width // heads * kv_heads
    for layer in range(layers):
        gain(writer, f"blk.{layer}.attn_norm.weight")
        gain(writer, f"blk.{layer}.ffn_norm.weight")
        for name, rows, columns in (
            ("attn_q", width, width),
            ("attn_k", keys, width),
            ("attn_v", keys, width),
            ("attn_output", width, width),
            ("ffn_gate", hidden, width),
            ("ffn_up", hidden, width),
            ("ffn_down", width, hidden),
        ):
            matrix(writer, f"blk.{layer}.{name}.weight", rows, columns)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def timed(model, tokens):
    start = time.process_time_ns()
    model.eval(tokens)
    return (time.process_time_ns() - start) // 1000


with tempfile.NamedTemporaryFile(suffix=".gguf") as file:
    write(file.name)
    model = llama_cpp.Llama(
        model_path=file.name, n_ctx=context, n_batch=context, n_threads=1, n_threads_batch=1, verbose=False
    )
print("ready", flush=True)
text = [(i * 2654435761) % (vocabulary - 300) + 280 for i in range(context)]
for line in sys.stdin:
    what, count = line.split()
    count = int(count)
    if what == "prefill":
        model.reset()
        print(timed(model, text[:count]), flush=True)
    else:
        if model.n_tokens <= count or model.n_tokens > context - 2:
            model.reset()
            model.eval(text[:count])
        else:
            model.n_tokens = count
        print(timed(model, [text[count]]), flush=True)
