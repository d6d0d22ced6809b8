"""Settings of the servers: where callers and operators connect, who may, how much, and the model servers behind."""

from __future__ import annotations

from typing import Annotated, Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from checkstream.config.certificates import read_pattern, require_apart
from checkstream.config.identity import Claim, TlsSettings, TokenSettings
from checkstream.config.parts import Address, Ms, Name, Secret, Settings
from checkstream.core.policy.capabilities import Can
from checkstream.core.wire.places import PLACES


def parse_address(text: str) -> Address:
    """Read `host:port` or `[v6]:port`.

    Raises:
        ValueError: it is neither.
    """
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdecimal() or int(port) > 65535:
        raise ValueError(f"`{text}` is not an address; write `host:port`, such as `127.0.0.1:8080`")
    bracketed = host.startswith("[") and host.endswith("]")
    if ":" in host and not bracketed:
        raise ValueError(f"`{text}` is not an address; write an IPv6 host in brackets, such as `[::1]:8080`")
    return Address(host[1:-1] if bracketed else host, int(port))


BY_JWT = "jwt:"
"""Begins the names of callers who are known by tokens, and no others."""
CLAIMED_CHARS = 255
"""Most characters of what a token calls its caller (OpenID Connect Core, 2)."""
CALLER_CHARS = len(BY_JWT) + CLAIMED_CHARS
"""Most characters of the name of any caller."""
CallerName = Annotated[str, Meta(min_length=1, max_length=CALLER_CHARS)]
"""Of a caller of any kind."""


class Caller(Settings, frozen=True):
    """Who may call, known by a key or a certificate."""

    name: Name
    """Stands in logs and audit records, and in conditions of policies."""
    key: Secret | None = None
    """Sent as `Authorization: Bearer KEY` or `x-api-key: KEY`."""
    certificate: Annotated[str, Meta(max_length=2000)] | None = None
    """What stands in a certificate that `tls.client_ca` vouches for: `spiffe://example.org/ns/shop/sa/web` (all below
    it with `/*` at the end), `dns:app1.example.com`, or attributes of its subject such as `CN=app1, O=Shop`."""

    def __post_init__(self) -> None:
        """One way to be known, and a name that no token can give."""
        if (self.key is None) == (self.certificate is None):
            raise ValueError(f"the caller `{self.name}` has either a `key` or a `certificate`")
        if self.certificate is not None:
            read_pattern(self.certificate)
        if self.name.startswith(BY_JWT):
            raise ValueError(f"`{self.name}`: `{BY_JWT}` begins names of callers with tokens; take another name")


class JwtCallers(TokenSettings, frozen=True, kw_only=True):
    """Callers with tokens (JWT) of an OpenID provider, sent as `Authorization: Bearer TOKEN`."""

    audience: Annotated[str, Meta(min_length=1, max_length=500)]
    """What the tokens say they are for (`aud`); others count for nothing."""
    name_claim: Claim = "sub"
    """The claim that a caller is called by, such as `azp` for the program that asks. Its name is `jwt:` and that."""
    context: dict[Name, Claim] = msgspec.field(default_factory=dict)
    """Field of `context`, as policies read it -> claim, such as `{tenant: org_id, groups: realm_access.groups}`.
    Callers can't say these fields themselves."""


class CallerWays(Settings, frozen=True):
    """Who may call, in more than one way."""

    known: tuple[Caller, ...] = ()
    """Those with keys or certificates."""
    jwt: JwtCallers | None = None
    """Those with tokens; null: none."""


class Limits(Settings, frozen=True):
    """Caps; what passes one meets back-pressure or a clear refusal, never growth (G22)."""

    body_bytes: Annotated[int, Meta(ge=1024)] = 10_485_760
    """Of one request's body, after decompression; a longer one gets 413."""
    prompt_chars: Annotated[int, Meta(ge=1)] = 400_000
    """Characters of one prompt with all its messages; a longer one gets 413."""
    prompt_messages: Annotated[int, Meta(ge=1, le=10_000)] = 4096
    """Messages and other fields of one prompt, each of which is judged apart; more get 413."""
    event_bytes: Annotated[int, Meta(ge=1024)] = 1_048_576
    """Of one event of an answer; a longer one ends the stream with an error."""
    answer_bytes: Annotated[int, Meta(ge=1024)] = 16_777_216
    """Of one answer; a longer one ends with an error."""
    held_bytes_per_stream: Annotated[int, Meta(ge=1024)] = 2_097_152
    """Bytes of one answer that may wait for checks; then the upstream is read no further."""
    call_bytes: Annotated[int, Meta(ge=1024)] = 8_388_608
    """Bytes of one answer that may wait for a tool call to be whole; then the route's fail mode decides. A signed
    thinking block that has more, where rules may edit it, doesn't leave."""
    held_bytes: Annotated[int, Meta(ge=1024)] = 268_435_456
    """Bytes that all exchanges hold together; at the limit new requests get 429."""
    streams: Annotated[int, Meta(ge=1)] = 400
    """Requests that run at once; one more gets 429."""
    load: Annotated[float, Meta(gt=0, le=1)] = 0.92
    """Share of the process's time that admitted answers may need; a request beyond it gets 429. 1: none does."""
    header_timeout_ms: Ms = 10_000
    """How long a request's head may take, and a pause within its body."""
    write_timeout_ms: Ms = 30_000
    """How long a caller may read nothing before it is cut off."""


class Quota(Settings, frozen=True):
    """What one caller may have in all `workers` and machines of a `fleet`; else its share, in each process.

    A share is three quarters of what there is for one alone, and less the more others have: something is always left
    for the next.
    """

    streams: Annotated[int, Meta(ge=1)] | None = None
    """Requests that run; one more gets 429."""
    held_bytes: Annotated[int, Meta(ge=2048)] | None = None
    """Bytes held for them, one half for bodies of requests, one for answers. A body waits for room, then gets 429; an
    answer is read no further."""
    bodies: Annotated[int, Meta(ge=1)] | None = None
    """Requests whose bodies are still to come; one more gets 429."""
    per: Literal["caller", "address"] = "caller"
    """Whose it is. caller: of each name in `callers`; without names, of each address."""


class Server(Settings, frozen=True):
    """The listeners and who may use them."""

    listen: str = "127.0.0.1:8080"
    """Where callers connect, `HOST:PORT`; port 0 lets the system choose."""
    admin: str = "127.0.0.1:9090"
    """Where the console, health, metrics, status and reload are, for the operator alone."""
    admin_token: Secret | None = None
    """Needed unless `admin` is on loopback, such as `{env: CHECKSTREAM_ADMIN_TOKEN}`."""
    tls: TlsSettings | None = None
    """Certificate of `listen`; null: callers connect in the clear."""
    admin_tls: TlsSettings | None = None
    """Certificate of `admin`; null: the operator connects in the clear."""
    callers: Literal["none"] | list[Caller] | CallerWays = "none"
    """Who may call, such as `[{name: app1, key: {env: APP1_KEY}}]`, or `{known: [...], jwt: {...}}`; `none`: everybody
    who reaches `listen`."""
    behind_gateway: bool = False
    """`callers: none` on an address that others can reach: a gateway in front knows the callers."""
    workers: Literal["auto"] | Annotated[int, Meta(ge=1, le=64)] = 1
    """Processes that share the port. auto: one for each core that the process may use. Each has memory of its own."""
    hang_ms: Ms = 10_000
    """One of several processes that answers nothing for so long is ended, and another begun."""
    hosts: tuple[str, ...] = ()
    """Names besides this machine's own (`localhost`, `127.0.0.1`) under which callers without keys may ask on loopback,
    such as `host.docker.internal`. A request for any other is refused: a web page could send it."""
    drain_ms: Ms = 30_000
    """How long running streams may go on after SIGTERM."""
    limits: Limits = Limits()
    """Caps of one process; with several `workers` each has them."""
    quota: Quota = Quota()
    """What one caller may have of them."""

    def __post_init__(self) -> None:
        """Listeners that others can reach are guarded."""
        for name in self.hosts:
            if not name or set(name) - _HOST_CHARS:
                raise ValueError(f"`{name}` in `hosts` is not a name; write it without scheme and port")
        listen, admin = parse_address(self.listen), parse_address(self.admin)
        trusted = self.tls is not None and self.tls.client_ca is not None
        every = trusted and self.tls is not None and self.tls.clients == "required"
        if self.callers == "none" and not listen.loopback and not self.behind_gateway and not every:
            raise ValueError(
                f"`callers: none` lets everyone who reaches `{self.listen}` in; list the callers, listen on loopback, "
                "or write `behind_gateway: true` when a gateway in front knows them"
            )
        if self.callers != "none":
            names = [caller.name for caller in self.known]
            if not names and self.jwt is None:
                raise ValueError("`callers` is empty, so nobody may call; add one, or write `none`")
            if len(set(names)) < len(names):
                raise ValueError("two callers have the same name; give each its own")
            shown = {each.name: each.certificate for each in self.known if each.certificate is not None}
            require_apart({name: read_pattern(pattern) for name, pattern in shown.items()})
            if shown and not trusted:
                raise ValueError("callers have certificates, and no `tls.client_ca` says which can be trusted")
        if not admin.loopback and self.admin_token is None:
            raise ValueError(f"`admin_token` is missing; it is needed since others can reach `{self.admin}`")

    @property
    def known(self) -> tuple[Caller, ...]:
        """Callers with keys or certificates."""
        if isinstance(self.callers, CallerWays):
            return self.callers.known
        return () if self.callers == "none" else tuple(self.callers)

    @property
    def jwt(self) -> JwtCallers | None:
        """Callers with tokens; None: there are none."""
        return self.callers.jwt if isinstance(self.callers, CallerWays) else None


class Upstream(Settings, frozen=True):
    """A model server."""

    url: str
    """Root of the server; a trailing `/v1` is accepted and removed."""
    headers: dict[str, str | Secret] = msgspec.field(default_factory=dict)
    """Sent in place of the caller's headers of the same name, such as
    `{authorization: {env: LLM_API_KEY, prefix: "Bearer "}}`."""
    return_headers: tuple[str, ...] = ()
    """Headers of its answers that callers get besides those that the proxy knows (rate limits, ids of requests): names,
    or beginnings of names followed by `*`. One in whose value a rule on answers would find something stays behind."""
    connect_ms: Ms = 5_000
    """How long connecting may take."""
    first_byte_ms: Ms = 600_000
    """From the request sent to the first byte of the answer's body."""
    idle_ms: Ms = 60_000
    """Longest silence after that."""
    retries: Annotated[int, Meta(ge=0, le=10)] = 2
    """How often connecting is tried once more; a request that was sent is never sent again."""
    can: tuple[Can, ...] = ()
    """What the server supports beyond the plain API, for policies that need it."""

    def __post_init__(self) -> None:
        """The url is an http url without query."""
        try:
            parts = urlsplit(self.url)
            rooted = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        except ValueError:  # a port that is none, brackets without an address
            rooted = False
        if not rooted or parts.query or parts.fragment or set(self.url) - _URL_CHARS:
            raise ValueError(f"`{self.url}` is not the root of a server; write `{_with_scheme(self.url)}`")
        below = next((place for place in PLACES if parts.path.rstrip("/").endswith(place)), None)
        if below is not None:
            root = self.url.rstrip("/").removesuffix(below)
            raise ValueError(f"`{self.url}` is one operation of a server; write its root, `{root}`")
        if parts.username or parts.password:
            raise ValueError("the url holds a password; put it into `headers` from the environment")
        if len(set(self.can)) < len(self.can):
            raise ValueError("`can` names something twice; name it once")
        self._check_headers()

    def _check_headers(self) -> None:
        if len({name.lower() for name in self.headers}) < len(self.headers):
            raise ValueError("`headers` has a name twice, in other letter case; keep one")
        for name, value in self.headers.items():
            if not name or not name.isascii() or not set(name) <= _HEADER_CHARS:
                raise ValueError(f"`{name}` is not a header name")
            if name.lower() in _OWN_HEADERS:
                raise ValueError(f"`{name}` is written by the proxy itself; remove it from `headers`")
            if isinstance(value, str) and not value.isprintable():
                raise ValueError(f"the value of `{name}` holds line breaks or control characters; write one line")
        for name in self.return_headers:
            if len(name.rstrip("*")) < 2 or not set(name.removesuffix("*")) <= _HEADER_CHARS - {"*"}:
                raise ValueError(f"`{name}` is not a header name, or a beginning of some followed by `*`")
            if name.lower() in _OWN_HEADERS:
                raise ValueError(f"`{name}` is written by the proxy itself; remove it from `return_headers`")

    @property
    def root(self) -> str:
        """The url without a trailing slash and `/v1`."""
        return self.url.rstrip("/").removesuffix("/v1").rstrip("/")


def _with_scheme(url: str) -> str:
    """Return what was probably meant by an address without `http://`, else the form of one."""
    host = url.partition("/")[0].partition(":")[0]
    spelled = "://" not in url and host and not set(url) - _URL_CHARS - set("?#@")
    return f"http://{url}" if spelled else "http://host:port"


_OWN_HEADERS = frozenset(
    {
        "accept-encoding", "connection", "content-encoding", "content-length", "content-type", "expect", "keep-alive",
        "te", "trailer", "transfer-encoding", "upgrade",
    }
)  # fmt: skip
"""They say what a body is and how it is sent on one connection, which is not a setting."""
_HOST_CHARS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._:")
_URL_CHARS = frozenset(map(chr, range(0x21, 0x7F)))
_HEADER_CHARS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-.^_`|~")
