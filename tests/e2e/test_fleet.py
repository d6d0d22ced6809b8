"""Machines behind one load balancer, here proxies of their own: what a caller has counts on all, and what fails does
not stop them.
"""

from __future__ import annotations

import base64
import json
import os
import secrets
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import redis
from prometheus_client.parser import text_string_to_metric_families

from tests.e2e.harness import Llm, Proxy, RawCaller, config, http, running, until
from tests.redis_server import RedisServer, free_port

POLICY = """
pack: {name: fleet, version: 1.0.0}
policies:
  - {name: transfer, id: PAY-1, stage: ingress, phrases: [transfer all], actions: [{type: require_confirmation}]}
"""
ASKING = """
  - {name: toxic, id: TOX-1, stage: ingress, classifiers: [{name: lexicon.toxicity}], actions: [{type: reject}]}
"""
CHAT = "/v1/chat/completions"
SLOW = {"choices": [{"content": "word " * 1500}], "timing": {"token_ms": 50}}
PASSWORD = "p-" + "x" * 20
SECRET = base64.b64encode(bytes(range(40))).decode()


def settings_of(llm: Llm, folder: Path, server: RedisServer, **fleet: Any) -> dict[str, Any]:
    folder.mkdir(exist_ok=True)
    (folder / "policy.yaml").write_text(POLICY)
    (folder / "secret").write_text(SECRET)
    (folder / "password").write_text(PASSWORD)
    settings = config(llm.url, folder, ["policy.yaml"])
    settings["routes"][1]["quota"] = {"streams": 2}  # of `/v1/completions`
    settings["fleet"] = {
        "store": server.tcp_url,
        "secret": {"file": "secret"},
        "password": {"file": "password"},
        **fleet,
    }
    return settings


@pytest.fixture
def server() -> Iterator[RedisServer]:
    with RedisServer(port=str(free_port()), requirepass=PASSWORD) as running_:
        yield running_


@pytest.fixture
def two(llm: Llm, tmp_path: Path, server: RedisServer) -> Iterator[tuple[Proxy, Proxy]]:
    with (
        running(Proxy(settings_of(llm, tmp_path / "a", server), tmp_path / "a")) as one,
        running(Proxy(settings_of(llm, tmp_path / "b", server), tmp_path / "b")) as other,
    ):
        until(lambda: machines(one) == machines(other) == 2, what="both to know each other")
        yield one, other


def machines(proxy: Proxy) -> float:
    text = http("GET", f"{proxy.admin_url}/metrics")[2].decode()
    (family,) = [each for each in text_string_to_metric_families(text) if each.name == "checkstream_fleet_machines"]
    return sum(sample.value for sample in family.samples)


def ask(proxy: Proxy, text: str = "hello", **headers: str) -> tuple[int, dict[str, str], dict[str, Any]]:
    given = {f"x-checkstream-{name}": value for name, value in headers.items()}
    body = {"model": "clean", "messages": [{"role": "user", "content": text}]}
    status, told, raw = http("POST", proxy.url + CHAT, body, headers={"connection": "close", **given})
    return status, told, json.loads(raw)


def token_of(proxy: Proxy) -> str:
    status, headers, _ = ask(proxy, "transfer all")
    assert status == 409
    return headers["x-checkstream-confirm"]


def confirm(proxy: Proxy, token: str) -> int:
    return ask(proxy, "transfer all", confirm=token)[0]


class Stream:
    """A slow answer."""

    def __init__(self, proxy: Proxy, llm: Llm) -> None:
        body = {"model": llm.put("fleet-slow", SLOW), "stream": True, "prompt": "hi"}
        self._caller = RawCaller(proxy.url, body, path="/v1/completions")
        self._caller.read_until(b"\r\n\r\n")
        self.status = int(self._caller.received.split()[1])
        self.text = self._caller.received.decode()

    def goes_on(self) -> bool:
        self._caller.received = b""
        self._caller.read_until(b"word")
        return True

    def leave(self) -> None:
        self._caller.leave()


def let_in(proxy: Proxy, llm: Llm) -> Stream:
    """Wait until a stream is let in, and return it."""

    def tried() -> Stream | None:
        stream = Stream(proxy, llm)
        if stream.status == 200:
            return stream
        stream.leave()
        return None

    return until(tried, what="room")


def refused(llm: Llm, *proxies: Proxy) -> None:
    """Wait until no more is let in: one that was just before still counts for a moment when it has left."""
    until(lambda: not any(is_let_in(proxy, llm) for proxy in proxies * 4), what="refusals")


def is_let_in(proxy: Proxy, llm: Llm) -> bool:
    stream = Stream(proxy, llm)
    stream.leave()
    return stream.status == 200


def test_g22_a_quota_is_that_of_all_machines_and_one_that_dies_leaves_its_share(
    llm: Llm, tmp_path: Path, server: RedisServer
) -> None:
    one, other = (Proxy(settings_of(llm, tmp_path / name, server), tmp_path / name) for name in "ab")
    try:
        quota_over(one, other, llm)
    finally:
        one.kill()
        other.kill()


def quota_over(one: Proxy, other: Proxy, llm: Llm) -> None:
    until(lambda: machines(one) == machines(other) == 2, what="both to know each other")
    streams = [Stream(one, llm), Stream(one, llm)]
    assert [stream.status for stream in streams] == [200, 200]
    time.sleep(1)
    third = Stream(other, llm)
    assert third.status == 429
    third.leave()
    assert ask(other)[0] == 200, "another route has no quota"

    streams[1].leave()  # what one gives back the other may have
    last = let_in(one, llm)
    refused(llm, other)
    os.kill(one.popen.pid, signal.SIGKILL)
    until(lambda: is_let_in(other, llm), what="room after the machine has died", timeout_s=10)
    until(lambda: machines(other) == 1, what="one machine")
    streams[0].leave()
    last.leave()


def test_g24_a_route_that_one_machine_sheds_the_others_shed_too(llm: Llm, tmp_path: Path, server: RedisServer) -> None:
    busy, calm = (settings_of(llm, tmp_path / name, server) for name in "ab")
    for name in "ab":
        (tmp_path / name / "policy.yaml").write_text(POLICY + ASKING)
    busy["routes"][0]["budget"] = {"ingress_ms": 0.001, "on_exceeded": "shed"}  # whatever is asked is asked too long
    with (
        running(Proxy(busy, tmp_path / "a")) as one,
        running(Proxy(calm, tmp_path / "b")) as other,
    ):
        until(lambda: machines(one) == machines(other) == 2, what="both to know each other")
        assert ask(one)[0] == 200
        status, _, told = until(lambda: None if (came := ask(other))[0] == 200 else came, what="the other's refusal")
        assert (status, "checks take longer" in told["error"]["message"]) == (429, True)
        until(lambda: ask(other)[0] == 200, what="the end of it", timeout_s=3)


def test_a_confirmation_of_one_machine_is_good_on_the_other_and_once_on_all(two: tuple[Proxy, Proxy]) -> None:
    one, other = two
    for made, used in (two, (other, one)):
        token = token_of(made)
        assert [confirm(used, token), confirm(made, token), confirm(used, token)] == [200, 409, 409]
    for _ in range(3):
        token = token_of(one)
        with ThreadPoolExecutor(20) as pool:
            came = Counter(pool.map(lambda at, token=token: confirm(two[at % 2], token), range(20)))
        assert came == {200: 1, 409: 19}


def test_without_the_store_machines_go_on_by_themselves_and_refuse_confirmations(
    two: tuple[Proxy, Proxy], llm: Llm, server: RedisServer
) -> None:
    one, other = two
    streams = [Stream(one, llm), Stream(other, llm)]
    refused(llm, other)
    before, spent = token_of(one), token_of(one)
    assert confirm(other, spent) == 200
    server.kill()
    for stream in streams:
        assert stream.goes_on()
    status, headers, told = ask(other, "transfer all", confirm=before)
    assert (status, told["error"]["type"]) == (503, "unavailable")
    assert "retry-after" in headers
    until(lambda: machines(one) == machines(other) == 0, what="that nobody is known")
    second = let_in(other, llm)
    refused(llm, other)
    assert [len(proxy.logs("fleet.away")) for proxy in two] == [1, 1]

    server.start()
    until(lambda: machines(one) == machines(other) == 2, what="both again")
    refused(llm, one)
    for stream in (*streams, second):
        stream.leave()
    assert [len(proxy.logs("fleet.joined")) for proxy in two] == [2, 2]
    # what the server remembered last may be lost, so what was made before is good no more
    status, headers, told = ask(other, "transfer all", confirm=before)
    assert (status, "before a restart" in told["error"]["message"]) == (409, True)
    assert confirm(one, spent) == 409
    assert confirm(one, headers["x-checkstream-confirm"]) == 200


def test_rubbish_in_the_store_is_no_machine_and_stops_none(
    two: tuple[Proxy, Proxy], llm: Llm, server: RedisServer
) -> None:
    client = redis.Redis.from_url(server.tcp_url, password=PASSWORD, protocol=2)
    (pages,) = client.keys("checkstream:fleet:*:machines")
    page = client.hvals(pages)[0]
    (memory,) = client.keys("checkstream:fleet:*:memory")
    now = round(client.time()[0] * 1000)
    held = Stream(two[0], llm)
    for value in (b"", b"rubbish", b"%d:" % (now + 2500), b"%d:" % (now + 2500) + secrets.token_bytes(100), b"9" * 400):
        client.hset(pages, secrets.token_hex(4), value)
    client.hset(pages, b"\xff\0" * 30, b"%d:x" % (now + 2500))
    client.hset(pages, "n" * 100_000, b"%d:x" % (now + 2500))
    client.hset(pages, "large", b"%d:" % (now + 2500) + b"x" * 1_000_000)
    client.hset(pages, "copy", page)  # another's page under a name of its own
    time.sleep(0.5)
    assert machines(two[0]) == machines(two[1]) == 2
    client.delete(pages)
    client.set(pages, "of another type")
    client.delete(memory)
    client.rpush(memory, "of another type, too")
    time.sleep(0.5)
    until(lambda: machines(two[0]) == machines(two[1]) == 2, what="both again")
    client.script_flush()
    client.flushall()
    until(lambda: client.exists(pages, memory) == 2, what="what they say")
    client.hset(pages, mapping={secrets.token_hex(8): "x" for _ in range(5000)})
    until(lambda: client.hlen(pages) == 2, what="the end of the rubbish")
    token = token_of(two[0])
    assert [confirm(two[1], token), confirm(two[0], token)] == [200, 409]
    assert held.goes_on()
    held.leave()
    assert not any(proxy.logs("fleet.away") for proxy in two)
    client.close()


def test_a_wrong_password_and_a_full_server_are_told_and_stop_nobody(
    llm: Llm, tmp_path: Path, server: RedisServer
) -> None:
    wrong = settings_of(llm, tmp_path / "a", server)
    (tmp_path / "a" / "password").write_text("wrong")
    with running(Proxy(wrong, tmp_path / "a")) as proxy:
        (told,) = until(lambda: proxy.logs("fleet.away"), what="that it is away")
        assert told["reason"] == "AuthenticationError"
        assert ask(proxy)[0] == 200
        assert confirm(proxy, token_of(proxy)) == 503
        assert PASSWORD not in proxy.text
        assert SECRET not in proxy.text
    with running(Proxy(settings_of(llm, tmp_path / "b", server), tmp_path / "b")) as proxy:
        until(lambda: machines(proxy) == 1, what="the store")
        client = redis.Redis.from_url(server.tcp_url, password=PASSWORD, protocol=2)
        client.config_set("maxmemory", "1")
        assert ask(proxy)[0] == 200
        token = token_of(proxy)
        assert confirm(proxy, token) == 503
        client.config_set("maxmemory", "0")
        until(lambda: confirm(proxy, token) == 200, what="room")
        client.config_set("maxmemory-policy", "allkeys-lru")
        client.config_set("maxmemory", "1gb")
        client.close()
        assert not proxy.logs("fleet.store")
    with running(Proxy(settings_of(llm, tmp_path / "b", server), tmp_path / "b")) as proxy:
        (told,) = until(lambda: proxy.logs("fleet.store"), what="that it throws away")
        assert "used twice" in told["reason"]


def test_a_server_that_answers_nothing_holds_up_no_request(two: tuple[Proxy, Proxy], server: RedisServer) -> None:
    token = token_of(two[0])
    os.kill(server.process_id, signal.SIGSTOP)
    try:
        slowest = 0.0
        tries = [threading.Thread(target=confirm, args=(two[0], token)) for _ in range(4)]
        for each in tries:
            each.start()
        for _ in range(30):
            began = time.monotonic()
            assert ask(two[1])[0] == 200
            slowest = max(slowest, time.monotonic() - began)
            time.sleep(0.05)
        for each in tries:
            each.join()
        assert slowest < 1
        assert confirm(two[1], token) == 503
        until(lambda: machines(two[0]) == 0, what="that it is away")
    finally:
        os.kill(server.process_id, signal.SIGCONT)
    until(lambda: machines(two[0]) == 2, what="both again")


def test_machines_of_several_processes_count_as_one_over_restarts(
    llm: Llm, tmp_path: Path, server: RedisServer
) -> None:
    first, second = (settings_of(llm, tmp_path / name, server) for name in "ab")
    first["server"] |= {"workers": 2}
    with running(Proxy(second, tmp_path / "b")) as alone:
        many = Proxy(first, tmp_path / "a")
        try:
            until(lambda: machines(many) == machines(alone) == 2, what="both")
            streams = [Stream(many, llm), Stream(alone, llm)]
            refused(llm, alone, many, many)
            token = token_of(many)
            assert [confirm(alone, token), *(confirm(many, token) for _ in range(4))] == [200, 409, 409, 409, 409]
            token = token_of(alone)
            assert sorted(confirm(many, token) for _ in range(4)) == [200, 409, 409, 409]

            # another parent takes over: it is the same machine, and one of them speaks for it
            kept = token_of(many)
            many.popen.send_signal(signal.SIGUSR2)
            until(lambda: len(many.logs("listening")) == 2, what="the next", timeout_s=60)
            assert machines(many) == 2
            assert not any(is_let_in(many, llm) for _ in range(4))
            streams[0].leave()
            assert many.popen.wait(30) == 0
            until(lambda: machines(many) == machines(alone) == 2, what="both still")
            held = let_in(many, llm)
            refused(llm, alone)  # what the next one says counts
            assert [confirm(alone, kept), confirm(many, kept)] == [200, 409]
            assert many.logs("fleet.away") == alone.logs("fleet.away") == []
            held.leave()
            os.kill(int(many.logs("upgrade.begun")[-1]["pid"]), signal.SIGTERM)
            until(lambda: not many.left(), what="the end of all", timeout_s=20)
        finally:
            many.kill()
        streams[1].leave()


def test_confirmations_wait_until_those_before_have_ended_where_the_secret_is_another(
    llm: Llm, tmp_path: Path, server: RedisServer
) -> None:
    """As long as they serve, they speak for this machine, in a fleet that is no more."""
    settings = settings_of(llm, tmp_path, server)
    settings["server"] |= {"workers": 2}
    proxy = Proxy(settings, tmp_path)
    try:
        until(lambda: machines(proxy) == 1, what="the store")
        stream = Stream(proxy, llm)
        assert confirm(proxy, token_of(proxy)) == 200
        assert not proxy.logs("fleet.waits")
        (tmp_path / "secret").write_text(SECRET[::-1])
        proxy.popen.send_signal(signal.SIGUSR2)
        until(lambda: len(proxy.logs("listening")) == 2, what="the next", timeout_s=60)
        until(lambda: confirm(proxy, token_of(proxy)) == 503, what="those that wait")
        status, headers, told = ask(proxy, "transfer all", confirm=token_of(proxy))
        assert (status, "nobody can tell yet" in told["error"]["message"]) == (503, True)
        assert "retry-after" in headers
        assert ask(proxy)[0] == 200
        assert len(proxy.logs("fleet.waits")) == 1
        early = token_of(proxy)
        stream.leave()
        assert proxy.popen.wait(30) == 0
        until(lambda: machines(proxy) == 1, what="the store, with the other secret")
        status, headers, _ = ask(proxy, "transfer all", confirm=early)
        assert status == 409, "nobody knew then what would remember it"
        assert confirm(proxy, headers["x-checkstream-confirm"]) == 200
        os.kill(int(proxy.logs("upgrade.begun")[-1]["pid"]), signal.SIGTERM)
        until(lambda: not proxy.left(), what="the end of all", timeout_s=20)
    finally:
        proxy.kill()
