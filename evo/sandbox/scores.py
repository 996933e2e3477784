"""Reads what an evaluator returned: a number, a dict with `fitness`, or (number, notes)."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from numbers import Real
from typing import NamedTuple

import numpy as np

from evo.logs.fitting import MOST_NOTES, fit_text
from evo.sandbox.outcome import printable

EXPECTED = "a number, a dict with the key 'fitness', or (number, notes)"


class WrongScore(TypeError):  # noqa: N818
    """An evaluator returned what is no score: its own fault, and not the program's."""


class ScoreRead(NamedTuple):
    """What an evaluator says of a value; none of the numbers is infinite or NaN."""

    fitness: float
    metrics: dict[str, float]
    notes: str


def read_score(returned: object, what: str = "score(value)") -> ScoreRead:
    """Returns what an evaluator returned.

    Args:
        returned: A number, a dict of numbers with `fitness` and perhaps `notes`, or (number,
            notes).
        what: What the evaluator is called, for error messages.

    Raises:
        WrongScore: It is anything else.
        ValueError: A number is not finite.
    """
    notes: object = ""
    if isinstance(returned, np.ndarray) and returned.ndim == 0:
        returned = returned.item()
    if isinstance(returned, tuple) and len(returned) == 2:
        returned, notes = returned
    if isinstance(returned, Mapping):
        if "fitness" not in returned:
            raise WrongScore(f"{what} must return {EXPECTED}, got {returned!r:.200}")
        found = dict(returned)
        notes = found.pop("notes", notes) if not _is_number(found.get("notes")) else notes
    elif _is_number(returned):
        found = {"fitness": returned}
    else:
        raise WrongScore(f"{what} must return {EXPECTED}, got {returned!r:.200}")
    numbers = dict[str, float]()
    for name, number in found.items():
        if not _is_number(number):
            raise WrongScore(
                f"{what} must return numbers, got {name!r}: {number!r:.200}"
                + ("; words go into 'notes'" if isinstance(number, str) else "")
            )
        numbers[printable(str(name))] = value = as_float(number)
        if not math.isfinite(value):
            raise ValueError(f"{name} is not finite: {value!r}")
    return ScoreRead(numbers.pop("fitness"), numbers, notes_text(notes))


def score_instances(
    score: Callable[[object, object], object],
    outcomes: Sequence[tuple[str, object]],
    instances: Sequence[Mapping[str, object]],
    *,
    unit: bool,
    strict: Collection[int] = (),
) -> dict[str, object]:
    """Scores what came of the instances of a data set, in the evaluator's process.

    Args:
        score: `score(value, instance)`.
        outcomes: For each instance "ok" and a value, or another word.
        instances: The data set.
        unit: Whether scores must be within [0, 1].
        strict: Positions of instances each of which must have a score.

    Returns:
        The score of each instance by its position, `N invalid` for a value that is not legal,
        `N outside` for a score that is not within [0, 1], the mean of other metrics over the
        instances that count as `mean NAME`, and as `notes` those on the instance that went worst.

    Raises:
        ValueError: A value is not legal where it must be.
        Exception: What `score` raised, on every instance or where there must be a score.
    """
    numbers, errors = dict[str, object](), list[Exception]()
    metrics, said = dict[str, list[float]](), list[tuple[float, str]]()
    for place, (outcome, instance) in enumerate(zip(outcomes, instances, strict=True)):
        if outcome[0] != "ok":
            continue
        try:
            returned = score(outcome[1], instance)
            found = _read(returned, unit=unit)
            if unit and not 0 <= found.fitness <= 1:
                numbers[f"{place} outside"] = found.fitness
                raise WrongScore(f"score(value, instance): expected 0 to 1, got {found.fitness!r}")
        except ValueError as error:
            if place in strict:
                raise ValueError(f"instance {instance.get('id', place + 1)}: {error}") from None
            numbers[f"{place} invalid"] = 0.0
            continue
        except Exception as error:
            if place in strict:
                raise
            errors.append(error)
            continue
        numbers[str(place)] = found.fitness
        if not instance.get("check"):
            for name, value in found.metrics.items():
                metrics.setdefault(name, []).append(value)
            said.append((found.fitness, f"instance {instance.get('id', place + 1)}: {found.notes}"
                         if found.notes else ""))  # fmt: skip
    if errors and not any(name.isdigit() or name.endswith(" invalid") for name in numbers):
        raise errors[0]
    means = {f"mean {name}": math.fsum(v) / len(v) for name, v in metrics.items()}
    notes = min(said, key=lambda each: each[0], default=(0.0, ""))[1]
    return {"fitness": 0.0, **numbers, **means, "notes": notes}


def _read(returned: object, *, unit: bool) -> ScoreRead:
    """Returns a score on an instance; one between 0 and 1 is no number beyond all bounds."""
    try:
        return read_score(returned, "score(value, instance)")
    except ValueError as error:
        if unit:
            raise WrongScore(f"score(value, instance): expected 0 to 1: {error}") from None
        raise


def notes_text(given: object) -> str:
    """An evaluator's notes: a text, a list of some, or several by name."""
    if isinstance(given, bytes):
        given = given.decode("utf-8", "replace")
    if isinstance(given, Mapping):
        texts = {str(name): notes_text(text) for name, text in given.items()}
        given = "\n".join(f"{name}: {text}" for name, text in texts.items() if text)
    if isinstance(given, list | tuple):
        given = ", ".join(filter(None, map(notes_text, given)))
    if _is_number(given):
        given = f"{given}"
    return fit_text(given.strip(), MOST_NOTES) if isinstance(given, str) else ""


def as_float(value: Real | np.bool) -> float:
    """The number as a float; beyond the largest float it is infinite."""
    try:
        return float(value)
    except OverflowError:
        return -math.inf if str(value).startswith("-") else math.inf


def _is_number(value: object) -> bool:
    return isinstance(value, Real | np.bool)
