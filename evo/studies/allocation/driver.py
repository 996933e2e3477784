"""Live allocation: a policy advances real arms through the one loop, and every round is logged.

Going on after a kill needs no state of its own: the allocation is played again from round 0, and
arms take each generation from their logs as far as these reach, then from the model.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import msgspec

from evo.logs.inputs import at_least
from evo.logs.log import Log, read_log
from evo.logs.records import Header
from evo.plugins import MistakenType, name_in
from evo.policies import SETS, Draws, Policy, PolicyClass, find_policy, name_of
from evo.policies.base import built
from evo.policies.learned import reward_of
from evo.policies.rewards import REWARDS, default_reward, find_reward
from evo.runs.budget import check_budget
from evo.runs.configuration import settings_of
from evo.runs.handle import (
    Control,
    Handle,
    Prepared,
    in_background,
    in_foreground,
    read_begun,
    verb,
)
from evo.runs.identity import differences
from evo.runs.options import AllocationOptions, ConfigurationOptions, EndOptions
from evo.runs.places import Resume
from evo.runs.resources import Resources
from evo.runs.signatures import check_options, lists_options, options_in
from evo.searches.base import SearchError
from evo.studies.allocation.arms import LiveArms, open_arm, open_threads
from evo.studies.allocation.earlier import Earlier, taught
from evo.studies.allocation.goal import AllocationEnd, AllocationGoal, goal_of
from evo.studies.allocation.journal import (
    AllocationHeader,
    JournalWatcher,
    open_journal,
    read_journal,
    refuse_other_allocation,
    same_code,
)
from evo.studies.allocation.loop import Allocations, allocate
from evo.studies.allocation.sources import (
    ArmSource,
    Source,
    arm_record,
    arm_sources,
    header_of,
)
from evo.studies.folders import ALLOCATION, parameters_of, require_finite
from evo.studies.places import place_of_study
from evo.studies.study import Study
from evo.tasks.task import Task, load_task
from evo.values import source_hash

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


_begun: dict[Path, tuple[AllocationHeader, Sequence[Header]]] = {}
"""Allocations of this process in folders that were not named, and the headers of their arms."""


@dataclass(frozen=True)
class Allocation:
    """The pulls, rewards and logs of a live allocation.

    Attributes:
        pulls: (rounds,), the arm pulled; -1 once the budget was spent or a stop was asked for.
        rewards: (rounds,), the rewards that the policy received; NaN once over.
        best_fitness: (rounds,), best over the arms, the initial program included, after so many
            rounds were completed.
        spent: By unit, (rounds,), what was spent after so many rounds were completed.
        end: Why it ended: completed (all rounds), target, patience (which closed the last arm),
            budget, stopped, or over (no arm has a next generation).
        completion_order: Rounds in the order of completion: with several in flight, a replay
            repeats the allocation if it is given this order.
        arms: The arms' logs.
        path: Folder of the allocation.

    Example:
        >>> allocation = evo.allocate_live(
        ...     "mmd", "round_robin", arms=2, rounds=2, children=1, log_dir=new(""), progress=False
        ... )
        >>> allocation.pulls.tolist(), len(allocation.arms)
        ([0, 1], 2)
    """

    pulls: NDArray[np.intp]
    rewards: NDArray[np.float64]
    best_fitness: NDArray[np.float64]
    spent: dict[str, NDArray[np.float64]]
    completion_order: NDArray[np.intp]
    arms: list[Log]
    path: Path
    end: AllocationEnd = "completed"

    @property
    def told(self) -> NDArray[np.intp]:
        """The earlier name of `completion_order`."""
        return self.completion_order

    def __repr__(self) -> str:
        end = "" if self.end == "completed" else f", end: {self.end}"
        return (
            f"<Allocation {self.path}: {len(self.completion_order)} rounds over "
            f"{len(self.arms)} arms, best fitness {self.best_fitness[-1]:z.6g}{end}>"
        )


@lists_options(AllocationOptions)
def prepare_allocation(
    task: str | os.PathLike[str] | Task,
    policy: str | PolicyClass,
    *,
    arms: int | Sequence[ArmSource] = 10,
    rounds: int = 64,
    children: int = 16,
    seed: int = 0,
    arm_seed: int = 40,
    cap: int | None = None,
    reward: str | None = None,
    budget: Mapping[str, float] | None = None,
    in_flight: int = 1,
    earlier: Earlier | None = None,
    log_dir: str | os.PathLike[str] | None = None,
    resume: Resume = True,
    **options: Unpack[AllocationOptions],
) -> Prepared[Allocation]:
    """Lets a policy spend rounds over live runs; each round advances one arm by one generation.

    Called again with the same arguments, it goes on where it was killed, or is returned as it
    ended: no logged call is made twice. `target` and `patience` are no part of its identity, and
    with others it goes on, too. Where a text is checked on instances held out, no arm is tested at
    the end: `evo.resume(arm, generations=T)` with the one you choose tests it, once.

    Args:
        task: Name, alias, folder or Task.
        policy: Name, or a callable as in `replay.simulate`; `functools.partial` sets parameters.
        arms: K, or a list of seeds, logs to go on from, or configurations: fields of
            `make_header` that differ for that arm, such as model, temperature or children, or a
            `task` with another statement. A generation that a log holds already costs nothing.
            `{"engine": NAME, "python": PATH}` is a run of another tool, see `evo.ENGINES`: a pull
            grants it N calls, and its log is that of its programs.
        rounds: Largest number of pulls.
        children: Number of children per generation N of each arm.
        seed: Seed of the policy; the arms have their own.
        arm_seed: Arm k is the run with seed arm_seed + k, unless it names another one.
        cap: Largest number of generations of an arm.
        reward: Name out of `evo.rewards.REWARDS`; None: `best_fitness` where the task declares
            the scale [0, 1], as the shipped ones do, else `rank`.
        budget: Limits by unit: calls, tokens, flops, dollars, seconds. No round begins once what
            is spent has reached one of them; an arm's first pull pays for its generation 0.
        in_flight: Rounds at once: with more than one the policy is asked again before earlier
            rewards are in. An arm has one in flight at most, and under a budget no more are than
            leave room for each other, counted in calls; in other units they take turns.
        earlier: Earlier runs of the same task, model and N, none of them an arm, for a policy that
            learns from them: logs, folders, patterns, rows of `replay.load`, or a matrix (runs,
            generations + 1). What it learned stands in allocation.jsonl, so that an allocation that
            goes on needs them no more.
        log_dir: Folder of the arms' logs and allocation.jsonl (default: that of the same
            allocation in logs/local, else a new one there).
        resume: Whether the same allocation goes on; False: begin a new one, in a folder that
            holds none.
        **options: Listed below.

    Raises:
        ValueError: A mistake in the arguments, or the folder holds another allocation.
        LogError: A log is damaged or busy, or the folder holds an allocation and none shall go on.
        EndpointDown: The endpoint does not answer; the allocation can go on later.

    Example:
        >>> allocation = evo.allocate_live(
        ...     "mmd", "ucb1", arms=2, rounds=3, children=1, log_dir=new(""), progress=False
        ... )
        >>> allocation.pulls.tolist()
        [0, 1, 0]

    Example:
        >>> handle = evo.start_allocation(
        ...     "mmd", "random", arms=2, rounds=2, children=1, log_dir=new(""), progress=False
        ... )
        >>> len(handle.wait().pulls)
        2
    """
    check_options(AllocationOptions, options, SETS, verb=allocate_live)
    settings, configuration = settings_of(options), options_in(ConfigurationOptions, options)
    build, loaded = find_policy(policy), load_task(task)
    arm_seed = at_least("arm_seed", arm_seed, 0)
    common, goal = (
        {"children": children, **configuration},
        goal_of(**options_in(EndOptions, options)),
    )
    sources = arm_sources(loaded, arms, arm_seed, common, rounds=rounds)
    seed = at_least("seed", seed, 0)
    stem = f"{loaded.name}-{name_of(build)}-s{seed}"
    headers = [header_of(source) for source in sources]
    limits = check_budget(budget, headers)

    def described(folder: Path) -> tuple[AllocationHeader, Policy]:
        return describe(
            folder, build, sources, rounds=rounds, seed=seed, reward=reward, cap=cap,
            budget=limits, in_flight=in_flight, earlier=earlier,
        )  # fmt: skip

    folder = place_of_study(
        stem, log_dir, ALLOCATION, lambda each: _holds(each, described(each)[0], headers),
        resume=resume, progress=settings.progress,
    )  # fmt: skip
    # Rounds are spread over the arms: at most as dear as all of them to the dearest one.
    first, *others = sorted(headers, key=lambda each: -each.children)
    runs = [(first, rounds), *((each, 0) for each in others)]
    header, chosen = described(folder)

    if log_dir is None:  # no other one shall have its name before it has a journal
        folder.mkdir(parents=True, exist_ok=True)
        _begun[folder.absolute()] = header, headers

    def work(control: Control) -> Allocation:
        with Study(folder / ALLOCATION, settings, control, limits) as study:
            resources = study.enter(study.resources())
            return play(study, header, chosen, sources, resources, goal)

    return Prepared([folder / record.log for record in header.arms], work, many=True, runs=runs)


def _holds(folder: Path, header: AllocationHeader, arms: Sequence[Header]) -> bool:
    """Whether a folder holds this very allocation, with arms of this very configuration."""
    journal, begun = folder / ALLOCATION, _begun.get(folder.absolute())
    if journal.exists():
        was = read_journal(journal).header
    elif begun is not None:
        was = begun[0]
    else:
        return False
    refuse_other_allocation(journal, was, header)
    paths = [folder / record.log for record in was.arms]
    there = begun[1] if begun is not None else [_header_in(path) for path in paths]
    alike = (arm is None or not differences(arm, now) for arm, now in zip(there, arms, strict=True))
    return same_code(was, header) and all(alike)


def _header_in(path: Path) -> Header | None:
    log = read_begun(path) if path.exists() else None
    return None if log is None else log.header


allocate_live = verb("allocate_live", prepare_allocation, in_foreground, Allocation)
start_allocation = verb("start_allocation", prepare_allocation, in_background, Handle[Allocation])


def describe(
    folder: Path,
    build: PolicyClass,
    sources: Sequence[Source],
    *,
    rounds: int,
    seed: int,
    reward: str | None = None,
    cap: int | None = None,
    budget: Mapping[str, float] | None = None,
    in_flight: int = 1,
    earlier: Earlier | None = None,
) -> tuple[AllocationHeader, Policy]:
    """Returns what identifies an allocation in a folder, and its policy, once all was checked."""
    rounds, name = at_least("rounds", rounds, 1), name_of(build)
    known = read_journal(folder / ALLOCATION).header if (folder / ALLOCATION).exists() else None
    build, learned, learned_from = taught(build, earlier, sources, rounds, known)
    policy = built(build, (1, len(sources)), rounds=rounds, rng=Draws(seed, 1))
    if not isinstance(reward, str | None):
        raise MistakenType(
            f"reward: expected the name of one, out of {', '.join(REWARDS)}, got {reward!r:.80}; "
            "one of your own has a name once it is registered, evo.rewards.REWARDS[NAME] = ..."
        )
    reward = reward_of(build, reward)
    if reward is None:
        task = header_of(sources[0]).task
        reward = default_reward(task) if known is None else known.reward
    find_reward(reward)
    if known is not None and known.policy == name_in({}, build).lower():  # as it was once called
        name = known.policy
    header = AllocationHeader(
        policy=name,
        parameters={} if learned else parameters_of(build),
        learned=learned,
        learned_from=learned_from,
        source=source_hash(policy, beside="evo"),
        reward=reward,
        rounds=rounds,
        seed=seed,
        budget=dict(budget or {}),
        cap=None if cap is None else at_least("cap", cap, 1),
        in_flight=at_least("in_flight", in_flight, 1),
        initial=known is None or known.initial,
        arms=tuple(arm_record(folder, k, source) for k, source in enumerate(sources)),
    )
    require_finite(msgspec.structs.asdict(header))
    return header, policy


def play(
    study: Study,
    header: AllocationHeader,
    policy: Policy,
    sources: Sequence[Source],
    resources: Resources,
    goal: AllocationGoal,
) -> Allocation:
    """Opens the journal and the arms of a study, and lets the policy pull the arms."""
    folder = study.folder
    writer, journal = open_journal(study, header, goal)
    header = journal.header
    live = LiveArms([], header.cap, header.initial, study.control)
    for source, record in zip(sources, header.arms, strict=True):
        path = folder / record.log
        live.arms.append(open_arm(path, source, resources, study, free=record.logged))
    live.close_abandoned(journal, writer)
    initial = [value for value in live.fitness()[0].tolist() if not math.isnan(value)]
    bar = study.progress(header.rounds, "round", "allocate")
    best = max(initial, default=None)
    watcher = JournalWatcher(writer, journal, policy, best_fitness=best, bar=bar)
    flights = study.enter(open_threads(live, journal.told, header.in_flight))
    try:
        done = allocate(
            policy, live, rounds=header.rounds, budget=study.ledger,
            cost_unit=next(iter(header.budget), None), reward=header.reward, goals=journal.goals,
            in_flight=header.in_flight, flights=flights, watcher=watcher,
        )  # fmt: skip
    except SearchError as error:
        if not live.drop_uncalled():
            raise
        advice = f"correct it, and the same with log_dir={str(folder)!r} (--log-dir) goes on"
        raise SearchError(error.what, advice) from error.__cause__
    live.end()
    return Allocation(
        pulls=done.pulls[0],
        rewards=done.rewards[0],
        best_fitness=done.best_fitness[0],
        spent={unit: amounts[0] for unit, amounts in done.spent.items()},
        completion_order=done.told,
        arms=[read_log(folder / record.log) for record in header.arms],
        path=folder,
        end=_end_of(done, live, study, goal),
    )


def _end_of(done: Allocations, live: LiveArms, study: Study, goal: AllocationGoal) -> AllocationEnd:
    """Returns why an allocation ended."""
    if goal.target is not None and done.best_fitness[0, -1] >= goal.target:
        return "target"
    if len(done.told) == done.pulls.shape[1]:
        return "completed"
    if live.stopped:
        return "stopped"
    if study.ledger.limits and not study.ledger.open().all():
        return "budget"
    return "patience" if live.open_arms().any() else "over"
