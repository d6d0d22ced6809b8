"""Names of exchanges: made here, and told in the headers in which clients look for one.

Logs and audit know an exchange by its stream's id. SDKs show the id that the model server gave; where none gave any, as
in a refusal, they show ours.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, MutableMapping

STREAM = "x-checkstream-stream"
REQUEST_ID = "x-request-id"
"""In which most clients look; those of Anthropic's API look in another one."""
_OF_UPSTREAMS = (REQUEST_ID, "request-id", "apim-request-id")
_CONSONANTS = "bcdfghjklmnpqrstvwxz"


def new_id() -> str:
    """Return an id of 91 bits in which no two figures, and no word, stand: by chance they are a part of somebody's."""
    chance = iter(secrets.token_bytes(24))
    return "".join(_CONSONANTS[one % 20] + str(next(chance) % 10) for one in chance)


def identify(headers: MutableMapping[str, str], names: Iterable[str] = (REQUEST_ID,)) -> None:
    """Put an id into those of the headers `names` that are not there: the upstream's, else that of the stream."""
    said = next((headers[name] for name in (*_OF_UPSTREAMS, STREAM) if name in headers), None)
    if said is not None:
        for name in names:
            headers.setdefault(name, said)
