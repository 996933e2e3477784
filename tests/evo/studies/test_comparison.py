"""Several tools on the same tasks: equal calls, balanced order, and going on where it was."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from toy_engine import toy

import evo
import replay
from evo.cli.entry import main
from evo.runs.verification import verify
from evo.studies.comparison import Comparison, compare_engines, load_comparison

pytestmark = pytest.mark.usefixtures("own_engines")


def test_any_beginning_is_balanced() -> None:
    comparison = Comparison(tasks=("mmd", "ht"), engines=("ours", "a", "b"), calls=4, runs=5)
    made = list(comparison.order())
    assert len(made) == len(set(made)) == 2 * 3 * 5
    for end in range(len(made) + 1):
        counts = Counter(engine for _, _, engine in made[:end])
        assert max(counts.values(), default=0) - min(counts.get(e, 0) for e in ("a", "b")) <= 2
        seeds = Counter(seed for seed, _, _ in made[:end])
        assert sum(0 < count < 6 for count in seeds.values()) <= 1  # one seed is under way
    first = [engine for _, _, engine in made[::6]]
    assert first == ["ours", "a", "b", "ours", "a"]


@pytest.mark.slow
def test_tools_make_the_same_calls_and_go_on(tmp_path: Path) -> None:
    toy()
    comparison = Comparison(tasks=("mmd",), engines=("ours", "toy"), calls=4, runs=2, children=2)
    done = compare_engines(comparison, log_dir=tmp_path, progress=False)
    assert [(each.seed, each.engine) for each in done] == [
        (40, "ours"), (40, "toy"), (41, "toy"), (41, "ours"),
    ]  # fmt: skip
    for each in done:
        assert len(each.log.outcomes) == 4
        assert each.log.header.protocol == comparison.digest
        assert each.log.header.condition == each.engine
        assert verify(each.log.path).faults == ()
    before = {each.log.path: each.log.path.read_bytes() for each in done}
    again = compare_engines(comparison, log_dir=tmp_path, progress=False)
    assert {each.log.path: each.log.path.read_bytes() for each in again} == before
    frame = replay.load(tmp_path)
    assert frame.groupby("search")["run"].nunique().to_dict() == {"greedy": 2, "toy": 2}
    assert (frame.groupby("run")["n_calls"].sum() == 4).all()


def test_a_file_states_a_comparison(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "comparison.toml"
    file.write_text('tasks = ["mmd"]\nengines = ["ours"]\ncalls = 4\nruns = 1\nchildren = 4\n')
    comparison = load_comparison(file)
    assert comparison == Comparison(tasks=("mmd",), engines=("ours",), calls=4, runs=1, children=4)
    logs = tmp_path / "logs"
    assert main(["compare", "--protocol", str(file), "--log-dir", str(logs), "-q"]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[-1] == f"replay report {logs}"
    log = evo.read_log(next(logs.rglob("*.jsonl")))
    assert log.header.protocol == comparison.digest


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("calls", 0, "at least 1"),
        ("children", 3, "divides the budget of 4 calls"),
        ("engines", (), "different names"),
        ("tasks", ("mmd", "mmd"), "different names"),
    ],
)
def test_what_cannot_be_compared_is_refused(field: str, value: object, words: str) -> None:
    fields = {"tasks": ("mmd",), "engines": ("ours",), "calls": 4, "runs": 1, "children": 4}
    with pytest.raises(ValueError, match=words):
        Comparison(**{**fields, field: value})


def test_mistakes_are_answered_in_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "mmd"]) == 2
    assert "--budget calls=NUMBER" in capsys.readouterr().err
    file = tmp_path / "comparison.toml"
    file.write_text('tasks = ["mmd"]\nengine = ["ours"]\n')
    assert main(["compare", "--protocol", str(file)]) == 2
    assert "engine" in capsys.readouterr().err
    comparison = Comparison(tasks=("mmd",), engines=("ours",), calls=4, runs=1, children=4)
    with pytest.raises(ValueError, match="expected names out of ours, got 'toy'"):
        compare_engines(comparison, pythons={"toy": "python"}, log_dir=tmp_path)
