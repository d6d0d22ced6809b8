"""LANGUAGE.md tells the truth: its examples compile, and every key, stage, channel, action and entity is on it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

import pytest

from checkstream.core.cel import functions
from checkstream.core.cel.cost import CHARS_A_STEP
from checkstream.core.match import segments
from checkstream.core.match.entities import ENTITIES
from checkstream.core.policy import (
    action_syntax,
    conditions,
    extends,
    fields,
    nodes,
    syntax,
    templates,
    triggers,
    variables,
)
from checkstream.core.policy.action import (
    AdaptTone,
    Allow,
    AllowConstrained,
    AnyAction,
    AttributeSources,
    ConstrainTools,
    InjectDisclaimer,
    LogEvent,
    LowerTemp,
    Pseudonymise,
    Redact,
    Reject,
    RemoveMessage,
    RequireConfirmation,
    RequireDisclaimer,
    RewriteSpan,
    SafeMode,
    Stop,
)
from checkstream.core.policy.capabilities import CAN, CHAT, MCP, SURFACES, Target, missing
from checkstream.core.policy.classifiers import ClassifierLabel, ModelEntity
from checkstream.core.policy.compile import compile_sources
from checkstream.core.policy.placing import action_channels, action_stages
from checkstream.core.policy.spares_syntax import list_name
from checkstream.core.terms import STAGE_CHANNELS, Stage
from checkstream.core.wire import context
from checkstream.trial.cases import Case, Expect
from tests.conformance.page import MATRIX, PAGE, cells, quoted, rows
from tests.conformance.surfaces import CHANNELS
from tests.fingerprinted import BOOKS

EXAMPLES = [block.partition("```")[0] for block in PAGE.split("```yaml\n")[1:]]
LABELS = (
    ClassifierLabel("lexicon.toxicity"),
    ClassifierLabel("lexicon.injection"),
    ModelEntity("PERSON", "ner", 0.5),
)


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_example_compiles(number: int) -> None:
    name = f"example {number}"
    beside = (list_name(name, "books.fp"), BOOKS)
    assert compile_sources([(name, EXAMPLES[number]), beside], LABELS).rules


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 15


def test_every_table_has_as_many_cells_in_each_row() -> None:
    for block in PAGE.split("\n\n"):
        widths = {len(cells(line)) for line in block.splitlines() if line.startswith("|")}
        assert len(widths) <= 1, block


def test_every_key_of_a_rule_is_in_its_table_and_no_other() -> None:
    named = {key for row in rows("| key | value | default |") for key in quoted(row[0])}
    assert named == set(syntax.RULE_KEYS)


def test_every_stage_and_channel_is_on_the_page() -> None:
    for stage, channels in STAGE_CHANNELS.items():
        row = next(line for line in PAGE.splitlines() if line.startswith(f"| `{stage}`"))
        assert all(f"`{channel}`" in row for channel in channels)


WRITTEN: Mapping[str, AnyAction] = {
    "allow": Allow(),
    "reject": Reject(),
    "require_confirmation": RequireConfirmation(),
    "constrain_tools": ConstrainTools(allow=()),
    "redact": Redact(),
    "pseudonymise": Pseudonymise(),
    "rewrite_span": RewriteSpan(words=(("a", "b"),)),
    "remove_message": RemoveMessage(),
    "stop": Stop(),
    "inject_disclaimer": InjectDisclaimer(text="t"),
    "inject_disclaimer position: start": InjectDisclaimer(text="t", position="start"),
    "inject_disclaimer position: after_sentence": InjectDisclaimer(text="t", position="after_sentence"),
    "require_disclaimer": RequireDisclaimer(text="t"),
    "attribute_sources": AttributeSources(),
    "safe_mode": SafeMode(),
    "safe_mode bad_words": SafeMode(bad_words=("a",)),
    "safe_mode logit_bias": SafeMode(logit_bias=((1, 1),)),
    "safe_mode tools": SafeMode(tools=()),
    "safe_mode instruction": SafeMode(instruction="i"),
    "lower_temp": LowerTemp(),
    "allow_constrained json_schema": AllowConstrained(json_schema="{}"),
    "allow_constrained grammar": AllowConstrained(grammar="g"),
    "adapt_tone": AdaptTone(instruction="i"),
    "log_event": LogEvent(),
}
"""Every row of the matrix as an action."""


def test_g08_the_matrix_has_every_action() -> None:
    assert [" ".join(quoted(row[0])) for row in MATRIX] == list(WRITTEN)
    assert {action.name for action in WRITTEN.values()} == {action.name for action in get_args(AnyAction)}


@pytest.mark.parametrize("row", MATRIX, ids=lambda row: " ".join(quoted(row[0])))
def test_g08_the_matrix_of_actions_and_stages_is_on_the_page(row: list[str]) -> None:
    action = WRITTEN[" ".join(quoted(row[0]))]
    for cell, stage in zip(row[1:4], Stage, strict=True):
        assert cell.startswith("yes") == (stage in action_stages(action)), stage
        if cell.startswith("yes"):
            only = quoted(cell)
            assert action_channels(action, stage) == (tuple(only) if only else STAGE_CHANNELS[stage])
        else:
            assert cell == "no"


@pytest.mark.parametrize("row", MATRIX, ids=lambda row: " ".join(quoted(row[0])))
def test_g08_the_matrix_of_actions_surfaces_and_upstreams_is_on_the_page(row: list[str]) -> None:
    action = WRITTEN[" ".join(quoted(row[0]))]
    for cell, surface in zip(row[4:10], SURFACES, strict=True):
        able = Target("r", surface, "u", frozenset(CAN))
        lacks = [lack for stage in action_stages(action) for lack in missing(action, stage, able)]
        assert cell == ("no" if lacks else "yes"), surface
    tools = Target("r", MCP, "u", frozenset(CAN))
    on_tools = Stage.INGRESS in action_stages(action) and not missing(action, Stage.INGRESS, tools)
    assert row[10] == ("yes" if on_tools else "no")
    names, midstream_only = quoted(row[0]), row[11].startswith("midstream: ")
    of_the_whole = {"continue"} if len(names) > 1 else set()  # what the row of `safe_mode` itself asks for
    for stage in action_stages(action):
        needs = {quoted(lack.need)[0] for lack in missing(action, stage, Target("r", CHAT, "u", frozenset()))}
        asked = set() if midstream_only and stage is not Stage.MIDSTREAM else set(quoted(row[11]))
        assert needs - of_the_whole == asked, stage


def test_g08_the_channels_of_each_surface_are_on_the_page() -> None:
    """Those that `test_action_matrix` carries every action out on."""
    told = {quoted(row[0])[0]: [tuple(quoted(cell)) for cell in row[1:]] for row in rows("| surface | channels of")}
    assert told == {
        surface: [channels[Stage.INGRESS], channels[Stage.MIDSTREAM]] for surface, channels in CHANNELS.items()
    }
    assert set(told) == {surface for surface in SURFACES if surface != MCP}
    assert all(channels[Stage.EGRESS] == channels[Stage.MIDSTREAM] for channels in CHANNELS.values())


def test_every_key_of_an_action_is_in_the_tables() -> None:
    found: dict[str, list[str]] = {}
    action = ""
    for block in PAGE.split("| action | key | value | default |\n")[1:]:
        for line in block.split("\n\n")[0].splitlines()[1:]:
            name, key, _, _ = cells(line)
            action = quoted(name)[0] if name else action
            found.setdefault(action, []).extend(quoted(key))
    forms = {name: sorted((*need, *may)) for name, (need, may, _) in action_syntax._FORMS.items()}
    assert {name: sorted(keys) for name, keys in found.items()} == forms


def test_the_variables_of_conditions_are_on_the_page() -> None:
    named = {name for row in rows("| variable | type | is |") for name in quoted(row[0])}
    fields = {f"request.{name}" for name in variables.REQUEST_FIELDS} | {
        f"stream.{name}" for name in variables.STREAM_FIELDS
    }
    assert {name for name in named if name.startswith(("request.", "stream."))} == fields
    assert {name.partition(".")[0].partition("[")[0] for name in named} == set(variables.ROOTS)


def test_the_functions_of_conditions_are_on_the_page() -> None:
    page = " ".join(cell for row in rows("| | |") for cell in row)
    names = [name for name in functions.NAMES if name[0].isalpha()]
    assert [name for name in names if f"{name}(" not in page] == []
    operators = {name.strip("_@") for name in functions.NAMES if not name[0].isalpha()} - {"[_]", "in"}
    assert [operator for operator in sorted(operators) if f"`{operator}`" not in page] == []


def test_the_variables_of_texts_are_on_the_page() -> None:
    named = {name for row in rows("| variable | is |") for name in quoted(row[0])}
    known = {f"{{{name}}}" for name in (*templates.NAMES, templates.SOURCES)}
    assert {name for name in named if not name.startswith("{context.")} == known


def test_the_groups_of_triggers_are_on_the_page() -> None:
    named = {name.strip("{}").partition(":")[0] for row in rows("| group | holds when |") for name in quoted(row[0])}
    assert named == set(triggers.GROUP_KEYS)


def test_the_keys_of_a_test_case_are_on_the_page() -> None:
    section = PAGE.partition("## 14.")[2]
    assert [key for key in Case.__struct_fields__ if f"`{key}`" not in section] == []
    assert [key for key in Expect.__struct_fields__ if f"`{key}`" not in section] == []


def test_every_entity_is_on_the_page_in_its_group() -> None:
    heads = {"pii": "`group:pii`", "secret": "`group:secret`", None: "by name alone"}
    for group, head in heads.items():
        row = next(line for line in PAGE.splitlines() if line.startswith(f"| {head} |"))
        listed = {entity.name for entity in ENTITIES.values() if entity.group == group}
        assert listed == set(row.partition(f"{head} |")[2].split("`")[1::2])


def test_the_caps_are_on_the_page() -> None:
    assert f"{nodes.MAX_FILE_CHARS:,} characters" in PAGE
    assert f"deeper than {nodes.MAX_DEPTH} levels" in PAGE
    assert f"{fields.MAX_WORD_CHARS} characters at most" in PAGE
    assert f"up to {triggers.MAX_PHRASES:,} in a" in PAGE
    assert f"up to {triggers.MAX_GROUP_DEPTH} levels" in PAGE
    assert f"up to {triggers.MAX_CASES} `{{condition, threshold}}`" in PAGE
    assert f"at most {triggers.MAX_CONDITION_CHARS:,} characters" in PAGE
    assert f"Loops nest up to {conditions.MAX_LOOPS} levels" in PAGE
    assert f"above {conditions.MAX_COST:,} steps" in PAGE
    assert f"Up to {extends.MAX_CHAIN} rules may extend each other" in PAGE
    assert f"{templates.MAX_VALUE_CHARS} characters are kept" in PAGE
    assert f"({context.MAX_VALUES:,} values, {context.MAX_BYTES:,} bytes)" in PAGE
    assert f"{segments.MAX_SEGMENT_CHARS:,} characters" in PAGE


def test_the_context_that_costs_are_reckoned_for_is_the_largest_that_is_let_in() -> None:
    assert conditions._SIZES["context"].length == context.MAX_VALUES
    assert (conditions._SIZES["context"].work - context.MAX_VALUES) * CHARS_A_STEP >= context.MAX_BYTES - CHARS_A_STEP
