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
    assert main(["sweep", folder, "--budget", "calls=5", "-q"]) == 0
    assert "1 of 1 runs completed" in capsys.readouterr().out.splitlines()[-1]
    assert what_goes_on(Sweep(Path(folder)).summary) == ""
