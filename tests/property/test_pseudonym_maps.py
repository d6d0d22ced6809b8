"""An answer that asks what stands for whom (G38): what the prompt's own user has said comes back, whatever form the
question has, and nothing of anybody else: neither of other channels, callers and conversations, nor of other prompts.
"""

from __future__ import annotations

import asyncio
import json
from typing import NamedTuple

from hypothesis import example, given, settings
from hypothesis import strategies as st

from checkstream.core.commands import KeepNames, RecallNames
from checkstream.core.events import RequestReceived, UpstreamBytes, UpstreamClosed, UpstreamOpened
from checkstream.core.exchange.guard import Plan
from checkstream.core.wire.surfaces import SURFACES
from checkstream.sealed.memory_store import MemoryStore
from checkstream.sealed.sealing import Seal
from checkstream.sealed.vault import Vault
from tests import continued
from tests.chance import examples
from tests.conformance.surfaces import CHANNELS, request
from tests.guarded import plan
from tests.playbook import Exchange

RULES = (
    "  - {name: p, id: PSN-1, entities: [EMAIL], actions: [{type: pseudonymise, style: STYLE, restore: [user]}]}\n"
    "  - {name: o, id: PII-1, stage: midstream, entities: [EMAIL], unless: in_request, actions: [{type: redact}]}\n"
)
PLANS = {
    (style, keeps): plan(RULES.replace("STYLE", style), keeps_names=keeps)
    for style in ("label", "surrogate")
    for keeps in (True, False)
}
MINE, EARLIER = "ann.first@mine.example", "bob.before@mine.example"
OPERATORS, DOCUMENTS = "carla.brzk@wolquin.example", "dan.fjordly@umbrast.example"
OTHER_CALLERS, OTHER_TALKS = "eve.quixom@tarvold.example", "fay.zemblin@oskurto.example"
FOREIGN = (OPERATORS, DOCUMENTS, OTHER_CALLERS, OTHER_TALKS)
HALVES = [value[at : at + 6] for value in FOREIGN for at in range(value.index(".example") - 5)]
"""Every six characters of what is nobody's business here."""


class Asked(NamedTuple):
    """A request, and who sends it."""

    caller: str
    conversation: str
    texts: dict[str, str]


HERE = [
    Asked("app", "c", {"user": f"I am {EARLIER}."}),
    Asked("rival", "c", {"user": f"I am {OTHER_CALLERS}.", "system": f"Ask {OTHER_CALLERS}."}),
    Asked("app", "d", {"user": f"I am {OTHER_TALKS}."}),
]
"""What was asked before, by others and by this caller."""


def exchange(asked: Asked, name: str, said: list[str], vault: Vault | None, rules: Plan, *, stream: bool) -> Exchange:
    body = json.loads(request(name, stream, asked.texts))
    if vault is not None:
        body["checkstream"]["conversation"] = asked.conversation
    running = Exchange(SURFACES[name], rules)
    running.send(RequestReceived(json.dumps(body).encode(), asked.caller))
    while vault is not None:
        match running.out.commands[-1]:
            case RecallNames() as command:
                running.send(asyncio.run(vault.recall(asked.caller, command)))
            case KeepNames() as command:
                running.send(asyncio.run(vault.keep(asked.caller, command)))
            case _:
                break
    assert running.out.forwarded is not None
    running.send(UpstreamOpened(200, stream))
    running.send(UpstreamBytes(continued.answer(name, said, stream=stream)))
    running.send(UpstreamClosed())
    assert running.out.record is not None
    return running


FORMS = {
    "table": lambda names: "| what | who |\n|---|---|\n" + "".join(f"| {each} | ? |\n" for each in names),
    "question": lambda names: "".join(f"What is {each}? Say it again: {each}.\n" for each in names),
    "rows": lambda names: "\n".join(f"- {each} = {each}" for each in names),
    "json": lambda names: json.dumps({"map": [{"for": each, "is": None} for each in names]}),
    "halves": lambda names: "\n".join(
        f"first half of {each}: `{each[: len(each) // 2]}`, then `{each[len(each) // 2 :]}`" for each in names
    ),
    "prose": lambda names: "The list that you asked for: " + ", ".join(names) + ". Decode all of it.",
}
numbers = st.lists(st.integers(1, 999), max_size=12, unique=True)


@settings(max_examples=examples(25))
@given(
    st.tuples(st.sampled_from(sorted(CHANNELS)), st.booleans()), st.sampled_from(sorted(FORMS)), numbers,
    st.tuples(st.sampled_from(["label", "surrogate"]), st.booleans()), st.integers(1, 9),
)  # fmt: skip
@example(("openai.chat", True), "rows", list(range(1, 1000, 9)), ("label", True), 7)
@example(("openai.responses", False), "table", list(range(1, 40)), ("surrogate", True), 3)
def test_g38_an_answer_that_asks_for_the_map_gets_placeholders(
    asked_as: tuple[str, bool], form: str, counted: list[int], way: tuple[str, bool], size: int
) -> None:
    (name, stream), (style, named) = asked_as, way
    vault = Vault(MemoryStore(), Seal(bytes(32)), ttl_s=1000, most_bytes=1 << 20) if named else None
    rules = PLANS[way]
    for asked in HERE:
        exchange(asked, name, ["ok"], vault, rules, stream=stream)
    mine = Asked("app", "c", {"user": f"I am {MINE}.", "system": f"Ask {OPERATORS}.", "document": DOCUMENTS})
    if "system" not in CHANNELS[name][next(iter(CHANNELS[name]))]:
        mine.texts.pop("system")
    shown = exchange(mine, name, ["ok"], vault, rules, stream=stream).out.forwarded
    assert shown is not None
    assert not any(each.encode() in shown for each in (MINE, *FOREIGN))
    labels = [f"<EMAIL_{number}>" for number in sorted({*range(1, 8), *counted})]
    said = FORMS[form]([*labels, *(f"<{kind}_1>" for kind in ("PERSON", "PHONE", "CREDIT_CARD"))])
    pieces = [said[at : at + size] for at in range(0, len(said), size)]
    running = exchange(mine, name, pieces, vault, rules, stream=stream)
    data = continued.came(running.out)
    told = continued.told(name, data, stream=stream)[0]
    assert not [half for half in HALVES if half in data.decode() or half in repr(running.out.record)]
    for value in (MINE, EARLIER):
        told = told.replace(value, "\0")
    # All but the names of this caller's own values is what the model said, character by character.
    kept = told.split("\0")
    at = 0
    for piece in kept:
        found = said.find(piece, at)
        assert found >= 0, piece
        at = found + len(piece)
    # In a label's style nothing but what was given for them comes back: one value here, and one of an earlier turn.
    own = {label for label in labels if label in said and label not in told}
    assert len(own) <= (2 if named else 1)
    if style == "label" and form in {"rows", "prose", "table", "question", "json"}:
        assert told.count("\0") == sum(said.count(each) for each in own)
        assert own
