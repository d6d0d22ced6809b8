"""A real model server: llama.cpp's, from its wheel, with a tiny model of random weights that is written here.

    .venv-sdks/bin/python -m tests.e2e.sdks.llama MODEL.gguf

It says `{"event": "listening", "url": ...}` and serves until its input ends. The model speaks byte by byte and makes no
sense, but for what a grammar or a schema makes it say; where tools are offered, it calls `pay` with a card's number.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import gguf
import numpy as np
import xllamacpp

WIDTH, LAYERS, HEADS = 64, 2, 4
SEED = 7
CONTEXT = 16_384
END = 2
"""The token that ends an answer."""
CALL = (
    b"<|call|>", b"<tool_call>", b'\n{"name": "pay", "arguments": {"amount": 1000, ', b'"card": "4111 1',
    b"111 1111 11", b'11 gold"}}\n', b"</tool_call>",
)  # fmt: skip
DONE = (b"<|done|>", b"Paid", b" it.")
SURE = (*CALL, *DONE)
"""Tokens that follow each other for sure: behind the first of each row, with which questions end that offer tools."""
TEMPLATE = """{%- if tools %}
{{- "<|im_start|>system\\nYou may call these tools:\\n<tools>" }}
{%- for tool in tools %}{{- "\\n" }}{{- tool | tojson }}{%- endfor %}
{{- "\\n</tools>\\nFor each call write\\n<tool_call>\\n" }}
{{- "{\\"name\\": <name>, \\"arguments\\": <arguments>}\\n</tool_call><|im_end|>\\n" }}
{%- endif %}
{%- for message in messages %}
{{- "<|im_start|>" + message.role }}
{%- if message.content %}{{- "\\n" + message.content }}{%- endif %}
{%- for call in message.tool_calls or [] %}
{{- "\\n<tool_call>\\n{\\"name\\": \\"" }}{{- call.function.name }}{{- "\\", \\"arguments\\": " }}
{{- call.function.arguments | tojson }}{{- "}\\n</tool_call>" }}
{%- endfor %}
{{- "<|im_end|>\\n" }}
{%- endfor %}
{%- if add_generation_prompt %}
{{- "<|im_start|>assistant\\n" }}
{%- if tools %}{{- "<|done|>" if messages[-1].role == "tool" else "<|call|>" }}{%- endif %}
{%- endif %}"""


def write(file: Path) -> None:
    """Write a Llama of two layers and some hundred tokens: all bytes, each printable character of ASCII, a call."""
    writer = gguf.GGUFWriter(str(file), "llama")
    tokens = [b"<unk>", b"<s>", b"</s>", *(b"<0x%02X>" % byte for byte in range(256))]
    kind = gguf.TokenType
    kinds = [kind.UNKNOWN, kind.CONTROL, kind.CONTROL, *[kind.BYTE] * 256]
    plain = ["\u2581".encode(), *(bytes([byte]) for byte in range(33, 127))]
    tokens, kinds = tokens + plain, kinds + [kind.NORMAL] * len(plain)
    first = len(tokens)
    tokens, kinds = [*tokens, *SURE], [*kinds, *[kind.USER_DEFINED] * len(SURE)]
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(2 * WIDTH)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([-float(number) for number in range(len(tokens))])
    writer.add_token_types(kinds)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(END)
    writer.add_chat_template(TEMPLATE)
    chance = np.random.default_rng(SEED)

    def weights(name: str, *shape: int, speaks: bool = False) -> None:
        made = (chance.standard_normal(shape) * 0.08).astype(np.float32)
        if speaks:  # into the room where the tokens of those stand, nothing else speaks
            made[-len(SURE) :] = 0
        writer.add_tensor(f"{name}.weight", made)

    def ones(name: str) -> None:
        writer.add_tensor(f"{name}.weight", np.ones(WIDTH, dtype=np.float32))

    read, said = ((chance.standard_normal((len(tokens), WIDTH)) * 0.08).astype(np.float32) for _ in range(2))
    read[:, -len(SURE) :] = 0
    said[:, -len(SURE) :] = 0
    for number in range(len(SURE)):
        read[first + number, number - len(SURE)] = 8
        last = number in {len(CALL) - 1, len(SURE) - 1}
        said[END if last else first + number + 1, number - len(SURE)] = 5
    writer.add_tensor("token_embd.weight", read)
    writer.add_tensor("output.weight", said)
    ones("output_norm")
    for layer in range(LAYERS):
        for name in ("attn_norm", "ffn_norm"):
            ones(f"blk.{layer}.{name}")
        for name in ("attn_q", "attn_k", "attn_v"):
            weights(f"blk.{layer}.{name}", WIDTH, WIDTH)
        weights(f"blk.{layer}.attn_output", WIDTH, WIDTH, speaks=True)
        for name in ("ffn_gate", "ffn_up"):
            weights(f"blk.{layer}.{name}", 2 * WIDTH, WIDTH)
        weights(f"blk.{layer}.ffn_down", WIDTH, 2 * WIDTH, speaks=True)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main() -> None:
    """Write the model, serve it on a free port, and end with the input."""
    file = Path(sys.argv[1])
    write(file)
    settings = xllamacpp.CommonParams()
    settings.model.path = str(file)
    settings.hostnames = ["127.0.0.1"]
    settings.port = 0
    settings.n_ctx = 2 * CONTEXT
    settings.n_parallel = 2
    settings.n_predict = 64
    settings.n_gpu_layers = 0
    settings.cpuparams.n_threads = 1
    settings.endpoint_slots = True
    settings.use_jinja = True
    settings.warmup = False
    settings.ui = False
    server = xllamacpp.Server(settings)
    sys.stdout.write(json.dumps({"event": "listening", "url": server.listening_address}) + "\n")
    sys.stdout.flush()
    sys.stdin.read()
    os._exit(0)  # its threads would be waited for


if __name__ == "__main__":
    main()
