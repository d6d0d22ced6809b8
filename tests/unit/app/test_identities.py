"""A proxy that knows its callers by keys, tokens and certificates, over TLS; and what policies know of them."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from checkstream.app import App
from checkstream.config import load_config
from checkstream.demo.llm import ScriptedLlm
from checkstream.demo.scenario import read_scenario
from checkstream.errors import ConfigError
from tests.certificates import Authority, put
from tests.provider import Person, Provider, SigningKey

POLICY = """
pack: {name: t, version: 1.0.0}
policies:
  - name: acme
    id: ACME-1
    stage: [ingress]
    enabled_when: 'has(context.tenant) && context.tenant == "acme"'
    phrases: [secret plan]
    actions: [{type: reject, message: "Not at {context.tenant}."}]
"""
SAID = read_scenario("said", b'choices: [{content: "all is well"}]')
SLOW = read_scenario("slow", b'choices: [{content: "one two three four five six seven"}]\ntiming: {token_ms: 500}')


class Site:
    """A proxy with certificates of one authority, whose callers come by any way."""

    def __init__(self, app: App, authority: Authority, provider: Provider, folder: Path, llm: ScriptedLlm) -> None:
        self.app, self.authority, self.provider, self.folder, self.llm = app, authority, provider, folder, llm

    def context(self, name: str = "") -> ssl.SSLContext:
        context = ssl.create_default_context(cadata=self.authority.pem().decode())
        if name:
            context.load_cert_chain(*put(self.folder, name, self.authority.issue(name)))
        return context

    async def ask(
        self, token: str = "", *, by: str = "", said: str = "a secret plan", **headers: str
    ) -> tuple[int, str]:
        """Return the status and the text of an answer, or of a refusal."""
        sent = {"authorization": f"Bearer {token}", **headers} if token else headers
        body = {"model": "said", "messages": [{"role": "user", "content": said}]}
        url = f"https://{self.app.listener.address}/v1/chat/completions"
        async with (
            aiohttp.ClientSession() as client,
            client.post(url, json=body, headers=sent, ssl=self.context(by)) as response,
        ):
            return response.status, await response.text()


@asynccontextmanager
async def serving(folder: Path, **jwt: Any) -> AsyncIterator[Site]:
    authority = Authority()
    put(folder, "server", authority.issue("proxy"))
    (folder / "ca.pem").write_bytes(authority.pem())
    (folder / "policy.yaml").write_text(POLICY)
    (folder / "key").write_text("a-key-of-some-length")
    async with Provider().serving() as provider, ScriptedLlm({"said": SAID, "slow": SLOW}) as llm:
        own = {"certificate": "server.pem", "key": "server.key"}
        named = {"tenant": "org", "groups": "realm.groups"}
        settings = {
            "server": {
                "listen": "127.0.0.1:0", "admin": "127.0.0.1:0", "drain_ms": 500, "admin_tls": own,
                "tls": {**own, "client_ca": "ca.pem", "clients": "optional"},
                "callers": {
                    "known": [{"name": "app", "key": {"file": "key"}}, {"name": "batch", "certificate": "CN=batch"}],
                    "jwt": {"issuer": provider.url, "audience": "chat", "name_claim": "azp", "context": named, **jwt},
                },
            },
            "upstreams": {"llm": {"url": llm.url}},
            "routes": [
                {"name": "c", "match": {"path": "/v1/chat/completions"}, "upstream": "llm", "policies": ["policy.yaml"]}
            ],
        }  # fmt: skip
        file = folder / "checkstream.yaml"
        file.write_text(json.dumps(settings))
        async with App(lambda: load_config(file), config_file=file) as app:
            yield Site(app, authority, provider, folder, llm)


async def test_callers_come_by_key_token_or_certificate_and_policies_read_what_a_token_claims(tmp_path: Path) -> None:
    async with serving(tmp_path) as site:
        provider = site.provider
        assert (await site.ask("a-key-of-some-length"))[0] == 200
        assert (await site.ask(by="batch"))[0] == 200
        assert (await site.ask())[0] == (await site.ask(by="stranger"))[0] == (await site.ask("x"))[0] == 401
        provider.person = Person("u1", azp="shop", org="acme", realm={"groups": ["a"]})
        assert "Not at acme." in (await site.ask(provider.token("chat")))[1]
        assert "all is well" in (await site.ask(provider.token("chat"), said="hello"))[1]
        provider.person = Person("u1", azp="shop", org="other")
        assert "all is well" in (await site.ask(provider.token("chat")))[1]
        entries = await site.app.entries(50)
        assert {each.entry.caller for each in entries if hasattr(each.entry, "caller")} == {"app", "batch", "jwt:shop"}
        assert not any("authorization" in {name.lower() for name, _ in sent.headers} for sent in site.llm.requests)


async def test_what_a_token_says_nobody_says_otherwise(tmp_path: Path) -> None:
    async with serving(tmp_path) as site:
        site.provider.person = Person("u1", azp="shop", org="acme")
        token = site.provider.token("chat")
        status, text = await site.ask(token, **{"x-checkstream-context": '{"tenant": "other"}'})
        assert (status, "`tenant` of the context is for tokens alone to say" in text) == (400, True)
        status, text = await site.ask(token, **{"x-checkstream-context": '{"topic": "x"}'})
        assert "Not at acme." in text
        site.provider.person = Person("u1", azp="shop")  # it says nothing of a tenant, and so may they not
        status, text = await site.ask(site.provider.token("chat"), **{"x-checkstream-context": '{"tenant": "other"}'})
        assert status == 400


async def test_who_has_a_key_or_a_certificate_does_not_say_what_tokens_say(tmp_path: Path) -> None:
    async with serving(tmp_path) as site:
        for field, expected in (("tenant", 400), ("groups", 400), ("topic", 200)):
            said = {"x-checkstream-context": json.dumps({field: "acme"})}
            assert (await site.ask("a-key-of-some-length", **said))[0] == expected
            assert (await site.ask(by="batch", **said))[0] == expected


async def test_tokens_that_don_t_count_are_refused_and_a_provider_that_is_away_stops_nobody_else(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path) as site:
        provider = site.provider
        provider.down = True
        status, text = await site.ask(provider.token("chat", azp="shop"))
        assert (status, "provider of identities" in text) == (503, True)
        assert (await site.ask("a-key-of-some-length"))[0] == 200
        provider.down = False
        site.app.proxy._intake.callers._tokens._issuer._tried = float("-inf")  # type: ignore[union-attr]  # time goes by
        stranger = SigningKey("ES256", provider.keys[0].kid)
        for token in (
            provider.token("another", azp="shop"),
            provider.token("chat", azp="shop", exp=1),
            provider.token("chat"),  # it has no `azp`
            provider.token("chat", azp="x\ny"),
            stranger.sign(provider.claims("chat", azp="shop")),
            "eyJhbGciOiJub25lIn0.eyJhenAiOiJzaG9wIn0.",
        ):
            status, text = await site.ask(token)
            assert (status, json.loads(text)["error"]["type"]) == (401, "authentication_error"), text
        assert (await site.ask(provider.token("chat", azp="shop"), said="hello"))[0] == 200
        deep: Any = "x"
        for _ in range(12):
            deep = {"a": deep}
        status, text = await site.ask(provider.token("chat", azp="shop", org=deep))
        assert (status, "the token is nested" in text) == (400, True)


async def test_the_admin_listener_has_its_certificate_and_a_caller_who_leaves_a_stream_is_heard(tmp_path: Path) -> None:
    async with serving(tmp_path) as site:
        async with (
            aiohttp.ClientSession() as client,
            client.get(f"https://{site.app.admin.address}/metrics", ssl=site.context()) as response,
        ):
            assert 'checkstream_tls_ends_seconds{face="proxy"}' in await response.text()
        asked = {"model": "slow", "stream": True, "messages": [{"role": "user", "content": "hi"}]}
        async with aiohttp.ClientSession() as client:
            response = await client.post(
                f"https://{site.app.listener.address}/v1/chat/completions",
                json=asked,
                headers={"authorization": "Bearer a-key-of-some-length"},
                ssl=site.context(),
            )
            await response.content.readany()
            assert site.app.proxy.streams == 1
            response.close()
            async with asyncio.timeout(1):
                while site.app.proxy.streams:  # noqa: ASYNC110 - nobody tells
                    await asyncio.sleep(0.005)


@pytest.mark.parametrize(
    ("server", "said"),
    [
        ({"callers": {"known": []}}, "nobody may call"),
        ({"callers": [{"name": "a"}]}, "either a `key` or a `certificate`"),
        ({"callers": [{"name": "a", "certificate": "CN=a"}]}, "no `tls.client_ca`"),
        ({"callers": [{"name": name, "certificate": "CN=a"} for name in ("a", "b")]}, "have one `certificate`"),
        ({"callers": [{"name": "jwt:a", "key": {"file": "key"}}]}, "take another name"),
        ({"callers": {"jwt": {"issuer": "http://x.example", "audience": "a"}}}, "in the clear"),
        ({"callers": {"jwt": {"issuer": "https://x.example"}}}, "audience"),
        ({"listen": "0.0.0.0:0"}, "lets everyone who reaches"),
        ({"tls": {"certificate": "x"}}, "key"),
        ({"tls": {"certificate": "x", "key": "y", "minimum": "1.1"}}, "1.1"),
    ],
)
def test_settings_that_would_let_in_who_is_not_meant_are_refused(
    tmp_path: Path, server: dict[str, Any], said: str
) -> None:
    (tmp_path / "key").write_text("a-key-of-some-length")
    (tmp_path / "policy.yaml").write_text(POLICY)
    settings = {
        "server": server,
        "upstreams": {"llm": {"url": "http://127.0.0.1:1"}},
        "routes": [
            {"name": "c", "match": {"path": "/v1/chat/completions"}, "upstream": "llm", "policies": ["policy.yaml"]}
        ],
    }
    file = tmp_path / "checkstream.yaml"
    file.write_text(json.dumps(settings))
    with pytest.raises(ConfigError, match=said):
        load_config(file)
