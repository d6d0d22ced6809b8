"""The published bundles as plain files, for nodes that have attested: what is signed is public to them alone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from aiohttp import hdrs
from aiohttp.web import BaseRequest, FileResponse, StreamResponse

from checkstream.api.face import STORE_FAILS, problem, status_of
from checkstream.api.nodes import Nodes
from checkstream.control.identity import ONCE
from checkstream.errors import CallerUnknown, ControlUnusable, NodeRefused

BUNDLES = "/bundles/"
_OLDER = "`{node}` has signed this for all time, as older versions do, so others could send it again; upgrade it"
_PART = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


class RepositoryFiles:
    """Answers requests for files of a repository."""

    def __init__(self, folder: Path, nodes: Nodes, admit: Callable[[str, str], Awaitable[None]]) -> None:
        """Serve what is below `folder` to nodes that `admit` lets in."""
        self._folder = folder
        self._nodes = nodes
        self._admit = admit

    async def respond(self, request: BaseRequest) -> StreamResponse:
        """Answer one request; it is signed like any of a node's, and counts once."""
        path = request.rel_url.raw_path.removeprefix(BUNDLES)
        try:
            node = self._nodes.named(request)
            if request.method != "GET":
                return problem(405, "method_not_allowed", "bundles are read with GET")
            once = request.headers.get(ONCE, "")
            self._nodes.require(request, once.encode("utf-8", "surrogateescape"))
            if not once:  # signed for all time: whoever has seen it could ask it again
                return problem(403, "node_refused", _OLDER.format(node=node))
            await self._admit(node, once)
        except (CallerUnknown, NodeRefused, ControlUnusable) as error:
            return problem(*status_of(error), STORE_FAILS if isinstance(error, ControlUnusable) else str(error))
        file = await asyncio.to_thread(self._found, path)
        if file is None:
            return problem(404, "not_found", f"there is no `{path[:200]}` among the bundles")
        return FileResponse(file, headers={hdrs.CONTENT_TYPE: "application/octet-stream"})

    def _found(self, path: str) -> Path | None:
        """Return the file of a path that stays below the folder."""
        parts = path.split("/")
        if any(not part or part.startswith(".") or not set(part) <= _PART for part in parts):
            return None
        file = self._folder.joinpath(*parts)
        root = self._folder.resolve()
        return file if file.is_file() and file.resolve().is_relative_to(root) else None
