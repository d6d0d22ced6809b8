"""Settings of the runtime side by side: what one window costs each shipped graph with other kernels, threads, batches.

    python -m bench.kernels [--rounds N]

`as shipped` is how `serve` runs it. `exact kernels` is what it is told to use on a processor whose quick ones cut sums
off (AVX2 without VNNI, see `scoring.saturation`), run here. `four at once` is a batch, of which each window costs a
quarter; `serve` has none, since an INT8 graph has one scale for a whole batch and texts would score by their
neighbours. Wall time of one call, medians of rounds in turn: it is for a machine without other work.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from bench import report
from checkstream.scoring.onnx_runtime import ort

_MODELS = Path(__file__).parents[1] / "models"
_GRAPHS = ("safety/gate", "safety/model", "injection/gate", "injection/model", "ner/model", "domain/model")
_TOKENS = (16, 32)
"""What the gate of `safety` reads of a running answer, and a whole window of its."""
_BATCH, _CALLS, _TOP_ID = 4, 4, 2000


def _call(data: bytes, tokens: int, batch: int = 1, threads: int = 1, *, exact: bool = False) -> Callable[[], object]:
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.enable_mem_pattern = options.enable_cpu_mem_arena = False
    options.log_severity_level = 4
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    if exact:
        options.add_session_config_entry("session.x64quantprecision", "1")
    left_out = ["SkipLayerNormFusion"]
    session = ort.InferenceSession(data, options, providers=["CPUExecutionProvider"], disabled_optimizers=left_out)
    ids = np.random.default_rng(0).integers(5, _TOP_ID, (batch, tokens))
    given = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
    feed = {each.name: given[each.name] for each in session.get_inputs()}
    return lambda: session.run(None, feed)


def _row(name: str, tokens: int, rounds: int) -> list[str]:
    data = (_MODELS / f"{name}.onnx").read_bytes()
    ways = {
        "as shipped": (_call(data, tokens), 1),
        "exact kernels": (_call(data, tokens, exact=True), 1),
        "two threads": (_call(data, tokens, threads=2), 1),
        "four at once": (_call(data, tokens, _BATCH), _BATCH),
    }
    taken: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(rounds):
        for way, (call, windows) in ways.items():
            began = time.perf_counter()
            for _ in range(_CALLS):
                call()
            taken[way].append((time.perf_counter() - began) / _CALLS / windows * 1e6)
    middle = {way: statistics.median(each) for way, each in taken.items()}
    first = middle["as shipped"]
    return [name, str(tokens), f"{first:.0f}", *(f"{us:.0f} ({us / first:.2f}x)" for us in [*middle.values()][1:])]


def _rounds(text: str) -> int:
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 8 else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"`{text}` is no number of rounds; give a whole number from 1")
    return number


def main(given: list[str]) -> int:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m bench.kernels", description=__doc__)
    parser.add_argument("--rounds", type=_rounds, default=40)
    args = parser.parse_args(given)
    rows = [_row(name, tokens, args.rounds) for name in _GRAPHS for tokens in _TOKENS]
    head = ["graph", "tokens", "as shipped, us", "exact kernels", "two threads", "four at once, each"]
    print(*report.table(head, rows), "", *report.machine(), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
