import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evo
import replay
from evo.cli import main
from evo.selection import LiveSelection
from evo.sweeping.space import SpaceError

TEXTS = {
    "plain": "Answer the question.",
    "steps": "Think step by step, keep the units, and end with a line 'Answer: <number>'.",
    "steps only": "Think step by step.",
}
WP = evo.load_task("word_problems", instances=24)
COMMON: dict[str, Any] = {"task": WP, "samples": "problems", "batch": 4, "progress": False}
CHOICES = [{"text": text} for text in TEXTS.values()]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> LiveSelection:
    folder = tmp_path_factory.mktemp("samples")
    return evo.select_best(CHOICES, **COMMON, selector="brute_force", log_dir=folder)


def test_a_sample_is_the_score_on_a_problem(found: LiveSelection) -> None:
    assert found.samples.tolist() == [24, 24, 24]
    assert found.spent["calls"].tolist() == [24, 24, 24]
    for k, text in enumerate(TEXTS.values()):
        (log,) = found.logs[k]
        alone = evo.evaluate(WP, text)
        assert log.initial is not None
        assert log.initial.evaluation.fitness == alone.fitness == pytest.approx(found.mean[k])
        scores = {each.id: each.score for each in alone.instances}
        order = found_order(found)
        ids = [each.id for each in alone.instances]
        expected = [scores[ids[place]] for place in order]
        assert found.outcomes[k].tolist() == [np.nan if s is None else s for s in expected]
    assert found.winner == int(np.argmax(found.mean))
    assert found.labels[0] == "text=Answer the question."


def found_order(found: LiveSelection) -> list[int]:
    identity = json.loads((found.path / "selection.json").read_text())
    order: list[int] = identity["problems"]
    assert sorted(order) == list(range(24))
    return order


def test_it_is_what_the_matrix_of_whole_evaluations_gives(tmp_path: Path) -> None:
    live = evo.select_best(CHOICES, **COMMON, log_dir=tmp_path / "s")
    whole = evo.instance_matrix([evo.evaluate(WP, text) for text in TEXTS.values()])
    again = replay.select(whole[:, found_order(live)], batch=4)
    assert again.winner == live.winner
    assert again.samples.tolist() == live.samples.tolist()
    assert again.lower.tolist() == live.lower.tolist()


def test_going_on_asks_nothing_again(found: LiveSelection, tmp_path: Path) -> None:
    lines = {path: path.read_bytes().splitlines() for path in found.path.glob("*.jsonl")}
    again = evo.select_best(CHOICES, **COMMON, selector="brute_force", log_dir=found.path)
    assert repr(again) == repr(found)
    for path, before in lines.items():
        added = path.read_bytes().splitlines()[len(before) :]
        assert [b'"kind":"session"' in line for line in added] == [True]
    # A log cut anywhere is gone on with from there.
    part = tmp_path / "part"
    part.mkdir()
    for path, whole in lines.items():
        (part / path.name).write_bytes(b"\n".join(whole[:10]) + b"\n" + whole[10][:40])
    (part / "selection.json").write_bytes((found.path / "selection.json").read_bytes())
    mended = evo.select_best(CHOICES, **COMMON, selector="brute_force", log_dir=part)
    assert repr(mended) == repr(found)
    for path in lines:
        calls = evo.read_log(part / path.name).instance_calls
        assert len({(call.program, call.index) for call in calls}) == len(calls) == 24


def test_the_log_of_a_text_goes_on_as_a_run(found: LiveSelection, tmp_path: Path) -> None:
    (log,) = found.logs[0]
    path = tmp_path / log.path.name
    path.write_bytes(log.path.read_bytes())
    run = evo.resume(path, generations=1, progress=False)
    assert len([call for call in run.instance_calls if call.generation == 0]) == 24
    assert len(run.generations) == 1


def test_texts_of_logs_and_grids(found: LiveSelection, tmp_path: Path) -> None:
    (log,) = found.logs[1]
    grid = {"text": [TEXTS["plain"], log], "temperature": [0.2, 0.9]}
    live = evo.select_best(grid, **COMMON, log_dir=tmp_path / "s", budget={"samples": 16})
    assert len(live.labels) == 4
    assert live.end == "budget"
    assert [each.get("text") for each in live.configurations].count(TEXTS["steps"]) == 2


@pytest.mark.parametrize(
    ("configurations", "more", "error", "why"),
    [
        (CHOICES, {"task": "cp"}, ValueError, "only where a model is asked a data set"),
        ([{"text": "a", "children": 4}], {}, ValueError, "children: nothing evolves"),
        ([{"text": " "}], {}, ValueError, "got an empty text"),
        ([{}, {"text": WP.initial_program}], {}, ValueError, "0 and 1 are the same"),
        ([{"texts": "a"}], {}, SpaceError, "unknown field 'texts'"),
        ([{"task": WP}, {"task": "wp"}], {"task": None}, ValueError, "share one data set"),
    ],
)
def test_mistakes_are_told(
    configurations: Any, more: dict[str, Any], error: type[Exception], why: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=why):
        evo.select_best(configurations, **{**COMMON, **more}, log_dir=tmp_path / "s")
    assert not (tmp_path / "s").exists()


def test_command(found: LiveSelection, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = tmp_path / "steps.txt"
    text.write_text(TEXTS["steps"])
    given = ["--text", str(text), "--text", str(found.logs[0][0].path), "--problems", "-q"]
    folder = tmp_path / "s"
    common = ["select", "wp", "--instances", "24", "--log-dir", str(folder)]
    assert main([*common, *given, "--selector", "brute_force"]) == 0
    said = capsys.readouterr().out
    assert "mean score" in said
    assert "48 of 48 problems" in said
    assert main([*common, "--text", str(text)]) == 2
    assert "texts need --problems" in capsys.readouterr().err
    assert main([*common, "--problems", "--text", str(tmp_path / "none.txt")]) == 2
    assert "cannot read it" in capsys.readouterr().err
    assert main(common) == 2
    assert "expected --vary" in capsys.readouterr().err
