"""What the console of several processes is told: the sums of workers, those that have ended too, and nobody else's."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from checkstream.console.totals import NAMES, keyed
from checkstream.errors import NotReady
from checkstream.processes.whole import Whole
from checkstream.telemetry.metrics import Metrics
from checkstream.telemetry.totals import Figures, figures, lasting
from tests.console_facts import policies

ASKED = "checkstream_requests_total"


def counted(requests: int) -> Figures:
    metrics = Metrics()
    metrics.requests.of("chat", "200").inc(requests)
    metrics.tokens.of("chat", "m", "out").inc(requests)
    metrics.audit_entries.inc(requests)
    return figures(metrics)


def worker(requests: int, **more: Any) -> Any:
    told = counted(requests)
    return SimpleNamespace(figures=told, left_behind=lasting(told), ready=None, serves=False, **more)


async def requests(whole: Whole) -> float:
    totals = await whole.totals()
    assert {family.name for family in totals} <= {name.removesuffix("_total") for name in NAMES}
    return sum(value for (name, _), value in keyed(totals).items() if name == ASKED)


async def test_workers_are_summed_also_when_they_have_ended_and_an_elder_parent_is_not() -> None:
    whole = Whole(lambda: None)
    assert await requests(whole) == 0
    one, other = worker(3), worker(4)
    whole.children += [one, other]
    assert await requests(whole) == 7
    whole.bury(one)
    assert await requests(whole) == 7
    whole.inherit(SimpleNamespace(figures=counted(1000)))  # type: ignore[arg-type]
    assert await requests(whole) == 7


async def test_the_policies_are_those_of_a_worker_that_serves() -> None:
    whole = Whole(lambda: None)
    whole.children.append(worker(0))
    with pytest.raises(NotReady, match="look again"):
        await whole.policies()
    assert whole.listen == ""

    async def ask(what: str) -> bytes:
        assert what == "policies"
        return msgspec.msgpack.encode(policies())

    serving = worker(0, ask=ask)
    serving.serves, serving.ready = True, SimpleNamespace(introduction={"listen": "127.0.0.1:1"})
    whole.children.append(serving)
    assert await whole.policies() == policies()
    assert whole.listen == "127.0.0.1:1"
