"""Live allocation: a policy advances real arms through the one loop, and every round is logged.

Going on after a kill needs no state of its own: the allocation is played again from round 0, and
arms take each generation from their logs as far as these reach, then from the model.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from evo.allocation import Allocations, allocate
from evo.configuration import LOCAL, Settings, at_least, make_header, split_settings
from evo.handle import Control, Handle, Plan, begin
from evo.live_arms import LiveArms, LiveFlights, open_arm
from evo.log import Log, read_log
from evo.policies import ALIASES, Draws, Policy, PolicyClass, find_policy
from evo.records import AllocationHeader, ArmRecord, Header, TaskRecord
from evo.rewards import find_reward
from evo.rounds import ALLOCATION, JournalWatcher, open_journal
from evo.runs.resources import open_resources
from evo.sandbox import EvaluatorClosed
from evo.task import Task, load_task
from evo.upkeep import heed_stop

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

UNITS = ("calls", "tokens", "flops", "dollars", "seconds")
Configuration = Mapping[str, Any]
ArmSource = int | str | os.PathLike[str] | Configuration
"""An arm: a seed, a log to go on from, or fields of `make_header` that differ for it."""


@dataclass(frozen=True)
class Allocation:
    """What a live allocation did.

    Attributes:
        pulls: (rounds,), the arm pulled; -1 once the budget was spent or a stop was asked for.
        rewards: (rounds,), what the policy was told; NaN once over.
        best_fitness: (rounds,), best over the arms, the initial program included, after so many
            rounds were told.
        spent: By unit, (rounds,), what was spent after so many rounds were told.
        told: Rounds in the order told: with several in flight, a replay repeats the allocation if
            it is given this order.
        arms: The arms' logs.
        path: Folder of the allocation.
    """

    pulls: NDArray[np.intp]
    rewards: NDArray[np.float64]
    best_fitness: NDArray[np.float64]
    spent: dict[str, NDArray[np.float64]]
    told: NDArray[np.intp]
    arms: list[Log]
    path: Path

    def __repr__(self) -> str:
        return (
            f"<Allocation {self.path}: {len(self.told)} rounds over {len(self.arms)} arms, "
            f"best fitness {self.best_fitness[-1]:.6g}>"
        )


def allocate_live(
    task: str | os.PathLike[str] | Task,
    policy: str | PolicyClass,
    *,
    arms: int | Sequence[ArmSource] = 10,
    rounds: int = 64,
    children: int = 16,
    seed: int = 0,
    arm_seed: int = 40,
    cap: int | None = None,
    reward: str = "best_fitness",
    budget: Mapping[str, float] | None = None,
    in_flight: int = 1,
    log_dir: str | os.PathLike[str] | None = None,
    settings: Settings | None = None,
    **configuration: Any,
) -> Allocation:
    """Lets a policy spend rounds over live runs; each round advances one arm by one generation.

    Called again with the same arguments and folder, it goes on where it was killed: no logged
    call is made twice.

    Args:
        task: Name, alias, folder or Task.
        policy: Name, or a callable as in `replay.simulate`; `functools.partial` sets parameters.
        arms: K, or a list of seeds, logs to go on from, or configurations: fields of
            `make_header` that differ for that arm, such as model, temperature or children, or a
            `task` with another statement. A generation that a log holds already costs nothing.
        rounds: Pulls at most.
        children: N of each arm.
        seed: Of the policy; apart from those of the arms.
        arm_seed: Arm k is the run with seed arm_seed + k, unless it says otherwise.
        cap: Generations of an arm at most.
        reward: Name out of `evo.rewards.REWARDS`.
        budget: Limits by unit: calls, tokens, flops, dollars, seconds. No round begins once what
            is spent has reached one of them, so it is exceeded by what is then in flight at most.
        in_flight: Rounds at once: with more than one the policy is asked again before earlier
            rewards are in. An arm has one in flight at most.
        log_dir: Folder of the arms' logs and allocation.jsonl; None: a new one in logs/local.
        settings: A whole Settings value instead of its fields as keywords.
        **configuration: As for `evo.run`.

    Raises:
        ValueError: A mistake in the arguments, or the folder holds another allocation.
        LogError: A log is damaged or busy.
        EndpointDown: The endpoint does not answer; the allocation can go on later.
    """
    plan = _plan(
        task=task,
        policy=policy,
        arms=arms,
        rounds=rounds,
        children=children,
        seed=seed,
        arm_seed=arm_seed,
        cap=cap,
        reward=reward,
        budget=budget,
        in_flight=in_flight,
        log_dir=log_dir,
        settings=settings,
        **configuration,
    )
    return plan.do()


def start_allocation(
    task: str | os.PathLike[str] | Task, policy: str | PolicyClass, **arguments: Any
) -> Handle[Allocation]:
    """Starts `allocate_live` in the background and returns a handle, whose `log` are the arms'.

    Stopped, it gives an unfinished Allocation, and the same call goes on with it. A mistake in
    the arguments is raised here, before anything starts.

    Args:
        task: Name, alias, folder or Task.
        policy: As for `allocate_live`.
        **arguments: Those of `allocate_live`.
    """
    call = inspect.signature(allocate_live).bind(task, policy, **arguments)
    call.apply_defaults()
    given = dict(call.arguments)
    return begin(_plan(**given.pop("configuration"), **given))


def _plan(
    *,
    task: str | os.PathLike[str] | Task,
    policy: str | PolicyClass,
    arms: int | Sequence[ArmSource],
    rounds: int,
    children: int,
    seed: int,
    arm_seed: int,
    cap: int | None,
    reward: str,
    budget: Mapping[str, float] | None,
    in_flight: int,
    log_dir: str | os.PathLike[str] | None,
    settings: Settings | None,
    **configuration: Any,
) -> Plan[Allocation]:
    """Checks the arguments of `allocate_live` and returns its work."""
    settings, configuration = split_settings(settings, configuration)
    rounds = at_least("rounds", rounds, 1)
    cap = None if cap is None else at_least("cap", cap, 1)
    seed, arm_seed = at_least("seed", seed, 0), at_least("arm_seed", arm_seed, 0)
    find_reward(reward)
    _check_budget(budget or {})
    build = find_policy(policy)
    name, parameters = _describe(policy, build)
    loaded = load_task(task)
    folder = Path(log_dir) if log_dir is not None else _new_folder(f"{loaded.name}-{name}-s{seed}")
    common = {"children": children, **configuration}
    sources = _arm_sources(loaded, arms, arm_seed, common)
    allocator = _build(build, name, (1, len(sources)), rounds, seed)
    header = AllocationHeader(
        policy=name,
        parameters=parameters,
        reward=reward,
        rounds=rounds,
        seed=seed,
        budget=dict(budget or {}),
        cap=cap,
        in_flight=at_least("in_flight", in_flight, 1),
        arms=tuple(_arm_record(folder, k, source) for k, source in enumerate(sources)),
    )

    def work(control: Control) -> Allocation:
        done = _allocate(allocator, header, sources, settings, folder, control)
        return Allocation(
            pulls=done.pulls[0],
            rewards=done.rewards[0],
            best_fitness=done.best_fitness[0],
            spent={unit: amounts[0] for unit, amounts in done.spent.items()},
            told=done.told,
            arms=[read_log(folder / record.log) for record in header.arms],
            path=folder,
        )

    return Plan([folder / record.log for record in header.arms], work, many=True)


def _allocate(
    policy: Policy,
    header: AllocationHeader,
    sources: Sequence[Header | Log],
    settings: Settings,
    folder: Path,
    control: Control,
) -> Allocations:
    """Opens journal, arms and models, and lets the policy pull them."""
    with contextlib.ExitStack() as stack:
        writer, journal = open_journal(folder, header, stack)
        header = journal.header
        resources = stack.enter_context(open_resources(settings, control))
        watched = [folder / ALLOCATION, *(folder / record.log for record in header.arms)]
        stack.enter_context(heed_stop(watched, control.stop))
        live = LiveArms(header.cap, resources)
        for source, record in zip(sources, header.arms, strict=True):
            path, run = folder / record.log, _header_of(source)
            try:
                live.add(open_arm(path, run, resources, stack, free=record.logged))
            except EvaluatorClosed:
                raise RuntimeError(f"stopped before all arms of {folder} had begun") from None
        initial = [value for value in live.fitness()[0].tolist() if not math.isnan(value)]
        watcher = JournalWatcher(
            writer,
            journal,
            policy,
            header.rounds,
            best_fitness=max(initial, default=None),
            shown=settings.progress,
        )
        stack.callback(watcher.close)
        flights = LiveFlights(live, journal.told, header.in_flight)
        stack.callback(flights.close)
        done = allocate(
            policy,
            live,
            rounds=header.rounds,
            budget=header.budget,
            reward=header.reward,
            in_flight=header.in_flight,
            flights=flights,
            watcher=watcher,
        )
        live.end()
    return done


def _describe(policy: str | PolicyClass, build: PolicyClass) -> tuple[str, dict[str, Any]]:
    """Returns a policy's name and parameters as the journal states them."""
    if isinstance(build, functools.partial):
        return _describe(build.func, build.func)[0], dict(build.keywords)
    if isinstance(policy, str):
        return ALIASES.get(policy, policy), {}
    return getattr(build, "__name__", type(build).__name__).lower(), {}


def _build(build: PolicyClass, name: str, shape: tuple[int, int], rounds: int, seed: int) -> Policy:
    """Makes the policy; a parameter that it does not have is a mistake that lists those it has."""
    if isinstance(build, functools.partial):
        parameters = inspect.signature(build.func).parameters
        known = [key for key in parameters if key not in ("shape", "rounds", "rng")]
        catch_all = any(each.kind is each.VAR_KEYWORD for each in parameters.values())
        unknown = next((key for key in build.keywords if key not in known), None)
        if unknown and not catch_all:
            have = ", ".join(known) or "none"
            raise TypeError(f"policy {name}: unknown parameter {unknown!r} (known: {have})")
    return build(shape, rounds=rounds, rng=Draws(seed, 1))


def _check_budget(budget: Mapping[str, float]) -> None:
    for unit, limit in budget.items():
        if unit not in UNITS:
            raise ValueError(f"budget: expected a unit out of {', '.join(UNITS)}, got {unit!r}")
        if not limit > 0:
            raise ValueError(f"budget: expected a positive number of {unit}, got {limit!r}")


def _new_folder(name: str) -> Path:
    names = (name, *(f"{name}-{count}" for count in range(2, 100_000)))
    return next(LOCAL / n for n in names if not (LOCAL / n).exists())


def _arm_sources(
    task: Task, arms: int | Sequence[ArmSource], arm_seed: int, common: dict[str, Any]
) -> list[Header | Log]:
    """Returns each arm's configuration, or the log it goes on from."""
    if isinstance(arms, int):
        at_least("arms (K)", arms, 1)
        arms = range(arm_seed, arm_seed + arms)
    if len(arms) == 0:
        raise ValueError("arms: expected at least one")
    sources: list[Header | Log] = []
    for k, arm in enumerate(arms):
        if isinstance(arm, Log | str | os.PathLike):
            log = read_log(arm)
            if _judged(log.header.task) != _judged(task.record):
                raise ValueError(f"{log.path}: a log of another task or version than {task.name}")
            if any(isinstance(each, Log) and each.path == log.path for each in sources):
                raise ValueError(f"{log.path}: expected each log as one arm, got it as two or more")
            sources.append(log)
        elif isinstance(arm, Mapping):
            own = dict(arm)
            of_arm = load_task(own.pop("task", task))
            if _judged(of_arm.record) != _judged(task.record):
                raise ValueError(f"arm {k}: its task may differ from {task.name} in the statement")
            split_settings(Settings(), own)
            sources.append(make_header(of_arm, **{"seed": arm_seed + k, **common, **own}))
        else:
            sources.append(make_header(task, seed=arm, **common))
    return sources


def _judged(task: TaskRecord) -> TaskRecord:
    """Returns all of a task but what the prompt says of it: fitness compares where it is equal."""
    files = {name: text for name, text in task.files.items() if name != "task.toml"}
    return msgspec.structs.replace(task, name="", hash="", statement="", files=files)


def _header_of(source: Header | Log) -> Header:
    return source.header if isinstance(source, Log) else source


def _arm_record(folder: Path, k: int, source: Header | Log) -> ArmRecord:
    if isinstance(source, Log):
        place = os.path.relpath(source.path, folder)
        return ArmRecord(log=place, seed=source.header.seed, logged=len(source.generations))
    return ArmRecord(log=f"arm-{k:02}.jsonl", seed=source.seed)
