"""An allocation read as one run, against its own journal."""

from pathlib import Path

import numpy as np
import pytest

import evo
import replay
from evo.logs.journal import LogError
from evo.studies.allocation.journal import read_journal
from replay.logs import allocations

BANDITS = Path(__file__).resolve().parents[3] / "logs" / "samples" / "side-by-side-bandit"
FOLDERS = sorted(BANDITS.glob("*-s*"))


@pytest.fixture(scope="module", params=FOLDERS[:2], ids=lambda folder: folder.name)
def read(request):
    return read_journal(request.param / "allocation.jsonl"), replay.load_allocation(request.param)


def test_rows_are_the_pulls_of_the_journal(read):
    journal, frame = read
    told = [*journal.told.values()]
    pulls = frame.iloc[1:]
    assert pulls["arm"].tolist() == [each.arm for each in told]
    assert pulls["best_fitness"].tolist() == [each.best_fitness for each in told]
    assert frame["generation"].tolist() == list(range(len(told) + 1))
    for _, own in pulls.groupby("arm"):
        assert own["pull"].tolist() == list(range(1, len(own) + 1))
    assert set(frame["search"]) == {"ucb1"}
    assert frame["run"].nunique() == 1


def test_a_pull_costs_what_the_journal_charged(read):
    journal, frame = read
    pulls = frame.iloc[1:]
    for column, unit in (("n_calls", "calls"), ("tokens", "tokens"), ("flops", "flops")):
        charged = [each.costs[unit] for each in journal.told.values()]
        np.testing.assert_allclose(pulls[column], charged)
        assert frame[column].iloc[0] == 0


@pytest.fixture(scope="module")
def going_on(tmp_path_factory):
    """An allocation whose arms were begun before, each by two generations."""
    folder = tmp_path_factory.mktemp("going-on")
    how = {"children": 2, "progress": False}
    logs = evo.run_many("mmd", seeds=range(2), generations=2, log_dir=folder / "before", **how)
    evo.allocate_live(
        "mmd", "round_robin", arms=list(logs), rounds=6, log_dir=folder / "allocation", **how
    )
    return folder / "allocation"


def test_generations_that_were_logged_before_are_pulled_first_and_cost_nothing(going_on):
    read = read_journal(going_on / "allocation.jsonl"), replay.load_allocation(going_on)
    assert [arm.logged for arm in read[0].header.arms] == [2, 2]
    assert read[1]["pull"].tolist() == [0, 1, 1, 2, 2, 3, 3]
    assert (read[1]["n_calls"] > 0).tolist() == [False] * 5 + [True] * 2
    assert read[1]["search"].unique().tolist() == ["round_robin"]
    told = [*read[0].told.values()]
    assert read[1]["best_fitness"].tolist()[1:] == [each.best_fitness for each in told]
    test_a_pull_costs_what_the_journal_charged(read)


def test_it_stands_beside_runs(read):
    _, frame = read
    [row] = replay.fitness_matrix(frame)
    assert (np.diff(row) >= 0).all()
    assert row[-1] == frame["best_fitness"].iloc[-1]


def test_the_first_pull_of_an_arm_pays_for_its_generation_0(monkeypatch):
    before, read = replay.load_allocation(FOLDERS[0]), allocations.load
    monkeypatch.setattr(
        allocations,
        "load",
        lambda *log, **options: (frame := read(*log, **options)).assign(
            seconds=frame["seconds"] + frame["generation"].eq(0) * 10.0
        ),
    )
    more = replay.load_allocation(FOLDERS[0])["seconds"] - before["seconds"]
    assert more.round(6).tolist() == (10.0 * before["pull"].eq(1)).tolist()


def test_another_folder_is_refused(tmp_path):
    with pytest.raises((LogError, FileNotFoundError), match=r"allocation\.jsonl"):
        replay.load_allocation(tmp_path)
