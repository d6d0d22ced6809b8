"""The image: what its file says, and that what it puts together serves without rights on a root of its own."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.deploy.tools import tool
from tests.e2e.harness import ROOT, Llm, Process, config, http

FILE = ROOT / "deploy" / "docker" / "Dockerfile"
USER = "65532:65532"


def instructions() -> list[tuple[str, str]]:
    """Return the instructions of the file, each with what follows it."""
    lines = [line for line in FILE.read_text("utf-8").splitlines() if not line.startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ")
    return [(each.split(None, 1)[0], each.split(None, 1)[1].strip()) for each in joined.splitlines() if each.strip()]


def _of(name: str) -> list[str]:
    return [rest for word, rest in instructions() if word == name]


def _command(text: str) -> list[str]:
    """Return a command in the form that needs no shell."""
    found: list[str] = json.loads(text.removeprefix("CMD").strip() if text.startswith("CMD") else text)
    return found


def test_the_image_has_no_shell_no_rights_and_nothing_that_is_not_pinned() -> None:
    build, final = FILE.read_text("utf-8").split("\nFROM ")[1:]
    assert re.search(r"^USER 65532:65532$", final, re.MULTILINE), "a number, so that a cluster sees that it isn't root"
    assert not re.search(r"^(RUN|ADD|SHELL) ", final, re.MULTILINE)
    assert "--require-hashes" in build
    assert "--only-binary=:all:" in build, "nothing is built, so that it is the same anywhere"
    for text in (*_of("ENTRYPOINT"), *_of("CMD"), _of("HEALTHCHECK")[0].partition("CMD")[2]):
        assert _command(text), "a list: there is no shell"


def _context() -> list[str]:
    """Return the paths at the top that `.dockerignore` lets through."""
    lines = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    return [line[1:] for line in lines if line.startswith("!")]


def test_what_is_copied_is_there_and_nothing_else_is_sent_to_the_engine() -> None:
    copied = [text.split()[0] for text in _of("COPY") if not text.startswith("--from")]
    assert sorted(copied) == sorted(_context())
    assert (ROOT / ".dockerignore").read_text("utf-8").splitlines()[1] == "*"
    for path in copied:
        assert (ROOT / path).exists()


def test_what_is_in_the_image_is_pinned_as_it_is_tested() -> None:
    def pins(name: str) -> dict[str, str]:
        text = (ROOT / name).read_text("utf-8")
        return dict(re.findall(r"^([A-Za-z0-9_.-]+)==(\S+)", text, re.MULTILINE))

    image, proxy, tested = (pins(f"requirements{kind}.lock") for kind in ("-image", "", "-test"))
    assert set(proxy) < set(image) <= set(tested)
    assert {"redis", "psycopg", "pgvector", "tuf"} <= set(image)
    assert {name: tested[name] for name in image} == image


class InItsRoot(Process):
    """A command as the image runs it."""

    def __init__(self, folder: Path, command: Sequence[str]) -> None:
        root = folder / "root"
        root.mkdir()
        lib, home = sysconfig.get_path("purelib"), sys.base_prefix
        folder_of = [str(ROOT / "tests" / "deploy" / "clean_root.sh"), str(root), home, lib, str(ROOT)]
        python = f"/python/bin/python{sys.version_info.major}.{sys.version_info.minor}"
        given = [python if each == "/usr/bin/python3" else each for each in command]
        unshare = ["unshare", "--mount", "--propagation", "private", "sh"]
        super().__init__(*folder_of, str(folder / "var"), USER, *given, command=unshare)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("only root can make a root")
    if subprocess.run(["unshare", "--mount", "true"], check=False, capture_output=True).returncode:
        pytest.skip("this machine makes no mount namespaces")
    (tmp_path / "var").mkdir()
    return tmp_path


def _serve() -> list[str]:
    return [
        *_command(_of("ENTRYPOINT")[0]),
        "serve",
        "--config",
        "/var/lib/checkstream/checkstream.yaml",
        "--log",
        "json",
    ]


def test_it_serves_without_rights_where_only_its_folder_can_be_written(llm: Llm, folder: Path) -> None:
    settings = config(llm.url, Path("/var/lib/checkstream"), ["builtin:default"])
    settings["server"] = {"listen": "127.0.0.1:0", "admin": "127.0.0.1:0", "workers": 2}
    (folder / "var" / "checkstream.yaml").write_text(json.dumps(settings), "utf-8")
    shutil.chown(folder / "var", 65532, 65532)
    served = InItsRoot(folder, _serve())
    try:
        row = served.said(lambda row: row.get("event") == "listening")
        body = {"model": "clean", "messages": [{"role": "user", "content": "hello"}]}
        assert http("POST", f"http://{row['listen']}/v1/chat/completions", body)[0] == 200
        assert http("GET", f"http://{row['admin']}/readyz")[0] == 200
        healthy = [each.replace("9090", row["admin"].rpartition(":")[2]) for each in _health()]
        assert subprocess.run(healthy, check=False).returncode == 0
        assert set(_owners(served)) == {"65532"}
    finally:
        code = served.stop()
    assert code == 0, served.text
    assert "models.not_shared" not in served.text, "TMPDIR can't be written to"
    assert subprocess.run(healthy, check=False, capture_output=True).returncode != 0
    assert (folder / "var" / "audit").is_dir()


def _health() -> list[str]:
    command = _command(_of("HEALTHCHECK")[0].partition("CMD")[2])
    return [sys.executable, *command[1:]]


def _owners(served: Process) -> list[str]:
    pids = [
        served.popen.pid,
        *map(int, Path(f"/proc/{served.popen.pid}/task/{served.popen.pid}/children").read_text().split()),
    ]
    status = [Path(f"/proc/{pid}/status").read_text() for pid in pids]
    return [line.split()[1] for text in status for line in text.splitlines() if line.startswith("Uid:")]


def test_a_folder_that_can_not_be_written_is_told_at_the_start(llm: Llm, folder: Path) -> None:
    settings = config(llm.url, Path("/var/lib/checkstream"), ["builtin:gdpr-pii"])
    (folder / "var" / "checkstream.yaml").write_text(json.dumps(settings), "utf-8")
    refused = InItsRoot(folder, _serve())
    assert refused.popen.wait(30) == 2
    refused.kill()
    assert (
        "`/var/lib/checkstream/audit.key` can't be used: Permission denied; user 65532 must be able to write"
        in refused.text
    )
    assert "Traceback" not in refused.text


@pytest.mark.nightly
def test_an_engine_builds_the_same_image_twice_and_it_is_small(tmp_path: Path) -> None:
    """The bases are made of Debian's packages, as those of the file are: no registry of images is needed."""
    engine = [tool("buildah"), "--storage-driver=vfs", f"--root={tmp_path / 'images'}", f"--runroot={tmp_path / 'run'}"]

    def run(*arguments: str) -> str:
        env = {**os.environ, "BUILDAH_ISOLATION": "chroot"}
        done = subprocess.run([*engine, *arguments], check=False, capture_output=True, text=True, env=env)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        return done.stdout.strip()

    base = tmp_path / "debian"
    made = [tool("debootstrap"), "--variant=minbase", "--include=ca-certificates", "bookworm", str(base)]
    subprocess.run(made, check=True, capture_output=True)
    subprocess.run(["tar", "-C", str(base), "--one-file-system", "-cf", str(tmp_path / "base.tar"), "."], check=True)
    (tmp_path / "Base").write_text(
        "FROM scratch\nADD base.tar /\n"
        "RUN apt-get update && apt-get install -y --no-install-recommends python3 libstdc++6 libgomp1\n"
    )
    run("bud", "-q", "--layers", "-f", str(tmp_path / "Base"), "-t", "base", str(tmp_path))
    certificates = ["--volume", "/etc/ssl/certs:/etc/ssl/certs:ro"]
    bases = ["--build-arg", "BUILD=localhost/base", "--build-arg", "BASE=localhost/base"]
    ids = [
        run(
            "bud", "-q", "--no-cache", "--timestamp", "0", *certificates, *bases, "-f", str(FILE), "-t", "it", str(ROOT)
        )
        for _ in range(2)
    ]
    assert ids[0] == ids[1]
    container = run("from", "it")
    held = run("run", "--user", USER, container, "--", *_command(_of("ENTRYPOINT")[0]), "models", "verify")
    assert {"injection", "reader", "safety"} <= {line.partition(":")[0] for line in held.splitlines()}
    sizes = {
        name: int(run("inspect", "--type", "image", "--format", "{{.Docker.Size}}", name)) for name in ("it", "base")
    }
    assert sizes["it"] - sizes["base"] < 390e6, "with some 55 MB of distroless it is to stay below 450 MB"
