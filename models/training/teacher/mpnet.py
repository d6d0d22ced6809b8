"""MPNet: BERT whose attention also knows how far apart two tokens are.

Source: Song et al. 2020 (MPNet); the distances are those of Raffel et al. 2020 (T5).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from models.training.encoder import Encoder
from models.training.graph import Shape

FIRST_POSITION = 2
"""Row of the pretrained table for a text's first token; the rows before are for padding."""

DISTANCES = 32
"""Rows of the table: half for what stands behind a token, half for what stands before it."""
_FAR = 128
"""Tokens this far away, and farther, share a row."""


class Mpnet(Encoder):
    """An encoder with one table of distances, a number for each attention head, that all layers share."""

    def __init__(self, shape: Shape, labels: int) -> None:
        """Build one with random weights."""
        super().__init__(shape, labels)
        self.distances = nn.Embedding(DISTANCES, shape.heads)
        self.tokens.padding_idx = None  # piece 0 begins every text
        for module in self.modules():
            if isinstance(module, nn.LayerNorm):
                module.eps = 1e-5

    def reach(self, mask: Tensor) -> Tensor:
        """Return what attention is moved by, float32[batch, head, token, token]; `mask` is int64[batch, token]."""
        at = torch.arange(mask.shape[1], device=mask.device)
        moved = self.distances(rows(at[None, :] - at[:, None])).permute(2, 0, 1)
        return moved.masked_fill(mask[:, None, None, :] == 0, -math.inf)


def rows(ahead: Tensor) -> Tensor:
    """Return the row of the table for each distance: exact ones up to 7, then ever wider ranges.

    Args:
        ahead: int64, by how many tokens the other one stands behind.
    """
    half = DISTANCES // 2
    exact = half // 2
    distance = ahead.abs()
    # Where float64 would round another way than the float32 of the pretraining, a distance would get the wrong row.
    share = torch.log(distance.clamp(min=1).float() / exact) / math.log(_FAR / exact)
    wide = (exact + (share * (half - exact)).long()).clamp(max=half - 1)
    return torch.where(distance < exact, distance, wide) + (ahead > 0) * half
