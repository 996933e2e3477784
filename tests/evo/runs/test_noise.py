"""Noisy tasks: draws on common luck, confirmation, and what is reported in the end."""

import statistics
from pathlib import Path

import msgspec
import pytest
from commands import call
from evo_runs import write_task
from lottery import PROGRAM, Lottery

import evo
from evo.runs.accept import confirm, lower_bound
from evo.runs.configuration import make_header
from evo.runs.evaluate import FINAL, DrawEvaluator, final_report
from evo.runs.state import state_of

PURE = "import random\n\n\ndef value():\n    return random.random()\n"


def accepted(noisy: Path, gain: float, *, tests: int, common: float = 0.0, **options) -> float:
    """Share of confirmations that accept a rival that is better by a gain."""
    found, plain = 0, make_header(noisy, confirm=8, **options)
    for seed in range(tests):
        header = msgspec.structs.replace(plain, seed=seed)
        draws = DrawEvaluator(header, Lottery(common).evaluate)
        found += confirm(draws, 1, 0, "0/parent", f"{gain}/rival").accepted
    return found / tests


def test_noise_is_accepted_at_the_stated_rate(noisy: Path) -> None:
    assert accepted(noisy, 0, tests=1000) <= 0.07
    assert accepted(noisy, 0, tests=1000, spending=True) <= 0.04  # 2.5 % in generation 1


def test_the_tests_of_a_run_share_the_error_rate(noisy: Path) -> None:
    draws = DrawEvaluator(make_header(noisy, confirm=2, spending=True), Lottery().evaluate)
    spent = sum(confirm(draws, g, 0, "0/a", "1/b").alpha for g in range(1, 300))
    assert spent < 0.05 == pytest.approx(spent, rel=5e-3)


def test_gains_are_seen(noisy: Path) -> None:
    assert accepted(noisy, 1, tests=300) >= 0.5
    assert accepted(noisy, 2, tests=300) >= 0.9
    assert accepted(noisy, 1, tests=100, common=0.9) > 0.95  # on the same luck


def test_a_difference_without_spread_counts_as_it_is() -> None:
    assert lower_bound([0.25] * 8) == 0.25
    assert lower_bound([0.0, 0.5] * 4) < 0.25


def test_a_confirmation_uses_draws_that_nothing_used(noisy: Path) -> None:
    header = make_header(noisy, draws=3, confirm=4)
    used: list[set[int]] = []
    lottery = Lottery()
    draws = DrawEvaluator(header, lottery.evaluate)
    draws.mean("0/a")
    used.append(set(lottery.seen))
    for generation in (1, 2, 3):
        lottery.seen.clear()
        confirm(draws, generation, 0, "0/a", "1/b")
        assert len(lottery.seen) == 8
        used.append(set(lottery.seen))
    assert set.union(*used) == {*range(3 + 3 * 4)}  # the next ones each time
    lottery.seen.clear()
    final_report(draws, "0/a", "1/b")
    used.append(set(lottery.seen))
    assert sum(map(len, used)) == len(set.union(*used))
    assert min(used[-1]) == FINAL


def test_programs_meet_the_same_luck_from_draw_1_on(noisy: Path) -> None:
    header = make_header(noisy, seed=5, draws=3)
    with evo.sandbox.Evaluator(1) as sandbox:
        draws = DrawEvaluator(header, sandbox.evaluate)
        one, other = (
            draws.on(PROGRAM.format(gain=gain, mark=mark), range(3))
            for gain, mark in ((0, 1), (2, 2))
        )
    gains = [b - a for a, b in zip(one, other, strict=True)]
    assert gains[1:] == pytest.approx([2, 2])
    assert gains[0] != pytest.approx(2)
    assert len(set(one)) == 3


def test_a_noisy_task_is_told_of_at_once(noisy: Path, tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="evaluations are noisy.*confirm=8"):
        evo.run(noisy, generations=1, children=1, log=tmp_path / "a.jsonl", progress=False)


def test_a_run_of_pure_noise_reports_the_mean_of_the_noise(noisy: Path, tmp_path: Path) -> None:
    (noisy / "initial_program.py").write_text(PURE)
    options = {"children": 4, "draws": 2, "confirm": 4, "progress": False}
    whole = evo.run(noisy, generations=6, log=tmp_path / "a.jsonl", **options)
    evo.run(noisy, generations=3, log=tmp_path / "b.jsonl", **options)
    resumed = evo.resume(tmp_path / "b.jsonl", generations=6, progress=False)
    assert whole.trajectory == pytest.approx(resumed.trajectory)
    assert whole.confirmations == resumed.confirmations
    assert all(child.evaluation.draws in (1, 2) for child in whole.outcomes)
    stats = whole.ends[-1].stats
    assert stats["final_draws"] == 4
    assert 0.05 < stats["final_fitness"] < 0.95  # the mean of four, not the best of many
    assert evo.rerun(whole).same
    rejected = [g for g, tried in whole.confirmations.items() if not tried.accepted]
    for generation in rejected:
        tried = whole.confirmations[generation]
        assert not whole.generations[generation - 1].improved
        assert whole.generations[generation - 1].best_fitness == pytest.approx(
            statistics.fmean(tried.parent)
        )


def test_the_best_program_has_the_fitness_that_the_run_confirmed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    judge = "import random\n\n\ndef score(value):\n    return value / 7 + random.gauss(0, 0.1)\n"
    folder = write_task(tmp_path / "task", "def f():\n    return 1.5\n", judge, "entry = ['f']\n")
    options = {"generations": 3, "children": 8, "confirm": 4, "progress": False}
    run = evo.run(folder, log=tmp_path / "a.jsonl", **options)
    last = run.confirmations[max(run.confirmations)]
    draws = last.rival if last.accepted else last.parent
    assert run.best.fitness == pytest.approx(statistics.fmean(draws))
    assert run.best.fitness == run.best_fitness == state_of(run).best_fitness
    assert run.parent == run.best
    first = run.child(run.best.generation, run.best.index).evaluation.fitness
    assert first > run.best.fitness  # the luck for which it was chosen
    assert call("best", str(run.path)) == 0
    assert f": fitness {run.best_fitness!r}" in capsys.readouterr().err


def test_rescore_with_more_draws(noisy: Path, tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="noisy"):
        log = evo.run(noisy, generations=1, children=2, log=tmp_path / "a.jsonl", progress=False)
    again = evo.rescore(log, draws=4, log=tmp_path / "b.jsonl")
    assert again.header.draws == 4
    assert again.initial.evaluation.draws == 4
    assert again.initial.evaluation.fitness_sd > 0
    assert again.initial.evaluation.fitness != log.initial.evaluation.fitness


@pytest.mark.parametrize(
    ("task", "options", "said"),
    [
        ("mmd", {"confirm": 1}, "at least 2"),
        ("mmd", {"draws": 0}, "at least 1"),
        ("wp", {"draws": 2}, "a text"),
    ],
)
def test_mistakes(task: str, options: dict[str, int], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        make_header(task, **options)
