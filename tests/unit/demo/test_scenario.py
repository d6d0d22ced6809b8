from __future__ import annotations

from pathlib import Path

import pytest

from checkstream.demo.scenario import ECHO, built_in, choose, read_folder, read_scenario
from checkstream.errors import FaultyFile

HOSTILE: dict[str, tuple[str | bytes, str]] = {
    "empty": ("", "one of `choices` and `error`"),
    "scalar": ("hello", ":1:1: expected a mapping"),
    "not YAML": ("choices: [", "bad.yaml:1"),
    "tab": ("choices:\n\t- content: x", "bad.yaml:2"),
    "nothing to say": ("description: x", "one of `choices` and `error`"),
    "unknown field": ("choices: [{contents: x}]", "choices[0].contents: not known here; did you mean `content`?"),
    "wrong type": ("choices: [{tool_calls: [{name: [1]}]}]", "choices[0].tool_calls[0].name: expected text"),
    "boolean by YAML 1.1": ("choices: [{content: no}]", "`no` means a boolean to some YAML readers"),
    "negative delay": ("choices: [{content: x}]\ntiming: {token_ms: -1}", "timing.token_ms: expected"),
    "huge cut": ("choices: [{content: x}]\nwire: {cut: {by: fixed, size: 0}}", "wire.cut.size: expected"),
    "bad status": ("error: {status: 200}", "error.status: expected"),
    "twice the same key": ("choices: [{content: x}]\nusage: true\nusage: false", ":3:1: "),
    "alias": ("choices: [{content: &a x, refusal: *a}]", "bad.yaml:1:"),
    "alias of itself": ("choices: &a [*a]", "bad.yaml:1:"),
    "python object": ("choices: [{content: !!python/object/apply:os.system [ls]}]", "bad.yaml:1:"),
    "half a surrogate": ('choices: [{content: "\\ud800"}]', "bad.yaml:1"),
    "deep": ("[" * 5000, "nested deeper than"),
    "control character": ("choices: [{content: \x00}]", "may not stand"),
    "not UTF-8": (b"choices: [{content: \xff}]", "not valid UTF-8"),
    "too large": ("#" * 600_000, "longer than"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_wrong_file_is_refused_and_says_why(case: str) -> None:
    text, reason = HOSTILE[case]
    with pytest.raises(FaultyFile) as caught:
        read_scenario("bad", text, file="bad.yaml")
    assert str(caught.value).startswith("bad.yaml")
    assert reason in str(caught.value)


def test_json_is_read_too() -> None:
    assert read_scenario("x", '{"choices": [{"content": ["a", "b"]}]}').script.choices[0].content == ["a", "b"]


def test_a_folder_reports_the_faults_of_all_its_files(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("choices: 3")
    (tmp_path / "b.json").write_bytes(b"\xff")
    (tmp_path / "c.yaml").write_text("choices: [{content: fine}]")
    (tmp_path / "c.yml").write_text("choices: [{content: fine}]")
    (tmp_path / "notes.txt").write_text("not a scenario")
    with pytest.raises(FaultyFile) as caught:
        read_folder(tmp_path)
    assert len(caught.value.faults) == 3
    assert {Path(fault.file).name for fault in caught.value.faults} == {"a.yaml", "b.json", "c.yml"}


def test_a_folder_that_is_not_there_is_a_fault(tmp_path: Path) -> None:
    with pytest.raises(FaultyFile, match="can't list the scenario folder"):
        read_folder(tmp_path / "none")


def test_a_file_that_is_too_large_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "big.yaml").write_bytes(b"#" * 600_000)
    with pytest.raises(FaultyFile, match="longer than"):
        read_folder(tmp_path)


def test_a_directory_named_like_a_scenario_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "dir.yaml").mkdir()
    with pytest.raises(FaultyFile, match="can't be read"):
        read_folder(tmp_path)


def test_the_scenarios_of_the_package_are_sound() -> None:
    found = read_folder(built_in())
    assert {"clean", "pii", "toxic", "injection", "hallucination", "tool", "choices", "fallback"} <= set(found)
    assert all(scenario.script.description for scenario in found.values())


def test_the_header_names_a_scenario_or_none() -> None:
    found = read_folder(built_in())
    chosen = choose(found, header="pii", model="clean", last_user="")
    assert chosen is found["pii"]
    assert choose(found, header="nope", model="clean", last_user="") is None


def test_the_model_names_a_scenario_then_matches_are_tried_in_order_of_name() -> None:
    said = "choices: [{content: x}]\n"
    found = {
        "b": read_scenario("b", said + "match: {model: 'gpt-*'}"),
        "a": read_scenario("a", said + "match: {model: 'gpt-?', contains: WEATHER}"),
        "c": read_scenario("c", said + "match: {contains: rain}"),
        "d": read_scenario("d", said),
        "e": read_scenario("e", said + "match: {}"),
    }

    def name(model: str, last_user: str) -> str:
        chosen = choose(found, header=None, model=model, last_user=last_user)
        assert chosen is not None
        return chosen.name

    assert name("d", "rain") == "d"
    assert name("gpt-4", "the weather today") == "a"
    assert name("gpt-4", "rain") == "b"
    assert name("gpt-44", "weather") == "b"
    assert name("other", "Rain tomorrow") == "c"
    assert name("other", "sun") == ECHO.name


def test_a_request_that_goes_on_with_an_answer_has_a_scenario_of_its_own() -> None:
    said = "choices: [{content: x}]\n"
    found = {
        "first": read_scenario("first", said + "continued_by: second"),
        "second": read_scenario("second", said),
        "torn": read_scenario("torn", said + "continued_by: nothing"),
    }

    def chosen(model: str, *, continues: bool) -> object:
        return choose(found, header=None, model=model, last_user="", continues=continues)

    assert chosen("first", continues=False) is found["first"]
    assert chosen("first", continues=True) is found["second"]
    assert chosen("second", continues=True) is found["second"]
    assert chosen("torn", continues=True) is None
