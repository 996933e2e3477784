"""Rewrites programs of the shipped tasks: operations on chains of steps."""

from __future__ import annotations

from dataclasses import replace

from evo.keyed import KeyedStream
from evo.llm.offline.bank import BOLD, Bank, Idea, Operation, Value, draw_idea
from evo.llm.offline.program import Chain, Step

MOST_MILLISECONDS = 60.0
"""Programs are kept below about this evaluation time."""

UNKNOWN_MILLISECONDS = 2.0
"""What a function of unknown cost is taken to need."""


def choose_operation(
    chain: Chain | None, bank: Bank, draws: KeyedStream, *, boldness: float
) -> Operation:
    """Returns what to do with a parent.

    Args:
        chain: The parent as a chain, None if it cannot be one.
        bank: Of its task.
        draws: Where chance comes from.
        boldness: Multiplies the weight of operations that bring in an idea.
    """
    if chain is None:
        return draws.weighted({"edit": 0.5, "restart": 0.5})
    # The more a parent has already, the more a rewriter respects it: what locks a search in.
    bold = boldness * bank.caution**chain.length
    weights = {
        operation: weight * (bold if operation in BOLD else 1.0)
        for operation, weight in bank.operations.items()
    }
    return draws.weighted(weights)


def rewrite(
    chain: Chain, bank: Bank, operation: Operation, draws: KeyedStream
) -> tuple[Chain, str]:
    """Applies an operation other than `copy` and `edit`.

    Returns:
        The new chain and what was done, in words.
    """
    if operation == "restart":
        moves = tuple(_new_move(bank, draws) for _ in range(draws.integer(0, 2)))
        layout = draw_idea(bank.layouts, draws)
        last = _new_last(bank, draws) if bank.lasts and draws.chance(0.5) else chain.last
        new = replace(chain, layout=_call(layout, draws), base="", moves=moves, last=last)
        return _affordable(new, bank), f"I start anew from {layout.title}."
    if operation == "layout":
        layout = draw_idea(bank.layouts, draws, but=chain.layout.function if chain.layout else "")
        new = replace(chain, layout=_call(layout, draws), base="")
        return _affordable(new, bank), f"I replace the layout by {layout.title}."
    if operation == "last":
        last = _new_last(bank, draws)
        return _affordable(replace(chain, last=last), bank), "I compute the radii another way."
    if operation == "nudge":
        return _nudge(chain, bank, draws), "I move a few points by hand."
    if operation in ("swap", "drop") and chain.moves:
        return _swap_or_drop(chain, bank, operation, draws)
    if operation == "add":
        return _add(chain, bank, draws)
    return _tune(chain, bank, draws)


def _call(idea: Idea, draws: KeyedStream) -> Step:
    return Step(idea.name, idea.draw(draws))


def _new_move(bank: Bank, draws: KeyedStream) -> Step:
    return _call(draw_idea(bank.moves, draws), draws)


def _new_last(bank: Bank, draws: KeyedStream) -> Step:
    return _call(draw_idea(bank.lasts, draws), draws)


def _add(chain: Chain, bank: Bank, draws: KeyedStream) -> tuple[Chain, str]:
    """Adds a move, mostly at the end; a full chain loses another one for it."""
    idea = draw_idea(bank.moves, draws)
    moves = list(chain.moves)
    place = len(moves) if draws.chance(0.7) else draws.integer(0, len(moves))
    moves.insert(place, _call(idea, draws))
    if len(moves) > bank.most_moves:
        moves.pop(draws.pick([k for k in range(len(moves)) if k != place]))
    new = _affordable(replace(chain, moves=tuple(moves)), bank)
    return new, f"I add {idea.title}."


def _swap_or_drop(
    chain: Chain, bank: Bank, operation: Operation, draws: KeyedStream
) -> tuple[Chain, str]:
    moves = list(chain.moves)
    place = draws.integer(0, len(moves) - 1)
    if operation == "drop":
        moves.pop(place)
        return replace(chain, moves=tuple(moves)), "I leave out a step that may do harm."
    idea = draw_idea(bank.moves, draws, but=moves[place].function)
    moves[place] = _call(idea, draws)
    return _affordable(replace(chain, moves=tuple(moves)), bank), f"I try {idea.title} instead."


def _tune(chain: Chain, bank: Bank, draws: KeyedStream) -> tuple[Chain, str]:
    """Changes one or two arguments of one step; without any, adds a move."""
    steps = [chain.layout, *chain.moves, chain.last]
    tunable = [
        (place, step, idea)
        for place, step in enumerate(steps)
        if step and (idea := bank.idea(step.function)) and (idea.arguments or idea.choices)
    ]
    if not tunable:
        return _add(chain, bank, draws)
    place, step, idea = draws.pick(tunable)
    arguments: dict[str, Value] = dict(step.arguments)
    names = [*idea.arguments, *idea.choices]
    for name in draws.sample(names, min(len(names), draws.integer(1, 2))):
        if name in idea.choices:
            arguments[name] = draws.pick(idea.choices[name])
        else:
            arguments[name] = idea.arguments[name].tune(arguments.get(name), draws)
    steps[place] = Step(step.function, arguments)
    moves = tuple(step for step in steps[1:-1] if step is not None)
    new = replace(chain, layout=steps[0], moves=moves, last=steps[-1])
    return _affordable(new, bank), f"I tune {idea.title}."


def _nudge(chain: Chain, bank: Bank, draws: KeyedStream) -> Chain:
    """Adds literal offsets of one to three points to the last move, which holds them all."""
    size = draws.pick(bank.nudge_sizes)
    moves = list(chain.moves)
    offsets: dict[int, tuple[float, float]] = {}
    if moves and moves[-1].function == "nudge":
        offsets = _held_offsets(moves.pop())
    for _ in range(draws.integer(1, 3)):
        index = draws.integer(0, bank.count - 1)
        dx, dy = offsets.get(index, (0.0, 0.0))
        dx, dy = dx + draws.uniform(-size, size), dy + draws.uniform(-size, size)
        offsets[index] = (float(f"{dx:.5f}"), float(f"{dy:.5f}"))
    rows = tuple((index, dx, dy) for index, (dx, dy) in sorted(offsets.items()))
    return replace(chain, moves=(*moves, Step("nudge", {"offsets": rows})))


def _held_offsets(step: Step) -> dict[int, tuple[float, float]]:
    """Returns the offsets that a nudge holds, by index of the point."""
    held = step.arguments.get("offsets")
    offsets = {}
    for row in held if isinstance(held, tuple) else ():
        match row:
            case (int(index), int() | float() as dx, int() | float() as dy):
                offsets[index] = (float(dx), float(dy))
    return offsets


def estimate_milliseconds(chain: Chain, bank: Bank) -> float:
    """Returns about how long a chain takes to evaluate."""
    total = 0.0 if chain.layout else UNKNOWN_MILLISECONDS
    for step in (chain.layout, *chain.moves, chain.last):
        if step is not None:
            idea = bank.idea(step.function)
            total += idea.milliseconds(step.arguments) if idea else UNKNOWN_MILLISECONDS
    return total


def _affordable(chain: Chain, bank: Bank) -> Chain:
    """Leaves out moves, earliest first, until the program is cheap enough."""
    while chain.moves and estimate_milliseconds(chain, bank) > MOST_MILLISECONDS:
        chain = replace(chain, moves=chain.moves[1:])
    return chain
