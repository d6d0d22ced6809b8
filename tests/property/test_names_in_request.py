"""Laws of `unless: in_request` for what models find: a name that was told stays, each other one goes (G3, G4)."""

from __future__ import annotations

import itertools
import json
import re
import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from checkstream.core.commands import Score
from checkstream.core.events import EntityFound, Scored
from checkstream.core.exchange.ingress.known import MAX_WORD_CHARS
from checkstream.core.match.names import name_key, pieces, tells, told, words_of
from tests.chance import examples
from tests.guarded import CHAT, DONE, ends, plan, says, text_of, whole
from tests.playbook import capitalised, play
from tests.watchdog import answered, guard_of, long_steps, steps

RULES = (
    "  - {name: n, id: N-1, stage: [midstream], entities: [PERSON], unless: in_request, in: [user, system], "
    "actions: [{type: redact, text: '#'}]}\n"
)
PLAN = plan(RULES)
UNSPACED = ("CJK UNIFIED", "HIRAGANA", "HANGUL", "THAI")


def obvious(text: str) -> list[str]:
    """The words of a text, character by character."""
    found, open_word = list[str](), False
    for char in unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold()):
        if unicodedata.category(char)[0] not in "LMN":
            open_word = open_word and unicodedata.category(char) == "Cf"
        elif unicodedata.name(char, "").startswith(UNSPACED):
            found.append(char)
            open_word = False
        elif open_word:
            found[-1] += char
        else:
            found.append(char)
            open_word = True
    return found


def stands_in(name: list[str], text: list[str]) -> bool:
    return any(text[at : at + len(name)] == name for at in range(len(text) - len(name) + 1))


texts = st.text(
    "aAbB\u00df\u00e9\u0301 ,-'\n\u200b\u5f20\u4f1f\u3042\ud55c\u0e01\uff21\u03c3\u03a3\u01301<", max_size=40
)


@settings(max_examples=examples(400), deadline=None)
@given(texts, texts)
@example("a" * 1030 + " b", "b")
@example("ab\u200b ab", "ab ab")
def test_a_name_is_told_if_its_words_stand_there_one_after_the_other(text: str, name: str) -> None:
    bare = name.strip()
    own = obvious(bare.removesuffix("'s"))
    assert name_key(name) == " ".join(own)
    found = tells(told(map(words_of, pieces(text))), name_key(name))
    assert found is (bool(own) and stands_in(own, obvious(text)))


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.text("ab ,\n\u00e9", min_size=1, max_size=30), max_size=120))
def test_pieces_have_the_words_of_the_text(parts: list[str]) -> None:
    text = " ".join(parts)
    assert told(map(words_of, pieces(text))).split() == obvious(text)


first = st.sampled_from(["Anna", "Bert", "Cara", "Dora"])
last = st.sampled_from(["Smith", "Miller", "Berg"])
names = first | last | st.builds("{} {}".format, first, last)


def spelled(name: str, way: int) -> str:
    return (name, name.upper(), name.lower(), f"{name}'s", name.replace(" ", "\n\t"), f"({name.replace(' ', '-')})")[
        way
    ]


@settings(max_examples=examples(120), deadline=None)
@given(
    st.lists(st.tuples(names, st.integers(0, 5)), max_size=3),
    st.lists(names, max_size=2),
    st.lists(names, max_size=2),
    st.lists(names, min_size=1, max_size=4),
    st.data(),
)
def test_g03_names_that_were_told_stay_and_all_others_go(
    asked: list[tuple[str, int]], set_up: list[str], found: list[str], said: list[str], data: st.DataObject
) -> None:
    messages = [
        {"role": "system", "content": "hello. " + "; and ".join(set_up)},
        {"role": "tool", "tool_call_id": "c", "content": "; ".join(found)},
        *({"role": "user", "content": f"about {spelled(*each)} then"} for each in asked),
    ]
    body = json.dumps({"model": "m", "stream": True, "messages": messages}).encode()
    known = [obvious(name) for name in set_up] + [obvious(spelled(*each)) for each in asked]
    kept = [any(stands_in(obvious(name), text) for text in known) for name in said]
    text = "".join(f"so {name}; " for name in said)
    cuts = data.draw(st.lists(st.integers(0, len(text)), max_size=8))
    edges = [0, *sorted(cuts), len(text)]
    pieces = [says(text[a:b]) for a, b in itertools.pairwise(edges) if a < b]
    out = play(CHAT, PLAN, body, [*pieces, ends(), DONE], scorer=capitalised)
    assert text_of(out) == "".join(f"so {name if stays else '#'}; " for name, stays in zip(said, kept, strict=True))
    unstreamed = body.replace(b'"stream": true', b'"stream": false')
    answer = play(CHAT, PLAN, unstreamed, [whole(text)], streaming=False, scorer=capitalised)
    assert answer.reply is not None
    assert json.loads(answer.reply.body)["choices"][0]["message"]["content"] == text_of(out)


def many_names(score: Score) -> Scored:
    """Find a name in every two words."""
    spans = (pair.span() for pair in re.finditer(r"[^ ]+ [^ ]+", score.text))
    return Scored(score.ticket, {}, tuple(EntityFound("PERSON", start, end, 0.9) for start, end in spans))


@pytest.mark.parametrize("word", ["ab cd ", "\ufdfa", "\u5f20", "a", "Anna Schmidt, "])
def test_g33_a_long_prompt_is_read_and_asked_for_many_names_in_short_steps(word: str) -> None:
    said = (word * MAX_WORD_CHARS)[: MAX_WORD_CHARS * 3]
    body = json.dumps({"stream": True, "messages": [{"role": "user", "content": said}]}).encode()
    events = b"".join(says(f"cd cd ab ab x{number} ") for number in range(60)) + ends() + DONE
    happened = answered(body, events, streaming=True)
    assert long_steps(lambda: steps(guard_of(CHAT, PLAN), happened, many_names)) == []


def test_words_beyond_the_bound_are_no_longer_spared_and_it_is_told() -> None:
    said = "Anna " + "filler " * (MAX_WORD_CHARS // 7 + 400)
    body = json.dumps({"stream": True, "messages": [{"role": "user", "content": f"{said} Bert"}]}).encode()
    out = play(CHAT, PLAN, body, [says("ask Anna or Bert ."), ends(), DONE], scorer=capitalised)
    assert text_of(out) == "ask Anna or # ."
    assert out.record is not None
    assert "values_not_remembered" in out.record.degradations


def test_what_is_spared_for_its_validator_is_not_torn_by_a_model() -> None:
    rules = (
        "  - {name: n, id: N-1, stage: [midstream], entities: [EMAIL, PERSON], unless: in_request, "
        "allow: {domains: [ours.example]}, actions: [{type: redact, text: '#'}]}\n"
    )
    body = json.dumps({"stream": True, "messages": [{"role": "user", "content": "hi"}]}).encode()
    pieces = [says("ask Anna at Anna.Schmidt@ours.example or at Anna@else.example"), ends(), DONE]
    out = play(CHAT, plan(rules), body, pieces, scorer=capitalised)
    assert text_of(out) == "ask # at Anna.Schmidt@ours.example or at #"
    strict = rules.replace("EMAIL, PERSON", "EMAIL") + RULES.replace("N-1", "N-2").replace(
        " unless: in_request, in: [user, system],", ""
    )
    out = play(CHAT, plan(strict), body, pieces, scorer=capitalised)
    assert text_of(out) == "ask # at #.#@ours.example or at #", (
        "a rule that spares nothing is not bound by one that does"
    )
