"""The laws of surrogates (G38): nobody's values go out, the caller's own come back."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from checkstream.core.match.entities import ENTITIES
from checkstream.core.match.surrogates import FIRST, LAST
from checkstream.core.pseudonyms.surrogates import surrogate
from tests.guarded import CHAT, DONE, ends, event, plan, says
from tests.playbook import Played, capitalised, play

RULES = (
    "  - {name: p, id: PSN-1, entities: [EMAIL, CREDIT_CARD, US_SSN, PHONE, IP_ADDRESS, IBAN], "
    "actions: [{type: pseudonymise, style: surrogate}]}\n"
    "  - {name: o, id: PII-1, stage: midstream, entities: [EMAIL, CREDIT_CARD, US_SSN, PHONE, IP_ADDRESS], "
    "unless: in_request, actions: [{type: redact}]}\n"
)
PLAN = plan(RULES)
NAMES = plan("  - {name: p, id: PSN-1, entities: [PERSON], actions: [{type: pseudonymise, style: surrogate}]}\n")
VALUES = {
    "EMAIL": "mary.baker@northwind.io",
    "CREDIT_CARD": "4929-1234-5678-9015",
    "US_SSN": "536-22-8712",
    "PHONE": "(212) 456-7890",
    "IP_ADDRESS": "8.8.4.4",
}
prose = st.text("aZ0é .,;:-()\n", max_size=10)
cuts = st.lists(st.integers(0, 400), max_size=5)


def body(prompt: str) -> bytes:
    return json.dumps({"model": "m", "stream": True, "messages": [{"role": "user", "content": prompt}]}).encode()


def sent(out: Played) -> str:
    assert out.forwarded is not None
    said: str = json.loads(out.forwarded)["messages"][0]["content"]
    return said


def read(out: Played) -> str:
    events = [json.loads(line[6:]) for line in out.joined.split(b"\n") if line.startswith(b"data: {")]
    return "".join(choice["delta"].get("content") or "" for one in events for choice in one["choices"])


def answered(prompt: str, answer: str, places: list[int]) -> str:
    bounds = sorted({0, len(answer), *(place % (len(answer) + 1) for place in places)})
    pieces = [says(answer[low:high]) for low, high in itertools.pairwise(bounds)]
    return read(play(CHAT, PLAN, body(prompt), [*pieces, ends(), DONE]))


@given(st.lists(st.tuples(prose, st.sampled_from(sorted(VALUES))), max_size=5, unique_by=lambda part: part[1]), cuts)
def test_g38_what_the_model_says_of_surrogates_comes_back_exactly(
    parts: list[tuple[str, str]], places: list[int]
) -> None:
    prompt = "".join(f"{before} and phone {VALUES[kind]} or, " for before, kind in parts)
    echoed = sent(play(CHAT, PLAN, body(prompt), [says("ok"), ends(), DONE]))
    for _, kind in parts:
        assert VALUES[kind] not in echoed
    assert answered(prompt, echoed, places) == prompt


@given(st.sampled_from(sorted(VALUES)), st.integers(0, 2**59))
def test_g38_a_surrogate_is_of_the_same_kind_and_length_and_nobodys(kind: str, seed: int) -> None:
    made = surrogate(kind, VALUES[kind], "en", seed, lambda _: False)
    assert made is not None
    assert made != VALUES[kind]
    if kind not in {"EMAIL", "IP_ADDRESS"}:
        assert [char.isdigit() for char in made] == [char.isdigit() for char in VALUES[kind]]
    reserved = {"EMAIL": "@example.", "CREDIT_CARD": "4000-000", "US_SSN": "9", "PHONE": " 555-01", "IP_ADDRESS": ""}
    assert reserved[kind] in made
    entity = ENTITIES[kind]
    text = f"phone {made}"
    assert entity.refine(text, 6, len(text)) or kind in {"PHONE", "IP_ADDRESS"}


@given(cuts)
def test_g38_people_get_other_peoples_names_and_answer_to_them(places: list[int]) -> None:
    prompt = "ask Ann Louise Lee about bob and Mary Stone."
    out = play(CHAT, NAMES, body(prompt), [says("ok"), ends(), DONE], scorer=capitalised)
    echoed = sent(out)
    for name in ("Ann", "Lee", "Stone"):
        assert name not in echoed
    words = echoed.removeprefix("ask ").split()
    answer = f"{echoed} Ms {words[2]}, {words[0].lower()} and {words[2].upper()}'s; Amy Unknown."
    bounds = sorted({0, len(answer), *(place % (len(answer) + 1) for place in places)})
    pieces = [says(answer[low:high]) for low, high in itertools.pairwise(bounds)]
    told = read(play(CHAT, NAMES, body(prompt), [*pieces, ends(), DONE], scorer=capitalised))
    assert told.startswith(f"{prompt} Ms Lee, Ann and Lee's;")


PEOPLE = ["Bo Li", "Ann Marie Stone", "Tim Burton", "Kim", "Zoe Louise Annabelle Day"]
"""Each is told apart from the others by any one word."""
BETWEEN = [
    "\\n",
    "\\t",
    "%0A",
    "&nbsp;",
    "\\u000a",
    "\n",
    " ",
    "\n\n",
    "\t",
    ", ",
    "\n- ",
    " | ",
    "-",
    " and ",
    "</li><li>",
]


def named(answer: list[str], places: list[int] | None = None) -> tuple[list[str], str]:
    """Return what stands for the people, and what comes of an answer with `{0}` for the first of them and so on."""
    prompt = f"ask {'; '.join(PEOPLE)} please"
    given = sent(play(CHAT, NAMES, body(prompt), [says("ok"), ends(), DONE], scorer=capitalised))
    others = given.removeprefix("ask ").removesuffix(" please").split("; ")
    text = "".join(answer).format(*others, *(other.split() for other in others))
    bounds = sorted({0, len(text), *(place % (len(text) + 1) for place in places or ())})
    pieces = [says(text[low:high]) for low, high in itertools.pairwise(bounds)]
    return others, read(play(CHAT, NAMES, body(prompt), [*pieces, ends(), DONE], scorer=capitalised))


@given(st.lists(st.sampled_from(range(len(PEOPLE))), min_size=2, max_size=7), st.sampled_from(BETWEEN), cuts)
@example([0, 1, 2, 3], "\n", [])
@example([1, 1, 4, 0], " ", [7])
def test_g38_a_list_of_people_comes_back_however_they_stand_behind_each_other(
    people: list[int], between: str, places: list[int]
) -> None:
    others, told = named([between.join(f"{{{number}}}" for number in people)], places)
    want = [PEOPLE[number] for number in people]
    assert not {word for other in others for word in other.split()} & {word for each in want for word in each.split()}
    assert told == between.join(want)


@pytest.mark.parametrize("size", [1, 5, 400])
def test_g38_a_list_of_people_comes_back_in_arguments_of_tools(size: int) -> None:
    others, _ = named([""])
    said = json.dumps({"all": "\n".join(others), "inner": json.dumps({"all": "\n".join(others)})})
    first = {"index": 0, "id": "c", "type": "function", "function": {"name": "mail", "arguments": ""}}
    pieces = [said[at : at + size] for at in range(0, len(said), size)]
    calls = [first, *({"index": 0, "function": {"arguments": piece}} for piece in pieces)]
    answer = [*(event((0, {"tool_calls": [call]}, None)) for call in calls), ends(reason="tool_calls"), DONE]
    out = play(CHAT, NAMES, body(f"ask {'; '.join(PEOPLE)} please"), answer, scorer=capitalised)
    made = [json.loads(line[6:]) for line in out.joined.split(b"\n") if line.startswith(b"data: {")]
    told = [call for one in made for choice in one["choices"] for call in choice["delta"].get("tool_calls", ())]
    given = json.loads("".join(call["function"]["arguments"] for call in told))
    assert given["all"] == json.loads(given["inner"])["all"] == "\n".join(PEOPLE)


@pytest.mark.parametrize(
    ("answer", "want"),
    [
        ("{6[0]} {6[2]}", "Ann Stone"),  # without the middle name
        ("{6[0]} {6[1]}", "Ann Marie"),
        ("{5[1]} {5[0]}", "Li Bo"),
        ("{9[0]} {9[1]} {9[2]}", "Zoe Louise Annabelle Day"),
        ("{0}'s and {8[0]}-{7[1]}", "Bo Li's and Kim-Burton"),
    ],
)
def test_g38_who_is_called_by_some_of_their_names_is_who_they_are(answer: str, want: str) -> None:
    assert named([answer])[1] == want


def test_g38_a_stranger_who_has_one_name_in_common_with_somebody_stays_who_they_are() -> None:
    others, _ = named([""])
    taken = {word for other in others for word in other.split()}
    first = next(name for name in FIRST["en"] if name not in taken)
    last = next(name for name in LAST["en"] if name not in taken)
    strangers = f"{first} {{5[1]}}, {{5[0]}} {last}, {first} {last}"
    assert named([strangers])[1] == strangers.format(*others, *(other.split() for other in others))
    assert named([f"{{0}}\n{first} {last}"])[1] == f"Bo Li\n{first} {last}"


WORDS = (
    "Prices rose again, to be frank: olive oil, an audio jack, a Christmas carol, heather, 80 daltons to a dalton. "
    "They garner what a carver, a fletcher, a mercer, a sawyer and parsons earn; the victor drives a ute underhill. "
    "Im Keller liegt ein Dietrich neben dem Seidel; der Vogt und der Franke warten. Un marchand, un pelletier, un "
    "sauvage en marcel lisent le manuel en pascal. Las fuentes dicen que el herrero gallego, delgado y pardo, pintó "
    "de blanco las iglesias entre robles y salinas; linda y espinosa, la dama bruna lucía lozano el pilar y la diana."
)


@pytest.mark.parametrize("name", ["Ann Lee", "Mary Annabelle Stone", "Bo Featherstone", "Alexandra Vi"])
def test_g38_words_of_an_answer_are_nobodys_name(name: str) -> None:
    prompts = [f"{greeting}, ask {name}." for greeting in ("hi", "hello", "hallo, bitte", "bonjour", "por favor")]
    prompts += [f"no {number}, ask {name}." for number in range(40)]
    for prompt in prompts:
        out = play(CHAT, NAMES, body(prompt), [says(WORDS), ends(), DONE], scorer=capitalised)
        assert name not in sent(out)
        assert read(out) == WORDS


def test_g38_no_surrogate_of_a_name_is_a_word_as_well() -> None:
    words = {word.strip(".,;:").casefold() for word in WORDS.split()}
    for language in ("en", "de", "fr", "es"):
        for value in ("Bo", "Ann Lee", "Mary Annabelle Featherstone"):
            made = (surrogate("PERSON", value, language, seed, lambda _: False) for seed in range(0, 20_000, 7))
            assert not {word.casefold() for each in made if each for word in each.split()} & words


def test_g38_what_stands_in_the_prompt_is_nobodys_surrogate() -> None:
    first = sent(play(CHAT, PLAN, body("Mail mary.baker@northwind.io"), [says("ok"), ends(), DONE])).removeprefix(
        "Mail "
    )
    prompt = f"Mail mary.baker@northwind.io, not {first}"  # of another beginning, so that its salt is another
    seeds = range(50)
    made = {surrogate("EMAIL", "a@b.io", "en", seed, {first}.__contains__) for seed in seeds}
    assert first not in made
    given = sent(play(CHAT, PLAN, body(prompt), [says("ok"), ends(), DONE]))
    one, _, other = given.removeprefix("Mail ").partition(", not ")
    assert first not in given
    assert one != other
    assert answered(prompt, f"{one} {other} {first}", []) == f"mary.baker@northwind.io {first} {first}"


def test_g38_kinds_without_surrogates_get_labels() -> None:
    prompt = "IBAN DE89 3704 0044 0532 0130 00"
    assert sent(play(CHAT, PLAN, body(prompt), [says("ok"), ends(), DONE])) == "IBAN <IBAN_1>"
    assert answered(prompt, "Paid <iban_1>.", []) == "Paid DE89 3704 0044 0532 0130 00."


def test_g38_surrogates_are_the_same_in_the_next_request_that_begins_alike() -> None:
    first = sent(play(CHAT, PLAN, body("Ask mary.baker@northwind.io"), [says("ok"), ends(), DONE]))
    assert first == sent(play(CHAT, PLAN, body("Ask mary.baker@northwind.io"), [says("ok"), ends(), DONE]))
    assert first != sent(play(CHAT, PLAN, body("Tell mary.baker@northwind.io"), [says("ok"), ends(), DONE])).replace(
        "Tell", "Ask"
    )
