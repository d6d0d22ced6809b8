"""Signed addresses of files go on as they came; whatever else stands in an address is read."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkstream.core.wire.addresses import unsigned
from checkstream.core.wire.surfaces import SURFACES
from tests.guarded import plan
from tests.playbook import play

CHAT = SURFACES["openai.chat"]
KEY = "AKIA" + "ZX7QK3PLM2RT5VWY"
TOKEN = "ghp_" + "aB3dE5gH7jK9mN1pQ2sT4uV6wX8yZ0aB3dE5"
ENTITIES = "AWS_ACCESS_KEY, GENERIC_SECRET, AZURE_KEY, GITHUB_TOKEN, EMAIL"
PLAN = plan(f"  - {{name: s, id: S-1, stage: [ingress], entities: [{ENTITIES}], actions: [{{type: redact}}]}}\n")


def signed(head: str, **parts: str) -> str:
    return head + "?" + "&".join(f"{name.replace('_', '-')}={value}" for name, value in parts.items())


SIGNED = [
    signed(
        "https://b.s3.amazonaws.com/cat.png",
        X_Amz_Algorithm="AWS4-HMAC-SHA256",
        X_Amz_Credential=f"{KEY}%2F20250101%2Fus-east-1%2Fs3%2Faws4_request",
        X_Amz_Date="20250101T000000Z",
        X_Amz_Signature="fe5f80f77d5fa3beca038a248ff027d0445342fe2855ddc963176630326f1024",
    ),
    signed(
        "https://b.s3.amazonaws.com/cat.png",
        AWSAccessKeyId=KEY,
        Expires="1735689600",
        Signature="vjbyPxybdZaNmGa%2ByT272YEAiv4%3D",
    ),
    signed(
        "https://a.blob.core.windows.net/c/b.png",
        sv="2022-11-02",
        se="2025-01-02",
        sig="abcDEF123%2Bgh456JKL789mnoPQR012stuVWX345yzABC%3D",
    ),
    signed(
        "https://storage.googleapis.com/b/o.png",
        X_Goog_Algorithm="GOOG4-RSA-SHA256",
        X_Goog_Credential="svc%40p.iam.gserviceaccount.com%2F20250101%2Fauto%2Fstorage%2Fgoog4_request",
        X_Goog_Date="20250101T000000Z",
        X_Goog_Signature="6ab3c09f9f9f9f9f9f9f",
    ),
]


def body(address: str) -> bytes:
    parts = [{"type": "text", "text": "What is this?"}, {"type": "image_url", "image_url": {"url": address}}]
    return json.dumps({"model": "m", "messages": [{"role": "user", "content": parts}]}).encode()


@pytest.mark.parametrize("address", SIGNED)
def test_g17_a_signed_address_goes_on_as_it_came(address: str) -> None:
    assert play(CHAT, PLAN, body(address), []).forwarded == body(address)


@pytest.mark.parametrize("address", SIGNED)
@pytest.mark.parametrize("secret", [KEY, TOKEN, "ann@example.com"])
def test_g31_a_secret_elsewhere_in_a_signed_address_does_not_go_on(address: str, secret: str) -> None:
    before, mark, query = address.partition("?")
    for told in (f"{address}&note={secret}", f"{before}/{secret}{mark}{query}", f"{address}#{secret}"):
        forwarded = play(CHAT, PLAN, body(told), []).forwarded
        assert forwarded is not None
        assert secret.encode() not in forwarded


@pytest.mark.parametrize(
    "address",
    [
        f"https://h/a.png?X-Amz-Credential={KEY}",
        f"https://h/a.png?AWSAccessKeyId={KEY}",
        "https://h/a.png?sv=1&se=2&sig=mail ann@example.com",
        f"https://h/a.png?X-Amz-Algorithm=x&X-Amz-Date=y&X-Amz-Signature={TOKEN}",
    ],
)
def test_g31_what_only_looks_signed_is_read(address: str) -> None:
    assert unsigned(address) == address
    assert play(CHAT, PLAN, body(address), []).forwarded != body(address)


@given(st.text(max_size=60))
def test_no_address_makes_it_fail(address: str) -> None:
    assert len(unsigned(address)) <= len(address)
