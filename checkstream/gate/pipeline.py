"""Runs the six steps in their order."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from checkstream.gate import steps
from checkstream.gate.settings import GateSettings
from checkstream.gate.state import Key, State
from checkstream.gate.steps import World

STEPS: tuple[tuple[Key[Any], Callable[[State, World], Awaitable[Any]]], ...] = (
    (steps.PROMPTS, steps.generate_prompts),
    (steps.RESPONSES, steps.run_model),
    (steps.CLAIMS, steps.extract_claims),
    (steps.EVIDENCE, steps.retrieve_evidence),
    (steps.VERDICTS, steps.verify_claims),
    (steps.SCORE, steps.score_risk),
)


async def evaluate(
    config: GateSettings, world: World, *, begun: Callable[[str, int], None] = lambda _step, _number: None
) -> State:
    """Run every step and return all that they wrote.

    Args:
        config: what is evaluated, and how strictly.
        world: models and stores.
        begun: told of each step as it begins, with its number from 1.

    Raises:
        StepFailed: an item of a step failed; what was done until then is kept by the world's memory.
    """
    state = State().with_(steps.CONFIG, config)
    for number, (key, step) in enumerate(STEPS, 1):
        begun(key.name, number)
        state = state.with_(key, await step(state, world))
    return state
