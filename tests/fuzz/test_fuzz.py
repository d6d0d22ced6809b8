"""Runs every target on its seeds and on mutations of them: a few seconds with a fixed seed, minutes in `make nightly`.

An input that breaks a promise is written beside the log; put it into `corpus/<target>/` with the fix, and it is run
as it is from then on.
"""

from __future__ import annotations

import os
import random
import secrets
import tempfile
import time
from pathlib import Path

import pytest

from tests.fuzz.mutate import Mutator
from tests.fuzz.targets import TARGETS

CORPUS = Path(__file__).parent / "corpus"
SLOW_S = 5.0
"""More processor time than this for one small input means that somebody can make the process stand still."""
INPUTS = {"models": 100, "policy": 150, "transcript": 50, "audit": 200, "cuts": 200, "exchange": 500}
"""Inputs of the quick run where one takes long; the others get `MANY`."""
MANY = 400
NIGHTLY_S = float(os.environ.get("CHECKSTREAM_FUZZ_S", "60"))
"""Length of the long run, for each target."""


def seeds(target: str) -> list[bytes]:
    return [path.read_bytes() for path in sorted((CORPUS / target).iterdir())]


def feed(target: str, data: bytes, told: str) -> None:
    start = time.process_time()
    try:
        TARGETS[target](data)
        spent = time.process_time() - start
        assert spent < SLOW_S, f"took {spent:.1f} s of processor time"
    except BaseException as error:
        with tempfile.NamedTemporaryFile(prefix=f"{target}-", suffix=".crash", delete=False) as file:
            file.write(data)
        raise AssertionError(f"{told}: {type(error).__name__}: {error}; the input is in {file.name}") from error


def test_every_target_has_seeds_and_no_folder_is_left_over() -> None:
    assert {path.name for path in CORPUS.iterdir()} == set(TARGETS)
    assert all(seeds(target) for target in TARGETS)


@pytest.mark.parametrize("target", TARGETS)
def test_g19_seeds_and_mutations(target: str) -> None:
    corpus = seeds(target)
    for data in (*corpus, b"", b"\n", b"\0" * 9):
        feed(target, data, f"{target}, a seed")
    mutator = Mutator(target, corpus, random.Random(f"{target} 1"))
    for number in range(INPUTS.get(target, MANY)):
        feed(target, mutator.draw(), f"{target}, input {number}")


@pytest.mark.nightly
@pytest.mark.parametrize("target", TARGETS)
def test_for_minutes_with_another_seed_each_time(target: str) -> None:
    seed = os.environ.get("CHECKSTREAM_FUZZ_SEED") or secrets.token_hex(4)
    mutator = Mutator(target, seeds(target), random.Random(f"{target} {seed}"))
    end = time.monotonic() + NIGHTLY_S
    number = 0
    while time.monotonic() < end:
        feed(target, mutator.draw(), f"{target}, CHECKSTREAM_FUZZ_SEED={seed}, input {number}")
        number += 1
    print(f"{target}: {number} inputs, CHECKSTREAM_FUZZ_SEED={seed}")  # noqa: T201 - shown with -rP, and on failure
