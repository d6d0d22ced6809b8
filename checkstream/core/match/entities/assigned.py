"""Secrets by the name before them: `Authorization` values and high-entropy values of `password`, `api_key`, ..."""

from __future__ import annotations

from collections.abc import Sequence

from checkstream.core.match.entities.entity import Entity, SpanPair
from checkstream.core.match.entities.labels import SEVERAL, left_of
from checkstream.core.match.entities.randomness import char_classes, entropy_bits, is_random, is_stand_in

# Names of what a person chooses: short and poor values count.
_CHOSEN_NAMES = """
password passwd passwort kennwort pass pwd passphrase passcode pw contraseña contrasena senha wachtwoord hasło lösenord
identified adgangskode salasana пароль 密码 密碼 パスワード 비밀번호 dbpass dbpwd motdepasse parola
"""
# Names of what a machine makes: only random values count.
_KEY_NAMES = """
secret secrets token apikey accesskey secretkey privatekey clientsecret authkey encryptionkey signingkey masterkey
sharedkey sessionid sessionkey authorization xapikey servicekey deploykey accountkey licensekey connectionkey hmackey
credential credentials cookie connectsid keysecret
"""
# Any name of a secret has one of these inside; a quick no for nearly every `=` and `:`.
_HINTS = (
    *("pass", "pw", "secret", "token", "key", "auth", "cred", "cookie", "session", "sid", "identified", "parola"),
    *(name for name in _CHOSEN_NAMES.split() if not name.startswith(("pass", "pw"))),
)
_PASSWORDS = frozenset(_CHOSEN_NAMES.split())
_KEYS = frozenset(_KEY_NAMES.split())
_WORD_ENDS = ("password", "passwd", "passphrase", "secret", "token", "apikey", "secretkey", "accesskey", "privatekey")
_NAME_CHARS = 40
"""How far before the sign a name is looked for."""
_OPERATORS = (" is ", " by ", "=>", ":=", "=", ":")


def _words(name: str) -> list[str]:
    """Split the end of a text into words, at signs and where camel case begins a word; the last four."""
    words: list[str] = []
    previous = ""
    for char in name:
        if not char.isalnum():
            previous = ""
            continue
        if previous and not (char.isupper() and previous.islower()):
            words[-1] += char
        else:
            words.append(char)
        previous = char
    return [word.casefold() for word in words[-4:]]


def _kind_of_name(name: str) -> str:
    """Return `password` or `key` when the words at the end of `name` are a secret's, else the empty string."""
    folded = name.casefold()
    if not any(hint in folded for hint in _HINTS):
        return ""
    words = _words(name)
    while words and words[-1] in ("value", "number", "is", "was", "new", "old", "string", "str", "1", "2"):
        words.pop()
    ends = ["".join(words[-count:]) for count in (1, 2, 3) if len(words) >= count]
    if any(end in _PASSWORDS for end in ends) or (words and words[-1].endswith(("password", "passwd", "passphrase"))):
        return "password"
    if any(end in _KEYS for end in ends) or (words and words[-1].endswith(_WORD_ENDS)):
        return "key"
    return ""


def _is_code(value: str) -> bool:
    """Say whether `value` is an expression of a program rather than a literal (`os.environ`, `get_token(`)."""
    if "(" in value or value.startswith(
        ("self.", "this.", "process.env", "os.", "$", "&", "//", "http://", "https://")
    ):
        return True
    parts = value.replace("[", ".").replace("]", "").split(".")
    return len(parts) > 1 and all(part.replace("_", "a").isalpha() for part in parts)


def _is_secret_value(value: str, kind: str) -> bool:
    """Say whether `value` may be the secret that its name promises."""
    if is_stand_in(value) or _is_code(value):
        return False
    if kind == "key":
        return len(value) >= 12 and is_random(value, bits=3.0)
    if len(value) < 6:
        return False
    if value.isdigit():
        return len(set(value)) > 2
    has_digit = any(char.isdigit() for char in value)
    has_sign = any(not (char.isalnum() or char in "-_./") for char in value)
    return char_classes(value) >= 2 and entropy_bits(value) >= 2.0 and (has_digit or has_sign)


def refine_assigned(text: str, start: int, end: int) -> Sequence[SpanPair]:
    """Return the value of `name = value` when name and value are those of a secret."""
    candidate = text[start:end]
    if candidate.startswith("--"):
        operator = next(char for char in candidate if char in " =")
        name, _, rest = candidate.partition(operator)
    else:
        operator = next(operator for operator in _OPERATORS if candidate[:4].casefold().startswith(operator))
        name, rest = text[max(0, start - _NAME_CHARS) : start].rstrip(" \t\"'`\\)*]"), candidate[len(operator) :]
    value = rest.lstrip(" \t\"'`\\*")
    first = end - len(value)
    value = value.rstrip(".,;:!?)]}\\*")
    kind = _kind_of_name(name)
    if not kind or not value or not _is_secret_value(value, kind):
        return ()
    return ((first, first + len(value)),)


def refine_authorization(text: str, start: int, end: int) -> Sequence[SpanPair]:
    """Return the credentials of an `Authorization` value; after a bare `Bearer` only random ones."""
    candidate = text[start:end]
    credentials = candidate.lstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz").lstrip(" ")
    if candidate[: len(candidate) - len(credentials)].isalpha():
        return ()
    first = end - len(credentials)
    credentials = credentials.rstrip(".")
    name = "".join(char for char in left_of(text, start) if char.isalpha())
    if is_stand_in(credentials) or _is_code(credentials):
        return ()
    scheme = candidate.partition(" ")[0].casefold()
    named = name.endswith("authorization") and (char_classes(credentials) >= 2 or len(credentials) >= 16)
    bare = scheme == "bearer" and len(credentials) >= 16 and is_random(credentials, bits=3.2)
    return ((first, first + len(credentials)),) if named or bare else ()


AUTHORIZATION = Entity(
    name="AUTHORIZATION",
    regex=r"(?i)\b(?:bearer|basic|token|digest|negotiate|apikey) {1,2}[A-Za-z0-9._~+/\-]{6,}={0,2}",
    refine=refine_authorization,
    group="secret",
    max_chars=4096,
)
_NAMES = "|".join(sorted(map(str.casefold, _HINTS)))
GENERIC_SECRET = Entity(
    name="GENERIC_SECRET",
    # Anchored at the sign between name and value, so that nothing is held before it; the name is looked up behind.
    regex=(
        r"(?:=>|:=|[=:]| is | [Bb][Yy] )[ \t]{0,4}\*{0,2}\\?[\"'`]?[!#-&(-+\--:=?-_a-~]{6,200}"
        r"|--(?:password|passwd|token|api-key|secret|access-key|secret-key)[ =][!#-&(-+\--:=?-_a-~]{6,200}"
    ),
    refine=refine_assigned,
    lead=rf"--(?:password|passwd|token|api-key|secret|access-key|secret-key)|(?i:{_NAMES})|{SEVERAL}",
    group="secret",
)
