"""Every column of every table is a setting, a measure or an origin, and none is two of them."""

from pathlib import Path

import pandas as pd
import pytest
from samples import write_sample

import evo
import replay
from evo.logs.cost import UNITS
from replay.logs.columns import MEASURES, ORIGINS, SETTINGS, groups_in_order, settings_that_vary

LOGS = Path(__file__).resolve().parents[3] / "logs"
ALLOCATION = sorted((LOGS / "samples" / "side-by-side-bandit").glob("*-s*"))[0]


@pytest.fixture(scope="module")
def tables(tmp_path_factory) -> dict[str, pd.DataFrame]:
    place = tmp_path_factory.mktemp("columns")
    write_sample(place / "run.jsonl", children=2, seed=0)
    sweep = evo.sweep(
        {"children": [1, 2]}, task="mmd", seeds=[1], generations=1, log_dir=place / "sweep",
        progress=False,
    )  # fmt: skip
    made = replay.load_tables(place / "run.jsonl")
    return {
        **{name: getattr(made, name) for name in ("runs", "generations", "children")},
        "load": replay.load(place / "run.jsonl"),
        "attempts": replay.attempts(place / "run.jsonl"),
        "instances": replay.instances(place / "run.jsonl"),
        "allocation": replay.load_allocation(ALLOCATION),
        "sweep": replay.load_sweep(sweep.folder),
    }


def test_every_column_of_every_table_has_one_role(tables) -> None:
    for table, frame in tables.items():
        roles = {name: [name in of for of in (SETTINGS, MEASURES, ORIGINS)] for name in frame}
        assert {name for name, of in roles.items() if sum(of) != 1} == set(), table


def test_a_column_of_the_users_own_is_a_setting_and_a_new_unit_is_none(monkeypatch) -> None:
    frame = pd.DataFrame({"run": ["a", "b"], "seed": [0, 1], "prompt_style": ["x", "y"]})
    frame["joules"] = [1.0, 2.0]
    assert settings_that_vary(frame) == ["prompt_style", "joules"]
    monkeypatch.setitem(UNITS, "joules", UNITS["dollars"])
    assert settings_that_vary(frame) == ["prompt_style"]
    assert settings_that_vary(frame, beside=("prompt_style",)) == []


def test_runs_that_repeat_themselves_unequally_are_not_taken_for_configurations(tmp_path) -> None:
    for children in (2, 3):
        for seed in range(3):
            write_sample(tmp_path / f"{children}-{seed}.jsonl", children=children, seed=seed)
    frame = replay.load(tmp_path)
    frame["n_repeats"] = range(len(frame))
    assert replay.select(frame).labels == ("children=2", "children=3")


@pytest.mark.parametrize("values", [[2.0, 1.0], [None, 1.0], [None, None], ["b", None]])
def test_rows_without_a_value_are_a_group_of_their_own(values) -> None:
    frame = pd.DataFrame({"made_with": pd.Series(values * 2, dtype=object), "place": range(4)})
    parts = groups_in_order(frame, "made_with")
    assert sorted(place for _, rows in parts for place in rows["place"]) == [0, 1, 2, 3]
    assert all(rows["made_with"].nunique(dropna=False) == 1 for _, rows in parts)
    assert len(parts) == len(set(values))
    assert all(len(key) == 1 and list(rows) == list(frame) for key, rows in parts)
