"""Filters: what is refused, what that costs, and what a log keeps of them."""

import itertools
import random
import re
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import pytest
from evo_runs import same_run, write_task
from hypothesis import assume, given
from hypothesis import strategies as st

import evo
import replay
from evo.filters import FILTERS, Filter, NearDuplicates, ProtectedRegions, SameProgram
from evo.filters.base import refusal
from evo.filters.ends import BREAKS, shared_lines
from evo.filters.near_duplicates import LONG, SimilarBlocks, _by_lines, _common, _similarity
from evo.filters.registry import filters_of, records_of
from evo.filters.same_program import _alike
from evo.logs.several import pack
from evo.runs.configuration import find_run, make_header, make_header_again
from evo.runs.identity import as_begun, differences
from evo.runs.planning import asked_in
from evo.runs.resources import SCREENED
from evo.runs.state import costs_of_log
from evo.searches import Member
from replay.logs.tables import load_tables
from replay.reports.report import groups, sections

QUIET: dict[str, Any] = {"progress": False, "workers": 1}
PROGRAM = "def value():\n    a = 1.5\n    b = 2.5\n    return a * b\n"
JUDGE = "def score(value):\n    return {'fitness': 1 - abs(value - 5) / 5}\n"
COMPARING: dict[str, Filter] = {
    "same_program": SameProgram(),
    "near_duplicates": NearDuplicates(),
}


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tasks") / "toy"
    return write_task(folder, PROGRAM, JUDGE, "entry = ['value']\n")


@dataclass(frozen=True)
class Sized:
    """Refuses what is long, or where the archive is small."""

    most: int = 60
    least: int = 0

    name = "sized"

    def check(self, program: str, archive: Sequence[Member]) -> str | None:
        """Returns why."""
        if len(archive) < self.least:
            return f"{len(archive)} programs are known"
        return f"{len(program)} characters" if len(program) > self.most else None


@dataclass(frozen=True)
class Nameless:
    """Lacks a name."""

    def check(self, program: str, archive: Sequence[Member]) -> str | None:
        """Lets everything pass."""
        return None


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


def archive(*programs: str) -> list[Member]:
    return [Member((1, index), 0.5, (), program) for index, program in enumerate(programs)]


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


def test_blank_lines_in_a_string_make_another_program() -> None:
    program = 'def value():\n    a = """x\n\ny"""\n\n    return a\n'
    assert SameProgram().check(program.replace("x\n\ny", "x\ny"), archive(program)) is None
    assert SameProgram().check(program.replace("x\n", "x  \n"), archive(program)) is None
    assert SameProgram().check(program.replace('"""\n\n', '"""\n'), archive(program))
    assert SameProgram().check("two words (\n\nand more", archive("two words (\nand more")) is None


@pytest.mark.parametrize("line", ["x = 1 \\\n", "x = (1 +\\\n", "assert 1, \\\n"])
def test_a_blank_line_ends_a_line_that_goes_on(line: str) -> None:
    """`x = 1 \\`, a blank line and `y = 2` are two statements, without the blank line none."""
    whole, broken = f"{line}\ny = 2\n", f"{line}y = 2\n"
    assert SameProgram().check(whole, archive(broken)) is None
    assert SameProgram().check(broken, archive(whole)) is None


def test_spaces_behind_a_comment_make_no_other_program() -> None:
    assert SameProgram().check("x = 1  # one  \n\ny = 2", archive("x = 1  # one\ny = 2\n"))


@pytest.mark.parametrize("text", ["x = 1\n", "'a' + ", "'''\n", "\\\n", "((\n", "words, \n"])
def test_long_programs_are_compared_as_they_are(text: str) -> None:
    long = text * (1_000_000 // len(text))
    assert SameProgram().check(f"\n{long}", archive(long)) is None
    assert SameProgram().check(long, archive(long))


def test_a_log_goes_on_with_the_filters_that_it_was_begun_with(task: Path, tmp_path: Path) -> None:
    names = ["same_program", "near_duplicates"]
    new = make_header(task, filters=names, seed=4, children=2)
    old = msgspec.structs.replace(
        new, filters=tuple(msgspec.structs.replace(each, version=1) for each in new.filters)
    )
    assert [each.version for each in new.filters] == [3, 2]
    blank = 'a = """x\n\ny"""\n'
    other = blank.replace("\n\n", "\n")
    assert refusal(other, filters=filters_of(new)[:1], archive=archive(blank)) is None
    assert refusal(other, filters=filters_of(old)[:1], archive=archive(blank))
    again = make_header_again(old)
    assert [each.version for each in again.filters] == [1, 1]
    assert differences(old, new) == []
    log = evo.run(task, filters=names, seed=4, children=2, generations=1,
                  log=tmp_path / "a.jsonl", **QUIET)  # fmt: skip
    begun = as_begun(old, log)
    assert [each.version for each in begun.filters] == [3, 2]
    tokens = msgspec.structs.replace(
        new, filters=tuple(msgspec.structs.replace(each, version=2) for each in new.filters)
    )
    whole, broken = "x = 1 \\\n\ny = 2\n", "x = 1 \\\ny = 2\n"
    assert refusal(whole, filters=filters_of(tokens)[:1], archive=archive(broken))
    assert refusal(whole, filters=filters_of(new)[:1], archive=archive(broken)) is None


def test_similarity_is_that_of_the_longest_common_subsequence() -> None:
    letters = "abac\n"
    rng = random.Random(3)
    for _ in range(300):
        one, other = ("".join(rng.choices(letters, k=rng.randint(1, 12))) for _ in range(2))
        table = {(i, j): 0 for i in range(len(one) + 1) for j in range(len(other) + 1)}
        for i, a in enumerate(one, start=1):
            for j, b in enumerate(other, start=1):
                table[i, j] = max(table[i - 1, j], table[i, j - 1], table[i - 1, j - 1] + (a == b))
        share = 2 * table[len(one), len(other)] / (len(one) + len(other))
        found = NearDuplicates(ratio=0.01).check(one, archive(other)) or " is 0.000 the same"
        assert f" is {share:.3f} the same" in found


def lines_in_common(one: list[str], other: list[str]) -> tuple[list[str], list[str]]:
    """Returns the longest beginning in common, and the longest end of what is left."""
    start = sum(
        1 for _ in itertools.takewhile(lambda two: two[0] == two[1], zip(one, other, strict=False))
    )
    left = zip(one[start:][::-1], other[start:][::-1], strict=False)
    end = sum(1 for _ in itertools.takewhile(lambda two: two[0] == two[1], left))
    return one[:start], one[len(one) - end :]


PIECES = st.lists(st.sampled_from(["a", "b", " ", *BREAKS]), max_size=12).map("".join)


@given(PIECES, PIECES, PIECES, PIECES)
def test_what_texts_share_at_their_ends_is_whole_lines(
    start: str, one: str, other: str, end: str
) -> None:
    texts = one, other = start + one + end, start + other + end
    assume(one != other)
    begins, ends = lines_in_common(*(text.splitlines(keepends=True) for text in texts))
    assert shared_lines(one, other) == (len("".join(begins)), len("".join(ends)))


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


def test_near_duplicates_of_a_long_program_are_found_line_by_line() -> None:
    program = "".join(f"def f{k}():\n    return {k} * 0.25\n\n" for k in range(700))
    assert program.count("\n") > 2000
    everywhere = program.replace("* 0.25", "+ 7 - 1")
    ends = program.replace("def f0()", "def g0()").replace("def f699()", "def g699()")
    again = NearDuplicates().check(ends, archive(everywhere, program)) or ""
    assert again.startswith("generation 1, child 1 is 0.999")
    assert NearDuplicates(ratio=1.0).check(ends, archive(program)) is None
    assert NearDuplicates(ratio=0.9).check(everywhere, archive(program)) is None
    assert NearDuplicates(ratio=1.0).check(program, archive(program))


MARKED = """\
import math

# EVOLVE-BLOCK-START
def inner():
    return 1.5
# EVOLVE-BLOCK-END

def value():
    return 2 * inner()
"""


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        (MARKED.replace("1.5", "math.pi"), None),
        (MARKED.replace("    return 1.5", "    a = 1\n\n    return a"), None),
        (MARKED.replace("\n\ndef value", "  \n\n\ndef value") + "\n", None),
        (MARKED.replace("2 * inner", "9 * inner"), "was changed: 'return 2 \\* inner\\(\\)'"),
        (MARKED.replace("import math", "import math, os"), "was changed: 'import math'"),
        (MARKED + "value = inner\n", "was changed: 'value = inner'"),
        (MARKED.replace("# EVOLVE-BLOCK-END\n", ""), "expected 1 regions between marks, got 0"),
        ("def value():\n    return 5\n", "expected 1 regions between marks, got 0"),
    ],
)
def test_what_stands_outside_the_marks_is_protected(changed: str, reason: str | None) -> None:
    initial = Member((0, 0), 0.5, (), MARKED)
    found = ProtectedRegions().check(changed, [initial, Member((1, 0), 0.5, (), changed)])
    assert (found is None) if reason is None else re.search(reason, found or "")
    assert ProtectedRegions().check(changed, [Member((0, 0), 0.5, (), PROGRAM)]) is None


def test_the_filter_of_earlier_logs_finds_long_programs_too() -> None:
    program = "".join(f"def f{k}():\n    return {k} * 0.25\n\n" for k in range(300))
    nearly = program.replace("200 * 0.25", "200 * 0.35")
    assert "the same" in (SimilarBlocks().check(nearly, archive("x = 1\n", program)) or "")
    assert SimilarBlocks().check(nearly[::-1], archive(program)) is None


@pytest.mark.parametrize("changed", [1, LONG])
def test_earlier_similarity_counts_equal_lines_and_characters_of_short_changes(
    changed: int,
) -> None:
    kept = "".join(f"x{k} = {k}\n" for k in range(2 * LONG))
    old, new = "a" * changed + "b\n", "a" * changed + "c\n"
    one, other = kept + old + kept, kept + new + kept
    common = 2 * len(kept) + (changed + 1 if len(old) <= LONG else 0)  # as and the line's end
    assert _by_lines(one, other) == pytest.approx(2 * common / (len(one) + len(other)))


def test_what_is_protected_is_what_the_initial_program_closes() -> None:
    opened = "a = 1\n# EVOLVE-BLOCK-START\nb = 2\n"
    initial = f"{opened}# EVOLVE-BLOCK-END\nc = 3\n"
    assert ProtectedRegions().check("c = 4\n", [Member((0, 0), 0.5, (), opened)]) is None
    later = Member((1, 0), 0.5, (), initial.replace("a = 1", "a = 2"))
    known = [later, Member((0, 0), 0.5, (), initial)]
    assert ProtectedRegions().check(initial.replace("b = 2", "b = 5"), known) is None
    assert "'a = 1'" in (ProtectedRegions().check(str(later.program), known) or "")
    assert "got 0" in (ProtectedRegions().check(opened, known) or "")


def test_marks_are_kept_in_each_of_several_files() -> None:
    files = {"a.py": MARKED, "b.py": "x = 1\n"}
    known = [Member((0, 0), 0.5, (), pack(files))]
    check = ProtectedRegions().check
    assert check(pack({**files, "a.py": MARKED.replace("1.5", "2.5"), "b.py": ""}), known) is None
    moved = check(pack({**files, "a.py": MARKED.replace("2 * inner", "3 * inner")}), known)
    assert moved is not None
    assert moved.startswith("a.py: a line outside the marks was changed")
    assert "expected 1 regions" in (check(pack({"b.py": "x = 1\n"}), known) or "")
    assert "was changed" in (check(MARKED, known) or "")  # no longer several files


def test_the_prompt_says_what_is_protected(tmp_path: Path) -> None:
    task = write_task(tmp_path / "marked", MARKED, JUDGE, "entry = ['value']\n")
    how: dict[str, Any] = {"generations": 2, "children": 4, "seed": 2, **QUIET}
    log = evo.run(task, filters="protected_regions", log=tmp_path / "a.jsonl", **how)
    asked = asked_in(log, 1)[0]
    assert f"{ProtectedRegions.rule} Give one" in asked.messages[-1]["content"]
    assert asked.hash == log.children[0].prompt_hash
    assert log.best.evaluation.fitness > 0.6  # better than the initial program
    assert evo.rerun(log).same
    plain = evo.run(task, log=tmp_path / "b.jsonl", **how)
    assert "EVOLVE-BLOCK-START and" not in asked_in(plain, 1)[0].messages[-1]["content"]


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


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        ("near_duplicate", ValueError, "unknown filter .* did you mean 'near_duplicates'"),
        ({"name": "near_duplicates", "ratoi": 1}, ValueError, "unknown field 'ratoi'"),
        ([NearDuplicates], TypeError, r"give an instance of the class, NearDuplicates\(\.\.\.\)"),
        (NearDuplicates, TypeError, r"give an instance of the class, NearDuplicates\(\.\.\.\)"),
        (Nameless(), TypeError, "expected the name of a filter.*; it has no attribute `name`"),
        ([3], TypeError, "expected the name of a filter"),
    ],
)
def test_mistakes_are_named(wrong: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        records_of(wrong)


def test_a_filter_of_ones_own_resumes_once_it_is_registered(task: Path, tmp_path: Path) -> None:
    log = evo.run(
        task, filters=[Sized(most=62)], generations=1, children=3, log=tmp_path / "a.jsonl", **QUIET
    )
    assert log.header.filters[0].source
    with pytest.raises(ValueError, match=r"unknown filter 'sized'.*evo\.FILTERS\['sized'\]"):
        evo.resume(log.path, generations=2, **QUIET)
    FILTERS["sized"] = Sized
    try:
        assert len(evo.resume(log.path, generations=2, **QUIET).generations) == 2
    finally:
        del FILTERS["sized"]


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
