"""Filters: what is refused, what that costs, and what a log keeps of them."""

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
from evo_runs import same_run
from filter_samples import PIECES, PROGRAM, QUIET, Sized, archive
from hypothesis import given

import evo
import replay
from evo.filters import Filter, NearDuplicates, SameProgram
from evo.filters.base import exclusion, refusal
from evo.filters.near_duplicates import _common, _similarity
from evo.filters.registry import filters_of
from evo.filters.same_program import _alike
from evo.runs.configuration import find_run, make_header
from evo.runs.identity import differences
from evo.runs.resources import SCREENED
from evo.runs.state import costs_of_log
from evo.searches import Member
from replay.logs.tables import load_tables
from replay.reports.report import groups, sections

COMPARING: dict[str, Filter] = {
    "same_program": SameProgram(),
    "near_duplicates": NearDuplicates(),
}


@dataclass(frozen=True)
class Never:
    """Answers as a predicate would."""

    answer: object = False
    name = "never"

    def check(self, program: str, archive: Sequence[Member]) -> Any:
        """Returns no sentence."""
        return self.answer


@pytest.mark.parametrize("answer", [False, True, 0, ["long"], "", " "])
def test_an_answer_that_is_neither_a_sentence_nor_none_is_an_error(answer: object) -> None:
    with pytest.raises(TypeError, match=r"filter 'never': expected `check` to return a sentence"):
        refusal(PROGRAM, filters=[Never(answer)], archive=[])


@pytest.mark.parametrize("each", COMPARING.values(), ids=COMPARING)
def test_a_filter_refuses_what_the_archive_holds_and_nothing_else(each: Filter) -> None:
    assert each.check(PROGRAM, []) is None
    assert each.check(PROGRAM, archive("x = 1\n")) is None
    assert "generation 1, child 1" in (each.check(PROGRAM, archive("x = 1\n", PROGRAM)) or "")
    assert each.check(PROGRAM, archive(PROGRAM)) == each.check(PROGRAM, archive(PROGRAM))


def test_only_near_duplicates_mind_a_changed_digit() -> None:
    nearly = PROGRAM.replace("2.5", "2.6")
    assert SameProgram().check(nearly, archive(PROGRAM)) is None
    assert SameProgram().check(PROGRAM.replace("\n", "  \n"), archive(PROGRAM))
    assert NearDuplicates().check(nearly, archive(PROGRAM))
    assert NearDuplicates(ratio=1.0).check(nearly, archive(PROGRAM)) is None
    with pytest.raises(ValueError, match="ratio: expected a number above 0"):
        NearDuplicates(ratio=0)


@given(PIECES, PIECES, PIECES, PIECES)
def test_filters_of_lines_find_what_their_plain_definition_finds(
    start: str, one: str, other: str, end: str
) -> None:
    texts = one, other = start + one + end, start + other + end
    plain = [[line.rstrip() for line in text.splitlines() if line.strip()] for text in texts]
    assert _alike(one, other) == (plain[0] == plain[1])
    fill = "".join(f"a{k}\n" for k in range(900))  # so that they count as long
    long = [start + fill + one + end, start + fill + other + end]
    lines = [text.splitlines(keepends=True) for text in long]
    share = 2 * _common(*lines) / sum(map(len, long))
    assert _similarity(*long, 0.01) == (1.0 if long[0] == long[1] else share)


def test_the_first_filter_that_refuses_gives_the_reason() -> None:
    filters = (SameProgram(), Sized(most=3))
    assert refusal("x", filters=filters, archive=[]) is None
    assert refusal("long", filters=filters, archive=[]) == "sized: 4 characters"
    both = refusal("long", filters=filters, archive=archive("long"))
    assert both == "same_program: generation 1, child 0 is the same"


@dataclass(frozen=True)
class Counted:
    """Notes how many programs are looked at while one is."""

    name = "counted"
    lock = threading.Lock()
    at_work: ClassVar[set[int]] = set()
    found: ClassVar[list[int]] = []

    def check(self, program: str, archive: Sequence[Member]) -> str | None:
        with self.lock:
            self.at_work.add(threading.get_ident())
            self.found.append(len(self.at_work))
        time.sleep(0.05)
        with self.lock:
            self.at_work.remove(threading.get_ident())
        return None


def test_filters_look_at_a_few_programs_at_a_time(task: Path, tmp_path: Path) -> None:
    """So an interrupt is heeded soon while they go round: see torture/test_interrupts.py."""
    log = evo.run(task, filters=[Counted()], children=16, generations=2, max_concurrent=16,
                  log=tmp_path / "a.jsonl", **QUIET)  # fmt: skip
    assert len(log.children) == 32
    assert len(Counted.found) >= 16
    assert max(Counted.found) <= SCREENED


def test_refused_children_cost_their_call_and_are_never_parents(task: Path, tmp_path: Path) -> None:
    how: dict[str, Any] = {"generations": 3, "children": 6, "seed": 2, "search": "population"}
    log = evo.run(
        task,
        filters=["same_program", NearDuplicates(0.95)],
        log=tmp_path / "a.jsonl",
        **how,
        **QUIET,
    )
    refused = [child for child in log.children if child.evaluation.status == "rejected"]
    assert refused
    assert log.status_counts["rejected"] == len(refused)
    assert sum(log.rejections.values()) == len(refused)
    for child in refused:
        assert child.program is not None
        assert child.evaluation.fitness is None
        assert child.evaluation.seconds == 0.0
        assert (child.evaluation.error or "").startswith(("same_program: ", "near_duplicates: "))
    parents = {place for child in log.children for place in child.parents}
    assert not parents & {(child.generation, child.index) for child in refused}
    assert [cost["calls"] for cost in costs_of_log(log)] == [0, 6, 6, 6]
    assert not evo.verify(log.path).faults
    assert evo.rerun(log).same
    lines = log.path.read_bytes().splitlines(keepends=True)
    killed = tmp_path / "killed.jsonl"
    killed.write_bytes(b"".join(lines[: len(lines) // 2]))
    assert same_run(evo.resume(killed, generations=3, **QUIET), log)


def test_a_filter_sees_complete_generations_only(task: Path, tmp_path: Path) -> None:
    log = evo.run(task, filters=[Sized(most=10**6, least=2)], generations=2, children=4,
                  log=tmp_path / "a.jsonl", **QUIET)  # fmt: skip
    by_generation = [
        [child.evaluation.status == "rejected" for child in log.children if child.generation == g]
        for g in (1, 2)
    ]
    asked = [child.program is not None for child in log.children]
    assert by_generation[0] == asked[:4]  # the initial program is all that is known
    assert by_generation[1] == asked[4:]  # and refused ones are not


def test_filters_are_part_of_what_identifies_a_run(task: Path, tmp_path: Path) -> None:
    plain, filtered = make_header(task), make_header(task, filters="near_duplicates")
    assert differences(plain, filtered) == ["filters"]
    assert differences(filtered, make_header(task, filters=NearDuplicates())) == []
    assert differences(filtered, make_header(task, filters=NearDuplicates(0.9))) == ["filters"]
    given = {"name": "near_duplicates", "ratio": 0.9}
    assert filters_of(make_header(task, filters=[given])) == (NearDuplicates(0.9),)
    how: dict[str, Any] = {"generations": 1, "children": 2, "filters": SameProgram()}
    log = evo.run_many(task, seeds=[3], log_dir=tmp_path, **how, **QUIET)[0]
    again = make_header(task, seed=3, children=2, filters="same_program")
    assert find_run(again, tmp_path) == log.path
    forked = evo.fork(log, at=1, generations=2, log_dir=tmp_path / "forks", **QUIET)[0]
    assert filters_of(forked.header) == (SameProgram(),)


def test_repeats_are_counted_in_tables_and_reports() -> None:
    logs = Path(__file__).parents[3] / "logs" / "corpus" / "local-tsp"
    [group] = groups(load_tables(*sorted(logs.glob("deep-s100[0-3]*")), progress=False))
    frame = replay.load(sorted(logs.glob("deep-s100[0-3]*")), progress=False)
    children = replay.children(sorted(logs.glob("deep-s100[0-3]*")), progress=False)
    counts = children[children["repeats"].notna()].groupby(["run", "generation"]).size()
    assert frame["n_repeats"].sum() == counts.sum() > 0
    log = evo.read_log(logs / "deep-s1000.jsonl.gz")
    programs = {(each.generation, each.index): each.program for each in log.children}
    programs[0, 0] = log.header.task.files[log.header.task.program_file]
    rows = children[(children["run"] == log.path.name.removesuffix(".jsonl.gz"))]
    known = rows[rows["repeats"].notna()]
    for generation, index, first in zip(
        known["generation"], known["index"], known["repeats"], strict=True
    ):
        assert programs[generation, index] == programs[first]
    section = next(s for s in sections(group) if s.title.startswith("Children"))
    cells = section.cells.set_index("quantity")["value"]
    assert cells["repeats"] == frame["n_repeats"].sum()


@dataclass(frozen=True)
class Raising:
    name: ClassVar[str] = "raising"
    late: bool = False

    def check(self, program: str, archive: Sequence[Member]) -> str | None:
        if not self.late:
            raise KeyError("oops")
        return None

    def after(self, evaluation: evo.Evaluation, archive: Sequence[Member]) -> str | None:
        raise ZeroDivisionError("late")


def test_a_filter_that_raises_is_named() -> None:
    with pytest.raises(ValueError, match=r"filter 'raising': .*`check`.*KeyError: 'oops'"):
        refusal(PROGRAM, filters=[Raising()], archive=archive(PROGRAM))
    with pytest.raises(ValueError, match=r"filter 'raising': .*`after`.*ZeroDivisionError: late"):
        exclusion(
            evo.Evaluation(status="ok", fitness=1.0), filters=[Raising(late=True)], archive=[]
        )
