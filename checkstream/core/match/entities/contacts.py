"""How a person is reached: e-mail addresses; telephone numbers stand in `phone`."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from checkstream.core.match.entities.entity import Entity, SpanPair, before
from checkstream.core.match.entities.phone import PHONE, PHONE_LOOSE

# Letters of scripts that put spaces between words; Han, Kana and Thai run on without, and letting them begin an
# address would hold back whole sentences. They may stand in the domain, after the `@`.
_LETTERS = "\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u0dff\u1e00-\u1fff\uac00-\ud7a3"
_DOMAIN_LETTERS = "\u00c0-\u1fff\u3005-\u3007\u3041-\u318e\u31a0-\ua4cf\uac00-\ud7a3\uf900-\ufaff"
_BLANK = "\u2800"
"""The empty pattern of Braille, which shows nothing, and which the folded view takes for a space."""
_BESIDE = f' "{_BLANK}'
"""What may stand between the first part of an address and its sign."""
_EMAIL = (
    rf"[A-Za-z0-9._%+'\-{_LETTERS}]{{1,64}}"
    rf"(?:(?:\"?{_BLANK}{{0,2}}@(?:{_BLANK}{{0,2}}| |\r?\n[ \t>|#]{{0,8}})| @ |%40| ?[\[(](?:at|AT|@)[\])] ?)"
    rf"(?:[A-Za-z0-9{_DOMAIN_LETTERS}\-]+(?:\.| ?[\[(](?:dot|DOT|\.)[\])] ?))+"
    rf"[A-Za-z0-9{_DOMAIN_LETTERS}\-]{{2,}}"
    r"|@\[(?:IPv6:[0-9A-Fa-f:.]{2,45}|[0-9]{1,3}(?:\.[0-9]{1,3}){3})\])"
)
"""An address; of one whose first part is quoted (`"john doe"@example.com`) from the last word in the quotes on."""
# Where spaces stand before the sign, code multiplies matrices (`x @ self.weights`) and prose says where (`us @ a.com`).
_TOPS = """
    com net org edu gov mil info biz name app dev io ai co eu de uk fr es nl be ch pl se dk fi ie pt gr cz hu ro ru ua
    cn jp kr au nz ca mx br ar cl za invalid test example
"""
_COMMON_TOPS = frozenset(_TOPS.split())
_WORDS = """
    me us now here available online live out you them more only and or is it be get find shop buy sale join follow
    visit see check read watch meet event talk work working engineer manager founder cofounder ceo cto team lead
"""
_NO_LOCALS = frozenset(_WORDS.split())
# Ends of file names that follow an `@2x` and the like, and are no top-level domains.
_FILE_ENDS = frozenset({"png", "jpg", "jpeg", "gif", "svg", "webp", "css", "js", "py", "html", "json", "txt", "md"})


_SERVICES = frozenset({"git", "hg"})
"""Accounts of version control (`git@host:group/project`): nobody's address."""


def _is_service(text: str, start: int, local: str) -> bool:
    """Tell whether the whole word before the sign is such an account, of which `local` may be a later part."""
    word = local.casefold()
    return any(
        name == word
        or (name.endswith(word) and text[max(0, start - len(name) + len(word)) : start].casefold() + word == name)
        for name in _SERVICES
    )


def _is_label(label: str) -> bool:
    """Check one label of a domain name: letters, marks and digits, hyphens inside. Source: RFC 5890, 2.3."""
    return (
        0 < len(label) <= 63
        and label[0] != "-"
        and label[-1] != "-"
        and all(char.isalnum() or char == "-" or unicodedata.category(char)[0] == "M" for char in label)
    )


def _is_top(label: str) -> bool:
    """Check a top-level domain: only letters, or a punycode label."""
    folded = label.casefold()
    if folded.startswith("xn--"):
        return len(folded) > 4
    return len(label) >= 2 and folded not in _FILE_ENDS and not any(char.isdigit() or char == "-" for char in label)


def _domain_end(domain: str) -> int:
    """Return how many characters of `domain` (dots written as dots) make a domain name; 0 when it is none."""
    labels = domain.split(".")
    labels[-1] = _one_script(labels[-1])
    while len(labels) > 1 and not _is_top(labels[-1]):
        labels.pop()
        labels[-1] = _one_script(labels[-1])
    size = len(".".join(labels))
    return size if len(labels) > 1 and size <= 253 and all(map(_is_label, labels)) else 0


def _one_script(label: str) -> str:
    """Return the start of `label` that is ASCII, or all of it when it begins otherwise.

    A top-level domain never mixes the two, and in `a@b.com` followed by Chinese nothing else ends the address.
    """
    if not label[:1].isascii():
        return label
    return next((label[:place] for place, char in enumerate(label) if not char.isascii()), label)


def refine_email(text: str, start: int, end: int) -> Sequence[SpanPair]:
    """Return the address in a candidate, without quotes and dots around it."""
    candidate = text[start:end]
    mark = next((i for i, char in enumerate(candidate) if char in "@[("), -1)
    if mark < 0 or candidate[max(0, mark - 1) : mark + 1] == " ":
        mark = candidate.find("%40")
    if mark <= 0:
        return ()
    local = candidate[:mark].rstrip(_BESIDE)
    if candidate[max(0, mark - 1) : mark + 2] == " @ " and (
        local.casefold() in _NO_LOCALS or before(text, start).isalnum()
    ):
        return ()
    first = start + len(local) - len(local.lstrip(".'-%+"))
    stripped = local.strip(".'-%+")
    if _is_service(text, start, stripped):
        return ()
    if not stripped or local[-1] == "." or ".." in stripped:
        return ()
    previous = before(text, start)
    if previous and previous.isalnum() and len(local) == 64:
        return ()  # a local part has 64 characters at most: this is the tail of something longer
    return _with_domain(text, first, start + mark, end)


def skip_email(text: str, start: int, end: int) -> int:
    """Return where the next candidate may begin: those before a sign share its domain, those before `..` have that."""
    mark = next((at for at in range(start, end) if text[at] in "@[("), -1)
    if mark <= start:
        return start + 1
    if not _with_domain(text, mark - 1, mark, end) or text[start:mark].rstrip(_BESIDE)[-1:] == ".":
        return mark
    if text[mark - 1 : mark + 2] == " @ ":  # no candidate within a word is taken before that
        return next((at for at in range(start + 1, mark) if not text[at - 1].isalnum()), mark)
    return max(text.rfind("..", start, mark), start) + 1


def _is_common(domain: str) -> bool:
    return domain.rpartition(".")[2].casefold() in _COMMON_TOPS


def _with_domain(text: str, first: int, mark: int, end: int) -> Sequence[SpanPair]:
    """Return the span from `first` to the end of the domain that follows the at-sign at `mark`."""
    tail = text[mark:end]
    skip = 3 if tail.startswith("%40") else 1
    if tail[0] == "@":
        skip += len(tail) - 1 - len(tail[1:].lstrip(f" \r\n\t>|#{_BLANK}"))
        if tail[skip : skip + 1] == "[":
            return ((first, end),)
    if tail[0] in " [(":
        close = next(i for i, char in enumerate(tail) if char in "])")
        skip = close + 1 + (tail[close + 1 : close + 2] == " ")
    domain = tail[skip:]
    if not any(char in domain for char in "[("):
        length = _domain_end(domain)
        if length and text[mark - 1 : mark + 2] == " @ " and not _is_common(domain[:length]):
            return ()
        return ((first, mark + skip + length),) if length else ()
    spelled = domain
    for dot in ("[dot]", "(dot)", "[DOT]", "(DOT)", "[.]", "(.)"):
        spelled = spelled.replace(f" {dot} ", ".").replace(f" {dot}", ".").replace(f"{dot} ", ".").replace(dot, ".")
    return ((first, end),) if _domain_end(spelled) == len(spelled) else ()


_CAP = 1024
"""64 characters, the sign, 255 characters (RFC 5321, 4.5.3.1), most of them escaped."""

EMAIL = Entity(name="EMAIL", regex=_EMAIL, refine=refine_email, skip=skip_email, group="pii", max_chars=_CAP)

ENTITIES = (EMAIL, PHONE, PHONE_LOOSE)
