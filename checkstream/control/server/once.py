"""Which requests of nodes that only read have come before. Pure.

Each names the attestation that its node has made last, whose numbers only grow, and a word by chance. So little is
kept, until the node has attested a few times more, and what was seen on its way counts for nobody.
"""

from __future__ import annotations

from collections import OrderedDict

_SESSIONS = 4
"""Attestations of one node under which requests still come in: more than one process may speak for it at once."""
_MOST_WORDS = 20_000
"""Of one attestation; a bundle has some hundred files."""
_WORD_CHARS = range(16, 65)


class Once:
    """What has come, by node and attestation."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._seen: dict[str, OrderedDict[int, set[str]]] = {}

    def takes(self, node: str, once: str, newest: int) -> bool:
        """Tell whether a request counts, and keep that it has come.

        Args:
            node: Whose it is.
            once: What it is known by: the number of an attestation, a dot, a word.
            newest: Number of the node's newest attestation.
        """
        number, _, word = once.partition(".")
        if not (number.isascii() and number.isdecimal()) or len(number) > 20 or len(word) not in _WORD_CHARS:
            return False
        sequence, own = int(number), self._seen.setdefault(node, OrderedDict())
        if sequence == newest and sequence not in own:
            own[sequence] = set()
            if len(own) > _SESSIONS:
                own.popitem(last=False)
        words = own.get(sequence)
        if words is None or word in words or len(words) >= _MOST_WORDS:
            return False
        words.add(word)
        return True
