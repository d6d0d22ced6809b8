"""What is reviewed, and what people say of it."""

from __future__ import annotations

from typing import Literal

import msgspec

Word = Literal["right", "wrong", "unsure"]
"""The rule was right to fire; it was wrong; it can't be told."""
Queue = Literal["sampled", "flagged"]
"""sampled: drawn by chance, so that rates can be read from it; flagged: somebody asked for it, or a rule did."""


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """One rule that fired in one exchange."""

    id: str
    queue: Queue
    share: float
    """Of the findings of its rule, the share that was drawn when it was; 0..1, and 1 of what was flagged."""
    stream: str
    route: str
    rule: str
    policy: str
    """`name@version`."""
    action: str
    stage: str
    """ingress, midstream or egress."""
    model: str = ""
    """`name@version` of the model that has scored; empty: none did."""
    detector: str = ""
    """`model.label` of a classifier that the rule asked; empty: none."""
    score: float | None = None
    """What it said, 0..1."""
    at_s: float
    """When the exchange ended, seconds since 1970."""
    text: str = ""
    """What was judged, as far as the privacy mode lets it be seen; empty: not at all."""
    masked: bool = True
    """Something in the text stands for what nobody may see: it can't be tried again."""


class Label(msgspec.Struct, frozen=True, kw_only=True):
    """What one person says of one item."""

    item: str
    by: str
    word: Word
    at_s: float
