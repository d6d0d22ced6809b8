from __future__ import annotations

from pathlib import Path

import pytest

from checkstream.config import advice_for, bundled, policy_file, read_file
from checkstream.core.policy.nodes import MAX_FILE_BYTES, MAX_FILE_CHARS, open_source


def test_packs_and_models_are_there() -> None:
    assert policy_file("builtin:default").is_file()
    assert policy_file("builtin:default").with_name("tests.yaml").is_file()
    assert bundled("models").is_dir()


def test_a_folder_means_the_policy_in_it(tmp_path: Path) -> None:
    assert policy_file(str(tmp_path)) == tmp_path / "policy.yaml"
    assert policy_file(str(tmp_path / "ours.yaml")) == tmp_path / "ours.yaml"
    assert policy_file("x" * 5000).name == "x" * 5000


@pytest.mark.parametrize(
    ("reference", "advice"),
    [
        ("ours.yaml", "otherwise"),
        ("builtin:gdpr", "did you mean `builtin:gdpr-pii`?"),
        ("builtin:pci_dss", "did you mean `builtin:pci-dss`?"),
        ("builtin:", "shipped are default, "),
        ("builtin:" + "z" * 100_000, "shipped are default, "),
    ],
)
def test_the_advice_names_what_is_shipped(reference: str, advice: str) -> None:
    assert advice_for(reference, "otherwise").startswith(advice)
    assert "errors" not in advice_for(reference, "otherwise")


def test_a_file_without_end_is_read_until_it_is_too_long() -> None:
    content = read_file(Path("/dev/zero"))
    assert len(content) == MAX_FILE_BYTES + 1
    (fault,) = open_source("zero", content).faults
    assert fault.reason == f"the file is longer than {MAX_FILE_CHARS} characters"


def test_the_longest_file_is_read_whole(tmp_path: Path) -> None:
    file = tmp_path / "long.yaml"
    for text, faults in (("\U0001f600" * MAX_FILE_CHARS, 0), ("\U0001f600" * (MAX_FILE_CHARS + 1), 1)):
        file.write_text(text, encoding="utf-8-sig")
        source = open_source("long", read_file(file))
        assert len(source.faults) == faults
        assert faults or source.text == text


def test_a_folder_without_a_policy_is_told_from_one_that_is_not_there(tmp_path: Path) -> None:
    assert "the folder has no `policy.yaml`" in advice_for(str(tmp_path), "otherwise")
    assert advice_for(str(tmp_path / "nowhere"), "otherwise") == "otherwise"
