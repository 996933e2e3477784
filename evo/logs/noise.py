"""Whether a log shows that the evaluations of its run are noisy, and which options help."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evo.logs.log import TOLERANCE

if TYPE_CHECKING:
    from evo.logs.records import Evaluation, Header, Initial


def differ(one: Evaluation, other: Evaluation) -> bool:
    """Whether the fitness of a program, whose first draw is ok, differs between two draws."""
    if one.fitness is None or other.fitness is None:
        return one.fitness is not other.fitness
    return abs(one.fitness - other.fitness) > TOLERANCE


def can_confirm(header: Header) -> bool:
    """Whether a run takes `confirm`: not without a barrier, nor with an evaluator here."""
    return header.task.isolation != "here" and not header.asynchronous


def way_out(header: Header) -> str:
    """What to give a run whose evaluations are noisy."""
    if can_confirm(header):
        return "give draws=4 and confirm=8 (--draws 4 --confirm 8)"
    return "give draws=4 (--draws 4) or more, of whose fitness the mean is taken"


def in_two_draws(one: Evaluation, other: Evaluation) -> str:
    """Says of a program what fitness it has in two draws that differ."""
    values = (
        "none" if each.fitness is None else f"{each.fitness + 0.0:.5g}" for each in (one, other)
    )
    return "fitness {} in one draw of chance and {} in another".format(*values)


def noise_of(header: Header, initial: Initial | None, *, several: bool = False) -> str:
    """Says that the evaluations of a run are noisy; empty if they are not, or if it allows for it.

    A run allows for it by `draws` or `confirm`; its log holds no second evaluation then.

    Args:
        header: Configuration of the run.
        initial: What it began with.
        several: Whether to say what this means for intervals over runs with other seeds.
    """
    if initial is None or initial.second is None or header.draws > 1 or header.confirm:
        return ""
    if not differ(initial.evaluation, initial.second):
        return ""
    shared = (
        ", the same in all runs, since with draws=1 the random numbers of an evaluation are fixed "
        "by task and program, so intervals over seeds do not cover it"
        if several and header.task.isolation != "here"
        else ""
    )
    return (
        "evaluations are noisy: the initial program has "
        f"{in_two_draws(initial.evaluation, initial.second)}, and a best fitness is partly luck"
        f"{shared}; {way_out(header)}"
    )
