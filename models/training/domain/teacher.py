"""What MiniLM makes of texts, kept on disk: the student learns to say the same with a fiftieth of the work."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer

from models.training.encoder import Encoder, autocast, base_tokenizer, minilm_l6
from models.training.graph import Float, Shape

_SHAPE = Shape(vocab=30_522, layers=6, hidden=384, heads=12, feed=1536, positions=512)
_PIECES = 96
"""A text is read up to here; what it is about stands at its beginning."""
_BATCH, _SAVED = 32, 4096


class Teacher:
    """MiniLM as it comes, and the mean of its last layer."""

    def __init__(self) -> None:
        """Load the pretrained weights.

        Raises:
            FileNotFoundError: the extra `train` is not installed.
        """
        described = json.loads(base_tokenizer().read_text())
        described["truncation"] = described["padding"] = None
        self._tokenizer = Tokenizer.from_str(json.dumps(described))
        self._tokenizer.enable_truncation(_PIECES)
        self._encoder = Encoder(_SHAPE, 1, dropout=0.0)
        self._encoder.start_from(minilm_l6())
        self._encoder.eval()

    def read(self, windows: Sequence[Sequence[int]]) -> Float:
        """Return float32[window, 384] for windows of MiniLM's own ids."""
        order = sorted(range(len(windows)), key=lambda number: len(windows[number]))
        result = np.zeros((len(windows), _SHAPE.hidden), np.float32)
        for start in range(0, len(order), _BATCH):
            batch = order[start : start + _BATCH]
            ids = torch.zeros(len(batch), len(windows[batch[-1]]), dtype=torch.long)
            mask = torch.zeros_like(ids)
            for row, number in enumerate(batch):
                ids[row, : len(windows[number])] = torch.tensor(windows[number])
                mask[row, : len(windows[number])] = 1
            with torch.no_grad(), autocast():
                states = self._encoder.states(ids, mask).float()
            result[batch] = ((states * mask[:, :, None]).sum(1) / mask.sum(1, keepdim=True)).numpy()
        return result

    def pieces(self, rows: Sequence[int]) -> Float:
        """Return float32[piece, 384]: word pieces that stand alone."""
        first, last = self._tokenizer.encode("").ids
        return self.read([[first, row, last] for row in rows])

    def texts(self, texts: Sequence[str], cache: Path) -> Float:
        """Return float32[text, 384], each text read once in a lifetime of `cache`."""
        known = _kept(cache)
        keys = [_key(text) for text in texts]
        missing = [number for number, key in enumerate(keys) if key not in known]
        for start in range(0, len(missing), _SAVED):
            chunk = missing[start : start + _SAVED]
            windows = [encoding.ids for encoding in self._tokenizer.encode_batch([texts[number] for number in chunk])]
            known.update(zip((keys[number] for number in chunk), self.read(windows).astype(np.float16), strict=True))
            _keep(cache, known)
            print(f"teacher read {start + len(chunk)}/{len(missing)} texts", file=sys.stderr, flush=True)
        return np.stack([known[key] for key in keys]).astype(np.float32)


def _key(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest())


def _kept(cache: Path) -> dict[int, np.ndarray]:
    if not cache.exists():
        return {}
    with np.load(cache, allow_pickle=False) as kept:
        return dict(zip(kept["keys"].tolist(), kept["vectors"], strict=True))


def _keep(cache: Path, known: dict[int, np.ndarray]) -> None:
    cache.parent.mkdir(parents=True, exist_ok=True)
    beside = cache.with_suffix(".part.npz")
    np.savez(beside, keys=np.array(list(known), np.uint64), vectors=np.stack(list(known.values())))
    beside.replace(cache)
