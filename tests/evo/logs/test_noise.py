"""What a log knows of the noise of its evaluations: said where a run took no precaution."""

from pathlib import Path

import pytest
from commands import call
from evo_runs import write_task

import evo
from evo.logs.noise import noise_of
from evo.runs import judge

PROGRAM = "def value():\n    return 1.5\n"
NOISY = "import random\n\ndef score(value):\n    return {'fitness': value + random.random()}\n"
PLAIN = "def score(value):\n    return {'fitness': value}\n"


@pytest.fixture
def noisy(tmp_path: Path) -> Path:
    return write_task(tmp_path / "noisy", PROGRAM, NOISY, "entry = ['value']\n")


def run(task: Path | str, path: Path, **options: object) -> evo.Log:
    settings = {"generations": 1, "children": 1, "progress": False, **options}
    return evo.run(task, log=path, **settings)


def words(log: evo.Log, **options: bool) -> str:
    return noise_of(log.header, log.initial, **options)


@pytest.mark.filterwarnings("ignore:.*evaluations are noisy:UserWarning")
def test_noise_is_said_with_both_values_unless_the_run_allows_for_it(
    noisy: Path, tmp_path: Path
) -> None:
    log = run(noisy, tmp_path / "a.jsonl")
    assert log.initial is not None
    assert log.initial.second is not None
    for each in (log.initial.evaluation, log.initial.second):
        assert f"{each.fitness:.5g}" in words(log)
    assert "--draws 4 --confirm 8" in words(log)
    assert "intervals over seeds" not in words(log)
    assert "intervals over seeds do not cover it" in words(log, several=True)
    without = run(noisy, tmp_path / "b.jsonl", asynchronous=True)
    assert "--draws 4" in words(without)
    assert "confirm" not in words(without)
    for place, careful in enumerate(({"draws": 2}, {"confirm": 2})):
        assert words(run(noisy, tmp_path / f"c{place}.jsonl", **careful)) == ""


def test_an_evaluation_that_is_the_same_each_time_is_not_called_noisy(tmp_path: Path) -> None:
    task = write_task(tmp_path / "plain", PROGRAM, PLAIN, "entry = ['value']\n")
    log = run(task, tmp_path / "a.jsonl")
    assert log.initial is not None
    assert log.initial.second is not None
    assert words(log, several=True) == ""


@pytest.mark.filterwarnings("ignore:.*evaluations are noisy:UserWarning")
def test_commands_that_state_a_fitness_say_that_it_is_noisy(
    noisy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = run(noisy, tmp_path / "a.jsonl")
    initial = tmp_path / "noisy" / "initial_program.py"
    evaluate = ["evaluate", str(noisy), "--program", str(initial)]
    for command in (["show", str(log.path)], ["best", str(log.path)], evaluate):
        capsys.readouterr()
        assert call(*command) == 0
        said = "".join(capsys.readouterr())
        assert said.count("evaluations are noisy") == 1
        assert f"{log.initial.evaluation.fitness:.5g} in one draw" in said  # type: ignore[union-attr]
    for command in (["evaluate", "mmd"], [*evaluate, "--prompt", "--draws", "2"]):
        assert call(*command) == 0
        assert "evaluations are noisy" not in "".join(capsys.readouterr())


def test_an_evaluation_that_takes_long_is_made_once_and_said_not_to_show_noise(
    noisy: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judge, "QUICK_SECONDS", 0.0)
    assert call("evaluate", str(noisy)) == 0
    assert "fixed by task and program" in capsys.readouterr().out
