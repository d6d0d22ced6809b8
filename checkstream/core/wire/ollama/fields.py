"""The fields of Ollama's requests and answers (G31): what is scanned, and what is plain.

Source: Ollama's API reference ("Generate a chat message", "Generate a response", "Generate embeddings"), and the types
of its clients for Python and JavaScript.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

TEXTS: Mapping[str, str] = MappingProxyType({
    "tools": "system",
    "format": "system",
    "system": "system",
    "template": "system",
    "suffix": "user",
})  # fmt: skip
"""Field -> ingress channel: every string within it is scanned."""

_COMMON = frozenset({"model", "stream", "options", "keep_alive", "think", "logprobs", "top_logprobs"})
CHAT = _COMMON | {"messages", "truncate", "shift"}
GENERATE = _COMMON | {"prompt", "raw", "context", "images", "truncate", "shift", "width", "height", "steps"}
EMBED = frozenset({"model", "input", "truncate", "dimensions", "options", "keep_alive"})
EMBEDDINGS = frozenset({"model", "prompt", "options", "keep_alive"})
"""Plain fields of requests, and the one that is read apart (`messages`, `prompt`, `input`)."""
OPTIONS = frozenset({
    "num_keep", "seed", "num_predict", "top_k", "top_p", "min_p", "typical_p", "repeat_last_n", "temperature",
    "repeat_penalty", "presence_penalty", "frequency_penalty", "mirostat", "mirostat_tau", "mirostat_eta",
    "penalize_newline", "stop", "tfs_z", "numa", "num_ctx", "num_batch", "num_gpu", "main_gpu", "low_vram", "f16_kv",
    "logits_all", "vocab_only", "use_mmap", "use_mlock", "num_thread",
})  # fmt: skip
"""Members of `options`."""

KNOWN = frozenset({"model", "done_reason", "remote_model", "remote_host", "done", "error"})
"""Of an answer's object, besides its texts and its end."""
COUNTS = ("prompt_eval_count", "eval_count")
DURATIONS = frozenset({"total_duration", "load_duration", "prompt_eval_duration", "eval_duration", *COUNTS})
MOST_DURATION = 10**12
"""Nanoseconds, some 17 minutes: a longer one has as many figures as a card, and is read."""
CONTEXT = "context"
"""Ids of the tokens of all that was said: they spell the answer once more (G15)."""
