"""People whom a provider knows ask a control server: who they are, what they may, and that nobody is two of them."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from checkstream.config import load_control
from checkstream.errors import ConfigError
from tests.certificates import Authority, put
from tests.controlled import Server, asked, attestation
from tests.provider import AUDIENCE, Person, Provider, SigningKey

ROLES = {"risk": "risk_officer", "dev": "engineer", "look": "auditor"}


@asynccontextmanager
async def serving(folder: Path, **oidc: Any) -> AsyncIterator[tuple[Provider, Server]]:
    async with Provider().serving() as provider:
        server = Server(folder)
        server.written["oidc"] = {"issuer": provider.url, "audience": AUDIENCE, "roles": ROLES, **oidc}
        for name, person in server.written["people"].items():
            person["subject"] = f"sub-of-{name}"
        async with server.serving():
            yield provider, server


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


async def test_a_token_s_role_decides_what_its_owner_may_and_acts_say_whose_it_was(tmp_path: Path) -> None:
    async with serving(tmp_path) as (provider, server):
        await asked("POST", server.url, "/v1/attestations", attestation(offered=[_OFFER]), node=server.nodes["n1"])
        provider.person = Person("248289761001", roles=["other", "dev"])
        made = await asked("POST", server.url, "/v1/rollouts", _ROLLOUT, headers=bearer(provider.token()))
        issuer = provider.url.removeprefix("http://")
        assert made[1]["asked_by"] == f"{issuer}#248289761001"
        again = await asked("POST", server.url, "/v1/approvals", {"rollout": 1}, headers=bearer(provider.token()))
        assert again[0] == 403
        provider.person = Person("5", roles="risk")
        status, shown = await asked(
            "POST", server.url, "/v1/approvals", {"rollout": 1}, headers=bearer(provider.token())
        )
        assert (status, shown["approved_by"]) == (200, f"{issuer}#5")


async def test_who_has_a_key_and_a_token_is_one_person(tmp_path: Path) -> None:
    async with serving(tmp_path) as (provider, server):
        await asked("POST", server.url, "/v1/attestations", attestation(offered=[_OFFER]), node=server.nodes["n1"])
        made = await asked("POST", server.url, "/v1/rollouts", _ROLLOUT, person="rob")
        assert made[0] == 200
        provider.person = Person("sub-of-rob", roles=["risk"])
        status, body = await asked(
            "POST", server.url, "/v1/approvals", {"rollout": 1}, headers=bearer(provider.token())
        )
        assert (status, "`rob` has asked for this rollout" in body["error"]["message"]) == (403, True)
        provider.person = Person("sub-of-gus", roles=["risk"])  # the file says auditor
        assert (await asked("POST", server.url, "/v1/approvals", {"rollout": 1}, headers=bearer(provider.token())))[
            0
        ] == 403
        assert (await asked("POST", server.url, "/v1/approvals", {"rollout": 1}, person="rita"))[0] == 200


async def test_tokens_that_give_no_role_or_are_no_good_open_nothing(tmp_path: Path) -> None:
    async with serving(tmp_path, role_claim="realm_access.roles") as (provider, server):
        for claims, status in (
            ({"realm_access": {"roles": ["look"]}}, 200),
            ({"realm_access": {"roles": ["nobody"]}}, 403),
            ({"realm_access": "look"}, 403),
            ({"roles": ["look"]}, 403),
            ({}, 403),
            ({"realm_access": {"roles": ["look"]}, "exp": 1}, 401),
            ({"realm_access": {"roles": ["look"]}, "aud": "another"}, 401),
        ):
            provider.person = Person("x", **claims)
            answer = await asked("GET", server.url, "/v1/fleets", headers=bearer(provider.token()))
            assert (answer[0], claims) == (status, claims)
        forged = SigningKey("ES256", provider.keys[0].kid).sign(provider.claims(realm_access={"roles": ["look"]}))
        for token in (forged, "a.b.c", "..", "eyJhbGciOiJub25lIn0.e30.", "." * 3000):
            status, body = await asked("GET", server.url, "/v1/fleets", headers=bearer(token))
            assert (status, body["error"]["type"]) == (401, "authentication_error")
        assert (await asked("GET", server.url, "/v1/fleets", person="gus"))[0] == 200


async def test_the_newest_token_says_what_its_owner_may_also_to_older_ones(tmp_path: Path) -> None:
    async with serving(tmp_path) as (provider, server):
        provider.person = Person("x", roles=["dev"])
        now = provider.claims()["iat"]

        async def may(token: str) -> bool:
            status, body = await asked("POST", server.url, "/v1/rollouts", _ROLLOUT, headers=bearer(token))
            assert status in (403, 404), body
            return status == 404  # nobody offers that version yet

        old = provider.token(iat=now - 30)
        assert await may(old)
        provider.person = Person("x", roles=["look"])
        low = provider.token(iat=now)
        assert not await may(low)
        assert not await may(old)
        provider.person = Person("x", roles=["dev"])
        assert await may(provider.token(iat=now + 1))
        assert not await may(low), "a newer token gives an older one nothing"


async def test_while_the_provider_is_away_keys_open_and_tokens_wait(tmp_path: Path) -> None:
    async with serving(tmp_path) as (provider, server):
        provider.down = True
        status, body = await asked("GET", server.url, "/v1/fleets", headers=bearer(provider.token()))
        assert (status, body["error"]["type"]) == (503, "not_ready")
        assert (await asked("GET", server.url, "/v1/fleets", person="gus"))[0] == 200


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"people": {"eve": {"role": "engineer", "key_sha256": "a" * 64}}}, "could approve of their own"),
        ({"people": {"a#b": {"role": "engineer", "key_sha256": "a" * 64, "subject": "none"}}}, "take another name"),
        (
            {"people": {name: {"role": "engineer", "subject": "1"} for name in ("a", "b")}},
            "`a` and `b` have one `subject`",
        ),
        ({"people": {"a": {"role": "engineer", "subject": "none"}}}, "nobody would know"),
        ({"people": {"a": {"role": "engineer", "certificate": "CN=a", "subject": "none"}}}, "no `tls.client_ca`"),
        (
            {
                "people": {
                    "a": {"role": "engineer", "certificate": "CN=a, O=s", "subject": "none"},
                    "b": {"role": "risk_officer", "certificate": "O=s", "subject": "none"},
                }
            },
            "`b` takes those of `a`, too",
        ),
        ({"oidc": {"issuer": "https://x", "roles": {"a": "auditor"}}}, "give `client_id`"),
        ({"oidc": {"issuer": "http://x.example", "audience": "a", "roles": {"a": "auditor"}}}, "in the clear"),
        ({"oidc": {"issuer": "https://x?y=1", "audience": "a", "roles": {"a": "auditor"}}}, "not the address"),
        ({"oidc": {"issuer": "https://x", "client_id": "a", "roles": {"a": "auditor"}}}, "`url` is missing"),
        ({"oidc": {"issuer": "https://x", "audience": "a", "roles": {}}}, "roles"),
        ({"oidc": {"issuer": "https://x", "audience": "a", "roles": {"a": "king"}}}, "king"),
        (
            {"oidc": {"issuer": "https://x", "audience": "a", "roles": {"a": "auditor"}, "algorithms": ["HS256"]}},
            "HS256",
        ),
        ({"oidc": None, "people": {"a": {"role": "auditor", "subject": "1"}}}, "no provider"),
        ({"listen": "0.0.0.0:0"}, "give `tls`"),
    ],
)
def test_a_file_by_which_somebody_could_be_two_people_is_refused(
    tmp_path: Path, changed: dict[str, Any], said: str
) -> None:
    server = Server(tmp_path)
    server.written["people"] = {}
    server.written["oidc"] = {"issuer": "https://login.example.com", "audience": "a", "roles": {"a": "auditor"}}
    server.written.update(changed)
    with pytest.raises(ConfigError, match=said):
        load_control(server.config_file())


@pytest.mark.parametrize(
    "store",
    [
        "postgresql://u:hunter2@h/d", "postgres://u:hunter2?a@b@h/d", "postgresql://h/d?password=hunter2",
        "postgresql://h/d?pass%77ord=hunter2", "postgresql://h/d?a=b&sslpassword=hunter2", "mysql://u:hunter2@h/d",
    ],
)  # fmt: skip
def test_a_password_in_the_store_s_address_is_refused_and_told_nobody(tmp_path: Path, store: str) -> None:
    server = Server(tmp_path)
    server.written["store"] = store
    with pytest.raises(ConfigError, match="holds a password; give `password`") as raised:
        load_control(server.config_file())
    assert "hunter2" not in str(raised.value)


def test_a_store_s_address_has_a_user_a_host_and_a_database(tmp_path: Path) -> None:
    server = Server(tmp_path)
    for store in ("postgresql://u@h:5432/d", "postgresql://u:@h/d?sslmode=verify-full", "postgres://h"):
        server.written["store"] = store
        assert load_control(server.config_file()).store == store


async def test_a_server_with_a_certificate_needs_no_gateway_and_knows_people_by_theirs(tmp_path: Path) -> None:
    authority = Authority()
    put(tmp_path, "server", authority.issue("control"))
    (tmp_path / "ca.pem").write_bytes(authority.pem())
    server = Server(tmp_path)
    server.written["tls"] = {
        "certificate": "server.pem", "key": "server.key", "client_ca": "ca.pem", "clients": "optional",
    }  # fmt: skip
    server.written["people"]["pipe"] = {"role": "auditor", "certificate": "CN=pipeline"}
    server.written["listen"] = "0.0.0.0:0"
    async with server.serving():
        url = server.url.replace("http://0.0.0.0", "https://127.0.0.1")
        for named, status in (("pipeline", 200), ("stranger", 401), ("", 401)):
            context = ssl.create_default_context(cafile=str(tmp_path / "ca.pem"))
            if named:
                context.load_cert_chain(*put(tmp_path, named, authority.issue(named)))
            async with aiohttp.ClientSession() as client, client.get(f"{url}/v1/fleets", ssl=context) as response:
                assert (named, response.status) == (named, status)
            async with aiohttp.ClientSession() as client, client.get(f"{url}/console/login", ssl=context) as response:
                assert response.status == 200


_OFFER = {"digest": "d" * 64, "version": "1"}
_ROLLOUT = {"fleet": "shop", "version": "1"}
