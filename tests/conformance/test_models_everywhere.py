"""What models say counts on every channel where a rule asks for it, streamed and whole; the models are scripted."""

from __future__ import annotations

import pytest

from checkstream.core.policy.classifiers import ClassifierLabel, ModelEntity
from checkstream.core.policy.compile import compile_sources
from checkstream.core.terms import ANSWER_CHANNELS, INGRESS_CHANNELS
from checkstream.trial.cases import Case, Expect
from checkstream.trial.run import run_case

KNOWN = (
    ClassifierLabel("injection.injection", 0.5),
    ClassifierLabel("safety.toxicity", 0.5),
    ClassifierLabel("safety.hate", 0.5),
    ModelEntity("PERSON", "ner", 0.5),
    ModelEntity("LOCATION", "ner", 0.5),
)
NAMES = tuple(known.name for known in KNOWN)
POLICY = """pack: {name: p, version: 1.0.0}
policies:
  - {name: a, id: INJ, stage: ingress, classifiers: [injection], actions: [{type: reject}]}
  - {name: b, id: TOX, stage: midstream, classifiers: [toxicity], actions: [{type: stop}]}
  - {name: c, id: HATE, classifiers: [{name: hate, threshold: 0.9}], actions: [{type: log_event}]}
  - {name: d, id: PER, entities: [PERSON], actions: [{type: redact}]}
  - name: e
    id: BOTH
    stage: midstream
    entities: [LOCATION]
    classifiers: [{name: safety.hate, threshold: 0.2}]
    match: all
    actions: [{type: log_event}]
""".replace("[injection]", "[{name: injection}]").replace("[toxicity]", "[{name: toxicity}]")
PROGRAM = compile_sources([("p.yaml", POLICY)], KNOWN)
TEXT = "then we asked Mary Ann whether it was so, and she agreed at once"
REDACTED = "then we asked [PERSON] whether it was so, and she agreed at once"


def passes(case: Case) -> None:
    result = run_case(case, PROGRAM, NAMES, splits=6)
    assert result.passed, result.mismatches


def quoted(text: str, channel: str) -> str:
    return f'{{"note": "{text}"}}' if channel == "tool_arguments" else text


@pytest.mark.parametrize("channel", INGRESS_CHANNELS)
def test_a_score_refuses_a_prompt_whatever_message_or_document_it_stands_in(channel: str) -> None:
    hit = {"injection.injection": 0.9}
    expect = Expect(action="reject", rule_id="INJ", fired=("INJ",))
    passes(Case(name="hit", channel=channel, prompt=TEXT, scores=hit, expect=expect))
    passes(Case(name="calm", channel=channel, prompt=TEXT, expect=Expect(action="allow", fired=())))


@pytest.mark.parametrize("channel", ANSWER_CHANNELS)
def test_a_score_stops_an_answer_in_whatever_channel_it_stands(channel: str) -> None:
    text = "look_up" if channel == "tool_name" else quoted(TEXT, channel)
    expect = Expect(action="stop", rule_id="TOX", fired=("TOX",))
    passes(Case(name="hit", channel=channel, answer=text, scores={"safety.toxicity": 0.9}, expect=expect))
    passes(Case(name="calm", channel=channel, answer=text, expect=Expect(action="allow", fired=())))


@pytest.mark.parametrize("channel", [channel for channel in INGRESS_CHANNELS if channel != "document"])
def test_an_entity_of_a_model_is_redacted_in_a_prompt(channel: str) -> None:
    record: dict[str, object] = {"spans": [{"start": 14, "end": 22}]}
    expect = Expect(action="redact", rule_id="PER", fired=("PER",), output=REDACTED, record=record)
    passes(Case(name="hit", channel=channel, prompt=TEXT, entities={"PERSON": ("Mary Ann",)}, expect=expect))


def test_an_entity_of_a_model_in_a_document_is_recorded() -> None:
    expect = Expect(action="redact", rule_id="PER", fired=("PER",))
    passes(Case(name="hit", channel="document", prompt=TEXT, entities={"PERSON": ("Mary Ann",)}, expect=expect))


@pytest.mark.parametrize("channel", [channel for channel in ANSWER_CHANNELS if channel != "tool_name"])
def test_g04_an_entity_of_a_model_is_redacted_in_an_answer_however_it_is_cut(channel: str) -> None:
    text, output = quoted(TEXT, channel), quoted(REDACTED, channel)
    expect = Expect(action="redact", rule_id="PER", fired=("PER",), output=output)
    passes(Case(name="hit", channel=channel, answer=text, entities={"PERSON": ("Mary Ann",)}, expect=expect))


@pytest.mark.parametrize(("hate", "fired"), [(0.5, ("BOTH",)), (0.1, ())])
def test_scores_of_one_model_and_entities_of_another_combine(hate: float, fired: tuple[str, ...]) -> None:
    case = Case(
        name="both",
        answer="they came from Paris and London, all of them, in the end",
        scores={"safety.hate": hate},
        entities={"LOCATION": ("Paris", "London")},
        expect=Expect(action="log_event" if fired else "allow", fired=fired),
    )
    passes(case)
