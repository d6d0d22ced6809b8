"""One ONNX graph, checked and ready: token ids in, logits out, on the calling thread alone.

No threads of its own and no spinning, since many streams share the core; and without the fusion of layer norms, whose
kernel is slower than what it replaces. A graph is warmed up at the shapes that it will see, which also proves that it
takes them.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from checkstream.errors import ModelError
from checkstream.scoring import mapped, onnx_file
from checkstream.scoring.onnx_runtime import ort
from checkstream.scoring.saturation import saturates

_INPUTS = ("input_ids", "attention_mask", "token_type_ids")
_LEFT_OUT = ["SkipLayerNormFusion"]
_WARM_LENGTHS = (1, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)


class Graph:
    """A loaded graph. `run` may be called by several threads at once."""

    def __init__(
        self, data: bytes, *, rank: int, columns: int, top_id: int, longest: int, shared: Path | None = None
    ) -> None:
        """Check and load a graph, and run it once at each usual shape.

        Args:
            data: the ONNX file.
            rank: 2 for logits[batch, column], 3 for logits[batch, token, column].
            columns: how many the output must have.
            top_id: the highest token id that it will get.
            longest: tokens of the longest window that it will get.
            shared: folder where it is kept for other processes, too; None: this one has it to itself.

        Raises:
            ModelError: it isn't sound, or doesn't take these inputs or give this output.
        """
        onnx_file.check(data)
        self._rank = rank
        self._columns = columns
        self._mask = np.ones((1, longest), np.int64)
        try:
            self._session = _session(data, shared)
        except Exception as error:  # the runtime raises many kinds, none of them public
            raise ModelError(f"the graph can't be loaded: {_reason(error)}; export it anew") from error
        self._session._model_bytes = None  # noqa: SLF001 - kept for another provider, which never comes
        self._check_inputs()
        self._output = self._check_output()
        self._warm_up(top_id, longest)

    def _check_inputs(self) -> None:
        given = {each.name: each for each in self._session.get_inputs()}
        for name in _INPUTS[:2]:
            if name not in given:
                raise ModelError(f"the graph has no input `{name}`; export it with {_INPUTS[0]} and {_INPUTS[1]}")
        for name, each in given.items():
            if name not in _INPUTS:
                raise ModelError(f"the graph wants an input `{name}`, which is not known; export it without")
            if each.type != "tensor(int64)" or len(each.shape) != 2:
                raise ModelError(f"input `{name}` of the graph is not int64[batch, token]; export it so")
        self.typed = "token_type_ids" in given
        """It wants token types."""

    def _check_output(self) -> str:
        outputs = self._session.get_outputs()
        logits = [each for each in outputs if each.name == "logits"] or outputs[: len(outputs) == 1]
        if not logits:
            raise ModelError("the graph has no output `logits`; name its output so")
        (output,) = logits
        shape = list(output.shape)
        if output.type != "tensor(float)" or len(shape) != self._rank:
            wanted = "[batch, label]" if self._rank == 2 else "[batch, token, label]"
            raise ModelError(
                f"output `{output.name}` of the graph is not float32{wanted}; correct `kind`, or export it so"
            )
        if isinstance(shape[-1], int) and shape[-1] != self._columns:
            raise ModelError(self._wrong_columns(shape[-1]))
        return str(output.name)

    def _wrong_columns(self, found: int) -> str:
        return f"the graph gives {found} columns, the manifest names {self._columns}; name each in `columns`"

    def _warm_up(self, top_id: int, longest: int) -> None:
        for length in (*(length for length in _WARM_LENGTHS if length < longest), longest):
            try:
                logits = self.run([top_id] * length)
            except Exception as error:
                raise ModelError(
                    f"the graph fails at a window of {length} tokens up to id {top_id}: {_reason(error)}; "
                    "lower `window_tokens`, or use the tokenizer that belongs to it"
                ) from error
            if logits.shape[-1:] != (self._columns,):
                raise ModelError(self._wrong_columns(logits.shape[-1] if logits.shape else 0))
            if logits.shape != ((self._columns,) if self._rank == 2 else (length, self._columns)):
                raise ModelError(f"the graph gives {list(logits.shape)} for {length} tokens; correct `kind`")

    def run(self, ids: Sequence[int], types: Sequence[int] | None = None) -> NDArray[np.float32]:
        """Return the logits of one window of at least one token: float32[column], or float32[token, column].

        INVARIANT: they depend on the window alone. So windows are not run together, nor padded: an INT8 graph has one
        scale for the activations of a whole batch, and a text would score by its neighbours. Four at once would take
        15 to 20 % less each (4 layers of 192, 32 tokens).

        Args:
            ids: the tokens, not more than the longest window has.
            types: as many token types; None: all 0.
        """
        tokens = np.array([ids], np.int64)
        feed = {_INPUTS[0]: tokens, _INPUTS[1]: self._mask[:, : len(ids)]}
        if self.typed:
            feed[_INPUTS[2]] = np.zeros_like(tokens) if types is None else np.array([types], np.int64)
        (logits,) = self._session.run([self._output], feed)
        if logits.shape[:1] != (1,):
            raise ValueError(f"a graph gave {logits.shape[:1]} rows for one window")
        result: NDArray[np.float32] = logits[0]
        return result


def _session(data: bytes, shared: Path | None) -> ort.InferenceSession:
    if shared is not None:
        try:
            return mapped.session(data, shared, _options, _LEFT_OUT)
        except Exception as error:
            logging.getLogger(__name__).warning("a graph is not shared with other processes", exc_info=error)
    return ort.InferenceSession(data, _options(), providers=["CPUExecutionProvider"], disabled_optimizers=_LEFT_OUT)


def _options() -> ort.SessionOptions:
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    options.enable_mem_pattern = False  # one is kept for each shape, and windows have many
    options.enable_cpu_mem_arena = False  # it keeps what the longest window took, and is no quicker
    options.log_severity_level = 4  # what goes wrong is raised
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_session_config_entry("session.load_model_format", "ONNX")
    if saturates():  # the scores would be others than on the machine where their thresholds were set
        options.add_session_config_entry("session.x64quantprecision", "1")
    return options


def _reason(error: Exception) -> str:
    return " ".join(str(error).split())[:200]
