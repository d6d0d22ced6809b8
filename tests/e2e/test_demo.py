"""`checkstream demo`, as a user runs it."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.e2e.harness import ROOT, Process, http, until


@pytest.mark.parametrize(
    "surface",
    ["openai", "anthropic", *(pytest.param(name, marks=pytest.mark.nightly) for name in ("responses", "ollama"))],
)
def test_the_demo_shows_every_case_and_leaves_nothing_running(tmp_path: Path, surface: str) -> None:
    demo = Process("-m", "checkstream", "demo", "--surface", surface, cwd=tmp_path, env={"COLUMNS": "100"})
    code = demo.popen.wait(120)
    left = demo.left()
    demo.kill()
    text = demo.text
    assert code == 0, text
    assert not left
    for rule in ("PII-001 redact", "PII-002 redact", "TOX-001 stop", "INJ-001 reject"):
        assert rule in text
    assert "claim   contradicted: The Treaty of Lund was signed in 1683" in text
    assert "because the claim says `1683`, the evidence `September 1679`" in text
    assert 'encyclopaedia: "The Treaty of Lund was signed in September 1679' in text
    assert "claim   supported: ended the Scanian War" in text
    assert "WRONG" not in text
    assert "signed up to" in text  # what `audit verify` says
    assert "\x1b" not in text  # no terminal, no colours
    assert max(map(len, text.splitlines())) <= 100
    assert not list(tmp_path.iterdir())


def test_keep_serves_until_ctrl_c_and_then_verifies(tmp_path: Path) -> None:
    demo = Process("-m", "checkstream", "demo", "--keep", cwd=tmp_path)
    try:
        url = until(lambda: _curl_url(demo.text), what="the curl line", timeout_s=90)
        body = {"model": "pii", "messages": [{"role": "user", "content": "hi"}]}
        status, _, reply = http("POST", f"{url}/v1/chat/completions", body)
        assert status == 200
        assert b"[EMAIL]" in reply
        demo.popen.send_signal(signal.SIGINT)
        assert demo.popen.wait(30) == 0
        assert not demo.left()
        assert "signed up to" in demo.text
    finally:
        demo.kill()


def test_a_demo_that_is_stopped_early_leaves_nothing_behind(tmp_path: Path) -> None:
    demo = Process("-m", "checkstream", "demo", cwd=tmp_path, env={"TMPDIR": str(tmp_path)})
    try:
        until(lambda: "1. Clean answer" in demo.text, what="the first conversation", timeout_s=60)
        demo.popen.send_signal(signal.SIGTERM)
        assert demo.popen.wait(30) == 130
        assert not demo.left()
        assert not list(tmp_path.iterdir())
    finally:
        demo.kill()


def _curl_url(text: str) -> str | None:
    for line in text.splitlines():
        if line.startswith("curl -N "):
            return line.split()[2].removesuffix("/v1/chat/completions")
    return None


@pytest.mark.nightly
def test_the_fleets_demo_shows_a_bad_bundle_coming_back(tmp_path: Path) -> None:
    demo = Process("-m", "checkstream", "demo", "--fleet", cwd=tmp_path, env={"TMPDIR": str(tmp_path)})
    code = demo.popen.wait(600)
    left = demo.left()
    demo.kill()
    assert code == 0, demo.text
    assert not left
    for said in ("How long does a We don't speak of that.", "rolled_back  shop: 2: stops: ", "ok, 7 records"):
        assert said in demo.text
    assert "taken back" in demo.text.splitlines()[-1]
    assert not list(tmp_path.iterdir())


@pytest.mark.nightly
def test_the_fleets_demo_opens_the_console_of_all_nodes_and_goes_on_while_somebody_looks(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {seen}\n')
    browser.chmod(0o700)
    ours, theirs = pty.openpty()  # what it writes to is a terminal
    env = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path), "DISPLAY": ":9", "BROWSER": f"{browser} %s"}
    command = [sys.executable, "-m", "checkstream", "demo", "--fleet"]
    demo = subprocess.Popen(command, cwd=tmp_path, env={**env, "CI": ""}, stdout=theirs, stderr=theirs)
    os.close(theirs)
    said: list[str] = []
    reader = threading.Thread(target=_read, args=(ours, said))
    reader.start()
    try:
        until(lambda: "until Ctrl-C" in "".join(said), what="the end of the show", timeout_s=600)
        url = seen.read_text().strip()
        assert url.endswith("/console/")
        (key,) = re.findall(r"with the key (\S+)", "".join(said))
        assert http("GET", url)[2].count(b"Log in") > 0
        status, _, body = http("GET", url, headers={"authorization": f"Bearer {key}"})
        assert status == 200
        assert b"shop" in body
        demo.send_signal(signal.SIGINT)
        assert demo.wait(30) == 0
    finally:
        demo.send_signal(signal.SIGINT)  # killed, it would leave its servers behind
        demo.wait(60)
        reader.join()
        os.close(ours)


def _read(terminal: int, said: list[str]) -> None:
    with contextlib.suppress(OSError):  # the other side has closed it
        while content := os.read(terminal, 4096):
            said.append(content.decode(errors="replace"))
