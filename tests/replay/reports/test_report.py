import csv
import dataclasses
import io
import json
import math

import msgspec
import numpy as np
import pandas as pd
import pytest
from evo_runs import write_task
from samples import sample_lines, write_sample
from test_tables import changed, write_lines

import evo
import replay
from evo.logs.records import Child, Evaluation, Fork, Generation, Header, Initial
from evo.policies import POLICIES, learns
from replay.logs.tables import load_tables
from replay.reports.decision import decision_section
from replay.reports.figures import GroupPanel, best_construction, draw_page
from replay.reports.forms import FORMATS, _level
from replay.reports.models import ONE_CALL_EACH
from replay.reports.report import (
    OFFLINE_NOTE,
    groups,
    policy_sections,
    sections,
)
from replay.reports.tables import estimate, stack
from replay.simulation.contest import BASELINES, compete, named_policies
from replay.statistics.intervals import interval, name_of


def pool(folder, *, runs=6, generations=5, children=3):
    for seed in range(runs):
        path = folder / f"{children}-{seed}.jsonl"
        write_sample(path, generations=generations, children=children, seed=seed)
    return folder


def only_group(*paths):
    [group] = groups(load_tables(*paths))
    return group


def cells_of(found):
    return {(row.row, row.quantity): row for section in found for row in section.cells.itertuples()}


# Tables of runs


def test_sections_agree_with_the_tables(tmp_path):
    group = only_group(pool(tmp_path))
    frame, children = replay.load(tmp_path), replay.children(tmp_path)
    cells = cells_of(sections(group))
    final = frame.groupby("run")["best_fitness"].max()
    assert cells["3", "runs"].value == 6
    assert cells["3", "best of runs"].value == final.max()
    assert cells["3", "final, median"].value == final.median()
    assert cells["3", "final, mean"].value == pytest.approx(final.mean())
    assert cells["3", "children"].value == len(children)
    assert cells["3", "error"].value == (children["status"] == "error").sum()
    assert cells["3", "ok"].value == pytest.approx((children["status"] == "ok").mean())
    assert cells["3", "dollars"].value == pytest.approx(children["dollars"].sum())
    assert cells["3", "calls"].value == frame["n_calls"].sum()
    assert cells["3", "seconds, sum over runs"].value == pytest.approx(frame["seconds"].sum())
    for (_, quantity), cell in cells.items():
        assert cell.n == 6
        if quantity.startswith(("final", "ok")):
            assert cell.low < cell.value < cell.high
    share = interval(np.array([1, 1, 1, 1, 1, 0.7]))
    assert share.high > 1 == estimate("ok", share, "share")[3]  # no share goes beyond


def test_sizes_are_apart_and_tasks_are_groups(tmp_path):
    pool(tmp_path, children=2)
    pool(tmp_path, children=10, runs=3)
    header = sample_lines()[0]
    other = changed(
        sample_lines(),
        Header,
        model=msgspec.structs.replace(header.model, name="offline", is_llm=False),
    )
    write_lines(tmp_path / "other.jsonl", other)
    found = groups(load_tables(tmp_path))
    assert [group.model for group in found] == ["sample", "offline"]
    first, second = (sections(group)[0] for group in found)
    assert list(first.cells["row"].unique()) == ["2", "10"]
    assert "runs of different N are shown apart" in first.notes
    assert OFFLINE_NOTE not in first.notes
    assert OFFLINE_NOTE in second.notes
    assert "(not an LLM)" in FORMATS["plain"]([second])
    assert "(not an LLM)" not in FORMATS["plain"]([first])
    told = {quantity for _, quantity in cells_of(sections(found[1]))}
    assert not {"FLOPs", "dollars"} & told  # of the stand-in they mean nothing


def test_the_gain_that_fresh_draws_leave_and_the_failure_rule_stand_in_the_report(tmp_path):
    pool(tmp_path)
    tables = load_tables(tmp_path)
    runs = tables.runs.assign(n_tests=4, n_accepted=3, false_acceptances=0.2)
    runs["gain"], runs["fresh_gain"] = np.linspace(0.2, 0.3, 6), np.linspace(0.1, 0.2, 6)
    [group] = groups(tables._replace(runs=runs))
    cells = cells_of(sections(group))
    assert cells["3", "tests"].value == 24
    assert cells["3", "false acceptances allowed"].value == pytest.approx(1.2)
    fresh = cells["3", "gain on fresh draws"]
    assert (fresh.value, fresh.n) == (pytest.approx(0.15), 6)
    assert fresh.low < 0.15 < fresh.high
    runs["fresh_gain"] = np.nan  # all were stopped before their end
    [group] = groups(tables._replace(runs=runs))
    cells = cells_of(sections(group))
    assert cells["3", "tests"].value == 24
    assert ("3", "gain on fresh draws") not in cells
    assert any("minus infinity" in note for each in sections(group) for note in each.notes)


def test_runs_of_one_header_are_apart_unless_forks_tie_them(tmp_path):
    tables = load_tables(pool(tmp_path))
    alike = tables.runs.assign(root="same")  # as of another tool's runs, which have no seed
    for runs, n in ((alike, 6), (alike.assign(forked_from=["x", "x", *[""] * 4]), 1)):
        [group] = groups(tables._replace(runs=runs))
        cells = cells_of(sections(group))
        assert cells["3", "final, median"].n == cells["3", "ok"].n == n


@pytest.mark.parametrize("known", [True, False])
def test_repeats_are_explained_where_they_are_counted(tmp_path, known):
    tables = load_tables(pool(tmp_path))
    if not known:  # as of runs of other tools without their programs
        tables = tables._replace(generations=tables.generations.assign(n_repeats=np.nan))
    [group] = groups(tables)
    [table] = [each for each in sections(group) if each.title == "Children by status"]
    assert any(note.startswith("repeats:") for note in table.notes) == known
    assert ("repeats" in set(table.cells["quantity"])) == known


def test_what_one_must_know_is_noted(tmp_path):
    tool = {"source": "openevolve"}  # of all: runs of another tool are shown apart
    for name, generations, seed in (("a", 3, 1), ("b", 5, 2), ("copy", 3, 1)):
        lines = changed(sample_lines(generations=generations, seed=seed), Header, **tool)
        write_lines(tmp_path / f"{name}.jsonl", lines)
    lost = changed(sample_lines(seed=9), Header, lost="the weather", **tool)
    write_lines(tmp_path / "c.jsonl", lost)
    notes = " / ".join(sections(only_group(tmp_path))[0].notes)
    assert "differ in length" in notes
    assert "1 of 4 runs repeat" in notes
    told = changed(sample_lines(seed=1), Header, feedback=True, **tool)  # no repetition of a's run
    write_lines(tmp_path / "d.jsonl", told)
    plain, with_notes = groups(load_tables(tmp_path))  # configurations are shown apart
    assert plain.setting == "feedback False"
    assert with_notes.setting == "feedback True"
    assert (len(plain.tables.runs), len(with_notes.tables.runs)) == (3, 1)
    notes = " / ".join(sections(plain)[0].notes)
    assert "1 of 4 runs repeat" in notes
    assert "openevolve, which does not hold: the weather" in notes
    single = sections(only_group(tmp_path / "a.jsonl"))[0]
    for name in ("plain", "markdown", "html", "json"):
        text = " ".join(FORMATS[name]([single]).split())
        assert "no interval (final, mean): n = 1 is too small for an interval (needs 5)" in text
        assert "no interval (final, median): n = 1 is too small for an interval (needs 6)" in text


def nothing_ok(seed):
    failure = Evaluation(status="error", error="boom")
    empty = {"best_fitness": None, "best": (0, 0), "improved": False}
    return [
        msgspec.structs.replace(line, evaluation=failure)
        if isinstance(line, Initial | Child)
        else msgspec.structs.replace(line, **empty)
        if isinstance(line, Generation)
        else line
        for line in sample_lines(seed=seed)
    ]


def test_runs_that_found_nothing_are_no_zeros(tmp_path):
    write_sample(tmp_path / "a.jsonl", seed=1)
    write_lines(tmp_path / "b.jsonl", nothing_ok(2))
    group = only_group(tmp_path)
    found = sections(group)
    cells = cells_of(found)
    assert cells["3", "final, median"].value == -np.inf
    assert np.isnan(cells["3", "final, mean"].value)
    assert cells["3", "final, mean"].n == 2
    assert any("1 of 2 runs found nothing ok" in note for note in found[0].notes)
    nothing = only_group(tmp_path / "b.jsonl")
    assert "none" in FORMATS["plain"](sections(nothing))
    assert best_construction(nothing) == (None, None)
    draw_page([GroupPanel(nothing, None)])


def test_unknown_costs_are_said_to_be_unknown(tmp_path):
    lines = [
        msgspec.structs.replace(line, attempts=()) if isinstance(line, Child) else line
        for line in sample_lines()
    ]
    group = only_group(write_lines(tmp_path / "a.jsonl", lines))
    cells = cells_of(sections(group))
    for quantity in ("attempts", "prompt tokens", "FLOPs", "dollars"):
        assert math.isnan(cells["3", quantity].value)
    assert "unknown" in FORMATS["plain"](sections(group))
    write_sample(tmp_path / "b.jsonl", seed=8)  # a sum of which a part is unknown is unknown
    cells = cells_of(sections(only_group(tmp_path)))
    assert np.isfinite(cells["3", "prompt tokens"].value)  # as far as reported
    assert math.isnan(cells["3", "FLOPs"].value)
    assert json.loads(FORMATS["json"](sections(group)))


def test_times_to_a_fitness_say_how_often_they_are_enough(tmp_path):
    group = only_group(pool(tmp_path, runs=6))
    [table, *_] = sections(group, tau=0.2)
    assert "of 6 runs it is one in 73 % of samples" in " ".join(table.notes)
    [table, *_] = sections(group)
    assert "90 % rule" not in " ".join(table.notes)


# Formats


def test_formats_hold_the_same_cells(tmp_path):
    found = sections(only_group(pool(tmp_path)), tau=2.0)
    rows = list(csv.DictReader(io.StringIO(FORMATS["csv"](found))))
    cells = json.loads(FORMATS["json"](found))["cells"]
    assert len(rows) == len(cells) == sum(len(section.cells) for section in found)
    of_tokens = ("prompt tokens", "of them cached", "completion tokens")
    for row, cell in zip(rows, cells, strict=True):
        assert row["quantity"] == cell["quantity"]
        assert (row["unit"] == "tokens") == (row["quantity"] in of_tokens)
        assert cell["model"] == "sample"
        assert cell["is_llm"] is True
        value = float(row["value"])
        assert cell["value"] == (value if math.isfinite(value) else None)
    markdown = FORMATS["markdown"](found)
    assert markdown.count("### ") == len(found)
    for section in found:
        for quantity in section.cells["quantity"].unique():
            assert quantity in FORMATS["plain"](found)
            assert quantity in markdown


def test_every_interval_carries_its_level_in_every_format(tmp_path):
    group = only_group(pool(tmp_path, runs=8, generations=6))
    made = compete(group.tables.generations, ["ucb1"], replicates=100, arms=2, rounds=3)
    found = [*sections(group, tau=0.2), *policy_sections(group, made)]
    table = pd.read_csv(io.StringIO(FORMATS["csv"](found)))
    known = table["low"].notna()
    assert 0 < known.sum() < len(table)
    assert (table.loc[known, "level"] == 0.95).all()
    assert table.loc[~known, "level"].isna().all()
    assert table.loc[known, "coverage"].notna().any()
    cells = json.loads(FORMATS["json"](found))["cells"]
    assert [cell["level"] for cell in cells if cell["low"] is not None] == [0.95] * known.sum()
    for name in ("plain", "markdown", "html"):
        for section in found:
            own = section.cells[section.cells["level"].notna()]
            text = FORMATS[name]([section])
            assert ("in brackets: " in text) == bool(len(own))
            assert not len(own) or name_of(own["coverage"], 0.95) in text


def test_effects_say_what_their_interval_covers_in_any_world_and_that_it_covers_no_rare_jumps(
    tmp_path,
):
    group = only_group(pool(tmp_path, runs=9, generations=6))
    made = compete(group.tables.generations, ["ucb1"], replicates=100, arms=2, rounds=3)
    first = policy_sections(group, made)[0]
    assert any(note.startswith("What fewer than one run in 3 does") for note in first.notes)
    judged = replay.judge(group.tables.generations, "ucb1", "single", arms=2, rounds=3)
    assert f"effects: {judged.interval.label}" in first.notes


# Policies


def test_effects_add_up_and_flat_runs_have_none(tmp_path):
    frame = replay.load(pool(tmp_path, runs=8, generations=6))
    policies = named_policies(["ucb", "thompson"], {"ucb": {"c": [0.1, 1.0]}})
    assert list(policies) == ["ucb1 c=0.1", "ucb1 c=1", "thompson"]
    made = compete(frame, policies, replicates=300)
    assert (made.runs, made.arms, made.rounds) == (8, 2, 6)
    for table in (made.finals, made.curves, made.pulls, made.times, made.regrets):
        assert set(table["policy"]) == {*BASELINES, *policies}
        assert (table["n"] == 8).all()
    final = made.finals.set_index("policy")["value"]
    effects = made.effects.set_index(["policy", "effect"])["value"]
    for policy in policies:
        assert effects[policy, "pool"] == pytest.approx(final["random"] - final["single"])
        assert effects[policy, "policy"] == pytest.approx(final[policy] - final["single"])
        assert effects[policy, "allocation"] == pytest.approx(final[policy] - final["random"])
    assert (made.regrets["value"] >= -1e-12).all()
    flat = compete(frame.assign(best_fitness=0.5), named_policies(["all"]), replicates=100)
    assert set(flat.finals["policy"]) == {n for n, each in POLICIES.items() if not learns(each)}
    assert set(flat.finals["value"]) == {0.5}
    assert (flat.effects["value"].abs() < 1e-12).all()
    assert (flat.tau, set(flat.times["time"])) == (0.5, {1.0})


def test_warnings_of_policies_are_notes(tmp_path):
    frame = replay.load(pool(tmp_path, generations=3))
    made = compete(frame, named_policies(["ucb1"]), arms=5, rounds=3, replicates=50)
    assert any("never adapts" in note for note in made.notes)
    [first, *_] = policy_sections(only_group(tmp_path), made)
    assert any("never adapts" in note for note in first.notes)
    assert set(first.cells["quantity"]) == {
        "best fitness", "policy effect", "pool effect", "allocation effect",
    }  # fmt: skip


# The page


def test_medians_and_means_have_one_level_in_all_brackets(tmp_path):
    text = " ".join(FORMATS["plain"]([sections(only_group(pool(tmp_path, runs=6)))[0]]).split())
    assert "in brackets: 95 % interval over runs" in text
    assert text.count("% interval") == 1


def test_a_fitness_that_a_run_equals_is_reached(tmp_path):
    group = only_group(pool(tmp_path))
    ends = group.tables.generations.groupby("run")["best_fitness"].max()
    for tau in sorted(set(ends)):
        [table, *_] = sections(group, tau=float(tau))
        [cell] = table.cells[table.cells["quantity"] == f"reached {tau:g}"].to_dict("records")
        assert cell["value"] == (ends >= tau).mean()


def test_a_column_is_labelled_by_the_worst_coverage_in_it():
    values = np.random.default_rng(0).normal(size=40)
    few, many = (interval(values[:n]) for n in (5, 40))
    few = dataclasses.replace(few, coverage=0.9)
    for rows in ((few, many), (many, few)):
        cells = {str(k): [estimate("final", found, "fitness")] for k, found in enumerate(rows)}
        assert _level(stack(cells)) == [f"in brackets: {few.label} over runs"]


def test_children_that_a_fork_inherited_are_counted_once(tmp_path):
    """The first of two generations of three children was copied; all of them are ok there."""
    lines = sample_lines(generations=2, children=3)
    fork = Fork(at=1, copy=0, parent="a" * 64, through="b" * 64, root="c" * 64, segments=())
    lines = [
        msgspec.structs.replace(line, inherited=True)
        if isinstance(line, Child | Generation) and line.generation == 1
        else line
        for line in changed(lines, Header, fork=fork)
    ]
    group = only_group(write_lines(tmp_path / "fork.jsonl", lines))
    own = group.tables.children[group.tables.children["generation"] == 2]
    cells = cells_of(sections(group))
    assert cells["3", "children"].value == 3
    assert cells["3", "ok"].value == pytest.approx((own["status"] == "ok").mean())


def test_no_interval_of_a_mean_of_scores_exceeds_one():
    found = interval([0.99, 1.0, 1.0, 1.0, 1.0, 0.98], "mean")
    assert found.high > 1
    assert estimate("final", found, "fitness", 1.0).high == 1


def test_logs_that_did_not_end_are_noted_with_why(tmp_path):
    settings = {"generations": 2, "children": 1, "log_dir": tmp_path, "progress": False}
    logs = [log.path for log in evo.run_many("mmd", seeds=[1, 2, 3], **settings)]
    assert set(load_tables(tmp_path).runs["ending"]) == {""}
    whole = logs[0].read_bytes()
    for cut, words in ((whole[:-20], "its last line is torn"), (whole, "")):
        logs[0].write_bytes(cut)
        notes = " ".join(sections(only_group(tmp_path))[0].notes)
        assert ("1 of 3 logs did not end" in notes, words in notes) == (bool(words), True)
    logs[1].write_bytes(b"".join(logs[1].read_bytes().splitlines(keepends=True)[:-1]))
    notes = " ".join(sections(only_group(tmp_path))[0].notes)
    assert (
        f"1 of 3 logs did not end: {logs[1]} (whole up to generation 2, its session has no last"
        " line); " in notes
    )


@pytest.mark.filterwarnings("ignore:.*evaluations are noisy:UserWarning")
def test_a_report_and_a_site_say_that_evaluations_are_noisy_unless_runs_allow_for_it(tmp_path):
    task = write_task(
        tmp_path / "noisy", "def value():\n    return 1.5\n",
        "import random\n\ndef score(value):\n    return {'fitness': value + random.random()}\n",
        "entry = ['value']\n",
    )  # fmt: skip
    for draws in (1, 2):
        logs = tmp_path / f"logs{draws}"
        settings = {"generations": 1, "children": 1, "progress": False, "draws": draws}
        evo.run_many(task, seeds=[1, 2], log_dir=logs, **settings)
        [decided] = [
            words for asked, words in decision_section(load_tables(logs), None).words
            if "best program" in asked
        ]  # fmt: skip
        notes = " ".join(sections(only_group(logs))[0].notes)
        replay.site([logs], tmp_path / f"site{draws}")
        page = (tmp_path / f"site{draws}" / "index.html").read_text()
        for said in ("evaluations are noisy", "intervals over seeds do not cover it"):
            assert (said in notes) == (draws == 1)
        assert ("evaluations are noisy" in page) == (draws == 1)
        assert ("partly luck" in decided) == (draws == 1)


def test_the_table_of_models_says_whose_calls_it_leaves_out(tmp_path):
    settings = {"models": ["offline", "offline-2"], "generations": 2, "children": 4, "seed": 1}
    for drafts in (1, 2):
        critic = {"critic": "offline-2"} if drafts > 1 else {}
        path = tmp_path / f"{drafts}.jsonl"
        evo.run("mmd", log=path, drafts=drafts, **critic, **settings, progress=False)
        [models] = [each for each in sections(only_group(path)) if each.title == "Models"]
        said = [row for (_, name), row in cells_of([models]).items() if name.endswith(": tokens")]
        in_all = replay.load(path)["tokens"].sum()
        assert (sum(row.value for row in said) < in_all) == (drafts > 1)
        assert (ONE_CALL_EACH in models.notes) == (drafts > 1)
        assert replay.children(path)["tokens"].sum() == sum(row.value for row in said)
