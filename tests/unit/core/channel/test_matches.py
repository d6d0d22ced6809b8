from __future__ import annotations

from checkstream.core.channel.matches import Matches
from checkstream.core.match.patterns import Pattern, PatternSet
from checkstream.core.steps import done
from checkstream.core.terms import Span

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
