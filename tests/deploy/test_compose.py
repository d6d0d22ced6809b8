"""compose.yaml: what its schema takes, no service with rights, and a real run of the same commands."""

from __future__ import annotations

import json
import re
import shutil
import ssl
import subprocess
import urllib.request
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import jsonschema
import pytest
import yaml

from checkstream.config import load_config, load_control
from tests.deploy.tools import FOLDER, tool
from tests.e2e.harness import ROOT, Llm, Process, Proxy, config, http, running, until
from tests.evidence_stores import postgres
from tests.redis_server import RedisServer, free_port

__all__ = ["postgres"]  # a fixture
DEPLOY = ROOT / "deploy"
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OF_OTHERS = ("./prometheus", "./grafana")
"""Rules and dashboards, which have tests of their own."""


def test_its_schema_takes_it_and_refuses_what_is_misspelt() -> None:
    file = FOLDER / "check_jsonschema" / "builtin_schemas" / "vendor" / "compose-spec.json"
    if not file.exists():
        pytest.skip("the schema is not installed: `make .venv-deploy/stamp`")
    validator = jsonschema.Draft202012Validator(json.loads(file.read_text("utf-8")))
    assert not [error.message for error in validator.iter_errors(COMPOSE)]
    wrong = {**COMPOSE, "services": {"proxy": {**SERVICES["proxy"], "readonly": True}}}
    assert list(validator.iter_errors(wrong))


@pytest.mark.parametrize("name", SERVICES)
def test_no_service_has_rights_or_can_write_but_where_it_must(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert not {"privileged", "cap_add", "network_mode", "pid"} & set(service)
    tag = service["image"].rpartition("/")[2].partition(":")[2]
    assert "build" in service or re.search(r"\d+\.\d+", tag), "an image is named by its release"
    for port in service.get("ports", ()):
        assert port.startswith("127.0.0.1:"), "other machines come by a gateway"
    assert "secret" not in json.dumps(service.get("environment", {})).replace("/run/secrets", ""), "keys are files"


def test_all_that_it_names_is_there() -> None:
    made = (DEPLOY / "compose" / "secrets.sh").read_text("utf-8")
    for secret in COMPOSE["secrets"].values():
        assert Path(secret["file"]).name in made
    for service in SERVICES.values():
        for each in service.get("secrets", ()):
            assert (each if isinstance(each, str) else each["source"]) in COMPOSE["secrets"]
        for volume in service.get("volumes", ()):
            source = volume.partition(":")[0]
            if source.startswith("./") and source not in OF_OTHERS:
                assert (DEPLOY / source).exists()
            assert source.startswith("./") or source in COMPOSE["volumes"]
        for network in service["networks"]:
            assert network in COMPOSE["networks"]


def test_prometheus_takes_its_configuration(tmp_path: Path) -> None:
    text = (DEPLOY / "compose" / "prometheus.yml").read_text("utf-8")
    for path in ("/etc/prometheus/rules/rules.yaml", "/run/secrets/admin_token"):
        assert path in text
        text = text.replace(path, str(tmp_path / Path(path).name))
    (tmp_path / "rules.yaml").write_text("groups: []\n", "utf-8")
    (tmp_path / "admin_token").write_text("t", "utf-8")
    (tmp_path / "prometheus.yml").write_text(text, "utf-8")
    promtool = tool("promtool")
    done = subprocess.run(
        [promtool, "check", "config", str(tmp_path / "prometheus.yml")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def _secrets(folder: Path) -> None:
    """Make them as the operator does."""
    shutil.copy(DEPLOY / "compose" / "secrets.sh", folder)
    for _ in range(2):  # the second time it changes nothing
        subprocess.run([str(folder / "secrets.sh")], check=True)
    assert folder.joinpath("secrets").stat().st_mode & 0o777 == 0o700


def test_where_no_secret_can_be_made_there_is_no_empty_one(tmp_path: Path) -> None:
    shutil.copy(DEPLOY / "compose" / "secrets.sh", tmp_path)
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("dirname", "mkdir"):  # and no openssl
        programs.joinpath(name).symlink_to(shutil.which(name) or name)
    command = ["/bin/sh", str(tmp_path / "secrets.sh")]
    ended = subprocess.run(command, check=False, env={"PATH": str(programs)}, capture_output=True)
    assert ended.returncode != 0
    assert list((tmp_path / "secrets").iterdir()) == []


def _here(folder: Path, changes: dict[str, str], source: str = "compose/checkstream.yaml") -> Path:
    """Return a file of the folder `deploy` with this machine's places; each of the others must stand in it."""
    text = (DEPLOY / source).read_text("utf-8")
    for before, after in changes.items():
        assert before in text
        text = text.replace(before, after)
    file = folder / Path(source).name
    file.write_text(text, "utf-8")
    return file


def test_the_secrets_that_are_made_are_all_that_the_configuration_asks_for(tmp_path: Path) -> None:
    _secrets(tmp_path)
    values = {file.name: file.read_text() for file in (tmp_path / "secrets").iterdir()}
    assert set(values) == set(COMPOSE["secrets"])
    assert len(set(values.values())) == len(values)
    file = _here(tmp_path, {"/run/secrets/": f"{tmp_path}/secrets/"})
    asked = {Path(secret).name for secret in re.findall(r"file: ([^\s}]+)", file.read_text())}
    assert asked <= set(SERVICES["proxy"]["secrets"])
    assert asked <= set(SERVICES["worker"]["secrets"])
    control = _here(tmp_path, {"/run/secrets/": f"{tmp_path}/secrets/"}, "compose/control.yaml")
    of_control = set(re.findall(rf"{tmp_path}/secrets/(\w+)", control.read_text()))
    assert of_control == set(SERVICES["control"]["secrets"])
    load_control(control)
    told = {Path(place).name for place in re.findall(r"^  (?:key|ca): (\S+)$", file.read_text(), re.MULTILINE)}
    assert told == set(SERVICES["telemetry"]["secrets"])
    settings = load_config(file)
    assert settings.server.drain_ms / 1000 + 10 <= int(SERVICES["proxy"]["stop_grace_period"].removesuffix("s"))


@pytest.mark.nightly
def test_the_same_commands_tell_a_control_server_by_tls(tmp_path: Path, postgres: str, llm: Llm) -> None:
    _secrets(tmp_path)
    (tmp_path / "secrets" / "postgres_password").write_text(urlsplit(postgres).password or "none", "utf-8")
    tls = free_port()
    with ExitStack() as run:
        changes = {
            "/run/secrets/": f"{tmp_path}/secrets/",
            "/var/lib/checkstream/": f"{tmp_path}/control-",
            "postgresql://checkstream@postgres/checkstream": postgres.replace(":@/", "@localhost/"),
            "0.0.0.0:8443": f"127.0.0.1:{tls}",
            "0.0.0.0:9090": "127.0.0.1:0",
        }
        given = {"/etc/checkstream/control.yaml": str(_here(tmp_path, changes, "compose/control.yaml"))}
        command = [given.get(each, each) for each in SERVICES["control"]["command"]]
        control = run.enter_context(running(Process("-m", "checkstream", *command)))
        admin = control.said(lambda row: row.get("event") == "measured")["admin"]
        control.said(lambda row: row.get("event") == "listening")
        settings = config(llm.url, tmp_path, ["builtin:default"], chat_only=True)
        whole = yaml.safe_load((DEPLOY / "compose" / "checkstream.yaml").read_text("utf-8"))
        written = json.dumps(settings | {"control": whole["control"]}).replace("/run/secrets/", f"{tmp_path}/secrets/")
        assert "control:8443" in written
        (tmp_path / "node").mkdir()
        written = written.replace("control:8443", f"localhost:{tls}")
        proxy = run.enter_context(running(Proxy(json.loads(written), tmp_path / "node")))
        body = {"model": "clean", "messages": [{"role": "user", "content": "hello"}]}
        headers = http("POST", f"{proxy.url}/v1/chat/completions", body)[1]
        told = {
            "/etc/checkstream/checkstream.yaml": str(proxy.folder / "checkstream.yaml"),
            "0.0.0.0:9090": "127.0.0.1:0",
        }
        command = [told.get(each, each) for each in SERVICES["telemetry"]["command"]]
        shipper = run.enter_context(running(Process("-m", "checkstream", *command)))
        metrics = shipper.said(lambda row: row.get("event") == "shipping")["metrics"]
        key = {"authorization": f"Bearer {(tmp_path / 'secrets' / 'operator_key').read_text()}"}
        context = ssl.create_default_context(cafile=str(tmp_path / "secrets" / "control_certificate"))

        def streams() -> list[str]:
            request = urllib.request.Request(f"https://localhost:{tls}/v1/exchanges", headers=key)
            with urllib.request.urlopen(request, context=context, timeout=10) as answer:
                return [each["stream"] for each in json.loads(answer.read())["exchanges"]]

        until(lambda: headers["x-checkstream-stream"] in streams(), what="the exchange", timeout_s=60)
        sent = re.compile(rb'checkstream_telemetry_records_total\{outcome="sent"\} [1-9]')
        until(lambda: sent.search(http("GET", f"http://{metrics}/metrics")[2]), what="its count", timeout_s=30)
        token = (tmp_path / "secrets" / "admin_token").read_text()
        assert http("GET", f"http://{admin}/metrics")[0] == 401
        seen = http("GET", f"http://{admin}/metrics", headers={"authorization": f"Bearer {token}"})[2]
        assert b"checkstream_control_store_up 1.0" in seen
        assert re.search(rb"checkstream_control_records_total [1-9]", seen)


@pytest.mark.nightly
def test_the_same_commands_serve_and_score_with_real_stores(tmp_path: Path, postgres: str) -> None:
    _secrets(tmp_path)
    password = (tmp_path / "secrets" / "redis_password").read_text()
    (tmp_path / "secrets" / "postgres_password").write_text(urlsplit(postgres).password or "none", "utf-8")
    port, places = free_port(), {name: free_port() for name in ("model", "listen", "admin")}
    with ExitStack() as run:
        run.enter_context(RedisServer(port=str(port), requirepass=password))
        changes = {
            "/run/secrets/": f"{tmp_path}/secrets/",
            "/var/lib/checkstream/": f"{tmp_path}/",
            "redis://redis:6379": f"redis://127.0.0.1:{port}",
            "postgresql://checkstream@postgres/checkstream": postgres.replace(":@/", "@localhost/"),
            "http://model:8000": f"http://127.0.0.1:{places['model']}",
            "0.0.0.0:8080": f"127.0.0.1:{places['listen']}",
            "0.0.0.0:9090": f"127.0.0.1:{places['admin']}",
        }
        file = str(_here(tmp_path, changes))
        model = [*SERVICES["model"]["entrypoint"][1:], "--host", "127.0.0.1", "--port", str(places["model"])]
        run.enter_context(running(Process(*model))).said(lambda row: row.get("event") == "listening")
        given = {"/etc/checkstream/checkstream.yaml": file, "0.0.0.0:9090": "127.0.0.1:0"}
        proxy, worker = (
            run.enter_context(
                running(Process("-m", "checkstream", *(given.get(each, each) for each in SERVICES[name]["command"])))
            )
            for name in ("proxy", "worker")
        )
        metrics = worker.said(lambda row: row.get("event") == "working")["metrics"]
        proxy.said(lambda row: row.get("event") == "listening")
        body = {"model": "clean", "messages": [{"role": "user", "content": "hello"}]}
        chat = f"http://127.0.0.1:{places['listen']}/v1/chat/completions"
        assert http("POST", chat, body)[0] == 401
        key = (tmp_path / "secrets" / "app_key").read_text()
        assert http("POST", chat, body, headers={"authorization": f"Bearer {key}"})[0] == 200
        token = (tmp_path / "secrets" / "admin_token").read_text()
        seen = f"http://127.0.0.1:{places['admin']}/metrics"
        assert http("GET", seen)[0] == 401
        assert b"checkstream_exchanges_total" in http("GET", seen, headers={"authorization": f"Bearer {token}"})[2]
        done = re.compile(rb'checkstream_job_events_total\{[^}]*"(done|finished|scored)[^}]*\} [1-9]')
        until(lambda: done.search(http("GET", f"http://{metrics}/metrics")[2]), what="the score", timeout_s=60)
    assert (tmp_path / "audit").is_dir()
