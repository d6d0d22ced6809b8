"""What may not stand in a graph is found whatever else stands there; no byte string makes the walk fail otherwise."""

import contextlib

import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper

from checkstream.errors import ModelError
from checkstream.scoring import onnx_file
from tests.tiny_models import graph

SOUND = graph(2)


def parsed() -> onnx.ModelProto:
    return onnx.load_from_string(SOUND)


def outside() -> TensorProto:
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[1], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value="/etc/hostname")
    return tensor


def branch(tensor: TensorProto) -> onnx.NodeProto:
    inner = helper.make_graph([], "inner", [], [], [tensor])
    return helper.make_node("If", ["c"], ["o"], then_branch=inner, else_branch=inner)


def test_a_graph_of_the_recipe_is_sound() -> None:
    onnx_file.check(SOUND)


@pytest.mark.parametrize("place", ["initializer", "attribute", "branch", "location", "sparse", "training"])
def test_data_outside_the_file_is_found_wherever_it_is_named(place: str) -> None:
    model = parsed()
    match place:
        case "initializer":
            model.graph.initializer.append(outside())
        case "attribute":
            model.graph.node.append(helper.make_node("Constant", [], ["k"], value=outside()))
        case "branch":
            model.graph.node.append(branch(outside()))
        case "location":
            model.graph.initializer[3].data_location = TensorProto.EXTERNAL
        case "sparse":
            model.graph.sparse_initializer.add().values.CopyFrom(outside())
        case _:
            model.training_info.add().initialization.name = "x"
    with pytest.raises(ModelError, match="outside its file"):
        onnx_file.check(model.SerializeToString())


def varint(number: int) -> bytes:
    data = b""
    while number > 0x7F:
        data, number = data + bytes([number & 0x7F | 0x80]), number >> 7
    return data + bytes([number])


def in_an_initializer(field: bytes) -> bytes:
    """Return a sound graph with one more initializer, which holds this field; readers join fields of one number."""
    inner = b"\x2a" + varint(len(field)) + field
    return SOUND + b"\x3a" + varint(len(inner)) + inner


@pytest.mark.parametrize("above", [1 << 32, 1 << 34])
def test_data_outside_the_file_is_found_behind_bits_that_the_runtime_drops(above: int) -> None:
    entry = b"\x0a\x08location\x12\x01w"
    hidden = varint(13 << 3 | 2 | above) + varint(len(entry)) + entry
    with pytest.raises(ModelError, match="not an ONNX file"):
        onnx_file.check(in_an_initializer(hidden))
    location = b"\x70" + varint(TensorProto.EXTERNAL | above)
    with pytest.raises(ModelError, match="outside its file"):
        onnx_file.check(in_an_initializer(location))


def test_operators_of_strangers_are_named() -> None:
    for change in ("node", "opset", "inner"):
        model = parsed()
        if change == "node":
            model.graph.node[0].domain = "com.evil"
        elif change == "opset":
            model.opset_import.add(domain="com.evil", version=1)
        else:
            node = branch(onnx.numpy_helper.from_array(__import__("numpy").zeros(1), "z"))
            node.attribute[0].g.node.add(op_type="Run", domain="com.evil")
            model.graph.node.append(node)
        with pytest.raises(ModelError, match=r"`com\.evil`"):
            onnx_file.check(model.SerializeToString())


def test_nesting_is_bounded() -> None:
    def field(number: int, data: bytes) -> bytes:
        size = bytes([len(data) & 0x7F | 0x80, len(data) >> 7 & 0x7F | 0x80, len(data) >> 14])
        return bytes([number << 3 | 2]) + size + data

    inner = b""
    for _ in range(400):
        inner = field(1, field(5, field(6, inner)))  # a node with an attribute with a graph
    with pytest.raises(ModelError, match="nested too deeply"):
        onnx_file.check(field(7, inner))


@pytest.mark.parametrize(
    "data", [b"", b"\x00", b"PK\x03\x04", b"\x80\x04\x95cos\nsystem\n", b"\xff" * 40, SOUND[:-9], b"ORTM" * 9]
)
def test_what_is_no_onnx_file_is_refused(data: bytes) -> None:
    with pytest.raises(ModelError, match="not an ONNX file"):
        onnx_file.check(data)


@given(data=st.binary(max_size=200), at=st.integers(0, len(SOUND) - 1))
def test_g23_any_bytes_end_in_a_verdict(data: bytes, at: int) -> None:
    for file in (data, SOUND[:at] + data + SOUND[at:], SOUND[:at] + data):
        with contextlib.suppress(ModelError):
            onnx_file.check(file)
