"""Whose certificate is it? Pure; that it is good, TLS has verified.

A pattern is one of

    spiffe://example.org/ns/shop/sa/web     the SPIFFE id; with `/*` at its end, every id below
    dns:app1.example.com                    a name of a host among the alternative names
    CN=app1, OU=Shop                        attributes of the subject, each of which it has once, just so

Source: RFC 5280 4.1.2.6 and 4.2.1.6; SPIFFE X.509-SVID (one URI among the alternative names).
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, Literal
from urllib.parse import urlsplit

import msgspec

_ATTRIBUTES: Mapping[str, str] = {
    "CN": "commonName",
    "O": "organizationName",
    "OU": "organizationalUnitName",
    "C": "countryName",
    "ST": "stateOrProvinceName",
    "L": "localityName",
    "UID": "userId",
    "DC": "domainComponent",
    "serialNumber": "serialNumber",
}
_SPIFFE = "spiffe://"
_OF_IDS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_/")


class Pattern(msgspec.Struct, frozen=True):
    """What is to stand in a certificate."""

    kind: Literal["spiffe", "below", "dns", "subject"]
    values: tuple[tuple[str, str], ...]
    """Attributes of the subject with their values; of others one pair, whose second is the name."""

    def takes(self, shown: Mapping[str, Any], now: float) -> bool:
        """Tell whether a certificate is meant.

        Args:
            shown: What `ssl` says of it.
            now: Seconds since 1970: a connection may outlive its certificate.
        """
        if now >= ssl.cert_time_to_seconds(shown["notAfter"]):
            return False
        if self.kind == "subject":
            held = [pair for part in shown.get("subject", ()) for pair in part]
            return all([value for at, value in held if at == name] == [wanted] for name, wanted in self.values)
        wanted = self.values[0][1]
        names: Sequence[tuple[str, str]] = shown.get("subjectAltName", ())
        if self.kind == "dns":
            return any(kind == "DNS" and name.lower() == wanted for kind, name in names)
        ids = [name for kind, name in names if kind == "URI" and name.lower().startswith(_SPIFFE)]
        if len(ids) != 1 or not _is_id(ids[0]):  # two would be two callers
            return False
        return ids[0] == wanted if self.kind == "spiffe" else ids[0].startswith(f"{wanted}/")


def read_pattern(text: str) -> Pattern:
    """Read a pattern.

    Raises:
        ValueError: it is none; says why.
    """
    if text.startswith(_SPIFFE):
        below = text.endswith("/*")
        named = text.removesuffix("/*")
        if not _is_id(named) and not (below and _is_id(f"{named}/x")):
            raise ValueError(f"`{text[:200]}` is no SPIFFE id; write `spiffe://example.org/ns/shop/sa/web`")
        return Pattern("below" if below else "spiffe", (("", named),))
    if text.startswith("dns:"):
        name = text.removeprefix("dns:").lower()
        if not name or "*" in name or not set(name) <= _OF_IDS - {"/"}:
            raise ValueError(f"`{text[:200]}` is no name of a host; write `dns:app1.example.com`")
        return Pattern("dns", (("", name),))
    pairs = []
    for part in text.split(","):
        name, equals, value = part.strip().partition("=")
        if not equals or name not in _ATTRIBUTES or not value:
            known = ", ".join(_ATTRIBUTES)
            raise ValueError(
                f"`{text[:200]}` says of no certificate what stands in it; write `spiffe://...`, `dns:...`, or "
                f"attributes of the subject such as `CN=app1, O=Shop` (known: {known})"
            )
        pairs.append((_ATTRIBUTES[name], value))
    if len({name for name, _ in pairs}) < len(pairs):
        raise ValueError(f"`{text[:200]}` names an attribute twice; name it once")
    return Pattern("subject", tuple(sorted(pairs)))


def require_apart(patterns: Mapping[str, Pattern]) -> None:
    """Hold the patterns of some to no certificate being two people's, as far as patterns tell.

    Args:
        patterns: `name -> what is to stand in the certificate`.

    Raises:
        ValueError: one takes all that another takes; names both.
    """
    owners: dict[Pattern, str] = {}
    for name, pattern in patterns.items():
        if (other := owners.setdefault(pattern, name)) != name:
            raise ValueError(f"`{other}` and `{name}` have one `certificate`; give each their own")
    for name, pattern in patterns.items():
        other = next((owners[wider] for wider in _wider(pattern) if wider in owners), name)
        if other != name:
            raise ValueError(f"the `certificate` of `{other}` takes those of `{name}`, too; write it more narrowly")


def _wider(pattern: Pattern) -> Iterator[Pattern]:
    """Yield the patterns that take all that one takes, and more."""
    if pattern.kind == "subject":
        for size in range(1, len(pattern.values)):
            yield from (Pattern("subject", some) for some in combinations(pattern.values, size))
    elif pattern.kind in ("spiffe", "below"):
        above = pattern.values[0][1]
        while (above := above.rpartition("/")[0]) != _SPIFFE[:-1]:
            yield Pattern("below", (("", above),))


def _is_id(text: str) -> bool:
    """Tell whether a text is a SPIFFE id: a trust domain and a path without `.`, `..` and empty parts."""
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    if parts.scheme != "spiffe" or parts.query or parts.fragment or not parts.path.startswith("/"):
        return False
    steps = parts.path.split("/")[1:]
    domain = parts.netloc
    return (
        bool(domain)
        and domain == domain.lower()
        and set(domain) <= _OF_IDS - {"/"}
        and all(step not in {"", ".", ".."} and set(step) <= _OF_IDS for step in steps)
    )
