import json
import re

import numpy as np
import pytest
from evo_runs import write_task
from samples import write_sample
from synthetic_runs import as_frame
from test_report import pool

import evo
import replay
from replay.cli.entry import main
from replay.logs.tables import load_tables
from replay.reports.comparison import comparison_with_sections
from replay.reports.decision import SEEDS, TITLE, decision_section
from replay.reports.forms import FORMATS
from replay.simulation.contest import compete


@pytest.fixture
def logs(tmp_path, monkeypatch):
    for children, runs in ((2, 6), (4, 6)):
        (tmp_path / "logs").mkdir(exist_ok=True)
        pool(tmp_path / "logs", children=children, runs=runs, generations=12 // children)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "logs"


def test_a_report_says_the_decision_before_any_table(logs, capsys):
    assert main(["report", "logs"]) == 0
    said = capsys.readouterr().out
    assert said.startswith(TITLE)
    tables = load_tables(logs)
    found, _, _ = comparison_with_sections(tables)
    assert replay.advise(found) in " ".join(said.split())
    assert said.index("Which configuration is best?") < said.index("\nFitness\n")
    best = tables.generations["best_fitness"].max()
    [place] = re.findall(rf"Fitness {best:.5g} in (\S+),", " ".join(said.split()))
    assert place in said
    assert replay.load(place)["best_fitness"].max() == best
    assert main(["report", "logs", "--policies", "ucb1", "--arms", "2", "--replicates", "200"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    asked = [
        text for text in said.split("?") if "Does a policy over 2 runs beat one run on" in text
    ]
    assert len(asked) == 2
    assert not any("replicates" in text.rpartition("Does a policy")[2] for text in asked)


@pytest.mark.parametrize("form", sorted(FORMATS))
def test_every_form_stays_valid_and_says_it_first_where_it_holds_words(logs, form):
    tables = load_tables(logs)
    found, tail, _ = comparison_with_sections(tables)
    first = decision_section(tables, found)
    text = FORMATS[form]([first, *tail])
    if form == "csv":  # cells alone
        assert text == FORMATS[form](tail)
        return
    if form == "json":
        made = json.loads(text)
        assert made["decisions"][0]["question"] == "Which configuration is best?"
        assert made["cells"] == json.loads(FORMATS[form](tail))["cells"]
        return
    plain = " ".join(re.sub(r"[\\{}]|<[^>]*>", "", text).split())
    assert plain.index("Which configuration is best?") < plain.index("interquartile mean")


def test_the_runs_that_are_recommended_can_be_made_from_where_the_report_is(tmp_path, monkeypatch):
    judge = "def score(value):\n    return float(value)\n"
    task = write_task(tmp_path / "ours", "def f():\n    return 1.5\n", judge, "entry = ['f']\n")
    settings = {"generations": 1, "children": 2, "progress": False}

    def said(made, logs, **more):
        evo.run_many(made, seeds=[1, 2], log_dir=logs, **settings, **more)
        [then] = [
            text for asked, text in decision_section(load_tables(logs), None).words
            if asked.startswith("What would")
        ]  # fmt: skip
        return then

    monkeypatch.chdir(tmp_path)
    command = f"-T 1 -N 2 --seeds 0:{SEEDS}`"
    assert f"`evo run min_max_distance {command}" in said("mmd", tmp_path / "a")
    assert f"`evo run ours {command}" in said(task, tmp_path / "b")
    (tmp_path / "b" / "ours").mkdir()  # a folder of that name is not the task
    monkeypatch.chdir(tmp_path / "b")
    elsewhere = said(task, tmp_path / "b")
    assert f"`evo run FOLDER {command} with the task's folder" in elsewhere
    assert "`evo.run_many(task, generations=1, children=2, seeds=range(6))`" in elsewhere
    # The model is named, without which the offline one would be asked.
    of_model = said("mmd", tmp_path / "c", model="offline-2")
    assert f"`evo run min_max_distance {command[:-1]} --model offline-2`" in of_model
    of_several = said("mmd", tmp_path / "d", models=["offline", "offline-2"])
    assert f"{command[:-1]} --models offline offline-2`" in of_several
    of_islands = said("mmd", tmp_path / "f", search="islands")
    assert f"{command[:-1]} --search islands` and the same with `--search greedy`" in of_islands
    assert "and the same with `--search population`" in of_model
    mine = evo.Model("mine", call=lambda messages: "```python\nx = 1\n```")
    of_function = said("mmd", tmp_path / "e", model=mine)
    assert "evo run " not in of_function
    assert "children=2, seeds=range(6), model=MODEL)`" in of_function


def test_what_was_spent_covers_all_runs_where_a_part_is_known(tmp_path):
    """A sum over the runs that state everything would be less than what the tables state."""
    (tmp_path / "calls.csv").write_text(
        "run,order,fitness,prompt_tokens,completion_tokens,dollars\n"
        "a,1,0.1,1000,100,0.5\na,2,0.2,1000,100,0.5\n"
        "b,1,0.1,1000,100,0.5\nb,2,,,,\n"
    )
    with pytest.warns(UserWarning, match="read 2 runs"):
        tables = replay.load_tables(tmp_path / "calls.csv")
    words = dict(decision_section(tables, None).words)["What do the runs of unknown tell?"]
    assert "after 4 calls, at least 3.3k tokens, at least 1 dollars." in words


def test_of_several_runs_the_one_that_is_long_enough_is_named_as_such(tmp_path):
    for seed, depth in ((1, 8), (2, 2)):
        write_sample(tmp_path / f"{seed}.jsonl", generations=depth, seed=seed)
    text = " ".join(text for _, text in decision_section(load_tables(tmp_path), None).words)
    assert "The one run beyond T = 3 " in text
    assert "It still" not in text
    assert "It no longer" not in text


def test_the_best_program_of_a_task_is_that_of_all_its_configurations(tmp_path):
    for search in ("greedy", "population"):
        evo.run_many(
            "mmd", seeds=[1, 2], generations=3, children=2, search=search, progress=False,
            log_dir=tmp_path / search,
        )  # fmt: skip
    tables = load_tables(tmp_path)
    [(asked, said)] = [
        each for each in decision_section(tables, None).words if each[0].startswith("What is the")
    ]
    rows = tables.generations
    best = rows.loc[rows["best_fitness"].idxmax()]
    assert asked == "What is the best program for min_max_distance?"
    by = f"by offline, search {best['search']} (not an LLM) in "
    assert said.startswith(f"Fitness {best['best_fitness']:.5g} {by}")
    assert "the highest of 4 runs of 2 configurations, " in said


def test_the_best_program_is_the_highest_of_runs_that_are_counted_once(tmp_path):
    for name, generations in (("a", 3), ("copy", 3), ("shorter", 2)):
        write_sample(tmp_path / f"{name}.jsonl", generations=generations, seed=1)
    write_sample(tmp_path / "b.jsonl", generations=3, seed=2)
    words = dict(decision_section(load_tables(tmp_path), None).words)
    [said] = [text for asked, text in words.items() if asked.startswith("What is the best")]
    assert "the highest of 2 runs," in said


def test_a_median_over_runs_of_one_initial_program_is_called_one(tmp_path):
    """As of a prompt under which a model answers now this and now that."""
    for seed in range(3):
        write_sample(tmp_path / f"{seed}.jsonl", generations=3, seed=seed)
    tables = load_tables(tmp_path)
    rows, first = tables.generations, tables.generations["generation"] == 0
    for varied in (False, True):
        own = 0.1 + 0.01 * varied * rows["seed"]
        made = rows.assign(best_fitness=rows["best_fitness"].mask(first, own))
        words = decision_section(tables._replace(generations=made), None).words
        told, best = words[0][1], words[-1][1]
        middle = "a median of 0.11" if varied else "0.1"
        assert f", from {middle} of the initial program," in told
        assert f", where the initial program has {middle}." in best


def test_what_cannot_be_compared_says_why_and_names_the_best(tmp_path):
    write_sample(tmp_path / "a.jsonl", generations=3, seed=1)
    tables = load_tables(tmp_path)
    words = dict(decision_section(tables, None).words)
    first, then, *_ = words
    assert first.startswith("What do the runs of ")
    best = tables.generations["best_fitness"].max()
    assert words[first].startswith(f"Best fitness {best:.5g} in 1 run, from ")
    assert f"after {tables.runs['n_calls'].sum():,} calls" in words[first]
    assert words[then].startswith("Nothing yet: there is one configuration")
    assert "evo run" in words[then]
    assert "`replay judge --help`" in words[then]
    [best] = [text for asked, text in words.items() if asked.startswith("What is the best")]
    assert "the highest of 1 run," in best
    nothing = tables._replace(generations=tables.generations.assign(best_fitness=np.nan))
    [said] = [t for q, t in decision_section(nothing, None).words if q.startswith("What is")]
    assert said == "There is none: nothing was ok in 1 run."


def climbing(n, planted):
    """Runs of which every second one climbs, where a choice pays; else all do alike."""
    rng = np.random.default_rng(1)
    best = np.full((n, 25), 0.1)
    rises = range(0, n, 2) if planted else range(n)
    best[list(rises)] = np.linspace(0.1, 0.9, 25)
    return as_frame(best + 0.001 * rng.random((n, 1)), children=1, seeds=range(n))


@pytest.mark.parametrize("planted", [True, False])
def test_a_contest_is_decided_against_one_run_as_judge_does(planted):
    frame = climbing(20, planted)
    contest = compete(frame, ["ucb1"], arms=4)
    judged = replay.judge(frame, "ucb1", "single", arms=4)
    said = replay.advise(contest)
    assert f"{judged.effect:+.3g}" in said
    assert {
        "greater": "Use ucb1 rather than one run",
        "less": "Use one run rather than ucb1",
        "undetermined": "No decision between ucb1 and one run",
    }[judged.verdict] in said


def test_a_contest_without_an_effect_over_one_run_says_so():
    frame = climbing(6, planted=True)
    contest = compete(frame, ["ucb1"], arms=2, rounds=40)
    assert replay.advise(contest).startswith("No decision: no effect over one run")
    played = compete(climbing(20, planted=False), ["ucb1", "thompson"], arms=4)
    assert "thompson" in replay.advise(played)
