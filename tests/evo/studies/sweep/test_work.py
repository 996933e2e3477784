"""The runs of a sweep: which logs they share, how far these go, and when all are made."""

import time
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from sweep_spaces import SHORT

import evo
import replay
from evo.studies.sweep import work
from evo.studies.sweep.events import EventLog
from evo.studies.sweep.summary import standings

COMMON: dict[str, Any] = {"task": "mmd", "seeds": [1, 2], "children": 2, "progress": False}


ONE = {**COMMON, "seeds": [1]}


def fitnesses(folder: Path) -> dict[tuple[str, int], float | None]:
    return {run: e.data["fitness"] for run, e in EventLog(folder).state.completed.items()}


def test_runs_that_end_at_the_same_moment_are_counted_one_after_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two of them counted before either was written, so that a count came twice and one never."""
    counts = work.Sweeping._counts

    def count_slowly(self: Any, event: str, run: Any) -> dict[str, int]:
        counted = counts(self, event, run)
        time.sleep(0.2 if event == "run_completed" else 0)
        return counted

    monkeypatch.setattr(work.Sweeping, "_counts", count_slowly)
    evo.sweep(
        {"temperature": [0.1, 0.2, 0.3, 0.4, 0.5]}, generations=1, log_dir=tmp_path / "s", **ONE
    )
    ended = [e for e in EventLog(tmp_path / "s").events if e.event == "run_completed"]
    assert [each.completed for each in ended] == [1, 2, 3, 4, 5]


def test_equal_configurations_run_once(tmp_path: Path) -> None:
    sweep = evo.sweep(
        {"temperature": [0.2, 0.9]}, strategy="random", trials=12, generations=1,
        log_dir=tmp_path / "s", **ONE,
    )  # fmt: skip
    assert len(EventLog(sweep.folder).state.trials) == 12
    assert len(list(sweep.folder.glob("runs/*.jsonl"))) == 2
    assert (sweep.summary.total, sweep.summary.completed) == (2, 2)


def test_an_impossible_configuration_fails_and_the_others_go_on(tmp_path: Path) -> None:
    model = evo.Model(name="offline", context=1000, max_tokens=100)
    sweep = evo.sweep(
        {"max_tokens": {"values": [100, 2000], "when": {"children": [1, 2]}}, "children": [1, 2]},
        model=model, generations=1, log_dir=tmp_path / "s",
        **{k: v for k, v in COMMON.items() if k != "children"},
    )  # fmt: skip
    summary = sweep.summary
    assert (summary.completed, summary.failed, summary.ended) == (4, 4, "completed")
    failed = EventLog(sweep.folder).state.failed
    assert all("context window" in why for why in failed.values())
    assert [len(found) for *_, found in standings(sweep.folder)] == [2, 2, 0, 0]


@pytest.mark.thorough
def test_configurations_that_differ_in_what_ends_them_share_logs_that_go_as_far_as_any(
    alone: dict[tuple[int, int], evo.Log], tmp_path: Path
) -> None:
    space = {"patience": [1, 3, None], "target": [None, 0.3]}
    done = evo.sweep(space, log_dir=tmp_path / "s", **SHORT)
    frame = replay.load_sweep(done)
    assert set(frame["status"]) == {"completed"}
    assert frame["log"].nunique() == 2  # one of each seed
    places = {(1, None): 0, (3, None): 1, (None, 0.3): 2, (None, None): 4}
    seen = set()
    for _, row in frame.iterrows():
        pair = tuple(None if pd.isna(each) else each for each in (row["patience"], row["target"]))
        if pair not in places:
            continue
        seen.add(pair)
        run = alone[places[pair], row["seed"]]
        assert (row["done"], row["fitness"]) == (len(run.generations), run.trajectory[-1])
    assert seen == {*places}
    assert fitnesses(tmp_path / "s") == {
        (row["configuration"], row["seed"]): row["fitness"] for _, row in frame.iterrows()
    }


def test_a_shared_log_goes_no_farther_than_its_goals_need(tmp_path: Path) -> None:
    space = {
        "patience": [1, None],
        "generations": {"values": [2], "when": {"patience": None}},
    }
    done = evo.sweep(space, log_dir=tmp_path / "s", **{**SHORT, "generations": 40})
    frame = replay.load_sweep(done)
    for path, rows in frame.groupby("log"):
        assert len(evo.read_log(path).generations) == max(rows["done"])
    assert set(frame["status"]) == {"completed"}
