import gzip
import random
import zlib

import msgspec
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import changed, make_log_bytes, sample_lines, write_lines, write_sample

import evo
import replay
from evo.logs.cost import cost_of_calls, cost_of_children
from evo.logs.journal import LogError, encode_line
from evo.logs.lines import BODY
from evo.logs.log import read_log
from evo.logs.maintenance import compact
from evo.logs.records import (
    Attempt,
    Child,
    Confirmation,
    CriticCall,
    CriticRecord,
    Evaluation,
    Fork,
    Generation,
    Header,
    Initial,
    Limits,
    ReplyLine,
    RunEnd,
    SearchRecord,
)
from replay.logs.frames import ReplayWarning, distinct_runs
from replay.logs.tables import load_tables
from replay.reports.report import groups, sections

# What the tables hold


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


# Which logs


# Damage


def crafted(line, old, new):
    """A line with a changed body and a fitting checksum."""
    import zlib

    body = line.rstrip(b"\n")[len(b'{"crc":"00000000",') :].replace(old, new, 1)
    return b'{"crc":"%08x",%s\n' % (zlib.crc32(body), body)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        *((b"0.625", fitness) for fitness in (b"null", b"NaN", b"1e999", b'"high"', b"[1]")),
        (b'"status":"ok","fitness"', b'"status":"error","fitness"'),
    ],
)
def test_a_fitness_that_is_none_or_of_a_failure_is_an_error(tmp_path, old, new):
    lines = changed(sample_lines(), Child, evaluation=Evaluation(status="ok", fitness=0.625))
    data = [encode_line(line) for line in lines]
    at = next(i for i, line in enumerate(data) if b"0.625" in line)
    data[at] = crafted(data[at], old, new)
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"".join(data))
    with pytest.raises(LogError, match=rf"a\.jsonl:{at + 1}: "):
        replay.load(path)


def test_a_count_that_no_number_holds_is_unknown(tmp_path):
    attempt = Attempt(
        status="ok", latency=1.0, usage={"prompt_tokens": 7654321, "completion_tokens": 3}
    )
    data = [encode_line(line) for line in changed(sample_lines(), Child, attempts=(attempt,))]
    at = next(i for i, line in enumerate(data) if b"7654321" in line)
    data[at] = crafted(data[at], b"7654321", b"9" * 400)
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"".join(data))
    row = replay.children(path).iloc[0]
    assert np.isnan(row["prompt_tokens"])
    assert row["completion_tokens"] == 3


def test_not_strict_leaves_out_what_is_damaged_and_says_so(tmp_path):
    good = write_sample(tmp_path / "good.jsonl")
    bad = tmp_path / "bad.jsonl"
    bad.write_bytes(good.read_bytes().replace(b'"seed":', b'"sead":', 1))
    with pytest.raises(LogError):
        replay.load(tmp_path)
    with pytest.warns(UserWarning, match="1 of 2 logs were left out"):
        frame = replay.load(tmp_path, strict=False)
    assert set(frame["source"]) == {str(good)}
    assert [path for path, _ in frame.attrs["skipped"]] == [str(bad)]
    with pytest.raises(LogError, match="none of 1 logs"):
        replay.load(bad, strict=False)


def test_what_other_tools_wrote_beside_logs_is_left_and_named(tmp_path):
    good = write_sample(tmp_path / "good.jsonl")
    other = tmp_path / "trace.jsonl"
    other.write_text('{"iteration": 1}\n')
    with pytest.warns(UserWarning, match="trace.jsonl: not a log of evo; `replay import"):
        frame = replay.load(tmp_path)
    assert set(frame["source"]) == {str(good)}
    assert [path for path, _ in frame.attrs["skipped"]] == [str(other)]
    good.unlink()
    with pytest.raises(LogError, match=r"no log in this folder.*replay import"):
        replay.load(tmp_path)


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


def test_what_a_fork_inherited_costs_nothing(tmp_path):
    """The first of three generations was copied from the run that the fork left."""
    plain = write_sample(tmp_path / "plain.jsonl", generations=3, children=3)
    fork = Fork(at=1, copy=2, parent="a" * 64, through="b" * 64, root="c" * 64, segments=())
    lines = [
        msgspec.structs.replace(line, inherited=True)
        if isinstance(line, Child | Generation) and line.generation == 1
        else line
        for line in changed(sample_lines(generations=3, children=3), Header, fork=fork)
    ]
    forked = write_lines(tmp_path / "forked.jsonl", lines)
    one, other = replay.load(plain), replay.load(forked)
    assert set(other["forked_from"]) == {"b" * 12}
    assert (set(other["copy"]), set(other["root"])) == ({2}, {"c" * 12})
    for name in ("n_calls", "tokens", "n_attempts", "seconds", "evaluation_seconds"):
        assert other.loc[1, name] == 0 < one.loc[1, name]
        assert other.loc[2:, name].tolist() == one.loc[2:, name].tolist()
    assert other["best_fitness"].tolist() == one["best_fitness"].tolist()
    assert load_tables(forked).runs["n_calls"].item() == 6
    attempts = replay.attempts(forked)
    assert attempts["generation"].min() == 2
    children = replay.children(forked)
    assert children.loc[children["inherited"], "generation"].tolist() == [1, 1, 1]


def rescored_beside(folder, **fields):
    """A log and what `evo rescore` makes of it, as far as a table can tell them apart."""
    original = write_sample(folder / "a.jsonl", generations=3, children=3)
    lines = changed(
        sample_lines(generations=3, children=3), Header, source="evo rescore by objective", **fields
    )
    return original, write_lines(folder / "a.rescored.jsonl", lines)


def test_a_rescored_log_beside_its_original_costs_nothing_and_is_no_run_of_its_own(tmp_path):
    original, rescored = rescored_beside(tmp_path)
    frame = replay.load(tmp_path)
    assert frame.groupby("run")["rescored"].first().tolist() == [False, True]
    assert frame["root"].nunique() == 1
    for name in ("n_calls", "tokens", "seconds", "call_seconds"):
        assert frame[name].sum() == replay.load(original)[name].sum()
    alone = replay.load(rescored)
    assert not alone["rescored"].any()
    assert alone["n_calls"].sum() == 9
    with pytest.warns(ReplayWarning, match="1 of 2 runs are rescored logs"):
        assert set(replay.depth_breadth(frame).cells["n"]) == {1}
    tables = load_tables(tmp_path)
    assert tables.runs["n_calls"].tolist() == [9, 0]
    [group] = groups(tables)
    fitness, status, *_ = sections(group)
    assert any("1 of 2 runs are rescored logs" in note for note in fitness.notes)
    assert fitness.cells.set_index("quantity").loc["final, median", "n"] == 1
    assert status.cells.set_index("quantity").loc["children", "value"] == 9


def test_a_log_that_was_evaluated_again_in_the_same_way_is_of_its_originals_search(tmp_path):
    _, rescored = rescored_beside(tmp_path)
    assert replay.load(tmp_path)["search"].unique().tolist() == [
        "greedy",
        "evo rescore by objective",
    ]
    write_lines(
        rescored, changed(sample_lines(generations=3, children=3), Header, source="evo rescore")
    )
    frame = replay.load(tmp_path)
    assert frame["search"].unique().tolist() == ["greedy"]
    assert frame["rescored"].any()
    assert replay.load(rescored)["search"].unique().tolist() == [
        "evo rescore"
    ]  # of what, is unknown


def test_rescored_logs_of_other_searches_are_runs_of_their_own(tmp_path):
    rescored_beside(tmp_path / "seed", seed=99)
    rescored_beside(tmp_path / "feedback", feedback=True)
    for folder in ("seed", "feedback"):
        frame = replay.load(tmp_path / folder)
        assert not frame["rescored"].any()
        assert frame["n_calls"].sum() == 18


def test_one_log_by_a_relative_and_an_absolute_path_is_one_run(tmp_path, monkeypatch):
    path = write_sample(tmp_path / "a.jsonl", generations=3, children=3)
    other = write_sample(tmp_path / "b" / "a.jsonl", generations=2, children=3, seed=7)
    monkeypatch.chdir(tmp_path)
    absolute, relative = replay.load(path), replay.load("a.jsonl")
    both = pd.concat([absolute, relative, replay.load(other)])
    for frame in (both, both.reset_index(drop=True)):
        found = distinct_runs(frame)
        assert found["run"].nunique() == 2
        assert len(found) == 7
        assert replay.fitness_matrix(frame).shape == (2, 4)
        assert np.nansum(replay.cost_matrices(frame)["calls"]) == 9 + 6
    children = distinct_runs(pd.concat([replay.children(path), replay.children("a.jsonl")]))
    assert len(children) == 9


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


@given(data=st.data())
def test_whatever_a_file_holds_it_is_a_table_or_one_error(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("any") / "a.jsonl"
    whole = make_log_bytes(generations=2, children=2)
    content = data.draw(
        st.one_of(
            st.binary(max_size=200),
            st.integers(0, len(whole)).map(lambda n: whole[:n]),
            st.tuples(st.integers(0, len(whole) - 1), st.binary(min_size=1, max_size=8)).map(
                lambda edit: whole[: edit[0]] + edit[1] + whole[edit[0] + len(edit[1]) :]
            ),
            st.permutations(whole.splitlines(keepends=True)).map(b"".join),
            st.lists(st.sampled_from(whole.splitlines(keepends=True))).map(b"".join),
        )
    )
    if data.draw(st.booleans()):
        content = gzip.compress(content)[: data.draw(st.integers(0, 10**6))]
    path.write_bytes(content)
    for read in (replay.load, replay.children, replay.attempts):
        try:
            frame = read(path)
        except LogError as error:
            frame, message = None, str(error)
        if frame is None:
            assert str(path) in message
            continue
        intact = read_log(path)
        if read is replay.load:
            np.testing.assert_array_equal(frame["best_fitness"], intact.trajectory)
        if read is replay.children:
            fitness = [
                np.nan if o.evaluation.fitness is None else o.evaluation.fitness
                for o in intact.outcomes
            ]
            np.testing.assert_array_equal(frame["fitness"].astype(float), fitness)


def resealed(line, old, new):
    """A line of a log with a part of it changed, and its checksum made to match."""
    body = encode_line(line)[BODY:-1]
    assert old in body
    body = body.replace(old, new, 1)
    return b'{"crc":"%08x",%s\n' % (zlib.crc32(body), body)


def with_line(path, number, old, new):
    """A log whose line `number` (from 1) is changed as `resealed` changes it."""
    lines = sample_lines(generations=2, children=2)
    made = [encode_line(line) for line in lines]
    made[number - 1] = resealed(lines[number - 1], old, new)
    path.write_bytes(b"".join(made))
    return path


READERS = [replay.load, replay.children, replay.attempts, replay.instances, load_tables]


@pytest.mark.parametrize(
    "deep", [b"[" * 100_000 + b"]" * 100_000, b'{"a":' * 100_000 + b"1" + b"}" * 100_000]
)
def test_usage_nested_too_deep_is_an_error_that_names_the_line(tmp_path, deep):
    path = with_line(tmp_path / "a.jsonl", 4, b'"total_tokens":60', b'"total_tokens":' + deep)
    for read in READERS:
        with pytest.raises(LogError, match=r"a\.jsonl:4: "):
            read(path)


@pytest.mark.parametrize("size", [b"9" * 20, b"1" + b"0" * 400, b"1" + b"0" * 5000])
@pytest.mark.parametrize(
    ("number", "old", "new", "readers"),
    [
        (1, b'"children":2', b'"children":#', READERS),
        (1, b'"seed":7', b'"seed":#', READERS),
        (4, b'"index":0', b'"index":#', READERS),
        (4, b'{"status":"ok","fi', b'{"draws":#,"status":"ok","fi', [replay.children, load_tables]),
    ],
)
def test_a_number_that_no_table_holds_is_an_error_that_names_the_line(
    tmp_path, number, old, new, readers, size
):
    path = with_line(tmp_path / "a.jsonl", number, old, new.replace(b"#", size))
    for read in readers:
        with pytest.raises(LogError, match=rf"a\.jsonl:{number}: "):
            read(path)


def test_a_status_that_no_float_holds_is_an_error_that_names_the_line(tmp_path):
    huge = b'"http_status":1' + b"0" * 400
    path = with_line(tmp_path / "a.jsonl", 4, b'"http_status":200', huge)
    with pytest.raises(LogError, match=r"a\.jsonl:4: "):
        replay.attempts(path)


def test_usage_beyond_all_counts_is_unknown(tmp_path):
    path = with_line(
        tmp_path / "a.jsonl", 4, b'"prompt_tokens":50', b'"prompt_tokens":1' + b"0" * 400
    )
    assert replay.attempts(path)["prompt_tokens"].isna().sum() >= 1


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


def test_of_a_log_that_was_loaded_twice_the_later_rows_stay(tmp_path, monkeypatch):
    path = write_sample(tmp_path / "a.jsonl", generations=2, children=3)
    monkeypatch.chdir(tmp_path)
    early, late = replay.load(path), replay.load("a.jsonl").assign(n_ok=7)
    assert distinct_runs(pd.concat([early, late]))["n_ok"].tolist() == [7, 7, 7]


@pytest.mark.parametrize("how", [{"draws": 4}, {"confirm": 3}, {"limits": Limits(seconds=1.5)}])
def test_how_programs_are_evaluated_makes_no_other_run_of_a_rescored_log(tmp_path, how):
    rescored_beside(tmp_path, **how)
    assert replay.load(tmp_path)["n_calls"].sum() == 9


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


def test_repeats_that_a_fork_inherited_are_those_of_the_run_that_it_left(tmp_path):
    """Child 1 of each generation repeats the initial program; two generations were inherited."""
    fork = Fork(at=2, copy=0, parent="a" * 64, through="b" * 64, root="c" * 64, segments=())
    lines = [
        msgspec.structs.replace(line, repeats=((1, 0, 0),))
        if isinstance(line, Generation)
        else line
        for line in sample_lines(generations=3, children=2)
    ]
    plain = write_lines(tmp_path / "plain.jsonl", lines)
    forked = write_lines(tmp_path / "forked.jsonl", changed(lines, Header, fork=fork))
    assert replay.load(plain)["n_repeats"].tolist() == [0, 1, 1, 1]
    assert replay.load(forked)["n_repeats"].tolist() == [0, 0, 0, 1]
