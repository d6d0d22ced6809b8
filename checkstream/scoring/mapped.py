"""Graphs as several processes of one machine have them: optimised and packed once, in files that all of them map.

A process that loads a graph from bytes has its weights to itself, and packs them for its kernels beside that. Here the
first that needs a graph writes what the runtime made of it to a folder of these processes alone, and all load that: the
weights stand in memory once.
"""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from checkstream.scoring.onnx_runtime import ort

_GRAPH, _WEIGHTS = "graph.onnx", "weights.bin"
_SMALLEST: Final = 1024
"""Bytes of what is put in the file of weights."""


def session(
    data: bytes, folder: Path, options: Callable[[], ort.SessionOptions], disabled: list[str]
) -> ort.InferenceSession:
    """Return a session of a graph whose weights other processes have, too.

    Args:
        data: The ONNX file, which has been checked.
        folder: Of these processes.
        options: Returns options as a session of the bytes would have.
        disabled: Optimisations that are left out.

    Raises:
        Exception: the runtime or the disk refuses; the bytes may still be loaded.
    """
    place = folder / hashlib.sha256(f"{ort.__version__}:{disabled}:".encode() + data).hexdigest()
    if not place.is_dir():
        _prepare(data, place, options(), disabled)
    ready = options()
    ready.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL  # it is optimised
    return ort.InferenceSession(str(place / _GRAPH), ready, providers=["CPUExecutionProvider"])


def _prepare(data: bytes, place: Path, options: ort.SessionOptions, disabled: list[str]) -> None:
    """Write what the runtime makes of a graph, whole or not at all; two processes may do so at the same time."""
    making = Path(tempfile.mkdtemp(prefix="making-", dir=place.parent))
    try:
        options.optimized_model_filepath = str(making / _GRAPH)
        for name, value in (
            ("optimized_model_external_initializers_file_name", _WEIGHTS),
            ("optimized_model_external_initializers_min_size_in_bytes", str(_SMALLEST)),
            ("save_external_prepacked_constant_initializers", "1"),
        ):
            options.add_session_config_entry(f"session.{name}", value)
        ort.InferenceSession(data, options, providers=["CPUExecutionProvider"], disabled_optimizers=disabled)
        with contextlib.suppress(OSError):  # another was first, with the same
            making.rename(place)
        if not place.is_dir():
            raise OSError(f"`{place}` can't be made")
    finally:
        shutil.rmtree(making, ignore_errors=True)
