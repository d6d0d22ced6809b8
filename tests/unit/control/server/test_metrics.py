"""The metrics of the control server: their table, what they say of nodes, and who may ask for them."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from checkstream.config import load_control
from checkstream.control.review.precision import Precision
from checkstream.control.server.metrics import NODE_STATES, SPECS, ControlMetrics, Standing, families, state_of
from checkstream.control.server.showing import NodeShown
from checkstream.errors import ConfigError
from checkstream.telemetry.tallies import MAX_SERIES
from tests.certificates import Authority, put
from tests.controlled import Server, asked, attestation

README = Path(__file__).parents[4] / "checkstream" / "control" / "README.md"


def node(**more: Any) -> NodeShown:
    given: dict[str, Any] = {"drifted": False, "refused": False, "stale": False, "heard_s": 1.0, **more}
    return NodeShown(node="n1", ring="all", desired="", reported="", version="", since_s=None, why="", **given)


def standing(**more: Any) -> Standing:
    given: dict[str, Any] = {
        "nodes": {}, "stages": {}, "exchanges": {}, "records": 0, "missing": 0, "waiting_bytes": 0, "chains": {},
        "faults": 0, "troubles": {}, "notices": {}, "reviews_waiting": 0, "precision": (), "week": 2950,
    }  # fmt: skip
    return Standing(**{**given, **more})


def samples(text: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_the_guide_lists_every_metric_as_it_is() -> None:
    rows = [line for line in README.read_text("utf-8").splitlines() if line.startswith("| `checkstream_")]
    expected = [
        f"| `{spec.name}` | {spec.kind} | {', '.join(f'`{label}`' for label in spec.labels)} | {spec.help} |"
        for spec in SPECS
    ]
    assert rows == expected


def test_every_metric_of_the_table_is_rendered_with_its_labels_and_no_other() -> None:
    metrics = ControlMetrics()
    metrics.store.observe(0.002)
    metrics.api.of("/v1/attestations", "200").observe(0.01)
    metrics.tls_ends.of("control").set(1)
    metrics.tls_reloads.of("control", "accepted").inc()
    week = Precision(rule="PII-1", week=2950, reviewed=3, right=2, unsure=0, value=0.6, low=0.1, high=0.9)
    full = standing(
        nodes={"shop": [node()]}, stages={"shop": ""}, exchanges={"shop": (3, 2, 1, 0)}, precision=(week,)
    )  # fmt: skip
    found: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(metrics.render(full).decode()):
        if not family.name.endswith("_created"):
            name = family.name + ("_total" if family.type == "counter" else "")
            found[name] = {label for sample in family.samples for label in sample.labels} - {"le"}
    assert found == {spec.name: set(spec.labels) for spec in SPECS}


def test_a_store_that_does_not_answer_takes_only_its_own_figures_along() -> None:
    metrics = ControlMetrics()
    metrics.api.of("/v1/telemetry", "503").observe(0.01)
    found = samples(metrics.render(None).decode())
    assert found["checkstream_control_store_up", ()] == 0
    assert found["checkstream_api_seconds_count", (("path", "/v1/telemetry"), ("status", "503"))] == 1
    assert not [name for name, _ in found if name == "checkstream_control_nodes"]


@given(st.lists(st.builds(
    node, drifted=st.booleans(), refused=st.booleans(), stale=st.booleans(), heard_s=st.none() | st.just(3.0)
)))  # fmt: skip
def test_each_node_is_of_one_state_and_states_without_nodes_are_told_as_well(nodes: list[NodeShown]) -> None:
    (of_nodes, *_) = families(standing(nodes={"shop": nodes, "empty": []}))
    told = {(s.labels["fleet"], s.labels["state"]): s.value for s in of_nodes.samples}
    assert told.keys() == {(fleet, state) for fleet in ("shop", "empty") for state in NODE_STATES}
    assert sum(told.values()) == len(nodes)
    assert told["shop", "well"] == sum(state_of(each) == "well" for each in nodes)


def test_g22_of_rules_that_are_reviewed_only_so_many_are_told() -> None:
    many = [
        Precision(rule=f"R-{n}", week=2950, reviewed=1, right=1, unsure=0, value=1.0, low=0.1, high=1.0)
        for n in range(5000)
    ]
    told = {family.name: family for family in families(standing(precision=many))}
    assert len(told["checkstream_control_reviewed"].samples) == MAX_SERIES


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_a_server_tells_who_has_the_token_how_its_nodes_stand(tmp_path: Path, scheme: str) -> None:
    token = tmp_path / "token"
    token.write_text("a-token-of-some-length")
    server = Server(tmp_path)
    server.written |= {"admin": "127.0.0.1:0", "admin_token": {"file": str(token)}}
    authority = Authority()
    if scheme == "https":
        put(tmp_path, "admin", authority.issue("control"))
        server.written["admin_tls"] = {"certificate": "admin.pem", "key": "admin.key"}
    trusted = ssl.create_default_context(cadata=authority.pem().decode())
    with (tmp_path / "log").open("w+b") as log:
        async with server.serving(log):
            assert (await asked("POST", server.url, "/v1/attestations", attestation(1), node=server.nodes["n1"]))[
                0
            ] == 200
            admin = (tmp_path / "log").read_text().split('"admin":"')[1].partition('"')[0]
            async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trusted)) as client:
                for path, key, status in (
                    ("/metrics", "", 401), ("/metrics", "wrong", 401), ("/livez", "", 200), ("/readyz", "", 200),
                    ("/v1/fleets", "a-token-of-some-length", 404),
                ):  # fmt: skip
                    headers = {"authorization": f"Bearer {key}"} if key else {}
                    async with client.get(f"{scheme}://{admin}{path}", headers=headers) as answer:
                        assert answer.status == status, path
                headers = {"authorization": "Bearer a-token-of-some-length"}
                async with client.get(f"{scheme}://{admin}/metrics", headers=headers) as answer:
                    found = samples(await answer.text())
                if scheme == "https":
                    with pytest.raises(aiohttp.ClientError):  # what is sent in the clear, a token too, gets nothing
                        await client.get(f"http://{admin}/livez")
    assert found["checkstream_control_nodes", (("fleet", "shop"), ("state", "well"))] == 1
    assert found["checkstream_control_nodes", (("fleet", "shop"), ("state", "unheard"))] == 1
    assert found["checkstream_control_rollouts", (("fleet", "shop"), ("stage", "none"))] == 1
    assert found["checkstream_api_seconds_count", (("path", "/v1/attestations"), ("status", "200"))] == 1
    assert found["checkstream_control_store_seconds_count", ()] > 0
    assert found["checkstream_control_store_up", ()] == 1
    assert (("checkstream_tls_ends_seconds", (("face", "admin"),)) in found) == (scheme == "https")


async def test_metrics_that_others_could_read_need_a_token_and_an_address_that_is_taken_is_named(
    tmp_path: Path,
) -> None:
    server = Server(tmp_path)
    server.written["admin"] = "0.0.0.0:9100"
    with pytest.raises(ConfigError, match="`admin_token` is missing"):
        load_control(server.config_file())
    server.written["admin"] = "127.0.0.1:0"
    async with server.serving():
        other = Server(tmp_path / "other")
        other.written["admin"] = server.url.removeprefix("http://")
        with pytest.raises(ConfigError, match=r"can't listen on .*give another `admin`"):
            async with other.serving():
                pass
        other.written |= {"admin": "127.0.0.1:0", "admin_tls": {"certificate": "none.pem", "key": "none.key"}}
        with pytest.raises(ConfigError, match=r"`\S+/other/none.pem`.* can't be used: no such file"):
            async with other.serving():
                pass
