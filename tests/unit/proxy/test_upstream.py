from __future__ import annotations

from types import SimpleNamespace
from typing import NoReturn, cast

import aiohttp
import pytest

from checkstream.config import Upstream
from checkstream.errors import UpstreamError
from checkstream.proxy.upstream import Answer


async def test_an_answer_that_broke_off_says_so_at_every_read_even_while_that_is_told() -> None:
    kept = aiohttp.ClientPayloadError("x")  # by the stream, which raises the same again

    async def broken(_most: int) -> NoReturn:
        raise kept

    response = SimpleNamespace(content=SimpleNamespace(read=broken), status=200, headers={}, connection=None)
    answer = Answer(cast("aiohttp.ClientResponse", response), Upstream(url="http://x"))
    with pytest.raises(UpstreamError):
        await answer.read()
    try:
        await answer.read()
    except UpstreamError:
        with pytest.raises(UpstreamError):  # whose context now is what it caused
            await answer.read()
    assert kept.__traceback__ is None or kept.__traceback__.tb_next is None
