from __future__ import annotations

import re

from checkstream.proxy.ids import identify, new_id


def test_an_id_is_no_part_of_a_number_or_a_word() -> None:
    made = {new_id() for _ in range(200)}
    assert len(made) == 200
    assert all(re.fullmatch(r"([b-df-hj-np-tv-xz][0-9]){12}", each) for each in made)


def test_an_answer_has_its_upstreams_id_in_every_header_that_clients_read_and_else_its_streams() -> None:
    cases: list[tuple[dict[str, str], str]] = [
        ({}, "s"),
        ({"x-request-id": "up"}, "up"),
        ({"request-id": "up"}, "up"),
        ({"apim-request-id": "up"}, "up"),
    ]
    for given, known_as in cases:
        headers = {"x-checkstream-stream": "s", **given}
        identify(headers, ("x-request-id", "request-id"))
        assert (headers["x-request-id"], headers["request-id"]) == (known_as, known_as)
    identify(nothing := dict[str, str]())
    assert not nothing
