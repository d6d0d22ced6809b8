"""What an entity trigger lets pass: how it is written, compiled, kept and refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from checkstream.cli.sources import read_sources
from checkstream.core.policy.classifiers import ModelEntity
from checkstream.core.policy.compile import compile_sources
from checkstream.core.policy.program import Program
from checkstream.core.policy.spares import Spares
from checkstream.core.policy.spares_syntax import list_name, wanted_files
from checkstream.core.policy.stored import load, stored
from checkstream.core.terms import Told
from checkstream.errors import PolicyError, ProgramInvalid


def pack(triggers: str) -> str:
    lines = "\n".join(f"    {line}" for line in triggers.splitlines())
    head = "pack: {name: p, version: 1.0.0}\npolicies:\n  - name: n\n    id: R\n    actions: [{type: redact}]\n"
    return f"{head}{lines}\n"


def compiled(triggers: str, **lists: bytes) -> Program:
    sources: list[tuple[str, str | bytes]] = [("p.yaml", pack(triggers))]
    sources += [(list_name("p.yaml", f"{name}.txt"), content) for name, content in lists.items()]
    return compile_sources(sources, [ModelEntity("PERSON", "ner", 0.5)])


def spares(triggers: str, **lists: bytes) -> dict[str, Spares | None]:
    return {signal.name: signal.spares for signal in compiled(triggers, **lists).signals}


def faults(triggers: str, **lists: bytes) -> str:
    with pytest.raises(PolicyError) as raised:
        compiled(triggers, **lists)
    return str(raised.value)


def test_what_stands_beside_the_list_is_meant_for_all_and_an_entity_can_have_its_own() -> None:
    assert spares("entities: [EMAIL, {name: PHONE, unless: in_request, in: [document, user]}]\nunless: in_request") == {
        "EMAIL": Spares(request=("user",)),
        "PHONE": Spares(request=("document", "user")),
    }
    assert spares("entities: [EMAIL]") == {"EMAIL": None}
    tree = "triggers: {any: [{entities: [EMAIL], unless: in_request}, {phrases: [x]}]}"
    assert spares(tree)["EMAIL"] == Spares(request=("user",))


def test_allowed_values_are_compared_as_the_entity_is() -> None:
    allow = (
        'allow: {values: ["Help@Example.com", "+1 (415) 555-0132"], domains: ["*.Example.org", "b\u00fccher.example"]}'
    )
    found = spares(f"entities: [EMAIL]\n{allow}")["EMAIL"]
    assert found is not None
    assert found.domains == ("*.example.org", "xn--bcher-kva.example")
    for text, passes in {
        "help@example.COM": True,
        "help [at] example [dot] com": True,
        "other@example.com": False,
        "a@mail.example.org": True,
        "a@deep.mail.example.org": True,
        "a@example.org": False,
        "a@badexample.org": False,
        "a@B\u00dcCHER.example": True,
    }.items():
        assert (found.let_pass("EMAIL", text, Told()) != "") is passes, text


def test_what_a_model_finds_is_compared_by_its_words() -> None:
    lists = {"ours": b"Contoso Ltd\n@x.example\n"}
    where = "unless: in_request\nin: [user, document]"
    rule = f"entities: [PERSON, EMAIL]\n{where}\nallow: {{values: [Anna  SCHMIDT], file: ours.txt}}"
    program = compiled(rule, **lists)
    (person,) = (signal for signal in program.signals if signal.name == "PERSON")
    assert person.spares == Spares(request=("document", "user"), values=("anna schmidt", "contoso ltd"))
    assert program.worded == {"document", "user"}
    assert program.remembered.keys() == {"document", "user"}
    told = Told(words={"user": " ask bert miller now ", "system": " cara "})
    for text, why in {
        "Anna Schmidt\u2019s": "`allow` has this value",
        "CONTOSO LTD.": "`allow` has this value",
        "Anna": "",
        "Bert": "`unless: in_request`: channel `user` has it",
        "Bert Miller": "`unless: in_request`: channel `user` has it",
        "Miller Bert": "",
        "Cara": "",
    }.items():
        assert person.lets_pass(text, told) == why, text
    again = load(stored(program), program.hash)
    assert again.signals == program.signals
    assert again.worded == program.worded


def test_an_entity_that_has_domains_has_them_when_a_model_finds_it() -> None:
    text = pack("entities: [ner.EMAIL]\nallow: {domains: [ours.example]}")
    (mail,) = compile_sources([("p.yaml", text)], [ModelEntity("EMAIL", "ner", 0.5)]).signals
    assert mail.lets_pass("help@OURS.example", Told()) == "`allow` has its domain"
    assert mail.lets_pass("help@other.example", Told()) == ""


def test_a_file_is_compiled_in_and_hashed() -> None:
    rule = "entities: [EMAIL, PHONE]\nallow: {file: ours.txt}"
    lines = "\ufeff# our own\nhelp@example.com\n\n@*.example.org\n415-555-0132\n".encode()
    found = spares(rule, ours=lines)
    assert found["EMAIL"] is not None
    assert found["PHONE"] is not None
    assert found["EMAIL"].domains == ("*.example.org",)
    assert found["PHONE"].domains == ()
    assert found["PHONE"].let_pass("PHONE", "+1 415 555 0132", Told())
    assert compiled(rule, ours=lines).hash != compiled(rule, ours=lines + b"x@y.zz\n").hash


def test_files_are_read_from_beside_the_policy(tmp_path: Path) -> None:
    (tmp_path / "lists").mkdir()
    (tmp_path / "lists" / "ours.txt").write_text("help@example.com\n")
    policy = tmp_path / "policy.yaml"
    policy.write_text(pack("entities: [EMAIL]\nallow: {file: lists/ours.txt}"))
    (signal,) = compile_sources(read_sources([str(policy)])).signals
    assert signal.spares == Spares(values=("help@example.com",))
    (tmp_path / "lists" / "ours.txt").unlink()
    with pytest.raises(PolicyError, match="is not there"):
        compile_sources(read_sources([str(policy)]))
    assert wanted_files("p", pack("entities: [EMAIL]\nallow: {file: ../secret}")) == ()


@pytest.mark.parametrize(
    ("triggers", "reason"),
    [
        ("entities: [EMAIL]\nunless: never", "`unless` can't be `never`"),
        ("entities: [EMAIL]\nin: [user]", "`unless: in_request` is missing"),
        ("entities: [EMAIL]\nunless: in_request\nin: [content]", "can't be `content`"),
        ("phrases: [x]\nunless: in_request", "there are none"),
        ("triggers: {phrases: [x], unless: in_request}", "belongs to `entities`"),
        ("triggers: {entities: [EMAIL]}\nunless: in_request", "both `triggers` and `unless`"),
        ("entities: [EMAIL]\nallow: {}", "names nothing"),
        ("entities: [EMAIL]\nallow: {domains: ['*.*']}", "is no domain"),
        ("entities: [EMAIL]\nallow: {domains: ['a b.com']}", "is no domain"),
        ("entities: [PHONE]\nallow: {domains: [example.com]}", "has no domain"),
        ("entities: [PERSON]\nallow: {domains: [example.com]}", "has no domain"),
        ("entities: [ner.PERSON]\nunless: in_request\nin: [nowhere]", "can't be `nowhere`"),
        ("entities: [PERSON]\nstage: [ingress]\nchannels: [user]\nunless: in_request", "counts for nothing"),
        ("entities: [EMAIL]\nstage: [ingress]\nchannels: [user]\nunless: in_request", "counts for nothing"),
        ("entities: [EMAIL]\nallow: {file: none.txt}", "is not there"),
        ("entities: [EMAIL]\nallow: {file: /etc/passwd}", "is not beside the policy"),
        ("entities: [EMAIL]\nallow: {file: a/../../b}", "is not beside the policy"),
        ("entities: [{unless: in_request}]", "needs the key `name`"),
    ],
)
def test_what_can_not_be_meant_is_refused_at_its_place(triggers: str, reason: str) -> None:
    assert reason in faults(triggers)


@pytest.mark.parametrize("content", [b"\xff\xfe", b"@not a domain", b"x" * 400])
def test_a_file_that_can_not_be_used_is_refused(content: bytes) -> None:
    assert "ours.txt" in faults("entities: [EMAIL]\nallow: {file: ours.txt}", ours=content)


def test_a_stored_program_keeps_what_is_spared_and_trusts_none_of_it() -> None:
    program = compiled("entities: [EMAIL]\nunless: in_request\nallow: {values: [b@x.io, a@x.io], domains: [x.io]}")
    data = stored(program)
    again = load(data, program.hash)
    assert again.signals == program.signals
    assert again.remembered.keys() == {"user"}

    def spoilt(**changes: Any) -> bytes:
        parts = json.loads(data)
        parts["signals"][0]["spares"] |= changes
        return json.dumps(parts, separators=(",", ":")).encode()

    spoiled: list[dict[str, Any]] = [
        {"values": ["b@x.io", "a@x.io"]},
        {"request": ["content"]},
        {"request": ["user", "user"]},
        {"domains": ["X.io"]},
        {"request": [], "values": [], "domains": []},
        {"values": [""]},
    ]
    for changes in spoiled:
        with pytest.raises(ProgramInvalid):
            load(spoilt(**changes))
    parts = json.loads(data)
    parts["signals"][0] |= {"kind": "pattern", "name": "x", "regex": "x", "max_chars": None}
    with pytest.raises(ProgramInvalid):
        load(json.dumps(parts, separators=(",", ":")).encode())
