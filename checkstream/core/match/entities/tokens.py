"""Keys and tokens that a vendor marks with a prefix of its own.

Prefix and length make nearly all of them certain; where the vendor defines a check (GitHub, npm) a right check
proves a token, and a wrong one leaves it to how random the text is, since a mistyped secret is still told.
"""

from __future__ import annotations

from collections.abc import Sequence
from zlib import crc32

from checkstream.core.match.entities.checksums import crc32_base62
from checkstream.core.match.entities.entity import MARKS, Entity, Refine, SpanPair, before, whole_if, without_marks
from checkstream.core.match.entities.randomness import entropy_bits, is_random, is_stand_in

_CAP = 1024
"""For tokens whose length the vendor leaves open: what runs on to here is one, or no text that anyone reads."""


_LINE = f"{MARKS}_{MARKS}"
"""An underscore of a prefix, with emphasis beside it."""
_CHECKED_CHARS = 36
"""Of a token whose last characters check the others; what stands right behind them may be the next word."""


def _begins(text: str, start: int) -> bool:
    """Say whether a token may begin at `start`: not in the middle of a word (`task-...` holds no `sk-...`)."""
    previous = before(text, start)
    return not (previous.isalnum() and previous.isascii()) and previous != "-"


def _goes_on(text: str, end: int) -> bool:
    """Say whether the token's own alphabet goes on after `end`."""
    following = text[end : end + 1]
    return following.isascii() and following.isalnum()


def _random_after(prefixes: Sequence[str], *, bits: float, need_digit: bool = True, glued: bool = True) -> Refine:
    """Return a validator: the rest after one of `prefixes` is random.

    `glued`: the prefix is no end of any word, so that one may stand right before it (`idglpat-...`).
    """

    def refine(text: str, start: int, end: int) -> Sequence[SpanPair]:
        token = text[start:end].rstrip("-_.")
        if not (glued or _begins(text, start)) or (_goes_on(text, end) and token == text[start:end]):
            return ()
        plain = without_marks(token)
        rest = next((plain[len(prefix) :] for prefix in prefixes if plain.startswith(prefix)), plain)
        return whole_if(is_random(rest, bits=bits, need_digit=need_digit), start, start + len(token))

    return refine


def has_github_check(token: str) -> bool:
    """Check the last six characters of a GitHub-style token against the CRC-32 of the thirty before.

    Source: GitHub engineering blog, "Behind GitHub's new authentication token formats", checksum.
    """
    secret = token.rpartition("_")[2]
    return secret[-6:] == crc32_base62(crc32(secret[:-6].encode("ascii")), 6)


def refine_checked(text: str, start: int, end: int) -> Sequence[SpanPair]:
    """Accept a token with a right check, or one that looks random all the same."""
    token = without_marks(text[start:end])
    if _goes_on(text, end):
        return ()
    secret = token.partition("_")[2]
    if token.startswith("github_pat_"):
        return whole_if(is_random(secret, bits=3.5), start, end)
    whole = token[: len(token) - len(secret) + _CHECKED_CHARS]
    return whole_if(has_github_check(whole) or is_random(secret, bits=3.8), start, end)


def refine_openai(text: str, start: int, end: int) -> Sequence[SpanPair]:
    """Accept `sk-` keys of OpenAI; those of other vendors with the same start are theirs."""
    token = text[start:end]
    if token.startswith(("sk-ant-", "sk-or-")):
        return ()
    named = ("sk-proj-", "sk-svcacct-", "sk-admin-", "sk-None-")
    return _random_after((*named, "sk-"), bits=3.3, glued=token.startswith(named))(text, start, end)


def refine_slack(text: str, start: int, end: int) -> Sequence[SpanPair]:
    """Accept a Slack token or the address of a webhook, which is itself a secret."""
    candidate = text[start:end]
    if candidate.startswith("http"):
        path = candidate.partition("slack.com/")[2].partition("/")[2]
        return whole_if(
            path.count("/") >= 2 and len(path) >= 20 and not is_stand_in(path.rpartition("/")[2]), start, end
        )
    token = candidate.rstrip("-")
    good = any(char.isdigit() for char in token) and not is_stand_in(token[5:])
    return whole_if(good and entropy_bits(token[5:]) >= 2.5, start, start + len(token))


GITHUB_TOKEN = Entity(
    name="GITHUB_TOKEN",
    regex=(
        rf"gh[pousr]{_LINE}[A-Za-z0-9]{{36,64}}"
        rf"|github{_LINE}pat{_LINE}[A-Za-z0-9]{{22}}{_LINE}[A-Za-z0-9]{{59}}"
    ),
    refine=refine_checked,
    group="secret",
)
GITLAB_TOKEN = Entity(
    name="GITLAB_TOKEN",
    regex=(
        r"(?:gl(?:pat|dt|ptt|ft|rt|imt|oas|soat|cbt|agent|ffct)-|GR1348941)[A-Za-z0-9_\-]{20,}"
        r"(?:\.[0-9a-z]{2}\.[0-9a-z]{7,9})?"
    ),
    refine=_random_after(
        (
            "glpat-",
            "gldt-",
            "glptt-",
            "glft-",
            "glrt-",
            "glimt-",
            "gloas-",
            "glsoat-",
            "glcbt-",
            "glagent-",
            "GR1348941",
        ),
        bits=3.0,
        need_digit=False,
    ),
    group="secret",
    max_chars=_CAP,
)
SLACK_TOKEN = Entity(
    name="SLACK_TOKEN",
    regex=(
        r"xox[abeoprsc]-(?:[0-9]{1,3}-)?[A-Za-z0-9\-]{10,}|xapp-[0-9]-[A-Za-z0-9\-]{20,}"
        r"|https://hooks\.slack(?:-gov)?\.com/(?:services|workflows|triggers)/[A-Za-z0-9+/_\-]{20,}"
    ),
    refine=refine_slack,
    group="secret",
    max_chars=_CAP,
)
STRIPE_KEY = Entity(
    name="STRIPE_KEY",
    regex=(rf"(?:sk|rk){_LINE}(?:live|test){_LINE}[0-9A-Za-z]{{10,}}|whsec{_LINE}[A-Za-z0-9+/]{{24,64}}={{0,2}}"),
    refine=_random_after(("sk_live_", "sk_test_", "rk_live_", "rk_test_", "whsec_"), bits=3.0, glued=False),
    group="secret",
    max_chars=_CAP,
)
OPENAI_KEY = Entity(
    name="OPENAI_KEY", regex=r"sk-[A-Za-z0-9_\-]{20,}", refine=refine_openai, group="secret", max_chars=_CAP
)
ANTHROPIC_KEY = Entity(
    name="ANTHROPIC_KEY",
    regex=r"sk-ant-[A-Za-z0-9_\-]{24,}",
    refine=_random_after(("sk-ant-api03-", "sk-ant-admin01-", "sk-ant-"), bits=3.3),
    group="secret",
    max_chars=_CAP,
)
HUGGINGFACE_TOKEN = Entity(
    name="HUGGINGFACE_TOKEN",
    regex=rf"(?:hf|api{_LINE}org){_LINE}[A-Za-z0-9]{{30,40}}",
    refine=_random_after(("hf_", "api_org_"), bits=3.3, need_digit=False, glued=False),
    group="secret",
)
NPM_TOKEN = Entity(name="NPM_TOKEN", regex=rf"npm{_LINE}[A-Za-z0-9]{{36,64}}", refine=refine_checked, group="secret")
PYPI_TOKEN = Entity(
    name="PYPI_TOKEN",
    regex=r"pypi-AgE[A-Za-z0-9_\-]{50,}",
    refine=_random_after(("pypi-",), bits=3.3),
    group="secret",
    max_chars=_CAP,
)

ENTITIES = (
    GITHUB_TOKEN, GITLAB_TOKEN, SLACK_TOKEN, STRIPE_KEY, OPENAI_KEY, ANTHROPIC_KEY, HUGGINGFACE_TOKEN, NPM_TOKEN,
    PYPI_TOKEN,
)  # fmt: skip
