"""What runs of many machines came to, in Elasticsearch.

A build's machine forgets its files, so what the next build's regression is told from stands elsewhere.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import msgspec

from checkstream.evidence.elastic import client_of, make_index, told, write
from checkstream.gate.history import DEPLOYED, NEWEST, ModelTotals, Trend, trends
from checkstream.gate.terms import Run, Said

if TYPE_CHECKING:
    from elasticsearch import AsyncElasticsearch

HISTORY_SECRET = "CHECKSTREAM_HISTORY_SECRET"  # noqa: S105 - the name of a variable
"""Elasticsearch's API key."""
DEFAULT_INDEX = "checkstream-gate"
_BATCH = 500
_NUMBERS = frozenset({"begun", "ended", "risk", "total_claims", "supported", "weakly_supported", "unsupported"})
_KEPT = {"type": "keyword", "index": False, "doc_values": False}
"""Given back, and not looked for."""
_RUNS: Mapping[str, Any] = {
    "dynamic": "strict",
    "properties": {
        **{name: {"type": "double" if name in _NUMBERS else "keyword"} for name in Run.__struct_fields__},
        "failure": _KEPT,
        "report": _KEPT,
    },
}
_SAID: Mapping[str, Any] = {
    "dynamic": "strict",
    "properties": {
        "run_id": {"type": "keyword"},
        "kind": {"type": "keyword"},
        "item": _KEPT,
        "at": {"type": "double"},
        "text": {"type": "text", "analyzer": "words"},
    },
}
_BRIEF: Mapping[str, Any] = {"excludes": ["report"]}
"""A run without its report, which is long."""
_NEWEST_FIRST = [{"begun": "desc"}, {"run_id": "asc"}]
_CLAIMS = ("total_claims", "supported", "weakly_supported", "unsupported")
_MODELS = 100
"""Of one configuration; those of the most runs."""
_TREND: Mapping[str, Any] = {
    "newest": {"top_hits": {"size": NEWEST, "sort": _NEWEST_FIRST, "_source": _BRIEF}},
    "models": {
        "terms": {"field": "target", "size": _MODELS},
        "aggregations": {
            "decisions": {"terms": {"field": "decision"}},
            "risk": {"stats": {"field": "risk"}},
            **{name: {"sum": {"field": name}} for name in _CLAIMS},
        },
    },
}
"""What is reckoned of each configuration, in the cluster: its newest runs, and the totals of its models."""
_DEPLOYED: Mapping[str, Any] = {
    "filter": {"term": {"decision": "deploy"}},
    "aggregations": {"newest": {"top_hits": {"size": DEPLOYED, "sort": _NEWEST_FIRST, "_source": _BRIEF}}},
}
_CONFIGURATIONS = 50
"""Of one answer: with their models less than the 65,535 buckets that a cluster reckons, and 10,000 runs."""
_WORDS: Mapping[str, Any] = {
    "analysis": {
        "analyzer": {"words": {"type": "custom", "tokenizer": "standard", "filter": ["lowercase", "asciifolding"]}}
    }
}


class SharedPast:
    """The past of many machines, in Elasticsearch: decided runs in one index, what they said in another."""

    def __init__(self, client: AsyncElasticsearch, index: str) -> None:
        """Take a client, and how the names of the indexes begin; `of` and `open` make one."""
        index = index or DEFAULT_INDEX
        self._client = client
        self._runs = f"{index}-runs"
        self._said = f"{index}-said"

    @classmethod
    def of(cls, url: str, *, api_key: str | None = None) -> Self:
        """Return what tells of runs and asks nothing before; where there are no indexes yet, there were no runs.

        Args:
            url: of the cluster; its path, if it has one, names the indexes.
            api_key: sent with each request; it needs no right to write.

        Raises:
            StoreUnusable: the extra is not installed, or the address has a port that is none.
        """
        return cls(*client_of(url, api_key=api_key))

    @classmethod
    async def open(cls, url: str, *, api_key: str | None = None) -> Self:
        """Connect, and make the indexes where there are none.

        Args:
            url: of the cluster; its path, if it has one, names the indexes.
            api_key: sent with each request.

        Raises:
            StoreUnusable: the cluster can't be used.
        """
        past = cls(*client_of(url, api_key=api_key))
        try:
            async with told():
                await make_index(past._client, past._runs, _RUNS, {"number_of_shards": 1})
                await make_index(past._client, past._said, _SAID, {"number_of_shards": 1, **_WORDS})
        except BaseException:
            await past.close()
            raise
        return past

    async def record(self, run: Run, report: str, said: Sequence[Said]) -> None:
        """Keep a decided run, last of all itself: whoever finds it finds what it said. Again is the same as once.

        Raises:
            StoreUnusable: the cluster can't be used.
        """
        async with told():
            for at in range(0, len(said), _BATCH):
                part = {_identity(each): msgspec.to_builtins(each) for each in said[at : at + _BATCH]}
                await write(self._client, self._said, part)
            await self._client.indices.refresh(index=self._said)
            document = {**msgspec.to_builtins(run), "report": report}
            await self._client.index(index=self._runs, id=run.run_id, document=document)
            await self._client.indices.refresh(index=self._runs)

    async def report(self, run_id: str) -> str | None:
        """Return the report of a decided run, as JSON."""
        found = await self._found([{"term": {"run_id": run_id}}], 1, {"includes": ["report"]})
        return None if not found else str(found[0]["report"])

    async def runs(
        self, *, since: float | None = None, config_hash: str | None = None, target: str | None = None,
        decided: bool = False, limit: int = 100,
    ) -> list[Run]:  # fmt: skip
        """Return runs, the newest first; all of them are decided."""
        del decided
        found = await self._found(_chosen(since, config_hash, target), limit, _BRIEF)
        return [_run(each) for each in found]

    async def trends(
        self, *, since: float | None = None, config_hash: str | None = None, target: str | None = None
    ) -> list[Trend]:
        """Return how the risk of each configuration has changed, the one that ran last first."""
        chosen = {"filter": _all_of(_chosen(since, None, target)), "aggregations": _TREND}
        reckoned = {"chosen": chosen, "deployed": _DEPLOYED}
        runs: list[Run] = []
        deployed: list[Run] = []
        totals: dict[str, list[ModelTotals]] = {}
        async for name, found in self._configurations(_chosen(None, config_hash, None), reckoned):
            runs += (_run(hit["_source"]) for hit in found["chosen"]["newest"]["hits"]["hits"])
            totals[name] = [_totals(model) for model in found["chosen"]["models"]["buckets"]]
            deployed += (_run(hit["_source"]) for hit in found["deployed"]["newest"]["hits"]["hits"])
        return trends(runs, deployed, totals)

    async def _configurations(
        self, wanted: Sequence[Mapping[str, Any]], reckoned: Mapping[str, Any]
    ) -> AsyncIterator[tuple[str, Mapping[str, Any]]]:
        """Yield the hash of each configuration of which there are such runs, with what the cluster reckons of it."""
        after: Mapping[str, Any] = {}
        while True:
            buckets = {"sources": [{"config": {"terms": {"field": "config_hash"}}}], "size": _CONFIGURATIONS, **after}
            async with told():
                answer = await self._client.search(
                    index=self._runs,
                    query=_all_of(wanted),
                    size=0,
                    aggregations={"configurations": {"composite": buckets, "aggregations": reckoned}},
                    ignore_unavailable=True,
                )
            found = answer.get("aggregations", {}).get("configurations", {"buckets": []})
            for bucket in found["buckets"]:
                yield bucket["key"]["config"], bucket
            if len(found["buckets"]) < _CONFIGURATIONS:
                return
            after = {"after": found["after_key"]}

    async def last_deployed(self, config_hash: str, before: float) -> Run | None:
        """Return the newest run of a configuration that was deployed before a time."""
        wanted = [{"term": {"config_hash": config_hash}}, {"term": {"decision": "deploy"}}]
        found = await self._found([*wanted, *_between("begun", None, before)], 1, _BRIEF)
        return _run(found[0]) if found else None

    async def search(
        self, words: str, *, kind: str | None = None, since: float | None = None, until: float | None = None,
        limit: int = 50,
    ) -> list[Said]:  # fmt: skip
        """Return what runs said that has all of the words, the best match first."""
        if not words.strip():
            return []
        query = {
            "bool": {
                "must": [{"match": {"text": {"query": words, "operator": "and"}}}],
                "filter": [*([{"term": {"kind": kind}}] if kind else []), *_between("at", since, until)],
            }
        }
        async with told():
            answer = await self._client.search(index=self._said, query=query, size=limit, ignore_unavailable=True)
        return [msgspec.convert(hit["_source"], Said) for hit in answer["hits"]["hits"]]

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def _found(
        self, wanted: Sequence[Mapping[str, Any]], limit: int, parts: Mapping[str, Any]
    ) -> list[Mapping[str, Any]]:
        """Return these parts of the newest runs of such."""
        async with told():
            answer = await self._client.search(
                index=self._runs,
                query=_all_of(wanted),
                sort=_NEWEST_FIRST,
                size=limit,
                source=parts,
                ignore_unavailable=True,
            )
        return [hit["_source"] for hit in answer["hits"]["hits"]]


def _chosen(since: float | None, config_hash: str | None, target: str | None) -> list[Mapping[str, Any]]:
    named = (("config_hash", config_hash), ("target", target))
    terms = [{"term": {name: value}} for name, value in named if value is not None]
    return [*terms, *_between("begun", since, None)]


def _all_of(conditions: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    return {"bool": {"filter": conditions}}


def _between(name: str, since: float | None, until: float | None) -> list[Mapping[str, Any]]:
    bounds = {sign: value for sign, value in (("gte", since), ("lt", until)) if value is not None}
    return [{"range": {name: bounds}}] if bounds else []


def _run(document: Mapping[str, Any]) -> Run:
    return msgspec.convert({name: document[name] for name in Run.__struct_fields__}, Run)


def _totals(bucket: Mapping[str, Any]) -> ModelTotals:
    risk = bucket["risk"]
    return ModelTotals(
        target=bucket["key"],
        runs=bucket["doc_count"],
        decisions={each["key"]: each["doc_count"] for each in bucket["decisions"]["buckets"]},
        least_risk=risk["min"],
        mean_risk=round(risk["avg"], 6),
        most_risk=risk["max"],
        **{name: int(bucket[name]["value"]) for name in _CLAIMS},
    )


def _identity(said: Said) -> str:
    """Return the same id for the same words of the same run; ids are at most 512 bytes."""
    return hashlib.sha256(msgspec.json.encode(said)).hexdigest()
