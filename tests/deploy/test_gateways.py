"""Gateways before the proxy: their own programs take the files, and a real stream goes through each token by token."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import uvloop

from tests.deploy.tools import tool
from tests.e2e.harness import ROOT, START_S, http, until
from tests.token_by_token import Stream, beside_a_proxy, calm, patterns

TOKENS = 40
BEHIND = 3
"""Tokens that may be on their way while the next is said: one waits for the next word, which may begin or end it."""


def _free() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def _file(name: str, folder: Path, changes: dict[str, str]) -> Path:
    """Return a copy of the shipped file whose addresses are those of this test; each must stand in it."""
    text = (ROOT / "deploy" / name).read_text("utf-8")
    for before, after in changes.items():
        assert before in text, f"`{before}` does not stand in {name}"
        text = text.replace(before, after)
    (folder / name).write_text(text, "utf-8")
    return folder / name


def _nginx(folder: Path, port: int, proxy: str) -> list[str]:
    changes = {"127.0.0.1:8080": proxy, "/etc/checkstream/tls": str(folder)}
    if port:
        text = (ROOT / "deploy" / "nginx.conf").read_text("utf-8")
        changes = {
            text[text.index("    listen 443") : text.index("    client_max")]: f"listen 127.0.0.1:{port};\n",
            **changes,
        }
        del changes["/etc/checkstream/tls"]
    server = _file("nginx.conf", folder, changes)
    whole = folder / "whole.conf"
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    spare = "".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)
    whole.write_text(
        f"daemon off; error_log stderr; pid {folder}/pid; worker_processes 1; events {{}}"
        f"http {{ access_log off; {spare} include {server}; }}",
        "utf-8",
    )
    return [tool("nginx"), "-p", str(folder), "-c", str(whole)]


def _haproxy(folder: Path, port: int, proxy: str) -> list[str]:
    changes = {"127.0.0.1:8080 check port 9090": proxy, "/etc/checkstream/tls": str(folder)}
    if port:
        text = (ROOT / "deploy" / "haproxy.cfg").read_text("utf-8")
        begin = text.index("    bind :443")
        changes |= {text[begin : text.index("\n", begin)]: f"    bind 127.0.0.1:{port}"}
        del changes["/etc/checkstream/tls"]
    return [tool("haproxy"), "-db", "-f", str(_file("haproxy.cfg", folder, changes))]


def _envoy(folder: Path, port: int, proxy: str) -> list[str]:
    text = (ROOT / "deploy" / "envoy.yaml").read_text("utf-8")
    changes = {"port_value: 8080": f"port_value: {proxy.rpartition(':')[2]}", "/etc/checkstream/tls": str(folder)}
    if port:
        begin, end = text.index("        - transport_socket:"), text.index("          filters:")
        changes |= {
            text[begin:end] + "          filters:": "        - filters:",
            "address: 0.0.0.0": "address: 127.0.0.1",
        }
        changes |= {"port_value: 443": f"port_value: {port}"}
        del changes["/etc/checkstream/tls"]
    file = _file("envoy.yaml", folder, changes)
    alone = ["--use-dynamic-base-id", "--base-id-path", str(folder / "id")]
    return [tool("envoy"), "-c", str(file), "--concurrency", "1", "--log-level", "error", *alone]


Made = Callable[[Path, int, str], list[str]]
GATEWAYS = {"nginx": (_nginx, ["-t", "-q"]), "haproxy": (_haproxy, ["-c"]), "envoy": (_envoy, ["--mode", "validate"])}


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tls")
    subject = ["-subj", "/CN=llm.example.com", "-days", "1", "-nodes"]
    kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
    out = ["-keyout", str(folder / "tls.key"), "-out", str(folder / "tls.crt")]
    subprocess.run([tool("openssl"), "req", "-x509", *kind, *subject, *out], check=True, capture_output=True)
    (folder / "both.pem").write_text((folder / "tls.crt").read_text() + (folder / "tls.key").read_text(), "utf-8")
    return folder


@pytest.mark.parametrize("name", GATEWAYS)
def test_the_gateway_itself_takes_the_file(name: str, certificate: Path) -> None:
    make, check = GATEWAYS[name]
    command = [*make(certificate, 0, "127.0.0.1:8080"), *check]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "warn" not in (done.stdout + done.stderr).lower(), done.stdout + done.stderr


@contextlib.contextmanager
def _running(make: Made, folder: Path, proxy: str) -> Iterator[str]:
    port = _free()
    with subprocess.Popen(make(folder, port, proxy), stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        try:
            until(lambda: _listens(port) or process.poll() is not None, what="the gateway", timeout_s=START_S)
            assert process.poll() is None
            yield f"http://127.0.0.1:{port}"
        except BaseException:
            process.kill()
            assert process.stdout is not None
            sys.stdout.write(process.stdout.read().decode(errors="replace"))
            raise
        finally:
            process.terminate()


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


@pytest.mark.parametrize("name", GATEWAYS)
def test_a_stream_goes_through_the_gateway_token_by_token_and_who_leaves_ends_it(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, _ = GATEWAYS[name]
    tool(name)
    monkeypatch.chdir(tmp_path)

    def drive(stream: Stream, proxy: str) -> None:
        with _running(make, tmp_path, proxy.removeprefix("http://")) as gateway:
            stream.begin(gateway)
            for said, word in enumerate(calm(TOKENS), 2):  # the event before them names the role
                stream.say([word])
                assert stream.events >= said - BEHIND, f"after {said} events only {stream.events} had come"
            stream.finish()
            stream.begin(gateway)
            stream.say(calm(4))
            stream._caller.close()
            stream._model.settimeout(10)
            assert stream._model.recv(1) == b"", "the model goes on for nobody"
            refused = http("POST", f"{gateway}/v1/nowhere", {})
            assert refused[0] == 404, refused
            assert b"line of the configuration" in refused[2] or b"route" in refused[2], refused

    beside_a_proxy(patterns(tmp_path), drive, uvloop.new_event_loop)
