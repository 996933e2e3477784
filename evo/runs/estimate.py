"""What runs may cost, before their first call: every figure as a bracket.

Tokens are estimated from characters, 3 to 5 of which are a token in programs and English, or taken
from a log of earlier calls. The time is that of the calls alone.
"""

from __future__ import annotations

import math
import os
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import SupportsIndex, Unpack

from evo.logs.cost import cost_of_tokens, longest_reply, usage_tokens
from evo.logs.log import Log, read_log
from evo.logs.records import AskedModel, CriticRecord, Header, Model
from evo.models.critics import rubrics_of
from evo.plugins import MistakenType
from evo.prompt import build_messages
from evo.runs.bounds import Bracket, Within, cost_bound
from evo.runs.budget import check_budget
from evo.runs.configuration import goal_of, make_header, seeds_of, settings_of
from evo.runs.options import ManyOptions
from evo.runs.options import SeriesOptions as Configuration
from evo.runs.progress import counted, duration
from evo.runs.screening import embedding_models
from evo.runs.signatures import check_options, options_in
from evo.tasks.instances import calls_of_evaluation, checks_of, read_instances
from evo.tasks.task import Task, load_task

CHARACTERS = (3.0, 5.0)
"""Characters a token, from dense programs to plain English."""

ADVICE = 200
"""The fewest characters of advice."""

SPEED = (20.0, 150.0)
"""Completion tokens a second of one call, from slow to fast endpoints."""


@dataclass(frozen=True)
class Estimate:
    """What some runs may cost, without retries.

    Attributes:
        runs: Number of runs.
        calls: Calls in all at most, those of evaluations and critics included.
        prompt_tokens: Tokens of all prompts.
        completion_tokens: Tokens of all replies.
        dollars: At the models' prices; NaN where a price is unknown; 0 of a stand-in.
        seconds: Wall time of the calls, with as many in flight as the session allows.
        basis: What the figures rest on, in words.

    Example:
        >>> estimate = evo.estimate("mmd", generations=2, children=4)
        >>> estimate.calls
        8
    """

    runs: int
    calls: int
    prompt_tokens: Bracket
    completion_tokens: Bracket
    dollars: Bracket
    seconds: Bracket
    basis: str

    def __str__(self) -> str:
        rows = [
            ("calls, at most", f"{self.calls:,}"),
            ("prompt tokens", _between(self.prompt_tokens, ",.0f")),
            ("completion tokens", _between(self.completion_tokens, ",.0f")),
            ("dollars", _between(self.dollars, ",.2f")),
            ("time of the calls", " to ".join(map(duration, self.seconds))),
        ]
        runs = f"{counted(self.runs, 'run')}, nothing was called"
        lines = [f"  {name:<18}{text}" for name, text in rows]
        return "\n".join([runs, *lines, self.basis])

    __repr__ = __str__


def estimate(
    task: str | os.PathLike[str] | Task,
    *,
    seeds: Iterable[SupportsIndex] | str = (0,),
    like: str | os.PathLike[str] | Log | None = None,
    budget: Mapping[str, float] | None = None,
    **options: Unpack[ManyOptions],
) -> Estimate:
    """Returns what runs may cost, without a call: calls, tokens, dollars and time.

    Args:
        task: Name, alias, folder or Task.
        seeds: Seeds of the runs, as for `evo.run_many`.
        like: A log of earlier calls of this kind. Tokens and seconds of a rewrite are then between
            the 10th and the 90th percentile of its calls.
        budget: Limits of all runs together, as for `evo.run_many`. They are passed by one
            generation at most.
        **options: Those of `evo.run_many`.

    Raises:
        ValueError: An option is out of range, or `like` holds no call with usage.

    Example:
        >>> known = evo.estimate("cp", model="gpt-4.1-mini", generations=8, children=16)
        >>> known.calls
        128
    """
    check_options(ManyOptions, options, verb=estimate)
    loaded, numbers = load_task(task), seeds_of(seeds)
    header = make_header(loaded, seed=numbers[0], **options_in(Configuration, options))
    slots = settings_of(options).max_concurrent
    generations = goal_of(options).generations
    limits = check_budget(budget, [header])
    kinds = _kinds(header, generations, None if like is None else _opened(like))
    calls = [len(numbers) * kind.calls for kind in kinds]

    def summed(of: Sequence[Bracket]) -> Bracket:
        pairs = [(count, each) for count, each in zip(calls, of, strict=True) if count]
        return Bracket(
            math.fsum(count * each.low for count, each in pairs),
            math.fsum(count * each.high for count, each in pairs),
        )

    inside = summed([kind.seconds for kind in kinds])
    waves = max(generations * math.ceil(header.children * header.drafts / slots), 1)
    waves += sum(map(header.advises, range(generations + 1)))
    rewrites = kinds[0].seconds  # one after another, whatever the number of slots
    seconds = Bracket(*(max(s / slots, waves * r) for s, r in zip(inside, rewrites, strict=True)))
    amounts = {unit: summed([kind.units[unit] for kind in kinds]) for unit in kinds[0].units}
    runs = len(numbers) * max(1, generations)
    asked = sum(n for n, kind in zip(calls, kinds, strict=True) if kind.units["calls"].high)
    most = _most_calls(header, generations, asked, limits.get("calls", math.inf))
    within = Within(limits, amounts | {"seconds": seconds}, generations=runs, calls=most)
    tokens = [summed([each.prompt for each in kinds]), summed([each.completion for each in kinds])]
    prompt, completion = map(within.of, tokens)
    return Estimate(
        runs=len(numbers),
        calls=_whole(within.of(amounts["calls"]).high, header, generations),
        prompt_tokens=prompt,
        completion_tokens=completion,
        dollars=within.of(summed([kind.dollars for kind in kinds])),
        seconds=within.of(seconds),
        basis=_basis(like is not None, header),
    )


def _most_calls(header: Header, generations: int, total: int, limit: float) -> float:
    """Returns the calls that runs make at most under a limit, which the last generation passes."""
    bound = cost_bound(header, generations, retries=0)
    most = max(bound.of(number)["calls"] for number in range(generations + 1))
    return total if limit >= total else min(total, math.ceil(limit) - 1 + most)


def _whole(calls: float, header: Header, generations: int) -> int:
    """Returns calls in whole generations, where all have as many."""
    count = math.floor(calls + 1e-9)
    bound = cost_bound(header, generations, retries=0)
    alike = bound.total["calls"] == generations * header.children
    return count - count % header.children if alike else count


def planned_runs(
    task: str | os.PathLike[str] | Task,
    seeds: Iterable[SupportsIndex] | str,
    **options: Unpack[ManyOptions],
) -> list[tuple[Header, int]]:
    """Returns the header and T of each run that `evo.run_many` would make; nothing is written."""
    loaded, generations = load_task(task), goal_of(options).generations
    configuration = options_in(Configuration, options)
    return [(make_header(loaded, seed=s, **configuration), generations) for s in seeds_of(seeds)]


@dataclass(frozen=True)
class _Kind:
    """Calls of one kind in one run, and what one of them takes."""

    calls: int
    prompt: Bracket
    completion: Bracket
    dollars: Bracket
    seconds: Bracket
    units: Mapping[str, Bracket]  # by which budgets are held


def _kinds(header: Header, generations: int, like: Log | None) -> list[_Kind]:
    """Returns the calls for rewrites and for advice, those of evaluations, and of the critic."""
    record, children = header.task, generations * header.children
    program = len(_initial(header))
    messages = build_messages(record, _initial(header), 0.5)
    around = sum(len(each["content"]) for each in messages) - program
    asked = [(each.model, each.sampling.max_tokens) for each in header.models]
    asked = asked or [(header.model, header.sampling.max_tokens)]
    shown = program * (1 + header.inspirations)
    blocks = {"rewrite": 0.0, "diff": 1.0}.get(header.edits, header.diff_share or 0.0)
    wanted = blocks * min(program, 200) + (1 - blocks) * program
    rewrite = _kind(children * header.drafts, asked, around + shown, wanted, like=like)
    kinds = [rewrite]
    if count := sum(map(header.advises, range(generations + 1))):
        kinds.append(_kind(count, asked[:1], around + 2 * program, ADVICE))
    asking = calls_of_evaluation(record)
    scored = children * header.drafts if header.drafts > 1 else 0  # each draft is scored
    if asking:
        rows = read_instances(record)
        row = statistics.fmean(len(str(each["prompt"])) for each in rows)
        answers = (1 + children) * asking + 2 * checks_of(record)
        scored += answers if record.score == "critic" else 0
        who: AskedModel | Header = header.asks or header
        one = [(who.model, who.sampling.max_tokens)]
        kinds.append(_kind(answers, one, program + row, 1))
    if header.critic is not None and scored:
        critic: CriticRecord = header.critic
        count = scored * len(rubrics_of(critic))
        one = [(critic.model, critic.sampling.max_tokens)]
        kinds.append(_kind(count, one, around + 2 * program, 1))
    for model in embedding_models(header):
        kinds.append(_kind_of_embeddings(model, children, program, rewrite.completion.high))
    return kinds


def _kind_of_embeddings(model: Model, children: int, program: int, longest: float) -> _Kind:
    """Returns the calls that embed all children and the initial program, which count as none.

    A program has at least the characters of the initial one, and at most the tokens of a reply.
    """
    dense, plain = CHARACTERS
    tokens = Bracket(program / plain, min(max(program / dense, longest), model.context or math.inf))
    if model.way == "function":
        tokens = Bracket(0.0, 0.0)
    nothing = Bracket(0.0, 0.0)
    ends = [cost_of_tokens((each, 0.0, 0.0), model) for each in tokens]
    units = {unit: Bracket(ends[0][unit], ends[1][unit]) for unit in ends[0]}
    return _Kind(
        children and children + 1,
        tokens,
        nothing,
        units["dollars"],
        nothing,
        {**units, "calls": nothing},
    )


def _kind(
    calls: int,
    asked: Sequence[tuple[Model, int | None]],
    characters: float,
    reply: float,
    like: Log | None = None,
) -> _Kind:
    """Returns what a call takes whose prompt and shortest reply have so many characters.

    At the most a prompt also holds a reply that is as long as the model may give.
    """
    most = [longest_reply(model, limit) or model.context or math.nan for model, limit in asked]
    longest = math.nan if any(map(math.isnan, most)) else max(most)
    dense, plain = CHARACTERS
    window = max((model.context or math.inf) for model, _ in asked)
    prompt = Bracket(characters / plain, min(characters / dense + longest, window))
    completion = Bracket(min(max(1.0, reply / plain), longest), longest)
    slow, fast = SPEED
    seconds = Bracket(completion.low / fast, completion.high / slow)
    if like is not None:
        prompt, completion, seconds = _measured(like)
    costs = [
        [(model, cost_of_tokens((p, 0.0, c), model)) for model, _ in asked]
        for p, c in zip(prompt, completion, strict=True)
    ]
    units = {u: _range([[cost[u] for _, cost in end] for end in costs]) for u in costs[0][0][1]}
    paid = [[cost["dollars"] if m.is_llm else 0.0 for m, cost in end] for end in costs]
    return _Kind(calls, prompt, completion, _range(paid), seconds, units)


def _range(ends: Sequence[Sequence[float]]) -> Bracket:
    """Returns the least of the low ends and the most of the high ones; NaN where one is unknown."""
    if any(math.isnan(each) for end in ends for each in end):
        return Bracket(math.nan, math.nan)
    return Bracket(min(ends[0]), max(ends[1]))


def _initial(header: Header) -> str:
    return header.task.files[header.task.program_file]


def _opened(like: str | os.PathLike[str] | Log) -> Log:
    if isinstance(like, Log):
        return like
    if isinstance(like, str | os.PathLike):
        return read_log(like)
    raise MistakenType(f"like: expected a log or its path, got {like!r:.60}")


def _measured(log: Log) -> tuple[Bracket, Bracket, Bracket]:
    """Returns prompt and completion tokens and seconds of a log's calls, 10 % to 90 %."""
    import numpy as np

    made = [each for out in log.outcomes for each in out.attempts if each.status == "ok"]
    counted = [(usage_tokens(each.usage), each.latency) for each in made if not each.cached]
    rows = [(t.prompt, t.completion, s) for t, s in counted if t is not None and s is not None]
    if not rows:
        raise ValueError(
            f"like: {log.path} holds no call with usage and a time; give another log, of a model's "
            "function one that returned evo.Reply(text, usage={...}), or estimate without like="
        )
    low, high = np.quantile(np.array(rows, dtype=float), [0.1, 0.9], axis=0)
    prompt, completion, seconds = (
        Bracket(float(a), float(b)) for a, b in zip(low, high, strict=True)
    )
    return prompt, completion, seconds


def _basis(measured: bool, header: Header) -> str:
    if measured:
        text = "Tokens and times of rewrites are those of the log given, 10th to 90th percentile."
    else:
        dense, plain = CHARACTERS
        slow, fast = SPEED
        text = (
            f"From the program's {len(_initial(header)):,} characters at {dense:g} to "
            f"{plain:g} a token, replies between that and the model's longest, {slow:g} to "
            f"{fast:g} tokens a second."
        )
    return f"{text} Evaluations and retries come on top." + (
        ""
        if header.model.is_llm
        else " The offline model costs nothing and answers at once; a "
        "budget in dollars counts the prices that `evo models` states for it."
    )


def _between(each: Bracket, form: str) -> str:
    if math.isnan(each.low) or math.isnan(each.high):
        return "unknown" if math.isnan(each.low) else f"at least {each.low:{form}}"
    return f"{each.low:{form}} to {each.high:{form}}"
