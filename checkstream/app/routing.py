"""Routes as they are in force: of their settings, compiled policies, and whom they ask."""

from __future__ import annotations

from collections.abc import Mapping

from checkstream.config import Config, GroundingSettings, RouteSettings
from checkstream.core.channel.checks import HoldSettings
from checkstream.core.exchange.guard import Plan
from checkstream.core.exchange.plan import Assessing
from checkstream.core.policy.program import Program
from checkstream.core.wire.mcp.surface import Mcp
from checkstream.core.wire.surface import Surface
from checkstream.core.wire.surfaces import spoken
from checkstream.errors import ConfigError, Fault
from checkstream.proxy.accept import Route
from checkstream.proxy.upstream import UpstreamClient
from checkstream.scoring.scorer import Scorer

_TURN_WORK = 1000
"""The most work of one turn of a guard on the event loop (see `core.match.work`): well below 5 ms on slow cores too."""


def routes_of(
    config: Config,
    programs: Mapping[tuple[str, ...], Program],
    upstreams: Mapping[str, UpstreamClient],
    scorer: Scorer,
    titles: Mapping[str, str],
) -> tuple[Route, ...]:
    """Return the routes of a configuration.

    Args:
        config: Its routes name files of policies.
        programs: A route's `policies` -> what they compile to.
        upstreams: By name.
        scorer: Asks the models of all of them.
        titles: Name of a model -> `name@version`.

    Raises:
        ConfigError: nobody knows what is spoken on one.
    """
    return tuple(
        _route(route, config, programs, upstream=upstreams[route.upstream], scorer=scorer, titles=titles)
        for route in config.routes
    )


def surface_of(route: RouteSettings) -> Surface | Mcp:
    """Return the API that is spoken on a route.

    Raises:
        ConfigError: nobody knows which.
    """
    if route.api is None:
        raise ConfigError((Fault(file="configuration", reason=f"`{route.match.path}` needs a `surface`"),))
    return spoken(route.api)


def is_scored(route: RouteSettings) -> bool:
    """Tell whether some answers of a route are scored after they have gone out."""
    held, judged = route.grounding, route.rescore
    return (held is not None and held.sample > 0) or (judged is not None and judged.sample > 0)


def _assessing(route: RouteSettings) -> Assessing:
    grounding = route.grounding or GroundingSettings()
    return Assessing(
        always=grounding.inline,
        profiles=grounding.profiles,
        deadline_ms=grounding.inline_ms,
        block=grounding.block,
    )


def _route(
    route: RouteSettings,
    config: Config,
    programs: Mapping[tuple[str, ...], Program],
    *,
    upstream: UpstreamClient,
    scorer: Scorer,
    titles: Mapping[str, str],
) -> Route:
    if route.pass_:
        return Route(
            name=route.name,
            match=route.match,
            upstream=upstream,
            origins=_origins(route),
            quota=route.quota,
            body_bytes=route.body_bytes,
        )
    program = programs[route.policies]
    return Route(
        name=route.name,
        match=route.match,
        upstream=upstream,
        surface=surface_of(route),
        plan=_plan(route, config, program, upstream=upstream.name, titles=titles),
        scorer=scorer,
        policies=", ".join(program.packs),
        grounding=route.grounding,
        rescore=route.rescore,
        origins=_origins(route),
        quota=route.quota,
        body_bytes=route.body_bytes,
    )


def _plan(route: RouteSettings, config: Config, program: Program, *, upstream: str, titles: Mapping[str, str]) -> Plan:
    limits = config.server.limits
    kept = config.conversations
    return Plan(
        program=program,
        models=titles,
        route=route.name,
        upstream=upstream,
        hold=HoldSettings(
            tokens=route.holdback.tokens,
            calm_tokens=route.holdback.calm_tokens,
            check_every=route.holdback.check_every,
            window=route.holdback.window,
            max_delay_ms=route.holdback.max_delay_ms,
            by_language=route.holdback.by_language,
        ),
        fail_mode=route.fail_mode,
        ingress_deadline_ms=route.deadline.ingress_ms,
        check_deadline_ms=route.deadline.check_ms,
        max_hold_ms=route.holdback.max_hold_ms,
        ingress_budget_ms=route.budget.ingress_ms,
        on_exceeded=route.budget.on_exceeded,
        check_budget_ms=route.budget.check_ms,
        turn_work=_TURN_WORK,
        work=route.budget.work_ms * 1000,
        keepalive_ms=route.keepalive_ms,
        held_bytes=limits.held_bytes_per_stream,
        call_bytes=limits.call_bytes,
        event_bytes=limits.event_bytes,
        answer_bytes=limits.answer_bytes,
        prompt_chars=limits.prompt_chars,
        prompt_messages=limits.prompt_messages,
        parts=route.parts,
        unknown_fields=route.unknown_fields,
        known_fields=frozenset(route.known_fields),
        tools_changed=route.tools_changed,
        pins=route.pins,
        assessing=_assessing(route),
        keeps_tools=config.tools is not None,
        keeps_names=config.pseudonyms is not None,
        recalls=kept is not None,
        recalls_texts=kept is not None and kept.texts,
        scored_chars=config.jobs.job_bytes if is_scored(route) else 0,
    )


def _origins(route: RouteSettings) -> frozenset[str]:
    return frozenset() if route.cors is None else frozenset(origin.lower() for origin in route.cors.origins)
