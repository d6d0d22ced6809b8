from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from hypothesis import example, given, settings
from hypothesis import strategies as st

from checkstream.core.channel.matches import _MOST_CHAINED, LOOKED_AT, Cluster, Matches
from checkstream.core.match.patterns import Pattern, PatternSet
from checkstream.core.steps import done
from checkstream.core.terms import Span
from tests.chance import examples

PATTERNS = PatternSet([Pattern(signal=0, name="address", regex="[a-z]{1,9}@[a-z]{1,9}")])


def test_g10_g22_what_both_readings_find_is_told_once_and_only_what_may_be_found_again_is_remembered() -> None:
    """A stream of parts has as many findings as it has parts, and lasts as long as its upstream likes."""
    matches, spans, most = Matches(PATTERNS), list[Span](), 0
    text = ""

    def kept(start: int) -> str:
        return text[start:]

    for number in range(2000):
        piece = "to bob@example, " if number % 3 else "and to a"
        matches.feed(piece)
        text += piece
        done(matches.parting(len(text), kept, 0, spaced=False))
        most = max(most, len(matches._known))
        while matches.found and matches.found[0].span.end <= matches.live:
            spans.append(matches.found.popleft().span)
    matches.end()
    spans += [finding.span for finding in matches.found]
    assert [text[span.start : span.end] for span in spans] == ["bob@example"] * text.count("bob@example")
    assert len(set(spans)) == len(spans) > 1000
    assert most <= 200


CHAINING = PatternSet([Pattern(signal=0, name="one", regex="xay"), Pattern(signal=1, name="other", regex="yax")])


def handed_out(pieces: Sequence[str]) -> list[Cluster]:
    """Return the decisions on a text that comes in pieces."""
    matches, clusters = Matches(CHAINING), list[Cluster]()
    looked = 0

    def touched(span: Span) -> Span:
        nonlocal looked
        looked += 1
        return span

    def take(live: int) -> None:
        nonlocal looked
        while matches.found:
            looked = 0
            cluster = matches.cluster(live, touched, lambda _: False)
            assert looked <= LOOKED_AT + 2, "one step looks at few"
            if cluster is None:
                assert len(matches.found) <= 2 * _MOST_CHAINED + LOOKED_AT, "and few of a chain are kept"
                return
            assert len(cluster.findings) <= 2 * _MOST_CHAINED
            clusters.extend([cluster] if cluster.findings else [])

    for piece in pieces:
        matches.feed(piece)
        take(matches.live)
    matches.end()
    take(sum(map(len, pieces)))
    return clusters


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.integers(1, 400), min_size=1, max_size=3), st.lists(st.integers(0, 5000), max_size=20))
@example([64, 65], [])
@example([2000], [])
def test_g03_g33_findings_that_chain_are_as_many_decisions_however_they_come(sizes: list[int], at: list[int]) -> None:
    chains = ["xa" + "yaxa" * size for size in sizes]
    text = " ".join(chains)
    cuts = [0, *sorted(min(place, len(text)) for place in at), len(text)]
    clusters = handed_out([text[low:high] for low, high in pairwise(cuts)])
    assert clusters == handed_out([text]) == handed_out(list(text))
    assert len(clusters) == len(chains)
    for chain, cluster in zip(chains, clusters, strict=True):
        count = {0: chain.count("xay"), 1: chain.count("yax")}
        assert {signal: sum(f.hits for f in cluster.findings if f.signal == signal) for signal in count} == count
        assert len(cluster.findings) == (2 if sum(count.values()) > _MOST_CHAINED else sum(count.values()))
        assert {text[each.span.start : each.span.end][:3] for each in cluster.findings} == {"xay", "yax"}
