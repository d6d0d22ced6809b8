r"""Read RE2 syntax into a tree, so that a pattern's companion and width come from our own reading of it.

What is accepted is a subset of RE2 (github.com/google/re2/wiki/Syntax); everything that RE2 refuses,
and everything for which no companion can be built, is refused with its position. Meaning of classes,
as the engine gives it for text:

    \w   `_`, any letter, any decimal digit (Unicode)      \d   any decimal digit (Unicode)
    \s   ASCII white space and any separator (Unicode)     \b   between ASCII word characters and others
    .    any character but newline; with (?s) any          $    the text's end, with (?m) also a line's end
    (?i) simple case folding, one code point to one        [[:alpha:]] and its like are ASCII
"""

from __future__ import annotations

from checkstream.core.match.tree import Alternation, Assertion, Atom, Concat, Node, Repeat, width
from checkstream.errors import PatternSyntaxError

MAX_REGEX_CHARS = 4096
MAX_DEPTH = 50
MAX_REPEAT = 1000
"""RE2's own limit on `{n,m}`."""

_ESCAPES = {"a": "\a", "f": "\f", "t": "\t", "n": "\n", "r": "\r", "v": "\v"}
_PERL = "dDwWsS"
_POSIX = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": "\\x00-\\x7f",
    "blank": "\\x09\\x20",
    "cntrl": "\\x00-\\x1f\\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": "\\x20-~",
    "punct": "!-\\/:-@\\[-`\\{-~",
    "space": "\\x09-\\x0d\\x20",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}


class _Flags:
    """Flags in force: case, multi-line, dot matches newline."""

    __slots__ = ("fold", "lines", "newline")

    def __init__(self, *, fold: bool = False, lines: bool = False, newline: bool = False) -> None:
        self.fold = fold
        self.lines = lines
        self.newline = newline

    def copy(self) -> _Flags:
        return _Flags(fold=self.fold, lines=self.lines, newline=self.newline)


def parse(regex: str) -> Node:
    """Read a regular expression.

    Args:
        regex: RE2 syntax, at most `MAX_REGEX_CHARS` characters.

    Raises:
        PatternSyntaxError: not RE2, or a form for which no companion can be built.
    """
    if len(regex) > MAX_REGEX_CHARS:
        raise PatternSyntaxError(regex, MAX_REGEX_CHARS, f"longer than {MAX_REGEX_CHARS} characters; split it")
    for position, char in enumerate(regex):
        if "\ud800" <= char <= "\udfff":
            raise PatternSyntaxError(regex, position, "a lone surrogate is not a character; remove it")
    reader = _Reader(regex)
    node = reader.alternation(_Flags(), depth=0)
    if reader.at < len(regex):
        raise reader.fault("`)` without its `(`; write `\\)` for the character")
    return node


class _Reader:
    """Recursive descent over one expression; one method per rule of the grammar."""

    def __init__(self, regex: str) -> None:
        self.regex = regex
        self.at = 0

    def fault(self, reason: str, at: int | None = None) -> PatternSyntaxError:
        return PatternSyntaxError(self.regex, self.at if at is None else at, reason)

    def peek(self, length: int = 1) -> str:
        return self.regex[self.at : self.at + length]

    def take(self, expected: str) -> bool:
        if self.regex.startswith(expected, self.at):
            self.at += len(expected)
            return True
        return False

    def alternation(self, flags: _Flags, *, depth: int) -> Node:
        """Read `alternation = sequence *( "|" sequence )`. A flag group holds to the enclosing group's end."""
        if depth > MAX_DEPTH:
            raise self.fault(f"groups nested deeper than {MAX_DEPTH}; flatten them")
        options = [self.sequence(flags, depth=depth)]
        while self.take("|"):
            options.append(self.sequence(flags, depth=depth))
        return options[0] if len(options) == 1 else Alternation(tuple(options))

    def sequence(self, flags: _Flags, *, depth: int) -> Node:
        """Read `sequence = *( item [ quantifier ] )`."""
        parts: list[Node] = []
        while (char := self.peek()) and char not in "|)":
            start = self.at
            if char in "*+?":
                raise self.fault(f"`{char}` has nothing to repeat; write `\\{char}` for the character")
            items = self.item(flags, depth=depth)
            if len(items) == 1 and isinstance(items[0], Concat) and self._quantifier(probe=True) is None:
                items = list(items[0].parts)  # a group that is not repeated stands in line
            elif items:
                items[-1] = self.quantified(items[-1], start)
            elif self._quantifier(probe=True) is not None:
                raise self.fault("a repetition has nothing to repeat", start)
            parts.extend(items)
        return parts[0] if len(parts) == 1 else Concat(tuple(parts))

    def quantified(self, node: Node, start: int) -> Node:
        r"""Read `quantifier = ( "*" / "+" / "?" / "{" n [ "," [ m ] ] "}" ) [ "?" ]` after `node`."""
        at = self.at
        bounds = self._quantifier()
        if bounds is None:
            return node
        low, high = bounds
        if width(node)[1] == 0:
            raise self.fault("a repetition of something that matches no characters; remove it", start)
        if max(low, high or 0) > MAX_REPEAT:
            raise self.fault(f"repeats more than {MAX_REPEAT} times; use `max_chars` with an open repetition", at)
        if high is not None and low > high:
            raise self.fault(f"least `{low}` is more than greatest `{high}`", at)
        lazy = self.take("?")
        if self._quantifier(probe=True) is not None:
            raise self.fault("a repetition of a repetition; put a group around the first")
        return Repeat(node, low, high, lazy)

    def _quantifier(self, *, probe: bool = False) -> tuple[int, int | None] | None:
        start = self.at
        found: tuple[int, int | None] | None = None
        if self.take("*"):
            found = 0, None
        elif self.take("+"):
            found = 1, None
        elif self.take("?"):
            found = 0, 1
        elif self.take("{"):
            low = self._digits()
            if low and self.take("}"):
                found = int(low), int(low)
            elif low and self.take(","):
                high = self._digits()
                if self.take("}"):
                    found = int(low), int(high) if high else None
        if found is None or probe:  # `{` that opens no repetition is the character itself
            self.at = start
        return found

    def _digits(self) -> str:
        start = self.at
        while self.peek() and self.peek() in "0123456789" and self.at - start < 6:
            self.at += 1
        return self.regex[start : self.at]

    def item(self, flags: _Flags, *, depth: int) -> list[Node]:
        r"""Read `item = group / class / escape / "." / "^" / "$" / literal`; no node for a bare flag group."""
        char = self.peek()
        if char == "(":
            return self.group(flags, depth=depth)
        if char == "[":
            return [Atom(self.char_class(), flags.fold)]
        if char == "\\":
            return self.escape(flags)
        self.at += 1
        if char == ".":
            return [Atom("(?s:.)" if flags.newline else "[^\\n]")]
        if char == "^":
            return [Assertion("(?m:^)" if flags.lines else "\\A")]
        if char == "$":
            return [Assertion("(?m:$)" if flags.lines else "\\z")]
        return [literal(char, fold=flags.fold)]

    def group(self, flags: _Flags, *, depth: int) -> list[Node]:
        """Read `group = "(" [ "?:" / "?P<" name ">" / "?" flags [ ":" ] ] alternation ")"`."""
        start = self.at
        self.at += 1
        inner = flags.copy()
        if self.take("?"):
            if self.take("P<") or (self.peek(2) not in {"<=", "<!"} and self.take("<")):
                self._name(start)
            elif self._flag_group(flags, inner, start):
                return []
        node = self.alternation(inner, depth=depth + 1)
        if not self.take(")"):
            raise self.fault("`(` without its `)`; write `\\(` for the character", start)
        return [node]

    def _name(self, start: int) -> None:
        end = self.regex.find(">", self.at)
        name = self.regex[self.at : end] if end >= 0 else ""
        if not name.isidentifier():
            raise self.fault("a group name is letters, digits and `_`, closed by `>`", start)
        self.at = end + 1

    def _flag_group(self, outer: _Flags, inner: _Flags, start: int) -> bool:
        """Read `[ims]* [ "-" [ims]+ ] ( ":" / ")" )`; True: it was `(?i)` and holds for the rest of `outer`."""
        value = True
        seen = False
        while char := self.peek():
            if char in "ims":
                seen = True
                name = {"i": "fold", "m": "lines", "s": "newline"}[char]
                setattr(inner, name, value)
            elif char == "-" and value:
                value, seen = False, False
            elif char in ":)" and (seen or (char == ":" and value)):
                self.at += 1
                if char == ")":
                    outer.fold, outer.lines, outer.newline = inner.fold, inner.lines, inner.newline
                return char == ")"
            else:
                break
            self.at += 1
        if self.regex.startswith(("(?=", "(?!", "(?<=", "(?<!"), start):
            raise self.fault("look-around is not supported; match the context too, or use `\\b`", start)
        raise self.fault(f"unknown group `{self.regex[start : self.at + 1]}`; flags are i, m, s", start)

    def escape(self, flags: _Flags) -> list[Node]:
        """Read what a backslash opens outside a class."""
        start = self.at
        char = self.peek(2)[1:]
        if char in _PERL and char:
            self.at += 2
            return [Atom(f"\\{char}")]
        if char in {"p", "P"}:
            return [Atom(self._unicode_class(), flags.fold)]
        if char in {"b", "B", "A", "z"}:
            self.at += 2
            return [Assertion(f"\\{char}")]
        if char == "Z":
            self.at += 2
            return [Assertion("\\z")]
        if char == "Q":
            end = self.regex.find("\\E", start)
            quoted = self.regex[start + 2 : end if end >= 0 else None]
            self.at = end + 2 if end >= 0 else len(self.regex)
            return [literal(each, fold=flags.fold) for each in quoted]
        return [literal(self._escaped_char(), fold=flags.fold)]

    def _escaped_char(self) -> str:
        r"""Read an escape that stands for one character: `\n`, `\x41`, `\x{1F600}`, `\.`."""
        start = self.at
        self.at += 1
        char = self.peek()
        self.at += 1
        if not char:
            raise self.fault("ends in a backslash; write `\\\\` for the character", start)
        if char == "x":
            return self._hex(start)
        if char in _ESCAPES:
            return _ESCAPES[char]
        if char.isdigit():
            raise self.fault(f"`\\{char}`: back-references and octal escapes are not supported; use `\\x..`", start)
        if char.isalnum() or ord(char) > 127:
            raise self.fault(f"unknown escape `\\{char}`", start)
        return char

    def _hex(self, start: int) -> str:
        if self.take("{"):
            end = self.regex.find("}", self.at)
            digits = self.regex[self.at : end] if end >= 0 else ""
            self.at = end + 1
        else:
            digits = self.peek(2)
            self.at += 2
            digits = digits if len(digits) == 2 else ""
        valid = bool(digits) and len(digits) <= 8 and all(digit in "0123456789abcdefABCDEF" for digit in digits)
        code = int(digits, 16) if valid else -1
        if not 0 <= code <= 0x10FFFF or 0xD800 <= code <= 0xDFFF:
            raise self.fault("a hex escape is `\\x41` or `\\x{1F600}`, a Unicode character", start)
        return chr(code)

    def _unicode_class(self) -> str:
        r"""Read `\pN`, `\p{Greek}`, `\p{^Greek}` and their negations; the engine knows the names."""
        start = self.at
        self.at += 2
        name = self.peek()
        self.at += 1
        if name == "{":
            end = self.regex.find("}", self.at)
            name = self.regex[self.at : end] if end >= 0 else ""
            self.at = end + 1
        if not name.removeprefix("^").replace("_", "a").isalpha() or not name.isascii():
            raise self.fault("a Unicode class is `\\pL` or `\\p{Greek}`", start)
        return f"{self.regex[start : start + 2]}{{{name}}}"

    def char_class(self) -> str:
        """Read `"[" [ "^" ] *( range / char / class ) "]"` and return it in canonical form."""
        start = self.at
        self.at += 1
        parts = ["[^" if self.take("^") else "["]
        first = True
        while first or self.peek() != "]":
            if not self.peek():
                raise self.fault("`[` without its `]`; write `\\[` for the character", start)
            parts.append(self._class_item())
            first = False
        self.at += 1
        return "".join(parts) + "]"

    def _class_item(self) -> str:
        start = self.at
        if self.peek(2) == "[:":
            return self._posix_class()
        escape = self.peek(2)[1:] if self.peek() == "\\" else ""
        if escape in {"p", "P"}:
            return self._unicode_class()
        if escape and escape in _PERL:
            self.at += 2
            if escape in "WS":
                raise self.fault(f"`\\{escape}` inside a class is not supported; list what is meant", start)
            return {"d": "\\p{Nd}", "D": "\\P{Nd}", "w": "_\\p{L}\\p{Nd}", "s": "\\s"}[escape]
        low = self._class_char()
        if self.peek() == "-" and self.peek(2) not in {"-]", "-"}:
            self.at += 1
            if self.peek(2) == "[:" or (self.peek() == "\\" and self.peek(2)[1:] in set("pP" + _PERL)):
                raise self.fault("a range needs a character at both ends; write `\\-` for the hyphen", start)
            high = self._class_char()
            if low > high:
                raise self.fault(f"range `{low}-{high}` runs backwards", start)
            return f"{_class_literal(low)}-{_class_literal(high)}"
        return _class_literal(low)

    def _class_char(self) -> str:
        char = self.peek()
        if char == "\\":
            return "\b" if self.take("\\b") else self._escaped_char()
        if not char:
            raise self.fault("`[` without its `]`; write `\\[` for the character")
        self.at += 1
        return char

    def _posix_class(self) -> str:
        start = self.at
        end = self.regex.find(":]", start)
        name = self.regex[start + 2 : end] if end >= 0 else ""
        members = _POSIX.get(name.removeprefix("^"))
        if members is None:
            raise self.fault(f"unknown class `[:{name[:20]}:]`", start)
        if name.startswith("^"):
            raise self.fault(f"`[:{name}:]` is not supported; negate the whole class", start)
        self.at = end + 2
        return members


def literal(char: str, *, fold: bool) -> Atom:
    """Return the atom for one character; only cased characters keep the flag."""
    return Atom(_escaped(char, "\\.+*?()|[]{}^$"), fold if char.lower() != char or char.upper() != char else None)


def _class_literal(char: str) -> str:
    return _escaped(char, "\\]^[-")


def _escaped(char: str, special: str) -> str:
    if char in special:
        return f"\\{char}"
    if char < " " or char == "\x7f":
        return f"\\x{ord(char):02x}"
    return char
