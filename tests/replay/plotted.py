"""Tables that figures are made of, by hand, and what stands in a chart."""

import itertools

import numpy as np
import pandas as pd
from looks import texts
from synthetic_runs import as_frame

import replay
from replay.plots.policies import EFFECTS
from replay.statistics.intervals import curve_band

POLICIES = ["single", "random", "ucb1 (c = 0.1)", "thompson", "successive_halving"]


def made_runs(n=10, generations=16, *, model="offline", children=16, task="circle_packing", seed=0):
    rng = np.random.default_rng(seed)
    steps = rng.uniform(0, 0.05, (n, generations + 1)) * (rng.random((n, generations + 1)) < 0.3)
    steps[:, 0] = 0.36
    frame = as_frame(
        steps.cumsum(axis=1), children=children, seeds=range(n), task=task, model=model
    )
    later = frame["generation"] > 0
    flops = np.where(later, rng.uniform(1e12, 2e12, len(frame)), np.nan)
    tokens = later * rng.uniform(200, 900, len(frame)).round()
    return frame.assign(flops=flops, prompt_tokens=later * 700.0, completion_tokens=tokens)


def made_curves():
    parts = []
    for k, policy in enumerate(POLICIES):
        steps = np.random.default_rng(k).uniform(0, 0.02, (20, 50))
        band = curve_band(0.3 + steps.cumsum(axis=1), statistic="mean", first=1)
        parts.append(band.drop(columns="coverage").assign(policy=policy, round=band.index))
    return pd.concat(parts, ignore_index=True)


def made_pulls():
    table = pd.DataFrame(itertools.product(POLICIES, range(1, 11)), columns=["policy", "rank"])
    value = 0.12 - 0.004 * table["rank"]
    return table.assign(value=value, low=value * 0.8, high=value * 1.2, n=25)


def made_times():
    table = pd.DataFrame(itertools.product(POLICIES, (0.8, 0.9)), columns=["policy", "tau"])
    table = table.assign(time=20.0, low=15.0, high=40.0, share=0.9, share_reached=0.62, n=25)
    table.loc[:3, "high"] = np.inf
    table.loc[1, "time"] = np.inf
    return table


def made_effects():
    table = pd.DataFrame(itertools.product(POLICIES, EFFECTS), columns=["policy", "effect"])
    return table.assign(value=0.1, low=0.08, high=0.13, n=25)


def made_ledger():
    verdicts = ["greater", "less", "undetermined", "does not apply", "within margin"]
    claims = ["one", "one", "two", "two", "three"]
    table = pd.DataFrame({"claim": claims, "verdict": verdicts, "n": 10})
    return table.assign(source="logs", task=["a", "b", "a", "b", "a"])


CONSTRUCTIONS = {
    "circles": (np.random.default_rng(0).random((26, 2)), np.linspace(0, 0.1, 26), 1.3),
    "points": np.random.default_rng(1).standard_normal((16, 2)).tolist(),
    "triangle": [[0.1 + 0.07 * k, 0.02 * k**1.5 / 3] for k in range(11)],
}


WORDS = {"title": "A title", "about": "About ten runs.", "x": "budget (calls)"}


TABLE = pd.DataFrame(
    {
        "value": [0.1, 0.2, 0.3, np.nan],
        "low": [0.0, 0.1, np.nan, np.nan],
        "high": [0.2, 0.3, np.nan, np.nan],
        "task": ["a", "b", "a", "b"],
    },
    index=["deep", "deep", "broad", "broad"],
)


def raced():
    rewards = np.clip(np.random.default_rng(1).normal([[0.2], [0.8], [0.7]], 0.1, (3, 40)), 0, 1)
    return replay.select(rewards)


def marks(chart, kind, **look):
    """The marks of a kind in the only panel of a chart, that have these attributes."""
    [panel] = chart.panels
    return [
        mark
        for mark in panel.marks
        if mark.kind == kind and all(getattr(mark, name) == value for name, value in look.items())
    ]


def words(ax):
    return " | ".join(text.get_text() for text in texts(ax)).replace("\n", " ")
