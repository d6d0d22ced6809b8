"""What an installation says it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from checkstream.control.package import image_digest, package_hash


def test_the_hash_is_of_paths_and_contents_of_code(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b.py").write_text("x = 1\n")
    (tmp_path / "c.py").write_text("")
    found = package_hash(tmp_path)
    (tmp_path / "a" / "b.pyc").write_bytes(b"\0")
    assert package_hash(tmp_path) == found
    (tmp_path / "a" / "b.py").write_text("x = 2\n")
    changed = package_hash(tmp_path)
    (tmp_path / "a" / "b.py").write_text("x = 1\n")
    (tmp_path / "a" / "b.py").rename(tmp_path / "a" / "d.py")
    assert len({found, changed, package_hash(tmp_path)}) == 3
    assert package_hash() == package_hash()


@pytest.mark.parametrize(
    ("said", "found"), [(None, ""), (" sha256:ab\n", "sha256:ab"), ("\u00e9", ""), ("x" * 201, "")]
)
def test_an_image_is_what_the_environment_says(monkeypatch: pytest.MonkeyPatch, said: str | None, found: str) -> None:
    monkeypatch.delenv("CHECKSTREAM_IMAGE_DIGEST", raising=False)
    if said is not None:
        monkeypatch.setenv("CHECKSTREAM_IMAGE_DIGEST", said)
    assert image_digest() == found
