"""A third party's benchmark of streamed answers: what the caller said comes back, and what nobody said stays (G38).

Its other end echoes the prompt as it has got it, then says values that stood in no prompt, in text and in a field of
its own, plain and percent-encoded, whole and cut at every place. By hand, with another seed:

    .venv-sdks/bin/pii-leak-benchmark-v2 --out FOLDER --only checkstream --seed SEED --upstream-port 8799
        --gateway-url http://127.0.0.1:8080/v1/chat/completions --exhaustive-splits --partial-emission

before a proxy with `checkstream serve --upstream http://127.0.0.1:8799 --policy builtin:pseudonyms`.
"""

from __future__ import annotations

import json
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.harness import ROOT, Proxy, config, running
from tests.e2e.sdks.driver import ENVIRONMENT

COMMAND = ENVIRONMENT / "bin" / "pii-leak-benchmark-v2"
FIRST = COMMAND.with_name("pii-leak-benchmark")


def measured(folder: Path, seed: str, policies: list[str], *oracle: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Run it; return its row, and what it says of values that left in part."""
    if not COMMAND.exists():
        pytest.skip("needs the benchmark: `make .venv-sdks/stamp`")
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    with running(Proxy(config(f"http://127.0.0.1:{port}", folder, policies), folder)) as proxy:
        asked = [str(COMMAND), "--out", str(folder), "--json-out", str(folder / "rows.json"), "--seed", seed]
        asked += [
            "--gateway-url",
            f"{proxy.url}/v1/chat/completions",
            "--upstream-port",
            str(port),
            "--only",
            "checkstream",
        ]
        done = subprocess.run([*asked, "--partial-emission", *oracle], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (row,) = json.loads((folder / "rows.json").read_text())["rows"]
    parts = json.loads((folder / "checkstream.partial-emission.json").read_text())
    return row, parts["metrics"]


def assert_perfect(row: dict[str, Any], parts: dict[str, Any]) -> None:
    assert (row["fidelity_rate"], row["leak_single_chunk"], row["leak_adversarial"]) == (1.0, 0.0, 0.0)
    assert (row["outcome"], row["cases_applicable"], row["request_path_leak"]) == ("pass", row["cases_attempted"], [])
    assert (parts["partial_emission_rate"]["overall"], parts["cases_partial_emission"]) == (0.0, 0)


def with_surrogates(folder: Path) -> list[str]:
    """Return the pack with values that look like values in place of labels."""
    pack = (ROOT / "policies" / "pseudonyms" / "policy.yaml").read_text()
    assert pack.count("type: pseudonymise") == 1
    (folder / "surrogates.yaml").write_text(pack.replace("type: pseudonymise", "type: pseudonymise, style: surrogate"))
    return ["surrogates.yaml"]


@pytest.mark.parametrize("seed", ["c0ffee"])
def test_g38_all_comes_back_and_nothing_leaks(tmp_path: Path, seed: str) -> None:
    assert_perfect(*measured(tmp_path, seed, ["builtin:pseudonyms"]))


@pytest.mark.nightly
@pytest.mark.parametrize("seed", ["0badc0de"])
def test_g38_surrogates_come_back_and_nothing_leaks(tmp_path: Path, seed: str) -> None:
    assert_perfect(*measured(tmp_path, seed, with_surrogates(tmp_path)))


@pytest.mark.nightly
@pytest.mark.parametrize("seed", [f"{number:08x}" for number in range(7, 2**32, 2**29)])
def test_g38_all_comes_back_and_nothing_leaks_cut_anywhere(tmp_path: Path, seed: str) -> None:
    policies = ["builtin:default", "builtin:pseudonyms"]
    assert_perfect(*measured(tmp_path, seed, policies, "--oracle", "exhaustive-2-part"))


@pytest.mark.nightly
@pytest.mark.parametrize("seed", [f"{number:08x}" for number in range(7, 2**32, 2**30)])
def test_g38_surrogates_come_back_and_nothing_leaks_cut_anywhere(tmp_path: Path, seed: str) -> None:
    assert_perfect(*measured(tmp_path, seed, with_surrogates(tmp_path), "--oracle", "exhaustive-2-part"))


@pytest.mark.nightly
def test_g38_the_first_version_of_the_benchmark_passes_too(tmp_path: Path) -> None:
    """What reaches the model server has none of the caller's values, in any encoding; the answer has them all."""
    if not FIRST.exists():
        pytest.skip("needs the benchmark: `make .venv-sdks/stamp`")
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    with running(Proxy(config(f"http://127.0.0.1:{port}", tmp_path, ["builtin:pseudonyms"]), tmp_path)) as proxy:
        asked = [str(FIRST), "--target-base-url", f"{proxy.url}/v1", "--capture-port", str(port)]
        asked += ["--json-out", str(tmp_path / "report.json"), "--redaction-claimed", "claimed", "--redaction-enabled"]
        asked += ["--redaction-claim-citation", "https://example.org/", "--redaction-config-reference", "pseudonyms"]
        done = subprocess.run(asked, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    checks = json.loads((tmp_path / "report.json").read_text())["checks"]
    assert checks.keys() >= {"configured_upstream_boundary", "response_fidelity", "fragmentation_safety"}
    assert all(check["passed"] for check in checks.values())
