"""Programs of several files: what a folder's patterns find, and what a program may be given as."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evo
from evo.logs.several import PROGRAM_FILES, pack, unpack
from evo.tasks.folder import FILE_CAP, TaskError
from evo.tasks.several import (
    files_in,
    packed,
    program_text,
    several_files,
    text_of_files,
    write_files,
    write_folder,
)

MAIN = "def answer():\n    return 1\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a program of some files, and others."""
    for name in ("main.py", "lib/b.py", "lib/a.py", "lib/.hidden.py", "data.csv", "evaluator.py"):
        path = tmp_path / "task" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(MAIN)
    return tmp_path / "task"


@pytest.fixture(scope="module")
def pair() -> evo.Task:
    """A task whose programs are a file of Python and more of data."""
    files = {"main.py": MAIN, "data/one.json": "[1]"}
    return evo.task("pair", initial_program=files, evaluate=float, statement="More.")


def test_patterns_find_files_in_their_order_each_once_and_none_that_is_hidden(folder: Path) -> None:
    found = files_in(folder, ["main.py", "lib/*.py", "*.py"])
    assert [*found] == ["main.py", "lib/a.py", "lib/b.py", "evaluator.py"]
    assert all(path == (folder / name).resolve() for name, path in found.items())


def test_files_of_the_task_are_left_out_of_patterns_and_not_where_they_are_named(
    folder: Path,
) -> None:
    task = {"evaluator.py", "data.csv"}
    assert [*files_in(folder, ["main.py", "*.py", "*.csv"], task)] == ["main.py"]
    assert [*files_in(folder, ["main.py", "data.csv"], task)] == ["main.py", "data.csv"]


@pytest.mark.parametrize("pattern", ["/etc/passwd", "../other.py", "lib/../main.py", ".hidden", ""])
def test_a_pattern_may_not_leave_the_folder(folder: Path, pattern: str) -> None:
    with pytest.raises(TaskError, match="program: expected paths within the folder"):
        files_in(folder, ["main.py", pattern])


@pytest.mark.parametrize(
    ("patterns", "words"),
    [
        (["none.py"], "no file 'none.py' in the folder"),
        (["lib"], "no file 'lib' in the folder"),
        (["*.py"], "expected the name of the file to run first"),
        ([], "expected the name of the file to run first"),
    ],
)
def test_the_first_name_is_that_of_the_file_to_run(
    folder: Path, patterns: list[str], words: str
) -> None:
    with pytest.raises(TaskError, match=words):
        files_in(folder, patterns)


def test_a_link_that_leads_out_of_the_folder_is_no_file_of_it(folder: Path) -> None:
    (folder.parent / "secret.py").write_text("secret = 1\n")
    (folder / "lib" / "c.py").symlink_to(folder.parent / "secret.py")
    with pytest.raises(TaskError, match=r"c\.py"):
        files_in(folder, ["main.py", "lib/*.py"])


def test_one_file_is_none_of_several_and_none_stands_in_place_of_several(folder: Path) -> None:
    listed, others = ("main.py", "*.py"), [folder / "evaluator.py"]
    assert several_files(folder, "main.py", others, "other.py") == {}
    assert several_files(folder, listed, others, None) == files_in(folder, ["main.py"])
    with pytest.raises(TaskError, match=r"names several files, main\.py, \*\.py, and no other can"):
        several_files(folder, listed, others, "other.py")


def test_files_become_one_text_and_the_others_of_the_task_stay(folder: Path) -> None:
    evolving = files_in(folder, ["main.py", "lib/*.py"])
    text = text_of_files(evolving)
    assert unpack(text) == dict.fromkeys(evolving, MAIN)
    found = packed({**dict.fromkeys(evolving, MAIN), "evaluator.py": "judge"}, evolving)
    assert found == {"evaluator.py": "judge", PROGRAM_FILES: text}


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("main.py", b"\xff", r"main\.py: expected UTF-8 text"),
        ("main.py", b" \n", r"main\.py: the initial program is empty"),
        ("lib/a.py", b"x" * FILE_CAP, r"expected files below .* bytes together"),
    ],
)
def test_what_is_no_text_empty_or_too_large_is_refused(
    folder: Path, name: str, content: bytes, words: str
) -> None:
    (folder / name).write_bytes(content)
    with pytest.raises(TaskError, match=words):
        text_of_files(files_in(folder, ["main.py", "lib/a.py"]))


def test_a_later_file_may_be_empty_and_a_mark_is_no_part_of_a_text(folder: Path) -> None:
    (folder / "main.py").write_bytes(b"\xef\xbb\xbf" + MAIN.encode())
    (folder / "lib" / "a.py").write_bytes(b"")
    files = files_in(folder, ["main.py", "lib/a.py"])
    assert unpack(text_of_files(files)) == {"main.py": MAIN, "lib/a.py": ""}


def test_a_program_is_the_same_as_text_as_dict_and_as_folder(
    pair: evo.Task, tmp_path: Path
) -> None:
    record, initial = pair.record, pair.initial_program
    changed = pack({**unpack(initial), "data/one.json": "[2]\n"})
    assert program_text(record, initial) == program_text(record, {}) == initial
    assert program_text(record, changed) == changed
    assert program_text(record, {"data/one.json": "[2]"}) == changed
    write_files(tmp_path, changed)
    assert program_text(record, tmp_path) == changed


def test_what_is_no_program_of_several_files_is_refused(pair: evo.Task) -> None:
    for name in ("other.py", "data/two.json", "../main.py"):
        with pytest.raises(TaskError, match=f"pair: '{name}' is no file of its program"):
            program_text(pair.record, {name: ""})
    with pytest.raises(TaskError, match=r"pair: .* expected a dict of them, such as .'main\.py'"):
        program_text(pair.record, MAIN)


@pytest.mark.parametrize("given", [{"main.py": MAIN}, Path()])
def test_a_program_of_one_file_is_one_text(given: dict[str, str] | Path) -> None:
    one = evo.load_task("mmd").record
    assert program_text(one, MAIN) == MAIN
    with pytest.raises(TaskError, match="expected one text, since its program is one file"):
        program_text(one, given)


NAMES = st.sampled_from(["main.py", "a/b.txt", "c.json", "a/d/e.py"])
LINES = st.lists(st.sampled_from(["x = 1", "", "==== file: f.py ====", "\\==== file: g ===="]))


@given(st.dictionaries(NAMES, LINES.map("\n".join), min_size=1))
def test_what_is_written_is_read_as_the_same_program(
    tmp_path_factory: pytest.TempPathFactory, files: dict[str, str]
) -> None:
    first, *_ = files
    files[first] += "\nx = 2"  # the file to run is not empty
    program = pack(files)
    folder = tmp_path_factory.mktemp("program")
    paths = write_files(folder, program)
    assert text_of_files({path.relative_to(folder).as_posix(): path for path in paths}) == program


def test_a_task_is_written_with_the_files_of_its_program_apart(
    pair: evo.Task, tmp_path: Path
) -> None:
    write_folder(tmp_path, pair.record)
    assert not (tmp_path / PROGRAM_FILES).exists()
    for name, text in unpack(pair.initial_program).items():
        assert (tmp_path / name).read_text() == text
    for name in pair.record.files.keys() - {PROGRAM_FILES}:
        assert (tmp_path / name).read_text() == pair.record.files[name]


@pytest.mark.parametrize("field", ["files", "encoded"])
@pytest.mark.parametrize("name", ["../forged.py", "a/../../forged.py", "{}/forged.py"])
def test_a_task_out_of_a_forged_log_is_not_written_outside_of_its_folder(
    pair: evo.Task, tmp_path: Path, field: str, name: str
) -> None:
    name, record = name.format(tmp_path), pair.record
    forged = msgspec.structs.replace(record, **{field: {**getattr(record, field), name: "eA=="}})
    with pytest.raises(TaskError, match="pair: expected files below the task's folder, got"):
        evo.load_task(forged).save(tmp_path / "task")
    assert not [*tmp_path.iterdir()]
