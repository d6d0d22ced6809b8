"""Aggregations as Elasticsearch answers them, of documents that a query has chosen: those that our requests name."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from itertools import groupby
from statistics import mean
from typing import Any

Documents = Sequence[Mapping[str, Any]]


def reckoned(asked: Mapping[str, Any], documents: Documents) -> dict[str, Any]:
    """Return the answer to each aggregation that is asked for, by its name."""
    return {name: _one(body, documents) for name, body in asked.items()}


def _one(body: Mapping[str, Any], documents: Documents) -> dict[str, Any]:
    further = body.get("aggregations", body.get("aggs", {}))
    ((kind, asked),) = ((key, value) for key, value in body.items() if key not in ("aggregations", "aggs"))
    match kind:
        case "composite":
            return _composite(asked, further, documents)
        case "terms":
            buckets = _buckets(asked["field"], further, documents)
            if "order" not in asked:
                buckets.sort(key=lambda bucket: -bucket["doc_count"])
            return {"sum_other_doc_count": 0, "buckets": buckets[: asked.get("size", 10)]}
        case "top_hits":
            hits = list(documents)
            for sort in reversed(asked["sort"]):
                ((field, order),) = sort.items()
                hits.sort(key=lambda document: document[field], reverse=order == "desc")
            assert asked["size"] <= 100, "more than `index.max_inner_result_window`"
            shown = [{"_source": _shown(each, asked["_source"])} for each in hits[: asked["size"]]]
            return {"hits": {"total": {"value": len(hits)}, "hits": shown}}
        case "filter":
            wanted = asked["bool"]["filter"] if "bool" in asked else [asked]
            inside = [document for document in documents if all(holds(document, each) for each in wanted)]
            return {"doc_count": len(inside), **reckoned(further, inside)}
        case "stats":
            values = [document[asked["field"]] for document in documents]
            found = {"min": min(values), "max": max(values), "avg": mean(values), "sum": sum(values)}
            return {"count": len(values), **found}
        case "sum":
            return {"value": float(sum(document[asked["field"]] for document in documents))}
        case _:
            raise AssertionError(kind)


def holds(document: Mapping[str, Any], condition: Mapping[str, Any]) -> bool:
    """Tell whether a condition of `term` or `range` is met."""
    ((kind, asked),) = condition.items()
    ((field, wanted),) = asked.items()
    value, bounds = document.get(field), wanted if kind == "range" else {"gte": wanted, "lte": wanted}
    tests = {"gte": operator.ge, "lt": operator.lt, "lte": operator.le}
    return value is not None and all(tests[sign](value, limit) for sign, limit in bounds.items())


def _shown(document: Mapping[str, Any], asked: Any) -> dict[str, Any]:
    named = asked["excludes"] if isinstance(asked, dict) else asked
    return {key: value for key, value in document.items() if (key in named) is isinstance(asked, list)}


def _buckets(field: str, further: Mapping[str, Any], documents: Documents) -> list[dict[str, Any]]:
    def key(document: Mapping[str, Any]) -> str:
        return str(document[field])

    groups = ((name, list(group)) for name, group in groupby(sorted(documents, key=key), key))
    return [{"key": name, "doc_count": len(group), **reckoned(further, group)} for name, group in groups]


def _composite(asked: Mapping[str, Any], further: Mapping[str, Any], documents: Documents) -> dict[str, Any]:
    ((name, source),) = asked["sources"][0].items()
    last = asked.get("after", {}).get(name, "")
    field = source["terms"]["field"]
    rest = [document for document in documents if document[field] > last]
    buckets = [{**each, "key": {name: each["key"]}} for each in _buckets(field, further, rest)][: asked["size"]]
    return {"buckets": buckets, **({"after_key": buckets[-1]["key"]} if buckets else {})}
