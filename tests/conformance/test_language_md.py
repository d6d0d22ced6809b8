"""LANGUAGE.md tells the truth: its examples compile, and every key, stage, channel, action and entity is on it."""

from __future__ import annotations

from pathlib import Path

import pytest

from checkstream.core.match.entities import ENTITIES
from checkstream.core.policy import nodes, syntax
from checkstream.core.policy.check import ACTION_STAGES, STAGE_CHANNELS
from checkstream.core.policy.classifiers import ClassifierLabel
from checkstream.core.policy.compile import compile_sources

PAGE = (Path(__file__).parents[2] / "policies" / "LANGUAGE.md").read_text(encoding="utf-8")
EXAMPLES = [block.partition("```")[0] for block in PAGE.split("```yaml\n")[1:]]
LABELS = (ClassifierLabel("lexicon.toxicity"), ClassifierLabel("lexicon.injection"))


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_example_compiles(number: int) -> None:
    assert compile_sources([(f"example {number}", EXAMPLES[number])], LABELS).rules


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 5


def test_every_key_of_a_rule_is_on_the_page() -> None:
    keys = set(syntax.Rule.__struct_fields__) - {"at", "stages", "incomplete"} | {"stage"}
    assert [key for key in sorted(keys) if f"`{key}`" not in PAGE] == []


def test_every_stage_and_channel_is_on_the_page() -> None:
    for stage, channels in STAGE_CHANNELS.items():
        row = next(line for line in PAGE.splitlines() if line.startswith(f"| `{stage}`"))
        assert all(f"`{channel}`" in row for channel in channels)


def test_g08_the_matrix_of_actions_and_stages_is_on_the_page() -> None:
    for action, stages in ACTION_STAGES.items():
        rows = [
            line for line in PAGE.splitlines() if line.startswith(f"| `{action}`") and "`position: start`" not in line
        ]
        said = [cell.strip() == "yes" for cell in rows[0].rstrip(" |").split("|")[-3:]]
        assert said == [stage in stages for stage in STAGE_CHANNELS]


def test_every_action_of_later_versions_is_on_the_page() -> None:
    assert [action for action in sorted(syntax.LATER_ACTIONS) if f"`{action}`" not in PAGE] == []


def test_every_entity_is_on_the_page_in_its_group() -> None:
    for group in ("pii", "secret"):
        row = next(line for line in PAGE.splitlines() if line.startswith(f"| `group:{group}`"))
        named = set(row.split("`")[3::2])
        assert named == {entity.name for entity in ENTITIES.values() if entity.group == group}


def test_the_caps_are_on_the_page() -> None:
    assert f"{nodes.MAX_FILE_CHARS:,} characters" in PAGE
    assert f"deeper than {nodes.MAX_DEPTH} levels" in PAGE
