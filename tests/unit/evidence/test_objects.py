"""Buckets over the wire of S3, from a server that may be slow to end, large, or lead elsewhere."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from urllib.parse import unquote
from xml.sax.saxutils import escape

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from checkstream.errors import DocumentUnreadable, EvidenceError, SourceRefused
from checkstream.evidence import objects, sources
from checkstream.evidence.ingest import Change, Step
from checkstream.evidence.sources import Sources
from checkstream.evidence.web import Web
from tests.unit.evidence.test_ingest import ingest

READER = Sources(web=Web(), max_bytes=100_000)
LINES = "Refunds are paid within 30 days. "
PAGE = 3
"""Keys of a page of a listing."""


class Bucket:
    """As much of S3 as listing and fetching takes, with what is asked of it written down."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.asked: list[str] = []
        self.token: Callable[[str], str] = lambda last: last
        """What a listing is gone on with; S3's own are opaque."""
        self.failing_page = 0

    async def answer(self, request: web.Request) -> web.StreamResponse:
        bucket, _, key = unquote(request.path.lstrip("/")).partition("/")
        self.asked.append(f"{request.host.partition(':')[0]} {bucket} {key}")
        if request.headers.get("authorization", "").count("AWS4-HMAC-SHA256 Credential=key/") != 1:
            return web.Response(status=403, text="<Error><Code>AccessDenied</Code></Error>")
        if bucket != "docs":
            return web.Response(status=404, text="<Error><Code>NoSuchBucket</Code></Error>")
        if not key:
            return self._page(request)
        match key:
            case "endless.md":
                response = web.StreamResponse(headers={"content-type": "text/markdown"})
                await response.prepare(request)
                while True:
                    await response.write(b"x" * 65_536)
                    await asyncio.sleep(0)
            case "short.md":  # says that it is shorter than it is, and the other way round
                return web.Response(body=b"x" * 200_000, headers={"x-amz-meta-size": "1"})
            case "away.md" | "moved.md":
                status = 307 if key == "away.md" else 301
                return web.Response(status=status, headers={"location": str(request.url.with_host("127.0.0.2"))})
        if key not in self.objects:
            return web.Response(status=404, text="<Error><Code>NoSuchKey</Code></Error>")
        return web.Response(body=self.objects[key], headers={"content-type": "text/plain; charset=latin-1"})

    def _page(self, request: web.Request) -> web.Response:
        after = request.query.get("continuation-token", "")
        if self.failing_page and self.asked[-1] and after and len(self.asked) > self.failing_page:
            return web.Response(status=403, text="<Error><Code>AccessDenied</Code></Error>")
        keys = sorted(key for key in self.objects if key.startswith(request.query.get("prefix", "")))
        rest = [key for key in keys if key > after]
        shown = rest[:PAGE]
        more = f"<NextContinuationToken>{escape(self.token(shown[-1]))}</NextContinuationToken>" if rest[PAGE:] else ""
        found = "".join(f"<Contents><Key>{escape(key)}</Key><Size>1</Size></Contents>" for key in shown)
        return web.Response(
            content_type="application/xml",
            text='<?xml version="1.0"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
            f"<IsTruncated>{'true' if more else 'false'}</IsTruncated>{found}{more}</ListBucketResult>",
        )


@pytest.fixture
async def bucket(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> AsyncIterator[Bucket]:
    made = Bucket()
    app = web.Application()
    app.router.add_get("/{path:.*}", made.answer)
    async with TestServer(app, host="127.0.0.1") as server:
        for name, value in {
            "AWS_ENDPOINT_URL_S3": f"http://127.0.0.1:{server.port}",
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_DEFAULT_REGION": "eu-west-1",
            "AWS_MAX_ATTEMPTS": "1",
            "AWS_CONFIG_FILE": str(tmp_path / "none"),
            "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "none"),
        }.items():
            monkeypatch.setenv(name, value)
        yield made


async def names(source: str) -> list[str]:
    return [listed.source async for listed in READER.listed(source)]


async def fetched(source: str) -> sources.Fetched:
    (listed,) = [listed async for listed in READER.listed(source)]
    return await listed.fetch()


async def test_what_lies_below_is_listed_over_all_pages_and_no_more(bucket: Bucket) -> None:
    keys = [f"hand/{number}.md" for number in range(8)]
    bucket.objects = dict.fromkeys([*keys, "hand/x.exe", "hand/sub/é &<'.txt", "hand-old/a.md", "b.md", "hand"], b"x")
    assert await names("s3://docs/hand") == sorted(
        [f"s3://docs/{key}" for key in keys] + ["s3://docs/hand/sub/é &<'.txt"]
    )
    assert await names("s3://docs/hand/") == await names("s3://docs/hand")
    assert len(await names("s3://docs")) == len(keys) + 3
    assert await names("s3://docs/b.md") == ["s3://docs/b.md"]


async def test_an_object_comes_with_what_its_server_says_it_is(bucket: Bucket) -> None:
    bucket.objects = {"é &.txt": "Café".encode("latin-1")}
    assert await fetched("s3://docs/é &.txt") == sources.Fetched(
        "Café".encode("latin-1"), "text/plain; charset=latin-1"
    )


@pytest.mark.parametrize("source", ["s3://docs/none", "s3://docs/none.md", "s3://docs"])
async def test_a_place_with_nothing_in_it_is_told(bucket: Bucket, source: str) -> None:
    del bucket
    with pytest.raises(SourceRefused, match="there is nothing"):
        await names(source)


async def test_another_bucket_or_key_is_told(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    del bucket
    with pytest.raises(EvidenceError, match=r"can't be listed: .*NoSuchBucket"):
        await names("s3://others/x")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "stranger")
    with pytest.raises(EvidenceError, match=r"can't be listed: .*AccessDenied"):
        await names("s3://docs/x")


async def test_a_listing_that_goes_round_is_broken_off(bucket: Bucket) -> None:
    bucket.objects = {f"{number}.md": b"x" for number in range(9)}
    bucket.token = lambda _: "1.md"
    with pytest.raises(EvidenceError, match="begins again and again"):
        await names("s3://docs")


async def test_a_listing_without_end_is_broken_off(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objects, "MAX_PAGES", 20)
    bucket.objects = {f"{number}.md": b"x" for number in range(9)}
    bucket.token = lambda _: f"!{len(bucket.asked)}"  # another one each time, and it begins anew
    with pytest.raises(SourceRefused, match="too many objects"):
        await names("s3://docs")
    assert len(bucket.asked) == 20


async def test_more_documents_than_are_taken_are_refused_and_not_left_out(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "MAX_DOCUMENTS", 5)
    bucket.objects = {f"{number}.md": b"x" for number in range(5)}
    assert len(await names("s3://docs")) == 5
    bucket.objects["6.md"] = b"x"
    with pytest.raises(SourceRefused, match="more than 5 documents"):
        await names("s3://docs")


@pytest.mark.parametrize("key", ["long.md", "endless.md", "short.md"])
async def test_an_object_that_is_too_large_is_read_no_further(bucket: Bucket, key: str) -> None:
    bucket.objects = {key: b"x" * 100_001}
    with pytest.raises(DocumentUnreadable, match="more than the 100000 bytes"):
        await fetched(f"s3://docs/{key}")


@pytest.mark.parametrize("key", ["away.md", "moved.md"])
async def test_a_redirect_is_not_followed(bucket: Bucket, key: str) -> None:
    bucket.objects = {key: b"x"}
    with pytest.raises(DocumentUnreadable, match="can't be fetched"):
        await fetched(f"s3://docs/{key}")
    assert {asked.partition(" ")[0] for asked in bucket.asked} == {"127.0.0.1"}


async def test_what_changed_in_a_bucket_is_brought_in_and_what_went_is_removed(bucket: Bucket, tmp_path: Path) -> None:
    bucket.objects = {f"{number}.md": f"# Part {number}\n\n{LINES * 9}".encode() for number in range(7)}
    assert set((await ingest(tmp_path, "s3://docs")).values()) == {Change.ADDED}
    bucket.objects["2.md"] = b"# Part 2\n\nAnother text."
    del bucket.objects["4.md"]
    bucket.objects["0.md"] = b"x" * (64 << 20) + b"x"
    found = await ingest(tmp_path, "s3://docs")
    told = {name: change for name, change in found.items() if change is not Change.UNCHANGED}
    assert told == {"0.md": Change.FAILED, "2.md": Change.REPLACED, "4.md": Change.REMOVED}


async def test_a_listing_that_breaks_off_removes_nothing(bucket: Bucket, tmp_path: Path) -> None:
    bucket.objects = {f"{number}.md": f"# Part {number}\n\n{LINES * 9}".encode() for number in range(7)}
    await ingest(tmp_path, "s3://docs")
    del bucket.objects["1.md"]
    bucket.failing_page = 1
    bucket.asked.clear()
    steps: list[Step] = []
    with pytest.raises(EvidenceError, match="can't be listed"):
        await ingest(tmp_path, "s3://docs", told=steps.append)
    assert Change.REMOVED not in {step.change for step in steps}
