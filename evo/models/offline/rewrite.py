"""Rewrites programs of the shipped tasks: operations on chains of steps."""

from __future__ import annotations

from dataclasses import replace

from evo.keyed import KeyedStream
from evo.models.offline.bank import Bank, Idea, Operation, Value
from evo.models.offline.program import Chain, Statement

MOST_MILLISECONDS = 60.0  # programs are kept below about this evaluation time
UNKNOWN_MILLISECONDS = 2.0  # of a function of unknown cost
BOLD: frozenset[Operation] = frozenset({"add", "swap", "layout", "last", "restart"})
"""The operations that bring in an idea; a long parent makes them rarer."""


def choose_operation(
    chain: Chain | None, bank: Bank, draws: KeyedStream, *, boldness: float
) -> Operation:
    """Returns what to do with a parent; None: it cannot be a chain. `boldness` is for ideas."""
    if chain is None:
        return draws.weighted({"edit": 0.5, "restart": 0.5})
    # The more a parent has already, the more a rewriter respects it: what locks a search in.
    bold = boldness * bank.caution**chain.length
    return draws.weighted(
        {each: weight * (bold if each in BOLD else 1.0) for each, weight in bank.operations.items()}
    )


def rewrite(
    chain: Chain, bank: Bank, operation: Operation, draws: KeyedStream
) -> tuple[Chain, str]:
    """Applies an operation other than `copy` and `edit`; returns what was done, in words, too."""
    if operation == "restart":
        moves = tuple(_step(bank.moves, draws)[0] for _ in range(draws.integer(0, 2)))
        idea = _draw(bank.layouts, draws)
        last = chain.last
        if bank.lasts and draws.chance(0.5):
            last = _step(bank.lasts, draws)[0]
        layout = Statement(idea.name, idea.draw(draws))
        new = replace(chain, layout=layout, base="", moves=moves, last=last)
        return _affordable(new, bank), f"I start anew from {idea.title}."
    if operation == "layout":
        old = chain.layout.function if chain.layout else ""
        layout, idea = _step(bank.layouts, draws, but=old)
        new = replace(chain, layout=layout, base="")
        return _affordable(new, bank), f"I replace the layout by {idea.title}."
    if operation == "last":
        new = replace(chain, last=_step(bank.lasts, draws)[0])
        return _affordable(new, bank), "I compute the radii another way."
    if operation == "nudge":
        return _nudge(chain, bank, draws), "I move a few points by hand."
    if operation in ("swap", "drop") and chain.moves:
        moved = list(chain.moves)
        place = draws.integer(0, len(moved) - 1)
        if operation == "drop":
            moved.pop(place)
            return replace(chain, moves=tuple(moved)), "I leave out a step that may do harm."
        moved[place], idea = _step(bank.moves, draws, but=moved[place].function)
        new = replace(chain, moves=tuple(moved))
        return _affordable(new, bank), f"I try {idea.title} instead."
    return (_add if operation == "add" else _tune)(chain, bank, draws)


def _draw(ideas: tuple[Idea, ...], draws: KeyedStream, but: str = "") -> Idea:
    """Returns an idea by weight, other than the one named."""
    number = draws.weighted({k: idea.weight for k, idea in enumerate(ideas) if idea.name != but})
    return ideas[number]


def _step(ideas: tuple[Idea, ...], draws: KeyedStream, but: str = "") -> tuple[Statement, Idea]:
    idea = _draw(ideas, draws, but)
    return Statement(idea.name, idea.draw(draws)), idea


def _add(chain: Chain, bank: Bank, draws: KeyedStream) -> tuple[Chain, str]:
    """Adds a move, mostly at the end; a full chain loses another one for it."""
    idea = _draw(bank.moves, draws)
    moves = list(chain.moves)
    place = len(moves) if draws.chance(0.7) else draws.integer(0, len(moves))
    moves.insert(place, Statement(idea.name, idea.draw(draws)))
    if len(moves) > bank.most_moves:
        moves.pop(draws.pick([k for k in range(len(moves)) if k != place]))
    return _affordable(replace(chain, moves=tuple(moves)), bank), f"I add {idea.title}."


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
    steps[place] = Statement(step.function, arguments)
    moves = tuple(step for step in steps[1:-1] if step is not None)
    new = replace(chain, layout=steps[0], moves=moves, last=steps[-1])
    return _affordable(new, bank), f"I tune {idea.title}."


def _nudge(chain: Chain, bank: Bank, draws: KeyedStream) -> Chain:
    """Adds literal offsets of one to three points to the last move, which holds them all."""
    size = draws.pick(bank.nudge_sizes)
    moves = list(chain.moves)
    offsets: dict[int, tuple[float, float]] = {}
    if moves and moves[-1].function == "nudge":
        held = moves.pop().arguments.get("offsets")
        for row in held if isinstance(held, tuple) else ():
            match row:
                case (int(index), int() | float() as dx, int() | float() as dy):
                    offsets[index] = (float(dx), float(dy))
    for _ in range(draws.integer(1, 3)):
        index = draws.integer(0, bank.count - 1)
        dx, dy = offsets.get(index, (0.0, 0.0))
        dx, dy = dx + draws.uniform(-size, size), dy + draws.uniform(-size, size)
        offsets[index] = (float(f"{dx:.5f}"), float(f"{dy:.5f}"))
    rows = tuple((index, dx, dy) for index, (dx, dy) in sorted(offsets.items()))
    return replace(chain, moves=(*moves, Statement("nudge", {"offsets": rows})))


def _affordable(chain: Chain, bank: Bank) -> Chain:
    """Leaves out moves, earliest first, until the program is cheap enough."""
    total = 0.0 if chain.layout else UNKNOWN_MILLISECONDS
    for step in (chain.layout, *chain.moves, chain.last):
        if step is not None:
            idea = bank.idea(step.function)
            total += idea.milliseconds(step.arguments) if idea else UNKNOWN_MILLISECONDS
    if total <= MOST_MILLISECONDS or not chain.moves:
        return chain
    return _affordable(replace(chain, moves=chain.moves[1:]), bank)
