"""`checkstream gate` as a CI runs it: the command, its exit codes and files, and the steps of both templates."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import yaml
from aiohttp.test_utils import TestServer

from checkstream.app.evidence import evidence_embedder
from tests.elastic.fake import FakeElastic
from tests.gate_models import fill, serving

ROOT = Path(__file__).resolve().parents[2]
RIGHT = "Goods can be returned within 30 days of delivery. Refunds are paid within 5 working days."
WRONG = "Goods can be returned within 90 days of delivery. Refunds are paid within 60 working days."


def config(url: str, prompts: int) -> str:
    target = {"provider": "openai", "model_id": "target", "url": url}
    thresholds = {"deploy_threshold": 0.1, "warn_threshold": 0.25}
    evaluation = {"prompt_library": "prompts.txt", "num_prompts": prompts}
    return json.dumps(
        {
            "use_case": "support",
            "risk_tolerance": thresholds,
            "evaluation": evaluation,
            "model": target,
            "evidence": {"store": "sqlite:evidence.db"},
        }
    )


async def folder(path: Path, url: str, prompts: int = 4) -> None:
    await fill(str(path / "evidence.db"), evidence_embedder())
    (path / ".llm-reliability.yaml").write_text(config(url, prompts))
    (path / "prompts.txt").write_text("".join(f"question {number}?\n" for number in range(prompts)))


async def command(path: Path, *arguments: str, **env: str) -> tuple[int, str, str]:
    """Run `checkstream gate` in a folder and return its exit code, stdout and stderr."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "checkstream", "gate", *arguments),
        cwd=path,
        env={**os.environ, "PYTHONPATH": str(ROOT), **env},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    return process.returncode or 0, out.decode(), err.decode()


def saying(wrong_of_ten: int) -> Any:
    def say(_model: str, _system: str, question: str) -> str:
        number = int(question.rstrip("?").split()[-1])
        return WRONG if number % 10 < wrong_of_ten else RIGHT

    return say


@pytest.mark.parametrize(("wrong", "decision", "code"), [(0, "deploy", 0), (2, "warn", 0), (10, "block", 1)])
async def test_the_exit_code_and_every_report_say_the_decision(
    tmp_path: Path, wrong: int, decision: str, code: int
) -> None:
    async with serving(saying(wrong)) as url:
        await folder(tmp_path, url, prompts=30)
        found, out, err = await command(tmp_path, "--json", "--reports", "reports", GITHUB_ACTIONS="true")
    assert found == code, err
    report = json.loads(out)
    assert (report["decision"], report["total_claims"]) == (decision, 60)
    assert json.loads((tmp_path / "reports" / "report.json").read_bytes()) == report
    assert f" {decision}" in (tmp_path / "reports" / "report.md").read_text().splitlines()[0]
    assert ET.fromstring((tmp_path / "reports" / "junit.xml").read_bytes()).get("tests") == "61"
    assert f'class="decision {decision}"' in (tmp_path / "reports" / "report.html").read_text()
    annotation = {"deploy": "", "warn": "::warning", "block": "::error"}[decision]
    assert err.startswith(annotation)
    assert ("::" in err) is (decision != "deploy")


async def test_on_a_terminal_equal_claims_are_told_once_and_no_text_of_a_model_is_a_command(tmp_path: Path) -> None:
    hostile = "Goods can be returned within 90 days. ##[add-mask]secret is a command of 12 words."
    async with serving(lambda _model, _system, _question: hostile) as url:
        await folder(tmp_path, url, prompts=10)
        code, out, _ = await command(tmp_path, GITHUB_ACTIONS="true")
        _, plain, _ = await command(tmp_path, GITHUB_ACTIONS="")
    assert code == 1
    assert out.count("Goods can be returned within 90 days (x10)") == 1
    lines = out.splitlines()
    stopped = next(at for at, line in enumerate(lines) if line.startswith("::stop-commands::"))
    started = lines.index(f"::{lines[stopped].removeprefix('::stop-commands::')}::")
    assert [at for at, line in enumerate(lines) if "##[" in line]
    assert all(stopped < at < started for at, line in enumerate(lines) if "##[" in line)
    assert "::" not in plain


async def test_what_can_not_be_evaluated_ends_with_2_and_says_why(tmp_path: Path) -> None:
    code, out, err = await command(tmp_path)
    assert (code, out) == (2, "")
    assert "`.llm-reliability.yaml` can't be read" in err
    await folder(tmp_path, "http://127.0.0.1:9")
    code, out, err = await command(tmp_path, "--json")
    assert (code, out) == (2, "")
    assert "step `responses` failed at item `p" in err
    (tmp_path / ".llm-reliability.yaml").write_text("{")
    assert (await command(tmp_path))[0] == 2


async def test_runs_are_found_again_by_what_was_said(tmp_path: Path) -> None:
    async with serving(saying(10)) as url:
        await folder(tmp_path, url)
        await command(tmp_path)
        (tmp_path / ".llm-reliability.yaml").write_text(config(url, 4).replace('"target"', '"other"', 1))
        await command(tmp_path)
    _, out, _ = await command(tmp_path, "search", "refunds", "60", "--kind", "response", "--json")
    assert {found["text"] for found in json.loads(out)} == {WRONG}
    assert (await command(tmp_path, "search", "refunds", "--until", "2020-01-01"))[1] == ""
    _, listed, _ = await command(tmp_path, "runs", "--json")
    first, second = (run["run_id"] for run in json.loads(listed))
    _, compared, _ = await command(tmp_path, "compare", first, second, "--json")
    assert json.loads(compared)["difference"] == 0
    _, trend, _ = await command(tmp_path, "trend", "--json")
    assert len(json.loads(trend)[0]["points"]) == 2
    code, _, err = await command(tmp_path, "compare", first, "none")
    assert (code, "there is no decided run `none`" in err) == (2, True)
    assert (await command(tmp_path, "runs", "--history", "none.db"))[0] == 2


async def test_a_history_of_many_machines_is_written_and_told(tmp_path: Path) -> None:
    async with TestServer(FakeElastic().app()) as elastic, serving(saying(10)) as url:
        history = f"http://127.0.0.1:{elastic.port}/gate"
        shared = {**json.loads(config(url, 4)), "history": history}
        await folder(tmp_path, url)
        (tmp_path / ".llm-reliability.yaml").write_text(json.dumps(shared))
        await command(tmp_path, "--reports", "reports")
        _, listed, _ = await command(tmp_path, "runs", "--history", history, "--json")
        _, out, _ = await command(tmp_path, "search", "refunds", "60", "--kind", "response", "--history", history)
    assert [run["decision"] for run in json.loads(listed)] == ["block"]
    assert "Risk over time" in (tmp_path / "reports" / "report.html").read_text()
    assert WRONG in out
    code, _, err = await command(tmp_path, "--history", "https://h")
    assert (code, "`https://h` is no file" in err) == (2, True)


def shim(path: Path) -> str:
    """Put a `checkstream` on the PATH that is this checkout's."""
    tool = path / "bin" / "checkstream"
    tool.parent.mkdir()
    tool.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -m checkstream "$@"\n')
    tool.chmod(0o755)
    return f"{tool.parent}:{os.environ['PATH']}"


async def script(text: str, path: Path, **env: str) -> int:
    process = await asyncio.create_subprocess_exec(
        "bash", "-c", text, cwd=path, env={**os.environ, **env},
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    return await process.wait()


@pytest.mark.parametrize(("wrong", "decision", "code"), [(0, "deploy", 0), (10, "block", 1), (-1, "error", 2)])
async def test_the_github_action_fails_the_job_exactly_when_it_must(
    tmp_path: Path, wrong: int, decision: str, code: int
) -> None:
    action = yaml.safe_load((ROOT / "deploy" / "github-action" / "action.yml").read_text())
    step = next(each for each in action["runs"]["steps"] if each.get("id") == "gate")
    env = {"PATH": shim(tmp_path), "CONFIG": ".llm-reliability.yaml", "REPORTS": "reports"}
    env |= {"GITHUB_OUTPUT": str(tmp_path / "output"), "GITHUB_STEP_SUMMARY": str(tmp_path / "summary")}
    async with serving(saying(wrong)) as url:
        await folder(tmp_path, "http://127.0.0.1:9" if wrong < 0 else url)
        assert await script(step["run"], tmp_path, **env) == code
    assert f"decision={decision}\n" in (tmp_path / "output").read_text()
    assert (tmp_path / "summary").exists() is (wrong >= 0)


@pytest.mark.parametrize(("tool", "code"), [("exit 0", 2), ("echo '{}'", 2), ('echo \'{"decision": "maybe"}\'', 2)])
async def test_the_github_action_never_passes_what_it_can_not_read(tmp_path: Path, tool: str, code: int) -> None:
    action = yaml.safe_load((ROOT / "deploy" / "github-action" / "action.yml").read_text())
    step = next(each for each in action["runs"]["steps"] if each.get("id") == "gate")
    (tmp_path / "checkstream").write_text(f"#!/bin/sh\n{tool}\n")
    (tmp_path / "checkstream").chmod(0o755)
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "CONFIG": "x", "REPORTS": "r"}
    env |= {"GITHUB_OUTPUT": str(tmp_path / "output"), "GITHUB_STEP_SUMMARY": str(tmp_path / "summary")}
    assert await script(step["run"], tmp_path, **env) == code


@pytest.mark.parametrize(("wrong", "passes"), [(0, True), (10, False), (-1, False)])
async def test_the_gitlab_job_fails_exactly_when_it_must(tmp_path: Path, wrong: int, *, passes: bool) -> None:
    job = yaml.safe_load((ROOT / "deploy" / "gitlab" / "llm-reliability.gitlab-ci.yml").read_text())["llm-reliability"]
    env = {**job["variables"], "LLM_RELIABILITY_INSTALL": "", "PATH": shim(tmp_path)}
    async with serving(saying(wrong)) as url:
        await folder(tmp_path, "http://127.0.0.1:9" if wrong < 0 else url)
        # A runner stops at the first command that fails.
        assert (await script("set -eo pipefail\n" + "\n".join(job["script"]), tmp_path, **env) == 0) is passes
