"""G34: whatever an event is like, it is read by a mould as the surface reads it, or not by a mould at all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkstream.core.wire.moulds import Moulds
from checkstream.core.wire.surface import Frame, Surface
from checkstream.core.wire.surfaces import SURFACES
from tests.unit.core.wire.test_moulds import RESPONSES, SERVERS, event, frame, learnt

PIECES = st.sampled_from(
    [
        b"", b" ", b"\\", b'"', b'\\"', b"\\u00", b"\\ud83d", b"\xff", b"\xe2\x82", b"\x00", b"{", b"}", b"]", b",",
        b"null", b"0", b"1", b"-", b"9" * 12, b'"content":"x",', b'"index":7,', b'"id":"joe@example.com",', b"\n",
        "\u2028".encode(), b'"finish_reason":"stop"', b'"sequence_number":9,', b'"delta":{},', b'"a","b":"c"', b":",
        b"\r\n\r\n",
    ]
)  # fmt: skip
EDITS = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 12), PIECES), min_size=1, max_size=3)
TEXTS = st.text(max_size=12)


def edited(surface: Surface, found: Frame, edits: list[tuple[float, int, bytes]]) -> list[Frame]:
    """Return, as the decoder cuts them, the events of a stream in which pieces of one's data are others."""
    data = found.data or b""
    for share, length, piece in edits:
        at = int(share * len(data))
        data = data[:at] + piece + data[at + length :]
    head = b"event: " + found.event.encode() + b"\n" if found.event else b""
    return surface.framing.decoder(1_000_000, surface.events).decode(head + b"data: " + data + b"\n\n")


@pytest.mark.parametrize("server", sorted(SERVERS))
@given(text=TEXTS, edits=EDITS)
def test_g34_an_event_is_read_by_a_mould_as_its_surface_reads_it_or_not_at_all(
    server: str, text: str, edits: list[tuple[float, int, bytes]]
) -> None:
    surface, moulds = SERVERS[server][0], learnt(server)
    for found in edited(surface, frame(server, text), edits):
        quick = moulds.read(found)
        if quick is None:
            continue
        slow = surface.read_event(found)
        assert (quick.deltas, quick.choices, quick.finished, quick.extras) == (slow.deltas, slow.choices, (), ())
        assert (quick.raw, slow.finished, slow.unscanned, slow.usage) == (slow.raw, (), (), False)


@pytest.mark.parametrize("server", sorted(RESPONSES))
@given(text=TEXTS, number=st.integers(0, 10**9 + 1), edits=EDITS)
def test_g34_an_event_with_a_number_is_read_by_a_mould_as_its_surface_reads_it_or_not_at_all(
    server: str, text: str, number: int, edits: list[tuple[float, int, bytes]]
) -> None:
    surface = SURFACES["openai.responses"]
    reading = surface.receiving(None)
    moulds, first = Moulds(), event(server, "The ", 4)
    known = reading.read_event(first)
    moulds.learn(first, known)
    said = {(extra.path, extra.text) for extra in known.extras}
    for found in edited(surface, event(server, text, number), edits):
        quick = moulds.read(found)
        if quick is None:
            continue
        slow = reading.read_event(found)
        assert (quick.deltas, quick.choices, quick.number) == (slow.deltas, slow.choices, slow.number)
        assert (quick.raw, slow.finished, slow.usage) == (slow.raw, (), False)
        assert {(extra.path, extra.text) for extra in slow.extras} <= said
