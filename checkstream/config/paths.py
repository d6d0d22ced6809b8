"""Relative paths of a configuration count from the folder of its file, wherever a process was started."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from checkstream.config.background import BundleSettings, ControlSettings, JobsSettings, PseudonymSettings, ToolSettings
from checkstream.config.files import BUILTIN, BUNDLE
from checkstream.config.identity import TlsSettings, TokenSettings
from checkstream.config.parts import Secret
from checkstream.config.settings import Config, ConversationSettings, RouteSettings
from checkstream.config.telemetry import TelemetrySettings
from checkstream.config.trusted import EvidenceSettings

_Stored = TypeVar("_Stored", JobsSettings, PseudonymSettings, ConversationSettings, ToolSettings)
_replace = msgspec.structs.replace
_FILES: Mapping[type[msgspec.Struct], tuple[str, ...]] = {
    Secret: ("file",),
    TlsSettings: ("certificate", "key", "client_ca"),
    TokenSettings: ("ca",),
}
"""Settings that name files, and which of their fields do."""


def absolute(config: Config, base: Path) -> Config:
    """Return the configuration with every relative path made absolute from `base`."""
    config = with_files(config, base)
    record, pseudonyms, conversations, tools = config.record, config.pseudonyms, config.conversations, config.tools
    return _replace(
        config,
        audit=_replace(config.audit, dir=str(base / config.audit.dir)),
        record=record if record.dir is None else _replace(record, dir=str(base / record.dir)),
        routes=tuple(_route(route, base) for route in config.routes),
        models=None if config.models is None else str(base / config.models),
        bundles=None if config.bundles is None else _bundles(config.bundles, base),
        control=None if config.control is None else _control(config.control, base),
        pseudonyms=None if pseudonyms is None else _stored(pseudonyms, base),
        conversations=None if conversations is None else _stored(conversations, base),
        tools=None if tools is None else _stored(tools, base),
        jobs=_stored(config.jobs, base),
        evidence=_evidence(config.evidence, base),
        telemetry=_telemetry(config.telemetry, base),
    )


def with_files(settings: Any, base: Path) -> Any:
    """Return settings with absolute paths of the files that secrets, certificates and keys are in."""
    for kind, fields in _FILES.items():
        if isinstance(settings, kind):
            named = {field: getattr(settings, field) for field in fields}
            settings = _replace(settings, **{at: str(base / file) for at, file in named.items() if file is not None})
    if isinstance(settings, msgspec.Struct):
        names = settings.__struct_fields__
        changed = {name: with_files(getattr(settings, name), base) for name in names}
        return _replace(settings, **changed)
    if isinstance(settings, dict):
        return {name: with_files(part, base) for name, part in settings.items()}
    if isinstance(settings, list | tuple):
        return type(settings)(with_files(part, base) for part in settings)
    return settings


def _route(route: RouteSettings, base: Path) -> RouteSettings:
    def found(names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(name if name.startswith((BUILTIN, BUNDLE)) else str(base / name) for name in names)

    rescore = route.rescore
    return _replace(
        route,
        policies=found(route.policies),
        rescore=rescore if rescore is None else _replace(rescore, policies=found(rescore.policies)),
    )


def _stored(given: _Stored, base: Path) -> _Stored:
    return given if given.file is None else _replace(given, store=f"sqlite:{base / given.file}")


def _bundles(given: BundleSettings, base: Path) -> BundleSettings:
    source = given.source if "://" in given.source else str(base / given.source)
    return _replace(given, source=source, root=str(base / given.root), dir=str(base / given.dir))


def _control(given: ControlSettings, base: Path) -> ControlSettings:
    files = {name: getattr(given, name) for name in ("key", "ca", "certificate", "certificate_key")}
    return _replace(given, **{name: None if file is None else str(base / file) for name, file in files.items()})


def _telemetry(given: TelemetrySettings, base: Path) -> TelemetrySettings:
    return _replace(
        given,
        evidence_key=None if given.evidence_key is None else str(base / given.evidence_key),
        evidence_keys={name: str(base / file) for name, file in given.evidence_keys.items()},
        evidence_dir=str(base / given.evidence_dir),
    )


def _evidence(given: EvidenceSettings, base: Path) -> EvidenceSettings:
    return _replace(
        given,
        store=given.store if given.file is None else f"sqlite:{base / given.file}",
        authority=None if given.authority is None else str(base / given.authority),
        sources=tuple(source if "://" in source else (base / source).as_posix() for source in given.sources),
    )
