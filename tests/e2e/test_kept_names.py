"""Names over the requests of a conversation, through running proxies that share a store (G38)."""

from __future__ import annotations

import base64
import contextlib
import json
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any

from tests.e2e.harness import Llm, Proxy, config, http, running

POLICY = """
pack: {name: names, version: 1.0.0}
policies:
  - name: nobody_outside_learns_who
    id: PSN-1
    entities: [EMAIL, PERSON]
    actions: [{type: pseudonymise}]
"""
KEYS = {"app1": "k-" + "1" * 20, "app2": "k-" + "2" * 20}
PATIENT = {"ingress_ms": 60_000, "check_ms": 60_000}  # a busy machine must not decide what is found


PLACES = (
    {"name": "chat", "match": {"path": "/v1/chat/completions"}},
    {"name": "responses", "match": {"path": "/v1/responses"}},
)


def settings(llm: Llm, folder: Path, shared: Path) -> dict[str, Any]:
    (folder / "policy.yaml").write_text(POLICY)
    made = config(llm.url, folder, ["policy.yaml"], places=PLACES, deadline=PATIENT)
    callers = []
    for name, key in KEYS.items():
        (folder / name).write_text(key)
        callers.append({"name": name, "key": {"file": name}})
    made["server"]["callers"] = callers
    (folder / "secret").write_text(base64.b64encode(bytes(range(40))).decode())
    made["pseudonyms"] = {"store": f"sqlite:{shared}", "secret": {"file": "secret"}}
    return made


def ask(
    proxy: Proxy, model: str, prompt: str, caller: str = "app1", conversation: str = "c", *, by_header: bool = False
) -> str:
    body: dict[str, Any] = {"model": model, "messages": [{"role": "user", "content": prompt}]}
    headers = {"authorization": f"Bearer {KEYS[caller]}"}
    if by_header:
        headers["x-checkstream-conversation"] = conversation
    else:
        body["checkstream"] = {"conversation": conversation}
    status, _, raw = http("POST", f"{proxy.url}/v1/chat/completions", body, headers=headers)
    assert status == 200, raw
    return str(json.loads(raw)["choices"][0]["message"]["content"])


def test_g38_two_proxies_know_a_conversation_its_caller_alone_and_their_files_nobody(llm: Llm, tmp_path: Path) -> None:
    said = "Ask <PERSON_1>, person 2 and EMAIL_1."
    model = llm.put("kept-names", {"choices": [{"content": [said[at : at + 3] for at in range(0, len(said), 3)]}]})
    shared = tmp_path / "names.db"
    folders = [tmp_path / name for name in ("one", "two")]
    for folder in folders:
        folder.mkdir()
    with running(Proxy(settings(llm, folders[0], shared), folders[0])) as one:
        assert (
            ask(one, model, "Anna Schmidt is at anna@schmidt.io.") == "Ask Anna Schmidt, person 2 and anna@schmidt.io."
        )
        with running(Proxy(settings(llm, folders[1], shared), folders[1])) as two:
            assert ask(two, model, "Is Peter Jones in?") == "Ask Anna Schmidt, Peter Jones and anna@schmidt.io."
            assert ask(two, model, "Is Peter Jones in?", "app2") == "Ask Peter Jones, person 2 and EMAIL_1."
            assert ask(two, model, "Is Peter Jones in?", conversation="d") == "Ask Peter Jones, person 2 and EMAIL_1."
        assert ask(one, model, "And now?") == "Ask Anna Schmidt, Peter Jones and anna@schmidt.io."
        assert ask(one, model, "And?", by_header=True) == "Ask Anna Schmidt, Peter Jones and anna@schmidt.io."
        twice = {"x-checkstream-conversation": "c", "authorization": f"Bearer {KEYS['app1']}"}
        body = {"model": model, "messages": [{"role": "user", "content": "?"}], "checkstream": {"conversation": "c"}}
        status, _, raw = http("POST", f"{one.url}/v1/chat/completions", body, headers=twice)
        assert (status, b"name it in one place" in raw) == (400, True)
        entries = [entry["body"] for entry in one.records()]
        records = [entry["record"] for entry in entries if "record" in entry]
        log = one.text
    sent = [row["body"]["messages"][0]["content"] for row in llm.requests("kept-names")]
    assert sent[:2] == ["<PERSON_1> is at <EMAIL_1>.", "Is <PERSON_2> in?"]
    assert [(record.get("pseudonyms"), record["restored"]) for record in records if "restored" in record] == [
        ({"EMAIL": 1, "PERSON": 1}, 2),
        (None, 3),
        (None, 3),
    ]
    stored = b"".join(path.read_bytes() for path in tmp_path.glob("names.db*"))
    for secret in ("Schmidt", "Peter", "schmidt.io"):
        assert secret.encode() not in stored
        assert secret not in json.dumps([sent, records]) + log


def test_g38_requests_at_once_each_read_their_own_and_all_know_all_names_afterwards(llm: Llm, tmp_path: Path) -> None:
    model = llm.put("kept-at-once", {"choices": [{"content": "You said: ${last_user}"}]})
    people = [f"p{number}@at-once.example" for number in range(8)]
    with running(Proxy(settings(llm, tmp_path, tmp_path / "names.db"), tmp_path)) as proxy:
        with ThreadPoolExecutor(len(people)) as pool:
            told = list(pool.map(lambda person: ask(proxy, model, f"Mail {person}."), people))
        assert told == [f"You said: Mail {person}." for person in people]
        assert ask(proxy, model, " ".join(people)) == "You said: " + " ".join(people)
    sent = [row["body"]["messages"][0]["content"] for row in llm.requests("kept-at-once")]
    labels = [f"<EMAIL_{number}>" for number in range(1, 9)]
    assert sorted(sent[:-1]) == [f"Mail {label}." for label in labels]
    assert sorted(sent[-1].split()) == labels


def test_g38_what_can_not_be_opened_is_refused_and_with_another_secret_nobody_is_known(
    llm: Llm, tmp_path: Path
) -> None:
    model = llm.put("kept-rotated", {"choices": [{"content": "You said: ${last_user}, not <EMAIL_1>."}]})
    file = tmp_path / "names.db"
    made = settings(llm, tmp_path, file)
    with running(Proxy(made, tmp_path)) as proxy:
        assert ask(proxy, model, "ann@x.io") == "You said: ann@x.io, not ann@x.io."
        with contextlib.closing(sqlite3.connect(file)) as store:
            store.execute("UPDATE states SET sealed = zeroblob(length(sealed)) WHERE version = 1")
            store.commit()
        body = {"model": model, "messages": [{"role": "user", "content": "bob@y.io"}]}
        headers = {"authorization": f"Bearer {KEYS['app1']}", "x-checkstream-conversation": "c"}
        status, _, raw = http("POST", f"{proxy.url}/v1/chat/completions", body, headers=headers)
        assert (status, b"y.io" in raw) == (503, False)
        assert ask(proxy, model, "bob@y.io", conversation="d") == "You said: bob@y.io, not bob@y.io."
    (tmp_path / "secret").write_text(base64.b64encode(bytes(range(1, 41))).decode())
    with running(Proxy(made, tmp_path)) as proxy:
        assert ask(proxy, model, "Who?", conversation="d") == "You said: Who?, not <EMAIL_1>."
        assert ask(proxy, model, "eve@z.io") == "You said: eve@z.io, not eve@z.io."


def test_g38_a_request_that_goes_on_from_an_answer_knows_its_names(llm: Llm, tmp_path: Path) -> None:
    scenario = {"choices": [{"content": "You said: ${last_user}, not <EMAIL_1>."}]}
    models = (llm.put(f"kept-on-{number}", scenario) for number in count())  # whose name is in the id of the answer
    headers = {"authorization": f"Bearer {KEYS['app1']}"}

    def then(proxy: Proxy, prompt: str, previous: str | None, *, stream: bool) -> tuple[str, str]:
        asked: dict[str, Any] = {"model": next(models), "input": prompt, "stream": stream}
        asked["previous_response_id"] = previous
        status, _, raw = http("POST", f"{proxy.url}/v1/responses", asked, headers=headers)
        assert status == 200, raw
        events = [json.loads(line[6:]) for line in raw.split(b"\n") if line.startswith(b"data: {")]
        told = events[-1]["response"] if stream else json.loads(raw)
        return told["id"], told["output"][0]["content"][0]["text"]

    with running(Proxy(settings(llm, tmp_path, tmp_path / "names.db"), tmp_path)) as proxy:
        for stream in (True, False):
            first, text = then(proxy, "ann@x.io", None, stream=stream)
            assert text == "You said: ann@x.io, not ann@x.io."
            second, text = then(proxy, "Who?", first, stream=stream)
            assert text == "You said: Who?, not ann@x.io."
            assert then(proxy, "bob@y.io", second, stream=stream)[1] == "You said: bob@y.io, not ann@x.io."
            assert then(proxy, "Who?", "resp_unknown", stream=stream)[1] == "You said: Who?, not <EMAIL_1>."
