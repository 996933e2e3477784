"""What all importers share: careful values, the assembly of a run, and its lines."""

import itertools
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import evo
from evo.logs.hashes import hash_of_task
from evo.logs.records import Child, Generation, Header, Model
from evo.tasks.task import load_task
from replay.importers.foreign import (
    MOST,
    NOT_IN_SOURCE,
    UNKNOWN_SEED,
    answered,
    assemble,
    born,
    common,
    failed,
    finite,
    judged,
    mapping,
    named,
    status_of,
    text,
    within,
    write,
)
from replay.importers.reading import LogFormatError

SOURCE = Path("theirs")


def made(*generations, initial=0.1, n=None, **how):
    """A run of these fitnesses by generation; None: a failure, "missing": no child at all."""
    children = [
        [
            born(g, judged(value), index=k, program=f"program {g} {k}", reply="said")
            if value is not None
            else failed(g, ("error", "boom"), index=k)
            for k, value in enumerate(members)
            if value != "missing"
        ]
        for g, members in enumerate(generations, start=1)
    ]
    first = None if initial is None else born(0, judged(initial), program="first")
    return assemble(
        SOURCE, "tool", name="run", children=children, initial=first, lost=how.pop("lost", []),
        model=Model("m"), n=n or max(map(len, generations), default=1), **how,
    )  # fmt: skip


@pytest.mark.parametrize("value", [math.nan, math.inf, True, "1", None, [1], 10**400])
def test_what_is_no_finite_number_is_unknown(value):
    assert finite(value) is None
    found = judged(value)
    assert (found.status, found.fitness) == ("invalid", None)
    assert "expected a finite fitness" in found.error
    assert len(found.error) < 100


def test_a_failure_has_no_fitness_whatever_the_source_says():
    found = judged(0.9, failure=("timeout", "late"), metrics={"area": 2, "no": "x", 3: math.nan})
    assert (found.status, found.fitness, found.error) == ("timeout", None, "late")
    assert found.metrics == {"area": 2.0}
    assert judged(None, failure=("no_program", "none")).status == "no_program"
    fine = judged(0, metrics={3: 1.5}, seconds=2.0)
    assert (fine.status, fine.fitness, fine.metrics) == ("ok", 0.0, {"3": 1.5})
    assert fine.seconds == 2.0


@pytest.mark.parametrize(
    ("words", "status"),
    [
        ("Evaluation timed out after 60 s", "timeout"),
        ("TIMEOUT", "timeout"),
        ("time out", "timeout"),
        ("subprocess.TimeoutExpired: ...", "timeout"),
        ("asyncio.TimeoutError", "timeout"),
        ("Traceback (most recent call last): ...", "error"),
        ("ValueError: no", "error"),
        ("MyException raised", "error"),
        ("timeouts are allowed", None),
        ("the ValueErrors of before", None),
        ("an Error", None),
        ("Errors were found", None),
        ("", None),
    ],
)
def test_a_message_is_classified_only_by_words_that_tell(words, status):
    assert status_of(words) == status


def test_tokens_that_the_source_does_not_state_are_unknown_and_never_zero():
    assert answered(None, None) == ()
    assert answered(-1, math.nan) == ()
    assert answered("9", True) == ()
    [only] = answered(None, 0, model="m", cached=None)
    assert only.usage == {"completion_tokens": 0, "model": "m"}
    assert (only.status, only.latency) == ("ok", None)
    [both] = answered(900, 250)
    assert both.usage == {"prompt_tokens": 900, "completion_tokens": 250}


def test_a_setting_is_common_only_where_every_call_had_it():
    assert common([0.7, 0.7]) == 0.7
    assert common([0.7, 0.8]) is None
    assert common([0.7, None]) is None
    assert common([None]) is None
    assert common([]) is None


def test_models_are_named_once_and_in_one_order():
    assert named(["b", "a", "b", None, ""]).name == named(["a", "b"]).name == "a+b"
    assert named([None, ""]).name == "unknown"


def test_texts_and_mappings_are_taken_and_other_values_are_left_out():
    assert (text("a"), text(""), text(b"a"), text(None)) == ("a", "", None, None)
    assert mapping({"a": 1}) == {"a": 1}
    assert mapping([("a", 1)]) == mapping(None) == {}
    child = born(
        2, judged(0.5), parent=(1, 3), island=True, program=5, reply=b"no", reasoning="",
        prompt=[("system", "Be good."), ("user", ""), ("user", 4), ("user", "Go.")], index=1,
    )  # fmt: skip
    assert (child.program, child.reply, child.reasoning, child.island) == (None,) * 4
    assert child.prompt == (("system", "Be good."), ("user", "Go."))
    assert child.parents == ((1, 3),)
    assert (child.generation, child.index, child.seed) == (2, 1, UNKNOWN_SEED)
    assert born(1, judged(0.5), island=0).island == 0
    assert born(1, judged(0.5)).parents == ()


@pytest.mark.parametrize("value", [-1, MOST + 1, 2.0, True, "3", None])
def test_a_count_that_is_none_is_refused_with_what_it_counts(value):
    with pytest.raises(LogFormatError, match=f"here: expected iteration from 0 to {MOST}"):
        within(value, "here", "iteration")


def test_a_count_may_reach_both_of_its_ends():
    assert (within(0, "here"), within(MOST, "here")) == (0, MOST)


fitnesses = st.one_of(st.none(), st.sampled_from([0.0, 0.1, 0.2, 0.3, 0.9]))


@given(st.lists(st.lists(fitnesses, min_size=2, max_size=2), max_size=5), fitnesses)
def test_the_best_so_far_follows_from_the_children(generations, initial):
    if initial is None and not generations:
        return
    run = made(*generations, initial=initial, n=2)
    known = [] if initial is None else [initial]
    for members, line in zip(generations, run.generations, strict=True):
        before = max(known, default=None)
        known += [value for value in members if value is not None]
        best = max(known, default=None)
        assert line.best_fitness == best
        assert line.improved == (best is not None and (before is None or best > before))
        generation, index = line.best
        if generation:
            assert generations[generation - 1][index] == best
    places = [(child.generation, child.index) for child in run.children]
    assert places == list(itertools.product(range(1, len(generations) + 1), range(2)))


def test_of_equal_programs_the_first_stays_the_best():
    run = made([0.5, 0.5], [0.5, 0.4])
    assert [line.best for line in run.generations] == [(1, 0), (1, 0)]
    assert [line.improved for line in run.generations] == [True, False]


def test_a_call_that_left_nothing_is_a_failure_of_which_nothing_is_known():
    run = made([0.2, "missing", 0.3], ["missing", 0.4], n=3)
    gone = [(c.generation, c.index) for c in run.children if c.evaluation.error == NOT_IN_SOURCE]
    assert gone == [(1, 1), (2, 0), (2, 2)]
    assert all(
        c.evaluation.status is None and c.attempts == ()
        for c in run.children
        if (c.generation, c.index) in gone
    )


def test_runs_that_cannot_be_put_together_name_the_source():
    for generations, n, said in (
        ([], 1, "theirs: holds no call and no program of tool"),
        ([[0.1, 0.2]], 1, "theirs: generation 1: expected children 0 to 0, got 1"),
        ([[0.1]], 20 * MOST + 1, f"theirs: expected at most {20 * MOST} children"),
    ):
        with pytest.raises(LogFormatError, match=said):
            made(*generations, initial=None, n=n)
    twice = [born(1, judged(0.1)), born(1, judged(0.2))]
    with pytest.raises(LogFormatError, match="theirs: generation 1 holds a child twice"):
        assemble(SOURCE, "tool", name="run", children=[twice], initial=None, lost=[],
                 model=Model("m"))  # fmt: skip


def test_the_header_states_what_is_known_and_nothing_else():
    run = made([0.5], sampling={"temperature": 0.7, "max_tokens": 500.0}, seed=3, mixed=2,
               task="mmd", lost=["seeds", "usage"], seconds=[2.5])  # fmt: skip
    header = run.header
    assert (header.sampling.temperature, header.sampling.top_p) == (0.7, None)
    assert header.sampling.max_tokens == 500
    assert type(header.sampling.max_tokens) is int
    assert (header.seed, header.mixed, header.task.name, header.source) == (3, 2, "mmd", "tool")
    assert run.lost == "seeds; usage"
    assert run.generations[0].seconds == 2.5
    assert [line.seconds for line in made([0.5], [0.6], seconds=[2.5, None]).generations] == [
        2.5,
        None,
    ]
    bare = made([0.5])
    assert (bare.header.sampling.max_tokens, bare.header.seed) == (None, UNKNOWN_SEED)
    assert (bare.lost, bare.generations[0].seconds) == ("nothing", None)
    assert [type(line) for line in made([0.5], initial=None).lines()] == [Header, Child, Generation]


def test_the_text_of_the_best_is_kept_if_that_child_or_the_first_program_has_one():
    def run(*programs, initial=None):
        """Two generations of two children, of which the last is the best of all."""
        children = [
            [born(g, judged(0.1 * (2 * g + k)), index=k, program=programs[2 * g - 2 + k])
             for k in (0, 1)]
            for g in (1, 2)
        ]  # fmt: skip
        return assemble(SOURCE, "tool", name="run", lost=[], model=Model("m"), n=2,
                        initial=initial, children=children)  # fmt: skip

    assert run(None, None, None, "x").keeps_best
    assert not run("x", "x", "x", None).keeps_best
    for program in ("x", None):
        first = born(0, judged(9.0), program=program)
        assert run(*"abcd", initial=first).keeps_best == (program is not None)
        only = assemble(SOURCE, "tool", name="run", lost=[], model=Model("m"), children=[],
                        initial=first)  # fmt: skip
        assert only.keeps_best == (program is not None)


def test_a_compact_log_has_no_texts_and_the_same_numbers(tmp_path):
    run = made([0.5, None], [0.3, 0.9])
    logs = {}
    for compact in (True, False):
        write(run, tmp_path / f"{compact}.jsonl", compact=compact)
        logs[compact] = evo.read_log(tmp_path / f"{compact}.jsonl")
    assert {child.program for child in logs[True].children} == {None}
    assert {child.reply for child in logs[True].children} == {None}
    assert logs[False].children[0].program == "program 1 0"
    assert logs[True].header.compact
    assert not logs[False].header.compact
    numbers = [
        [(o.generation, o.index, o.evaluation.status, o.evaluation.fitness) for o in log.outcomes]
        for log in logs.values()
    ]
    assert numbers[0] == numbers[1]
    assert logs[True].trajectory.tolist() == logs[False].trajectory.tolist() == [0.1, 0.5, 0.9]


def test_a_full_log_holds_the_first_program_and_says_that_the_files_of_its_task_are_lost():
    run = made([0.5], lost=["usage"])
    whole, small = next(run.lines(compact=False)), next(run.lines())
    assert whole.task.files == {"initial_program.py": "first"}
    assert whole.task.hash == hash_of_task(whole.task) != small.task.hash
    assert small.task.files == {}
    assert whole.lost == small.lost == "files of the task; usage"


def test_with_its_task_a_log_keeps_the_tasks_program_unless_the_run_began_with_another():
    task = load_task("mmd").record
    own = task.files[task.program_file]
    marked = f"# EVOLVE-BLOCK-START\n{own.strip()}\n# EVOLVE-BLOCK-END\n"
    for program, same in ((own, True), (marked, True), ("x = 1", False)):
        first = born(0, judged(0.1), program=program)
        run = assemble(SOURCE, "tool", name="run", children=[[born(1, judged(0.2))]],
                       initial=first, lost=[], model=Model("m"))  # fmt: skip
        header = next(run.lines(compact=False, task=task))
        assert (header.task == task) == same
        assert header.task.files[task.program_file] == (own if same else program)
        assert header.task.files.keys() == task.files.keys()
        assert header.lost == "nothing"
        assert next(run.lines(task=task)).task == task


@pytest.mark.parametrize(
    "child", [{"island": 2**63}, {"seed": 2**70}, {"program": "\ud800"}, {"reply": "\ud800"}]
)
def test_what_a_log_cannot_hold_is_refused_by_the_name_of_the_source(tmp_path, child):
    run = assemble(SOURCE, "tool", name="run", children=[[born(1, judged(0.5), **child)]],
                   initial=None, lost=[], model=Model("m"))  # fmt: skip
    with pytest.raises(LogFormatError, match="theirs: holds what a log cannot"):
        write(run, tmp_path / "a.jsonl", compact=False)
    assert not (tmp_path / "a.jsonl").exists()


def test_the_largest_numbers_that_a_log_holds_can_be_read_again(tmp_path):
    write(made([0.5], seed=2**63 - 1), tmp_path / "a.jsonl")
    assert evo.read_log(tmp_path / "a.jsonl").header.seed == 2**63 - 1
