"""Several processes that serve as one: what they share, and what callers notice when one of them ends (nothing)."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.e2e.harness import ROOT, Llm, Proxy, RawCaller, config, http, running, until, verify_audit

POLICY = """
pack: {name: many, version: 1.0.0}
policies:
  - {name: mail, id: PII-1, stage: midstream, entities: [EMAIL], actions: [{type: redact}]}
  - {name: transfer, id: PAY-1, stage: ingress, phrases: [transfer all], actions: [{type: require_confirmation}]}
  - {name: flag, id: FLAG-1, stage: ingress, phrases: [red flag], actions: [{type: log_event}]}
  - name: twice
    id: TWICE-1
    stage: ingress
    conditions: ['conversation.fired["FLAG-1"] > 0']
    actions: [{type: reject}]
"""
CHAT = "/v1/chat/completions"
SLOW = {"choices": [{"content": "word " * 100 + "mail joe@example.com now"}], "timing": {"token_ms": 25}}
MANY = {"workers": 2, "hang_ms": 1500}


def ask(proxy: Proxy, text: str = "hello", **more: Any) -> tuple[int, dict[str, str], dict[str, Any]]:
    """Ask on a connection of its own."""
    headers = {f"x-checkstream-{name}": value for name, value in more.pop("headers", {}).items()}
    body = {"model": "clean", "messages": [{"role": "user", "content": text}], **more}
    status, given, raw = http("POST", proxy.url + CHAT, body, headers={"connection": "close", **headers})
    return status, given, json.loads(raw)


def status_of(proxy: Proxy) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(http("GET", f"{proxy.admin_url}/admin/status")[2])
    return found


def pids(proxy: Proxy) -> dict[int, int]:
    """Return the processes that serve, by their places."""
    return {each["slot"]: each["pid"] for each in status_of(proxy)["workers"] if each["state"] == "serving"}


def generations(proxy: Proxy) -> list[int]:
    return [each["generation"] for each in status_of(proxy)["workers"] if each["state"] == "serving"]


def counted(proxy: Proxy, name: str, **labels: str) -> float:
    text = http("GET", f"{proxy.admin_url}/metrics")[2].decode()
    return sum(
        sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == name and labels.items() <= sample.labels.items()
    )


def worker_of(proxy: Proxy, stream: str) -> int:
    """Return the place of the process that has served a stream."""
    return int(
        until(
            lambda: next((row["worker"] + 1 for row in proxy.logs("request.ended") if row["stream"] == stream), None),
            what=f"the end of `{stream}`",
        )
        - 1
    )


class Knocking(threading.Thread):
    """Opens connections all the while, asks once on each, and notes what failed."""

    def __init__(self, proxy: Proxy) -> None:
        super().__init__()
        self._place = ("127.0.0.1", int(proxy.url.rpartition(":")[2]))
        self._over = threading.Event()
        self.done = 0
        self.failed: list[str] = []

    def run(self) -> None:
        while not self._over.is_set():
            try:
                with socket.create_connection(self._place, timeout=20) as one:
                    one.sendall(b"GET /v1/models HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
                    head = one.recv(65536)
                    while one.recv(65536):
                        pass
                assert head.startswith(b"HTTP/1.1 200"), head[:100]
            except (OSError, AssertionError) as error:
                self.failed.append(repr(error))
            self.done += 1

    def end(self) -> None:
        self._over.set()
        self.join(30)


@contextlib.contextmanager
def knocking(proxy: Proxy, lost: int = 0) -> Iterator[None]:
    """Fail where a connection was refused, or more than so many were reset or left unanswered."""
    callers = [Knocking(proxy) for _ in range(2)]
    for each in callers:
        each.start()
    try:
        yield
    finally:
        for each in callers:
            each.end()
    failed = [failure for each in callers for failure in each.failed]
    assert not [failure for failure in failed if "Refused" in failure], failed
    assert len(failed) <= lost, failed
    assert all(each.done > 3 for each in callers)


class Stream:
    """A slow answer, and the process that serves it."""

    def __init__(self, proxy: Proxy, model: str) -> None:
        body = {"model": model, "stream": True, "messages": [{"role": "user", "content": "hi"}]}
        self._caller = RawCaller(proxy.url, body)
        self._caller.read_until(b"word")
        self.local = self._caller.socket.getsockname()[1]
        self.port = int(proxy.url.rpartition(":")[2])

    def belongs_to(self, pid: int) -> bool:
        """Tell whether a process has this connection."""
        inodes = set()
        for link in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                inodes.add(str(link.readlink()))
        rows = [row.split() for row in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]]
        ends = (f":{self.port:04X}", f":{self.local:04X}")
        own = [row for row in rows if row[1].endswith(ends[0]) and row[2].endswith(ends[1])]
        return any(f"socket:[{row[9]}]" in inodes for row in own)

    def rest(self) -> str:
        """Read to the end; raise if it is torn."""
        self._caller.read_until(b"[DONE]")
        self._caller.leave()
        return self._caller.received.decode()

    def leave(self) -> None:
        self._caller.leave()

    def is_torn(self) -> bool:
        try:
            self._caller.read_until(b"[DONE]")
        except (OSError, AssertionError):
            return True
        finally:
            self._caller.leave()
        return False


def streams_of_both(proxy: Proxy, model: str) -> dict[int, list[Stream]]:
    """Return running streams by the place of their process, at least one in each."""
    found: dict[int, list[Stream]] = {slot: [] for slot in pids(proxy)}
    for _ in range(40):
        if all(found.values()):
            return found
        stream = Stream(proxy, model)
        (slot,) = [slot for slot, pid in pids(proxy).items() if stream.belongs_to(pid)]
        found[slot].append(stream)
    raise AssertionError(f"the kernel has given all to one: {found}")


def settings_of(llm: Llm, folder: Path, **server: Any) -> dict[str, Any]:
    (folder / "policy.yaml").write_text(POLICY)
    settings = config(llm.url, folder, ["policy.yaml"])
    settings["server"] |= MANY | server
    settings["routes"][1]["quota"] = {"streams": 2}  # of `/v1/completions`
    return settings


@pytest.fixture(scope="module")
def one_for_all(llm: Llm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    folder = tmp_path_factory.mktemp("many")
    with running(Proxy(settings_of(llm, folder), folder)) as proxy:
        yield proxy


@pytest.fixture
def many(one_for_all: Proxy) -> Proxy:
    """The proxy of all tests, with both processes there, whatever the last test did to them."""
    until(lambda: len(pids(one_for_all)) == 2, what="two processes", timeout_s=30)
    return one_for_all


def exits(proxy: Proxy) -> dict[str, float]:
    return {
        cause: counted(proxy, "checkstream_worker_exits_total", cause=cause) for cause in ("crash", "hang", "start")
    }


def test_processes_share_a_port_and_count_speak_and_remember_as_one(many: Proxy) -> None:
    labels = {"route": "chat", "status": "200"}
    before = counted(many, "checkstream_requests_total", **labels)
    streams = [ask(many)[1]["x-checkstream-stream"] for _ in range(16)]
    assert {worker_of(many, stream) for stream in streams} == {0, 1}
    assert counted(many, "checkstream_requests_total", **labels) == before + 16
    assert counted(many, "checkstream_workers") == 2
    entries = json.loads(http("GET", f"{many.admin_url}/admin/audit?last=200")[2])
    found = {entry["entry"]["stream"]: entry["chain"] for entry in entries if entry["entry"]["kind"] == "stream"}
    assert set(streams) <= set(found)
    assert len({found[stream] for stream in streams}) == 2
    assert [entry["at"] for entry in entries] == sorted(entry["at"] for entry in entries)

    # a confirmation of any process is good in every one, and once in all
    for _ in range(3):
        token = ask(many, "transfer all")[1]["x-checkstream-confirm"]
        tries = [ask(many, "transfer all", headers={"confirm": token})[0] for _ in range(5)]
        assert tries == [200, 409, 409, 409, 409]

    # and what one has seen of a conversation the others know
    for turn in range(6):
        here = {"checkstream": {"conversation": f"c{turn}"}}
        assert ask(many, "A red flag", **here)[0] == 200
        assert [ask(many, "Hello", **here)[0] for _ in range(2)] == [400, 400]
    assert verify_audit(many.audit_dir).returncode == 0


def test_g22_a_quota_is_that_of_all_processes_together(many: Proxy, llm: Llm) -> None:
    body = {"model": llm.put("many-slow", SLOW), "stream": True, "prompt": "hi"}
    first = [RawCaller(many.url, body, path="/v1/completions") for _ in range(2)]
    for caller in first:
        caller.read_until(b"word")
    for _ in range(8):  # whichever process they come to
        caller = RawCaller(many.url, body, path="/v1/completions")
        caller.read_until(b"\r\n\r\n")
        assert caller.received.startswith(b"HTTP/1.1 429"), caller.received
        caller.leave()
    for caller in first:
        caller.leave()

    def is_let_in() -> bool:
        caller = RawCaller(many.url, body, path="/v1/completions")
        caller.read_until(b"\r\n\r\n")
        caller.leave()
        return caller.received.startswith(b"HTTP/1.1 200")

    until(is_let_in, what="room after the first have left")


def test_a_killed_process_takes_nobody_with_it_and_is_replaced(many: Proxy, llm: Llm) -> None:
    model = llm.put("many-slow", SLOW)
    streams = streams_of_both(many, model)
    before, ended = counted(many, "checkstream_requests_total"), exits(many)
    first = pids(many)
    with knocking(many, lost=2):  # those that the dead process had taken
        os.kill(first[0], signal.SIGKILL)
        until(
            lambda: first[0] not in pids(many).values() and len(pids(many)) == 2, what="another process", timeout_s=40
        )
    assert all(stream.is_torn() for stream in streams[0])
    for stream in streams[1]:
        assert "[EMAIL]" in stream.rest()
    assert pids(many)[1] == first[1], "the other one was left alone"
    assert counted(many, "checkstream_requests_total") >= before, "what was told is never taken back"
    assert exits(many) == ended | {"crash": ended["crash"] + 1}
    assert many.logs("worker.ended")[-1]["pid"] == first[0]
    assert verify_audit(many.audit_dir).returncode == 0


def test_a_process_that_hangs_is_found_and_replaced_and_its_callers_wait_no_longer(many: Proxy) -> None:
    hung, ended = pids(many)[1], exits(many)
    with knocking(many, lost=2):
        os.kill(hung, signal.SIGSTOP)
        until(lambda: exits(many) == ended | {"hang": ended["hang"] + 1}, what="the end of the hang", timeout_s=20)
        until(lambda: len(pids(many)) == 2, what="another process", timeout_s=40)
    assert hung not in pids(many).values()
    assert ask(many)[0] == 200


def test_a_process_that_is_asked_to_end_is_replaced_and_loses_nobody(many: Proxy, llm: Llm) -> None:
    model = llm.put("many-slow", SLOW)
    streams = streams_of_both(many, model)
    asked, ended = pids(many)[0], exits(many)
    with knocking(many):
        os.kill(asked, signal.SIGTERM)
        until(lambda: asked not in pids(many).values() and len(pids(many)) == 2, what="another process", timeout_s=40)
        for stream in itertools.chain(*streams.values()):
            assert "[EMAIL]" in stream.rest()
    until(lambda: not Path(f"/proc/{asked}").exists(), what="the end of the process that was asked")
    assert exits(many) == ended


def test_g25_policies_come_in_force_in_all_processes_or_in_none(many: Proxy, llm: Llm) -> None:
    def versions() -> set[str]:
        return {ask(many)[1]["x-checkstream-policy"] for _ in range(10)}

    running_ = Stream(many, llm.put("many-slow", SLOW))
    policy = many.folder / "policy.yaml"
    before = generations(many)
    with knocking(many):
        policy.write_text(POLICY.replace("1.0.0", "2.0.0").replace("phrases: [red flag]", "phrases: 7"))
        status, _, body = http("POST", f"{many.admin_url}/admin/reload", b"")
        assert (status, b"phrases" in body) == (400, True)
        assert versions() == {"many@1.0.0"}
        shown = status_of(many)
        assert (shown["ready"], shown["reload"]["accepted"]) == (True, False)
        assert generations(many) == before

        policy.write_text(POLICY.replace("1.0.0", "2.0.0"))
        many.popen.send_signal(signal.SIGHUP)
        until(lambda: status_of(many)["reload"]["accepted"], what="the accepted reload", timeout_s=30)
        assert versions() == {"many@2.0.0"}

        policy.write_text(POLICY.replace("1.0.0", "3.0.0"))  # a changed file is enough
        until(lambda: generations(many) == [each + 2 for each in before], what="the third policies", timeout_s=30)
        assert versions() == {"many@3.0.0"}
        policy.write_text(POLICY)
        until(lambda: versions() == {"many@1.0.0"}, what="the first policies", timeout_s=30)
    assert "[EMAIL]" in running_.rest()


def test_workers_of_a_killed_parent_leave_the_port_and_those_of_a_stopped_one_drain(llm: Llm, tmp_path: Path) -> None:
    settings = settings_of(llm, tmp_path)
    first = Proxy(settings, tmp_path)
    os.kill(first.popen.pid, signal.SIGKILL)
    until(lambda: not first.left(), what="the end of the workers", timeout_s=20)
    first.kill()
    settings["server"]["listen"] = first.url.removeprefix("http://")
    with running(Proxy(settings, tmp_path)) as second:
        streams = streams_of_both(second, llm.put("many-slow", SLOW))
        second.popen.send_signal(signal.SIGTERM)
        for stream in itertools.chain(*streams.values()):
            assert "[EMAIL]" in stream.rest()
        assert second.popen.wait(20) == 0
    assert verify_audit(second.audit_dir).returncode == 0


def test_what_is_wrong_is_said_once_and_nothing_stays(llm: Llm, tmp_path: Path) -> None:
    settings = settings_of(llm, tmp_path, workers=3)
    (tmp_path / "policy.yaml").write_text(POLICY.replace("phrases: [red flag]", "phrases: 7"))
    (tmp_path / "checkstream.yaml").write_text(json.dumps(settings))
    command = [sys.executable, "-m", "checkstream", "serve", "--config", str(tmp_path / "checkstream.yaml")]
    began = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd=ROOT)
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("`phrases` must be") == 1
    assert "worker" not in done.stderr
    assert time.monotonic() - began < 30


def test_two_parents_never_share_a_port_by_chance(many: Proxy, llm: Llm, tmp_path: Path) -> None:
    settings = settings_of(llm, tmp_path, listen=many.url.removeprefix("http://"))
    file = tmp_path / "second.yaml"
    file.write_text(json.dumps(settings))
    command = [sys.executable, "-m", "checkstream", "serve", "--config", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd=ROOT)
    assert done.returncode == 2
    assert "address already in use" in done.stderr


def test_the_program_is_replaced_by_another_and_loses_nobody_and_nothing(llm: Llm, tmp_path: Path) -> None:
    """SIGUSR2: what serves from here on is a new process with what is installed and configured now."""
    settings = settings_of(llm, tmp_path)
    first = Proxy(settings, tmp_path)
    heir = 0
    try:
        streams = streams_of_both(first, llm.put("many-slow", SLOW))
        spent, held = (ask(first, "transfer all")[1]["x-checkstream-confirm"] for _ in range(2))
        assert ask(first, "transfer all", headers={"confirm": spent})[0] == 200
        assert ask(first, "A red flag", checkstream={"conversation": "c"})[0] == 200
        before, old = counted(first, "checkstream_requests_total"), pids(first)

        (tmp_path / "checkstream.yaml").write_text("server: {workers: none}")
        first.popen.send_signal(signal.SIGUSR2)
        until(lambda: first.logs("upgrade.failed"), what="the end of what can't start", timeout_s=40)
        assert pids(first) == old

        settings["server"] |= {"drain_ms": 29_000}  # SIGHUP would refuse it
        (tmp_path / "checkstream.yaml").write_text(json.dumps(settings))
        with knocking(first):
            first.popen.send_signal(signal.SIGUSR2)
            until(lambda: len(first.logs("listening")) == 2, what="the next", timeout_s=60)
            heir = int(first.logs("upgrade.begun")[-1]["pid"])
            until(
                lambda: len(pids(first)) == 2 and not set(old.values()) & set(pids(first).values()), what="its workers"
            )
            assert counted(first, "checkstream_requests_total") >= before
            for _ in range(4):  # the one that goes is asked
                assert ask(first, "transfer all", headers={"confirm": spent})[0] == 409
            for stream in itertools.chain(*streams.values()):
                assert "[EMAIL]" in stream.rest()
        assert first.popen.wait(20) == 0
        until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in old.values()), what="the end of the others")
        assert counted(first, "checkstream_requests_total") >= before, "what was told is never taken back"
        tries = [ask(first, "transfer all", headers={"confirm": held})[0] for _ in range(4)]
        assert tries == [200, 409, 409, 409]
        assert ask(first, "transfer all", headers={"confirm": spent})[0] == 409
        assert ask(first, "Hello", checkstream={"conversation": "c"})[0] == 400
        assert status_of(first)["ready"]
        os.kill(heir, signal.SIGTERM)
        until(lambda: not first.left(), what="the end of all", timeout_s=20)
        assert verify_audit(first.audit_dir).returncode == 0
    finally:
        sys.stdout.write(first.text)
        first.kill()


def test_a_process_that_hangs_while_it_ends_is_ended_and_its_callers_wait_no_longer(many: Proxy, llm: Llm) -> None:
    slow = {"choices": [{"content": "word " * 400}], "timing": {"token_ms": 50}}
    streams = streams_of_both(many, llm.put("many-slower", slow))
    asked = pids(many)[0]
    os.kill(asked, signal.SIGTERM)
    until(lambda: asked not in pids(many).values() and len(pids(many)) == 2, what="another process", timeout_s=40)
    os.kill(asked, signal.SIGSTOP)  # it has an answer to end, and never does
    until(lambda: not Path(f"/proc/{asked}").exists(), what="its end", timeout_s=20)
    assert all(stream.is_torn() for stream in streams[0])
    for stream in streams[1]:
        stream.leave()


def test_whenever_all_are_told_to_end_nobody_is_left_behind(llm: Llm, tmp_path: Path) -> None:
    """SIGTERM while processes are being started, the first and those in the place of others."""
    for number, wait_s in enumerate((0.0, 0.15, 0.7)):
        folder = tmp_path / str(number)
        folder.mkdir()
        proxy = Proxy(settings_of(llm, folder), folder)
        try:
            for pid in pids(proxy).values():
                os.kill(pid, signal.SIGKILL)
            time.sleep(wait_s)
            proxy.popen.send_signal(signal.SIGTERM)
            assert proxy.popen.wait(20) == 0
            assert not proxy.left(), "a process outlives its parent"
        finally:
            proxy.kill()


def test_asked_twice_to_be_replaced_and_then_to_end_it_leaves_no_heir(llm: Llm, tmp_path: Path) -> None:
    first = Proxy(settings_of(llm, tmp_path), tmp_path)
    try:
        for _ in range(2):
            first.popen.send_signal(signal.SIGUSR2)
        until(lambda: first.logs("upgrade.begun"), what="an heir")
        first.popen.send_signal(signal.SIGUSR2)
        heir = int(first.logs("upgrade.begun")[-1]["pid"])
        first.popen.send_signal(signal.SIGTERM)
        assert first.popen.wait(30) == 0
        assert len(first.logs("upgrade.begun")) == 1
        until(lambda: not first.left() and not Path(f"/proc/{heir}").exists(), what="the end of all", timeout_s=10)
    finally:
        sys.stdout.write(first.text)
        first.kill()
