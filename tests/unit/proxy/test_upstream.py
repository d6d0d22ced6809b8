from __future__ import annotations

import gc

import pytest

from checkstream.errors import UpstreamError
from checkstream.proxy.upstream import Pulled


async def test_an_answer_that_broke_off_says_so_at_every_read_even_while_that_is_told_and_is_freed() -> None:
    gc.collect()
    gc.disable()
    try:
        pulled = Pulled()
        pulled.failed(UpstreamError("it broke off", kind="reset"))
        with pytest.raises(UpstreamError, match="it broke off"):
            await pulled.read()
        try:
            await pulled.read()
        except UpstreamError:
            with pytest.raises(UpstreamError):
                await pulled.read()
        del pulled
        assert not any(type(each) is Pulled for each in gc.get_objects())
    finally:
        gc.enable()
