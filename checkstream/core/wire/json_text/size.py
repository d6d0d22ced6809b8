"""How much an answer may say: an event of it is read in one step and leaves in one, whatever it is made of (G33).

Values are counted before they are read, by commas, brackets and braces outside of strings. What is no JSON is left to
its reader.
"""

from __future__ import annotations

from collections.abc import Generator

from checkstream.core.wire.json_text.spans import string_at
from checkstream.errors import WireError

MOST_VALUES = 12_288
"""Of JSON: what lists log probabilities of some tens of tokens has that many, nothing else comes near."""
MOST_VALUES_OF_WHOLE = 2_000_000
"""The same of an answer that is not streamed, which is read in many steps."""
MOST_TEXTS = 256
"""In channels of their own, such as content, arguments of calls, and fields in which something was found."""
MOST_TEXTS_OF_WHOLE = 4096
MOST_TEXTS_OF_CHOICE = 512
"""The same of a choice of an answer that is not streamed: it is read in one step."""
MOST_EXTRAS = 2048
"""Strings, numbers and names besides these; many numbers of one list are one."""
MOST_EXTRAS_OF_WHOLE = 49_152
MOST_HALVES = 8192
"""Surrogates in escapes: what stands alone of them is mended one by one."""
COUNTING_WORK = 500
"""Of one step of counting (see `match.work`)."""
_STRINGS = 1000
"""That are passed over in one step."""


def counting(data: bytes) -> Generator[None, None, None]:
    """Count the values of a JSON text in steps, as far as they must be.

    Raises:
        WireError: it has more than `MOST_VALUES`, or spells more than `MOST_HALVES`.
    """
    halves = data.count(b"\\ud")  # as dear for a million backslashes as to read them
    yield
    halves += data.count(b"\\uD")
    yield
    if halves > MOST_HALVES:
        raise WireError(f"the event spells more than {MOST_HALVES} halves of characters; check the upstream")
    # Of n values in k containers no more than n + k stand behind a comma or an opening.
    if data.count(b",") + data.count(b"[") + data.count(b"{") < MOST_VALUES:
        return
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return
    found = at = strings = 0
    while True:
        quote = text.find('"', at)
        end = quote if quote >= 0 else len(text)
        found += text.count(",", at, end) + text.count("[", at, end) + text.count("{", at, end)
        if found >= MOST_VALUES:
            raise WireError(f"the event has more than {MOST_VALUES} values; check the upstream")
        string = string_at(text, quote) if quote >= 0 else None
        if string is None:
            return
        at = string[1]
        strings += 1
        if strings > 3 * MOST_VALUES:
            return
        if not strings % _STRINGS:
            yield
