from __future__ import annotations

import secrets
from pathlib import Path

import pytest

from checkstream.config import FleetSettings, JobsSettings, WebhookSettings, read_config, warnings
from checkstream.config.parts import Secret
from checkstream.errors import ConfigError

GOOD = """
upstreams: {local: {url: http://127.0.0.1:8000}}
routes:
  - name: chat
    match: {path: /v1/chat/completions}
    upstream: local
    policies: ["builtin:default"]
    grounding:
      sample: 0.25
      profiles: [watchdog]
      high: 60
      on_high: [metric, webhook, marker]
      webhook: {url: "https://hooks.example/guard", secret: {env: HOOK}}
jobs: {store: "sqlite:var/j.db", full: sample, attempts: 7}
"""


def test_the_sections_are_read_and_the_file_is_beside_the_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOK", "whsec_x")
    config = read_config("c.yaml", GOOD, Path("/srv"))
    grounding = config.routes[0].grounding
    assert grounding is not None
    assert (grounding.sample, grounding.profiles, grounding.high) == (0.25, ("watchdog",), 60)
    assert config.jobs.file == "/srv/var/j.db"
    assert (config.jobs.full, config.jobs.attempts) == ("sample", 7)


def test_a_webhooks_secret_that_is_not_there_is_told_with_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOOK", raising=False)
    with pytest.raises(ConfigError) as raised:
        read_config("c.yaml", GOOD, Path("/srv"))
    (fault,) = raised.value.faults
    assert "`HOOK` is not set" in fault.reason
    assert fault.line == 13


def test_a_redis_store_is_no_file() -> None:
    assert JobsSettings(store="redis://127.0.0.1:6379/0").file is None
    assert JobsSettings(store="rediss://h/0", password=Secret(env="X")).file is None


@pytest.mark.parametrize(
    "url",
    [
        "",
        "hooks.example",
        "ftp://hooks.example",
        "http://hooks.example/",
        "http://169.254.169.254/latest",
        "http://127.0.0.1.evil.example/",
        "https://u:p@hooks.example",
        "https://hooks.example/#x",
        "https://hooks.example:0/",
        "https://hooks.example/a b",
        "https://hooks.example/\n",
        "https://[::1",
    ],
)
def test_a_webhook_that_could_be_read_or_changed_on_its_way_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"webhook|encrypted|password"):
        WebhookSettings(url=url, secret=Secret(env="X"))


@pytest.mark.parametrize(
    ("store", "said"),
    [
        ("", "is no store"),
        ("redis", "is no store"),
        ("redis://", "is no store"),
        ("redis:///0", "is no store"),
        ("redis://h:0/0", "is no store"),
        ("redis://h:99999/0", "is no store"),
        ("redis://[::1/0", "is no store"),
        ("redis://h/0?ssl_cert_reqs=none", "is no store"),
        ("redis://h/0#x", "is no store"),
        ("unix:///run/redis.sock", "is no store"),
        ("http://h", "is no store"),
        ("sqlite:var/fleet.db", "a file is of one machine"),
        ("redis://:secret@h/0", "holds a password"),
        ("rediss://user:secret@h/0", "holds a password"),
        ("rediss://user:secret@h:0/x", "holds a password"),
        ("valkey://user:secret@h/0", "holds a password"),
    ],
)
def test_machines_meet_at_a_redis_server_and_nowhere_else(store: str, said: str) -> None:
    with pytest.raises(ValueError, match=said) as raised:
        FleetSettings(store=store, secret=Secret(env="X"))
    if "holds a password" in said:
        assert "secret@" not in str(raised.value)


@pytest.mark.parametrize("store", ["redis://h", "rediss://h:6380/3", "redis://user@[::1]:6379/0"])
def test_a_redis_server_has_an_address_a_user_and_a_number(store: str) -> None:
    assert FleetSettings(store=store, secret=Secret(env="X")).store == store


def test_a_fleet_without_its_secrets_is_told_with_the_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOK", "whsec_x")
    monkeypatch.delenv("FLEET", raising=False)

    def faults(fleet: str) -> list[str]:
        with pytest.raises(ConfigError) as raised:
            read_config("c.yaml", GOOD + f"fleet: {fleet}\n", Path("/srv"))
        assert {fault.line for fault in raised.value.faults} == {15}
        return [fault.reason for fault in raised.value.faults]

    assert "fleet.secret: missing" in faults('{store: "redis://h"}')[0]
    assert "fleet.store: missing" in faults("{secret: {env: FLEET}}")[0]
    assert "`FLEET` is not set" in faults('{store: "redis://h", secret: {env: FLEET}}')[0]
    assert "fleet.stoer: not known" in faults('{stoer: "redis://h", secret: {env: FLEET}}')[1]
    assert "is no store" in faults("{store: 7s, secret: {env: FLEET}}")[0]
    for wrong in ("7", "[]", "yes", '{store: ["redis://h"], secret: {env: FLEET}}', '{store: "redis://h", secret: x}'):
        assert faults(wrong)
    monkeypatch.setenv("FLEET", secrets.token_hex(32))
    config = read_config("c.yaml", GOOD + 'fleet: {store: "redis://h", secret: {env: FLEET}}\n', Path("/srv"))
    assert config.fleet == FleetSettings(store="redis://h", secret=Secret(env="FLEET"))


def test_what_each_machine_of_a_fleet_keeps_by_itself_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOOK", "KEY"):
        monkeypatch.setenv(name, secrets.token_hex(32))

    def alone(more: str = "") -> list[str]:
        fleet = 'fleet: {store: "redis://h", secret: {env: KEY}}\n'
        found = warnings(read_config("c.yaml", GOOD + fleet + more, Path("/srv")))
        return [warning.split("`")[1] for warning in found if "by each machine alone" in warning]

    assert alone() == ["conversations"]
    assert alone("conversations: null\npseudonyms: {secret: {env: KEY}}\ntools: {secret: {env: KEY}}\n") == [
        "pseudonyms",
        "tools",
    ]
    assert alone('conversations: {store: "rediss://h", secret: {env: KEY}}\n') == []


@pytest.mark.parametrize("url", ["https://hooks.example/a?b=c", "http://127.0.0.1:9/x", "http://[::1]:9/x"])
def test_https_and_this_machine_are_fine(url: str) -> None:
    assert WebhookSettings(url=url, secret=Secret(env="X")).url == url
