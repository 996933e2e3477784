"""What the tables of logs hold."""

import random

import msgspec
import numpy as np
import pandas as pd
import pytest
from samples import changed, sample_lines, write_lines, write_sample

import evo
import replay
from evo.logs.cost import cost_of_calls, cost_of_children
from evo.logs.log import read_log
from evo.logs.maintenance import compact
from evo.logs.records import (
    Attempt,
    Child,
    Confirmation,
    CriticCall,
    CriticRecord,
    Evaluation,
    Generation,
    Header,
    Initial,
    ReplyLine,
    RunEnd,
    SearchRecord,
)
from replay.logs.tables import load_tables


def test_load_agrees_with_the_log(tmp_path):
    path = write_sample(tmp_path / "a.jsonl", generations=5, children=4)
    log, frame = read_log(path), replay.load(path)
    np.testing.assert_array_equal(frame["best_fitness"], log.trajectory)
    assert frame["generation"].tolist() == list(range(6))
    assert frame["n_calls"].tolist() == [0, 4, 4, 4, 4, 4]
    assert frame["prompt_tokens"][0] == 0
    ok = [o.generation for o in log.outcomes if o.evaluation.status == "ok"]
    assert frame["n_ok"].tolist() == [1, *(ok.count(g) for g in range(1, 6))]
    assert set(frame["task"]) == {"min_max_distance"}
    assert set(frame["seed"]) == {7}
    assert set(frame["source"]) == {str(path)}


def test_costs_agree_with_evo_cost(tmp_path):
    path = write_sample(tmp_path / "a.jsonl", generations=4, children=5)
    log = read_log(path)
    for rule in ("worst_case", "exclude", "bounded"):
        frame = replay.load(path, timeouts=rule)
        for g in range(1, 5):
            members = [outcome for outcome in log.outcomes if outcome.generation == g]
            cost = cost_of_children(members, log.header.model, log.header.sampling, rule=rule)
            row = frame[frame["generation"] == g].iloc[0]
            assert row["n_attempts"] == cost.attempts
            assert row["n_without_usage"] == cost.without_usage
            for column in ("flops", "dollars", "tokens"):
                expected = getattr(cost, column)
                assert row[column] == pytest.approx(
                    np.nan if expected is None else expected, nan_ok=True
                )


def test_each_rule_for_timeouts_in_plain_numbers(tmp_path):
    """One child: a timeout, an answer cut at its limit of 60, and one without usage."""
    usage = {"prompt_tokens": 50, "completion_tokens": 60}
    cut = Attempt(status="ok", latency=1.0, usage=usage, finish_reason="length")
    late = Attempt(status="timeout", latency=9.0)
    silent = Attempt(status="ok", latency=1.0)
    for attempts, tokens in (
        ((late, cut), {"worst_case": 100 + 110, "exclude": 110, "bounded": 60 + 110}),
        ((late,), {"worst_case": 100, "exclude": 0}),
        ((silent, cut), {"worst_case": 100 + 110, "exclude": np.nan, "bounded": 60 + 110}),
    ):
        lines = sample_lines(generations=1, children=1)
        path = write_lines(tmp_path / "a.jsonl", changed(lines, Child, attempts=attempts))
        for rule, expected in tokens.items():
            [row] = replay.children(path, timeouts=rule).to_dict("records")
            np.testing.assert_equal(row["tokens"], float(expected))
            np.testing.assert_equal(row["flops"], 20 * float(expected))
            assert row["n_without_usage"] == len(attempts) - (cut in attempts)


@pytest.mark.parametrize(
    ("usage", "told"),
    [
        ({"input_tokens": 50, "output_tokens": 11, "input_tokens_details": {"cached_tokens": 90}},
         (50, 11, 50)),  # never more cached than the prompt
        ({"prompt_tokens": -5, "completion_tokens": 3}, (np.nan, 3, np.nan)),
        *((usage, (np.nan,) * 3) for usage in ({"prompt_tokens": "12"}, {}, None)),
    ],
)  # fmt: skip
def test_usage_counts_under_its_names_and_is_unknown_otherwise(tmp_path, usage, told):
    attempt = Attempt(status="ok", latency=1.0, usage=usage)
    lines = changed(sample_lines(), Child, attempts=(attempt,))
    row = replay.children(write_lines(tmp_path / "a.jsonl", lines)).iloc[0]
    columns = ["prompt_tokens", "completion_tokens", "cached_tokens"]
    np.testing.assert_array_equal(row[columns].astype(float), told)
    assert row["n_without_usage"] == np.isnan(told[0])
    nothing = changed(sample_lines(), Child, attempts=())
    row = replay.children(write_lines(tmp_path / "b.jsonl", nothing)).iloc[0]
    unknown = [*columns, "tokens", "flops", "dollars", "n_attempts", "call_seconds"]
    assert row[unknown].isna().all()


def test_children_say_their_parent_and_whether_they_beat_it(tmp_path):
    path = write_sample(tmp_path / "a.jsonl", generations=6, children=4)
    log, table = read_log(path), replay.children(path)
    parents = log.trajectory[table["generation"].to_numpy() - 1]
    np.testing.assert_array_equal(table["parent_fitness"], parents)
    np.testing.assert_array_equal(table["best_fitness"], parents)
    beat = (table["fitness"] > parents + 1e-9).to_numpy()
    np.testing.assert_array_equal(table["improved"], beat)
    improved = table.groupby("generation")["improved"].any()
    assert improved.tolist() == [generation.improved for generation in log.generations]
    least = changed(sample_lines(), Header, min_improvement=0.1, mixed=3)
    least = changed(least, Initial, evaluation=Evaluation(status="ok", fitness=0.5))
    for fitness, better in ((0.5 + 0.1, False), (0.601, True)):
        tried = changed(least, Child, evaluation=Evaluation(status="ok", fitness=fitness))
        table = replay.children(write_lines(path, tried))
        assert (table["improved"].iloc[0], set(table["mixed"])) == (better, {3})


def test_a_status_that_a_tool_did_not_record_is_missing(tmp_path):
    lines = changed(sample_lines(), Child, evaluation=Evaluation(status=None))
    table = replay.children(write_lines(tmp_path / "a.jsonl", lines))
    assert table["status"].isna().tolist() == [True] + [False] * (len(table) - 1)


def test_attempts_are_one_row_each(tmp_path):
    path = write_sample(tmp_path / "a.jsonl", generations=2, children=3)
    attempts, children = replay.attempts(path), replay.children(path)
    assert len(attempts) == children["n_attempts"].sum()
    assert (
        attempts.groupby(["generation", "index"])["attempt"].max().add(1).tolist()
        == children["n_attempts"].astype(int).tolist()
    )
    assert set(attempts["status"]) == {"timeout", "ok"}


def test_neither_the_order_of_lines_nor_what_a_copy_leaves_out_matters(tmp_path):
    path = write_sample(tmp_path / "1" / "a.jsonl", children=5)
    write_sample(tmp_path / "2" / "a.jsonl", children=5, shuffle=random.Random(3))
    compact(path, tmp_path / "3" / "a.jsonl.gz")
    for read in (replay.load, replay.children, replay.attempts):
        one, *others = (
            read(tmp_path / name).drop(columns=["source", "header", "root"], errors="ignore")
            for name in "123"
        )
        for other in others:
            pd.testing.assert_frame_equal(one, other)


def test_a_generation_under_way_is_in_children_alone(tmp_path):
    lines = sample_lines(generations=3, children=3)
    last = max(i for i, line in enumerate(lines) if isinstance(line, Generation))
    path = write_lines(tmp_path / "a.jsonl", lines[:last])
    assert replay.load(path)["generation"].max() == 2
    assert replay.children(path)["generation"].max() == 3


def test_matrices_are_in_order_of_runs_and_end_in_nan(tmp_path):
    write_sample(tmp_path / "b.jsonl", generations=4, seed=2)
    write_sample(tmp_path / "a.jsonl", generations=2, seed=1)
    frame = replay.load(tmp_path / "b.jsonl", tmp_path / "a.jsonl")
    matrix = replay.fitness_matrix(frame)
    np.testing.assert_array_equal(matrix[0], read_log(tmp_path / "b.jsonl").trajectory)
    np.testing.assert_array_equal(matrix[1, :3], read_log(tmp_path / "a.jsonl").trajectory)
    assert np.isnan(matrix[1, 3:]).all()
    costs = replay.cost_matrices(frame)
    assert {cost.shape for cost in costs.values()} == {matrix.shape}
    assert costs["calls"][0].tolist() == [0, 3, 3, 3, 3]
    apart = pd.concat([replay.load(tmp_path / f"{name}.jsonl").assign(run="x") for name in "ba"])
    assert {cost.shape for cost in replay.cost_matrices(apart).values()} == {matrix.shape}


def test_tables_read_once_are_the_tables_read_apart(tmp_path):
    write_sample(tmp_path / "a.jsonl")
    runs, generations, children = load_tables(tmp_path)
    pd.testing.assert_frame_equal(generations, replay.load(tmp_path))
    pd.testing.assert_frame_equal(children, replay.children(tmp_path))
    assert runs[["run", "generations", "is_llm", "compact"]].values.tolist() == [
        ["a", 3, True, False]
    ]


def test_calls_of_a_critic_and_drafts_that_were_not_evaluated_cost(tmp_path):
    """As `evo.logs.cost` counts them: a critic's at the critic's own prices."""
    lines = sample_lines(generations=2, children=3)
    header = next(line for line in lines if isinstance(line, Header))
    critic = CriticRecord(
        model=msgspec.structs.replace(header.model, input_price=100.0, output_price=100.0),
        sampling=header.sampling,
        rubric="?",
    )
    usage = {"prompt_tokens": 100, "completion_tokens": 10}
    made = (Attempt(status="ok", latency=1.0, usage=usage),)
    free = (Attempt(status="ok", latency=0.0, usage=usage, cached=True),)
    more = [
        ReplyLine(generation=2, index=1, attempts=free, draft=2),
        ReplyLine(generation=2, index=0, attempts=made, draft=1),
        CriticCall(generation=2, program="0" * 16, index=0, attempts=made, score=0.5),
    ]
    at = next(i for i, line in enumerate(lines) if isinstance(line, Child) and line.generation == 2)
    lines = [*lines[:at], *more, *lines[at:]]
    path = write_lines(tmp_path / "a.jsonl", changed(lines, Header, critic=critic))
    log, frame = read_log(path), replay.load(path)
    cost = cost_of_calls(log.calls, log.header)
    assert frame["n_calls"].sum() == len(log.calls) == 9
    assert (replay.attempts(path)["index"] == -1).sum() == len(more)
    assert frame["tokens"].sum() == cost.tokens
    assert frame["dollars"].sum() == pytest.approx(cost.dollars)
    plain = replay.load(write_lines(tmp_path / "b.jsonl", lines))
    assert frame["dollars"].sum() > plain["dollars"].sum()
    pytest.importorskip("ipywidgets", reason="explorers need the extra [notebook]")
    view = replay.follow(path, every=60)
    assert f"${cost.dollars:.4f}" in view.words
    view.close()


def test_gain_on_fresh_draws_and_the_tests_that_were_made(tmp_path):
    lines = sample_lines(generations=3, children=3)
    tried = [
        Confirmation(
            generation=2, index=index, draw=1, parent=(0.1, 0.2), rival=(0.3, 0.4), alpha=0.05,
            bound=0.1, accepted=not index,
        )
        for index in range(2)
    ]  # fmt: skip
    runs = load_tables(write_lines(tmp_path / "a.jsonl", [*lines, *tried])).runs
    assert runs[["n_tests", "n_accepted"]].values.tolist() == [[2, 1]]
    assert runs["false_acceptances"].item() == pytest.approx(0.1)
    best = replay.load(tmp_path / "a.jsonl")["best_fitness"]
    assert runs["gain"].item() == best.iloc[-1] - best.iloc[0]
    assert np.isnan(runs["fresh_gain"].item())
    said = RunEnd(reason="completed", stats={"initial_fitness": 0.25, "final_fitness": 0.5})
    write_lines(tmp_path / "a.jsonl", [*lines, *tried, said])
    assert load_tables(tmp_path).runs["fresh_gain"].item() == 0.25


def test_children_name_the_island_that_made_them(tmp_path):
    """By the rule of the search: request i of generation g is of island ((g - 1) N + i) mod K."""
    islands = SearchRecord(name="islands", fields={"islands": 4})
    lines = changed(sample_lines(generations=3, children=3), Header, search=islands)
    found = replay.children(write_lines(tmp_path / "a.jsonl", lines))
    assert found["island"].tolist() == [0, 1, 2, 3, 0, 1, 2, 3, 0]
    plain = replay.children(write_sample(tmp_path / "b.jsonl", generations=1, children=3))
    assert plain["island"].isna().all()


def test_the_island_is_the_one_that_the_search_asked(tmp_path):
    """A child's parent is of its own island wherever no migrant came; here none ever does."""
    log = evo.run(
        "mmd", search=evo.searches.Islands(islands=3, interval=50), generations=4, children=4,
        seed=2, log=tmp_path / "a.jsonl", progress=False,
    )  # fmt: skip
    found = replay.children(log)
    island = found.set_index(["generation", "index"])["island"].to_dict()
    pairs = [(row.island, row.parents[0]) for row in found.itertuples() if row.parents]
    later = [(own, island[parent]) for own, parent in pairs if parent != (0, 0)]
    assert len(later) > 3
    assert all(own == other for own, other in later)


def test_an_initial_program_that_failed_is_not_ok_and_the_first_that_is_ok_is_better(tmp_path):
    lines = changed(sample_lines(generations=2, children=9), Initial,
                    evaluation=Evaluation(status="error", error="boom"))  # fmt: skip
    path = write_lines(tmp_path / "a.jsonl", lines)
    frame, children = replay.load(path), replay.children(path)
    assert frame["n_ok"][0] == 0
    assert np.isnan(frame["generation_best"][0])
    first = children[children["generation"] == 1]
    assert first["best_fitness"].isna().all()
    assert first["improved"].tolist() == first["fitness"].notna().tolist()
    assert first["improved"].any()
    assert not first["improved"].all()
    sound = replay.load(write_sample(tmp_path / "b.jsonl", generations=4, children=3))
    assert sound["best_fitness"].iloc[-1] > 0.1
    assert (sound["generation_best"][0], sound["n_ok"][0]) == (0.1, 1)


def test_the_rule_bounded_takes_the_median_of_replies_that_were_cut(tmp_path):
    cut = [
        Attempt(
            status="ok", latency=1.0, finish_reason="length",
            usage={"prompt_tokens": 0, "completion_tokens": tokens},
        )
        for tokens in (10, 30, 80)
    ]  # fmt: skip
    late = Attempt(status="timeout", latency=9.0)
    lines = changed(sample_lines(generations=1, children=1), Child, attempts=(*cut, late))
    path = write_lines(tmp_path / "a.jsonl", lines)
    assert replay.children(path, timeouts="bounded")["tokens"].item() == 120 + 30


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
def test_the_limit_of_replies_in_a_models_extra_body_is_the_worst_case(tmp_path, name):
    late = Attempt(status="timeout", latency=9.0)
    header, *others = changed(sample_lines(generations=1, children=1), Child, attempts=(late,))
    model = msgspec.structs.replace(header.model, extra_body={name: 700})
    lines = [msgspec.structs.replace(header, model=model), *others]
    path = write_lines(tmp_path / "a.jsonl", lines)
    assert replay.children(path)["tokens"].item() == 700


def table_of(path, initials, task=""):
    rows = [
        f"r{k},{task},{t},{first + 0.1 * t}" for k, first in enumerate(initials) for t in (0, 1)
    ]
    path.write_text("\n".join(["run,task,generation,fitness", *rows]) + "\n")
    return path


@pytest.mark.filterwarnings("ignore:.*which lack")
def test_runs_of_unnamed_tasks_that_begin_unlike_are_warned_of(tmp_path):
    unlike = table_of(tmp_path / "unlike.csv", [0.1, 0.5])
    for read in (replay.load, load_tables):
        with pytest.warns(UserWarning, match=r"^2 runs do not say .* from 0.1 \(.*r0\) to 0.5"):
            read(unlike)


@pytest.mark.parametrize(("initials", "task"), [([0.1, 0.1004], ""), ([0.1, 0.5], "named")])
def test_runs_that_begin_alike_or_name_their_task_are_not(tmp_path, initials, task, recwarn):
    replay.load(table_of(tmp_path / "table.csv", initials, task))
    assert not [each for each in recwarn if "do not say" in str(each.message)]
