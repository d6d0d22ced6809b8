"""The chart: what helm makes of it is what Kubernetes takes, what the proxy reads, and closed unless it is opened."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from checkstream.audit.keys import load_public_key
from checkstream.config import load_config, load_control
from tests.deploy.tools import FOLDER, tool
from tests.e2e.harness import ROOT

CHART = ROOT / "deploy" / "helm" / "checkstream"
MANIFESTS = ROOT / "deploy" / "kubernetes"
OPEN = ["--set=config.server.behind_gateway=true"]
ALL = """
config:
  server: {behind_gateway: true, drain_ms: 120000}
  jobs: {store: "redis://redis:6379/0", password: {file: secrets/redis}}
  control: {url: "https://guard-control", node: guard, key: secrets/node, ca: secrets/ca}
policies: {ours.yaml: "pack: {name: ours, version: 1.0.0}\\npolicies: []\\n"}
secrets:
  - {name: redis, secret: redis, key: password}
  - {name: node, secret: node, key: key}
  - {name: ca, secret: ca, key: tls.crt}
control:
  enabled: true
  replicas: 2
  config:
    store: "postgresql://checkstream@postgres/checkstream"
    password: {file: secrets/postgres}
    people: {ada: {role: org_admin, key: {file: secrets/ada}}}
    fleets: {shop: {bundle: retail, nodes: {guard: keys/guard.pub}}}
  keys:
    guard: |
      -----BEGIN PUBLIC KEY-----
      MCowBQYDK2VwAyEAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=
      -----END PUBLIC KEY-----
  secrets:
    - {name: postgres, secret: postgres, key: password}
    - {name: ada, secret: ada, key: key}
  repositoryClaim: bundles
  upstreams: [{to: [{podSelector: {matchLabels: {app: postgres}}}]}]
telemetry: {enabled: true}
imagePullSecrets: [registry]
worker: {enabled: true}
canary: {enabled: true, digest: "sha256:%s"}
autoscaling: {enabled: true}
serviceMonitor: {enabled: true, labels: {release: prometheus}}
prometheusRule: {enabled: true, rules: "groups: []"}
podLabels: {team: llm}
podAnnotations: {note: "1"}
nodeSelector: {disk: ssd}
tolerations: [{key: llm, operator: Exists}]
affinity: {nodeAffinity: {}}
""" % ("0" * 64)
"""Everything that can be had."""
PODS = ("Deployment", "StatefulSet")
OF_OPERATORS = {"ServiceMonitor", "PrometheusRule"}


def helm(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([tool("helm"), *arguments], capture_output=True, text=True, check=False)


def rendered(*arguments: str) -> list[dict[str, Any]]:
    done = helm("template", "guard", str(CHART), "--namespace=llm", *arguments)
    assert done.returncode == 0, done.stderr
    return [each for each in yaml.safe_load_all(done.stdout) if each]


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    values = tmp_path_factory.mktemp("values") / "values.yaml"
    values.write_text(ALL, "utf-8")
    return rendered(f"--values={values}")


def _of(objects: Iterable[Mapping[str, Any]], kind: str) -> list[Any]:
    return [each for each in objects if each["kind"] == kind]


def _validate(files: Iterable[Path]) -> None:
    if not (FOLDER / "kubernetes_validate").is_dir():
        pytest.skip("kubernetes-validate is not installed: `make .venv-deploy/stamp`")
    for version in ("1.30", "1.35"):
        done = subprocess.run(
            [sys.executable, "-m", "kubernetes_validate", "--strict", "--quiet", "-k", version, *map(str, files)],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PYTHONPATH": str(FOLDER)},
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_kubernetes_takes_all_that_the_chart_makes(everything: list[dict[str, Any]], tmp_path: Path) -> None:
    kinds = {each["kind"] for each in everything}
    assert kinds >= {"Deployment", "HorizontalPodAutoscaler", "PodDisruptionBudget", "NetworkPolicy", *OF_OPERATORS}
    own = [each for each in everything if each["kind"] not in OF_OPERATORS]
    (tmp_path / "all.yaml").write_text(yaml.safe_dump_all(own), "utf-8")
    _validate([tmp_path / "all.yaml", MANIFESTS / "checkstream.yaml"])


def test_helm_itself_finds_nothing_wrong() -> None:
    done = helm("lint", "--strict", str(CHART), *OPEN)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "[WARNING]" not in done.stdout


def test_the_manifests_are_what_the_chart_makes() -> None:
    made = helm(
        "template", "checkstream", str(CHART), f"--values={MANIFESTS / 'values.yaml'}", "--namespace=checkstream"
    )
    assert made.stdout == (MANIFESTS / "checkstream.yaml").read_text("utf-8"), "`make manifests` makes them anew"


def _configuration(objects: list[dict[str, Any]], folder: Path, kind_of_pod: str = "Deployment") -> Path:
    """Put the files of the pod where it finds them, and return the folder."""
    pod = _of(objects, kind_of_pod)[0]["spec"]["template"]["spec"]
    maps = {each["metadata"]["name"]: each["data"] for each in _of(objects, "ConfigMap")}
    (volume,) = (each["projected"] for each in pod["volumes"] if each["name"] == "config")
    for source in volume["sources"]:
        for kind, content in source.items():
            for item in content["items"]:
                file = folder / item["path"]
                file.parent.mkdir(exist_ok=True)
                file.write_text(maps[content["name"]][item["key"]] if kind == "configMap" else "k" * 40, "utf-8")
    return folder


def test_the_proxy_reads_what_stands_in_the_pod(everything: list[dict[str, Any]], tmp_path: Path) -> None:
    for number, objects in enumerate(
        (everything, list(yaml.safe_load_all((MANIFESTS / "checkstream.yaml").read_text())))
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        file = _configuration(objects, folder) / "checkstream.yaml"
        settings = load_config(file)
        pod = _of(objects, "Deployment")[0]["spec"]["template"]["spec"]
        assert pod["terminationGracePeriodSeconds"] >= settings.server.drain_ms / 1000 + 10
    check = [sys.executable, "-m", "checkstream", "config", "check", str(file)]
    done = subprocess.run(check, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_control_server_reads_what_stands_in_its_pod(everything: list[dict[str, Any]], tmp_path: Path) -> None:
    folder = _configuration(everything, tmp_path, "StatefulSet")
    settings = load_control(folder / "control.yaml")
    assert (settings.listen, settings.admin) == ("0.0.0.0:8443", "0.0.0.0:9100")
    assert settings.tls is not None
    assert all(Path(file).exists() for file in (settings.tls.certificate, settings.tls.key))
    assert settings.admin_tls == settings.tls, "the token for metrics goes over the network"
    assert load_public_key(Path(settings.fleets["shop"].nodes["guard"])).raw == bytes(32)
    assert settings.people["ada"].key is not None
    assert settings.repository == "/var/lib/bundles"
    (pod,) = (each["spec"]["template"]["spec"] for each in _of(everything, "StatefulSet"))
    (control,) = pod["containers"]
    mounts = {each["name"]: each for each in control["volumeMounts"]}
    assert settings.audit.dir.startswith(mounts["state"]["mountPath"])
    assert mounts["repository"]["readOnly"] is True
    (service,) = (each for each in _of(everything, "Service") if each["metadata"]["name"] == "guard-control")
    assert service["spec"]["ports"][0]["targetPort"] in {port["name"] for port in control["ports"]}
    (monitor,) = (each for each in _of(everything, "ServiceMonitor") if each["metadata"]["name"] == "guard-control")
    (admin,) = (each for each in _of(everything, "Service") if each["metadata"]["name"] == "guard-control-admin")
    labels = admin["metadata"]["labels"]
    assert monitor["spec"]["selector"]["matchLabels"].items() <= labels.items()
    assert labels[monitor["spec"]["jobLabel"]] == "checkstream-control"
    probes = [control[f"{kind}Probe"]["httpGet"] for kind in ("startup", "readiness", "liveness")]
    assert {(each["port"], each["scheme"]) for each in probes} == {("metrics", "HTTPS"), ("tls", "HTTPS")}
    (asked,) = monitor["spec"]["endpoints"]
    sources = next(each for each in pod["volumes"] if each["name"] == "config")["projected"]["sources"]
    (files,) = (
        each["secret"]
        for each in sources
        if {"key": "tls.crt", "path": "tls/tls.crt"} in each.get("secret", {}).get("items", ())
    )
    assert asked["scheme"] == "https"
    ca = {"secret": {"name": files["name"], "key": "tls.crt"}}
    assert asked["tlsConfig"] == {"serverName": service["metadata"]["name"], "ca": ca}


def test_a_changed_file_of_the_control_server_begins_a_new_pod_of_it_alone() -> None:
    def sums(*arguments: str) -> list[str]:
        objects = rendered(*OPEN, "--set=control.enabled=true", *arguments)
        pods = (each["spec"]["template"] for kind in ("Deployment", "StatefulSet") for each in _of(objects, kind))
        return [pod["metadata"]["annotations"]["checksum/config"] for pod in pods]

    proxy, control = sums()
    assert sums("--set=control.config.silent_s=60") != [proxy, control]
    assert sums("--set=control.config.silent_s=60")[0] == proxy
    assert sums("--set=config.server.workers=2")[1] == control


def test_the_telemetry_of_all_pods_is_read_from_their_volume_and_written_to_nothing(
    everything: list[dict[str, Any]],
) -> None:
    (pod,) = (
        each["spec"]["template"]["spec"]
        for each in _of(everything, "Deployment")
        if each["metadata"]["name"] == "guard-telemetry"
    )
    (container,) = pod["containers"]
    (mount,) = (each for each in container["volumeMounts"] if each["name"] == "state")
    (volume,) = (each for each in pod["volumes"] if each["name"] == "state")
    assert "readOnly" not in mount  # evidence that has been sent is removed
    assert volume["persistentVolumeClaim"] == {"claimName": "guard"}


def test_nodes_alone_reach_the_control_server_and_it_reaches_what_is_named(everything: list[dict[str, Any]]) -> None:
    policies = {each["metadata"]["name"]: each["spec"] for each in _of(everything, "NetworkPolicy")}
    control = policies["guard-control"]
    pods = {
        each["metadata"]["name"]: each["spec"]["template"]["metadata"]["labels"]
        for kind in ("Deployment", "StatefulSet")
        for each in _of(everything, kind)
    }
    assert {name for name, labels in pods.items() if _selects(control["podSelector"], labels)} == {"guard-control"}
    assert not _selects(policies["guard"]["podSelector"], pods["guard-control"]), "rules of both would add up"
    assert all(_selects(policies["guard"]["podSelector"], pods[name]) for name in pods if name != "guard-control")
    nodes, monitoring = control["ingress"]
    let_in = {name for name, labels in pods.items() if _selects(nodes["from"][0]["podSelector"], labels)}
    assert let_in == {"guard", "guard-canary", "guard-telemetry"}
    assert [each["ports"][0]["port"] for each in (nodes, monitoring)] == [8443, 9100]
    assert control["egress"][1:] == [{"to": [{"podSelector": {"matchLabels": {"app": "postgres"}}}]}]
    out = [each for each in policies["guard"]["egress"] if each.get("ports") == [{"protocol": "TCP", "port": 8443}]]
    assert _selects(out[0]["to"][0]["podSelector"], pods["guard-control"])


def _selects(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Tell whether a selector takes a pod, as Kubernetes does."""
    wanted = selector.get("matchLabels", {}).items() <= labels.items()
    return wanted and all(
        labels.get(each["key"]) in each["values"]
        for each in selector.get("matchExpressions", ())
        if each["operator"] == "In"
    )


def test_each_pod_has_no_rights_and_says_how_it_is(everything: list[dict[str, Any]]) -> None:
    pods = [each["spec"]["template"]["spec"] for kind in PODS for each in _of(everything, kind)]
    assert len(pods) == 5
    for pod, container in [(each, container) for each in pods for container in each["containers"]]:
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert pod["automountServiceAccountToken"] is False
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert {"startupProbe", "livenessProbe"} <= set(container)
        assert container["resources"]["limits"]["memory"]
        assert not [each for each in container["env"] if "secretKeyRef" in str(each)], "keys are files, not environment"


def test_a_service_selects_both_tracks_and_workers_take_no_callers(everything: list[dict[str, Any]]) -> None:
    (service,) = (each for each in _of(everything, "Service") if each["metadata"]["name"] == "guard")
    wanted = service["spec"]["selector"].items()
    labels = [each["spec"]["template"]["metadata"]["labels"] for each in _of(everything, "Deployment")]
    assert [each["checkstream/track"] for each in labels if wanted <= each.items()] == ["stable", "canary"]
    selectors = [each["spec"]["selector"]["matchLabels"].items() for each in _of(everything, "Deployment")]
    for selector in selectors:
        assert sum(selector <= each.items() for each in labels) == 1, "two deployments would fight for pods"


def test_a_changed_configuration_begins_new_pods_unless_that_is_not_wanted() -> None:
    def sums(*arguments: str) -> str | None:
        pod = _of(rendered(*OPEN, *arguments), "Deployment")[0]["spec"]["template"]
        found: str | None = pod["metadata"]["annotations"].get("checksum/config")
        return found

    assert sums() == sums()
    assert sums() != sums("--set=config.server.workers=2")
    assert sums("--set=rollOnChange=false") is None


def test_nobody_else_is_let_in_and_nowhere_else_out() -> None:
    (policy,) = _of(rendered(*OPEN), "NetworkPolicy")
    assert policy["spec"]["policyTypes"] == ["Ingress", "Egress"]
    assert all(each.get("from") and each["ports"] for each in policy["spec"]["ingress"])
    assert all(each.get("to") for each in policy["spec"]["egress"])
    closed = _of(
        rendered(*OPEN, "--set-json=networkPolicy.callers=[]", "--set-json=networkPolicy.upstreams=[]"), "NetworkPolicy"
    )
    assert [each["ports"] for each in closed[0]["spec"]["ingress"]] == [[{"protocol": "TCP", "port": 9090}]]
    assert len(closed[0]["spec"]["egress"]) == 1


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([], "who may call?"),
        (["--set-json=config.server.callers=[]"], "who may call?"),
        (["--set=config.server.callers=none"], "who may call?"),
        ([*OPEN, "--set=replicas=many"], "/replicas.*integer"),
        ([*OPEN, "--set=replica=3"], "replica"),
        ([*OPEN, "--set=image.digest=latest"], "/image/digest"),
        ([*OPEN, "--set=config.server.drain_ms=30s"], "/config/server/drain_ms"),
        ([*OPEN, "--set=config.server.admin=0.0.0.0:80"], "/config/server/admin"),
        ([*OPEN, "--set-json=config.routes=[]"], "/config/routes"),
        ([*OPEN, '--set-json=secrets=[{"name":"../x","secret":"s","key":"k"}]'], "/secrets/0/name"),
        ([*OPEN, "--set=state.kind=hostPath"], "/state/kind"),
        ([*OPEN, "--set=state.kind=existing"], "state.existingClaim"),
        ([*OPEN, "--set=prometheusRule.enabled=true"], "--set-file prometheusRule.rules"),
        ([*OPEN, "--set=control.enabled=true,control.replicas=2"], "several control servers need one store"),
        ([*OPEN, "--set=control.enabled=true,control.config.listen=0.0.0.0:80"], "/control/config/listen"),
        ([*OPEN, "--set=control.enabled=true,control.config.admin_tls.client_ca=ca"], "/control/config/admin_tls"),
        ([*OPEN, "--set=control.enabled=true,control.config.store=sqlite:/tmp/x"], "/control/config/store"),
        ([*OPEN, "--set=control.enabled=true,control.keys.n1=nonsense"], "/control/keys/n1"),
        ([*OPEN, "--set=telemetry.enabled=true"], "needs `config.control`"),
        ([*OPEN, "--set=telemetry.enabled=true,state.kind=emptyDir"], "in one volume for all"),
    ],
)  # fmt: skip
def test_values_that_are_wrong_are_refused_by_name(values: list[str], said: str) -> None:
    done = helm("template", "guard", str(CHART), *values)
    assert done.returncode != 0
    assert re.search(said, done.stderr.replace("'", ""), re.DOTALL), done.stderr


def test_what_the_autoscaler_asks_for_is_what_the_adapter_says_and_the_proxy_counts(
    everything: list[dict[str, Any]],
) -> None:
    (scaler,) = _of(everything, "HorizontalPodAutoscaler")
    asked = {each["pods"]["metric"]["name"] for each in scaler["spec"]["metrics"] if each["type"] == "Pods"}
    rules = yaml.safe_load((MANIFESTS / "prometheus-adapter.yaml").read_text("utf-8"))["rules"]["custom"]
    named = {each.get("name", {}).get("as") or each["seriesQuery"].partition("{")[0] for each in rules}
    assert asked == named
    page = (ROOT / "checkstream" / "telemetry" / "README.md").read_text("utf-8")
    for rule in rules:
        series = re.sub(r"_(sum|count)$", "", rule["seriesQuery"].partition("{")[0])
        assert f"| `{series}` |" in page


def test_alerts_know_the_pods_by_their_job_and_stand_in_the_cluster_as_they_stand_in_their_file(
    everything: list[dict[str, Any]],
) -> None:
    (monitor,) = (each for each in _of(everything, "ServiceMonitor") if each["metadata"]["name"] == "guard")
    (admin,) = (each for each in _of(everything, "Service") if each["metadata"]["name"] == "guard-admin")
    labels = admin["metadata"]["labels"]
    assert monitor["spec"]["selector"]["matchLabels"].items() <= labels.items()
    assert labels[monitor["spec"]["jobLabel"]] == "checkstream"
    rules = ROOT / "deploy" / "prometheus" / "rules.yaml"
    if not rules.exists():
        pytest.skip("there are no rules in this tree")
    objects = rendered(*OPEN, "--set=prometheusRule.enabled=true", f"--set-file=prometheusRule.rules={rules}")
    assert _of(objects, "PrometheusRule")[0]["spec"] == yaml.safe_load(rules.read_text("utf-8"))


@pytest.mark.parametrize(
    ("values", "volume"),
    [
        ("--set=state.kind=emptyDir", {"emptyDir": {"sizeLimit": "20Gi"}}),
        ("--set=state.kind=existing,state.existingClaim=logs", {"persistentVolumeClaim": {"claimName": "logs"}}),
        ("--set=state.kind=claim", {"persistentVolumeClaim": {"claimName": "guard"}}),
    ],
)
def test_the_audit_log_is_where_the_values_say(values: str, volume: dict[str, Any]) -> None:
    objects = rendered(*OPEN, values)
    volumes = _of(objects, "Deployment")[0]["spec"]["template"]["spec"]["volumes"]
    assert {"name": "state", **volume} in volumes
    assert len(_of(objects, "PersistentVolumeClaim")) == values.endswith("=claim")


def test_an_autoscaler_alone_says_how_many_pods_there_are() -> None:
    assert _of(rendered(*OPEN, "--set=replicas=7"), "Deployment")[0]["spec"]["replicas"] == 7
    assert "replicas" not in _of(rendered(*OPEN, "--set=autoscaling.enabled=true"), "Deployment")[0]["spec"]


def test_every_value_has_a_type() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text("utf-8"))
    assert set(yaml.safe_load((CHART / "values.yaml").read_text("utf-8"))) == set(schema["properties"]) - {"global"}


ON_PURPOSE = {
    "CKV_K8S_11": "a limit of CPU would stop all streams of a pod for moments",
    "CKV_K8S_15": "an image is named by release or digest, so what is there is it",
    "CKV_K8S_21": "the namespace is that of `kubectl -n`",
    "CKV_K8S_43": "`image.digest` is there for who has a registry",
    "CKV_DOCKER_7": "the bases are arguments, and both have a tag",
}


@pytest.mark.nightly
def test_checkov_finds_nothing_that_is_not_on_purpose(tmp_path: Path) -> None:
    """Checkov brings a hundred packages, so it is in no environment of the tests: `pipx install checkov`."""
    (tmp_path / "checkstream.yaml").write_text((MANIFESTS / "checkstream.yaml").read_text("utf-8"), "utf-8")
    (tmp_path / "Dockerfile").write_text((ROOT / "deploy" / "docker" / "Dockerfile").read_text("utf-8"), "utf-8")
    skip = ",".join(ON_PURPOSE)
    command = [tool("checkov"), "--directory", str(tmp_path), "--compact", "--quiet", "--skip-check", skip]
    done = subprocess.run(
        [*command, "--framework", "kubernetes", "dockerfile"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
