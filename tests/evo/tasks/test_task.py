from pathlib import Path

import msgspec
import pytest
from evo_runs import folder_task

import evo
from evo.cli.entry import main
from evo.logs.records import Limits
from evo.tasks.folder import TaskError
from evo.tasks.task import load_task


@pytest.mark.parametrize(
    ("alias", "name", "fitness"),
    [
        ("cp", "circle_packing", 0.36423689),
        ("mmd", "min_max_distance", 0.00784),
        ("ht", "heilbronn_triangle", 0.0),
    ],
)
def test_shipped_tasks_start_where_the_paper_does(alias: str, name: str, fitness: float) -> None:
    task = evo.load_task(alias)
    assert task == evo.load_task(name)
    evaluation = evo.evaluate(alias, task.initial_program)
    assert evaluation.status == "ok"
    assert evaluation.fitness == pytest.approx(fitness, abs=5e-6)
    assert {"objective", "strict_fitness"} <= set(evaluation.metrics)


def test_unknown_name_lists_what_there_is(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match=r"circle_packing \(cp\).*did you mean 'circle_packing'"):
        load_task("circle_packin")
    (tmp_path / "file").write_text("x")
    with pytest.raises(TaskError, match="expected a task's folder, got a file"):
        load_task(tmp_path / "file")


@pytest.mark.parametrize("place", ["knapsak", "mine/knapsak"])
def test_a_misspelt_folder_is_met_with_the_one_that_is_there(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    meant = place.replace("knapsak", "knapsack")
    Path(meant).mkdir(parents=True)
    Path(place.replace("knapsak", "knapsaks.txt")).touch()
    with pytest.raises(evo.TaskError, match=f"did you mean '{meant}'"):
        evo.load_task(place)


@pytest.mark.parametrize("name", ["../evil", "a/b", "a\\b", ".hidden", "a\nb"])
def test_a_name_cannot_lead_out_of_the_folder_of_logs(tmp_path: Path, name: str) -> None:
    toml = f"name = {msgspec.json.encode(name).decode()}\n"
    with pytest.raises(TaskError, match="expected a plain name"):
        load_task(folder_task(tmp_path / "mine", task_dot_toml=toml))


SHIPPED_HASHES = {
    "circle_packing": "b21befd81e01",
    "heilbronn_triangle": "f1fc9576d08a",
    "min_max_distance": "9047c91ffff2",
    "word_problems": "1d2a73b896be",
}


def test_shipped_tasks_are_those_of_logged_runs() -> None:
    for name, digest in SHIPPED_HASHES.items():
        assert load_task(name).record.hash.startswith(digest), name


MISTAKES = [
    ("task.toml", "statment = 'x'", r"unknown key 'statment'; did you mean 'statement'"),
    ("task.toml", "[limits]\nsecond = 1", r"did you mean 'limits.seconds'"),
    ("task.toml", "[limits]\nseconds = -1", r"limit 'seconds' must be positive"),
    ("task.toml", "evolves = 'rust'", r"evolves: python or text"),
    ("task.toml", "name = [", r"not readable as TOML"),
    ("task.toml", "a=" + "[" * 5000, "not readable as TOML"),
    ("task.toml", "title=" + "9" * 10_000, "not readable as TOML"),
    ("task.toml", 'program = "a\\u0000"', "expected a file of the task"),
    ("task.toml", "files = ['.']", "files: '.'"),
    ("task.toml", "files = ['**a']", r"files: .*'\*\*a'"),
    ("task.toml", "#" * (2 << 20), "expected a file of at most"),
    ("task.toml", None, "expected a file of at most"),
    ("task.toml", "task.toml", "expected a file of the task's folder: .*(Symlink|symbolic links)"),
    ("config.yaml", "a: [", r"not readable as YAML"),
    ("config.yaml", "[" * 5000, "not readable as YAML"),
    ("config.yaml", "a: 2020-99-99", "not readable as YAML"),
    ("config.yaml", "#" * (2 << 20), "expected a file of at most"),
    ("config.yaml", 'system_message: "\\ud800"', "valid Unicode"),
    ("initial_program.py", "", r"no initial program: expected .*initial_program.py"),
    ("initial_program.py", "  \n", r"the initial program is empty"),
    ("evaluator.py", "", r"no evaluator: expected .*evaluator.py"),
    ("evaluator.py", "def check(p): ...", r"expected a function evaluate.*found check"),
    ("evaluator.py", "def (", r"not valid Python"),
    ("evaluator.py", "def score(v): ...", r"expected a key `entry`"),
    ("evaluator.py", "x = " + "-" * 100_000 + "1", "not valid Python"),
    ("evaluator.py", "x = a" + ".b" * 30_000, "not valid Python"),
]


@pytest.mark.parametrize(("name", "content", "says"), MISTAKES)
def test_mistakes_are_named_in_one_line(
    tmp_path: Path, name: str, content: str | None, says: str
) -> None:
    folder = folder_task(tmp_path / "t")
    (folder / name).unlink(missing_ok=True)
    if content is None:
        (folder / name).mkdir()
    elif content == name:
        (folder / name).symlink_to(name)
    elif content:
        (folder / name).write_text(content)
    with pytest.raises(TaskError, match=says) as error:
        load_task(folder)
    assert str(folder) in str(error.value)


@pytest.mark.parametrize(
    "limit",
    ["seconds = 1e30", f"memory_mb = {10**18}", "files_mb = 0x1" + "0" * 15, "processes = 9999"],
)
def test_limits_of_a_task_are_held_to_those_of_the_machine(tmp_path: Path, limit: str) -> None:
    folder = folder_task(tmp_path / "t", task_dot_toml=f"[limits]\n{limit}\n")
    name = limit.split(maxsplit=1)[0]
    with pytest.warns(UserWarning, match=f"{name} .* to .*EVO_MAX_LIMITS"):
        task = load_task(folder)
    assert getattr(task.limits, name) < 1e6
    assert evo.evaluate(task, task.initial_program).status == "ok"


@pytest.mark.parametrize("limit", [f"memory_mb = {10**25}", "files_mb = 0x1" + "0" * 999])
def test_a_limit_that_no_log_can_hold_is_refused(tmp_path: Path, limit: str) -> None:
    folder = folder_task(tmp_path / "t", task_dot_toml=f"[limits]\n{limit}\n")
    with pytest.raises(TaskError, match=limit.split(maxsplit=1)[0]):
        load_task(folder)


def test_limits_out_of_a_log_are_held_too(monkeypatch: pytest.MonkeyPatch) -> None:
    record = load_task("mmd").record
    monkeypatch.setenv("EVO_MAX_LIMITS", "seconds=0.5,output_kb=4")
    with pytest.warns(UserWarning, match=r"seconds 1e\+30 to 0\.5"):
        evaluation = evo.sandbox.evaluate(record, "while True: pass", Limits(seconds=1e30))
    assert (evaluation.status, evaluation.seconds < 30) == ("timeout", True)
    monkeypatch.setenv("EVO_MAX_LIMITS", "second=3")
    with pytest.raises(ValueError, match=r"EVO_MAX_LIMITS: expected .*seconds.*'second=3'"):
        evo.sandbox.evaluate(record, "x = 1", Limits())


@pytest.mark.parametrize("seconds", ["1e30", "inf", "nan", "-1", "0"])
def test_a_time_limit_beyond_reason_is_one_line(
    tmp_path: Path, seconds: str, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "a.jsonl"
    assert main(["run", "mmd", "-q", f"--evaluation-timeout={seconds}", "--log", str(log)]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert not log.exists()
