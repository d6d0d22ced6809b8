"""Views become pages: Jinja templates, in which whatever is put in is escaped unless it is a template's own.

Rendering takes milliseconds, so it belongs on a thread wherever streams run on the loop. Jinja is loaded with the first
page: most processes never show one.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from checkstream.console import text
from checkstream.console.assets import Assets
from checkstream.console.sessions import Person
from checkstream.control.server.people import Act, objection

_FOLDER = Path(__file__).parent / "templates"
ROOT = "/console/"


class Entry(NamedTuple):
    """An entry of the menu."""

    page: str
    """What pages that belong to it call themselves."""
    path: str
    """Below the console's root."""
    name: str


class Frame(msgspec.Struct, frozen=True, kw_only=True):
    """What stands around every page."""

    page: str = ""
    """Which of the menu's entries it belongs to."""
    theme: str = ""
    """`dark`, `light`; empty: as the browser says."""
    menu: tuple[Entry, ...] = ()
    person: Person | None = None
    """Who looks; None: somebody who has not logged in."""
    door: bool = False
    """Looking needs a secret, so there is a way to log out."""

    def why_not(self, act: Act) -> str:
        """Return why who looks may not do something; empty: they may. What a server refuses, pages show so."""
        return "log in first" if self.person is None else objection(self.person.name, self.person.role, act)


class Pages:
    """Renders the pages. Made on a thread: it reads files, and loads Jinja."""

    def __init__(self, assets: Assets) -> None:
        """Read the templates as they are asked for. Blocks."""
        from jinja2 import Environment, FileSystemLoader, StrictUndefined  # noqa: PLC0415 - large; no page, no templates

        self._templates = Environment(
            loader=FileSystemLoader(_FOLDER),
            autoescape=True,
            undefined=StrictUndefined,
            auto_reload=False,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.filters |= {
            "shown": text.shown,
            "whole": text.whole,
            "number": text.number,
            "seconds": text.seconds,
            "span": text.span,
            "moment": text.moment,
            "data": _data,
            "marked": _marked,
        }
        self._templates.globals["root"] = ROOT
        self._templates.globals["asset"] = lambda name: f"{ROOT}static/{assets.named(name)}"

    def render(self, name: str, frame: Frame, **view: Any) -> bytes:
        """Return a page as UTF-8. Lone surrogates, which have no UTF-8, come as `?`."""
        return self._templates.get_template(f"{name}.html").render(frame=frame, **view).encode("utf-8", "replace")


def _marked(value: object, most: int = 1000) -> str:
    """Return text in which what stands in backticks is marked as code; escaped, so that templates take it as it is."""
    from markupsafe import Markup, escape  # noqa: PLC0415 - Jinja's own

    parts = text.shown(value, most).split("`")
    if len(parts) % 2 == 0:  # one of them is the text's own
        return escape("`".join(parts))
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if place % 2 else escape(part) for place, part in enumerate(parts)
    )


def _data(value: object) -> str:
    """Return a value as JSON for an attribute; templates escape it."""
    return msgspec.json.encode(value).decode()
