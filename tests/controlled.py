"""Control servers for tests: databases of both kinds, nodes with keys, and what nodes say."""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import uuid
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, BinaryIO

import aiohttp
import msgspec
import pytest
import yaml
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from checkstream.app.control import serve_control
from checkstream.cli import main
from checkstream.cli.control_ask import KEY, URL
from checkstream.config import load_control
from checkstream.control.attestation import Attestation, Running
from checkstream.control.identity import NodeKey, reading
from checkstream.telemetry.logs import open_log

KINDS = ("sqlite", "postgres")
PEOPLE = {
    "ada": "org_admin", "rob": "risk_officer", "rita": "risk_officer", "eve": "engineer", "ana": "analyst",
    "gus": "auditor",
}  # fmt: skip
"""Who there is in tests; the key of each is `key_of(name)`."""


def key_of(person: str) -> str:
    return f"{person}-has-a-key-of-some-length"


@asynccontextmanager
async def address_of(kind: str, folder: Path, request: pytest.FixtureRequest) -> AsyncIterator[str]:
    """Give the address of an empty store."""
    if kind == "sqlite":
        yield f"sqlite:{folder / 'var' / 'control.db'}"
        return
    import psycopg

    url = request.getfixturevalue("postgres")
    name = f"control_{uuid.uuid4().hex}"
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as admin:
        await admin.execute(f"create database {name}".encode())
        yield url.replace("/postgres?", f"/{name}?") if "?" in url else url.rsplit("/", 1)[0] + f"/{name}"
        await admin.execute(f"drop database {name} with (force)".encode())


def attestation(sequence: int = 1, **more: Any) -> Attestation:
    """Return what a node could say."""
    said: dict[str, Any] = {
        "sequence": sequence,
        "time": "2026-11-29T09:00:00Z",
        "version": "1.0",
        "package": "a" * 64,
        **{name: value for name, value in more.items() if name not in Running.__struct_fields__},
        "running": {
            "configuration": "b" * 64,
            **{name: value for name, value in more.items() if name in Running.__struct_fields__},
        },
    }
    return msgspec.convert(said, Attestation)


def node_key(name: str, folder: Path) -> NodeKey:
    """Make the key of a node; its public half stands in `folder`."""
    key = Ed25519PrivateKey.generate()
    folder.mkdir(parents=True, exist_ok=True)
    pem = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    (folder / f"{name}.pub").write_bytes(pem)
    return NodeKey(name, key)


async def asked(
    method: str, url: str, path: str, body: object = None, *, person: str = "", node: NodeKey | None = None, **more: Any
) -> tuple[int, Any]:
    """Return the status and the body of what a person or a node asks."""
    data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(_plain(body)).encode()
    headers: Mapping[str, str] = {}
    if node is not None and method == "GET":
        headers = reading(node, path, more.get("sequence", 0))
    elif node is not None:
        headers = node.headers(method, path.partition("?")[0], data)
    elif person:
        headers = {"authorization": f"Bearer {key_of(person)}"}
    headers = {**headers, **more.get("headers", {})}
    async with (
        aiohttp.ClientSession() as client,
        client.request(method, url + path, data=io.BytesIO(data) if data else None, headers=headers) as response,
    ):
        return response.status, json.loads(await response.read())


def _plain(body: object) -> object:
    return msgspec.to_builtins(body)


def _sha(person: str) -> str:
    return hashlib.sha256(key_of(person).encode()).hexdigest()


class Server:
    """A control server with the fleet `shop` of the nodes `n1` and `n2`."""

    def __init__(self, folder: Path, **fleet: Any) -> None:
        self.folder = folder
        self.nodes = {name: node_key(name, folder / "keys") for name in ("n1", "n2")}
        self.url = ""
        self.written: dict[str, Any] = {
            "listen": "127.0.0.1:0",
            "people": {
                name: {"role": role, "key_sha256": hashlib.sha256(key_of(name).encode()).hexdigest()}
                for name, role in PEOPLE.items()
            },
            "fleets": {
                "shop": {
                    "bundle": "retail",
                    "nodes": {name: f"keys/{name}.pub" for name in self.nodes},
                    "allow": {"packages": ["a" * 64], "configurations": "any"},
                    **fleet,
                }
            },
        }

    def write_key(self, name: str, file: Path) -> None:
        """Write the private key of a node."""
        key = self.nodes[name]._key
        file.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))

    @asynccontextmanager
    async def serving(self, log: BinaryIO | None = None) -> AsyncIterator[Server]:
        """Serve meanwhile."""
        config = await asyncio.to_thread(lambda: load_control(self.config_file()))
        async with serve_control(config, open_log("json", log or io.BytesIO())) as address:
            self.url = f"http://{address}"
            yield self

    def config_file(self) -> Path:
        path = self.folder / "control.yaml"
        path.write_text(yaml.safe_dump(self.written), encoding="utf-8")
        return path


def commands(
    server: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str]]:
    """Return what runs `checkstream control` as somebody; it returns the exit code and all that is said."""

    def call(person: str, *words: str) -> tuple[int, str]:
        monkeypatch.setenv(URL, server.url + "/")
        monkeypatch.setenv(KEY, key_of(person))
        try:
            code = main(["control", *words])
        except SystemExit as ended:
            code = int(str(ended.code))
        said = capsys.readouterr()
        return code, said.out + said.err

    return call
