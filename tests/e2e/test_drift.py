"""What texts look like that classifiers score, seen from outside: calm days, one of another kind, several processes."""

from __future__ import annotations

import base64
import itertools
import json
import random
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.harness import ROOT, Llm, Proxy, config, http, running

CHAT = "/v1/chat/completions"
PROMPTS = 510
"""A few more than the least of which there is a figure."""
WHO = ("my sister", "a new colleague", "the team", "our neighbour", "a friend of mine", "the school")
WHAT = (
    "a short letter about the garden party",
    "a list of books on the history of trains",
    "an email that thanks a customer for her patience",
    "a Python function that sorts orders by date",
    "a recipe for lentil soup with carrots",
    "a plan for two days in Vienna",
    "an explanation of how tides come about",
    "a summary of this meeting about the budget",
)
HOW = ("and keep it friendly", "in plain words", "with three examples", "as a table", "in about a hundred words")
ANSWER = (
    "The library in the old town opens at nine. Visitors leave their coats in the hall; children find picture books "
    "on the ground floor. In the afternoon a guide tells groups how the building was restored, and which rooms were "
    "once a mill. Whoever wants to read longer may borrow up to ten books for four weeks. "
)


def calm(number: int) -> Iterator[str]:
    chance = random.Random(number)
    combinations = [f"Write {what} for {who}, {how}." for what, who, how in itertools.product(WHAT, WHO, HOW)]
    chance.shuffle(combinations)
    return (f"{at}. {text}" for at, text in enumerate(itertools.cycle(combinations), 1))


def encoded(texts: Iterator[str]) -> Iterator[str]:
    return (base64.b64encode(text[:48].encode()).decode() for text in texts)


def asked(proxy: Proxy, texts: Sequence[str], model: str) -> None:
    """Ask about each text, on connections of their own, so that all workers get some."""

    def one(text: str) -> int:
        body = {"model": model, "messages": [{"role": "user", "content": text}]}
        return http("POST", proxy.url + CHAT, body, headers={"connection": "close"})[0]

    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(one, texts)) <= {200, 400}  # 400: refused as an injection


def watch(*arguments: str) -> tuple[int, dict[str, dict[str, Any]]]:
    ran = subprocess.run(
        [sys.executable, "-m", "checkstream", "models", "watch", "--json", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode in (0, 1), ran.stderr
    return ran.returncode, {f"{row['classifier']} {row['stage']}": row for row in json.loads(ran.stdout)}


@pytest.fixture
def llm() -> Iterator[Llm]:
    with running(Llm()) as llm:
        llm.put("short", SHORT)
        llm.put("calm", {"choices": [{"content": ANSWER * 24}]})
        code = base64.b64encode(ANSWER.encode() * 24).decode()
        llm.put("encoded", {"choices": [{"content": " ".join(textwrap.wrap(code, 6))}]})
        yield llm


@contextmanager
def serving(llm: Llm, folder: Path, policy: str, **server: Any) -> Iterator[Proxy]:
    """A proxy that has counted nothing yet."""
    folder.mkdir()
    (folder / "policy.yaml").write_text(PROMPTS_ALONE)
    settings = config(llm.url, folder, [policy.format(folder)], chat_only=True)
    settings["server"] |= server
    with running(Proxy(settings, folder)) as proxy:
        yield proxy


def first(texts: Iterator[str], number: int = PROMPTS) -> list[str]:
    return list(itertools.islice(texts, number))


SHORT = {"choices": [{"content": "Gladly."}]}
INJECTION = "injection.injection ingress"
TOXICITY = "safety.toxicity midstream"
PROMPTS_ALONE = """
pack: {name: prompts, version: 1.0.0}
policies:
  - name: injection
    id: INJ-1
    stage: [ingress]
    classifiers: [{name: injection.injection, threshold: 0.99}]
    actions: [{type: log_event}]
"""
OWN = "{}/policy.yaml"


@pytest.fixture(scope="module")
def monday(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, Any]]:
    """Metrics of a calm day, and what was said of its prompts."""
    folder = tmp_path_factory.mktemp("monday")
    with running(Llm()) as llm, serving(llm, folder / "proxy", OWN) as proxy:
        llm.put("short", SHORT)
        assert watch("--admin", proxy.admin_url) == (0, {})
        texts = first(calm(1))
        asked(proxy, texts[:50], "short")
        assert watch("--admin", proxy.admin_url)[1][INJECTION]["reason"] == "too few scores: 50 of 500"
        asked(proxy, texts, "short")  # fifty of them come again, and are counted once
        (folder / "monday.prom").write_bytes(http("GET", f"{proxy.admin_url}/metrics")[2])
        return str(folder / "monday.prom"), watch("--admin", proxy.admin_url)[1][INJECTION]


def test_texts_are_counted_once_and_held_against_those_that_were_shipped(monday: tuple[str, dict[str, Any]]) -> None:
    file, found = monday
    assert found["scores"] == PROMPTS
    assert found["verdict"] in ("steady", "moved", "changed")  # of a few sentences in many forms, not of a mixture
    assert watch("--metrics", file)[1][INJECTION] == found


def test_two_workers_are_held_against_a_day_as_one_and_are_steady(
    llm: Llm, tmp_path: Path, monday: tuple[str, dict[str, Any]]
) -> None:
    with serving(llm, tmp_path / "two", OWN, workers=2) as proxy:
        asked(proxy, first(calm(2)), "short")
        code, rows = watch("--admin", proxy.admin_url, "--against", monday[0])
        assert (code, rows[INJECTION]["verdict"], rows[INJECTION]["scores"]) == (0, "steady", PROMPTS)
        lines = http("GET", f"{proxy.admin_url}/metrics")[2].decode().splitlines()
        (gauge,) = (line for line in lines if line.startswith("checkstream_drift_psi{"))
        assert round(float(gauge.split()[-1]), 4) == watch("--admin", proxy.admin_url)[1][INJECTION]["psi"]
        told = (line for line in lines if line.startswith("checkstream_score_reference{") and 'le="+Inf"' in line)
        assert 1000 < float(next(told).split()[-1]) < 3000  # of one, not the sum of two


def test_encoded_prompts_have_changed(llm: Llm, tmp_path: Path, monday: tuple[str, dict[str, Any]]) -> None:
    with serving(llm, tmp_path / "encoded", OWN) as proxy:
        asked(proxy, first(encoded(calm(1))), "short")
        for against in ((), ("--against", monday[0])):
            code, rows = watch("--admin", proxy.admin_url, *against)
            assert (code, rows[INJECTION]["verdict"]) == (1, "changed")


@pytest.mark.parametrize(("model", "verdicts"), [("calm", {"steady", "moved", "changed"}), ("encoded", {"changed"})])
def test_windows_of_answers_are_counted_as_they_grow(llm: Llm, tmp_path: Path, model: str, verdicts: set[str]) -> None:
    with serving(llm, tmp_path / model, "builtin:default") as proxy:
        asked(proxy, first(calm(1), 12), model)
        _, rows = watch("--admin", proxy.admin_url)
        assert rows[TOXICITY]["scores"] >= 2000
        assert rows[TOXICITY]["verdict"] in verdicts
