import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evo
import replay
from evo.cli import main
from evo.llm.client import Call, EndpointRefused, ModelClient
from evo.selectors.race import Selection
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
def found(tmp_path_factory: pytest.TempPathFactory) -> Selection:
    folder = tmp_path_factory.mktemp("samples")
    return evo.select_best(CHOICES, **COMMON, selector="brute_force", log_dir=folder)


def test_a_sample_is_the_score_on_a_problem(found: Selection) -> None:
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


def found_order(found: Selection) -> list[int]:
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


def test_going_on_asks_nothing_again(found: Selection, tmp_path: Path) -> None:
    lines = {path: path.read_bytes().splitlines() for path in found.path.glob("*.jsonl")}
    again = evo.select_best(CHOICES, **COMMON, selector="brute_force", log_dir=found.path)
    assert repr(again) == repr(found)
    for path, before in lines.items():
        added = path.read_bytes().splitlines()[len(before) :]
        assert [re.search(rb'"kind":"(\w+)"', line)[1] for line in added] == [b"session", b"end"]
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


def test_the_log_of_a_text_goes_on_as_a_run(found: Selection, tmp_path: Path) -> None:
    (log,) = found.logs[0]
    path = tmp_path / log.path.name
    path.write_bytes(log.path.read_bytes())
    run = evo.resume(path, generations=1, progress=False)
    assert len([call for call in run.instance_calls if call.generation == 0]) == 24
    assert len(run.generations) == 1


def test_texts_of_logs_and_grids(found: Selection, tmp_path: Path) -> None:
    (log,) = found.logs[1]
    grid = {"text": [TEXTS["plain"], log], "temperature": [0.2, 0.9]}
    live = evo.select_best(grid, **COMMON, log_dir=tmp_path / "s", budget={"samples": 16})
    assert len(live.labels) == 4
    assert live.end == "budget"
    assert [each.get("text") for each in live.configurations].count(TEXTS["steps"]) == 2


def test_a_compact_log_has_no_text(found: Selection, tmp_path: Path) -> None:
    (log,) = found.logs[0]
    run = tmp_path / "run.jsonl"
    run.write_bytes(log.path.read_bytes())
    evo.resume(run, generations=3, progress=False)
    small = evo.compact(run, tmp_path / "small.jsonl")
    with pytest.raises(ValueError, match="a compact log holds no text"):
        evo.select_best([{"text": small}, CHOICES[0]], **COMMON, log_dir=tmp_path / "s")


def test_an_endpoint_that_refuses_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = Call((), None, rejected="the endpoint refuses it")
    answered = ModelClient.call

    def call(self: ModelClient, messages: Any, **how: Any) -> Call:
        made = answered(self, messages, **how)
        return refused if messages[0]["content"] == TEXTS["plain"] else made

    monkeypatch.setattr(ModelClient, "call", call)
    with pytest.raises(EndpointRefused, match="no instance got a reply"):
        evo.select_best(CHOICES, **COMMON, log_dir=tmp_path / "s")
    monkeypatch.undo()
    again = evo.select_best(CHOICES, **COMMON, log_dir=tmp_path / "s")
    whole = evo.select_best(CHOICES, **COMMON, log_dir=tmp_path / "w")
    assert again.outcomes.tolist() == whole.outcomes.tolist()
    assert again.failures.sum() == 0
    ends = [evo.read_log(path).ends for path in sorted((tmp_path / "s").glob("*.jsonl"))]
    assert {tuple(end.reason for end in each) for each in ends} == {("interrupted", "completed")}


def test_a_preset_says_the_batch_once(tmp_path: Path) -> None:
    plain = {name: value for name, value in COMMON.items() if name != "batch"}
    first = evo.select_best(CHOICES, **plain, preset="aggressive", log_dir=tmp_path / "s")
    assert first.terms.batch == 30
    again = evo.select_best(CHOICES, **plain, preset="conservative", log_dir=tmp_path / "s")
    assert again.terms.batch == 30


@pytest.mark.parametrize(
    ("configurations", "more", "error", "why"),
    [
        (CHOICES, {"task": "cp"}, ValueError, "only where a model is asked a data set"),
        ([{"text": "a", "children": 4}], {}, ValueError, "children: nothing evolves"),
        ([{"text": " "}], {}, ValueError, "expected what the model shall be told, got ' '"),
        ([{"text": 3}], {}, ValueError, "expected what the model shall be told, got 3"),
        (CHOICES, {"samples": "problem"}, ValueError, "expected 'seeds' or 'problems'"),
        (CHOICES, {"failure_value": 2}, ValueError, "failure_value"),
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


def test_command(found: Selection, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
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
