"""Names over the requests of a conversation, through running proxies that share a store (G38)."""

from __future__ import annotations

import base64
import json
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


def settings(llm: Llm, folder: Path, shared: Path) -> dict[str, Any]:
    (folder / "policy.yaml").write_text(POLICY)
    made = config(llm.url, folder, ["policy.yaml"], chat_only=True, deadline=PATIENT)
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
