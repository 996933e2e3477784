"""What a task takes of the configuration of another tool's run, and what it says of the rest."""

from pathlib import Path

import pytest

import evo
from evo.cli.entry import main
from evo.tasks.folder import TaskError
from evo.tasks.task import load_task
from evo.tasks.their_config import their_config, untaken

SOLUTION = "# EVOLVE-BLOCK-START\ndef objective(x):\n    return -((x - 3) ** 2) + 10\n"
EVALUATE = """
import json
import runpy


def evaluate(code_path, results_path):
    value = runpy.run_path(code_path)["objective"](2.0)
    with open(results_path, "w") as file:
        json.dump({"eval_time": 100.0, "fitness": value}, file)
"""
CONFIG = """
SEED: 42
CODEBASE_PATH: "src/"
EVAL_FILE_NAME: "evaluate.py"
INIT_FILE_DATA: {filename: "solution.py", language: "python"}
EVAL_TIMEOUT: 7
SYS_MSG: |
  # PROMPT-BLOCK-START
  Maximise the objective.
  # PROMPT-BLOCK-END
ENSEMBLE: [{model_name: "MOCK"}]
EVOLVE_CONFIG: {fitness_key: "fitness", num_epochs: 50, num_islands: 2, ckpt: 10, init_pop: 4, max_size: 9}
"""  # noqa: E501


@pytest.fixture
def problem(tmp_path: Path) -> Path:
    """A problem of CodeEvolve: its config, and beside it the folder of its input."""
    folder = tmp_path / "my_problem"
    (folder / "input" / "src").mkdir(parents=True)
    (folder / "input" / "src" / "solution.py").write_text(SOLUTION)
    (folder / "input" / "evaluate.py").write_text(EVALUATE)
    (folder / "config.yaml").write_text(CONFIG)
    (folder / "results").mkdir()
    (folder / "results" / "best_sol.py").write_text("x = 1")
    return folder


def test_a_problem_of_codeevolve_is_a_task_as_it_lies(problem: Path) -> None:
    task = load_task(problem)
    assert (task.name, task.statement) == ("my_problem", "Maximise the objective.")
    assert task.limits.seconds == 7
    assert {*task.record.files} == {"config.yaml", "evaluate.py", "src/solution.py"}
    found = task.evaluate()
    assert (found.status, found.fitness) == ("ok", 9.0), found.error
    assert found.metrics == {"eval_time": 100.0, "fitness": 9.0}
    assert found.error is None


def test_both_commands_say_what_is_not_taken(
    problem: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    words = "not: SEED, ENSEMBLE, EVOLVE_CONFIG.num_epochs, EVOLVE_CONFIG.num_islands"
    assert main(["evaluate", str(problem)]) == 0
    assert words in capfd.readouterr().out
    log = tmp_path / "run.jsonl"
    assert (
        main(["run", str(problem), "-T", "1", "-N", "1", "--workers", "1", "--log", str(log)]) == 0
    )
    assert words in capfd.readouterr().err
    assert evo.read_log(log).header.task.fitness_key == "fitness"
    assert evo.rerun(log).same


def test_the_input_alone_says_where_its_config_is(problem: Path) -> None:
    (problem / "input" / "src" / "solution.py").rename(problem / "input" / "initial_program.py")
    with pytest.warns(UserWarning, match=r"config.yaml beside it is not read; .*my_problem takes"):
        load_task(problem / "input")


def test_a_config_that_holds_a_key_is_no_part_of_the_task(problem: Path) -> None:
    with (problem / "config.yaml").open("a") as file:
        file.write("API_KEY: sk-abcdefghijklmnopqrstuvwxyz0123456789\n")
    task = load_task(problem)
    assert "config.yaml" not in task.record.files
    assert task.record.fitness_key == "fitness"


def test_task_toml_states_the_metric_that_is_the_fitness(problem: Path) -> None:
    folder = problem / "input"
    toml = 'program = "src/solution.py"\nfitness_key = "eval_time"\nstatement = "s"\n'
    (problem / "config.yaml").unlink()
    (folder / "task.toml").write_text(toml)
    assert load_task(folder).evaluate().fitness == 100.0
    (folder / "task.toml").write_text(toml.replace("eval_time", "speed"))
    lacking = load_task(folder).evaluate()
    assert lacking.status == "invalid"
    assert lacking.fitness is None
    assert "the metric 'speed', which is the fitness" in (lacking.error or "")
    assert "'eval_time', 'fitness'" in (lacking.error or "")


def test_an_evaluator_of_values_names_its_fitness_itself(tmp_path: Path) -> None:
    (tmp_path / "initial_program.py").write_text("def f():\n    return 1\n")
    (tmp_path / "evaluator.py").write_text("def score(value):\n    return {'fitness': value}\n")
    (tmp_path / "task.toml").write_text("entry = ['f']\nfitness_key = 'area'\n")
    with pytest.raises(TaskError, match="fitness_key: this is for an evaluator that is given"):
        load_task(tmp_path)


def test_a_program_in_another_language_is_one() -> None:
    raw = {"EVOLVE_CONFIG": {}, "INIT_FILE_DATA": {"filename": "a.cpp", "language": "cpp"}}
    assert their_config(raw).language == "cpp"
    assert their_config({**raw, "INIT_FILE_DATA": {"language": "python"}}).language == ""


@pytest.mark.parametrize("name", ["config.yaml", "config_island.yml"])
def test_what_of_a_configuration_is_not_taken_is_said(name: str) -> None:
    config = (
        "max_iterations: 7\nprompt:\n  system_message: s\n  num_top_programs: 2\n"
        "evaluator:\n  timeout: 3\n"
    )
    assert untaken({name: config}) == (
        f"of its {name} are taken: prompt.system_message, evaluator.timeout; not: "
        "max_iterations, prompt.num_top_programs"
    )
    assert untaken({name: "evaluator:\n  timeout: 3\n"}) == ""
    assert untaken({}) == ""
