"""Tries drafts: each is laid out in a folder of its own, and commands of the package look at it.

INVARIANT: what somebody has written is compiled and run in a process of its own alone (`own_process`), and what
is told of it is what the commands tell anybody.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import tempfile
import threading
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import msgspec

from checkstream.control.drafts.files import Manifest, content_of, digest_of
from checkstream.control.drafts.found import Found
from checkstream.control.drafts.sources import Sources
from checkstream.errors import ActConflicts, CheckstreamError, ControlUnusable
from checkstream.own_process import OwnProcesses, Ran

AT_ONCE, WAITING = 2, 8
CHECK_S, WHAT_IF_S = 30.0, 60.0
_SLACK_S = 20.0
_REMEMBERED = 64


class Material(msgspec.Struct, frozen=True, kw_only=True):
    """The files of a draft, and those that it is held against."""

    files: Manifest
    base: Manifest
    texts: Mapping[str, str]
    """Digest -> text, of those that can be edited; the others stand in the sources."""


class Tried(msgspec.Struct, frozen=True, kw_only=True):
    """What a trial came to."""

    found: Found | None = None
    failure: str = ""
    """Why nothing was found."""


def without_texts(tried: Tried) -> Tried:
    """Return what a trial came to without what recorded exchanges say: counts are for all who look, texts are not."""
    if tried.found is None:
        return tried
    what_if = tuple(
        msgspec.structs.replace(each, examples=tuple(msgspec.structs.replace(one, lines=()) for one in each.examples))
        for each in tried.found.what_if
    )
    return Tried(found=msgspec.structs.replace(tried.found, what_if=what_if))


class Trials:
    """Tries drafts."""

    def __init__(
        self, program: Sequence[str], sources: Sources, *, recordings: Path | None = None, models: Path | None = None
    ) -> None:
        """Run nothing yet.

        Args:
            program: Command line that starts checkstream, without arguments.
            sources: Where files are that can't be edited.
            recordings: A folder of recorded exchanges.
            models: A `models.yaml`.
        """
        self._sources = sources
        self._recordings = recordings
        self._models = () if models is None else ("--models", str(models))
        self._processes = OwnProcesses(program, at_once=AT_ONCE, waiting=WAITING)
        self._known: OrderedDict[tuple[str, str], Found] = OrderedDict()
        self._checking: dict[tuple[str, str, tuple[str, ...]], asyncio.Task[Tried]] = {}
        self._waiting: Counter[asyncio.Task[Tried]] = Counter()
        """How many wait for each of those."""
        self._typing: dict[str, asyncio.Task[Tried]] = {}

    @property
    def has_recordings(self) -> bool:
        """Whether there are exchanges to try drafts on."""
        return self._recordings is not None

    async def check(self, material: Material) -> Tried:
        """Say what is wrong with a draft, and how it differs from what it is held against."""
        key = content_of(material.base), content_of(material.files)
        if key in self._known:
            self._known.move_to_end(key)
            return Tried(found=self._known[key])
        tried = await self._check(material, (), CHECK_S)
        if tried.found is not None:
            self._known[key] = tried.found
            if len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
        return tried

    async def check_typed(self, who: str, material: Material) -> Tried:
        """Check what somebody is typing; what is found of what they had before doesn't matter any more."""
        before = self._typing.pop(who, None)
        if before is not None:
            before.cancel()
        task = self._typing[who] = asyncio.ensure_future(self.check(material))
        try:
            await asyncio.wait({task})
        finally:
            task.cancel()  # a caller that has left wants it no more; one that is done is not cancelled
            if self._typing.get(who) is task:
                del self._typing[who]
        return Tried(failure="something newer is being checked") if task.cancelled() else task.result()

    async def what_if(self, material: Material) -> Tried:
        """Say what the programs of a draft would have made of recorded exchanges, held against those before."""
        if self._recordings is None:
            return Tried(failure="there are no recordings; name a folder of them as `policies.recordings`")
        words = ("--recordings", str(self._recordings), "--seconds", f"{WHAT_IF_S:g}")
        return await self._check(material, words, WHAT_IF_S + _SLACK_S)

    async def _check(self, material: Material, words: Sequence[str], most_s: float) -> Tried:
        """Do it once for all who ask for it at a time; it ends when none of them waits any more."""
        key = content_of(material.base), content_of(material.files), tuple(words)
        task = self._checking.get(key)
        if task is None:
            task = self._checking[key] = asyncio.ensure_future(self._checked(material, words, most_s))
        self._waiting[task] += 1
        try:
            return await asyncio.shield(task)
        finally:
            self._waiting[task] -= 1
            if not self._waiting[task]:
                del self._waiting[task]
                task.cancel()  # one that is done is not cancelled
                if self._checking.get(key) is task:
                    del self._checking[key]

    async def _checked(self, material: Material, words: Sequence[str], most_s: float) -> Tried:
        @asynccontextmanager
        async def laid() -> AsyncIterator[Sequence[str | Path]]:
            async with _Laid(self._sources, material) as folder:
                asked = ("bundle", "check", folder / "after", "--against", folder / "before", "--json", *self._models)
                yield [*asked, *words]

        return await asyncio.to_thread(_read, await self._processes.run(laid(), most_s=most_s))

    async def explain(self, material: Material, policies: Sequence[str], stage: str, text: str) -> Ran:
        """Return what `checkstream policy explain` says of a text under policies of a draft, with paths from within it.

        Args:
            material: The draft.
            policies: As a check tells them of a program.
            stage: Where the text stands, `ingress`, `midstream` or `egress`.
            text: What is explained.
        """
        after = ""

        @asynccontextmanager
        async def laid() -> AsyncIterator[Sequence[str | Path]]:
            nonlocal after
            async with _Laid(self._sources, material) as folder:
                after = f"{folder / 'after'}/"
                files = [each if ":" in each else f"{after}{each}" for each in policies]
                yield ["policy", "explain", *self._models, "--stage", stage, "--text", "-", "--json", "--", *files]

        ran = await self._processes.run(laid(), text.encode("utf-8", "replace"), most_s=CHECK_S)
        return msgspec.structs.replace(ran, out=ran.out.replace(after.encode(), b"")) if after else ran

    async def close(self) -> None:
        """End what runs."""
        await self._processes.close()


def _read(ran: Ran) -> Tried:
    if ran.failure:
        return Tried(failure=ran.failure)
    try:
        return Tried(found=msgspec.json.decode(ran.out, type=Found))
    except msgspec.DecodeError:
        said = ran.err.decode("utf-8", "replace").strip().splitlines()
        return Tried(failure=f"it could not be checked: {said[-1][:500] if said else f'it ended with {ran.code}'}")


_CLEARING: Final[set[asyncio.Future[None]]] = set()
"""What removes folders that nobody waits for any more; nothing else holds it."""


class _Laid:
    """A draft in a folder, as long as it is looked at: `before` and `after`."""

    def __init__(self, sources: Sources, material: Material) -> None:
        self._sources = sources
        self._material = material
        self._unwanted = threading.Event()
        self._laying: asyncio.Future[Path] | None = None

    async def __aenter__(self) -> Path:
        """Lay it out.

        Raises:
            ActConflicts: a file of it is not what it was any more.
            ControlUnusable: there is no room for it.
        """
        self._laying = asyncio.ensure_future(asyncio.to_thread(self._lay))
        try:
            return await asyncio.shield(self._laying)
        except OSError as error:
            raise ControlUnusable(f"a draft can't be laid out: {error.strerror or error}") from error
        except asyncio.CancelledError:
            await self._clear()
            raise

    async def __aexit__(self, *_: object) -> None:
        """Let go of it."""
        await self._clear()

    async def _clear(self) -> None:
        """Remove the folder once nothing is written into it any more, whoever is cancelled meanwhile."""
        self._unwanted.set()
        clearing = asyncio.ensure_future(self._gone())
        _CLEARING.add(clearing)
        clearing.add_done_callback(_CLEARING.discard)
        await asyncio.shield(clearing)

    async def _gone(self) -> None:
        if self._laying is None:
            return
        with contextlib.suppress(OSError, CheckstreamError):  # what was not laid out whole is gone already
            await asyncio.to_thread(shutil.rmtree, await self._laying, ignore_errors=True)

    def _lay(self) -> Path:
        """Lay it out, or nothing of it. Blocks: it stands on one thread, which makes the folder and removes it."""
        folder = Path(tempfile.mkdtemp(prefix="checkstream-draft-"))
        try:
            self._fill(folder)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return folder

    def _fill(self, folder: Path) -> None:
        for name, manifest in (("before", self._material.base), ("after", self._material.files)):
            (folder / name).mkdir()
            for path, digest in manifest.items():
                if self._unwanted.is_set():
                    return
                place = folder / name / path
                place.parent.mkdir(parents=True, exist_ok=True)
                text = self._material.texts.get(digest)
                place.write_bytes(self._sourced(path, digest) if text is None else text.encode())

    def _sourced(self, path: str, digest: str) -> bytes:
        content = self._sources.content(path)
        if digest_of(content) != digest:
            raise ActConflicts(f"`{path}` of the sources is not what it was; take the sources over as they are now")
        return content
