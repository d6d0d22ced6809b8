r"""What a place in a text is written in: strings of JSON, one within another, a row of a table, the address of a link.

Models write JSON in prose, in fences, in the arguments of tools, and as a string in other JSON, where the marks of each
string within a string are escaped once more: `"`, `\"`, `\\\"`. What is put in there must be escaped as often, or it
ends the string. Nothing else is known of the text, so JSON is what begins as it does, with a bracket and a string, a
number or another bracket behind it, and goes on so.

Source: RFC 8259; CommonMark 0.31.2, 6.3 (links); GitHub Flavored Markdown, 4.10 (tables).
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from typing import Final

from checkstream.core.match.engine import compile_regex

PLAIN: Final = 0
"""Prose. A greater number says in how many strings of JSON a place stands, one within another."""
ROW: Final = -1
"""A row of a table in Markdown."""
LINK: Final = -2
"""The address of a link in Markdown."""
_MOST_STRINGS: Final = 5
"""One within another; each may double what is escaped in it."""
_IN_JSON: Final = compile_regex(r'\\+[^\\]|["{}\[\],:|()]')
_IN_TEXT: Final = compile_regex(r'\\+[^\\]|["{\[\]|()]')
_BLANK: Final = " \t\r\n"
_BARE: Final = compile_regex(r"[0-9+\-.eEtrufalsn \t\r\n]+")
"""Numbers and words of JSON, and what stands between them."""
_FIGURES: Final = frozenset("0123456789-")
_MIN_FORGOTTEN: Final = 256
_MOST_BACKSLASHES: Final = 1024
"""That are waited with for what comes behind them; those of strings in strings are fewer."""


class _Json:
    """An object or list that is open, outside of its strings."""

    __slots__ = ("expects", "nest", "quoted", "sure")

    def __init__(self, *, quoted: bool) -> None:
        self.nest = 1
        self.expects = True
        """A value or a name may begin here."""
        self.sure = False
        """It goes on as JSON does."""
        self.quoted = quoted
        """A quote stands before its bracket: it may be a string itself, with its own quotes escaped."""


class Quoting:
    """Reads one text as it comes, and tells of each place that is still of interest what it is written in."""

    __slots__ = (
        "_at", "_bracket", "_fresh", "_lead", "_link", "_open", "_places", "_row", "_tail", "_ways", "_work",
    )  # fmt: skip

    def __init__(self) -> None:
        """Start before the text."""
        self._at = 0
        self._tail = ""
        """Backslashes that have come last: what they say is known when more has come."""
        self._open: list[_Json | None] = [None]
        """What is open in the text, in the string that is open in that, in the string in that and so on."""
        self._lead = self._bracket = -1
        """Where a quote has ended that opened nothing, and where a bracket that may end the text of a link."""
        self._fresh = True
        """The line has had nothing but white space so far."""
        self._row = self._link = False
        self._places = array("q", [0])
        self._ways = array("b", [PLAIN])
        self._work = 0

    def way(self, position: int) -> int:
        """Return what the text is written in at a place that has not been forgotten."""
        return self._ways[max(bisect_right(self._places, position) - 1, 0)]

    @property
    def last(self) -> int:
        """What the text is written in where it has come to."""
        return self._ways[-1]

    def take_work(self) -> int:
        """Return what reading has cost since this was last asked (see `match.work`)."""
        work, self._work = self._work, 0
        return work

    def forget(self, position: int) -> None:
        """Drop what is known of places before `position`, when that is enough to be worth the work."""
        count = bisect_right(self._places, position) - 1
        if count > _MIN_FORGOTTEN and 2 * count >= len(self._places):
            del self._places[:count], self._ways[:count]

    def feed(self, text: str) -> None:
        """Take the next piece of the text."""
        text, base = self._tail + text, self._at
        size = len(text.rstrip("\\"))
        size = size if len(text) - size < _MOST_BACKSLASHES else len(text)
        text, self._tail, self._at = text[:size], text[size:], base + size
        at = 0
        while at < size:
            document = self._open[-1]
            if document is not None:
                bare = _BARE.match(text, at)
                if bare is not None:
                    at = self._bare(document, text, at, bare.end())
                    continue
            hit = (_IN_TEXT if document is None else _IN_JSON).search(text, at)
            start, end = (size, size) if hit is None else (hit.start(), hit.end())
            if start > at:  # outside of JSON
                self._open[-1] = None
                self._pass(text[at:start], base + at)
            if hit is not None:
                self._take(text[start:end], base + start, base + end)
                self._work += 1
            at = end

    def _note(self, position: int) -> None:
        """Note what the text is written in from here on."""
        way = len(self._open) - 1 or (LINK if self._link else ROW if self._row else PLAIN)
        if way != self._ways[-1]:
            self._places.append(position)
            self._ways.append(way)

    def _pass(self, run: str, start: int) -> None:
        """Take text that opens and ends nothing but lines, and with white space the address of a link."""
        if self._link and any(char in run for char in _BLANK):
            self._link = False
            self._note(start + min(run.find(char) for char in _BLANK if char in run))
        line = run.rfind("\n")
        if line >= 0:
            if len(self._open) > 1:  # no string goes on over a line
                self._open = [None]
            self._fresh, self._row = True, False
            self._note(start + run.find("\n"))
        if self._fresh and run[line + 1 :].strip():
            self._fresh = False

    def _take(self, mark: str, start: int, end: int) -> None:
        """Take what may open or end something, with the backslashes before it."""
        fresh, self._fresh = self._fresh, False
        match mark[-1], mark[0] == "\\":
            case '"', _:
                self._quote(end - start - 1, start, end)
            case (("{" | "["), False):
                self._begin(start)
            case (("}" | "]"), False):
                self._bracket = end if mark == "]" else -1
                self._end_one()
            case (("," | ":"), False):
                self._go_on()
            case (("n" | "r" | "t"), True):
                pass  # white space of JSON in a string
            case _, escaped:
                self._open[-1] = None
                if not escaped and len(self._open) == 1:
                    self._mark_up(mark, start, end, fresh=fresh)

    def _quote(self, backslashes: int, start: int, end: int) -> None:
        """Take a quote: the backslashes before it tell of which string, in how many others, it is one."""
        level, inside = 1, len(self._open) - 1
        while backslashes % 2:
            level, backslashes = level + 1, backslashes // 2
        document = self._open[-1]
        if level <= inside:
            del self._open[level:]
            document = self._open[-1]
            if document is not None:
                document.expects = False
            self._note(start)
        elif document is None or level > inside + 2:
            self._lead = end
        elif level == inside + 1 and document.expects and inside < _MOST_STRINGS:
            document.sure = True
            self._open.append(None)
            self._note(end)
        elif level == inside + 2 and document.quoted and not document.sure and inside + 1 < _MOST_STRINGS:
            document.sure = True
            self._open[-1:] = [None, document, None]
            self._note(end)
        else:
            self._open[-1] = None
            self._lead = end

    def _begin(self, start: int) -> None:
        document = self._open[-1]
        if document is not None and document.expects:
            document.nest += 1
        else:
            self._open[-1] = _Json(quoted=self._lead == start)

    def _end_one(self) -> None:
        document = self._open[-1]
        if document is not None:
            document.nest -= 1
            document.expects = False
            if not document.nest:
                self._open[-1] = None

    def _go_on(self) -> None:
        document = self._open[-1]
        if document is None or document.expects:
            self._open[-1] = None
        else:
            document.expects = True

    def _bare(self, document: _Json, text: str, start: int, end: int) -> int:
        """Take numbers and words of JSON, and what stands between them; return how far they go."""
        said = text[start:end].strip(_BLANK)
        if said and not document.sure and said[0] not in _FIGURES:
            self._open[-1] = None
            end = text.index(said[0], start)
        elif said:
            document.sure, document.expects = True, False
        if end > start:
            self._pass(text[start:end], self._at - len(text) + start)
        return end

    def _mark_up(self, mark: str, start: int, end: int, *, fresh: bool) -> None:
        """Take a mark of Markdown."""
        if mark == "|":
            self._row = self._row or fresh
        else:
            self._link = mark == "(" and self._bracket == start
        self._note(end if mark != ")" else start)
