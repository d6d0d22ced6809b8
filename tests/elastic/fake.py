"""An Elasticsearch on a port of its own: as much of it as our store asks, refusing what Elastic does not specify.

It is no proof of how a cluster ranks or shards; it proves that what is sent is what the specification knows, and
that the store works with answers of that form. A real cluster is used where `CHECKSTREAM_ES_URL` names one.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from aiohttp import web
from numpy.typing import NDArray

from tests.elastic.aggregations import holds, reckoned
from tests.elastic.schema import Api, Unspecified

_HEADERS = {
    "x-elastic-product": "Elasticsearch",
    "content-type": "application/vnd.elasticsearch+json; compatible-with=9",
}


class Index:
    """One index: what is written stands in `fresh` until a refresh makes it searchable."""

    def __init__(self, mappings: Mapping[str, Any]) -> None:
        self.mappings = mappings
        self.fresh: dict[str, dict[str, Any]] = {}
        self.searchable: dict[str, dict[str, Any]] = {}
        self._counted: dict[str, dict[str, Counter[str]]] = {}
        self._vectors: dict[str, tuple[list[str], NDArray[np.float32]]] = {}

    def refresh(self) -> None:
        """Make searchable what was written."""
        self.searchable = dict(self.fresh)
        self._counted = {}
        self._vectors = {}

    def vectors(self, field: str) -> tuple[list[str], NDArray[np.float32]]:
        """Return the vectors of a field, and of which documents they are."""
        if field not in self._vectors:
            ids = [identity for identity, document in self.searchable.items() if field in document]
            self._vectors[field] = ids, np.array([self.searchable[identity][field] for identity in ids], np.float32)
        return self._vectors[field]

    def counted(self, field: str) -> dict[str, Counter[str]]:
        """Return how often each term stands in a field, by document."""
        if field not in self._counted:
            texts = self.searchable.items()
            self._counted[field] = {identity: Counter(document[field].split()) for identity, document in texts}
        return self._counted[field]

    def write(self, identity: str, document: dict[str, Any]) -> str | None:
        """Take a document, or return why not."""
        fields = self.mappings["properties"]
        for key, value in document.items():
            if key not in fields:
                return f"mapping set to strict, dynamic introduction of [{key}] is not allowed"
            if fields[key]["type"] == "dense_vector":
                if len(value) != fields[key]["dims"]:
                    return "the vector has another number of dimensions"
                if abs(math.hypot(*value) - 1) > 1e-3:
                    return "the [dot_product] similarity can only be used with unit-length vectors"
        self.fresh[identity] = document
        return None

    def shown(self, identity: str) -> dict[str, Any]:
        excluded = self.mappings.get("_source", {}).get("excludes", ())
        return {key: value for key, value in self.searchable[identity].items() if key not in excluded}


class FakeElastic:
    """The server's state and its handlers; `refused` lists what the specification did not know."""

    def __init__(self) -> None:
        self.api = Api()
        self.indices: dict[str, Index] = {}
        self.refused: list[str] = []
        self.asked: Counter[str] = Counter()

    def app(self) -> web.Application:
        """Return it as an application."""
        app = web.Application(client_max_size=1 << 28)
        app.router.add_route("*", "/{path:.*}", self._handle)
        return app

    async def _handle(self, request: web.Request) -> web.Response:
        raw = (await request.read()).decode()
        ndjson = request.path.endswith("_bulk")
        lines = [json.loads(line) for line in (raw.splitlines() if ndjson else [raw]) if line]
        try:
            name, named = self.api.check(request.method, request.path, request.query, lines)
        except Unspecified as error:
            self.refused.append(str(error))
            return _answer({"error": {"type": "unspecified", "reason": str(error)}, "status": 400}, 400)
        self.asked[name] += 1
        body = lines[0] if lines else {}
        targets = named.get("index", "").split(",")
        if name == "indices.create":
            return self._create(targets[0], body)
        missing = [target for target in targets if target not in self.indices]
        if missing and request.query.get("ignore_unavailable") == "true":
            return _answer({"took": 1, "timed_out": False, "hits": {"hits": []}})
        if missing:
            unknown = {"type": "index_not_found_exception", "reason": f"no such index [{missing[0]}]"}
            return _answer({"error": unknown, "status": 404}, 404)
        if name == "indices.refresh":
            for target in targets:
                self.indices[target].refresh()
            return _answer({"_shards": {"total": 1, "successful": 1, "failed": 0}})
        return self._of_index(name, self.indices[targets[0]], targets[0], named, lines)

    def _create(self, index: str, body: Mapping[str, Any]) -> web.Response:
        if index in self.indices:
            error = {"type": "resource_already_exists_exception", "reason": f"index [{index}] already exists"}
            return _answer({"error": {**error, "root_cause": [error]}, "status": 400}, 400)
        self.indices[index] = Index(body["mappings"])
        return _answer({"acknowledged": True, "shards_acknowledged": True, "index": index})

    def _of_index(  # noqa: C901 - one branch an endpoint
        self, name: str, index: Index, target: str, named: Mapping[str, str], lines: list[Any]
    ) -> web.Response:
        body = lines[0] if lines else {}
        match name:
            case "indices.get_mapping":
                return _answer({target: {"mappings": index.mappings}})
            case "bulk":
                items = []
                for action, document in zip(lines[::2], lines[1::2], strict=True):
                    reason = index.write(action["index"]["_id"], document)
                    failed = {} if reason is None else {"error": {"type": "refused", "reason": reason}}
                    items.append({"index": {"_id": action["index"]["_id"], "status": 400 if failed else 201, **failed}})
                return _answer({"took": 1, "errors": any("error" in item["index"] for item in items), "items": items})
            case "index":
                reason = index.write(named["id"], body)
                if reason is not None:
                    return _answer({"error": {"type": "refused", "reason": reason}, "status": 400}, 400)
                return _answer({"_id": named["id"], "result": "created"}, 201)
            case "delete":
                gone = index.fresh.pop(named["id"], None)
                return _answer({"result": "deleted" if gone else "not_found"}, 200 if gone else 404)
            case "count":
                return _answer({"count": len(index.searchable)})
            case "delete_by_query":
                found = list(_matching(index.searchable, body["query"]))
                for identity in found:
                    index.fresh.pop(identity, None)
                return _answer({"deleted": len(found), "failures": []})
            case "search":
                told: dict[str, Any] = {"hits": {"hits": _searched(index, body) if body.get("size") != 0 else []}}
                if asked := body.get("aggregations", body.get("aggs")):
                    chosen = _filtered(index, {**body, "size": len(index.searchable)})
                    told["aggregations"] = reckoned(asked, [each["_source"] for each in chosen])
                return _answer({"took": 1, "timed_out": False, **told})
            case _:
                raise AssertionError(name)


def _answer(body: Mapping[str, Any], status: int = 200) -> web.Response:
    return web.Response(body=json.dumps(body).encode(), status=status, headers=_HEADERS)


def _matching(documents: Mapping[str, dict[str, Any]], query: Mapping[str, Any]) -> Iterator[str]:
    (must,) = query["bool"]["filter"]
    (but,) = query["bool"]["must_not"]
    ((field, value),) = must["term"].items()
    for identity, document in documents.items():
        if document[field] == value and identity not in but["ids"]["values"]:
            yield identity


def _filtered(index: Index, body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Carry out `bool`: filters of `term` and `range`, and a `match` of all words; sorted by fields, or as found."""
    found = list(index.searchable)
    for each in body["query"]["bool"].get("filter", ()):
        found = [identity for identity in found if holds(index.searchable[identity], each)]
    for each in body["query"]["bool"].get("must", ()):
        ((field, asked),) = each["match"].items()
        assert asked["operator"] == "and"
        words = _words(asked["query"])
        found = [identity for identity in found if words and words <= _words(index.searchable[identity][field])]
    for sort in reversed(body.get("sort", ())):
        ((field, order),) = sort.items()
        found.sort(key=lambda identity: index.searchable[identity][field], reverse=order == "desc")
    return [{"_id": identity, "_score": 1.0, "_source": index.shown(identity)} for identity in found[: body["size"]]]


def _words(text: str) -> set[str]:
    """Return words nearly as the standard tokenizer, lower-cased and without accents."""
    plain = "".join(char for char in unicodedata.normalize("NFD", text) if not unicodedata.combining(char))
    return set(re.findall(r"\w+", plain.casefold()))


def _searched(index: Index, body: Mapping[str, Any]) -> list[dict[str, Any]]:
    if "bool" in body.get("query", {}):
        return _filtered(index, body)
    if "sort" in body:
        ((key, _),) = body["sort"][0].items()
        order = sorted(index.searchable, key=lambda each: index.searchable[each][key])
        after = body.get("search_after")
        kept = [each for each in order if after is None or index.searchable[each][key] > after[0]][: body["size"]]
        shown = body.get("_source", True)
        return [
            {"_id": each, "sort": [index.searchable[each][key]], **({"_source": index.shown(each)} if shown else {})}
            for each in kept
        ]
    scores = _nearest(index, body["knn"]) if "knn" in body else _bm25(index, body["query"]["match"])
    best = sorted(scores.items(), key=lambda one: -one[1])[: body["size"]]
    return [{"_id": each, "_score": score, "_source": index.shown(each)} for each, score in best]


def _bm25(index: Index, match: Mapping[str, Any]) -> dict[str, float]:
    """Lucene's BM25Similarity, k1 1.2, b 0.75."""
    ((field, asked),) = match.items()
    texts = index.counted(field)
    lengths = {identity: counted.total() for identity, counted in texts.items()}
    average = sum(lengths.values()) / max(len(lengths), 1)
    scores: dict[str, float] = {}
    for term in asked["query"].split():
        holding = [identity for identity, counted in texts.items() if term in counted]
        idf = math.log(1 + (len(texts) - len(holding) + 0.5) / (len(holding) + 0.5))
        for identity in holding:
            times = texts[identity][term]
            part = idf * times / (times + 1.2 * (0.25 + 0.75 * lengths[identity] / average))
            scores[identity] = scores.get(identity, 0.0) + part
    return scores


def _nearest(index: Index, knn: Mapping[str, Any]) -> dict[str, float]:
    ids, rows = index.vectors(knn["field"])
    if not ids:
        return {}
    scores = (1 + rows @ np.asarray(knn["query_vector"], np.float32)) / 2
    found = dict(zip(ids, scores.tolist(), strict=True))
    return dict(sorted(found.items(), key=lambda one: -one[1])[: knn["k"]])
