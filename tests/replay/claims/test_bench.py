"""The bench of policies: it detects what can be won, and abstains where nothing can be."""

import itertools
import textwrap
import time
from dataclasses import FrozenInstanceError

import numpy as np
import pandas as pd
import pytest
from benchmarks import worlds as other

import replay
from evo.policies import POLICIES
from replay.claims.bench import policies_in
from replay.cli import main
from replay.simulation.worlds import WORLDS


@pytest.mark.parametrize("world", sorted(WORLDS))
def test_shipped_worlds_are_those_of_the_benchmarks(world) -> None:
    one = WORLDS[world](np.random.default_rng(3), 50, 24)
    two = other.paths(world, np.random.default_rng(3), 50, 24)
    np.testing.assert_allclose(one, two, rtol=1e-12)


def test_one_sees_detection_and_abstention() -> None:
    made = replay.bench(
        ["freeze_thaw", "round_robin"], logs=[], worlds=["ceilings", "null"], replicates=1000
    )
    found = made.table.set_index(["policy", "pool"])
    assert found.loc[("freeze_thaw", "ceilings"), "verdict"] == "greater"
    assert found.loc[("freeze_thaw", "null"), "verdict"] != "greater"
    assert found.loc[("round_robin", "null"), "verdict"] == "less"
    for row in found.itertuples():
        assert row.low < row.gain < row.high
        assert (row.verdict == "greater") == (row.low > 0)
    summary = made.summary.set_index("policy")
    assert summary.loc["round_robin", "loses"] == "null"
    assert "freeze_thaw" in repr(made)
    with pytest.raises(FrozenInstanceError):
        made.table = summary


def test_the_seconds_of_a_policy_are_those_that_its_effect_took(monkeypatch) -> None:
    times = itertools.count(100.0, 0.25)  # what `perf_counter` says, one call after another
    monkeypatch.setattr(time, "perf_counter", lambda: next(times))
    table = replay.bench(["round_robin"], logs=[], worlds=["null"], replicates=100).table
    assert table["seconds"].tolist() == [0.25]


def test_logs_join_by_their_task_model_and_number_of_children() -> None:
    rng, rows = np.random.default_rng(0), []
    for task, runs in (("many", 40), ("few", 12), ("too few", 5)):
        for seed in range(runs):
            path = 0.1 + np.append(0, rng.exponential(0.1, 9).cumsum())
            rows += [(f"{task}{seed}", task, "m", seed, 4, g, f) for g, f in enumerate(path)]
    columns = ["run", "task", "model", "seed", "children", "generation", "best_fitness"]
    frame = pd.DataFrame(rows, columns=columns)
    made = replay.bench(["ucb1", "freeze_thaw"], logs=frame, worlds=[], replicates=300)
    table = made.table.set_index(["policy", "pool"])
    assert {*made.table["pool"]} == {"many m N=4", "few m N=4"}
    assert np.isfinite(table.loc[("freeze_thaw", "many m N=4"), "gain"])
    assert np.isnan(table.loc[("freeze_thaw", "few m N=4"), "gain"])
    assert "learns from 20 runs" in table.loc[("freeze_thaw", "few m N=4"), "note"]
    with pytest.raises(ValueError, match="expected a world, or a pool of at least 10 runs"):
        replay.bench(["ucb1"], logs=frame[frame["task"] == "too few"], worlds=[])


def test_a_policy_of_ones_own_is_one_file_and_one_command(tmp_path, capsys) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        textwrap.dedent(
            """
            import numpy as np
            from evo.policies import IndexPolicy

            class Steady(IndexPolicy):
                def index(self):
                    return np.tile(-np.arange(self.arms, dtype=float), (self.replicates, 1))
            """
        )
    )
    assert [*policies_in(file)] == ["Steady"]
    assert main(["bench", str(file), "--no-logs", "--replicates", "200"]) == 0
    assert "Steady" in capsys.readouterr().out
    (tmp_path / "none.py").write_text("x = 1\n")
    with pytest.raises(ValueError, match="expected a class with `ask` and `tell`"):
        policies_in(tmp_path / "none.py")


def test_one_class_of_a_file_can_be_named_and_one_that_fails_ends_nothing(tmp_path, capsys) -> None:
    file = tmp_path / "two.py"
    file.write_text(
        textwrap.dedent(
            """
            import numpy as np
            from evo.policies import IndexPolicy

            class Level(IndexPolicy):
                def index(self):
                    return np.zeros((self.replicates, self.arms))

            class Broken(IndexPolicy):
                def index(self):
                    return {}["key"]
            """
        )
    )
    options = ["--no-logs", "--replicates", "50"]
    assert main(["bench", str(file), *options]) == 0
    both = capsys.readouterr()
    assert "note: Broken failed on 4 of 4 pools, where it has no verdict: policy Broken: `ask`" in (
        both.err
    )
    rows = {line.split()[0]: line for line in both.out.splitlines() if line.strip()}
    assert rows["Broken"].count("failed") == 4
    try:
        assert main(["bench", f"{file}:Level", *options]) == 0
        alone = capsys.readouterr().out
        assert rows["Level"].split()[:-1] == alone.splitlines()[1].split()[:-1]
        assert main(["bench", f"{file}:Broken", *options]) == 2
        assert "`ask` raised KeyError: 'key'; correct it" in capsys.readouterr().err
    finally:
        for name in ("Level", "Broken"):
            POLICIES.pop(name, None)
    file.write_text("1 / 0\n")
    with pytest.raises(ValueError, match=r"two\.py cannot be run: ZeroDivisionError"):
        policies_in(file)


def test_a_file_is_searched_for_classes_that_are_asked_and_told(tmp_path) -> None:
    ways = {"Asks": "ask", "Tells": "tell"}
    classes = [f"class {name}:\n    def {verb}(self): ..." for name, verb in ways.items()]
    (tmp_path / "mine.py").write_text("\n".join([*classes, "class Both(Asks, Tells): ..."]))
    assert [*policies_in(tmp_path / "mine.py")] == ["Both"]


@pytest.mark.parametrize("last", [{}, {0: np.nan}], ids=["all end alike", "one has no fitness"])
def test_runs_among_which_nothing_can_be_chosen_are_no_pool(last) -> None:
    rows = [
        (f"r{seed}", "flat", "m", seed, 4, g, last.get(seed, 0.5 if g == 9 else 0.1 + seed / 100))
        for seed in range(12)
        for g in range(10)
    ]
    columns = ["run", "task", "model", "seed", "children", "generation", "best_fitness"]
    with pytest.raises(ValueError, match="expected a world, or a pool of at least 10 runs"):
        replay.bench(["ucb1"], logs=pd.DataFrame(rows, columns=columns), worlds=[], replicates=20)
