"""What people ask a control server of drafts: begun and changed from a folder, proposed, approved, and taken out."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import quote, urlencode

import msgspec

from checkstream.cli.bundle_check import told as told_of_check
from checkstream.cli.control_ask import ask
from checkstream.cli.results import counted, safe, write_json
from checkstream.control.drafts.draft import Approval
from checkstream.control.drafts.files import MOST_BYTES, Manifest, check_path, checked_text, content_of, digest_of
from checkstream.control.drafts.found import Found
from checkstream.control.drafts.sources import walked
from checkstream.control.server.draft_showing import DraftShown, DraftWhole, Rebased
from checkstream.errors import ControlError, FileUnreadable, RequestInvalid

NAMED = "draft.json"
"""Stands beside the files of a draft that was taken out."""
_BATCH = 600_000
"""Bytes of texts that are sent at once; the server takes a MiB, and JSON takes more room than text."""


class _Named(msgspec.Struct, frozen=True, kw_only=True):
    """What a folder of a draft says of itself."""

    format: str = "checkstream.draft.1"
    draft: int
    title: str
    version: int
    digest: str
    base: str
    stage: str
    authors: tuple[str, ...]
    approvals: tuple[Approval, ...]


def drafts(args: argparse.Namespace) -> int:
    """Show the drafts that there are."""
    query = "?over=true" if args.all else ""
    found = msgspec.convert(ask(args, "GET", f"/v1/drafts{query}")["drafts"], tuple[DraftShown, ...])
    if args.json:
        write_json(found)
    else:
        sys.stdout.write("".join(f"{safe(_line(each))}\n" for each in found) or "there are no drafts\n")
    return 0


def draft(args: argparse.Namespace) -> int:
    """Do something with one.

    Returns:
        0: done; of a check 1: a case fails, 2: there are faults.
    """
    does = {"new": _new, "put": _put, "rebase": _rebase, "show": _show, "check": _check, "get": _get, "export": _get}
    return does.get(args.draft_command, _move)(args)


def _line(draft: DraftShown) -> str:
    who = ", ".join(draft.authors)
    approved = f", approved by {', '.join(each.who for each in draft.approvals)}" if draft.approvals else ""
    needs = f" of {draft.needs}" if draft.needs > 1 else ""
    why = f": {draft.why}" if draft.why else ""
    head = f"draft {draft.id} ({draft.digest[:12]}, version {draft.version}) by {who}"
    return f"{head}: {draft.stage}{approved}{needs if approved else ''}: {draft.title}{why}"


def _told(args: argparse.Namespace, draft: DraftShown) -> int:
    if args.json:
        write_json(draft)
    else:
        sys.stdout.write(f"{safe(_line(draft))}\n")
    return 0


def _asked_of(args: argparse.Namespace) -> DraftWhole:
    return msgspec.convert(ask(args, "GET", f"/v1/drafts/{args.draft}"), DraftWhole)


# writing


def _new(args: argparse.Namespace) -> int:
    """Begin a draft, with what a folder has otherwise than the sources."""
    texts = None if args.folder is None else _folder(args.folder)
    made = msgspec.convert(ask(args, "POST", "/v1/drafts", {"title": args.title, "reason": args.reason}), DraftShown)
    args.draft = made.id
    return _told(args, made if texts is None else _sent(args, texts))


def _put(args: argparse.Namespace) -> int:
    """Make a draft hold what a folder holds."""
    return _told(args, _sent(args, _folder(args.folder)))


def _rebase(args: argparse.Namespace) -> int:
    """Take the sources over as they are now."""
    body = {"draft": args.draft, "version": _asked_of(args).draft.version}
    found = msgspec.convert(ask(args, "POST", "/v1/draft-rebases", body), Rebased)
    if args.json:
        write_json(found)
    else:
        lines = [_line(found.draft), *(f"both have changed {path}; the draft's stays" for path in found.both)]
        sys.stdout.write("\n".join(map(safe, lines)) + "\n")
    return 0


def _folder(folder: Path) -> dict[str, bytes]:
    """Return the files of a folder.

    Raises:
        FileUnreadable: one can't be read.
        ControlError: a name is none that a draft can have.
    """
    found: dict[str, bytes] = {}
    for path in walked(folder):
        if path == NAMED:
            continue
        try:
            check_path(path)
            with (folder / path).open("rb") as file:
                found[path] = file.read()
        except OSError as error:
            reason = (error.strerror or "it can't be opened").lower()
            raise FileUnreadable(f"can't read `{folder / path}`: {reason}") from error
        except RequestInvalid as error:
            raise ControlError(str(error)) from error
    return found


def _sent(args: argparse.Namespace, files: Mapping[str, bytes]) -> DraftShown:
    whole = _asked_of(args)
    shown = whole.draft
    for batch in _batches(_changes(whole, files)):
        body = {"draft": shown.id, "version": shown.version, "files": batch, "reason": args.reason}
        shown = msgspec.convert(ask(args, "POST", "/v1/draft-changes", body), DraftShown)
    return shown


def _changes(whole: DraftWhole, files: Mapping[str, bytes]) -> dict[str, str | None]:
    """Return what a draft lacks of a folder.

    Raises:
        ControlError: what differs is no text that a draft can hold.
    """
    there = {file.path: file.digest for file in whole.files if file.change != "removed"}
    changes: dict[str, str | None] = {path: None for path in there if path not in files}
    for path, content in files.items():
        if there.get(path) == digest_of(content):
            continue
        try:
            changes[path] = content.decode()
            checked_text(path, content.decode())
        except (UnicodeDecodeError, RequestInvalid) as error:
            raise ControlError(
                f"`{path}` differs from the sources, and a draft holds texts of at most {MOST_BYTES >> 10} KiB; "
                f"bring it into the sources by itself: {error}"
            ) from error
    return changes


def _batches(changes: Mapping[str, str | None]) -> Iterator[dict[str, str | None]]:
    """Yield changes in parts that can be sent; what is new comes before what goes, so that no part is a lie."""
    batch: dict[str, str | None] = {}
    size = 0
    for path, text in sorted(changes.items(), key=lambda each: (each[1] is None, each[0])):
        length = len(path) + len(msgspec.json.encode(text))
        if batch and size + length > _BATCH:
            yield batch
            batch, size = {}, 0
        batch[path] = text
        size += length
    if batch:
        yield batch


# looking


def _show(args: argparse.Namespace) -> int:
    whole = _asked_of(args)
    if args.json:
        write_json(whole)
        return 0
    lines = [_line(whole.draft), f"digest {whole.draft.digest}"]
    lines += [f"  {file.change} {file.path}" for file in whole.files if file.change]
    lines += ["the sources have changed since it began; `rebase` takes them over"] if whole.moved_on else []
    sys.stdout.write("\n".join(map(safe, lines)) + "\n")
    return 0


def _check(args: argparse.Namespace) -> int:
    found = msgspec.convert(ask(args, "GET", f"/v1/draft-checks?draft={args.draft}"), Found)
    if args.json:
        write_json(found)
    else:
        sys.stdout.write("\n".join(map(safe, told_of_check(found))) + "\n")
    return 2 if found.faults else 1 if found.failed else 0


# what becomes of it


def _move(args: argparse.Namespace) -> int:
    """Propose, approve, refuse or withdraw."""
    digest: str | None = getattr(args, "digest", None)
    now = _asked_of(args).draft.digest
    if digest is not None and (len(digest) < 8 or not now.startswith(digest)):
        raise ControlError(
            f"draft {args.draft} holds {now[:12]} now, and `{digest[:12]}` was meant; look at it again with "
            f"`checkstream control draft show {args.draft}`, and give eight digits or more"
        )
    body = {"draft": args.draft, "move": args.draft_command, "digest": now, "reason": args.reason}
    return _told(args, msgspec.convert(ask(args, "POST", "/v1/draft-moves", body), DraftShown))


def _get(args: argparse.Namespace) -> int:
    """Write the files of a draft into a folder, over a checkout of its sources or into a new one.

    An export is marked before anything is written: the folder may be the sources themselves, which are then others.

    Raises:
        ControlError: the folder would not hold what the draft holds, or would lose something; says what.
    """
    whole, folder, export = _asked_of(args), args.to, args.draft_command == "export"
    shown = whole.draft
    if export and shown.stage != "approved":
        raise ControlError(
            f"draft {shown.id} is {shown.stage}, and only an approved one is exported; `get` takes it as it is"
        )
    wanted = {file.path: file.digest for file in whole.files if file.change != "removed"}
    there = {path: digest_of(content) for path, content in _folder(folder).items()} if folder.exists() else {}
    foreign = sorted(set(there) - {file.path for file in whole.files})
    if foreign:
        raise ControlError(
            f"`{folder}` holds `{foreign[0]}`, which the draft does not; give a checkout, or a new folder"
        )
    if export:
        _require_known(folder, there, whole)
    changes = _wanting(args, whole, there)
    for path in changes:
        _place(folder, path)
    after = {**there, **{path: digest_of(content) for path, content in changes.items() if content is not None}}
    _require(folder, {path: digest for path, digest in after.items() if changes.get(path, b"") is not None}, wanted)
    if export:
        body = {"draft": shown.id, "move": "export", "digest": shown.digest, "reason": args.reason}
        shown = msgspec.convert(ask(args, "POST", "/v1/draft-moves", body), DraftShown)
    for path, content in changes.items():
        _write(folder, path, content)
    named = _Named(
        draft=shown.id, title=shown.title, version=shown.version, digest=shown.digest, base=shown.base,
        stage=shown.stage, authors=shown.authors, approvals=shown.approvals,
    )  # fmt: skip
    _write(folder, NAMED, msgspec.json.format(msgspec.json.encode(named), indent=2) + b"\n")
    return _told(args, shown)


def _wanting(args: argparse.Namespace, whole: DraftWhole, there: Manifest) -> dict[str, bytes | None]:
    """Return what a folder lacks of a draft: path -> content; None: the file goes."""
    changes: dict[str, bytes | None] = {}
    for file in whole.files:
        check_path(file.path)
        if file.change == "removed":
            if file.path in there:
                changes[file.path] = None
        elif there.get(file.path) != file.digest and file.editable:
            asked = {"draft": whole.draft.id, "version": whole.draft.version, "path": file.path}
            text = str(ask(args, "GET", f"/v1/draft-texts?{urlencode(asked, quote_via=quote)}")["text"])
            changes[file.path] = text.encode()
    return changes


def _require_known(folder: Path, there: Manifest, whole: DraftWhole) -> None:
    """Hold a folder that is written over to files that the draft, or the sources that it is held against, have, too.

    Raises:
        ControlError: one is something else, such as newer, and would be lost.
    """
    for file in whole.files:
        if there.get(file.path, file.digest) not in {file.digest, file.before}:
            raise ControlError(
                f"`{folder / file.path}` is neither what the draft holds nor what the sources of it do, and would be "
                "lost; give a new folder, or bring it into the sources, and take them over with `rebase`"
            )


def _write(folder: Path, path: str, content: bytes | None) -> None:
    """Write a file below a folder, through no link; None: remove it.

    Raises:
        ControlError: it can't be written.
    """
    try:
        if content is None:
            _place(folder, path).unlink(missing_ok=True)
            return
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        _place(folder, path).write_bytes(content)
    except OSError as error:
        raise ControlError(f"can't write `{folder / path}`: {(error.strerror or 'it is closed').lower()}") from error


def _place(folder: Path, path: str) -> Path:
    """Return where a file of a draft stands in a folder.

    Raises:
        ControlError: that leads elsewhere.
    """
    place = folder / path
    if place.is_symlink() or not place.parent.resolve().is_relative_to(folder.resolve()):
        raise ControlError(f"`{place}` is a link, or stands behind one; remove it")
    return place


def _require(folder: Path, there: Manifest, wanted: Manifest) -> None:
    """Hold what a folder is about to hold to what the draft holds.

    Raises:
        ControlError: it holds something else.
    """
    if content_of(there) == content_of(wanted):
        return
    other = sorted(path for path in {*there, *wanted} if there.get(path) != wanted.get(path))
    raise ControlError(
        f"`{folder}` would not be what the draft holds: {counted(len(other), 'file')} differ, such as `{other[0]}`, "
        "which is no text; give a checkout of the sources, where it stands"
    )
