"""What is wrong, or should be known, between the parts of a configuration: each by itself may be sound."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from checkstream.config.default import PASSED_PATHS
from checkstream.config.files import BUNDLE, advice_for, policy_file
from checkstream.config.reader import Node
from checkstream.config.secrets import reveal, secrets_in
from checkstream.config.servers import BY_JWT
from checkstream.config.settings import Config, Match, RouteSettings
from checkstream.config.telemetry import TelemetrySettings
from checkstream.core.policy import nodes
from checkstream.core.policy.capabilities import MCP, PROMPT_ONLY
from checkstream.core.wire.places import NAMES, PLACES, covers, takes_model
from checkstream.errors import ConfigError


def cross_check(config: Config, positions: Sequence[int], tree: Node, source: nodes.Source) -> None:
    """Report what is wrong between the parts: unknown upstreams, names used twice, files and secrets not there.

    Args:
        config: The settings, or those of them that are sound.
        positions: Where each of its routes stands in the file's list.
        tree: The file's values and their places.
        source: The file, where faults go.
    """
    if not config.routes and not tree.at("routes").value:
        source.fault(tree.at("routes").place, "there are no routes, so every request would get a 404", "add one")
    names: set[str] = set()
    own = [route.match.path for route in config.routes if not route.pass_]
    for position, route in zip(positions, config.routes, strict=True):
        node = tree.at("routes", position)
        if route.name in names:
            source.fault(node.at("name").place, f"the route `{route.name}` stands twice", "give each its own name")
        names.add(route.name)
        if route.upstream not in config.upstreams:
            known = ", ".join(config.upstreams) or "none"
            source.fault(
                node.at("upstream").place, f"the upstream `{route.upstream}` is not defined", f"defined: {known}"
            )
        _check_match(route, node, source, (*PLACES, *own))
        for index, reference in enumerate(route.policies):
            _check_policy(reference, node.at("policies", index), source, bundled=config.bundles is not None)
        for index, reference in enumerate(() if route.rescore is None else route.rescore.policies):
            _check_policy(reference, node.at("rescore", "policies", index), source, bundled=config.bundles is not None)
    unshared = alone(config)
    if unshared is not None:
        place = tree.at("routes", positions[unshared[0]]).place
        source.fault(place, unshared[1], "serve it by one worker, or by a proxy of its own")
    _check_privacy(config, names, tree, source)
    _check_secrets(config, positions, tree, source)
    kept, named = config.conversations, config.pseudonyms
    if kept is not None and named is not None and named.file is not None and kept.file == named.file:
        reason = f"`{named.file}` keeps conversations, too, which have other bounds"
        source.fault(tree.at("pseudonyms", "store").place, reason, "give each a file of its own")


def _check_privacy(config: Config, routes: Collection[str], tree: Node, source: nodes.Source) -> None:
    """Report names that nobody has: what they were to keep private would be told."""
    node = tree.at("telemetry")
    for name in config.telemetry.privacy_of_routes:
        if name not in routes:
            place = node.at("privacy_of_routes", name).place
            source.fault(place, f"there is no route `{name}`", f"defined: {', '.join(sorted(routes)) or 'none'}")
    known = [caller.name for caller in config.server.known]
    for field in ("privacy_of_callers", "evidence_keys"):
        for name in getattr(config.telemetry, field):
            by_token = config.server.jwt is not None and name.startswith(BY_JWT)
            if name not in known and not by_token:
                place = node.at(field, name).place
                source.fault(place, f"there is no caller `{name}`", f"defined: {', '.join(known) or 'none'}")
    told = config.telemetry
    if "full_evidence" not in (told.privacy, *told.privacy_of_routes.values(), *told.privacy_of_callers.values()):
        return
    if config.control is None:
        reason = "`full_evidence` is for a control server, and there is no `control`"
        source.fault(node.place, reason, "add `control`, or keep `record` with `text: raw` on this machine")
    # whom a token names nobody knows yet; and where nobody is asked who he is, there is nobody to name
    unnamed = config.server.jwt is not None or not known
    whose: Sequence[str | None] = [*known, *((None,) if unnamed else ())]
    for caller in whose:
        if _is_told_all(told, routes, caller) and told.evidence_key is None and caller not in told.evidence_keys:
            named = "callers" if caller is None else f"the caller `{caller}`"
            advice = "`checkstream control evidence-key FILE` makes a pair; name its public half in `evidence_keys`"
            source.fault(node.place, f"evidence of {named} is to be kept, and no key says who may read it", advice)


def _is_told_all(told: TelemetrySettings, routes: Collection[str], caller: str | None) -> bool:
    """Tell whether `full_evidence` may count for a caller on some route."""
    own = None if caller is None else told.privacy_of_callers.get(caller)
    if own is not None and own != "full_evidence":
        return False
    of_routes = [told.privacy_of_routes.get(route) for route in routes]
    usual = own or told.privacy
    return any(each == "full_evidence" or (each is None and usual == "full_evidence") for each in of_routes)


def _check_policy(reference: str, node: Node, source: nodes.Source, *, bundled: bool) -> None:
    """Report a policy that is not there."""
    if reference.startswith(BUNDLE):
        if not bundled:
            reason = f"`{reference}` is of a bundle, and none is configured"
            source.fault(node.place, reason, "add `bundles`, with `source`, `root` and `name`")
    elif not _is_file(policy_file(reference)):
        otherwise = "paths are relative to the configuration file; what is shipped begins with `builtin:`"
        source.fault(node.place, f"`{reference}` is no policy file", advice_for(reference, otherwise))


def alone(config: Config) -> tuple[int, str] | None:
    """Return the route for which one process has to serve alone, and why; None: several can, or one is to."""
    if config.server.workers == 1:
        return None
    for position, route in enumerate(config.routes):
        if route.api == MCP and config.tools is None:
            return position, (
                f"`surface: mcp` (route `{route.name}`) needs `workers: 1`, or `tools`: else which tools may not be "
                "called is known to one process alone"
            )
    return None


def _check_secrets(config: Config, positions: Sequence[int], tree: Node, source: nodes.Source) -> None:
    """Report secrets that are not there, and callers who could not be told apart."""
    keys: set[str] = set()
    for path, secret in secrets_in(config):
        if path == ("audit", "key") and secret.file is not None:
            continue  # it is made at the first start
        node = tree.at(*(_placed(path, positions)))
        try:
            value = reveal(secret)
        except ConfigError as error:
            source.fault(node.place, error.faults[0].reason, error.faults[0].advice)
            continue
        if path[:2] == ("server", "callers"):
            if value in keys:
                source.fault(node.place, "another caller has the same key", "give each its own, to tell them apart")
            keys.add(value)


def _placed(path: tuple[str | int, ...], positions: Sequence[int]) -> tuple[str | int, ...]:
    """Return the path in the file of what has a path in the settings, which may be without some routes."""
    if path[0] == "routes" and isinstance(path[1], int):
        return ("routes", positions[path[1]], *path[2:])
    return path


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a name that no file can have
        return False


def _check_match(route: RouteSettings, node: Node, source: nodes.Source, guarded: Sequence[str]) -> None:
    """Report what this route can't match; `guarded` are the paths that are read."""
    match = node.at("match")
    if route.pass_:
        if route.match.model != "*":
            source.fault(match.at("model").place, "a route with `pass: true` can't match by model", "remove `model`")
        covered = [path for path in guarded if route.match.path[-1] == "*" and covers(route.match.path, path)]
        if covered and route.match.method == "POST":
            source.fault(
                match.at("path").place,
                f"`{route.match.path}` would also pass `{covered[0]}` on unguarded",
                "name the paths that are meant",
            )
        return
    if route.match.path[-1] == "*":
        source.fault(
            match.at("path").place,
            f"`{route.match.path}` takes paths of many APIs, and a guarded route speaks one",
            "write the whole path, with `{name}` for a part that varies; `pass: true` sends all on unguarded",
        )
    elif route.api is None:
        source.fault(
            match.at("path").place,
            f"nobody knows which API is spoken at `{route.match.path}`",
            f"add `surface:` with one of {', '.join(NAMES)}; `pass: true` sends it on unguarded",
        )
    if route.api in PROMPT_ONLY and route.grounding is not None:
        reason = f"the answers of `{route.match.path}` are figures, so there is nothing to score"
        source.fault(node.at("grounding").place, reason, "remove `grounding`")
    if route.match.method != "POST":
        source.fault(match.at("method").place, "a guarded route takes `POST`", "remove `method`")
    _check_tools(route, node, source)


def _check_tools(route: RouteSettings, node: Node, source: nodes.Source) -> None:
    """Report what only a route of tools can have, and what it can't."""
    if route.api != MCP:
        given = {"pins": bool(route.pins), "tools_changed": route.tools_changed != "alert"}
        for name in (name for name, is_given in given.items() if is_given):
            source.fault(node.at(name).place, f"`{name}` is for routes of `mcp`", f"remove `{name}`")
        return
    if route.match.model != "*":
        source.fault(node.at("match", "model").place, "messages of `mcp` name no model", "remove `model`")
    if route.grounding is not None:
        reason = "what tools say is evidence, and there is no answer to hold against it"
        source.fault(node.at("grounding").place, reason, "remove `grounding`")


def warnings(config: Config) -> list[str]:
    """Return what is allowed but should be known."""
    found = []
    if config.server.callers == "none":
        found.append("server.callers is none: every caller counts as authenticated")
    found += [
        f"route `{route.name}` passes requests on unguarded"
        for route in config.routes
        if route.pass_ and (route.match.path, route.match.method) not in PASSED_PATHS.values()
    ]
    found += [
        f"route `{later.name}` is never taken: `{earlier.name}` stands before it and takes all that it would"
        for position, later in enumerate(config.routes)
        for earlier in [
            next((route for route in config.routes[:position] if _takes_all(route.match, later.match)), None)
        ]
        if earlier is not None
    ]
    found += [
        f"route `{route.name}` has fail_mode open: what a failed detector would have checked passes"
        for route in config.routes
        if route.fail_mode == "open"
    ]
    found += [
        f"route `{route.name}` blocks whole answers of high risk only: text of a stream has gone out by then"
        for route in config.routes
        if route.grounding is not None and route.grounding.block is not None
    ]
    found += [
        f"route `{route.name}` blocks whole answers and has fail_mode open: one that can't be assessed in time goes out"
        for route in config.routes
        if route.grounding is not None and route.grounding.block is not None and route.fail_mode == "open"
    ]
    record = config.record
    if record.dir is not None and record.text == "plain":
        found.append("record.text is plain: prompts and answers are kept as they are, with all personal data in them")
    unmasked = [route.name for route in config.routes if route.api == "mcp"]
    if record.dir is not None and record.text == "masked" and unmasked:
        named = ", ".join(f"`{name}`" for name in unmasked)
        found.append(f"record.text is masked: messages of servers of tools can't be, so {named} is not recorded")
    if record.dir is not None and not record.sample:
        found.append("record.dir is given and record.sample is 0: nothing is recorded")
    kept = {"conversations": config.conversations, "pseudonyms": config.pseudonyms, "tools": config.tools}
    found += [
        f"fleet is given and `{name}` are kept by each machine alone: `{name}.store` can name a Redis server, too"
        for name, settings in kept.items()
        if config.fleet is not None and settings is not None and not (settings.store or "").startswith("redis")
    ]
    if config.control is not None and config.bundles is None:
        found.append("control is given and `bundles` is not: only `checkstream telemetry ship` speaks to that server")
    if config.control is not None and config.telemetry.salt is None and config.telemetry.privacy == "decisions":
        found.append("telemetry.salt is not given: whether two nodes have found the same can't be told")
    return found


def _takes_all(wide: Match, narrow: Match) -> bool:
    """Tell whether one match takes every request that the other would."""
    beginning = wide.path.endswith("*") and narrow.path.startswith(wide.path[:-1])
    places = wide.method == narrow.method and (wide.path == narrow.path or beginning)
    return places and takes_model(wide.model, narrow.model)
