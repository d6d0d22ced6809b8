"""The section `evidence`."""

from __future__ import annotations

import pytest

from checkstream.config import EvidenceSettings, Secret


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"store": "sqlite:"}, "names no file"),
        ({"store": "redis://h"}, "is no store"),
        ({"store": "https://"}, "is no store"),
        ({"store": "https://h:99999"}, "is no store"),
        ({"store": "postgresql://u:p@h/d"}, "holds a password"),
        ({"store": "postgresql://u@h/d?password=p"}, "holds a password"),
        ({"secret": Secret(env="X")}, "has no password"),
        ({"hosts": ("https://h/",)}, "no name of a host"),
        ({"private_hosts": ("",)}, "no name of a host"),
        ({"chunk_tokens": 100, "overlap_tokens": 51}, "more than half"),
    ],
)
def test_what_can_not_be_used_is_refused(settings: dict[str, object], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        EvidenceSettings(**settings)  # type: ignore[arg-type]


def test_the_kinds_of_stores_are_taken() -> None:
    assert EvidenceSettings().file == "var/evidence.db"
    for store in ("https://search.example.com:9200/index", "postgresql://me@db.example.com/evidence"):
        assert EvidenceSettings(store=store, secret=Secret(env="X")).file is None
