"""The tests' own server: a start that fails says so, and leaves nothing behind that fails another test."""

from __future__ import annotations

import gc
import sys
from pathlib import Path

import pytest

from tests.redis_server import RedisServer, server_program


@pytest.mark.parametrize("program", ["/nowhere/redis-server", "/bin/true"])
def test_a_server_that_does_not_start_leaves_no_folder_and_no_process(
    program: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CHECKSTREAM_REDIS_SERVER", program)
    monkeypatch.setattr("tests.redis_server.tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("tests.redis_server.os.access", lambda *_: False)
    server = RedisServer()
    with pytest.raises((OSError, AssertionError), match=program), server:
        pass
    del server
    gc.collect()  # what was left would be told here, as a warning that fails
    assert list(tmp_path.iterdir()) == []


def test_it_comes_with_the_test_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CHECKSTREAM_REDIS_SERVER", raising=False)
    monkeypatch.setenv("PATH", "")
    with RedisServer():
        assert Path(server_program()).is_relative_to(sys.prefix)
