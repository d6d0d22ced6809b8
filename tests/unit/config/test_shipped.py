from __future__ import annotations

from pathlib import Path

import pytest

from checkstream.config import advice_for, bundled, policy_file


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
