from __future__ import annotations

import sys
from pathlib import Path

import pytest

from checkstream.demo.opening import opened, somebody_looks


@pytest.mark.parametrize(
    ("terminal", "platform", "environment", "looks"),
    [
        (True, "linux", {"DISPLAY": ":0"}, True),
        (True, "linux", {"WAYLAND_DISPLAY": "wayland-0"}, True),
        (True, "linux", {}, False),
        (True, "linux", {"DISPLAY": ""}, False),
        (False, "linux", {"DISPLAY": ":0"}, False),
        (True, "linux", {"DISPLAY": ":0", "CI": "true"}, False),
        (True, "darwin", {}, True),
        (True, "darwin", {"SSH_CONNECTION": "10.0.0.1 22"}, False),
        (True, "win32", {"CI": "1"}, False),
    ],
)
def test_a_page_is_opened_for_who_sits_before_a_display_alone(
    *, terminal: bool, platform: str, environment: dict[str, str], looks: bool
) -> None:
    assert somebody_looks(terminal=terminal, platform=platform, environment=environment) is looks


async def test_whether_a_browser_took_it_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import webbrowser

    seen = tmp_path / "seen"
    page = "import sys, pathlib; pathlib.Path(sys.argv[1]).write_text(sys.argv[2])"
    (tmp_path / "open.py").write_text(page)
    browser = webbrowser.GenericBrowser([sys.executable, str(tmp_path / "open.py"), str(seen), "%s"])
    monkeypatch.setattr(webbrowser, "_tryorder", ["ours"])
    webbrowser.register("ours", None, browser, preferred=True)
    assert await opened("http://127.0.0.1:1/console/")
    assert seen.read_text() == "http://127.0.0.1:1/console/"
    monkeypatch.setattr(webbrowser, "_tryorder", [])
    assert not await opened("http://127.0.0.1:1/console/")
