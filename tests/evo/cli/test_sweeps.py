"""What the command says of a sweep: how far its runs are, why, and what goes on with them."""

from pathlib import Path

import pytest

from evo.cli.entry import main
from evo.cli.sweeps import what_goes_on
from evo.studies.sweep.summary import Sweep

HEADER = 'task = "mmd"\nseeds = [1]\n[base]\ngenerations = 2\n[space]\n'


@pytest.mark.parametrize("policy", ["", 'policy = ["ucb1"]\n'])
def test_a_run_that_fails_is_quoted(
    policy: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, folder = tmp_path / "a.toml", str(tmp_path / "s")
    failing = 'search = [{name = "pareto", metrics = ["nothing"]}]\n'
    sizes = "[base]\narms = 2\nrounds = 2\n" if policy else "[base]\ngenerations = 2\n"
    file.write_text(f'task = "mmd"\nseeds = [1]\n{sizes}[space]\n{failing}{policy}')
    assert main(["sweep", str(file), "--log-dir", folder, "-q"]) == 1
    said = capsys.readouterr().out
    assert "ended: 0 of 1 runs completed, 1 failed" in said
    assert "a run failed: search 'pareto': `start` raised ValueError: metrics: expected" in said
    assert f"`evo sweep {folder}` tries again what failed" in said


def test_a_sweep_whose_budget_is_used_up_says_how_far_it_is_and_what_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, folder = tmp_path / "a.toml", str(tmp_path / "s")
    file.write_text(f"{HEADER}children = [2]\n")
    assert main(["sweep", str(file), "--log-dir", folder, "--budget", "calls=2", "-q"]) == 0
    words, advice = capsys.readouterr().out.splitlines()[-2:]
    assert words.startswith("budget: 0 of 1 runs completed")
    assert advice == (
        "runs left: 1, 1 of them begun; the budget is used up, and a higher one goes on: "
        f"`evo sweep {folder} --budget calls=NUMBER`"
    )
    assert main(["sweep", folder, "--budget", "calls=4", "-q"]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("completed: 1 of 1 runs completed")  # by the last call of its budget
    assert what_goes_on(Sweep(Path(folder)).summary) == ""


def test_a_dry_run_says_what_the_sweep_says_and_leaves_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "a.toml"
    file.write_text(f"budget = {{calls = 8}}\n{HEADER}children = [2, 4]\n")

    def dry(*arguments: str) -> str:
        assert main(["sweep", *arguments, "--dry-run"]) == 0
        return capsys.readouterr().out

    told = dry(str(file), "--log-dir", "s")
    assert told.startswith("2 runs, at most 12 calls")
    assert "no further generation begins once 8 calls are spent" in told
    assert list(tmp_path.iterdir()) == [file]
    assert dry(str(file), "--seeds", "1:4").startswith("6 runs, at most 36 calls")
    assert main(["sweep", str(file), "--log-dir", "s", "--budget", "calls=99", "-q"]) == 0
    said = capsys.readouterr().out.splitlines()[0]
    assert said in dry(str(file), "--log-dir", "s", "--budget", "calls=99").replace(
        "; 2 of the runs are complete already and cost nothing more", ""
    )
    files = sorted(tmp_path.rglob("*"))
    assert "2 of the runs are complete already" in dry("s")
    assert sorted(tmp_path.rglob("*")) == files


@pytest.mark.parametrize(
    ("strategy", "more"),
    [
        ('strategy = "grid"', ("--seeds", "1:4")),
        ('strategy = "random"\ntrials = 1', ("--trials", "3")),
    ],
    ids=["grid", "random"],
)
def test_a_sweep_that_is_extended_says_what_all_of_it_costs_then_and_the_budget_of_its_file(
    strategy: str, more: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, folder = tmp_path / "a.toml", str(tmp_path / "s")
    file.write_text(f"{strategy}\nbudget = {{calls = 99}}\n{HEADER}children = [2]\n")

    def first_line(*arguments: str) -> str:
        assert main(["sweep", str(file), "--log-dir", folder, *arguments]) == 0
        return capsys.readouterr().out.splitlines()[0]

    assert first_line("-q").startswith("1 run, at most 4 calls")
    outlook = first_line(*more, "--dry-run").removesuffix("; nothing was called")
    assert outlook.startswith("3 runs, at most 12 calls")
    assert "no further generation begins once 99 calls are spent" in outlook
    assert outlook.endswith("; 1 of the runs are complete already and cost nothing more")
    assert first_line(*more, "-q") == outlook
