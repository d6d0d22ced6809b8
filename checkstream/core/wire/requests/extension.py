"""Reads the `checkstream` field of a request: what the caller tells the policies, never the upstream."""

from __future__ import annotations

from collections.abc import Generator, Mapping

from checkstream.core.wire.json_text.spans import NAME, Path
from checkstream.core.wire.json_text.strict import shown
from checkstream.core.wire.json_text.strings import leaves
from checkstream.core.wire.requests.fields import EXTENSION
from checkstream.core.wire.requests.prompt import Prompt
from checkstream.core.wire.surface import Document, Extension
from checkstream.errors import RequestInvalid

_MEMBERS = ("context", "documents", "conversation", "verify")
DOCUMENTS: Path = (EXTENSION, "documents")
_OWN = ("text", "title", "url", "id")


def read_extension(prompt: Prompt, position: int, value: object) -> Generator[None, None, Extension]:
    """Read the `checkstream` field; its documents are scanned, every string of them.

    Raises:
        RequestInvalid: it has another form, or a field that is not known.
    """
    if not isinstance(value, dict):
        raise RequestInvalid(f"`{EXTENSION}` must be an object with context, documents, conversation or verify")
    for name in value:
        if name not in _MEMBERS:
            raise RequestInvalid(f"`{EXTENSION}.{shown(name)}` is not known; use {', '.join(_MEMBERS)}")
    context = value.get("context")
    documents = value.get("documents")
    conversation = value.get("conversation")
    if context is not None and not isinstance(context, dict):
        raise RequestInvalid(f"`{EXTENSION}.context` must be an object")
    if documents is not None and not isinstance(documents, list):
        raise RequestInvalid(f"`{EXTENSION}.documents` must be an array")
    if conversation is not None and not isinstance(conversation, str):
        raise RequestInvalid(f"`{EXTENSION}.conversation` must be a string")
    verify = value.get("verify")
    if verify is not None and not isinstance(verify, bool):
        raise RequestInvalid(f"`{EXTENSION}.verify` must be true or false")
    found: list[Document] = []
    for i, document in enumerate(documents or []):
        if not isinstance(document, str | dict):
            raise RequestInvalid(f"`{EXTENSION}.documents[{i}]` must be a string or an object")
        at: Path = (*DOCUMENTS, i)
        yield from prompt.all("document", position + i, document, at)
        found.append(Document(document) if isinstance(document, str) else _document(document, at))
    return Extension(context=context or {}, documents=tuple(found), conversation=conversation, verify=verify)


def _document(value: Mapping[str, object], path: Path) -> Document:
    known: dict[str, str] = {}
    for name in _OWN:
        given = value.get(name)
        if given is None:
            continue
        if name == "id" and isinstance(given, int) and not isinstance(given, bool):
            given = str(given)
        if not isinstance(given, str):
            raise RequestInvalid(f"`{EXTENSION}.documents[{path[-1]}].{name}` must be a string")
        known[name] = given
    rest = {name: inner for name, inner in value.items() if name not in known}
    text = known.pop("text", None)
    return Document("\n".join(found for found, _ in leaves(rest, path)) if text is None else text, **known)


def reworded(document: Document, texts: Mapping[Path, str]) -> Document:
    """Return a document as `read_extension` would have read it, had its strings been these.

    Args:
        document: As it was read.
        texts: Path within the document -> the string there; what is not named stays as it is.
    """
    text = texts.get((), texts.get(("text",)))
    if text is None:
        others = [string for path, string in texts.items() if path[:1] and path[0] not in _OWN and path[-1] != NAME]
        text = "\n".join(others) if others else document.text
    title, url = texts.get(("title",), document.title), texts.get(("url",), document.url)
    return Document(text, title=title, url=url, id=texts.get(("id",), document.id))
