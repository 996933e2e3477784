"""Every refusal of a file's format shows a minimal valid file, and what it shows is valid."""

from collections.abc import Callable
from pathlib import Path

import pytest

import evo
from evo.logs import examples
from evo.logs.journal import LogError
from evo.models.registry import ModelError, find_model
from evo.studies.protocol import ProtocolError, load_protocol
from evo.studies.sweep.design import make_design, read_toml
from evo.tasks.folder import TaskError
from evo.tasks.instances import read_instances
from replay.importers import detect, table
from replay.importers.reading import LogFormatError


def shown(message: str, name: str = "") -> str:
    """The file that a message shows."""
    _, _, text = message.partition(f"{name}: " if name else "separated by '|': ")
    return text.partition("; ")[0].replace(examples.SEPARATOR, "\n") + "\n"


def refused(error: type[Exception], act: Callable[[], object]) -> str:
    with pytest.raises(error) as caught:
        act()
    message = str(caught.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize("text", ["children = 4\n", "[space\n", "\x00"])
def test_a_sweep_file(text: str, tmp_path: Path) -> None:
    path = tmp_path / "sweep.toml"
    path.write_text(text)
    path.write_text(shown(refused(ValueError, lambda: read_toml(path))))
    design = make_design(**read_toml(path))
    assert design.build_strategy().planned == 2


@pytest.mark.parametrize("text", ["x = 1\n", "name = [\n"])
def test_a_protocol_file(text: str, tmp_path: Path) -> None:
    path = tmp_path / "protocol.toml"
    path.write_text(text)
    path.write_text(shown(refused(ProtocolError, lambda: load_protocol(path))))
    assert load_protocol(path).calls == 240


def test_a_folder_of_a_task(tmp_path: Path) -> None:
    message = refused(TaskError, lambda: evo.load_task(tmp_path))
    for name in ("initial_program.py", "evaluator.py", "task.toml"):
        (tmp_path / name).write_text(shown(message.partition("separated by '|': ")[2], name))
    assert evo.evaluate(tmp_path, evo.load_task(tmp_path).initial_program).fitness == 0.5
    (tmp_path / "task.toml").write_text("entri = ['solve']\n")
    message = refused(TaskError, lambda: evo.load_task(tmp_path))
    (tmp_path / "task.toml").write_text(shown(message))
    assert evo.load_task(tmp_path).statement is not None


@pytest.mark.parametrize("text", ["", "2, 4\n", '{"want": 4}\n'])
@pytest.mark.parametrize("needed", ["input", "prompt"])
def test_the_data_set_of_a_task(text: str, needed: str, tmp_path: Path) -> None:
    evolved = "text" if needed == "prompt" else "python"
    start = "initial_program.txt" if needed == "prompt" else "initial_program.py"
    (tmp_path / start).write_text("def solve(x):\n    return x\n")
    (tmp_path / "evaluator.py").write_text("def score(value, instance):\n    return 1.0\n")
    keys = f'evolves = "{evolved}"\ninstances = "cases.jsonl"\n'
    (tmp_path / "task.toml").write_text(
        keys + ("" if needed == "prompt" else 'entry = ["solve"]\n')
    )
    (tmp_path / "cases.jsonl").write_text(text)
    message = refused(TaskError, lambda: evo.load_task(tmp_path))
    (tmp_path / "cases.jsonl").write_text(shown(message))
    assert all(needed in each for each in read_instances(evo.load_task(tmp_path).record))


@pytest.mark.parametrize("text", ["x = 1\n", "[m\n", "[m]\nid = 3\n"])
def test_a_file_of_models(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "models.toml"
    monkeypatch.setenv("EVO_MODELS", str(path))
    path.write_text(text)
    path.write_text(shown(refused(ModelError, lambda: find_model("my-model-8b"))))
    assert find_model("my-model-8b").base_url == "http://localhost:8000/v1"


def test_an_evaluator_that_is_no_python(tmp_path: Path) -> None:
    (tmp_path / "initial_program.py").write_text("def solve():\n    return 0.5\n")
    (tmp_path / "task.toml").write_text("entry = ['solve']\n")
    (tmp_path / "evaluator.py").write_text("def score(:\n")
    message = refused(TaskError, lambda: evo.load_task(tmp_path))
    (tmp_path / "evaluator.py").write_text(shown(message))
    assert evo.evaluate(tmp_path, evo.load_task(tmp_path).initial_program).fitness == 0.5


@pytest.mark.parametrize("name", ["calls.txt", "calls.csv"])
def test_a_file_of_no_known_format(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text("")
    act = (lambda: detect(path)) if name.endswith("txt") else (lambda: table.read(path))
    message = refused(LogFormatError, act)
    (tmp_path / "calls.csv").write_text(shown(message))
    assert detect(tmp_path / "calls.csv") == "table"


def test_a_table(tmp_path: Path) -> None:
    path = tmp_path / "calls.csv"
    path.write_text("a,b\n1,2\n")
    path.write_text(shown(refused(LogFormatError, lambda: table.read(path))))
    (run,) = table.read(path)
    assert [child.evaluation.fitness for child in run.children] == [0.31, 0.42]


@pytest.mark.parametrize("text", ["hello\n", '{"a": 1}\n'])
def test_a_log(text: str, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text(text)
    assert examples.LOG in refused(LogError, lambda: evo.read_log(path))


def test_the_folder_of_a_selection(tmp_path: Path) -> None:
    (tmp_path / "selection.json").write_text("[]")

    def select() -> object:
        return evo.select_best([{"children": 1}], task="mmd", log_dir=tmp_path, progress=False)

    assert examples.SELECTION in refused(LogError, select)
