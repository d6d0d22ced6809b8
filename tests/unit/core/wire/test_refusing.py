from __future__ import annotations

import pytest

from checkstream.core.wire.refusing import named
from checkstream.core.wire.surfaces import SURFACES


@pytest.mark.parametrize(
    ("message", "rule_id", "param", "said"),
    [
        ("No.", None, "prompt", "No."),
        ("No.", "R-1", None, "No. (rule R-1)"),
        ("No.", "R-1", "messages[3]", "No. (rule R-1, messages[3])"),
        ("This prompt was refused.", "R-1", "prompt", "This prompt was refused. (rule R-1, prompt)"),
        ("A detector of rule R-1 failed.", "R-1", "prompt", "A detector of rule R-1 failed."),
    ],
)
def test_a_refusal_names_its_rule_and_its_place_once(
    message: str, rule_id: str | None, param: str | None, said: str
) -> None:
    assert named(message, rule_id, param) == said


@pytest.mark.parametrize("surface", sorted(SURFACES))
def test_every_surface_names_the_place_in_the_message_that_sdks_show(surface: str) -> None:
    body = SURFACES[surface].error_body("request_blocked", "This prompt was refused.", "R-1", "prompt")
    assert b"This prompt was refused. (rule R-1, prompt)" in body
