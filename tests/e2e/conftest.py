from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.browsing import browser  # noqa: F401 - a fixture
from tests.e2e.harness import Llm, Proxy, config, running

POLICY = """
pack: {name: e2e, version: 1.0.0}
policies:
  - name: redact_personal_data
    id: PII-001
    stage: [midstream]
    entities: [EMAIL, CREDIT_CARD]
    actions: [{type: redact}]
  - name: stop_on_threats
    id: STOP-001
    stage: [midstream]
    patterns: [{name: threat, regex: '(?i)launch the missiles'}]
    actions: [{type: stop, message: "[stopped by policy]"}]
  - name: refuse_injection
    id: INJ-001
    stage: [ingress]
    phrases: [ignore all previous instructions]
    actions: [{type: reject, message: this prompt was refused}]
"""


LONGEST_S = 90
"""A test that takes longer hangs: it fails, and its processes are stopped."""
LONGEST_NIGHTLY_S = 900


@pytest.fixture(autouse=True)
def _no_hang(request: pytest.FixtureRequest) -> Iterator[None]:
    longest_s = LONGEST_S if request.node.get_closest_marker("nightly") is None else LONGEST_NIGHTLY_S

    def hang(_number: int, _frame: object) -> None:
        raise TimeoutError(f"the test hangs: not done after {longest_s} s")

    before = signal.signal(signal.SIGALRM, hang)
    signal.alarm(longest_s)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="session")
def llm() -> Iterator[Llm]:
    with running(Llm()) as server:
        yield server


@pytest.fixture(scope="session")
def proxy(llm: Llm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    """One proxy for all tests that leave it as it is."""
    folder = tmp_path_factory.mktemp("proxy")
    (folder / "policy.yaml").write_text(POLICY)
    with running(Proxy(config(llm.url, folder, ["policy.yaml"]), folder)) as server:
        yield server


@pytest.fixture
def start(llm: Llm, tmp_path: Path) -> Iterator[Callable[..., Proxy]]:
    """Start a proxy of the test's own: `start(policy=..., server={...}, upstream={...}, chat_only=True, **route)`."""
    started: list[Proxy] = []
    with ExitStack() as stack:

        def begin(policy: str = POLICY, *, server: dict[str, Any] | None = None, **route: Any) -> Proxy:
            (tmp_path / "policy.yaml").write_text(policy)
            settings = config(llm.url, tmp_path, ["policy.yaml"], **route)
            settings["server"] |= server or {}
            started.append(stack.enter_context(running(Proxy(settings, tmp_path))))
            return started[-1]

        yield begin
        for one in started:
            sys.stdout.write(one.text)  # shown with a test that failed
