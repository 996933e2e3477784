"""The first prompt of a run, before a model is asked: it is the one that the run sends."""

from __future__ import annotations

from pathlib import Path

import pytest

import evo
from evo.cli.entry import main
from evo.models.client import prompt_hash
from evo.runs.planning import asked_in

NOISY = """
import runpy

import numpy as np

def evaluate(program_path):
    number = runpy.run_path(program_path)["number"]()
    return {"combined_score": number + np.random.default_rng().random(), "number": number}
"""

PROGRAM = """
# EVOLVE-BLOCK-START
def number():
    return 1.0
# EVOLVE-BLOCK-END
"""


@pytest.fixture(scope="module")
def noisy(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("noisy")
    (folder / "task.toml").write_text('name = "noisy"\nstatement = "It returns a number."\n')
    (folder / "initial_program.py").write_text(PROGRAM)
    (folder / "evaluator.py").write_text(NOISY)
    return str(folder)


def sent(arguments: list[str], path: Path) -> str:
    """Returns the first prompt of a run as its log has it, in the form of the command."""
    assert main(["run", *arguments, "-T", "1", "--log", str(path), "-q"]) == 0
    log = evo.read_log(path)
    (first, *_) = asked_in(log, 1)
    logged = {each.prompt_hash for each in log.children if not each.request}
    assert prompt_hash(first.messages) in logged
    return "".join(f"\n--- {each['role']}\n{each['content']}\n" for each in first.messages)


@pytest.mark.parametrize(
    "options",
    [
        "mmd", "mmd --feedback", "mmd --edits diff --inspirations 2", "mmd --search population",
        "mmd --search tree --seed 3 -N 3", "mmd --search map_elites --advice 1 --feedback",
        "mmd --search population --asynchronous --seed 2", "mmd --statement Shorter.",
        "mmd --evaluation-timeout auto --feedback", "NOISY --draws 3 --seed 5 --feedback",
        "NOISY --filter protected_regions", "NOISY --confirm 2 --seed 1",
        "word_problems --instances 4 --feedback --edits diff", "word_problems --instances 3",
    ],
)  # fmt: skip
def test_the_prompt_shown_is_the_first_one_that_a_run_sends(
    options: str, noisy: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = options.replace("NOISY", noisy).split()
    if "-N" not in arguments:
        arguments += ["-N", "1"]
    expected = sent(arguments, tmp_path / "a.jsonl")
    capsys.readouterr()
    assert main(["evaluate", *arguments, "--prompt", "-q"]) == 0
    shown = capsys.readouterr().out
    assert shown[shown.index("\n--- system\n") :] == expected


def test_options_that_alter_a_prompt_alter_what_is_shown(noisy: str) -> None:
    task = evo.load_task(noisy)
    plain = task.check(draws=3)
    altered = [
        task.check("offline", draws=3, feedback=True),
        task.check(draws=3, edits="diff", model="offline"),
        task.check(draws=3, seed=1),
        task.check(draws=3, filters=["protected_regions"]),
        task.check(draws=3, statement="Make it large."),
    ]
    assert len({str(each.messages) for each in (plain, *altered)}) == 6
    assert plain.evaluation.draws == 3


def test_the_prompt_of_another_program_shows_it(
    noisy: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "other.py"
    path.write_text(PROGRAM.replace("1.0", "7.0"))
    assert main(["evaluate", noisy, "--program", str(path), "--prompt", "--feedback"]) == 0
    shown = capsys.readouterr().out
    assert "return 7.0" in shown
    assert "Current program (fitness 7." in shown


def test_options_of_a_run_go_with_the_prompt_alone(
    noisy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for given, flag in (["--feedback"], "--feedback"), (["-N", "3"], "--children"):
        assert main(["evaluate", noisy, *given]) == 2
        assert f"{flag}: says what a run is" in capsys.readouterr().err
    with pytest.raises(ValueError, match="inspirations: expected at least 0"):
        evo.load_task(noisy).check(inspirations=-1)
    with pytest.raises(TypeError, match="unknown argument 'feedbak'"):
        evo.load_task(noisy).check(feedbak=True)


def test_an_evaluation_has_its_time_limit_under_either_name(
    noisy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    task = evo.load_task(noisy)
    for name in ("evaluation_timeout", "timeout"):
        with pytest.raises(ValueError, match="the time limit of an evaluation: "):
            evo.evaluate(task, PROGRAM, **{name: -1})  # type: ignore[arg-type]
        assert main(["evaluate", noisy, f"--{name.replace('_', '-')}", "-1"]) == 2
        assert "the time limit of an evaluation" in capsys.readouterr().err
    assert evo.evaluate(task, PROGRAM, evaluation_timeout=9, timeout=9.0).status == "ok"
    with pytest.raises(ValueError, match=r"two names of one option.*evaluation_timeout=9"):
        evo.evaluate(task, PROGRAM, evaluation_timeout=9, timeout=8)
