"""`models.yaml`: what may stand in it, and every way in which it could lead somewhere else."""

from __future__ import annotations

from pathlib import Path

import pytest

from checkstream.config import ModelSource, OwnModel, RemoteSettings, read_config, read_own_models
from checkstream.errors import ConfigError

REVISION = "0123456789abcdef0123456789abcdef01234567"
SEQUENCE = "name: own, kind: sequence, activation: softmax, labels: {INJECTION: injection}"
TOKENS = "name: own, kind: tokens, source: {path: x}, labels: {PER: PERSON}"


def read(tmp_path: Path, *models: str) -> tuple[OwnModel, ...]:
    file = tmp_path / "models.yaml"
    file.write_text("models:\n" + "".join(f"  - {{{model}}}\n" for model in models))
    return read_own_models(file)


def refusal(tmp_path: Path, *models: str) -> str:
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, *models)
    assert all(fault.line for fault in caught.value.faults)
    return str(caught.value)


def test_each_kind_of_source_is_read_with_its_defaults(tmp_path: Path) -> None:
    hub, url, folder, remote = read(
        tmp_path,
        f"name: a, kind: sequence, source: {{hub: o/n, revision: {REVISION}}}, activation: softmax, labels: {{'1': x}}",
        "name: b, kind: sequence, source: {url: 'https://h/m/', sha256: {model.onnx: "
        f"{'a' * 64}, tokenizer.json: {'b' * 64}}}}}, config: null, columns: [toxic], activation: sigmoid, "
        "labels: {'0': toxicity}",
        TOKENS.replace("own", "c") + ", thresholds: {PERSON: 0.5}",
        "name: d, kind: remote, remote: {url: 'http://127.0.0.1:9', token: {file: key}}",
    )
    assert [model.source.origin for model in (hub, url, folder) if model.source] == [
        f"hub:o/n@{REVISION}",
        "url:https://h/m/",
        "path:x",
    ]
    assert hub.files == {"graph": "model.onnx", "tokenizer": "tokenizer.json", "config": "config.json"}
    assert url.files == {"graph": "model.onnx", "tokenizer": "tokenizer.json"}
    assert remote.files == {}
    assert remote.remote
    assert remote.remote.token
    assert remote.remote.token.file == str(tmp_path / "key")
    assert hub.labels == {"1": "x"}


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("{}", "one of `path`, `url` and `hub`"),
        ("{path: x, hub: o/n}", "one of `path`, `url` and `hub`"),
        ("{hub: o/n}", "`hub` and `revision` belong together"),
        ("{path: x, revision: main}", "`hub` and `revision` belong together"),
        ("{hub: o/n, revision: main}", "not a branch"),
        (f"{{hub: o/n, revision: {REVISION.upper()}}}", "40 hexadecimal digits"),
        (f"{{hub: ../n, revision: {REVISION}}}", "`owner/name`"),
        (f"{{hub: o/n/x, revision: {REVISION}}}", "`owner/name`"),
        (f"{{hub: 'o/n?x', revision: {REVISION}}}", "`owner/name`"),
        ("{url: 'https://h/'}", "`url` and `sha256` belong together"),
        (f"{{url: 'https://h/', sha256: {{model.onnx: {'a' * 64}}}}}", "no hash of `tokenizer.json`"),
        ("{url: 'https://h/', sha256: {model.onnx: abc}}", "no SHA-256"),
        (f"{{url: 'http://h/', sha256: {{m.onnx: {'a' * 64}}}}}", "not encrypted"),
        (f"{{url: 'file:///etc/', sha256: {{m.onnx: {'a' * 64}}}}}", "is no url"),
        (f"{{url: 'https://u:p@h/', sha256: {{m.onnx: {'a' * 64}}}}}", "holds a password"),
        (f"{{url: 'https://h/?x=', sha256: {{m.onnx: {'a' * 64}}}}}", "a query"),
        (f"{{url: 'https://h', sha256: {{m.onnx: {'a' * 64}}}}}", "end it with `/`"),
        (f"{{url: 'https://h:99999/', sha256: {{m.onnx: {'a' * 64}}}}}", "is no url"),
        ("x", "expected a mapping"),
    ],
)
def test_a_source_that_is_not_one_pinned_place_is_refused(tmp_path: Path, source: str, words: str) -> None:
    assert words in refusal(tmp_path, f"{SEQUENCE}, source: {source}")


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ("graph: ../model.onnx", "inside the source"),
        ("graph: /etc/model.onnx", "inside the source"),
        ("graph: 'a\\b.onnx'", "inside the source"),
        ("graph: 'c:model.onnx'", "inside the source"),
        ("graph: ''", "inside the source"),
        ("graph: pytorch_model.bin", "nothing that unpickles"),
        ("graph: model.pkl", "nothing that unpickles"),
        ("tokenizer: tokenizer.pickle", "only .onnx and .json"),
        ("config: config.py", "only .onnx and .json"),
    ],
)
def test_a_file_that_leads_out_or_could_unpickle_is_refused(tmp_path: Path, files: str, words: str) -> None:
    assert words in refusal(tmp_path, f"{SEQUENCE}, source: {{path: x}}, {files}")


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("name: own, kind: sequence, source: {path: x}, labels: {a: b}", "`activation` is missing"),
        ("name: own, kind: tokens, source: {path: x}", "`labels` is missing"),
        (f"{SEQUENCE}, source: {{path: x}}, config: null", "named by `config` or by `columns`"),
        (f"{SEQUENCE}, source: {{path: x}}, columns: [a]", "named by `config` or by `columns`"),
        ("name: own, kind: tokens, labels: {PER: PERSON}", "has a `source`"),
        ("name: own, kind: remote", "has `remote` with `url`"),
        ("name: own, kind: remote, remote: {url: 'https://h'}, source: {path: x}", "no `source`"),
        ("name: own, kind: remote, remote: {url: 'ftp://gpu'}", "is no url"),
        ("name: own, kind: remote, remote: {url: 'http://u:p@gpu:80'}", "holds a password"),
        ("name: own, kind: remote, remote: {url: 'https://h', connections: 0}", "connections"),
        ("name: own, kind: remote, remote: {url: 'https://h'}, labels: {a: b}", "has `remote` with"),
        ("name: own, kind: remote, remote: {url: 'https://h', labels: {a: B-c}}", "no name of an entity"),
        ("name: Own, kind: remote, remote: {url: 'https://h'}", "name"),
        (f"{SEQUENCE}, source: {{path: x}}, thresholds: {{toxic: 0.5}}", "not in `labels`"),
        (f"{SEQUENCE}, source: {{path: x}}, thresholds: {{injection: 1.5}}", "thresholds"),
        (f"{SEQUENCE}, source: {{path: x}}, rates: [{{label: x, fpr: 0.1, threshold: 0.5}}]", "not in `labels`"),
        (SEQUENCE.replace(": injection", ": Injection") + ", source: {path: x}", "small letters"),
        (TOKENS.replace("PERSON", "person"), "capitals"),
        (f"{SEQUENCE}, source: {{path: x}}, window_tokens: 2", "window_tokens"),
        (f"{SEQUENCE}, source: {{path: x}}, trust_remote_code: true", "not known here"),
    ],
)
def test_a_model_that_lacks_what_its_kind_needs_is_refused(tmp_path: Path, model: str, words: str) -> None:
    assert words in refusal(tmp_path, model)


def test_two_models_of_one_name_are_refused(tmp_path: Path) -> None:
    assert "same name" in refusal(tmp_path, TOKENS, TOKENS)


def test_all_faults_are_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, "name: a, kind: remote", "name: B, kind: x")
    assert len(caught.value.faults) == 3


def test_a_file_that_is_not_there_or_is_no_yaml_says_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="can't be read"):
        read_own_models(tmp_path / "none.yaml")
    (tmp_path / "bad.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError):
        read_own_models(tmp_path / "bad.yaml")


def test_the_configuration_names_the_file_relative_to_itself(tmp_path: Path) -> None:
    text = (
        "models: own/models.yaml\nupstreams: {u: {url: http://u}}\n"
        "routes: [{name: r, match: {path: /v1/models, method: GET}, upstream: u, pass: true}]\n"
    )
    assert read_config("c.yaml", text, tmp_path).models == str(tmp_path / "own/models.yaml")


def test_every_example_of_the_readme_is_read(tmp_path: Path) -> None:
    readme = (Path(__file__).parents[3] / "models" / "README.md").read_text(encoding="utf-8")
    examples = [part.split("```")[0] for part in readme.split("```yaml\n")[1:]]
    names = []
    for example in examples:
        (tmp_path / "models.yaml").write_text(example, encoding="utf-8")
        names += [model.name for model in read_own_models(tmp_path / "models.yaml")]
    assert names == ["protectai", "prompt_guard", "toxic_bert", "names", "nli", "safety"]
    for key in (*OwnModel.__struct_fields__, *RemoteSettings.__struct_fields__, *ModelSource.__struct_fields__):
        assert f"{key}" in readme
