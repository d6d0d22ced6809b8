"""Reads what may be a file in a request: pictures, sounds, documents, their addresses and ids (G13, G17, G31)."""

from __future__ import annotations

from checkstream.core.steps import Steps
from checkstream.core.wire.addresses import unsigned
from checkstream.core.wire.json_text.spans import Path
from checkstream.core.wire.requests import fields
from checkstream.core.wire.requests.prompt import Prompt
from checkstream.core.wire.text_files import is_data_url

_ID = "file_id"
_ADDRESSES = ("http:", "https:", "gs:", "s3:")


def read_media(prompt: Prompt, kind: str, position: int, value: object, path: Path, *, carries: bool = True) -> Steps:
    """Read what may carry a file: its text as a document, what is said of it as words of the message.

    What stands at an address or has an id nobody has read; the address and the id are read, but for what signs it.

    Args:
        prompt: Collects it.
        kind: Channel of the message.
        position: Of the message.
        value: The member.
        path: Where it stands.
        carries: It is known to hold files; else bytes of no known form are read as they stand.
    """
    name = str(path[-1])
    members = value if isinstance(value, dict) else {_ID if name == _ID else "url": value}
    carried = False
    for inner, given in members.items():
        at = (*path, inner) if isinstance(value, dict) else path
        if inner in fields.PAYLOADS and isinstance(given, str | list | dict):
            carried = True
            yield from _payload(prompt, kind, position, given, at, name=name, carries=carries)
        else:
            yield from read_other(prompt, kind, position, given, at, strange=inner not in fields.MEDIA_FIELDS)
    if not carried and value is not None:
        prompt.unscanned[name] = None


def _payload(prompt: Prompt, kind: str, position: int, value: object, path: Path, *, name: str, carries: bool) -> Steps:
    """Read a member that holds a file or several, or an address."""
    found = [(each, (*path, i)) for i, each in enumerate(value)] if isinstance(value, list) else [(value, path)]
    for given, at in found:
        if prompt.spends():
            yield
        if not isinstance(given, str):
            yield from prompt.settings(kind, position, given, at, words=True)
        elif not is_data_url(given) and given.casefold().startswith(_ADDRESSES):
            prompt.unscanned[name] = None
            prompt.add(kind, position, unsigned(given), at, quiet=not any(map(str.isspace, given)))
        else:
            yield from prompt.file(position, given, at, name, carries=carries)


def read_other(prompt: Prompt, kind: str, position: int, value: object, path: Path, *, strange: bool) -> Steps:
    """Read a member that is not there to be read; of one that nobody knows its name as well."""
    if strange:
        prompt.name(kind, position, path)
    yield from prompt.settings(kind, position, value, path, words=strange)
