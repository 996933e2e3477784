"""The allocation explorer: what policies make of a pool of logged runs."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeVar, cast

from evo.policies import ALIASES, POLICIES, learns
from evo.policies.rewards import REWARDS
from replay.explorers.allocation_chart import allocation_chart
from replay.explorers.allocation_data import (
    BASELINES,
    EXPLORATION,
    MOST_POLICIES,
    SHARE,
    AllocationView,
    RunsAsArms,
    parameters_of,
    taus,
)
from replay.explorers.chart_explorer import ChartExplorer, notice
from replay.explorers.explorer import Explorer
from replay.explorers.explorer_spec import DEFAULT, ExplorerSpec, Settings, call
from replay.explorers.widgets import choice, entry, naming, slider, toggles
from replay.logs.frames import models_apart, unrepeated
from replay.logs.given import check_loaded
from replay.plots.style import Theme
from replay.simulation.sizes import FEWEST, default_arms

N = TypeVar("N", bound=float)

if TYPE_CHECKING:
    import pandas as pd
    from ipywidgets import Widget

HELP = (
    "Draw K of the logged runs as arms, let a policy pull them for so many rounds, and compare "
    "with one run alone (single) and with pulls at random."
)
COARSE = 200
"""Replicates while a control moves."""
DEFAULT_POLICIES = ("ucb1", "thompson")
CHOICE = 4
"""Arms from which on their pulls can be told apart in a picture."""
KEY = ("task", "model", "children")


class ExplorerPools:
    """All that the explorer needs of a frame: the pools of its tasks, models and N.

    A model stands once for each search, where a task and model have runs of several.
    """

    def __init__(self, frame: pd.DataFrame) -> None:
        frame = unrepeated(frame)
        self._pools: dict[tuple[str, str, int], RunsAsArms] = {}
        reason: object = "there are no runs"
        by = ["task", models_apart(frame), "children"] if len(frame) else []
        for names, part in frame.groupby(by, sort=False) if by else ():
            task, model, N = cast("tuple[str, str, int]", names)
            try:
                self._pools[str(task), str(model), int(N)] = RunsAsArms(part)
            except ValueError as error:
                reason = error
        if not self._pools:
            raise ValueError(f"there is nothing to allocate: {reason}")
        # Pools that show a choice among several arms come first, then those with the most pulls.
        self.keys = sorted(
            self._pools,
            key=lambda key: (-_choices(self._pools[key]), -int(self._pools[key].lengths.sum())),
        )

    def pools(self, now: Settings) -> RunsAsArms:
        """Runs of a task, model and N."""
        key = now["task"], now["model"], now["children"]
        if key not in self._pools:
            raise ValueError(
                f"there are not enough runs of {key[0]} by {key[1]} with N = {key[2]}; there are "
                + ", ".join(f"{t} by {m} with N = {n}" for t, m, n in self.keys)
            )
        return self._pools[key]

    def defaults(self, now: Settings) -> Settings:
        """Settings that suit these runs."""
        pools = self.pools(now)
        arms = _first_arms(pools)
        rounds = int(min(pools.lengths.min(), 128))
        return {"arms": arms, "rounds": rounds, "tau": pools.usual_tau(arms, rounds)}

    def begins(self, given: Settings) -> Settings:
        """What is asked for, with what goes with it."""
        keys = (dict(zip(KEY, key, strict=True)) for key in self.keys)
        asked = {name: given[name] for name in KEY if name in given}
        found = next((key for key in keys if key.items() >= asked.items()), None)
        if found is None:
            raise ValueError(f"no runs of task, model and N {asked!r}; there are {self.keys}")
        usual = {"policies": DEFAULT_POLICIES, "shown": DEFAULT_POLICIES[-1], "replicates": 1000}
        return self.adjust("", {**usual, **found, **self.defaults(found), **given})

    def adjust(self, moved: str, settings: Settings) -> Settings:
        """Keep settings within what the runs allow."""
        if tuple(settings[name] for name in KEY) not in self._pools:
            return settings
        chosen = [ALIASES.get(name, name) for name in settings["policies"]]
        chosen = [name for name in dict.fromkeys(chosen) if name not in BASELINES]
        if unknown := sorted(set(chosen) - set(POLICIES)):
            raise ValueError(f"expected policies out of {[*POLICIES]}, got {unknown}")
        chosen = chosen[-MOST_POLICIES:] if moved else chosen
        settings = {**settings, "policies": tuple(chosen)}
        if moved in KEY:
            settings |= self.defaults(settings)
        if moved:
            settings["arms"] = min(settings["arms"], self.pools(settings).runs)
        if settings["shown"] not in (*BASELINES, *chosen):
            settings["shown"] = chosen[-1] if chosen else "random"
        return settings

    def view(self, now: Settings, coarse: bool) -> AllocationView:
        """Replay the policies and the baselines."""
        pools, arms, names = self.pools(now), now["arms"], now["policies"]
        if len(names) > MOST_POLICIES:
            raise ValueError(
                f"choose at most {MOST_POLICIES} policies besides {' and '.join(BASELINES)}, "
                f"got {len(names)}"
            )
        if not 2 <= arms <= pools.runs:
            raise ValueError(f"expected from 2 to {pools.runs} arms (logged runs), got {arms!r}")
        replicates = min(COARSE, now["replicates"]) if coarse else now["replicates"]
        keys: dict[str, tuple[object, ...]] = {}
        for name in (*BASELINES, *names):
            given = tuple((p, now[p]) for p in parameters_of(name) if now[p] != DEFAULT)
            keys[name] = (name, given, arms, now["rounds"], now["reward"], replicates)
        return AllocationView(
            pools=pools,
            arms=arms,
            rounds=now["rounds"],
            replicates=replicates,
            coarse=coarse,
            tau=now["tau"],
            shown=now["shown"],
            played={name: pools.play(*key) for name, key in keys.items()},
            times={name: pools.time(now["tau"], *key) for name, key in keys.items()},
            effects=pools.effects(keys, now["rounds"]),
        )

    def controls(self, start: Settings) -> dict[str, Widget]:
        """The controls."""
        tasks, models, sizes = (list(dict.fromkeys(part)) for part in zip(*self.keys, strict=True))
        most = max(each.runs for each in self._pools.values())
        counts = _with([200, 1000, 5000], start["replicates"])
        longest = max(int(each.lengths.max()) for each in self._pools.values())
        named = [name for name, build in POLICIES.items() if not learns(build)]
        others = [name for name in named if name not in BASELINES]
        controls = {
            "task": choice("Task", tasks, tip="Task of the runs"),
            "model": choice("Model", models, tip="Model of the runs"),
            "children": choice("children N", sorted(sizes), tip="N of the runs"),
            "policies": toggles("Policies", others, most=MOST_POLICIES),
            "shown": choice("Pulls of", named, tip="Whose pulls"),
            "reward": choice("Reward", list(REWARDS), tip="What a policy receives for a pull"),
            "tau": entry(
                "τ", start["tau"], 0.005,
                tip=f"Fitness that {100 * SHARE:g} % of the replicates reach",
            ),
            "arms": slider("arms K", range(2, most + 1), tip="Runs in a pool"),
            "rounds": slider("rounds", _rounds(longest, start["rounds"]), tip="Pulls"),
            "replicates": choice("Replicates", counts, tip="Of each policy, at rest"),
        }  # fmt: skip
        for name, (meaning, usual) in EXPLORATION.items():
            values = _with(usual, *({start.get(name, DEFAULT)} - {DEFAULT}))
            options = [(DEFAULT, DEFAULT), *((f"{value:g}", value) for value in values)]
            controls[name] = slider(name, options, tip=meaning)
        return controls


def explore_allocation(frame: pd.DataFrame, *, theme: Theme = "neutral", **begins: Any) -> Explorer:
    """Compare policies on logged runs with sliders.

    Args:
        frame: Rows of `replay.load`.
        theme: Inks; `neutral` suits light and dark pages alike.
        **begins: Where its controls begin: task, model and children (otherwise those with four
            arms or more by default and the most to replay), policies (up to four names out of
            `replay.POLICIES` besides `single` and `random`), shown (whose pulls), arms (K, drawn
            for each replicate), rounds (pulls), reward (a name in `evo.rewards.REWARDS`), tau (the
            fitness to reach), replicates, and the exploration of policies: c,
            gamma, epsilon, noise_std, prior_std.

    Raises:
        ValueError: No such runs, or a setting out of range.

    Example:
        >>> type(replay.explorers.explore_allocation(frame)).__name__
        'ChartExplorer'
    """
    check_loaded("explore_allocation", frame, "replay.load")
    try:
        found = ExplorerPools(frame)
    except ValueError as error:
        return notice("allocation", error, theme)
    start = found.begins(begins)
    named = naming(frame)
    spec = ExplorerSpec(
        name="allocation",
        chart=allocation_chart,
        theme=theme,
        view=found.view,
        code=lambda now: call("explore_allocation", named(), now),
        adjust=found.adjust,
        folded=("replicates", *EXPLORATION),
        carried=("arms", "tau", "reward"),
        scrubs={
            "arms": lambda now: range(2, found.pools(now).runs + 1),
            "tau": lambda now: taus(found.pools(now).fitness, now["tau"]),
        },
        hidden=_hidden,
    )
    return ChartExplorer(spec, found.controls(start), help=HELP, begins=start)


def _first_arms(pools: RunsAsArms) -> int:
    """The K to begin with: the default, or as many more as it takes to tell pulls apart.

    These are at most half of the runs, and each of them can be pulled twice.
    """
    more = min(CHOICE, pools.runs // FEWEST, int(pools.lengths.min()) // 2)
    return max(default_arms(pools.runs), more)


def _choices(pools: RunsAsArms) -> bool:
    """Whether the default K gives a policy a choice: four arms, each of which is pulled twice."""
    arms = default_arms(pools.runs)
    return arms >= CHOICE and 2 * arms <= int(pools.lengths.min())


def _hidden(settings: Settings) -> set[str]:
    """Exploration parameters that no chosen policy has."""
    used = {name for policy in settings["policies"] for name in parameters_of(policy)}
    return set(EXPLORATION) - used


def _rounds(longest: int, usual: int) -> list[int]:
    """At most some hundred numbers of rounds, the usual one among them."""
    step = max(1, math.ceil(longest / 128))
    return _with(range(step, longest + 1, step), usual, longest)


def _with(values: Iterable[N], *more: N) -> list[N]:
    """Values to choose from, these among them."""
    return sorted({*values, *more})
