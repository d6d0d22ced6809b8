"""Keys of bundles that stay where they are: in a token of PKCS#11, and in AWS's key management."""

from __future__ import annotations

import json
import shutil
import subprocess
from base64 import b64decode, b64encode
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.utils import Prehashed
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from checkstream.cli import main
from tests.bundled import STOPS, TRUST

LIBRARIES = ("/usr/lib/softhsm/libsofthsm2.so", "/usr/lib64/softhsm/libsofthsm2.so", "/usr/lib/libsofthsm2.so")
LIBRARY = next((path for path in LIBRARIES if Path(path).exists()), None)
PIN = "271828"
KMS = "awskms:alias/bundles"

needs_token = pytest.mark.skipif(
    LIBRARY is None or shutil.which("softhsm2-util") is None, reason="softhsm2 is not installed"
)


@pytest.fixture
def token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Give a token with a key of number 7; returns the address of the key."""
    (tmp_path / "tokens").mkdir()
    configured = tmp_path / "softhsm2.conf"
    configured.write_text(f"directories.tokendir = {tmp_path}/tokens\nlog.level = ERROR\n", encoding="utf-8")
    monkeypatch.setenv("SOFTHSM2_CONF", str(configured))
    monkeypatch.setenv("PYKCS11LIB", str(LIBRARY))
    monkeypatch.setenv("CHECKSTREAM_KEY_PASSPHRASE", PIN)
    made = ["softhsm2-util", "--init-token", "--free", "--label", "team keys", "--pin", PIN, "--so-pin", "31415926"]
    subprocess.run(made, check=True, capture_output=True)
    (tmp_path / "eve.p8").write_bytes(_private_key())
    kept = ["softhsm2-util", "--import", str(tmp_path / "eve.p8"), "--token", "team keys", "--label", "eve"]
    subprocess.run([*kept, "--id", "07", "--pin", PIN], check=True, capture_output=True)
    (tmp_path / "eve.p8").unlink()
    return "hsm:7?label=team+keys"


def _private_key() -> bytes:
    return generate_private_key(SECP256R1()).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


class Cloud:
    """As much of AWS's key management as signing asks for, with one key."""

    def __init__(self) -> None:
        """Have a key."""
        self.private = generate_private_key(SECP256R1())
        self.signs_with = self.private

    def answer(self, asked: str, body: dict[str, str]) -> tuple[int, dict[str, object]]:
        """Answer `TrentService.GetPublicKey` and `TrentService.Sign`."""
        if body["KeyId"] != "alias/bundles":
            return 400, {"__type": "NotFoundException", "message": f"Alias {body['KeyId']} is not found."}
        if asked == "TrentService.GetPublicKey":
            der = self.private.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
            return 200, {"PublicKey": b64encode(der).decode(), "SigningAlgorithms": ["ECDSA_SHA_256"]}
        assert (asked, body["MessageType"], body["SigningAlgorithm"]) == (
            "TrentService.Sign",
            "DIGEST",
            "ECDSA_SHA_256",
        )
        signed = self.signs_with.sign(b64decode(body["Message"]), ECDSA(Prehashed(SHA256())))
        return 200, {"Signature": b64encode(signed).decode()}


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cloud]:
    """Serve a key management, as `awskms:alias/bundles`."""
    found = Cloud()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            status, said = found.answer(self.headers["x-amz-target"], body)
            data = json.dumps(said).encode()
            self.send_response(status)
            self.send_header("content-type", "application/x-amz-json-1.1")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        for name, value in {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.server_port}",
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_DEFAULT_REGION": "eu-west-1",
        }.items():
            monkeypatch.setenv(name, value)
        yield found
        server.shutdown()


def run(command: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Run a command of bundles; returns its exit code and all that it says."""
    code = main(["bundle", *command.split()])
    said = capsys.readouterr()
    return code, said.out + said.err


@needs_token
def test_an_author_signs_in_a_token_and_an_approver_in_a_cloud(
    tmp_path: Path, token: str, cloud: Cloud, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(f"key eve --at {token}", capsys) == (
        0,
        f"keys/eve.pub: public, for trust.yaml; sign by `--key eve={token}`\n",
    )
    code, said = run(f"key ruth --at {KMS}", capsys)
    assert (code, said.rpartition(" ")[2]) == (0, f"ruth={KMS}`\n")
    assert sorted(path.name for path in Path("keys").iterdir()) == [
        "eve.pub",
        "ruth.pub",
    ]  # nothing private has come here
    monkeypatch.delenv("CHECKSTREAM_KEY_PASSPHRASE")  # the PIN is no passphrase of files
    for name in ("ann", "ben", "publisher", "eli", "rob"):
        assert run(f"key {name}", capsys)[0] == 0
    Path("trust.yaml").write_text(TRUST, encoding="utf-8")
    Path("ours.yaml").write_text(f"pack: {{name: ours, version: 1.0.0}}\npolicies:\n  - {STOPS}\n", encoding="utf-8")
    Path("bundle.yaml").write_text(
        "bundle: retail\nversion: '1.0'\nprograms:\n  chat: {policies: [ours.yaml]}\n", encoding="utf-8"
    )
    for command in (
        "init repository --trust trust.yaml",
        *(f"sign repository --key keys/{name}.pem" for name in ("ann", "ben")),
        "build bundle.yaml -o retail",
    ):
        assert run(command, capsys)[0] == 0
    code, said = run(f"sign repository retail --key eve={token}", capsys)
    assert (code, said) == (2, "checkstream: the key could not sign as `team`: PinIncorrect\n")  # it wants its PIN
    monkeypatch.setenv("CHECKSTREAM_KEY_PASSPHRASE", PIN)
    assert run(f"sign repository retail --key eve={token}", capsys)[0] == 0
    cloud.signs_with = generate_private_key(SECP256R1())
    code, said = run(f"sign repository retail --key ruth={KMS}", capsys)
    wrong = "checkstream: what the key signed as `risk` doesn't go with its public key"
    assert (code, said.splitlines()[-1]) == (2, wrong)
    cloud.signs_with = cloud.private
    assert run(f"sign repository retail --key ruth={KMS}", capsys)[0] == 0
    monkeypatch.delenv("CHECKSTREAM_KEY_PASSPHRASE")
    code, said = run("publish repository --key keys/publisher.pem", capsys)
    assert code == 0, said
    root = "--root repository/public/metadata/1.root.json --name retail"
    assert run(f"verify repository/public {root}", capsys)[0] == 0


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("keys/eve.pem", "is no address of a key; those begin with hsm, awskms, gcpkms, azurekms, hv and `:`"),
        ("hsm:seven", "invalid literal"),
        ("hsm:1?label=nobody", "there is no key at `hsm:1?label=nobody` that can be used"),
        ("gcpkms:projects/x", "there is no key at `gcpkms:projects/x` that can be used"),
    ],
)
def test_an_address_without_a_key_is_told(
    address: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYKCS11LIB", raising=False)
    code, text = run(f"key eve --at {address}", capsys)
    assert code == 2
    assert said in text
    assert not (tmp_path / "keys").exists()


@pytest.mark.usefixtures("cloud")
def test_a_key_that_the_cloud_has_not_is_told_and_one_that_is_there_is_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    code, text = run("key eve --at awskms:nobody", capsys)
    assert code == 2
    assert "there is no key at `awskms:nobody` that can be used" in text
    assert run(f"key eve --at {KMS}", capsys)[0] == 0
    assert run(f"key eve --at {KMS}", capsys) == (
        2,
        "checkstream: `keys/eve.pub` is there already; a key that is overwritten is lost\n",
    )
