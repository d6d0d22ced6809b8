"""What of a step's result a person may look for later. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from checkstream.gate.terms import ClaimVerdict, Evidence, FoundClaim, Prompt, Response


def spoken(value: object) -> Iterator[tuple[str, str, str]]:
    """Yield (kind, item, text) of everything in a result that has words."""
    match value:
        case tuple():
            for each in value:
                yield from spoken(each)
        case Prompt():
            yield "prompt", value.id, value.text
        case Response():
            yield "response", value.prompt_id, value.text
        case FoundClaim():
            yield "claim", value.id, value.text
        case Evidence():
            for document in value.documents:
                yield "evidence", f"{value.claim_id} {document.chunk_id}", document.content
        case ClaimVerdict():
            yield "verdict", value.claim_id, f"{value.label}: {value.justification}"
