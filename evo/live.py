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

from evo.allocation import Outcome, allocate
from evo.arm import Arm, Resources
from evo.configuration import LOCAL, Settings, at_least, differences, make_header, split_settings
from evo.cost import cost_of_children
from evo.journal import JournalWatcher, open_journal
from evo.log import Log, LogError, LogWriter, read_log
from evo.policies import ALIASES, Draws, Policy, PolicyClass, find_policy
from evo.records import AllocationHeader, ArmRecord, Child, End, Header
from evo.rewards import find_reward
from evo.session import begin_session, open_resources, with_model
from evo.task import Task, load_task

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from evo.policies.base import Bools, Floats, Ints

UNITS = ("calls", "tokens", "flops", "dollars", "seconds")
Configuration = Mapping[str, Any]
ArmSource = int | str | os.PathLike[str] | Configuration
"""An arm: a seed, a log to go on from, or fields of `make_header` that differ for it."""


@dataclass(frozen=True)
class Allocation:
    """What a live allocation did.

    Attributes:
        pulls: (rounds,), the arm pulled; -1 once the budget was spent.
        rewards: (rounds,), what the policy was told; NaN once over.
        best_fitness: (rounds,), best over the arms so far, the initial program included.
        spent: By unit, (rounds,), what was spent so far.
        arms: The arms' logs.
        path: Folder of the allocation.
    """

    pulls: NDArray[np.intp]
    rewards: NDArray[np.float64]
    best_fitness: NDArray[np.float64]
    spent: dict[str, NDArray[np.float64]]
    arms: list[Log]
    path: Path

    def __repr__(self) -> str:
        made = int((self.pulls >= 0).sum())
        return (
            f"<Allocation {self.path}: {made} rounds over {len(self.arms)} arms, "
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
        arms: K, or a list of seeds, logs to go on from, or configurations (fields of
            `make_header`). A generation that such a log holds already costs nothing.
        rounds: Pulls at most.
        children: N of each arm.
        seed: Of the policy; apart from those of the arms.
        arm_seed: Arm k is the run with seed arm_seed + k, unless it says otherwise.
        cap: Generations of an arm at most.
        reward: Name out of `evo.rewards.REWARDS`.
        budget: Limits by unit: calls, tokens, flops, dollars, seconds.
        log_dir: Folder of the arms' logs and allocation.jsonl; None: a new one in logs/local.
        settings: A whole Settings value instead of its fields as keywords.
        **configuration: As for `evo.run`.

    Raises:
        ValueError: A mistake in the arguments, or the folder holds another allocation.
        LogError: A log is damaged or busy.
        EndpointDown: The endpoint does not answer; the allocation can go on later.
    """
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
        arms=tuple(_arm_record(folder, k, source) for k, source in enumerate(sources)),
    )
    with contextlib.ExitStack() as stack:
        writer, journal = open_journal(folder, header, stack)
        header = journal.header
        resources = stack.enter_context(open_resources(_header_of(sources[0]), settings))
        live = LiveArms(cap)
        for source, record in zip(sources, header.arms, strict=True):
            live.add(_open_arm(folder, record, source, settings, resources, stack))
        initial = [value for value in live.fitness()[0].tolist() if not math.isnan(value)]
        watcher = JournalWatcher(
            writer,
            journal,
            allocator,
            rounds,
            best_fitness=max(initial, default=None),
            shown=settings.progress,
        )
        stack.callback(watcher.close)
        done = allocate(
            allocator, live, rounds=rounds, budget=header.budget, reward=reward, watcher=watcher
        )
        live.end()
    return Allocation(
        pulls=done.pulls[0],
        rewards=done.rewards[0],
        best_fitness=done.best_fitness[0],
        spent={unit: amounts[0] for unit, amounts in done.spent.items()},
        arms=[read_log(folder / record.log) for record in header.arms],
        path=folder,
    )


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
            if log.header.task.hash != task.record.hash:
                raise ValueError(f"{log.path}: a log of another task or version than {task.name}")
            sources.append(log)
        elif isinstance(arm, Mapping):
            sources.append(make_header(task, **{"seed": arm_seed + k, **common, **arm}))
        else:
            sources.append(make_header(task, seed=arm, **common))
    return sources


def _header_of(source: Header | Log) -> Header:
    return source.header if isinstance(source, Log) else source


def _arm_record(folder: Path, k: int, source: Header | Log) -> ArmRecord:
    if isinstance(source, Log):
        place = os.path.relpath(source.path, folder)
        return ArmRecord(log=place, seed=source.header.seed, logged=len(source.generations))
    return ArmRecord(log=f"arm-{k:02}.jsonl", seed=source.seed)


class LiveArm:
    """An arm that plays its log as far as it reaches and asks the model beyond.

    Attributes:
        arm: The run; None for a compact log, which ends where it ends.
        fitness: Best so far after each generation that is logged, NaN while nothing is ok.
        costs: By generation from 1, what it cost by unit.
        played: Generations that this allocation has pulled.
    """

    def __init__(self, log: Log, arm: Arm | None, *, free: int) -> None:
        self.arm = arm
        self.fitness: list[float] = log.trajectory.tolist()
        by_generation: dict[int, list[Any]] = {}
        for outcome in log.outcomes:
            by_generation.setdefault(outcome.generation, []).append(outcome)
        self.costs = [
            _costs(log.header, by_generation[g.generation], g.seconds) for g in log.generations
        ]
        for k in range(min(free, len(self.costs))):
            self.costs[k] = dict.fromkeys(self.costs[k], 0.0)
        self.played = 0

    @property
    def open(self) -> bool:
        """Whether it has a next generation."""
        return self.arm is not None or self.played < len(self.costs)

    def pull(self) -> dict[str, float]:
        """Goes on by one generation and returns what it cost."""
        if self.played == len(self.costs):
            assert self.arm is not None
            made: list[Child] = []
            generation = self.arm.advance(made.append)
            best = generation.best_fitness
            self.fitness.append(float("nan") if best is None else best)
            logged = read_log(self.arm.path) if len(made) < self.arm.header.children else None
            members = (
                [o for o in logged.outcomes if o.generation == generation.generation]
                if logged
                else made
            )
            self.costs.append(_costs(self.arm.header, members, generation.seconds))
        self.played += 1
        return self.costs[self.played - 1]


def _costs(header: Header, children: Sequence[Any], seconds: float | None) -> dict[str, float]:
    """Returns what a generation cost by unit; NaN where unknown."""
    cost = cost_of_children(children, header.model, header.sampling)
    known = {
        "calls": float(cost.calls),
        "tokens": cost.tokens,
        "flops": cost.flops,
        "dollars": cost.dollars,
        "seconds": seconds,
    }
    return {unit: float("nan") if value is None else value for unit, value in known.items()}


class LiveArms:
    """Live runs as the arms of one replicate; see `evo.allocation.Arms`."""

    def __init__(self, cap: int | None) -> None:
        self._cap = cap
        self._arms: list[LiveArm] = []

    def add(self, arm: LiveArm) -> None:
        """Adds the next arm."""
        self._arms.append(arm)

    def end(self) -> None:
        """Notes in each arm's log that the session ended in an orderly way."""
        for arm in self._arms:
            if arm.arm is not None:
                arm.arm.end(End(reason="completed"))

    @property
    def shape(self) -> tuple[int, int]:
        """(1, arms)."""
        return 1, len(self._arms)

    def open_arms(self) -> Bools:
        """(1, arms), the arms below their cap that can go on."""
        import numpy as np

        return np.array(
            [[arm.open and (self._cap is None or arm.played < self._cap) for arm in self._arms]]
        )

    def fitness(self) -> Floats:
        """(1, arms), each arm's fitness so far."""
        import numpy as np

        return np.array([[arm.fitness[arm.played] for arm in self._arms]])

    def pull(self, arm: Ints, active: Bools) -> Outcome:
        """Advances an arm by one generation."""
        import numpy as np

        chosen = self._arms[int(arm[0])]
        before = chosen.fitness[chosen.played]
        costs = chosen.pull()
        return Outcome(
            arm=arm,
            before=np.array([before]),
            after=np.array([chosen.fitness[chosen.played]]),
            known=self.fitness,
            made=active.copy(),
            costs={unit: np.array([cost]) for unit, cost in costs.items()},
        )


def _open_arm(
    folder: Path,
    record: ArmRecord,
    source: Header | Log,
    settings: Settings,
    first: Resources,
    stack: contextlib.ExitStack,
) -> LiveArm:
    """Opens an arm's log for writing, new or old, and its model."""
    path, header = folder / record.log, _header_of(source)
    if header.compact:
        return LiveArm(read_log(path), None, free=record.logged)
    if path.exists():
        writer, log = LogWriter.reopen(path)
        stack.callback(writer.close)
        if other := differences(log.header, header):
            raise LogError(f"{path}: holds another run than this arm's: {', '.join(other)} differ")
    else:
        writer, log = LogWriter.create(path, header), None
        stack.callback(writer.close)
    resources = with_model(first, header, settings, stack)
    arm = Arm(writer, header, resources)
    writer.append(begin_session(None, settings, resources))
    arm.begin(log)
    return LiveArm(read_log(path), arm, free=record.logged)
