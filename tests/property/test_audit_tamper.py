"""Law: any changed, dropped, repeated or swapped record, any flipped byte and any cut below a head is found."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checkstream.audit.chain import Reason
from checkstream.audit.segments import segment_name
from checkstream.audit.verify import ChainReport, verify
from tests.chance import examples
from tests.records import CHAIN, KEY, entries, head, seal_all, two_segments, write_chain

SEALED = seal_all(two_segments(5, 4))
LINES = [sealed.line for sealed in SEALED]
SEGMENTS = [LINES[:5], LINES[5:]]
HEADS = [head(SEALED[1]), head(SEALED[-1])]
FILES = {
    segment_name(CHAIN, 1): b"".join(SEGMENTS[0]),
    segment_name(CHAIN, 2): b"".join(SEGMENTS[1]),
    f"{CHAIN}.heads": b"".join(HEADS),
}


def report(files: dict[str, bytes], *, keys: bool = True) -> ChainReport:
    with tempfile.TemporaryDirectory() as directory:
        for name, content in files.items():
            (Path(directory) / name).write_bytes(content)
        (found,) = verify(Path(directory), keys=(KEY.public,) if keys else ())
        return found


def test_the_untouched_chain_holds() -> None:
    assert report(FILES).bad is None


@settings(max_examples=examples(250), deadline=None)
@given(name=st.sampled_from(sorted(FILES)), data=st.data())
def test_g26_any_flipped_byte_is_found(name: str, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(FILES[name]) - 1))
    flipped = bytearray(FILES[name])
    flipped[place] ^= data.draw(st.integers(1, 255))
    found = report({**FILES, name: bytes(flipped)})
    assert found.bad is not None
    if name.endswith(".jsonl"):
        number = 1 + bytes(FILES[name][:place]).count(b"\n")
        assert found.bad.file.endswith(".heads") or (found.bad.file, found.bad.line) <= (name, number + 1)


@settings(max_examples=examples(120), deadline=None)
@given(data=st.data())
def test_g26_any_dropped_repeated_or_moved_record_is_found(data: st.DataObject) -> None:
    index = data.draw(st.integers(0, len(LINES) - 1))
    lines = list(LINES)
    match data.draw(st.sampled_from(["drop", "repeat", "move"])):
        case "drop":
            del lines[index]
        case "repeat":
            lines.insert(data.draw(st.integers(0, len(lines))), lines[index])
        case _:
            other = data.draw(st.integers(0, len(lines) - 1).filter(lambda n: n != index))
            lines[index], lines[other] = lines[other], lines[index]
    border = data.draw(st.integers(4, 6))
    found = report(
        {**FILES, segment_name(CHAIN, 1): b"".join(lines[:border]), segment_name(CHAIN, 2): b"".join(lines[border:])}
    )
    assert found.bad is not None
    # What still holds is at least all before the first place that differs.
    same = next((n for n, (a, b) in enumerate(zip(LINES, lines, strict=False)) if a != b), min(len(LINES), len(lines)))
    assert found.records >= min(same, border)


@settings(max_examples=examples(80), deadline=None)
@given(kept=st.integers(0, len(FILES[segment_name(CHAIN, 2)]) - 1), keys=st.booleans())
def test_g26_any_cut_below_a_head_is_found(kept: int, keys: bool) -> None:
    name = segment_name(CHAIN, 2)
    assert report({**FILES, name: FILES[name][:kept]}, keys=keys).bad is not None


@settings(max_examples=examples(80), deadline=None)
@given(content=st.binary(max_size=300), name=st.sampled_from(sorted(FILES)))
def test_any_bytes_in_a_files_place_are_judged(content: bytes, name: str) -> None:
    found = report({**FILES, name: content})
    assert found.bad is not None
    assert found.bad.render().isprintable() or content


@pytest.mark.parametrize("cut", range(len(LINES)))
def test_a_chain_written_anew_does_not_fit_its_heads(cut: int, tmp_path: Path) -> None:
    anew = [sealed.line for sealed in seal_all([*entries(20)[: cut + 1], *entries(20)[cut + 2 :]])]
    write_chain(tmp_path, [anew], [head(SEALED[-1])])
    (found,) = verify(tmp_path, keys=(KEY.public,))
    assert found.bad is not None
    assert found.bad.reason is Reason.HEAD_HASH
