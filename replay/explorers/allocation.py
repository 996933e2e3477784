"""The allocation explorer: what policies make of a pool of logged runs."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from evo.policies import ALIASES, POLICIES
from evo.rewards import REWARDS
from replay.explorers.allocation_data import (
    BASELINES,
    EXPLORATION,
    MOST_POLICIES,
    SHARE,
    AllocationView,
    Pools,
    parameters_of,
)
from replay.explorers.allocation_picture import AllocationPicture
from replay.explorers.budget import taus
from replay.explorers.shell import Explorer, notice
from replay.explorers.subject import DEFAULT, Settings, Subject, figure_of, sentence_figure
from replay.explorers.widgets import choice, entry, slider, source_of, toggles
from replay.style import Theme

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

HELP = (
    "Draw K of the logged runs as arms, let a policy pull them for so many rounds, and compare "
    "with one run alone (single) and with pulls at random."
)
COARSE = 200
"""Replicates while a control moves."""
DEFAULT_POLICIES = ("ucb1", "thompson")


class Allocations:
    """All that the explorer needs of a frame: the pools of its tasks, models and N.

    Args:
        frame: Rows of `replay.load`.

    Raises:
        ValueError: No task, model and N has three runs with a complete generation.
    """

    def __init__(self, frame: pd.DataFrame) -> None:
        self._pools: dict[tuple[str, str, int], Pools] = {}
        reason = "there are no runs"
        if len(frame):
            groups = frame.groupby(["task", "model", "children"], sort=False)
            for names, part in groups:
                task, model, N = cast("tuple[str, str, int]", names)
                try:
                    self._pools[str(task), str(model), int(N)] = Pools(part)
                except ValueError as error:
                    reason = str(error)
        if not self._pools:
            raise ValueError(f"there is nothing to allocate: {reason}")
        self.keys = list(self._pools)

    def pools(self, task: str, model: str, children: int) -> Pools:
        """Runs of a task, model and N."""
        if (task, model, children) not in self._pools:
            raise ValueError(
                f"there are not enough runs of {task} by {model} with N = {children}; there are "
                + ", ".join(f"{t} by {m} with N = {n}" for t, m, n in self.keys)
            )
        return self._pools[task, model, children]

    @property
    def usual(self) -> tuple[str, str, int]:
        """The task, model and N with the most pulls to give."""
        return max(self.keys, key=lambda key: int(self._pools[key].lengths.sum()))

    def defaults(self, key: tuple[str, str, int]) -> Settings:
        """Settings that suit these runs."""
        pools = self.pools(*key)
        arms = max(2, min(10, pools.runs // 2))
        rounds = int(min(pools.lengths.min(), 128))
        return {"arms": arms, "rounds": rounds, "tau": pools.usual_tau(arms, rounds)}

    def view(
        self,
        *,
        task: str,
        model: str,
        children: int,
        policies: Sequence[str],
        arms: int,
        rounds: int,
        reward: str,
        tau: float,
        replicates: int,
        shown: str | None,
        exploration: dict[str, float | None],
    ) -> AllocationView:
        """Replay the policies and the baselines."""
        pools = self.pools(task, model, children)
        names = [ALIASES.get(name, name) for name in policies]
        names = [name for name in dict.fromkeys(names) if name not in BASELINES]
        if unknown := sorted(set(names) - set(POLICIES)):
            raise ValueError(f"expected policies out of {[*POLICIES]}, got {unknown}")
        if len(names) > MOST_POLICIES:
            raise ValueError(
                f"choose at most {MOST_POLICIES} policies besides {' and '.join(BASELINES)}, "
                f"got {len(names)}"
            )
        if not 2 <= arms <= pools.runs:
            raise ValueError(f"expected from 2 to {pools.runs} arms (logged runs), got {arms!r}")
        keys: dict[str, tuple[Any, ...]] = {}
        for name in (*BASELINES, *names):
            given = tuple(
                (each, value)
                for each in parameters_of(name)
                if (value := exploration.get(each)) is not None
            )
            keys[name] = (name, given, arms, rounds, reward, replicates)
        return AllocationView(
            pools=pools,
            arms=arms,
            rounds=rounds,
            replicates=replicates,
            reward=reward,
            tau=tau,
            shown=shown if shown in keys else list(keys)[-1],
            played={name: pools.play(*key) for name, key in keys.items()},
            times={name: pools.time(tau, *key) for name, key in keys.items()},
            effects=pools.effects(keys),
        )


def allocation_figure(
    frame: pd.DataFrame,
    *,
    task: str | None = None,
    model: str | None = None,
    children: int | None = None,
    policies: Sequence[str] = DEFAULT_POLICIES,
    arms: int | None = None,
    rounds: int | None = None,
    reward: str = "best_fitness",
    tau: float | None = None,
    replicates: int = 1000,
    shown: str | None = None,
    c: float | None = None,
    gamma: float | None = None,
    epsilon: float | None = None,
    noise_std: float | None = None,
    prior_std: float | None = None,
    theme: Theme = "light",
) -> Figure:
    """Draw what `explore_allocation` shows of one choice.

    Args:
        frame: Rows of `replay.load`.
        task: Which task; None, here and in the next two: the one with the most to replay.
        model: Which model.
        children: Runs of which N are the arms.
        policies: Up to four names out of `replay.POLICIES`; `single` and `random` are always there.
        arms: K, runs drawn as arms of each replicate; None: half of them, 10 at most.
        rounds: Pulls; None: the generations of the shortest run, 128 at most.
        reward: Name in `evo.rewards.REWARDS`.
        tau: The fitness to reach; None: what 90 % of the replicates of `random` reach.
        replicates: Number of replicates.
        shown: Policy whose pulls are shown; None: the last.
        c: Exploration of UCB1 and its discounted kin; None, here and below: the policy's default.
        gamma: Exploration of the EXP3 policies.
        epsilon: Share of random pulls of `epsilon_greedy`.
        noise_std: Noise that `thompson` assumes.
        prior_std: Spread of the prior of `thompson` and `thompson_nig`.
        theme: See `replay.style`.

    Raises:
        ValueError: No such runs, or a setting out of range.
    """
    try:
        found = Allocations(frame)
    except ValueError as error:
        return sentence_figure(error, theme)
    wanted = (task, model, children)
    matching = [
        key
        for key in sorted(found.keys, key=lambda key: key != found.usual)
        if all(want in (None, each) for want, each in zip(wanted, key, strict=True))
    ]
    if not matching:
        raise ValueError(f"no runs of task, model and N {wanted!r}; there are {found.keys}")
    usual = found.defaults(matching[0])
    view = found.view(
        task=matching[0][0],
        model=matching[0][1],
        children=matching[0][2],
        policies=policies,
        arms=usual["arms"] if arms is None else arms,
        rounds=usual["rounds"] if rounds is None else rounds,
        reward=reward,
        tau=usual["tau"] if tau is None else tau,
        replicates=replicates,
        shown=shown,
        exploration={
            "c": c, "gamma": gamma, "epsilon": epsilon, "noise_std": noise_std,
            "prior_std": prior_std,
        },
    )  # fmt: skip
    return figure_of(AllocationPicture(theme), view)


def explore_allocation(frame: pd.DataFrame, *, theme: Theme = "neutral") -> Explorer:
    """Compare policies on logged runs with sliders.

    Args:
        frame: Rows of `replay.load`.
        theme: Inks; `neutral` suits light and dark pages alike.
    """
    try:
        found = Allocations(frame)
    except ValueError as error:
        return notice("allocation", "allocation_figure", str(error), theme)

    def view(settings: Settings, coarse: bool) -> AllocationView:
        given = {name: value for name, value in settings.items() if name not in EXPLORATION}
        if coarse:
            given["replicates"] = min(COARSE, given["replicates"])
        exploration = {name: settings[name] for name in EXPLORATION if settings[name] != DEFAULT}
        return found.view(**given, exploration=exploration)

    subject = Subject(
        name="allocation",
        function="allocation_figure",
        picture=AllocationPicture,
        theme=theme,
        data=(frame, source_of(frame)),
        folded=("replicates", *EXPLORATION),
        view=view,
        adjust=functools.partial(_adjust, found),
        scrubs={
            "tau": lambda now: taus(
                found.pools(now["task"], now["model"], now["children"]).fitness, now["tau"]
            )
        },
        hidden=_hidden,
    )
    return Explorer(subject, _controls(found), help=HELP)


def _adjust(found: Allocations, moved: str, settings: Settings) -> Settings:
    """Keep settings within what the runs allow."""
    key = settings["task"], settings["model"], settings["children"]
    if key not in found.keys:
        return settings
    runs = found.pools(*key).runs
    chosen = settings["policies"][-MOST_POLICIES:]
    settings = {**settings, "arms": min(settings["arms"], runs), "policies": chosen}
    if moved in ("task", "model", "children"):
        settings |= found.defaults(key)
    if settings["shown"] not in (*BASELINES, *settings["policies"]):
        settings["shown"] = settings["policies"][-1] if settings["policies"] else "random"
    return settings


def _hidden(settings: Settings) -> set[str]:
    """Exploration parameters that no chosen policy has."""
    used = {name for policy in settings["policies"] for name in parameters_of(policy)}
    return set(EXPLORATION) - used


def _controls(found: Allocations) -> dict[str, Any]:
    task, model, children = found.usual
    usual = found.defaults(found.usual)
    tasks, models, sizes = (list(dict.fromkeys(part)) for part in zip(*found.keys, strict=True))
    most_runs = max(found.pools(*key).runs for key in found.keys)
    longest = max(int(found.pools(*key).lengths.max()) for key in found.keys)
    others = [name for name in POLICIES if name not in BASELINES]
    controls = {
        "task": choice("Task", tasks, task, tip="Task of the runs"),
        "model": choice("Model", models, model, tip="Model of the runs"),
        "children": choice("children N", sorted(sizes), children, tip="N of the runs"),
        "policies": toggles("Policies", others, DEFAULT_POLICIES, most=MOST_POLICIES),
        "shown": choice("Pulls of", list(POLICIES), DEFAULT_POLICIES[-1], tip="Whose pulls"),
        "reward": choice("Reward", list(REWARDS), "best_fitness", tip="What a policy is told"),
        "tau": entry(
            "τ", usual["tau"], (-1e6, 1e6), 0.005,
            tip=f"Fitness that {100 * SHARE:g} % of the replicates reach",
        ),
        "arms": slider("arms K", range(2, most_runs + 1), usual["arms"], tip="Runs in a pool"),
        "rounds": slider("rounds", _rounds(longest, usual["rounds"]), usual["rounds"], tip="Pulls"),
        "replicates": choice("Replicates", [200, 1000, 5000], 1000, tip="Of each policy, at rest"),
    }  # fmt: skip
    for name, (meaning, values) in EXPLORATION.items():
        options = [(DEFAULT, DEFAULT), *((f"{value:g}", value) for value in values)]
        controls[name] = slider(name, options, DEFAULT, tip=meaning)
    return controls


def _rounds(longest: int, usual: int) -> list[int]:
    """At most some hundred numbers of rounds, the usual one among them."""
    step = max(1, math.ceil(longest / 128))
    return sorted({*range(step, longest + 1, step), usual, longest})
