"""Edits: what a rewrite added, what came back, and what kind of change it was."""

import msgspec
import numpy as np
import pytest
from samples import sample_child, sample_header, sample_lines

import replay
from evo.logs.journal import encode_line
from evo.logs.log import read_log
from evo.logs.maintenance import compact
from evo.logs.records import Evaluation, Generation, Initial

FIRST = "def f(x):\n    y = x + 1\n    return y\n"


def run_of(folder, *programs, first=FIRST):
    """A run of one child a generation, each the parent of the next."""
    header = sample_header(1)
    files = {**header.task.files, header.task.program_file: first}
    task = msgspec.structs.replace(header.task, files=files)
    lines = [
        msgspec.structs.replace(header, task=task),
        Initial(evaluation=Evaluation(status="ok", fitness=0.0)),
    ]
    for number, program in enumerate(programs, start=1):
        child = sample_child(number, 0, number / 10)
        lines.append(msgspec.structs.replace(child, program=program))
        lines.append(
            Generation(
                generation=number, best_fitness=number / 10, best=(number, 0), improved=True,
                seconds=1.0,
            )
        )  # fmt: skip
    path = folder / "run.jsonl"
    path.write_bytes(b"".join(map(encode_line, lines)))
    return read_log(path)


@pytest.mark.parametrize(
    ("program", "kind"),
    [
        (FIRST, "none"),
        (FIRST.replace("1\n", "1   \n"), "none"),
        (FIRST.replace("x + 1", "x + 2"), "constants"),
        (FIRST.replace("x + 1", "x  +  1  # one"), "layout"),
        (FIRST.replace("    ", "  "), "layout"),
        (FIRST.replace("x + 1", "x - 1"), "structure"),
        (FIRST.replace("x + 1", "x + a"), "structure"),
        (FIRST.replace("x + 1", "(x + 1"), "structure"),
        ("", "structure"),
    ],
)
def test_the_kind_of_a_change_is_that_of_its_tokens(tmp_path, program, kind):
    [row] = replay.edits(run_of(tmp_path, program)).to_dict("records")
    assert row["kind"] == kind


def test_texts_are_constants_too(tmp_path):
    first = "name = 'a'\nsize = 3\n"
    found = replay.edits(run_of(tmp_path, "name = 'bc'\nsize = 4\n", first=first))
    assert found["kind"].tolist() == ["constants"]
    assert (found["added"].item(), found["removed"].item()) == (2, 2)


def test_lines_that_were_removed_before_and_come_back_are_counted(tmp_path):
    without = FIRST.replace("    y = x + 1\n", "    y = x\n")
    again = without.replace("    y = x\n", "    y = x + 1\n    z = 3\n\n")
    found = replay.edits(run_of(tmp_path, without, again, without, again))
    assert found["returned"].tolist() == [0, 1, 1, 2]
    assert found["added"].tolist() == [1, 3, 1, 3]
    assert found["removed"].tolist() == [1, 1, 3, 1]
    np.testing.assert_allclose(found["gain"], 0.1)


def test_children_without_programs_have_no_row(tmp_path):
    log = run_of(tmp_path, FIRST, FIRST + "# more\n")
    assert len(replay.edits(log)) == 2
    bare = replay.edits(compact(log, tmp_path / "compact.jsonl"))
    assert bare.empty
    assert bare.columns.tolist() == replay.edits(log).columns.tolist()


def test_edits_agree_with_the_lineage(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"".join(map(encode_line, sample_lines(generations=6, children=3))))
    log = read_log(path)
    found = replay.edits(log).set_index(["generation", "index"])
    line = replay.lineage(log).iloc[1:].set_index(["generation", "index"])
    for name in ("added", "removed", "gain"):
        np.testing.assert_allclose(found.loc[line.index, name], line[name])


def test_a_line_that_came_back_does_not_return_again(tmp_path):
    without = FIRST.replace("    y = x + 1\n", "")
    twice = FIRST.replace("    y = x + 1\n", "    y = x + 1\n" * 2)
    found = replay.edits(run_of(tmp_path, without, FIRST, twice))
    assert found["returned"].tolist() == [0, 1, 0]
