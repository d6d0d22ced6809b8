"""Whether this processor's quickest kernels for INT8 cut sums off, found by having the runtime add up such ones.

Where there is AVX2 and no VNNI, two products of 8-bit numbers are added in 16 bits, and 255 times 127 twice is more
than these hold. The runtime has exact kernels, too, and uses them where it is told so, whether or not the quick ones
are exact: with VNNI, where they are, a window took 70 % longer for that. So it is told so only where they are not.

Source: onnx/onnx.proto (field numbers), of ONNX 1.19.
"""

from __future__ import annotations

import logging
from functools import cache
from typing import Final

import numpy as np

from checkstream.scoring.onnx_runtime import ort

_ROWS, _TERMS, _COLUMNS = 8, 64, 32
"""Enough for the kernels that large products take; each number is below 128, so that a byte holds it."""
_UINT8, _INT8, _INT32 = 2, 3, 6
_OPSET: Final = 13


@cache
def saturates() -> bool:
    """Tell whether sums of large products come out wrong unless the runtime is told to be exact, or can't be tried."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    try:
        session = ort.InferenceSession(_product(), options, providers=["CPUExecutionProvider"])
        return any(_cuts_off(session, factor) for factor in (127, -128))
    except Exception as error:  # the runtime raises many kinds, none of them public
        logging.getLogger(__name__).warning("INT8 kernels could not be tried; the exact ones are used", exc_info=error)
        return True


def _cuts_off(session: ort.InferenceSession, factor: int) -> bool:
    given = {"a": np.full((_ROWS, _TERMS), 255, np.uint8), "b": np.full((_TERMS, _COLUMNS), factor, np.int8)}
    (sums,) = session.run(["c"], given)
    return not (sums == 255 * factor * _TERMS).all()


def _product() -> bytes:
    """Return an ONNX file whose only node multiplies two matrices of 8-bit numbers."""
    node = _part(1, b"a") + _part(1, b"b") + _part(2, b"c") + _part(4, b"MatMulInteger")
    values = _part(11, _value(b"a", _UINT8, _ROWS, _TERMS)) + _part(11, _value(b"b", _INT8, _TERMS, _COLUMNS))
    graph = _part(1, node) + _part(2, b"product") + values + _part(12, _value(b"c", _INT32, _ROWS, _COLUMNS))
    return _number(1, 8) + _part(7, graph) + _part(8, _number(2, _OPSET))


def _value(name: bytes, kind: int, rows: int, columns: int) -> bytes:
    shape = _part(1, _number(1, rows)) + _part(1, _number(1, columns))
    return _part(1, name) + _part(2, _part(1, _number(1, kind) + _part(2, shape)))


def _part(field: int, data: bytes) -> bytes:
    """Return a field of protobuf with a length, which a byte holds up to 127 and two hold beyond."""
    size = len(data)
    return bytes([field << 3 | 2, *([size] if size < 128 else [size & 127 | 128, size >> 7])]) + data


def _number(field: int, value: int) -> bytes:
    return bytes([field << 3, value])
