from __future__ import annotations

from pathlib import Path

import pytest

from checkstream.config import JobsSettings, WebhookSettings, read_config
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


@pytest.mark.parametrize("url", ["https://hooks.example/a?b=c", "http://127.0.0.1:9/x", "http://[::1]:9/x"])
def test_https_and_this_machine_are_fine(url: str) -> None:
    assert WebhookSettings(url=url, secret=Secret(env="X")).url == url
