"""The one table of entity examples: (entity, text, the spans that are found). All values are made up.

Values in `[[...]]` are the expected spans; the markers are not part of the text. Check digits are computed here by
means of their own, and secrets are put together from pieces, so that no forge's scanner takes them for real.
"""

from __future__ import annotations

from typing import NamedTuple

from tests.unit.core.match.entities.examples.contacts import CONTACTS
from tests.unit.core.match.entities.examples.money import MONEY
from tests.unit.core.match.entities.examples.people import PEOPLE
from tests.unit.core.match.entities.examples.secrets import SECRETS


class Example(NamedTuple):
    entity: str
    text: str
    spans: tuple[tuple[int, int], ...]


def marked(entity: str, text: str) -> Example:
    """Read `text` with its expected spans in double square brackets."""
    plain, spans = "", []
    for piece in text.split("[[")[0:1]:
        plain += piece
    for piece in text.split("[[")[1:]:
        value, _, rest = piece.partition("]]")
        spans.append((len(plain), len(plain) + len(value)))
        plain += value + rest
    return Example(entity, plain, tuple(spans))


_TABLE = CONTACTS | PEOPLE | MONEY | SECRETS
EXAMPLES: tuple[Example, ...] = tuple(marked(entity, text) for entity, texts in _TABLE.items() for text in texts)
"""Every example, in the table's order. An example without spans must find nothing."""
