"""Jobs of the loop are done in slices: each in its turn, answers first, and no turn is used up by one."""

import asyncio
from collections.abc import Iterator

import pytest

from checkstream.scoring import slices as module
from checkstream.scoring.slices import Slices


def job(name: str, steps: int, done: list[str]) -> Iterator[None]:
    for _ in range(steps):
        done.append(name)
        yield


@pytest.fixture
def _no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every slice be over after a step."""
    monkeypatch.setattr(module, "SLICE_S", -1.0)


async def turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_a_short_job_is_done_at_once() -> None:
    done: list[str] = []
    Slices().add(job("a", 3, done), ingress=True)
    assert done == ["a"] * 3


@pytest.mark.usefixtures("_no_time")
async def test_a_turn_does_one_step_of_each_kind_when_its_time_is_up() -> None:
    done: list[str] = []
    slices = Slices()
    slices.add(job("long", 5, done), ingress=True)
    assert done == ["long"]
    await turns(1)
    assert done == ["long"] * 2
    slices.add(job("answer", 2, done), ingress=False)
    assert done == ["long", "long", "answer"]
    await turns(1)
    assert done == ["long", "long", "answer", "answer", "long"]
    await turns(9)
    assert (done.count("long"), done.count("answer")) == (5, 2)


@pytest.mark.usefixtures("_no_time")
async def test_prompts_take_turns_so_a_short_one_does_not_wait_for_a_long_one() -> None:
    done: list[str] = []
    slices = Slices()
    slices.add(job("long", 50, done), ingress=True)
    slices.add(job("short", 2, done), ingress=True)
    await turns(6)
    assert done.count("short") == 2
    assert done.count("long") < 7
    await turns(60)
    assert done.count("long") == 50


@pytest.mark.usefixtures("_no_time")
async def test_a_flood_of_answers_does_not_starve_a_prompt() -> None:
    done: list[str] = []
    slices = Slices()
    slices.add(job("prompt", 5, done), ingress=True)
    for _ in range(40):
        slices.add(job("answer", 9, done), ingress=False)
    await turns(8)
    assert done.count("prompt") == 5


@pytest.mark.usefixtures("_no_time")
async def test_nothing_is_done_after_the_end() -> None:
    done: list[str] = []
    slices = Slices()
    slices.add(job("a", 9, done), ingress=True)
    slices.close()
    await turns(3)
    assert done == ["a"]
