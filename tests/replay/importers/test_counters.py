"""Counts from the beginning of a run are those of its calls, once it is said that they are."""

import warnings

import numpy as np
import pytest

from replay.importers import LogFormatError, read, table

TOKENS = ["prompt_tokens", "completion_tokens", "dollars"]


def write(path, counts, *, names=TOKENS, order="order"):
    """A table of runs with some numbers for each of their calls."""
    rows = [
        f"r{run},{call},{0.1 + 0.01 * call}," + ",".join(map(str, row))
        for run, calls in enumerate(counts)
        for call, row in enumerate(calls, start=1)
    ]
    path.write_text("\n".join([",".join(["run", order, "fitness", *names]), *rows]) + "\n")
    return path


@pytest.fixture
def calls():
    """Tokens and dollars of 7 calls of 3 runs, (runs, calls, columns)."""
    rng = np.random.default_rng(0)
    return rng.integers(1, 1000, (3, 7, 3))


def usages(runs):
    return [[a.usage for c in run.children for a in c.attempts] for run in runs]


@pytest.mark.parametrize("order", ["order", "generation"])
def test_counters_that_are_named_give_the_tokens_of_each_call(tmp_path, calls, order):
    plain = read(write(tmp_path / "plain.csv", calls, order=order))
    named = [f"{name}_so_far" for name in TOKENS]
    sums = calls.cumsum(axis=1)
    own = read(write(tmp_path / "own.csv", sums, names=named, order=order))
    columns = dict(zip(named, TOKENS, strict=True))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        theirs = read(write(tmp_path / "theirs.csv", sums, order=order), columns=columns)
    assert usages(plain) == usages(own) == usages(theirs)


def test_counters_that_are_not_named_are_warned_of_with_what_names_them(tmp_path, calls):
    path = write(tmp_path / "sums.csv", calls.cumsum(axis=1))
    said = "--columns prompt_tokens_so_far=prompt_tokens,completion_tokens_so_far="
    with pytest.warns(UserWarning, match=said):
        read(path)


def test_tokens_of_calls_and_prompts_that_grow_are_no_counters(tmp_path, calls):
    growing = calls.copy()
    growing[..., 0] = growing[..., 0].cumsum(axis=1)
    for counts in (calls, growing, np.full((3, 7, 3), 5), calls.cumsum(axis=1)[:1, :5]):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            read(write(tmp_path / "calls.csv", counts))


def test_what_is_counted_in_a_row_without_a_number_is_in_the_next(tmp_path):
    path = tmp_path / "gap.csv"
    path.write_text("run,order,fitness,completion_tokens_so_far\na,1,.1,10\na,2,.2,\na,3,.3,40\n")
    [run] = read(path)
    found = [[a.usage["completion_tokens"] for a in child.attempts] for child in run.children]
    assert found == [[10], [], [30]]


def test_a_counter_that_falls_is_an_error_with_its_line(tmp_path):
    path = tmp_path / "falls.csv"
    path.write_text("run,order,fitness,dollars_so_far\na,1,.1,0.5\na,2,.2,0.25\n")
    with pytest.raises(
        LogFormatError, match=r"falls.csv:3: expected .* at least 0.5 in.*run=COLUMN"
    ):
        read(path)


@pytest.mark.parametrize(
    ("word", "status"),
    [
        ("exception", "error"),
        ("Runtime Error", "error"),
        ("ValueError: no", "error"),
        ("sr_fail", "no_program"),
        ("timed-out", "timeout"),
        ("infeasible", "invalid"),
        ("API error", "no_reply"),
        ("Timeout", "timeout"),
        ("strange", None),
    ],
)
def test_words_that_are_plain_are_statuses(tmp_path, word, status):
    path = tmp_path / "words.csv"
    path.write_text(f"run,order,fitness,status\na,1,.1,Success\na,2,,{word}\n")
    [run] = table.read(path)
    good, bad = (child.evaluation for child in run.children)
    assert (good.status, good.fitness) == ("ok", 0.1)
    assert (bad.status, bad.fitness) == (status, None)
    assert word in bad.error


def test_a_fitness_beside_a_status_that_is_not_known_is_warned_of(tmp_path):
    path = tmp_path / "strange.csv"
    path.write_text("run,order,fitness,status\na,1,.1,ok\na,2,.2,strange\na,3,.5,strange\n")
    with pytest.warns(UserWarning, match="2 rows with a fitness have the status 'strange', which"):
        [run] = read(path)
    assert [child.evaluation.fitness for child in run.children] == [0.1, None, None]


def test_a_fitness_of_0_beside_a_status_that_is_not_known_is_that_of_a_failure(tmp_path):
    path = tmp_path / "strange.csv"
    path.write_text("run,order,fitness,status\na,1,.1,ok\na,2,0,strange\na,3,0.0,strange\n")
    [run] = read(path)
    assert [child.evaluation.fitness for child in run.children] == [0.1, None, None]
