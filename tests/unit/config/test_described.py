"""Settings say what they are for: to editors by the schema, to people by the reference page.

That every one does, and that the page is up to date, is in `tests/unit/test_docs.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import jsonschema
import msgspec
import pytest
import yaml
from msgspec import Meta

from checkstream.config import Config, json_schema, reference
from checkstream.config.control import ControlConfig
from checkstream.config.described import descriptions, groups
from checkstream.config.own_models import OwnModels
from checkstream.config.parts import Settings
from checkstream.config.reference import in_words


def every_setting() -> Iterator[tuple[type[msgspec.Struct], str]]:
    for root in (Config, OwnModels, ControlConfig):
        for group in groups(root):
            for field in group.fields:
                yield group.cls, field.encode_name


def test_the_schema_describes_every_setting_and_takes_a_configuration() -> None:
    schema = json_schema()
    definitions = schema["$defs"]
    assert isinstance(definitions, dict)
    said = [each.get("description") for group in definitions.values() for each in group["properties"].values()]
    assert len(said) > 100
    assert all(said)
    jsonschema.Draft202012Validator.check_schema(schema)
    route = {"name": "c", "match": {"path": "/v1/completions"}, "upstream": "u", "policies": ["builtin:default"]}
    sound: dict[str, object] = {"upstreams": {"u": {"url": "http://h"}}, "routes": [route]}
    jsonschema.validate(sound, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**sound, "route": []}, schema)


def test_the_page_names_every_setting_with_its_default() -> None:
    page = reference()
    for group, name in every_setting():
        assert f"| `{name}` | " in page, group
    for line in page.splitlines():
        if line.startswith("| `"):
            default = line.split(" | ")[2]
            assert default in {"needed", "as below"} or yaml.safe_load(default.strip("`")) is not Ellipsis


class _Inner(Settings, frozen=True):
    deep: int = 1
    """Below."""


class _Odd(Settings, frozen=True):
    """A group."""

    share: Annotated[float, Meta(gt=0, lt=1)] = 0.5
    """One
    two."""
    silent: int = 0
    inner: list[_Inner] | None = None
    """Three."""


def test_a_setting_without_a_string_is_told_from_those_that_have_one() -> None:
    assert descriptions(_Odd) == {"share": "One two.", "inner": "Three."}
    assert [group.cls for group in groups(_Odd)] == [_Odd, _Inner]


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (Annotated[float, Meta(gt=0, lt=1)], "a number, more than 0 and less than 1"),
        (Annotated[int, Meta(ge=1024)], "a whole number, 1,024 or more"),
        (Annotated[int, Meta(le=7)], "a whole number, up to 7"),
        (int, "a whole number"),
        (dict[str, int | str] | None, "a mapping of names: a whole number or text or null"),
        (list[_Inner], "a list: a mapping"),
    ],
)
def test_values_are_told_in_words(kind: type, words: str) -> None:
    assert in_words(msgspec.inspect.type_info(kind)) == words
