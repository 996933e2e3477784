"""How far a critic agrees with a task that knows the right answers."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import Unpack

from evo import parallel
from evo.logs.records import Model
from evo.models.critics import Critic, NoScore
from evo.runs.configuration import make_header, settings_of
from evo.runs.dataset import InstanceEvaluator
from evo.runs.options import SessionOptions
from evo.runs.resources import open_resources
from evo.runs.signatures import check_options, lists_options
from evo.tasks.instances import read_instances
from evo.tasks.task import Task, load_task

LEAST = 5
"""Right and wrong replies that an interval needs, each."""


@dataclass(frozen=True)
class Agreement:
    """How often a critic scores a right reply above a wrong one.

    Attributes:
        value: Over all pairs of a right and a wrong reply, ties counting half; 0.5 is chance. NaN
            where there are none.
        low: Lower end of the 95 % interval; NaN where there are too few replies, as for the next.
        high: Upper end.
        right: Replies that are right.
        wrong: Replies that are wrong.
        unscored: Replies that the critic gave no score; they are in neither count.

    Example:
        >>> evo.Agreement(0.9, 0.7, 0.97, right=20, wrong=10, unscored=0).value
        0.9
    """

    value: float
    low: float
    high: float
    right: int
    wrong: int
    unscored: int

    @property
    def better_than_chance(self) -> bool:
        """Whether the whole interval lies above 0.5."""
        return self.low > 0.5

    def __str__(self) -> str:
        counts = f"{self.right} right and {self.wrong} wrong replies"
        counts += f", {self.unscored} without a score" if self.unscored else ""
        if math.isnan(self.low):
            return f"too few replies to say how far the critic agrees: {counts} ({LEAST} needed)"
        verdict = "better than chance" if self.better_than_chance else "not better than chance"
        return (
            f"the critic scores a right reply above a wrong one in {self.value:.3f} of pairs "
            f"[{self.low:.3f}, {self.high:.3f}], {verdict}: {counts}"
        )

    __repr__ = __str__


@lists_options(SessionOptions)
def check_critic(
    critic: Critic | str | Model,
    task: str | os.PathLike[str] | Task = "word_problems",
    *,
    model: str | Model = "offline-2",
    text: str | None = None,
    **options: Unpack[SessionOptions],
) -> Agreement:
    """Measures how far a critic agrees with a task that knows which replies are right.

    Args:
        critic: The critic, or its model.
        task: A text on a data set with an evaluator; a reply is right from a score of 0.5 on.
        model: Whose replies are scored: one to each instance.
        text: The system prompt (default: the task's initial text).
        **options: Listed below.

    Raises:
        ValueError: The task has no right answers, or the model cannot be a critic.
        EndpointError: An endpoint does not answer, or refuses.

    Example:
        >>> found = evo.check_critic("offline-2", progress=False)
        >>> 0 <= found.value <= 1
        True
    """
    check_options(SessionOptions, options)
    settings = settings_of(options)
    loaded = load_task(task)
    if not loaded.record.asks_model or loaded.record.score == "critic":
        raise ValueError(
            f"{loaded.name}: a critic is checked on a text with a data set and an evaluator, such "
            "as word_problems"
        )
    header = make_header(loaded, model=model)
    judging = critic if isinstance(critic, Critic) else Critic(critic)
    prompt = text if text is not None else loaded.initial_program
    instances = read_instances(loaded.record)
    with open_resources(settings) as resources:
        evaluator = InstanceEvaluator(header, resources)
        tried = evaluator.attempt(prompt, range(len(instances)), header.limits)
    known = [(t.instance, t.calls[0]) for t in tried if t.instance.score is not None]
    triples = [(prompt.strip(), instances[c.index]["prompt"], c.reply or "") for _, c in known]
    workers = min(len(triples), settings.max_concurrent) or None
    scores = parallel.score_batch(judging.score, triples, workers, raising=False)
    for error in scores:
        if isinstance(error, Exception) and not isinstance(error, NoScore):
            raise error
    scored = [(s, (i.score or 0) >= 0.5) for s, (i, _) in zip(scores, known, strict=True)
            if not isinstance(s, NoScore)]  # fmt: skip
    right, wrong = ([s for s, good in scored if good is side] for side in (True, False))
    return agreement_of(right, wrong, unscored=len(scores) - len(scored))


def agreement_of(right: list[float], wrong: list[float], *, unscored: int = 0) -> Agreement:
    """Returns the share of pairs in which the right one is above, with its interval.

    The interval is Newcombe's for the Mann-Whitney share (Statistics in Medicine 25, 2006, method
    5), which holds at the ends of the scale, too.
    """
    m, n = len(right), len(wrong)
    value = low = high = math.nan
    if m and n:
        above = math.fsum((r > w) + (r == w) / 2 for r in right for w in wrong)
        value = above / (m * n)
    if min(m, n) >= LEAST:
        low, high = (_limit(value, m, n, end) for end in (0.0, 1.0))
    return Agreement(value, low, high, m, n, unscored)


def _limit(value: float, m: int, n: int, end: float) -> float:
    """Returns where the distance to the share is 1.96 standard errors, between it and an end."""
    from scipy.optimize import brentq

    mean = (m + n) / 2 - 1

    def beyond(theta: float) -> float:
        spread = theta * (1 - theta) / (m * n)
        spread *= 1 + mean * ((1 - theta) / (2 - theta) + theta / (1 + theta))
        return float((value - theta) ** 2 - 1.959964**2 * spread)

    near = value + 1e-9 * (end - value)  # at a share of 0 or 1 the share itself is a root
    return end if value == end else float(brentq(beyond, near, end))
