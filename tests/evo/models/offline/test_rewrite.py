"""Operations on chains of steps: each does what it says and leaves the rest alone."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Hashable, Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from offline_requests import PARENTS, TASKS, descend

from evo.keyed import KeyedStream
from evo.models.offline.bank import Bank, Operation
from evo.models.offline.program import Chain, Statement, find_bank, read_chain, write_chain
from evo.models.offline.rewrite import (
    BOLD,
    MOST_MILLISECONDS,
    UNKNOWN_MILLISECONDS,
    choose_operation,
    rewrite,
)

SEEDS = st.integers(0, 10**6)


@functools.cache
def chains(task: str) -> tuple[Bank, list[Chain]]:
    """The bank of a task, and chains of several lengths."""
    programs = dict.fromkeys(descend(PARENTS[task], 25, temperature=1.0))
    read = [chain for program in programs if (chain := read_chain(program)) is not None]
    found = find_bank(PARENTS[task])
    assert found is not None
    assert {len(chain.moves) for chain in read} >= {0, 1, 2}
    return found[0], read


def cost(chain: Chain, bank: Bank) -> float:
    """About how long a chain takes, ms."""
    steps = [s for s in (chain.layout, *chain.moves, chain.last) if s is not None]
    known = [(bank.idea(step.function), step) for step in steps]
    total = sum(i.milliseconds(s.arguments) if i else UNKNOWN_MILLISECONDS for i, s in known)
    return total + (0.0 if chain.layout else UNKNOWN_MILLISECONDS)


class Drawn(KeyedStream):
    """Notes the weights of what is drawn."""

    def weighted(self, weights: Mapping[Hashable, float]) -> Hashable:  # type: ignore[override]
        self.seen = dict(weights)
        return super().weighted(weights)


def weights_of(chain: Chain | None, bank: Bank, boldness: float) -> Mapping[Operation, float]:
    draws = Drawn(1)
    choose_operation(chain, bank, draws, boldness=boldness)
    return draws.seen  # type: ignore[return-value]


@pytest.mark.parametrize("task", TASKS)
def test_ideas_are_rarer_the_longer_a_chain_is_and_the_colder_the_draw(task: str) -> None:
    bank, read = chains(task)
    shorter, longer = (max(read, key=lambda c, s=s: s * c.length) for s in (-1, 1))
    usual = {c.length: weights_of(c, bank, 1.0) for c in (shorter, longer)}
    hot = weights_of(longer, bank, 3.0)
    assert usual[longer.length].keys() == bank.operations.keys()
    for operation, weight in bank.operations.items():
        at = {length: weights[operation] for length, weights in usual.items()}
        if operation in BOLD and weight:
            assert at[longer.length] < at[shorter.length] <= weight
            assert hot[operation] == pytest.approx(3 * at[longer.length])
        else:
            assert at[longer.length] == at[shorter.length] == hot[operation] == weight


def test_what_is_no_chain_is_edited_or_replaced() -> None:
    bank, _ = chains("cp")
    assert weights_of(None, bank, 1.0).keys() == {"edit", "restart"}


def changed(before: tuple[Statement, ...], after: tuple[Statement, ...]) -> int:
    """In how many places two sequences of the same length differ."""
    return sum(a != b for a, b in zip(before, after, strict=True))


def is_part(part: tuple[Statement, ...], whole: tuple[Statement, ...]) -> bool:
    """Whether a sequence is another one with some of it left out."""
    rest = iter(whole)
    return all(any(step == each for each in rest) for step in part)


def check(operation: Operation, old: Chain, new: Chain, bank: Bank) -> None:
    """Compares a chain with its rewrite; earliest moves may have been left out as too slow."""
    cut = len(old.moves) - len(new.moves)
    if operation == "drop":
        assert cut == 1
        assert is_part(new.moves, old.moves)
    elif operation == "swap":
        kept = old.moves[cut:]
        assert changed(kept, new.moves) <= 1
        if cut == 0:
            (place,) = [k for k, s in enumerate(new.moves) if s != old.moves[k]]
            assert new.moves[place].function != old.moves[place].function
    elif operation == "layout":
        assert new.layout is not None
        assert old.layout is None or new.layout.function != old.layout.function
        assert new.moves == old.moves[cut:]
        assert (new.base, new.last) == ("", old.last)
    elif operation == "last":
        assert new.moves == old.moves[cut:]
        assert (new.layout, new.base) == (old.layout, old.base)
        assert new.last is not None
        assert new.last.function in {idea.name for idea in bank.lasts}
    elif operation == "add":
        assert len(new.moves) <= max(bank.most_moves, len(old.moves))
        assert sum(step not in old.moves for step in new.moves) <= 1
        assert (new.layout, new.base, new.last) == (old.layout, old.base, old.last)
    elif operation == "tune":
        steps = [(c.layout, *c.moves[max(cut, 0) if c is old else 0 :], c.last) for c in (old, new)]
        if len(steps[0]) == len(steps[1]):
            pairs = [(a, b) for a, b in zip(*steps, strict=True) if a != b]
            assert len(pairs) <= 1
            for a, b in pairs:
                assert a is not None
                assert b is not None
                assert a.function == b.function
                names = {*a.arguments, *b.arguments}
                assert sum(a.arguments.get(n) != b.arguments.get(n) for n in names) <= 2


@pytest.mark.parametrize(
    ("task", "operation"),
    [
        *itertools.product(TASKS, ["drop", "swap", "layout", "add", "tune"]),
        ("cp", "last"),  # which the other tasks do not have
    ],
)
def test_an_operation_changes_what_it_is_named_after_and_nothing_else(
    task: str, operation: Operation
) -> None:
    bank, read = chains(task)
    for seed in range(60):
        old = read[seed % len(read)]
        if operation in ("swap", "drop") and not old.moves:
            continue
        new, words = rewrite(old, bank, operation, KeyedStream(seed))
        check(operation, old, new, bank)
        assert words.startswith("I ")
        assert rewrite(old, bank, operation, KeyedStream(seed)) == (new, words)
        if operation != "drop":
            assert cost(new, bank) <= MOST_MILLISECONDS or not new.moves
        assert read_chain(write_chain(new, bank)) is not None


@pytest.mark.parametrize("operation", ["swap", "drop"])
@pytest.mark.parametrize("task", TASKS)
def test_where_there_is_no_move_another_one_cannot_take_its_place(
    task: str, operation: Operation
) -> None:
    bank, read = chains(task)
    bare = [chain for chain in read if not chain.moves]
    for seed in range(20):
        old = bare[seed % len(bare)]
        assert rewrite(old, bank, operation, KeyedStream(seed)) == rewrite(
            old, bank, "tune", KeyedStream(seed)
        )


@pytest.mark.parametrize("task", TASKS)
def test_a_new_start_keeps_nothing_but_the_names(task: str) -> None:
    bank, read = chains(task)
    lengths = set()
    for seed in range(60):
        old = read[seed % len(read)]
        new, words = rewrite(old, bank, "restart", KeyedStream(seed))
        assert new.layout is not None
        assert (new.base, new.entry) == ("", old.entry)
        assert words.startswith("I start anew from ")
        lengths.add(len(new.moves))
    assert lengths <= {0, 1, 2}
    assert len(lengths) > 1


@given(SEEDS)
def test_points_that_are_moved_by_hand_stay_in_one_step_at_the_end(seed: int) -> None:
    bank, read = chains("cp")
    chain = next(c for c in read if c.moves and c.moves[-1].function != "nudge")
    once, _ = rewrite(chain, bank, "nudge", KeyedStream(seed))
    twice, _ = rewrite(once, bank, "nudge", KeyedStream(seed, "again"))
    largest = max(bank.nudge_sizes)
    for times, found in ((1, once), (2, twice)):
        assert found.moves[:-1] == chain.moves
        rows = found.moves[-1].arguments["offsets"]
        assert isinstance(rows, tuple)
        indices = [row[0] for row in rows]  # type: ignore[index]
        assert indices == sorted({*indices})
        assert set(indices) <= set(range(bank.count))
        assert 1 <= len(rows) <= 3 * times
        for _, dx, dy in rows:  # type: ignore[misc]
            assert max(abs(dx), abs(dy)) <= 3 * times * largest
    before = {row[0] for row in once.moves[-1].arguments["offsets"]}  # type: ignore[union-attr,index]
    after = {row[0] for row in twice.moves[-1].arguments["offsets"]}  # type: ignore[union-attr,index]
    assert before <= after


def test_a_step_that_nobody_knows_cannot_be_tuned_and_gets_another_one_beside_it() -> None:
    bank, read = chains("mmd")
    own = (Statement("my_own", {"k": 3}),)
    chain = replace(read[0], layout=None, base="mine()", moves=own, last=None)
    for seed in range(10):
        new, words = rewrite(chain, bank, "tune", KeyedStream(seed))
        assert words.startswith("I add ")
        assert own[0] in new.moves
        assert len(new.moves) == 2


def test_the_earliest_moves_of_a_program_that_takes_too_long_are_left_out() -> None:
    bank, read = chains("mmd")
    slow = tuple(Statement("my_own", {"k": k}) for k in range(40))
    chain = replace(read[0], layout=None, base="mine()", moves=slow, last=None)
    new, _ = rewrite(chain, bank, "layout", KeyedStream(1))
    assert new.moves == slow[-len(new.moves) :]
    assert cost(new, bank) <= MOST_MILLISECONDS
    longer = replace(new, moves=slow[-len(new.moves) - 1 :])
    assert cost(longer, bank) > MOST_MILLISECONDS


def unknown(count: int) -> tuple[Statement, ...]:
    """Moves of the program's own, of which nobody knows how long they take."""
    return tuple(Statement("my_own", {"k": k}) for k in range(count))


def test_any_move_can_be_left_out() -> None:
    bank, read = chains("cp")
    chain = replace(read[0], moves=unknown(3))
    left = {
        tuple(move.arguments["k"] for move in rewrite(chain, bank, "drop", KeyedStream(k))[0].moves)
        for k in range(40)
    }
    assert left == {(0, 1), (0, 2), (1, 2)}


def test_a_full_chain_gives_up_an_old_move_for_each_new_one() -> None:
    bank, read = chains("mmd")
    full = replace(read[0], layout=None, base="mine()", moves=unknown(bank.most_moves))
    given_up = set[str]()
    for seed in range(60):
        new, _ = rewrite(full, bank, "add", KeyedStream(seed))
        assert sum(step not in full.moves for step in new.moves) == 1
        if len(new.moves) == bank.most_moves:  # else the new one takes long
            (gone,) = {*map(str, full.moves)} - {*map(str, new.moves)}
            given_up.add(gone)
        assert len(new.moves) <= bank.most_moves
    assert len(given_up) > 1


def test_a_point_that_is_moved_again_is_moved_from_where_it_was() -> None:
    bank, read = chains("cp")
    far = tuple((index, 10.0, -10.0) for index in range(bank.count))
    chain = replace(read[0], moves=(Statement("nudge", {"offsets": far}),))
    for seed in range(20):
        new, _ = rewrite(chain, bank, "nudge", KeyedStream(seed))
        rows = new.moves[-1].arguments["offsets"]
        assert isinstance(rows, tuple)
        assert len(rows) == bank.count
        assert all(dx > 9 and dy < -9 for _, dx, dy in rows)  # type: ignore[misc,operator]
        assert rows != far


def test_another_last_step_is_paid_for_with_the_earliest_moves() -> None:
    bank, read = chains("cp")
    chain = replace(read[0], layout=None, base="mine()", moves=unknown(40))
    for seed in range(10):
        new, _ = rewrite(chain, bank, "last", KeyedStream(seed))
        assert cost(new, bank) <= MOST_MILLISECONDS
        longer = replace(new, moves=unknown(40)[-len(new.moves) - 1 :])
        assert cost(longer, bank) > MOST_MILLISECONDS


def test_a_new_start_keeps_the_last_step_now_and_then() -> None:
    bank, read = chains("cp")
    own = replace(read[0], last=Statement("my_own_radii", {}))
    made = [rewrite(own, bank, "restart", KeyedStream(seed))[0].last for seed in range(40)]
    assert 5 < sum(last == own.last for last in made) < 35
