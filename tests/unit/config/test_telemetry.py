from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from checkstream.config import load_config, warnings
from checkstream.errors import ConfigError

PATH = "/v1/chat/completions"


def written(folder: Path, **more: Any) -> Path:
    settings: dict[str, Any] = {
        "server": {"callers": [{"name": "app1", "key": {"env": "HOME"}}]},
        "upstreams": {"local": {"url": "http://127.0.0.1:8000"}},
        "routes": [
            {
                "name": "chat",
                "match": {"path": "/v1/chat/completions"},
                "upstream": "local",
                "policies": ["builtin:default"],
            }
        ],
        **more,
    }
    file = folder / "checkstream.yaml"
    file.write_text(yaml.safe_dump(settings))
    return file


CONTROL = {"url": "https://control.example:8100", "node": "n1", "key": "node.key"}
BUNDLES = {"source": "https://control.example:8100/bundles/", "root": "root.json", "name": "retail"}


@pytest.mark.parametrize(
    ("telemetry", "says"),
    [
        ({"privacy_of_routes": {"chatt": "none"}}, "there is no route `chatt`"),
        ({"privacy_of_callers": {"app2": "none"}}, "there is no caller `app2`"),
        ({"privacy": "everything"}, "privacy"),
        ({"privacy": "full_evidence", "evidence_key": "k.pub"}, "there is no `control`"),
        ({"evidence_keys": {"app2": "k.pub"}}, "there is no caller `app2`"),
        ({"evidence_bytes": 1}, "evidence_bytes"),
        ({"privacy_of_routes": {"chat": "some"}}, "chat"),
        ({"batch_bytes": 1}, "batch_bytes"),
        ({"salt": {"env": "NO_SUCH_SALT"}}, "NO_SUCH_SALT"),
    ],
)
def test_what_would_tell_more_than_was_meant_is_a_fault(tmp_path: Path, telemetry: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        load_config(written(tmp_path, telemetry=telemetry))


@pytest.mark.parametrize(
    "telemetry",
    [
        {"privacy": "full_evidence"},
        {"privacy_of_routes": {"chat": "full_evidence"}},
        {"privacy_of_callers": {"app1": "full_evidence"}},
    ],
)
def test_evidence_that_nobody_may_read_is_a_fault_with_a_way_out(tmp_path: Path, telemetry: dict[str, Any]) -> None:
    node: dict[str, Any] = {"control": CONTROL, "bundles": BUNDLES}
    with pytest.raises(ConfigError, match="no key says who may read it") as caught:
        load_config(written(tmp_path, **node, telemetry=telemetry))
    assert "evidence-key" in str(caught.value)
    for keys in ({"evidence_key": "k.pub"}, {"evidence_keys": {"app1": "k.pub"}}):
        told = load_config(written(tmp_path, **node, telemetry={**telemetry, **keys})).telemetry
        named = [each for each in (told.evidence_key, *told.evidence_keys.values()) if each is not None]
        assert named == [str(tmp_path / "k.pub")]
        assert told.evidence_dir == str(tmp_path / "var" / "evidence-out")


@pytest.mark.parametrize(
    "telemetry",
    [
        {"privacy": "full_evidence", "privacy_of_callers": {"app1": "decisions"}},
        {"privacy_of_routes": {"chat": "full_evidence"}, "privacy_of_callers": {"app1": "none"}},
        {"privacy_of_routes": {"chat": "none"}, "privacy_of_callers": {"app1": "full_evidence"}},
    ],
)
def test_where_the_word_that_tells_less_counts_no_key_is_missed(tmp_path: Path, telemetry: dict[str, Any]) -> None:
    load_config(written(tmp_path, control=CONTROL, bundles=BUNDLES, telemetry=telemetry))


def test_the_usual_is_decisions_and_a_missing_salt_is_said(tmp_path: Path) -> None:
    config = load_config(written(tmp_path, control=CONTROL, bundles=BUNDLES))
    assert config.telemetry.privacy == "decisions"
    assert any("telemetry.salt is not given" in said for said in warnings(config))
    (tmp_path / "salt").write_text("s" * 44)
    salted = load_config(written(tmp_path, control=CONTROL, bundles=BUNDLES, telemetry={"salt": {"file": "salt"}}))
    assert not any("telemetry.salt" in said for said in warnings(salted))


def test_a_certificate_and_its_key_belong_together_and_are_found_beside_the_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="belong together"):
        load_config(written(tmp_path, control={**CONTROL, "certificate": "n1.pem"}, bundles=BUNDLES))
    both = {**CONTROL, "certificate": "n1.pem", "certificate_key": "n1.key"}
    control = load_config(written(tmp_path, control=both, bundles=BUNDLES)).control
    assert control is not None
    assert (control.certificate, control.certificate_key) == (str(tmp_path / "n1.pem"), str(tmp_path / "n1.key"))
