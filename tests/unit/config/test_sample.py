"""What `config init` writes: the configuration of `serve --upstream`, explained, and sound with all uncommented."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from checkstream.config import GroundingSettings, default_config, read_config, sample
from checkstream.config.described import descriptions, groups
from checkstream.config.parts import Settings
from checkstream.config.settings import Config

URL = "http://127.0.0.1:8000"
TEXT = sample(URL)
SETTINGS = [
    number for number, line in enumerate(TEXT.splitlines()) if line.lstrip()[:1] == "#" and line.lstrip()[1:2].isalpha()
]


def uncommented(numbers: set[int]) -> str:
    return "\n".join(
        line.replace("#", "", 1) if number in numbers else line for number, line in enumerate(TEXT.splitlines())
    )


def test_it_is_what_the_command_line_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert read_config("c.yaml", TEXT, tmp_path) == default_config(URL)


def test_with_every_line_uncommented_it_says_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    config = read_config("c.yaml", uncommented(set(SETTINGS)), tmp_path)
    assert config.routes[0].grounding == GroundingSettings()
    assert without_defaults(config) == default_config(URL)


def without_defaults(group: Any) -> Any:
    """Return a group without those groups in it that need not be there and say nothing of their own."""
    if isinstance(group, tuple):
        return tuple(map(without_defaults, group))
    if not isinstance(group, msgspec.Struct):
        return group
    found = {field.name: without_defaults(getattr(group, field.name)) for field in msgspec.structs.fields(group)}
    for field in msgspec.structs.fields(group):
        value = found[field.name]
        if field.default is None and isinstance(value, Settings) and value == type(value)():
            found[field.name] = None
    return msgspec.structs.replace(group, **found)


def test_every_setting_stands_in_it_below_what_it_is_for() -> None:
    lines = [line.strip() for line in TEXT.splitlines()]
    words = " ".join(line.removeprefix("# ") for line in lines)
    names = {line.lstrip("-# ").partition(":")[0] for line in lines}
    # whose values nobody can make up
    left_out = {"Secret", "WebhookSettings", "Caller", "Cors", "PseudonymSettings", "ToolSettings", "FleetSettings"}
    left_out |= {"BundleSettings", "ControlSettings", "OtlpSettings", "TlsSettings", "CallerWays", "JwtCallers"}
    for group in groups(Config):
        if group.cls.__name__ not in left_out:
            for field in group.fields:
                assert field.encode_name in names, group.cls
                assert descriptions(group.cls)[field.encode_name] in words


@given(st.text(alphabet=st.characters(categories=["L", "N", "P", "S"]), min_size=1))
def test_any_upstream_that_is_one_can_be_read_back(path: str) -> None:
    url = f"http://host/{path}"
    try:
        text = sample(url)
    except ValueError:
        return
    assert yaml.safe_load(text)["upstreams"]["default"]["url"] == url
