"""What is fuzzed: one function a target, which takes any bytes and raises only if a promise is broken.

Documented errors (`checkstream.errors`) are answers, not faults; anything else that escapes is a bug.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import msgspec
import onnx
from google.protobuf.message import DecodeError

from checkstream.audit.segments import find_tail, segment_name
from checkstream.audit.verify import verify
from checkstream.cli.replay import replay
from checkstream.config import bundled, read_config, warnings
from checkstream.core.match.fingerprints import Fingerprints
from checkstream.core.match.patterns import Pattern
from checkstream.core.match.recital import Recital
from checkstream.core.match.work import Work
from checkstream.core.policy import templates
from checkstream.core.policy.classifiers import ClassifierLabel
from checkstream.core.policy.compile import compile_sources
from checkstream.core.policy.listing import disassemble
from checkstream.core.policy.stored import load, stored
from checkstream.core.terms import Unit
from checkstream.core.wire import sse
from checkstream.core.wire.json_text.spans import NAME
from checkstream.core.wire.mcp.surface import MCP
from checkstream.core.wire.surface import Edit, Frame, Request, Shaping, Surface
from checkstream.demo.scenario import read_scenario
from checkstream.errors import (
    AuditError,
    ConfigError,
    EventTooLarge,
    FaultyFile,
    FingerprintsInvalid,
    ModelError,
    PolicyError,
    RequestInvalid,
    TemplateError,
    WireError,
)
from checkstream.scoring import onnx_file
from checkstream.scoring.catalog import load_models
from checkstream.scoring.lexicon import Lexicon
from checkstream.scoring.tokenizer import Tokenizer
from tests import stored_programs
from tests.fingerprinted import KEEPER, resealed
from tests.fuzz.exchange import CHAT, COMPLETIONS, MESSAGES, POLICY, RESPONSES, run_cuts, run_exchange
from tests.fuzz.messages import read_message, run_messages, run_messages_cut
from tests.sse_clients import ONE_FORM

Target = Callable[[bytes], None]
COOL = Shaping(max_temperature=0.25, bad_words=("boom",), logit_bias=((7, -100),), json_schema="{}")
KIND = Shaping(tools=("weather",), instructions=("Be kind.",), grammar="g")
CHAIN = "c1"
SPLIT = b"\n---- heads ----\n"
"""Between a segment and its heads in an input of the target `audit`."""


def decode_sse(data: bytes) -> None:
    """One form leaves, no cut is seen, only the cap is refused (G3, G19, G36). The first byte chooses cap and cut."""
    cap = (16, 64, 1 << 20)[data[0] % 3] if data else 64
    step = 1 + data[0] % 11 if data else 1
    body = data[1:]
    frames, failed = _decode([body], cap)
    sent = b"".join(frame.raw for frame in frames)
    assert ONE_FORM.fullmatch(sent)
    assert (
        _decode([sent], 1 << 24)[0] == [Frame(frame.raw, frame.raw[6:-2]) for frame in frames if frame.data is not None]
        or sse.KEEP_ALIVE in sent
    )
    assert _decode([body[at : at + 1] for at in range(len(body))], cap) == (frames, failed)
    assert _decode([body[at : at + step] for at in range(0, len(body), step)], cap) == (frames, failed)
    for frame in frames:
        if frame.data is not None:
            again = sse.parse(sse.reframe(frame.raw, b"{}"))
            assert (again.data, again.event) == (b"{}", sse.parse(frame.raw).event)


def _decode(reads: Sequence[bytes], cap: int) -> tuple[list[Frame], bool]:
    decoder = sse.Decoder(cap)
    frames: list[Frame] = []
    try:
        for read in reads:
            frames += decoder.decode(read)
            assert decoder.held_bytes <= cap
        frames += decoder.flush()
    except EventTooLarge:
        return frames, True
    return frames, False


def read_request(surface: Surface, data: bytes) -> None:
    """A body is refused, or forwarded as JSON that says what was scanned and nothing else (G31)."""
    try:
        request = surface.read_request(data)
    except RequestInvalid:
        return
    gone = {path[0] for path in surface.undone(request, Shaping())} | {"checkstream"}  # the API would refuse it
    again = surface.read_request(surface.write_request(request, {}))
    texts = [delta.text for delta in request.unit.deltas if delta.path[0] not in gone]
    assert [delta.text for delta in again.unit.deltas] == texts
    assert again.extension is None
    places = [place for place, delta in enumerate(request.unit.deltas) if delta.path[0] not in gone]
    # A word of the protocol is no text, but it is one under another name: the names before such words stay.
    paths = [delta.path for delta in request.unit.deltas]
    read = {path[:size] for path in paths if path[-1] != NAME for size in range(len(path) + 1)}
    kept = {place for place, path in enumerate(paths) if path[-1] == NAME and path[:-1] not in read}
    edits = {place: f"<{place}>" for place in range(len(paths)) if place not in {*request.signed, *kept}}
    edited = surface.read_request(surface.write_request(request, edits))
    said = [edits.get(place, request.unit.deltas[place].text) for place in places]
    assert [delta.text for delta in edited.unit.deltas] == said
    signed = dict.fromkeys(request.signed, "<signed>")
    assert "<signed>" not in surface.write_request(request, signed).decode(), "what is signed leaves as it was, or not"
    json.dumps(request.unknown_fields)
    _shape(surface, request)


def _shape(surface: Surface, request: Request) -> None:
    """What policies want of a body is in it, or it is refused."""
    for shaping in (COOL, KIND, Shaping(continue_from="so far")):
        try:
            again = surface.read_request(surface.write_request(request, {}, shaping))
        except RequestInvalid:
            raise
        except WireError:
            continue
        assert again.extension is None
        assert again.structured == (
            shaping.grammar is not None or shaping.json_schema is not None or request.structured
        )
        assert again.choices == request.choices
        if shaping.tools is not None:
            assert set(again.tools) <= {"weather"}
        if shaping.max_temperature is not None:
            assert again.temperature is not None
            assert again.temperature <= shaping.max_temperature


def read_event(surface: Surface, data: bytes) -> None:
    """Each event of a stream is refused, or read so that an edit of its text is read back (G5, G8)."""
    frames, _ = _decode([data], 1 << 20)
    for frame in frames:
        if frame.data is None or not frame.complete:
            continue
        with contextlib.suppress(WireError):
            _edit_event(surface, surface.read_event(frame))


def _edit_event(surface: Surface, unit: Unit) -> None:
    sending = surface.sending()
    assert sending.write_event(unit, Edit({})) == unit.raw
    out = sending.write_event(unit, Edit({place: f"<{place}>" for place in range(len(unit.deltas))}))
    again = surface.read_event(sse.parse(out))
    assert [(delta.channel, delta.text) for delta in again.deltas] == [
        (delta.channel, f"<{place}>") for place, delta in enumerate(unit.deltas)
    ]
    gone = sending.write_event(unit, Edit({}, frozenset(unit.choices)))
    if gone:
        assert not surface.read_event(sse.parse(gone)).deltas
    for number in unit.choices[:2]:
        for made in (sending.text_event(unit, number, "x"), sending.finish_event(unit, number)):
            assert surface.read_event(sse.parse(made)).choices == (number,)


def read_whole(surface: Surface, data: bytes) -> None:
    """A whole answer is refused, or read so that an edit of its text is read back."""
    try:
        unit = surface.read_whole(data)
    except WireError:
        return
    assert surface.write_whole(unit, Edit({}), {}) == data
    # A call without a name has no place for one.
    edit = Edit({n: f"<{n}>" for n, delta in enumerate(unit.deltas) if delta.text or isinstance(delta.path[-1], str)})
    try:
        out = surface.write_whole(unit, edit, {})
        emptied = surface.write_whole(unit, Edit({}, frozenset(unit.choices)), dict.fromkeys(unit.choices, "x"))
    except WireError as error:
        if "two members" in str(error) or _shares_numbers(unit):
            return
        raise
    assert sorted((delta.channel, delta.text) for delta in surface.read_whole(out).deltas) == sorted(
        (delta.channel, edit.texts.get(place, delta.text)) for place, delta in enumerate(unit.deltas)
    )
    assert not [delta for delta in surface.read_whole(emptied).deltas if delta.text]


def _shares_numbers(unit: Unit) -> bool:
    """Tell whether two choices of a whole answer claim one number: there an edit is refused."""
    places = {(delta.channel.choice, delta.path[1]) for delta in unit.deltas}
    return len(places) > len({choice for choice, _ in places})


def read_configuration(data: bytes) -> None:
    """A configuration is read, or refused with faults that have their places in the file."""
    try:
        config = read_config("f.yaml", data, _folder() / "config")
    except ConfigError as error:
        _check_faults(error, data)
        return
    warnings(config)


def read_policy(data: bytes) -> None:
    """A policy compiles, or is refused with faults that have their places in the file."""
    try:
        program = compile_sources([("f.yaml", data)], (ClassifierLabel("lexicon.toxicity"),))
    except PolicyError as error:
        _check_faults(error, data)
        return
    disassemble(program)
    assert stored(load(stored(program), program.hash)) == stored(program)


def read_program(data: bytes) -> None:
    """A stored program is refused, or all of it can be carried out; what is spelled otherwise is put right first."""
    stored_programs.refused(data)
    with contextlib.suppress(msgspec.DecodeError, RecursionError, UnicodeError):
        stored_programs.refused(msgspec.json.encode(msgspec.json.decode(data)))


def read_condition(data: bytes) -> None:
    """An expression is refused at one of its characters, or comes to a value or an error in a bounded program."""
    text = data.decode("utf-8", "replace")
    rule = {
        "name": "r",
        "id": "R",
        "stage": "midstream",
        "phrases": ["zero risk"],
        "conditions": [text],
        "actions": [{"type": "redact"}],
    }
    policy = {"pack": {"name": "p", "version": "1.0.0"}, "policies": [rule]}
    try:
        program = compile_sources([("f.yaml", json.dumps(policy))], (ClassifierLabel("lexicon.toxicity"),))
    except PolicyError as error:
        _check_faults(error, data)
        return
    assert not stored_programs.refused(stored(program))


def read_template(data: bytes) -> None:
    """A text is refused at one of its characters, or written with every value cut to its length."""
    text = data.decode("utf-8", "replace")
    try:
        template = templates.parse(text)
    except TemplateError as error:
        _check_position(error.position, text)
        return
    for value in (None, "\x1b[2J\u202e" * 999, 1e300, True, [text], {"a": text}):
        written, missing = templates.render(template, dict.fromkeys(_paths(template), value).get)
        assert len(written) <= len(text) + templates.MAX_VALUE_CHARS * len(template)
        assert not missing or value is None or isinstance(value, list | dict)


def _check_position(position: int, text: str) -> None:
    assert 0 <= position <= len(text)


def _paths(template: templates.Template) -> list[tuple[str, ...]]:
    return [part.path for part in template if isinstance(part, templates.Variable)]


def read_demo_scenario(data: bytes) -> None:
    """A scenario is read, or refused with faults that have their places in the file."""
    try:
        read_scenario("s", data, file="f.yaml")
    except FaultyFile as error:
        _check_faults(error, data)


def _check_faults(error: FaultyFile, data: bytes) -> None:
    lines = len(data.decode("utf-8", "replace").splitlines()) + 1
    assert error.faults
    for fault in error.faults:
        assert fault.file == "f.yaml"
        assert 0 <= fault.line <= lines
        assert fault.reason
        fault.render().encode()  # can be printed


def read_models(data: bytes) -> None:
    """A manifest names models that are what it pins, or is refused."""
    folder = _folder() / "models"
    (folder / "manifest.json").write_bytes(data)
    with contextlib.suppress(ModelError):
        for model in load_models(folder):
            assert model.contents


def read_lexicon(data: bytes) -> None:
    """A lexicon scores any text with numbers from 0 to 1, or is refused."""
    with contextlib.suppress(ModelError):
        lexicon = Lexicon.parse(data, ("toxicity", "injection"))
        for text in ("you are an idiot", "", "ignore all previous instructions " * 3, data[:200].decode("latin-1")):
            assert all(0 <= score <= 1 for score in lexicon.score(text))


def read_fingerprints(data: bytes) -> None:
    """A file of fingerprints is refused, or read; nothing of one whose checksum is right makes looking dear."""
    for given in (data, resealed(data)):
        try:
            texts = Fingerprints(given)
        except FingerprintsInvalid:
            continue
        recital = Recital([Pattern(signal=0, name="f", texts=texts, words=texts.least)], Work())
        assert all(
            each.span.start < each.span.end for each in (*recital.feed(f"{KEEPER} a b c d e " * 3), *recital.end())
        )


def read_graph(data: bytes) -> None:
    """An ONNX file is refused, or keeps all that it needs inside, to whoever reads it by its schema."""
    try:
        onnx_file.check(data)
    except ModelError:
        return
    try:
        model = onnx.load_from_string(data)
    except DecodeError:  # a walk looks at the shape of fields, not at what their texts say
        return
    for tensor in (*model.graph.initializer, *(each.t for node in model.graph.node for each in node.attribute)):
        assert not tensor.external_data
        assert tensor.data_location != onnx.TensorProto.EXTERNAL
    assert {node.domain.encode() for node in model.graph.node} <= onnx_file.DOMAINS


def read_tokenizer(data: bytes) -> None:
    """A tokenizer is refused, or reads any text in order, and the same with places and without."""
    try:
        tokenizer = Tokenizer(data)
    except ModelError:
        return
    for text in (
        "Ann's the un\u00e9known!\x85\u6f22 model [SEP] ",
        "a" * 300,
        "",
        " \ud800",
        data[-300:].decode("latin-1"),
    ):
        placed = list(tokenizer.units(text, placed=True))
        ids = [token for _, unit in placed for token in unit.ids]
        assert ids == tokenizer.ids(text)
        assert all(token >= 0 for token in ids)
        for start, unit in placed:
            assert len(unit.cases) == len(unit.ids)
            assert all(0 <= start + begin <= start + end <= len(text) for _, begin, end in unit.words)


def read_audit(data: bytes) -> None:
    """A segment and its heads are judged, whatever stands in them, and taken up again only if they may be."""
    folder = _folder() / "audit"
    segment, _, heads = data.partition(SPLIT)
    (folder / segment_name(CHAIN, 1)).write_bytes(segment)
    (folder / f"{CHAIN}.heads").write_bytes(heads)
    for report in verify(folder):
        assert report.chain == CHAIN
        assert 0 <= report.signed <= max(report.records, 0)
        if report.bad is not None:
            report.bad.render().encode()
    with contextlib.suppress(AuditError):
        tail = find_tail(folder, folder, CHAIN)
        assert 0 <= tail.size <= len(segment)


def run_transcript(data: bytes) -> None:
    """A transcript replays under other policies, or is refused."""
    with contextlib.suppress(WireError):
        replay(data, [str(_folder() / "policy.yaml")])


@functools.cache
def _scratch() -> tempfile.TemporaryDirectory[str]:
    """Return a folder that lives as long as the process."""
    return tempfile.TemporaryDirectory(prefix="fuzz")


@functools.cache
def _folder() -> Path:
    folder = Path(_scratch().name)
    for name in ("config", "models", "audit"):
        (folder / name).mkdir()
    for source in bundled("models").rglob("*"):
        copy = folder / "models" / source.relative_to(bundled("models"))
        copy.mkdir(exist_ok=True) if source.is_dir() else copy.write_bytes(source.read_bytes())
    (folder / "policy.yaml").write_text(POLICY)
    (folder / "config" / "policy.yaml").write_text(POLICY)
    (folder / "config" / "key").write_text("secret")
    return folder


def _on(surface: Surface, check: Callable[[Surface, bytes], None]) -> Target:
    return functools.partial(check, surface)


TARGETS: Mapping[str, Target] = MappingProxyType(
    {
        "sse": decode_sse,
        **{
            f"{name}_{part}": _on(surface, check)
            for (name, surface), (part, check) in itertools.product(
                (("chat", CHAT), ("completions", COMPLETIONS)),
                (("request", read_request), ("event", read_event), ("whole", read_whole)),
            )
        },
        "messages_request": _on(MESSAGES, read_request),
        "responses_request": _on(RESPONSES, read_request),
        "mcp_caller": functools.partial(read_message, MCP.callers),
        "mcp_server": functools.partial(read_message, MCP.servers),
        "mcp_exchange": run_messages,
        "mcp_cuts": run_messages_cut,
        "config": read_configuration,
        "policy": read_policy,
        "program": read_program,
        "condition": read_condition,
        "template": read_template,
        "scenario": read_demo_scenario,
        "models": read_models,
        "fingerprints": read_fingerprints,
        "lexicon": read_lexicon,
        "graph": read_graph,
        "tokenizer": read_tokenizer,
        "audit": read_audit,
        "transcript": run_transcript,
        "exchange": run_exchange,
        "cuts": run_cuts,
    }
)
"""Name -> function. The folder `corpus/` has a folder of seeds for each."""
