import json

import numpy as np
import pytest
from synthetic_runs import chain_runs

from replay.explorers.chosen_runs import _view, runs_chart, runs_table
from replay.plots.chart import pack


@pytest.fixture(scope="module")
def frame():
    return chain_runs(budget=16, sizes=(2, 4))[0]


@pytest.mark.parametrize("mixed", [False, True])
def test_every_number_of_the_chart_is_one_of_the_rows(frame, mixed):
    sizes = frame.drop_duplicates("run").set_index("run")["children"]
    names = sizes.index[sizes == 2].tolist()[1:5]
    names += sizes.index[sizes == 4].tolist()[:1] if mixed else []
    [panel] = json.loads(pack(runs_chart(_view(frame, names))))["panels"]
    assert [each["label"] for each in panel["marks"]] == names
    for line in panel["marks"]:
        rows = frame[frame["run"] == line["label"]]
        calls = rows["generation"] * rows["children"]  # what runs of unlike N are compared by
        assert line["x"] == (calls if mixed else rows["generation"]).tolist()
        assert line["y"] == [None if np.isnan(each) else each for each in rows["best_fitness"]]
    assert panel["x"]["label"] == ("LLM calls so far" if mixed else "generation")
    assert max(line["x"][-1] for line in panel["marks"]) == panel["x"]["domain"][1]
    looks = [(each["color"], each["dash"]) for each in panel["marks"]]
    assert len(set(looks)) == len(looks)


def test_runs_without_a_fitness_are_a_sentence(frame):
    names = frame["run"].unique()[:1].tolist()
    view = _view(frame.assign(best_fitness=np.nan), names)
    assert runs_chart(view).message == "No run has a program that is ok."


def test_the_best_fitness_stands_beside_the_name_where_narrow_pages_show_it():
    frame, _ = chain_runs(budget=4, sizes=(2,))
    for each in (frame, frame.assign(search="greedy", n_ok=1)):
        assert runs_table(each).columns[:2].tolist() == ["run", "best_fitness"]


def test_what_no_call_stated_is_unknown_and_not_zero(frame):
    """Generation 0 costs nothing, whatever the calls cost."""
    unknown, begun, known = frame["run"].unique()[:3]
    own = frame[frame["run"].isin([unknown, begun, known])].copy()
    own["tokens"] = own["generation"].map(lambda generation: 100.0 * (generation > 0))
    own.loc[(own["run"] == unknown) & (own["generation"] > 0), "tokens"] = np.nan
    own = own[(own["run"] != begun) | (own["generation"] == 0)]
    table = runs_table(own.assign(dollars=np.nan)).set_index("run")
    assert table.loc[[unknown, begun], "tokens"].tolist() == ["", "0"]
    assert float(table.loc[known, "tokens"]) == 100 * table.loc[known, "T"]
