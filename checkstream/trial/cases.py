"""The file of test cases beside a policy, read strictly: every fault at once, in its place.

A case says what comes in (prompt, answer, context, scores) and what must come of it. What is not known here is a
fault, so that a misspelt key never makes a case that can't fail.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator
from typing import Annotated, Literal, get_args

import msgspec
from msgspec import Meta

from checkstream.config.reader import Node, build, read_tree
from checkstream.core.commands import StreamRecord
from checkstream.core.conversation import Conversation
from checkstream.core.policy import nodes
from checkstream.core.policy.action import AnyAction
from checkstream.core.terms import ANSWER_CHANNELS, INGRESS_CHANNELS, Verdict
from checkstream.errors import CasesError
from checkstream.trial.paths import parse_path

ENDING_ACTIONS = frozenset({"reject", "require_confirmation", "stop"})
"""Actions after which the text is not what it was: a case that expects one may leave `output` out."""
_ACTIONS = tuple(action.name for action in get_args(AnyAction))
_RECORDED = frozenset((*StreamRecord.__struct_fields__, *Verdict.__struct_fields__))
_MAX_CHOICES = 16

Text = Annotated[str, Meta(min_length=1, max_length=100_000)]
Score = Annotated[float, Meta(ge=0, le=1)]


class _Strict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Keys that are not known are refused."""


class Message(_Strict, frozen=True, kw_only=True):
    """One message of a prompt."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str


class Scored(_Strict, frozen=True, kw_only=True):
    """What classifiers say of windows of text."""

    contains: str = ""
    """Stands in the windows that are meant; empty: in every one."""
    scores: dict[str, Score] = {}
    """`model.label` -> 0..1; what is left out is 0."""


class Earlier(_Strict, frozen=True, kw_only=True):
    """What the earlier requests of a conversation came to."""

    turns: Annotated[int, Meta(ge=0)] = 0
    """Texts of the user."""
    risk: dict[str, Score] = {}
    """`model.label` -> what the scores had added up to."""
    peak: dict[str, Score] = {}
    """`model.label` -> the highest score."""
    fired: dict[str, Annotated[int, Meta(ge=0)]] = {}
    """Id of a rule -> how often it was enforced."""
    refused: Annotated[int, Meta(ge=0)] = 0
    """Requests."""
    entities: tuple[str, ...] = ()
    """Kinds that were found."""

    @property
    def known(self) -> Conversation:
        """The same as the guard is told it."""
        return Conversation(
            turns=self.turns,
            risks=self.risk,
            peaks=self.peak,
            fired=self.fired,
            refused=self.refused,
            entities=self.entities,
        )


class Expect(_Strict, frozen=True, kw_only=True):
    """What must come of a case, however its answer is cut."""

    action: str
    """The strictest action that is carried out."""
    rule_id: str | None = None
    """A rule that asked for it."""
    fired: tuple[str, ...] | None = None
    """Exactly the rules that fired and are enforced, in any order."""
    shadow: tuple[str, ...] | None = None
    """Exactly the rules that were only recorded."""
    output: str | tuple[str, ...] | None = None
    """The text that goes on: of the answer, or (cases without one) of the prompt; one for each choice. None:
    unchanged, or anything where the expected action ends it."""
    status: Annotated[int, Meta(ge=100, le=599)] | None = None
    forwarded: dict[str, object] = {}
    """Path in the request's body as the upstream gets it -> its value; null: it is not there."""
    record: dict[str, object] = {}
    """Field of the audit record, or of the verdict of `rule_id` -> its value."""


class Case(_Strict, frozen=True, kw_only=True):
    """One exchange and what must come of it."""

    name: Annotated[str, Meta(min_length=1, max_length=200)]
    prompt: str | tuple[Message, ...] | None = None
    """The user's message, or all messages; None: `Hello.`"""
    answer: str | None = None
    answers: Annotated[tuple[str, ...], Meta(max_length=_MAX_CHOICES)] = ()
    """The contents of several choices, in place of `answer`."""
    continued: str | None = None
    """What the upstream writes when it is asked to go on with an answer that a rule cut off."""
    channel: str | None = None
    """Where the text stands: a channel of the answer if there is one, else of the prompt."""
    stream: bool | None = None
    """Run only as a stream, or only whole; None: both, with the same outcome."""
    model: str = "m"
    tools: tuple[str, ...] = ()
    """Names of the tools that the request offers."""
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    context: dict[str, object] | None = None
    documents: tuple[str | dict[str, str], ...] = ()
    caller: str | None = None
    user: str | None = None
    conversation: Earlier | None = None
    """The request goes on with a conversation of which this is known."""
    confirmed: tuple[str, ...] = ()
    """Rules whose confirmation the caller has given."""
    scores: dict[str, Score] | tuple[Scored, ...] = ()
    """For every window; or by what stands in it, the first that fits."""
    entities: dict[str, Annotated[tuple[Text, ...], Meta(min_length=1)]] = {}
    """Name of an entity -> the texts that a model calls so, wherever they stand."""
    expect: Expect

    @property
    def texts(self) -> tuple[str, ...]:
        """The text of each choice of the answer; nothing when only the prompt is looked at."""
        return self.answers or (() if self.answer is None else (self.answer,))

    @property
    def kind(self) -> str:
        """The channel that the case looks at."""
        return self.channel or ("content" if self.texts else "user")

    @property
    def rules(self) -> frozenset[str]:
        """Every rule that the case speaks of."""
        own = () if self.expect.rule_id is None else (self.expect.rule_id,)
        earlier = () if self.conversation is None else self.conversation.fired
        return frozenset((*own, *earlier, *(self.expect.fired or ()), *(self.expect.shadow or ())))


class _File(_Strict, frozen=True, kw_only=True):
    cases: Annotated[tuple[Case, ...], Meta(min_length=1)]


def read_cases(
    name: str, content: str | bytes, rules: Collection[str], labels: Collection[str]
) -> tuple[nodes.Placed[Case], ...]:
    """Return the cases of a file, each with its place in it.

    Args:
        name: The file, for messages.
        content: What stands in it.
        rules: Ids of the rules that cases may speak of.
        labels: `model.label` of every score that they may give, and the names of the entities that models find.

    Raises:
        CasesError: the file holds faults; carries all of them.
    """
    source = nodes.open_source(name, content)
    tree = None if source.faults else read_tree(source)
    read = None if tree is None else build(tree, _File, source)
    if tree is not None and read is not None:
        names: set[str] = set()
        for position, case in enumerate(read.cases):
            node = tree.at("cases", position)
            if case.name in names:
                source.fault(node.at("name").place, f"the case {nodes.shown(case.name)} stands twice", "rename one")
            names.add(case.name)
            _check_shape(case, node, source)
            _check_names(case, node, source, rules, labels)
    if source.faults or tree is None or read is None:
        raise CasesError(tuple(sorted(source.faults, key=lambda fault: (fault.line, fault.column))))
    return tuple(nodes.Placed(case, tree.at("cases", place).place) for place, case in enumerate(read.cases))


def _check_shape(case: Case, node: Node, source: nodes.Source) -> None:
    """Report what can't stand together."""

    def fault(key: str, reason: str, advice: str) -> None:
        source.fault(node.at(key).place, reason, advice)

    if case.answer is not None and case.answers:
        fault("answers", "`answer` and `answers` stand together", "keep one of them")
    if case.prompt == ():
        fault("prompt", "`prompt` has no message", "write one, or leave `prompt` out")
    known = ANSWER_CHANNELS if case.texts else INGRESS_CHANNELS
    if case.channel is not None and case.channel not in known:
        what = "answers" if case.texts else "prompts without an answer"
        fault("channel", f"{what} have no channel {nodes.shown(case.channel)}", "known: " + ", ".join(known))
    elif case.channel not in (None, "user") and not case.texts and isinstance(case.prompt, tuple):
        fault("channel", "`channel` stands beside a list of messages, which have roles", "remove one of them")
    elif case.kind == "document" and case.prompt is None:
        fault("channel", "`channel: document` needs a `prompt`, which is the document's text", "add it")
    _check_output(case, node.at("expect"), source)


def _check_output(case: Case, expect: Node, source: nodes.Source) -> None:
    """Report outputs that nothing could have, and paths that are none."""
    output = case.expect.output
    if isinstance(output, tuple) and len(output) != len(case.texts):
        reason = f"{len(output)} outputs for {len(case.texts)} choices"
        source.fault(expect.at("output").place, reason, "write one for each choice")
    if output is not None and case.kind == "document":
        advice = "remove `output`; the caller's documents are read and not forwarded"
        source.fault(expect.at("output").place, "a document has no output", advice)
    for path in case.expect.forwarded:
        if parse_path(path) is None:
            source.fault(
                _key(expect.at("forwarded", path)), f"{nodes.shown(path)} is no path", "write `messages[0].content`"
            )


def _check_names(case: Case, node: Node, source: nodes.Source, rules: Collection[str], labels: Collection[str]) -> None:
    """Report names that nothing has: actions, rules, scores, fields of the record."""
    expect = node.at("expect")
    names: list[tuple[nodes.Place, str, str, Collection[str]]] = [
        (expect.at("action").place, "action", case.expect.action, _ACTIONS),
        *((node.at("confirmed", place).place, "rule", rule, rules) for place, rule in enumerate(case.confirmed)),
        *((_key(expect.at("record", name)), "field of a record", name, _RECORDED) for name in case.expect.record),
        *((_key(at), "score", label, _having(labels, point=True)) for at, label in _scores(case, node.at("scores"))),
        *(
            (_key(node.at("entities", name)), "entity of a model", name, _having(labels, point=False))
            for name in case.entities
        ),
    ]
    if case.conversation is not None:
        earlier = node.at("conversation")
        for field, found in (("risk", case.conversation.risk), ("peak", case.conversation.peak)):
            names += [(_key(earlier.at(field, name)), "score", name, _having(labels, point=True)) for name in found]
        names += [(_key(earlier.at("fired", rule)), "rule", rule, rules) for rule in case.conversation.fired]
    for key, ids in (("fired", case.expect.fired), ("shadow", case.expect.shadow)):
        names += [(expect.at(key, place).place, "rule", rule, rules) for place, rule in enumerate(ids or ())]
    if case.expect.rule_id is not None:
        names.append((expect.at("rule_id").place, "rule", case.expect.rule_id, rules))
    for at, what, given, known in names:
        if given not in known:
            close = difflib.get_close_matches(given, known, n=1)
            advice = f"did you mean `{close[0]}`?" if close else "known: " + (", ".join(sorted(known)) or "none")
            source.fault(at, f"there is no {what} {nodes.shown(given)}", advice)


def _having(labels: Collection[str], *, point: bool) -> Collection[str]:
    """Return the names of scores, which have a point, or those of entities."""
    return [label for label in labels if ("." in label) is point]


def _key(node: Node) -> nodes.Place:
    return node.key or node.place


def _scores(case: Case, node: Node) -> Iterator[tuple[Node, str]]:
    if isinstance(case.scores, dict):
        yield from ((node.at(label), label) for label in case.scores)
    else:
        for place, scored in enumerate(case.scores):
            yield from ((node.at(place, "scores", label), label) for label in scored.scores)
