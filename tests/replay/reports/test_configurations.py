"""What the configurations of a report are called."""

import pandas as pd
from samples import sample_lines
from test_tables import changed, write_lines

from evo.logs.records import Header, Sampling
from replay.logs.tables import load_tables
from replay.reports.configurations import configuration_labels
from replay.reports.report import (
    MOST_CONFIGURATIONS,
    groups,
    sections,
)


def test_of_many_configurations_the_best_are_shown_and_said_to_be(tmp_path):
    for k in range(MOST_CONFIGURATIONS + 2):
        sampling = Sampling(temperature=0.1 * k, top_p=None, max_tokens=None)
        write_lines(
            tmp_path / f"{k}.jsonl", changed(sample_lines(seed=k), Header, sampling=sampling)
        )
    found = groups(load_tables(tmp_path))
    assert len(found) == MOST_CONFIGURATIONS
    assert all(group.setting.startswith("temperature ") for group in found)
    finals = [group.tables.generations["best_fitness"].max() for group in found]
    assert finals == sorted(finals, reverse=True)
    assert f"of {MOST_CONFIGURATIONS + 2}" in " ".join(sections(found[0])[0].notes)


def test_searches_are_told_apart_by_their_names_alone():
    greedy = '{"limits.seconds": 60}'
    population = '{"limits.seconds": 60, "search.name": "population", "search.fields.size": 20}'
    texts = pd.Series([greedy, population, greedy])
    assert configuration_labels(texts).tolist() == [
        "search greedy",
        "search population",
        "search greedy",
    ]
    smaller = population.replace("20", "8")
    assert configuration_labels(pd.Series([population, smaller])).tolist() == ["size 20", "size 8"]


def test_hashes_are_cut_and_names_are_not():
    hashed, named = "0123456789abcdef" * 4, "a-model-whose-name-has-many-letters"
    texts = pd.Series([f'{{"program": "{hashed}"}}', f'{{"program": "{named}"}}'])
    assert configuration_labels(texts).tolist() == ["program 01234567", f"program {named}"]


def test_runs_of_different_tools_are_different_configurations_by_name(tmp_path):
    for k, tool in enumerate(("evo", "OpenEvolve", "ShinkaEvolve", "ShinkaEvolve")):
        sampling = Sampling(temperature=0.5 if k == 1 else None, top_p=None, max_tokens=None)
        lines = changed(sample_lines(seed=k), Header, source=tool, sampling=sampling)
        write_lines(tmp_path / f"{k}.jsonl", lines)
    found = {group.setting: len(group.tables.runs) for group in groups(load_tables(tmp_path))}
    assert found == {"search greedy": 1, "search OpenEvolve": 1, "search ShinkaEvolve": 2}
