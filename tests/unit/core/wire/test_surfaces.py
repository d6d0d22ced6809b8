"""Which paths are guarded."""

from __future__ import annotations

from checkstream.core.wire.surfaces import SURFACES, surface_for


def test_lookup_by_path_and_method() -> None:
    chat = surface_for("/v1/chat/completions")
    text = surface_for("/v1/completions")
    assert chat is not None
    assert text is not None
    assert (chat.name, text.name) == ("openai.chat", "openai.completions")
    assert surface_for("/v1/chat/completions", "GET") is None
    assert surface_for("/v1/images/generations") is None
    assert len({surface.name for surface in SURFACES.values()}) == len(SURFACES)
