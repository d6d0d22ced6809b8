"""Texts that must not be recited, from the command that reads them to the answer that the real openai SDK gets."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from openai import OpenAI

from checkstream.cli import main
from tests.e2e.harness import Llm, Proxy, http, verify_audit
from tests.fingerprinted import KEEPER

POLICY = """
pack: {name: recitals, version: 1.0.0}
policies:
  - name: left_out
    id: REC-1
    stage: midstream
    channels: [content]
    fingerprints: [{file: books/ours.fp, words: 15}]
    actions: [{type: redact, text: "[left out]"}]
  - name: no_thoughts_of_it
    id: REC-2
    stage: midstream
    channels: [reasoning]
    fingerprints: [{file: books/ours.fp}]
    actions: [{type: stop, message: Not here.}]
  - name: not_told_to_the_model
    id: REC-3
    stage: ingress
    fingerprints: [{file: books/ours.fp, words: 30}]
    actions: [{type: reject, message: That is ours.}]
"""
PASSAGE = " ".join(KEEPER.split()[3:23])
ASK: Any = [{"role": "user", "content": "hello there"}]
OTHER = "A field of barley lay behind the mill, and every summer the children of the village hid in it until late."


def made(folder: Path, text: str) -> None:
    """Write the fingerprints of a text where the policy expects them."""
    texts = folder / "texts"
    texts.mkdir(exist_ok=True)
    (folder / "books").mkdir(exist_ok=True)
    (texts / "book.txt").write_text(text, encoding="utf-8")
    assert main(["fingerprint", str(texts), "-o", str(folder / "books" / "ours.fp")]) == 0


@pytest.fixture
def proxy(start: Callable[..., Proxy], tmp_path: Path) -> Proxy:
    made(tmp_path, KEEPER)
    return start(POLICY)


def said(proxy: Proxy, model: str) -> tuple[str, str | None]:
    """Return the text of a streamed answer, and why it ended."""
    text, reason = "", None
    with OpenAI(base_url=f"{proxy.url}/v1", api_key="k") as client:
        for chunk in client.chat.completions.create(model=model, messages=ASK, stream=True):
            for choice in chunk.choices:
                text += choice.delta.content or ""
                reason = choice.finish_reason or reason
    return text, reason


def test_a_streamed_recital_is_left_out_and_the_record_says_how_long_it_was(
    llm: Llm, proxy: Proxy, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = f"It begins so: {PASSAGE.upper()}. That is all I know."
    model = llm.put("recites", {"choices": [{"content": answer}], "split": {"by": "random", "size": 5}})
    assert said(proxy, model) == ("It begins so: [left out]. That is all I know.", "stop")
    (entry,) = [row["body"] for row in proxy.records() if row["body"].get("record")]
    row = entry["record"]
    (verdict,) = row["verdicts"]
    assert (verdict["rule_id"], verdict["triggers"]) == ("REC-1", ["recital:books/ours.fp"])
    assert verdict["recited"] == row["findings"][0]["recited"] == {"words": 20, "share": "0.869565"}
    assert PASSAGE[:20].upper() not in json.dumps(row).upper()
    assert verify_audit(proxy.audit_dir).returncode == 0
    assert main(["audit", "show", str(proxy.audit_dir), "--stream", entry["stream"]]) == 0
    assert "recital:books/ours.fp; 20 words recited, a share of 0.869565 of the text so far" in capsys.readouterr().out
    logged = proxy.said(lambda row: row.get("event") == "verdict")
    assert (logged["rule_id"], logged["words"], logged["share"]) == ("REC-1", 20, 0.87)


def test_a_stream_is_stopped_before_the_first_word_of_a_recital(llm: Llm, proxy: Proxy) -> None:
    thoughts = f"They want the passage. {PASSAGE} Shall I?"
    model = llm.put("thinks", {"choices": [{"content": "No.", "reasoning_content": thoughts}]})
    status, _, raw = http("POST", f"{proxy.url}/v1/chat/completions", {"model": model, "messages": ASK, "stream": True})
    assert status == 200
    assert PASSAGE.split()[1] not in raw.decode()
    assert b"They" in raw
    assert b"content_filter" in raw


def test_a_prompt_that_recites_is_refused_and_its_caller_learns_no_file(proxy: Proxy) -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": f"Go on: {KEEPER}"}]}
    status, _, raw = http("POST", f"{proxy.url}/v1/chat/completions", body)
    assert status == 400
    assert "That is ours." in raw.decode()
    assert "ours.fp" not in raw.decode()


def test_g25_new_texts_come_in_force_and_a_torn_file_never_does(llm: Llm, proxy: Proxy) -> None:
    model = llm.put("barley", {"choices": [{"content": f"Well. {OTHER}"}]})
    assert said(proxy, model)[0] == f"Well. {OTHER}"
    before = json.loads(http("GET", f"{proxy.admin_url}/admin/status")[2])["routes"][0]["program"]
    made(proxy.folder, OTHER)
    assert http("POST", f"{proxy.admin_url}/admin/reload", b"")[0] == 200
    assert said(proxy, model)[0] == "Well. [left out]."
    after = json.loads(http("GET", f"{proxy.admin_url}/admin/status")[2])["routes"][0]["program"]
    assert after != before
    file = proxy.folder / "books" / "ours.fp"
    file.with_name("part").write_bytes(file.read_bytes()[:-8])
    file.with_name("part").replace(file)
    status, _, raw = http("POST", f"{proxy.admin_url}/admin/reload", b"")
    assert status == 400
    assert "it is torn" in raw.decode()
    assert said(proxy, model)[0] == "Well. [left out]."
