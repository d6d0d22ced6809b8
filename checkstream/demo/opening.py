"""Opens a page in the browser of whoever sits before this machine, if somebody does."""

from __future__ import annotations

import asyncio
import webbrowser
from collections.abc import Mapping

_DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY")


def somebody_looks(*, terminal: bool, platform: str, environment: Mapping[str, str]) -> bool:
    """Tell whether a page that is opened is seen by whoever has started this.

    Args:
        terminal: What it says is written on one.
        platform: As `sys.platform`.
        environment: Says of a display, of a session by SSH, and of continuous integration.
    """
    if not terminal or environment.get("CI"):
        return False
    if platform in ("darwin", "win32"):
        return "SSH_CONNECTION" not in environment
    return any(environment.get(name) for name in _DISPLAYS)


async def opened(url: str) -> bool:
    """Open a page beside the loop; tell whether a browser took it."""
    try:
        return await asyncio.to_thread(webbrowser.open, url)
    except (webbrowser.Error, OSError):
        return False
