"""Settings of the control server: its nodes by fleet, how a new bundle goes round, and who may decide what."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from checkstream.config.alerts import AlertSettings
from checkstream.config.certificates import read_pattern, require_apart
from checkstream.config.identity import Claim, TlsSettings, TokenSettings, Url, require_provider
from checkstream.config.parts import Name, Secret, Settings, require_no_password
from checkstream.config.paths import with_files
from checkstream.config.reader import read_settings
from checkstream.config.servers import parse_address
from checkstream.config.settings import AuditSettings
from checkstream.config.telemetry import LogSettings

NodeName = Annotated[str, Meta(pattern=r"\A[a-z0-9][a-z0-9.-]{0,62}\Z")]
"""Of a node or a fleet: it stands in addresses, in records and on the command line."""
Hash = Annotated[str, Meta(pattern=r"\A[0-9a-f]{64}\Z")]
Image = Annotated[str, Meta(min_length=1, max_length=200, pattern=r"\A[!-~]+\Z")]
Role = Literal["org_admin", "risk_officer", "engineer", "analyst", "auditor"]
_SQLITE = "sqlite:"
_NOBODY = "none"
_EVERY = 100
"""Percent."""


PROVIDED = "#"
"""Stands in the names of people whom the provider alone knows, between its address and theirs, and in no others."""


class Person(Settings, frozen=True):
    """Who may ask: known by a key, sent as `Authorization: Bearer KEY`, by a certificate, or by the provider."""

    role: Role
    """What they may do; the guide has the table."""
    key: Secret | None = None
    """Where the key is read from; in place of `key_sha256`."""
    key_sha256: Hash | None = None
    """SHA-256 of the key, in hex, so that this file holds no secret; `checkstream control key` makes both."""

    certificate: Annotated[str, Meta(max_length=2000)] | None = None
    """What stands in a certificate that `tls.client_ca` vouches for: `spiffe://...`, `dns:...`, or attributes of its
    subject such as `CN=ruth, O=Shop`."""
    subject: Annotated[str, Meta(min_length=1, max_length=255)] | None = None
    """With `oidc`: who that is at the provider (`sub`), so that it is one person however they come; `none`: nobody, the
    key is a program's."""

    def __post_init__(self) -> None:
        """One key, or another way to be known."""
        if self.key is not None and self.key_sha256 is not None:
            raise ValueError("a person has either `key` or `key_sha256`")
        if self.certificate is not None:
            read_pattern(self.certificate)
        elif self.key is None and self.key_sha256 is None and self.subject in (None, _NOBODY):
            raise ValueError(
                "nobody would know this person; give either `key` or `key_sha256`, a `certificate` or a `subject`"
            )


class Oidc(TokenSettings, frozen=True, kw_only=True):
    """An OpenID provider, which says who people are and what they may do."""

    audience: Annotated[str, Meta(min_length=1, max_length=500)] | None = None
    """What tokens for this server's API say they are for (`aud`); they come in place of a key. null: none counts."""
    client_id: Annotated[str, Meta(min_length=1, max_length=500)] | None = None
    """What the provider calls the console, whose login page leads to it; null: people log in with keys."""
    client_secret: Secret | None = None
    """The console's secret at the provider; null: it has none (a public client; PKCE protects it)."""
    url: Url | None = None
    """Where browsers reach this server, such as `https://control.example`. The provider is to know
    `URL/console/oidc/back`."""
    scopes: tuple[Annotated[str, Meta(pattern=r"\A[!#-\[\]-~]+\Z")], ...] = ("openid", "profile")
    """What the console asks the provider for."""
    role_claim: Claim = "roles"
    """The claim with what somebody is: a word, or a list of them."""
    roles: Annotated[dict[str, Role], Meta(min_length=1)]
    """Word of that claim -> role. Of several that fit, the first here counts; whom none fits may do nothing."""
    name_claim: Claim = "name"
    """The claim with what the console calls somebody. In records they have the provider's name for them (`sub`)."""

    def __post_init__(self) -> None:
        """It is of some use, and the console can be come back to."""
        super().__post_init__()
        if self.audience is None and self.client_id is None:
            raise ValueError("give `client_id`, so that people log in by it, or `audience`, for tokens of the API")
        if self.client_id is not None:
            if self.url is None:
                raise ValueError("`url` is missing: the provider sends browsers back there from the login")
            require_provider(self.url)
            if "openid" not in self.scopes:
                raise ValueError("`scopes` must have `openid`, or the provider says of nobody who it is")


class Allowed(Settings, frozen=True):
    """What a node must be, to be given bundles. `any` lets everything pass; a list, what stands on it alone."""

    packages: tuple[Hash, ...] | Literal["any"] = ()
    """SHA-256 of the files of the installed package."""
    configurations: tuple[Hash, ...] | Literal["any"] = ()
    """SHA-256 of the node's configuration."""
    images: tuple[Image, ...] | Literal["any"] = "any"
    """Digests of container images, as `CHECKSTREAM_IMAGE_DIGEST` tells a node its own."""


class Ring(Settings, frozen=True):
    """Nodes that get a new bundle together, or callers. A node is of the first ring that has it."""

    name: NodeName
    """Stands in what is told of a rollout."""
    nodes: tuple[NodeName, ...] = ()
    """These, and"""
    percent: Annotated[int, Meta(ge=0, le=_EVERY)] = 0
    """so many of a hundred nodes, by a hash of their names: who is among the first 10 is among the first 50."""
    callers: Annotated[int, Meta(ge=1, lt=_EVERY)] | None = None
    """In place of both: so many of a hundred callers, on every node. Then each ring but the last has more of them."""
    soak_s: Annotated[int, Meta(ge=0, le=2_592_000)] = 600
    """How long it is watched, once all of its nodes have the bundle in force, before the next ring gets it."""


_RINGS = (Ring(name="canary", percent=10), Ring(name="half", percent=50), Ring(name="all", percent=_EVERY))


class Health(Settings, frozen=True):
    """When a rollout is taken back by itself: what nodes with the new bundle do, held against the others."""

    exchanges: Annotated[int, Meta(ge=1, le=1_000_000_000)] = 100
    """Fewer, of either side, say nothing."""
    ratio: Annotated[float, Meta(gt=1, le=1000)] = 2.0
    """So many times the others' share of refusals, of stops and of failures is too much, where chance doesn't explain
    it; and so it is of checks that are slower than nineteen in twenty of the others'."""
    at_least: Annotated[float, Meta(gt=0, le=1)] = 0.02
    """A smaller share is never too much."""
    drift: Annotated[float, Meta(gt=0, le=100)] = 0.25
    """Population stability index of a classifier's scores against the others', from which on they have changed."""
    reach_s: Annotated[int, Meta(ge=1, le=604_800)] = 900
    """How long the nodes of a ring may take to have the bundle in force."""
    quiet: Literal["wait", "advance"] = "wait"
    """What happens behind the soak where too few exchanges have come to tell. wait: a person promotes the rollout."""


class Fleet(Settings, frozen=True):
    """Nodes that are to have one bundle."""

    bundle: Annotated[str, Meta(pattern=r"\A[a-z0-9][a-z0-9-]{0,62}\Z")]
    """Its name."""
    nodes: Annotated[dict[NodeName, str], Meta(max_length=10_000)] = msgspec.field(default_factory=dict)
    """Node -> file of its public key (PEM), which `checkstream bundle key NODE` makes; relative to this file."""
    allow: Allowed = Allowed()
    """What a node must be; people can add to the lists."""
    rings: Annotated[tuple[Ring, ...], Meta(min_length=1, max_length=16)] = _RINGS
    """Who gets a new bundle first, and next; the last is of all nodes."""
    health: Health = Health()
    """When a rollout is taken back."""
    stale_s: Annotated[int, Meta(ge=5, le=86_400)] = 60
    """A node that has not been heard of for so long is stale."""

    def __post_init__(self) -> None:
        """Every node is in a ring, and rings only grow."""
        names = [ring.name for ring in self.rings]
        if len(set(names)) < len(names):
            raise ValueError("two rings have one name; give each its own")
        if self.rings[-1].percent != _EVERY:
            raise ValueError(f"the last ring `{names[-1]}` must have `percent: {_EVERY}`, so that every node is in one")
        for ring in self.rings:
            for node in ring.nodes:
                if node not in self.nodes:
                    raise ValueError(f"ring `{ring.name}`: there is no node `{node}` in `nodes`; add it")
        self._check_callers()

    def _check_callers(self) -> None:
        """A rollout goes round by nodes or by callers, and no caller goes back to the bundle before."""
        shares = [ring.callers for ring in self.rings]
        if not any(shares):
            return
        for ring in self.rings[:-1]:
            if ring.callers is None:
                raise ValueError(
                    f"ring `{ring.name}` has no `callers`, and others have; give them to each ring but the last, or to "
                    "none"
                )
        for ring in self.rings:
            if ring.callers is not None and (ring.nodes or ring.percent):
                raise ValueError(
                    f"ring `{ring.name}` has `callers`, which are of every node; remove `nodes` and `percent`"
                )
        known = [share for share in shares if share is not None]
        if known != sorted(set(known)):
            raise ValueError("`callers` must grow from ring to ring, such as 10 and 50, so that nobody goes back")


class PolicySettings(Settings, frozen=True):
    """Where drafts of policies begin, and what they are tried on."""

    sources: str
    """Folder of policies with a `bundle.yaml`, such as a checkout of Git that you keep; it is never written to."""
    recordings: str | None = None
    """Folder of recorded exchanges (a proxy's `record.dir`), to see what a draft would have made of them."""
    models: str | None = None
    """A `models.yaml`, if policies ask models of your own; what drafts say of models is not read."""


class ControlConfig(Settings, frozen=True):
    """The whole of `control.yaml`."""

    listen: str = "127.0.0.1:8100"
    """Where nodes and people connect."""
    tls: TlsSettings | None = None
    """Its certificate; null: it speaks in the clear, to this machine alone or to a gateway."""
    behind_gateway: bool = False
    """TLS ends in front of it; without, and without `tls`, it listens on loopback alone."""
    admin: str | None = None
    """Where `/metrics`, `/livez` and `/readyz` are, for the operator alone, such as `127.0.0.1:9100`. null: nowhere."""
    admin_token: Secret | None = None
    """Needed for `/metrics` unless `admin` is on loopback, such as `{env: CHECKSTREAM_ADMIN_TOKEN}`."""
    admin_tls: TlsSettings | None = None
    """Certificate of `admin`, which may be that of `tls`; null: the operator connects in the clear."""
    store: str = "sqlite:var/control.db"
    """`sqlite:FILE`, or `postgresql://user@host/database`, which several control servers may share."""
    password: Secret | None = None
    """PostgreSQL's, such as `{env: PGPASSWORD}`."""
    repository: str | None = None
    """Folder `public` of the bundles; attested nodes read it at `/bundles/`. null: they read it elsewhere."""
    fleets: Annotated[dict[NodeName, Fleet], Meta(max_length=1000)] = msgspec.field(default_factory=dict)
    """The nodes, by fleet."""
    people: Annotated[dict[Name, Person], Meta(max_length=10_000)] = msgspec.field(default_factory=dict)
    """Who may ask and decide, by name."""
    oidc: Oidc | None = None
    """Who says who people are, besides their keys; null: nobody."""
    policies: PolicySettings | None = None
    """What people draft policies from, in the console or from Git. null: there are no drafts."""
    audit: AuditSettings = AuditSettings(dir="var/control-audit")
    """Where every act of people, and of the server itself, is kept."""
    alerts: AlertSettings = AlertSettings()
    """What people are told unasked, and who."""
    review_per_day: Annotated[int, Meta(ge=0, le=10_000)] = 20
    """How many findings of each rule people look at a day; drawn by chance. 0: none are drawn."""
    retention_days: Annotated[int, Meta(ge=1, le=3650)] = 90
    """How long what nodes tell of their exchanges is kept."""
    evidence_bytes: Annotated[int, Meta(ge=0)] = 10_737_418_240
    """Most evidence that is kept of one node, in bytes; more waits there until some is old, or erased. 0: none is."""
    silent_s: Annotated[int, Meta(ge=10, le=86_400)] = 300
    """A node that attests and tells nothing of its audit chains for so long is silent, which is an event."""
    telemetry: LogSettings = LogSettings()
    """How logs are written."""

    def __post_init__(self) -> None:
        """Addresses are some, and a node is of one fleet."""
        address = parse_address(self.listen)
        if not address.loopback and not self.behind_gateway and self.tls is None:
            raise ValueError(
                f"`listen` is `{self.listen}`, where keys would be sent in the clear; give `tls`, listen on 127.0.0.1, "
                "or end TLS in front of it and write `behind_gateway: true`"
            )
        if self.admin is not None and not parse_address(self.admin).loopback and self.admin_token is None:
            raise ValueError(f"`admin_token` is missing; it is needed since others can reach `{self.admin}`")
        self._check_people()
        if self.file is None:
            require_no_password(self.store, "password")
            if not self.store.startswith(("postgresql://", "postgres://")):
                raise ValueError(f"`{self.store}` is no store; write `sqlite:var/control.db` or `postgresql://...`")
        elif not self.file or "\0" in self.file:
            raise ValueError(f"`{self.store}` names no file; write `sqlite:var/control.db`")
        elif self.password is not None:
            raise ValueError("a SQLite file has no password; remove `password`")
        found: dict[str, str] = {}
        for name, fleet in self.fleets.items():
            for node in fleet.nodes:
                if found.setdefault(node, name) != name:
                    raise ValueError(f"node `{node}` is of the fleets `{found[node]}` and `{name}`; name it in one")

    def _check_people(self) -> None:
        """Nobody is two people: else one could approve of what they have asked for themselves."""
        shown = {name: each.certificate for name, each in self.people.items() if each.certificate is not None}
        require_apart({name: read_pattern(pattern) for name, pattern in shown.items()})
        subjects: dict[str, str] = {}
        for name, person in self.people.items():
            if person.certificate is not None and (self.tls is None or self.tls.client_ca is None):
                raise ValueError(f"`{name}` has a certificate, and no `tls.client_ca` says which can be trusted")
            if self.oidc is None:
                if person.subject is not None:
                    raise ValueError(f"`{name}` has a `subject`, and there is no provider (`oidc`) that knows it")
                continue
            if PROVIDED in name:
                raise ValueError(f"`{name}`: `{PROVIDED}` stands in names of the provider's people; take another name")
            if person.subject is None:
                raise ValueError(
                    f"`{name}` may be somebody whom the provider knows, too, who could approve of their own; write "
                    f"their `subject`, or `subject: {_NOBODY}` where a program has the key"
                )
            if person.subject != _NOBODY and subjects.setdefault(person.subject, name) != name:
                raise ValueError(f"`{subjects[person.subject]}` and `{name}` have one `subject`; each person has one")

    @property
    def subjects(self) -> dict[str, str]:
        """Who of `people` the provider knows: its name for them -> theirs."""
        return {
            person.subject: name
            for name, person in self.people.items()
            if person.subject is not None and person.subject != _NOBODY
        }

    @property
    def file(self) -> str | None:
        """The file of a SQLite store; None for others."""
        return self.store.removeprefix(_SQLITE) if self.store.startswith(_SQLITE) else None


def load_control(file: Path) -> ControlConfig:
    """Return what a `control.yaml` says, with absolute paths.

    Raises:
        ConfigError: it can't be read, or holds faults; carries all of them.
    """
    return _absolute(read_settings(file, ControlConfig), file.resolve().parent)


def _absolute(config: ControlConfig, base: Path) -> ControlConfig:
    replace = msgspec.structs.replace
    found: ControlConfig = with_files(config, base)
    fleets = {
        name: replace(fleet, nodes={node: str(base / key) for node, key in fleet.nodes.items()})
        for name, fleet in found.fleets.items()
    }
    return replace(
        found,
        store=found.store if found.file is None else f"{_SQLITE}{base / found.file}",
        repository=None if found.repository is None else str(base / found.repository),
        policies=None if found.policies is None else _with_paths(found.policies, base),
        audit=replace(found.audit, dir=str(base / found.audit.dir)),
        fleets=fleets,
    )


def _with_paths(policies: PolicySettings, base: Path) -> PolicySettings:
    def absolute(path: str | None) -> str | None:
        return None if path is None else str(base / path)

    recordings, models = absolute(policies.recordings), absolute(policies.models)
    return PolicySettings(sources=str(base / policies.sources), recordings=recordings, models=models)
