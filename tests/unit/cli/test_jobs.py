from __future__ import annotations

import json
from pathlib import Path

import pytest

from checkstream.cli import jobs, worker
from checkstream.cli.parser import Parser
from checkstream.errors import ConfigError, StoreFailed
from checkstream.jobs.terms import Failure, Finished, Result
from tests.jobs_store import SqliteStore, job


def run(*arguments: str) -> int:
    return jobs.run(Parser(prog="checkstream jobs", later=jobs.add_arguments).parse_args([*arguments]))


@pytest.fixture
def store(tmp_path: Path) -> SqliteStore:
    made = SqliteStore(tmp_path)
    queue = made.open()
    queue.put([job(n) for n in range(4)])
    one, two, three = queue.lease(3)
    queue.fail([Failure(lease=one, error="the judge\x1b[31m did not answer", retry_s=None)])
    queue.fail([Failure(lease=two, error="late", retry_s=30.0)])
    made_of = Result(stream="s2", route="chat", scorer="watchdog", version="1", risk=35, report=b'{"a":1}', at_ms=0)
    queue.done([Finished(lease=three, result=made_of)])
    made.close()
    return made


def test_list_shows_where_jobs_are_and_why_some_were_given_up(
    store: SqliteStore, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("list", "--store", f"sqlite:{store.path}") == 0
    out = capsys.readouterr().out
    assert "0 leased, 1 dead" in out
    assert "score:0" in out
    assert "the judge\\x1b[31m did not answer" in out
    assert "\x1b" not in out
    assert run("list", "--store", f"sqlite:{store.path}", "--json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["counts"]["dead"] == 1
    assert [(letter["id"], letter["whole"]) for letter in shown["dead"]] == [("score:0", True)]


def test_list_of_a_stream_shows_what_scorers_said(store: SqliteStore, capsys: pytest.CaptureFixture[str]) -> None:
    place = f"sqlite:{store.path}"
    assert run("list", "--store", place, "--stream", "s2") == 0
    assert 'watchdog@1  risk 35  {"a":1}' in capsys.readouterr().out
    assert run("list", "--store", place, "--stream", "s2", "--json") == 0
    assert json.loads(capsys.readouterr().out)["report"] == {"a": 1}
    assert run("list", "--store", place, "--stream", "s9") == 1


def test_retry_puts_dead_letters_back(store: SqliteStore, capsys: pytest.CaptureFixture[str]) -> None:
    place = f"sqlite:{store.path}"
    assert run("retry", "score:9", "--store", place) == 1
    assert run("retry", "score:0", "--store", place) == 0
    assert "1 job put back" in capsys.readouterr().out
    assert run("retry", "--all", "--store", place, "--json") == 1
    assert json.loads(capsys.readouterr().out) == {"retried": 0}


def test_wrong_use_says_what_is_right(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="give ids, or `--all`"):
        run("retry", "--store", "sqlite:x")
    with pytest.raises(ConfigError, match="give ids, or `--all`"):
        run("retry", "a", "--all", "--store", "sqlite:x")
    with pytest.raises(ConfigError, match="is no store"):
        run("list", "--store", "mysql://x")
    with pytest.raises(StoreFailed, match="there is no queue"):
        run("list", "--store", f"sqlite:{tmp_path}/typo.db")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(SystemExit):
        run("list")
    with pytest.raises(SystemExit):
        run("list", "--store", "sqlite:x", "--last", "0")


def test_a_worker_asks_for_a_configuration() -> None:
    parser = Parser(prog="checkstream worker", later=worker.add_arguments)
    with pytest.raises(SystemExit):
        parser.parse_args([])
    with pytest.raises(SystemExit):
        parser.parse_args(["--config", "x", "--metrics", "nowhere"])
