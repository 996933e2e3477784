"""A task of two files goes from its initial program to a better one, whatever interrupts it."""

from pathlib import Path

import pytest
from evo_runs import QUIET, same_run

import evo
import replay
from evo.cli import main
from evo.filters import ProtectedRegions
from evo.logs.maintenance import require_whole
from evo.logs.several import pack, unpack
from evo.searches.base import Member
from evo.tasks.folder import TaskError
from replay.markup import difference, program

OPTIONS = {"children": 4, "seed": 4, **QUIET}


@pytest.fixture(scope="module")
def task() -> evo.Task:
    """The shipped task of two files on fewer items."""
    return evo.load_task("packing_table", instances=1)


@pytest.fixture(scope="module")
def run(task: evo.Task, tmp_path_factory: pytest.TempPathFactory) -> evo.Log:
    folder = tmp_path_factory.mktemp("files")
    return evo.run(task, generations=3, log=folder / "a.jsonl", **OPTIONS)


def test_it_improves_and_plays_itself_again(run: evo.Log, tmp_path: Path) -> None:
    assert run.best.fitness > run.initial.evaluation.fitness
    changed = set()
    initial = unpack(run.header.task.files[run.header.task.program_file])
    for child in run.children:
        if child.program is not None:
            files = unpack(child.program)
            assert list(files) == ["main.py", "table.txt"]
            changed |= {name for name in files if files[name] != initial[name]}
    assert changed == {"main.py", "table.txt"}
    assert evo.rerun(run.path, log=tmp_path / "again.jsonl").same
    require_whole(run)


def test_a_log_that_ends_anywhere_goes_on_to_the_same_run(run: evo.Log, tmp_path: Path) -> None:
    lines = run.path.read_bytes().splitlines(keepends=True)
    for cut in range(3, len(lines), 5):
        path = tmp_path / f"{cut}.jsonl"
        path.write_bytes(b"".join(lines[:cut]) + lines[cut][:20])
        again = evo.resume(path, generations=3, progress=False)
        assert same_run(again, run)


def test_a_fork_goes_on_from_its_files(run: evo.Log) -> None:
    (same,) = evo.fork(run.path, at=2, generations=3, progress=False)
    assert same_run(same, run)
    (other,) = evo.fork(run.path, at=1, generations=2, edits="diff", progress=False)
    made = [child for child in other.children if child.generation == 2]
    assert any(child.evaluation.status == "ok" for child in made)
    assert all(header in made[0].reply for header in ("==== file: ", "SEARCH"))


def test_its_viewers_show_each_file_below_its_name(run: evo.Log, tmp_path: Path) -> None:
    replay.browse(run.path).save(tmp_path / "run.html")
    page = program(run.best.program)
    assert page.index("<b>main.py</b>") < page.index("<i class='k'>import</i>")
    assert page.index("<b>table.txt</b>") > page.index("interp")
    assert "====" not in page
    shown, added, removed = difference(pack({"a.py": "x\n", "b.txt": "1\n"}), pack({"a.py": "x\n"}))
    assert (added, removed) == (0, 1)
    assert "b.txt" in shown
    assert "a.py" not in shown


def test_the_best_program_is_written_as_its_files(run, tmp_path: Path, capsys) -> None:
    folder = tmp_path / "best"
    assert main(["best", str(run.path), "-o", str(folder)]) == 0
    assert sorted(path.name for path in folder.iterdir()) == ["main.py", "table.txt"]
    found = evo.evaluate("packing_table", folder)
    assert found.status == "ok"


def test_a_dict_of_files_is_a_task_that_a_folder_keeps(tmp_path: Path) -> None:
    main_py = "import json\ndef answer():\n    return json.load(open('numbers.json'))[0]\n"
    made = evo.task(
        "pair", initial_program={"main.py": main_py, "numbers.json": "[3]"},
        evaluate=float, statement="More.",
    )  # fmt: skip
    assert made.evaluate().fitness == 3
    assert made.evaluate({"numbers.json": "[4]"}).fitness == 4
    again = evo.load_task(made.save(tmp_path / "pair"))
    assert again.record.hash == made.record.hash
    assert (tmp_path / "pair" / "numbers.json").read_text() == "[3]\n"
    with pytest.raises(TaskError, match=r"'other.py' is no file of its program"):
        made.evaluate({"other.py": "x = 1"})
    with pytest.raises(TaskError, match="expected a dict of them"):
        made.evaluate("def answer(): return 1")


def test_texts_are_given_to_an_evaluator_by_name(tmp_path: Path) -> None:
    def count(texts):
        return float(sum(map(len, texts.values())))

    made = evo.task("texts", initial_program={"plan.txt": "one", "answer.txt": "three"},
                    evaluate=count, statement="Long.")  # fmt: skip
    assert made.evaluate().fitness == len("one\n") + len("three\n")
    here = evo.task("texts", initial_program={"plan.txt": "one", "answer.txt": "three"},
                    evaluate=lambda text: len(text["plan.txt"]), where="here",
                    statement="Long.")  # fmt: skip
    assert here.evaluate().fitness == 4


def test_other_tools_evaluators_are_given_the_first_file_in_its_folder(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "main.py").write_text("from lib.values import VALUE\n")
    (tmp_path / "lib" / "values.py").write_text("VALUE = 2\n")
    (tmp_path / "evaluator.py").write_text(
        "import runpy\ndef evaluate(program_path):\n"
        "    found = runpy.run_path(program_path)\n"
        "    return {'combined_score': float(found['VALUE'])}\n"
    )
    (tmp_path / "task.toml").write_text('program = ["main.py", "lib/*.py", "*.py"]\n')
    task = evo.load_task(tmp_path)
    assert list(unpack(task.initial_program)) == ["main.py", "lib/values.py"]
    assert task.evaluate().fitness == 2
    assert task.evaluate({"lib/values.py": "VALUE = 5\n"}).fitness == 5
    broken = task.evaluate({"lib/values.py": "VALUE = 1 / 0\n"})
    assert broken.status == "error"
    assert "its evaluator" not in (broken.error or "").splitlines()[0]


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ('["lib/*.py"]', "the name of the file to run first"),
        ('["gone.py"]', "no file 'gone.py' in the folder"),
        ('["../x.py"]', "paths within the folder"),
    ],
)
def test_a_list_of_files_that_cannot_be_is_refused(tmp_path: Path, program, words) -> None:
    (tmp_path / "evaluator.py").write_text("def evaluate(program_path):\n    return {}\n")
    (tmp_path / "task.toml").write_text(f"program = {program}\n")
    with pytest.raises(TaskError, match=words):
        evo.load_task(tmp_path)


def test_regions_are_protected_in_each_file_that_marks_them() -> None:
    marked = "a = 1\n# EVOLVE-BLOCK-START\nb = 2\n# EVOLVE-BLOCK-END\n"
    initial = pack({"main.py": marked, "table.txt": "0\n"})
    archive = [Member((0, 0), 0.5, (), initial)]
    check = ProtectedRegions().check
    assert (
        check(pack({"main.py": marked.replace("b = 2", "b = 3"), "table.txt": "9"}), archive)
        is None
    )
    reason = check(pack({"main.py": marked.replace("a = 1", "a = 2"), "table.txt": "0"}), archive)
    assert reason == "main.py: a line outside the marks was changed: 'a = 1'"
