"""Files that stand within a request, as data URLs or base64: which of them are text, and how an edited one is written.

What decodes to text is text, whatever its media type says: some servers look at the content alone. Source: RFC 2397
(data URLs), RFC 4648 (base64), OpenAI API reference (`file_data` of file inputs).
"""

from __future__ import annotations

import base64
import binascii
import codecs
from collections.abc import Generator, Sequence
from urllib.parse import quote_from_bytes, unquote_to_bytes

import msgspec

from checkstream.errors import RequestInvalid

_HEAD_CHARS = 4096
"""Read of a file before all of it is: most that is no text shows it there."""
_SCHEME = "data:"
_MARK = ";base64"
_STANDARD = str.maketrans("-_", "+/", " \t\r\n=")
_BARE = str.maketrans("", "", "+/=_-\r\n")
_CHARSETS = frozenset({"utf-8", "ascii", "utf-16", "utf-16-le", "utf-16-be", "iso8859-1", "cp1252"})
_ANY = "any"
"""In place of a charset: it is text in one that nobody names."""
_OLDER = ("cp1252", "iso8859-1")
"""Tried where nothing else fits: what spreadsheets write that do not write UTF-8. The second reads any bytes."""
_SHOWS_BYTES = 128
"""So many without a control character are no picture or archive: of random ones, one in a million."""
_MEDIA_STARTS = (
    b"\x89PNG\r\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a", b"II*\0", b"MM\0*", b"OggS", b"fLaC", b"ID3", b"\xff\xfb",
    b"\xff\xf3", b"\xff\xf2", b"\xff\xf1", b"\xff\xf9", b"\x1aE\xdf\xa3", b"\0\0\x01\0",
)  # fmt: skip
"""How images and sounds begin: PNG, JPEG, GIF, TIFF, Ogg, FLAC, MP3, AAC, WebM, ICO."""
_BOXES = (b"ftyp",)
"""What stands at the fifth byte of MP4, M4A, HEIC and AVIF."""
_RIFF_FORMS = (b"WEBP", b"WAVE", b"AVI ")
_START_CHARS = 64
"""Of base64, by which a picture or a sound is told."""
_TEXT_TYPES = ("text/", "application/json", "application/xml", "application/yaml", "application/javascript")
_TEXT_SUFFIXES = ("+json", "+xml", "+yaml")
_BINARY_STARTS = ("%PDF-",)
"""Formats that can be made of ASCII alone and still say something else than they show."""
_NO_CONTROL = bytes(set(range(256)) - set(range(32)) | set(b"\t\n\v\f\r\x1b"))
_STEP_CHARS = 262_144
"""Of base64 that are read in a step."""
_MAX_TEXT_CHARS = 1_500_000
"""Of a file of text, encoded: a prompt has not that many characters."""


class Encoding(msgspec.Struct, frozen=True):
    """How a text stands encoded in a string."""

    head: str
    """What stands before the data: `data:text/plain;base64,`; empty for base64 alone."""
    base64: bool = True
    """False: percent-encoded."""

    def written(self, text: str) -> str:
        """Return the string that carries `text`, in UTF-8."""
        data = text.encode()
        return self.head + (base64.b64encode(data).decode() if self.base64 else quote_from_bytes(data, safe=""))


def is_data_url(value: str) -> bool:
    """Tell whether a string says that it carries data."""
    return value[: len(_SCHEME)].casefold() == _SCHEME


def is_media(value: str) -> bool:
    """Tell whether a data URL or base64 begins as a picture, a sound or a film does."""
    at = value.find(",") + 1 if is_data_url(value) else 0
    head = _bytes(value[at : at + _START_CHARS].translate(_STANDARD)) or b""
    return head.startswith(_MEDIA_STARTS) or head[4:8] in _BOXES or (head[:4] == b"RIFF" and head[8:12] in _RIFF_FORMS)


def looks_encoded(value: str) -> Generator[None, None, bool]:
    """Tell, in steps, whether a string can be base64."""
    some = False
    for at in range(0, len(value), _STEP_CHARS):
        bare = value[at : at + _STEP_CHARS].translate(_BARE)
        if bare and not (bare.isascii() and bare.isalnum()):
            return False
        some = some or bool(bare)
        if len(value) > _STEP_CHARS:
            yield
    return some


def reading_file(value: str) -> Generator[None, None, tuple[str, Encoding] | None]:
    """Return, in steps, the text that a data URL or base64 carries, and how; None when that is no text.

    Raises:
        RequestInvalid: it is text of more characters than are read.
    """
    if not is_data_url(value):
        found = yield from _decoded(value, 0, "")
        return None if found is None else (found[0], Encoding(""))
    comma = value.find(",")
    if comma < 0:
        return None
    kind = value[len(_SCHEME) : comma]
    in_base64 = _MARK in kind.casefold()
    if in_base64 and is_media(value):
        return None
    charset = _charset(kind) or (_ANY if _is_text_type(kind) else "")
    found = yield from (_decoded(value, comma + 1, charset) if in_base64 else _unquoted(value[comma + 1 :], charset))
    if found is None:
        return None
    text, used = found
    if used != "utf-8":  # written anew it is UTF-8, and says so
        named = kind.split(";")
        kept = [
            named[0],
            *(each for each in named[1:] if not each.strip().casefold().startswith(("charset", "base64"))),
        ]
        kind = ";".join([*kept, "charset=utf-8", *(["base64"] if in_base64 else [])])
    return text, Encoding(f"{_SCHEME}{kind},", in_base64)


def _is_text_type(kind: str) -> bool:
    """Tell whether a data URL says that it carries text: then it is read as such, whatever bytes stand in it."""
    said = kind.partition(";")[0].strip().casefold()
    return said.startswith(_TEXT_TYPES) or said.endswith(_TEXT_SUFFIXES)


def _charset(kind: str) -> str:
    """Return the encoding that a media type names, by Python's name; empty: none that is known."""
    for each in kind.split(";")[1:]:
        name, _, value = each.partition("=")
        if name.strip().casefold() == "charset":
            try:
                found = codecs.lookup(value.strip().strip('"')[:40]).name
            except (LookupError, ValueError):
                return ""
            return found if found in _CHARSETS else ""
    return ""


def _decoded(value: str, start: int, charset: str) -> Generator[None, None, tuple[str, str] | None]:
    """Return the text that stands in base64 from `start` on, and its charset."""
    if len(value) - start > _HEAD_CHARS:
        head = _bytes(value[start : start + _HEAD_CHARS].translate(_STANDARD))
        if head is None or _text([head], charset, ended=False) is None:
            return None
        _look_whether_long(value)
        yield
    data = value[start:]
    pieces, rest = list[bytes](), ""
    for at in range(0, len(data), _STEP_CHARS):
        bare = rest + data[at : at + _STEP_CHARS].translate(_STANDARD)
        whole = len(bare) if at + _STEP_CHARS >= len(data) else len(bare) // 4 * 4
        rest = bare[whole:]
        piece = _bytes(bare[:whole])
        if piece is None:
            return None
        pieces.append(piece)
        if len(data) > _STEP_CHARS:
            yield
    return _text(pieces, charset)


def _unquoted(data: str, charset: str) -> Generator[None, None, tuple[str, str] | None]:
    """Return the text that stands percent-encoded, and its charset."""
    _look_whether_long(data)
    pieces, at = list[bytes](), 0
    while at < len(data):
        end = at + _STEP_CHARS // 16
        part = data.rfind("%", end - 2, end)  # no escape is parted
        end = part if part > at else end
        pieces.append(unquote_to_bytes(data[at:end]))
        at = end
        if at < len(data):
            yield
    return _text(pieces, charset)


def _look_whether_long(data: str) -> None:
    """Refuse more than is read: what is no text is long, too, but shows it at once."""
    if len(data) > _MAX_TEXT_CHARS:
        raise RequestInvalid(f"a file of text has more than {_MAX_TEXT_CHARS} characters as it is encoded; send less")


def _bytes(bare: str) -> bytes | None:
    """Read base64 in the standard alphabet, without line ends, as leniently as servers do: with or without padding."""
    if len(bare) % 4 == 1:
        bare = bare[:-1]
    try:
        return base64.b64decode(bare + "=" * (-len(bare) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None


def _text(pieces: Sequence[bytes], charset: str, *, ended: bool = True) -> tuple[str, str] | None:
    """Return what bytes say and the charset in which they do; None when they are no text."""
    data = b"".join(pieces)
    marked = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    named = "utf-8" if charset in ("", _ANY) else charset
    for name in dict.fromkeys(("utf-16" if marked else "utf-8", named, *_OLDER)):
        if name in _OLDER and charset not in (name, _ANY) and not _is_mostly_ascii(data):
            continue
        try:
            text = codecs.getincrementaldecoder(name)().decode(data, final=ended)
        except UnicodeDecodeError:
            continue
        controls = charset != _ANY and text.encode("utf-8", "replace").translate(None, _NO_CONTROL)
        if text and not controls and not text.lstrip("\ufeff").startswith(_BINARY_STARTS):
            return text, name
    return None


def _is_mostly_ascii(data: bytes) -> bool:
    """Tell whether bytes can be text of an older charset; a few that can be anything have to be ASCII for most of it.

    Names of files that happen to be base64 are such.
    """
    return len(data) >= _SHOWS_BYTES or sum(byte < 128 for byte in data) * 4 >= len(data) * 3
