"""A graph says the same on every processor: what it multiplies in INT8 is never cut off."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper

from checkstream.scoring.graph import Graph
from checkstream.scoring.saturation import _product, saturates

TERMS = 64
EACH = {
    "by one operator": [
        helper.make_node("DynamicQuantizeMatMul", ["x", "weight", "scale"], ["logits"], domain="com.microsoft")
    ],
    "by several": [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["small", "step", "zero"]),
        helper.make_node("MatMulInteger", ["small", "weight", "zero"], ["whole"]),
        helper.make_node("Cast", ["whole"], ["sum"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["step", "scale"], ["unit"]),
        helper.make_node("Mul", ["sum", "unit"], ["logits"]),
    ],
}
"""How graphs multiply: as ours do, and as others are exported."""


def summing(nodes: list[object]) -> bytes:
    """A graph whose logits are sums of as large products as INT8 knows: 255 times 127, so that two exceed 16 bits."""
    rows = np.ones((4, TERMS), np.float32)
    rows[:, 0] = 0
    values = {
        "rows": rows,
        "weight": np.full((TERMS, 2), 127, np.int8),
        "scale": np.full(2, 1 / 127, np.float32),
    }
    graph = helper.make_graph(
        [helper.make_node("Gather", ["rows", "input_ids"], ["x"]), *nodes],
        "sums",
        [
            helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "token"])
            for name in ("input_ids", "attention_mask")
        ],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", "token", 2])],
        [numpy_helper.from_array(value, name) for name, value in values.items()],
    )
    known = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    data: bytes = helper.make_model(graph, opset_imports=known, ir_version=10).SerializeToString()
    return data


@pytest.mark.parametrize("way", [*EACH])
@pytest.mark.parametrize("shared", [False, True])
def test_sums_of_large_products_are_exact_on_every_processor(way: str, shared: bool, tmp_path: Path) -> None:
    """Where there is AVX2 and no VNNI, the runtime's quickest kernels hold two products in 16 bits: 32 for 63."""
    for _ in range(2):  # the second maps what the first has written
        graph = Graph(summing(EACH[way]), rank=3, columns=2, top_id=3, longest=8, shared=tmp_path if shared else None)
        assert graph.run([0, 1, 2]) == pytest.approx(TERMS - 1, rel=1e-5)


def test_the_product_that_is_tried_is_one_that_the_standard_knows() -> None:
    model = onnx.load_from_string(_product())
    onnx.checker.check_model(model, full_check=True)
    assert [node.op_type for node in model.graph.node] == ["MatMulInteger"]


@pytest.mark.parametrize("way", [*EACH])
def test_where_no_sum_is_said_to_be_cut_off_none_is_though_nothing_asks_for_it(way: str) -> None:
    session = ort.InferenceSession(summing(EACH[way]), providers=["CPUExecutionProvider"])
    tokens = np.array([[0, 1, 2]], np.int64)
    (sums,) = session.run(None, {"input_ids": tokens, "attention_mask": np.ones_like(tokens)})
    exact = sums == pytest.approx(TERMS - 1, rel=1e-5)
    assert exact or saturates()


def test_where_kernels_can_not_be_tried_the_exact_ones_are_used(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise RuntimeError("no such operator")

    monkeypatch.setattr(ort, "InferenceSession", refused)
    saturates.cache_clear()
    try:
        assert saturates()
        assert "could not be tried" in caplog.text
    finally:
        saturates.cache_clear()
