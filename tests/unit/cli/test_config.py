from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from checkstream.cli import main


def test_a_sound_file_is_summed_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(
        "upstreams: {u: {url: http://h}}\n"
        'routes: [{name: c, match: {path: /v1/chat/completions}, upstream: u, policies: ["builtin:default"]}]\n'
    )
    assert main(["config", "check", str(file)]) == 0
    shown = capsys.readouterr()
    assert "1 route, default@" in shown.out
    assert "callers is none" in shown.err
    assert main(["config", "check", "--json", str(file)]) == 0
    assert json.loads(capsys.readouterr().out)["ok"] is True


def test_faults_of_files_and_of_policies_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "c.yaml"
    file.write_text("serve: {}\nroutes: 3\n")
    assert main(["config", "check", str(file)]) == 2
    assert f"{file}:1:1: serve: not known here; did you mean `server`?" in capsys.readouterr().err
    (tmp_path / "p.yaml").write_text("pack: 1\n")
    file.write_text(
        "upstreams: {u: {url: http://h}}\n"
        "routes: [{name: c, match: {path: /v1/chat/completions}, upstream: u, policies: [p.yaml]}]\n"
    )
    assert main(["config", "check", "--json", str(file)]) == 2
    assert json.loads(capsys.readouterr().out)["faults"][0]["file"].endswith("p.yaml")


def test_init_writes_what_check_takes_and_never_overwrites(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["config", "init", "--upstream", "http://h:8000"]) == 0
    assert "checkstream serve --config checkstream.yaml" in capsys.readouterr().out
    assert main(["config", "check", "checkstream.yaml"]) == 0
    (tmp_path / "checkstream.yaml").write_text("mine")
    assert main(["config", "init"]) == 2
    assert "`checkstream.yaml` is there already" in capsys.readouterr().err
    assert (tmp_path / "checkstream.yaml").read_text() == "mine"
    assert main(["config", "init", "other.yaml", "--upstream", "h:8000"]) == 2
    assert "write `http://h:8000`" in capsys.readouterr().err
    assert not (tmp_path / "other.yaml").exists()
    assert main(["config", "init", "nowhere/other.yaml"]) == 2
    assert main(["config", "init", "-"]) == 0
    assert 'url: "http://127.0.0.1:8000"' in capsys.readouterr().out
    (tmp_path / "gone.yaml").symlink_to(tmp_path / "aim.yaml")  # what a link names is not made through it
    assert main(["config", "init", "gone.yaml"]) == 2
    assert not (tmp_path / "aim.yaml").exists()


def test_the_schema_is_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "schema"]) == 0
    assert "Limits" in json.loads(capsys.readouterr().out)["$defs"]


@pytest.mark.parametrize("command", ["serve", "demo", "config", "policy", "replay", "audit"])
def test_every_command_has_help_with_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main([command, "--help"])
    assert caught.value.code == 0
    assert "checkstream " + command in capsys.readouterr().out.split("example", 1)[1]


def test_wrong_use_is_2(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # the audit log is begun before the listeners
    with pytest.raises(SystemExit) as caught:
        main(["serve"])
    assert caught.value.code == 2
    assert main(["serve", "--config", str(tmp_path / "none.yaml")]) == 2
    assert main(["serve", "--upstream", "127.0.0.1:8000"]) == 2
    assert "write `http://127.0.0.1:8000`" in capsys.readouterr().err
    assert main(["serve", "--upstream", "http://h", "--policy", "builtin:defalt"]) == 2
    assert "did you mean `builtin:default`?" in capsys.readouterr().err
    assert main(["serve", "--config", "c.yaml", "--policy", "p.yaml"]) == 2
    assert "name the policies under `routes` of `c.yaml`" in capsys.readouterr().err
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        assert main(["serve", "--upstream", "http://h", "--listen", "127.0.0.1:0", "--admin", address]) == 2
    said = capsys.readouterr().err
    assert f"can't listen on `{address}` (`admin`): address already in use" in said
    assert "`--admin`" in said
    assert main(["serve", "--upstream", "http://h", "--listen", "0.0.0.0:0"]) == 2
    assert "behind_gateway" in capsys.readouterr().err
